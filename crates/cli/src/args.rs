//! Which words does the program take?

mod help;
mod maintenance;
#[cfg(test)]
mod reference;
mod seeing;

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub use maintenance::{
    ApproveArgs, CalendarOutput, Document, ExplainArgs, FleetArgs, MaintenanceArgs,
    MaintenanceCommand, PausedArgs, PlanArgs, WindowsArgs, ZoneArgs,
};
pub use seeing::{
    CompleteArgs, CompletionArgs, DriftArgs, DumpArgs, DumpOutput, EventsArgs, ManArgs, ShellName,
    SourceName,
};

/// Machine lifecycle and maintenance for Kubernetes, from a shell.
///
/// A Machine object, a cloud instance and a Node are one thing seen three times. `machinist status`
/// shows the three side by side and why anything waits; `machinist up` gives you a whole cluster to
/// try it on.
#[derive(Debug, Parser)]
#[command(name = "machinist", version, propagate_version = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a whole cluster on this machine: Kubernetes, a simulated cloud, machines, the operator.
    ///
    /// Everything runs as processes of this user, on free ports of the loopback interface. The
    /// first run builds the Kubernetes programs, which takes some minutes. Ctrl-C removes all of
    /// it. Your own KUBECONFIG is neither read nor changed; the cluster's is .machinist/kubeconfig
    /// in the current folder, and .machinist/up.json says where everything is.
    ///
    /// While it runs, each of the commands below is an experiment to try on it, in another terminal in
    /// the same folder.
    #[cfg(feature = "up")]
    Up(UpArgs),

    /// Stop the cluster that `machinist up` started in the current folder, and remove it.
    #[cfg(feature = "up")]
    Down,

    /// Show pools, their machines, instances and nodes, and why anything waits.
    ///
    /// Without --kubeconfig and KUBECONFIG, the cluster of `machinist up` in the current folder is
    /// shown, else the one of ~/.kube/config.
    Status(StatusArgs),

    /// Show which machines are maintained when, why then, and what blocks. Only reads.
    ///
    /// The plan is made by the function that the operator plans with, from the same objects. What the
    /// provider announces is taken from what the operator recorded in MachineMaintenances and from
    /// what the machines' metadata tells on their Nodes: this command has no credentials of the cloud
    /// and does not ask it.
    ///
    /// Fields of `-o json`: `asOf`, `zone`, `entries` (each with `machine`, `standing`, `action`,
    /// `start`, `end`, `window`, `latestSafeStart`, `deadline`, `isLate`, `why`, `waitsOn`,
    /// `sentence` and more), `notes`. Names are never changed, only added; times are in UTC.
    Plan(PlanArgs),

    /// Tell the story of one machine: how it is, what it waits for and why, what would help. Only reads.
    Explain(ExplainArgs),

    /// Approve a maintenance that waits for a person, or repairs that the disruption gate holds.
    Approve(ApproveArgs),

    /// Pause and resume maintenance.
    Maintenance(MaintenanceArgs),

    /// Show when work may begin next, and when it may not. Only reads.
    Windows(WindowsArgs),

    /// Show what happened behind the cluster's back, by which cause, and what is done about it. Only reads.
    ///
    /// Stops, starts, reboots and terminations that nobody asked the cluster for. What is not over is
    /// on the machines; what is over is told as long as the API server keeps its events, usually an hour.
    ///
    /// Fields of `-o json`: `asOf`, `incidents` (each with `machine`, `class`, `words`, `since`, `cause`,
    /// `isOver`, `done`, `next`, `needsAPerson`, `sentence` and more), `notes`.
    Drift(DriftArgs),

    /// Show what the cloud, the cluster and Machinist did, in one timeline. Only reads.
    ///
    /// Fields of `-o json`: `asOf`, `happenings` (each with `time`, `source`, `severity`, `reason`,
    /// `message`, `count`, `about`, `machine`), `notes`. With --follow each happening is a line.
    Events(EventsArgs),

    /// Write a snapshot of the fleet to one file, which other commands and the simulator read.
    ///
    /// Secrets are never read. Of pods and nodes only what Machinist judges by is kept; what could hold
    /// a secret (environment, arguments, user data, annotations of others) is left out.
    Dump(DumpArgs),

    /// Print a script that completes commands and flags in a shell.
    Completion(CompletionArgs),

    /// Say what may come next, to kubectl.
    #[command(hide = true)]
    Complete(CompleteArgs),

    /// Print the manual, or write a page for each command into a folder.
    Man(ManArgs),

    /// Look for what is wrong with the installation, and say what to fix. Only reads.
    ///
    /// Checks the definitions and their versions, your rights and the operator's, whether the operator
    /// runs and alone, clocks, the cloud's credentials, permissions and endpoints, quotas and webhooks.
    /// What only the operator can know is taken from what it says of itself: this command has no
    /// credentials of the cloud.
    ///
    /// A check that failed makes the exit code 1, as a failed examination does; warnings alone leave it 0.
    ///
    /// Fields of `-o json`: `level` (ok, warning, failed), `checks` (each with `name`, `level`, `says`,
    /// `findings`; each of these with `code`, `level`, `what`, `seen`, `fix`). Names are never changed,
    /// only added. `-o name` prints the codes.
    Doctor(DoctorArgs),

    /// Run the simulated EC2 cloud alone, until Ctrl-C.
    ///
    /// Prints one line of JSON: `ec2Endpoint`, `ec2EndpointTls`, `ec2CaFile` and `cloudAdmin`.
    #[cfg(feature = "up")]
    Cloud(CloudArgs),

    /// Build the Kubernetes programs that `machinist up` needs, if they are not there yet.
    #[cfg(feature = "up")]
    #[command(hide = true)]
    Programs,

    /// Run machines from zero to Running and back, and print what it cost.
    #[cfg(feature = "up")]
    #[command(hide = true)]
    Bench(BenchArgs),
}

#[cfg(feature = "up")]
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "EXPERIMENT")]
#[command(subcommand_help_heading = "Experiments")]
pub struct UpArgs {
    #[command(subcommand)]
    pub experiment: Option<Experiment>,

    /// Worker machines, in one MachineSet.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub workers: u16,

    /// Control-plane machines, without a pool. The API server runs beside them, not on them.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=9))]
    pub control_plane: u16,

    /// Start everything but Machinist's operator, to run another one by hand.
    #[arg(long)]
    pub no_operator: bool,

    /// Short delays: instances boot in a second and silent nodes are noticed in ten.
    #[arg(long)]
    pub fast: bool,

    /// Return when the machines run, and leave the cluster in the background; see `machinist down`.
    #[arg(long)]
    pub detach: bool,

    /// Write the API server's audit log.
    #[arg(long, hide = true)]
    pub audit_log: bool,

    /// This process is the background half of `--detach`.
    #[arg(long, hide = true)]
    pub background: bool,
}

/// What to try on a cluster of `machinist up`.
#[cfg(feature = "up")]
#[derive(Clone, Debug, Subcommand)]
pub enum Experiment {
    /// Stop the instance of a worker, as somebody at the cloud's console would.
    StopInstance(VictimArgs),

    /// Let the provider announce that it retires the host of a worker.
    RetireInstance(RetireArgs),

    /// Let a whole zone fail: its instances do not answer, and no new ones can be had.
    BreakZone,

    /// Undo `break-zone`.
    MendZone,
}

#[cfg(feature = "up")]
#[derive(Clone, Debug, clap::Args)]
pub struct VictimArgs {
    /// Machine to do it to [default: the first worker that is well]
    #[arg(long, value_name = "MACHINE")]
    pub machine: Option<String>,
}

#[cfg(feature = "up")]
#[derive(Clone, Debug, clap::Args)]
pub struct RetireArgs {
    #[command(flatten)]
    pub victim: VictimArgs,

    /// How far ahead the retirement is.
    #[arg(long = "in", value_name = "DURATION", default_value = "15m")]
    pub in_: jiff::SignedDuration,
}

#[derive(Clone, Debug, clap::Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Namespace of the machines.
    #[arg(short, long, value_name = "NAMESPACE", default_value = machinist_api::names::DEFAULT_NAMESPACE)]
    pub namespace: String,

    /// Machines of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,

    #[command(flatten)]
    pub zone: ZoneArgs,

    /// What to print; `wide` adds type and zone and cuts nothing.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: Output,

    /// Go on and show what changes, until Ctrl-C.
    #[arg(short, long)]
    pub watch: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Namespace of the operator and its machines.
    #[arg(short, long, value_name = "NAMESPACE", default_value = machinist_api::names::DEFAULT_NAMESPACE)]
    pub namespace: String,

    /// What to print; `wide` cuts nothing, `name` prints only the codes of what was found.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: Output,

    /// User that the operator is to the API server [default: the service account of its Deployment, else
    /// machinist-operator]
    #[arg(long, value_name = "USER")]
    pub operator_user: Option<String>,
}

/// Which cluster is meant; the flags are kubectl's.
#[derive(Clone, Debug, clap::Args)]
pub struct ClusterArgs {
    /// Kubeconfig file to use.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table that fits the terminal.
    #[default]
    Table,
    Wide,
    Json,
    Yaml,
    /// One resource name in a line, as kubectl prints them.
    Name,
}

#[cfg(feature = "up")]
#[derive(Clone, Debug, clap::Args)]
pub struct CloudArgs {
    /// Instances start, stop and end in a fraction of a second.
    #[arg(long)]
    pub fast: bool,

    /// What identifiers are drawn from; the same seed gives the same ones.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// End when standard input closes, as well as at Ctrl-C.
    #[arg(long, hide = true)]
    pub until_stdin_closes: bool,
}

#[cfg(feature = "up")]
#[derive(Clone, Debug, clap::Args)]
pub struct BenchArgs {
    /// Scenarios to run: small, usual, slow-cloud, unthrottled, throttled, cluster-api; all by default.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub scenario: Vec<String>,

    /// Numbers of machines, instead of the scenarios.
    #[arg(long, value_name = "N,...", value_delimiter = ',', conflicts_with = "scenario")]
    pub machines: Vec<u16>,

    /// Seconds of steady state to observe; with --machines.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "machines")]
    pub steady_seconds: u64,

    /// File for the results.
    #[arg(long, value_name = "FILE", overrides_with = "json")]
    pub json: Option<PathBuf>,

    /// A further flag for the operator, as `--operator-flag=--name=value`; may be repeated.
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub operator_flag: Vec<String>,
}

/// Reads the command line; wrong usage ends the process with code 2 and says what is right.
pub fn read() -> Args {
    let mut command = definition();
    if is_plugin() {
        // What the person typed, so that usage lines can be copied.
        command = command.bin_name("kubectl machinist");
    }
    let matches = command.get_matches();
    Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The whole definition: what completion, manual and reference are made of, too.
pub fn definition() -> clap::Command {
    help::with_exit_codes(Args::command())
}

fn is_plugin() -> bool {
    let program = std::env::args_os().next().map(PathBuf::from);
    program
        .as_deref()
        .and_then(std::path::Path::file_name)
        .is_some_and(|name| name.to_string_lossy().starts_with("kubectl-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        definition().debug_assert();
    }

    #[test]
    fn status_looks_where_machines_live_and_prints_a_table() {
        let args = Args::try_parse_from(["machinist", "status"]).unwrap();
        let Command::Status(status) = args.command else { panic!("{args:?}") };
        assert_eq!(status.namespace, "openshift-machine-api");
        assert_eq!(status.output, Output::Table);
        assert!(!status.watch);
    }

    #[test]
    fn an_unknown_format_is_a_usage_error() {
        let error = Args::try_parse_from(["machinist", "status", "-o", "xml"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("json"), "{error}");
    }

    #[cfg(feature = "up")]
    #[test]
    fn up_defaults_to_three_and_three() {
        let args = Args::try_parse_from(["machinist", "up"]).unwrap();
        let Command::Up(up) = args.command else { panic!("{args:?}") };
        assert_eq!((up.workers, up.control_plane), (3, 3));
        assert!(!up.no_operator && !up.fast && !up.detach && up.experiment.is_none());
    }

    #[cfg(feature = "up")]
    #[test]
    fn an_experiment_is_one_word_after_up_and_takes_no_flags_of_the_cluster() {
        let read = |words: &[&str]| Args::try_parse_from([&["machinist", "up"], words].concat());
        for words in [
            &["stop-instance"][..],
            &["retire-instance", "--in", "5m"],
            &["break-zone"],
            &["mend-zone"],
        ] {
            let Command::Up(up) = read(words).unwrap().command else { panic!("{words:?}") };
            assert!(up.experiment.is_some(), "{words:?}");
        }
        assert_eq!(read(&["--workers", "5", "break-zone"]).unwrap_err().exit_code(), 2);
        assert_eq!(read(&["explode"]).unwrap_err().exit_code(), 2);
    }
}
