//! Which words do the commands take that show what happened, or keep it?

use std::path::PathBuf;

use clap::ValueEnum;

use super::{
    ClusterArgs, Output,
    maintenance::{FleetArgs, ZoneArgs},
};

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = DRIFT_EXAMPLES)]
pub struct DriftArgs {
    /// Only this: machine/NAME, node/NAME, machineset/NAME, or a kind and a name; a name alone is a
    /// machine's.
    #[arg(num_args = 0..=2, value_name = "WHAT")]
    pub what: Vec<String>,

    #[command(flatten)]
    pub fleet: FleetArgs,

    #[command(flatten)]
    pub zone: ZoneArgs,

    /// Only what is not over.
    #[arg(long)]
    pub open: bool,

    /// What to print; `wide` adds columns and cuts nothing.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: Output,

    /// Go on and show what changes, until Ctrl-C.
    #[arg(short, long, conflicts_with = "filename")]
    pub watch: bool,
}

const DRIFT_EXAMPLES: &str = "\
Examples:
  # What happened behind our back, and what is done about it
  machinist drift

  # Only what still needs something, for a script
  machinist drift --open -o json

  # One machine, or the machines of a pool
  machinist drift machine/worker-1
  machinist drift machineset/workers";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EVENTS_EXAMPLES)]
pub struct EventsArgs {
    /// Only this: machine/NAME, node/NAME, machineset/NAME, or a kind and a name; a name alone is a
    /// machine's.
    #[arg(num_args = 0..=2, value_name = "WHAT")]
    pub what: Vec<String>,

    #[command(flatten)]
    pub fleet: FleetArgs,

    #[command(flatten)]
    pub zone: ZoneArgs,

    /// From when on: a duration such as 2h, or a time.
    #[arg(long, value_name = "DURATION|TIME", default_value = "24h")]
    pub since: String,

    /// At most so many, the newest.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: u32,

    /// Only what these did; may be repeated.
    #[arg(long, value_enum, value_name = "SOURCE", value_delimiter = ',')]
    pub source: Vec<SourceName>,

    /// Only warnings.
    #[arg(long)]
    pub warnings: bool,

    /// What to print; `wide` cuts nothing, `name` prints each machine that something happened to.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: Output,

    /// Go on and print what happens, until Ctrl-C. After a lost connection it goes on where it was.
    #[arg(long, conflicts_with = "filename")]
    pub follow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SourceName {
    /// The provider, or somebody through it.
    Cloud,
    /// Kubernetes, and whoever works on it.
    Cluster,
    /// Machinist's operator.
    Machinist,
}

const EVENTS_EXAMPLES: &str = "\
Examples:
  # The last day of the whole fleet
  machinist events

  # One machine, and what happens to it from now on
  machinist events machine/worker-1 --follow

  # What the cloud did in the last two hours
  machinist events --source cloud --since 2h

  # For a program: one line of JSON for each
  machinist events --follow -o json";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = DUMP_EXAMPLES)]
pub struct DumpArgs {
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Namespace of the machines.
    #[arg(short, long, value_name = "NAMESPACE", default_value = machinist_api::names::DEFAULT_NAMESPACE)]
    pub namespace: String,

    /// Where to write it; standard output by default.
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,

    /// What to write.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: DumpOutput,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DumpOutput {
    /// However many machines there are.
    #[default]
    Json,
    /// For some hundred machines: readers of YAML have their limits.
    Yaml,
}

const DUMP_EXAMPLES: &str = "\
Examples:
  # Everything that Machinist judges by, in one file, to look at elsewhere
  machinist dump --to fleet.json
  machinist plan -f fleet.json
  machinist explain -f fleet.json machine/worker-1

  # What would the operator do with it? In the simulator, with its cloud.
  machinist-sim replay-dump fleet.json";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = COMPLETION_EXAMPLES)]
pub struct CompletionArgs {
    /// For which shell.
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: ShellName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum ShellName {
    Bash,
    Zsh,
    Fish,
    PowerShell,
    /// A program that kubectl asks, for `kubectl machinist` in every shell that completes kubectl.
    Kubectl,
}

/// What kubectl asks.
#[derive(Clone, Debug, clap::Args)]
pub struct CompleteArgs {
    /// The words so far; the last is not finished.
    #[arg(value_name = "WORD", num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

const COMPLETION_EXAMPLES: &str = "\
Examples:
  # Bash, for this user
  machinist completion bash > ~/.local/share/bash-completion/completions/machinist

  # Zsh, into a folder of fpath
  machinist completion zsh > \"${fpath[1]}/_machinist\"

  # Fish
  machinist completion fish > ~/.config/fish/completions/machinist.fish

  # PowerShell
  machinist completion powershell >> $PROFILE

  # `kubectl machinist`, wherever kubectl itself is completed
  kubectl machinist completion kubectl > ~/.local/bin/kubectl_complete-machinist
  chmod +x ~/.local/bin/kubectl_complete-machinist";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// Folder for one page for each command; without it the page of `machinist` is printed.
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

const MAN_EXAMPLES: &str = "\
Examples:
  machinist man | man -l -
  machinist man ~/.local/share/man/man1";
