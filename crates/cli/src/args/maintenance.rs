//! Which words do the commands about maintenance take?

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use machinist_api::names::DEFAULT_NAMESPACE;

use super::{ClusterArgs, Output};

/// Which fleet is meant: that of a cluster, or one in files.
#[derive(Clone, Debug, clap::Args)]
pub struct FleetArgs {
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Namespace of the machines.
    #[arg(short, long, value_name = "NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    pub namespace: String,

    /// Read the objects from a file, a folder or standard input (-) instead of a cluster; may be
    /// repeated.
    #[arg(short, long, value_name = "PATH", conflicts_with_all = ["kubeconfig", "context"])]
    pub filename: Vec<PathBuf>,
}

#[derive(Clone, Debug, clap::Args)]
pub struct ZoneArgs {
    /// Time zone in which times are shown and read, such as Europe/Berlin [default: TZ, else the
    /// system's, else UTC]
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = PLAN_EXAMPLES)]
pub struct PlanArgs {
    #[command(flatten)]
    pub fleet: FleetArgs,

    #[command(flatten)]
    pub zone: ZoneArgs,

    /// Plan as of another time: 2026-11-07T21:00:00Z, or "2026-11-07 22:00" in your zone.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,

    /// Try the MaintenancePolicies of a file, in the place of those of the same name; may be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    pub policy: Vec<PathBuf>,

    /// Try an event that is not there: machine=NAME,code=CODE,not-before=TIME. `deadline=TIME` is up
    /// to when the provider would let it be moved. May be repeated.
    #[arg(long, value_name = "EVENT")]
    pub what_if: Vec<String>,

    /// What to print; `wide` adds columns and cuts nothing.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: Output,

    /// Go on and show what changes, until Ctrl-C.
    #[arg(short, long, conflicts_with_all = ["filename", "at"])]
    pub watch: bool,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  # What is planned, when, and why then
  machinist plan

  # Would a new policy do better? Nothing is changed.
  machinist plan --policy nights.yaml

  # What if a machine is to be retired on Friday?
  machinist plan --what-if machine=worker-1,code=instance-retirement,not-before=2026-11-06

  # Next Saturday evening's plan, in another zone, for a script
  machinist plan --at '2026-11-07 22:00' --zone America/New_York -o json

  # Go on looking; the picture is drawn anew in place
  machinist plan --watch

  # Without a cluster, from what `machinist dump` wrote
  machinist plan -f fleet.json";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXPLAIN_EXAMPLES)]
pub struct ExplainArgs {
    /// machine/NAME, node/NAME, machineset/NAME, or a kind and a name; a name alone is a machine's.
    #[arg(required = true, num_args = 1..=2, value_name = "WHAT")]
    pub what: Vec<String>,

    #[command(flatten)]
    pub fleet: FleetArgs,

    #[command(flatten)]
    pub zone: ZoneArgs,

    /// Judge as of another time.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,

    /// What to print; `wide` breaks no line, `name` prints the resource that is told of.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: Document,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  machinist explain machine/worker-1
  machinist explain node/ip-10-0-1-17.ec2.internal
  machinist explain machineset/workers";

/// Text for people, or a document for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Document {
    #[default]
    Text,
    /// The same, however long the lines are.
    Wide,
    Json,
    Yaml,
    /// The name of the resource, as kubectl prints it.
    Name,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = APPROVE_EXAMPLES)]
pub struct ApproveArgs {
    /// machine/NAME or machineset/NAME, or a kind and a name; a name alone is a machine's.
    #[arg(required = true, num_args = 1..=2, value_name = "WHAT")]
    pub what: Vec<String>,

    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Namespace of the machines.
    #[arg(short, long, value_name = "NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    pub namespace: String,

    #[command(flatten)]
    pub zone: ZoneArgs,

    /// Approve whatever its reasons are or become, and not only the present ones.
    #[arg(long)]
    pub any_reason: bool,

    /// For how long the disruption gate lets it be, where that holds it, such as 2h.
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub r#for: String,

    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,

    /// What to print; `name` prints what was written on, if anything was.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: Document,
}

const APPROVE_EXAMPLES: &str = "\
Examples:
  # Maintenance of a machine that waits for a person
  machinist approve worker-1

  # The same, without doing it
  machinist approve machine/worker-1 --dry-run

  # Repairs that the disruption gate holds, for two hours
  machinist approve machineset/workers --for 2h";

#[derive(Clone, Debug, clap::Args)]
pub struct MaintenanceArgs {
    #[command(subcommand)]
    pub command: MaintenanceCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub enum MaintenanceCommand {
    /// Keep maintenance from beginning; what was begun is finished.
    #[command(after_long_help = PAUSE_EXAMPLES)]
    Pause(PauseArgs),

    /// Let maintenance begin again, and say who had paused it.
    Resume(ResumeArgs),
}

const PAUSE_EXAMPLES: &str = "\
Examples:
  # In the whole cluster
  machinist maintenance pause --reason 'release day'

  # For one pool, one machine, or all machines of a policy
  machinist maintenance pause --pool workers --reason 'long batch job'
  machinist maintenance pause --machine worker-1
  machinist maintenance pause --policy nights";

#[derive(Clone, Debug, clap::Args)]
pub struct PauseArgs {
    #[command(flatten)]
    pub of: PausedArgs,

    /// Why, for those who ask later.
    #[arg(long, value_name = "WHY")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, clap::Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    pub of: PausedArgs,
}

/// What is paused or resumed: the whole cluster where nothing is named.
#[derive(Clone, Debug, clap::Args)]
pub struct PausedArgs {
    /// One machine.
    #[arg(long, value_name = "NAME", group = "target")]
    pub machine: Option<String>,

    /// The machines of a MachineSet.
    #[arg(long, value_name = "NAME", group = "target")]
    pub pool: Option<String>,

    /// The machines of a MaintenancePolicy.
    #[arg(long, value_name = "NAME", group = "target")]
    pub policy: Option<String>,

    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Namespace of the machines.
    #[arg(short, long, value_name = "NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    pub namespace: String,

    #[command(flatten)]
    pub zone: ZoneArgs,

    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,

    /// What to print; `name` prints what was written on, if anything was.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: Document,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = WINDOWS_EXAMPLES)]
pub struct WindowsArgs {
    #[command(flatten)]
    pub fleet: FleetArgs,

    #[command(flatten)]
    pub zone: ZoneArgs,

    /// Only this policy; may be repeated. A name, or a file with policies to try.
    #[arg(long, value_name = "NAME|FILE")]
    pub policy: Vec<String>,

    /// How many openings of each policy.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub count: u16,

    /// From when on.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,

    /// What to print; `ical` is a calendar to import.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: CalendarOutput,
}

const WINDOWS_EXAMPLES: &str = "\
Examples:
  # When may work begin next, in your own zone?
  machinist windows

  # The next 20 openings of one policy, from the new year on
  machinist windows --policy nights --count 20 --from 2027-01-01

  # A file that calendars import
  machinist windows --count 100 -o ical > maintenance.ics";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CalendarOutput {
    /// A table that fits the terminal.
    #[default]
    Table,
    /// The same, with nothing cut.
    Wide,
    Json,
    Yaml,
    /// One policy in a line, as kubectl prints them.
    Name,
    /// iCalendar (RFC 5545).
    Ical,
}
