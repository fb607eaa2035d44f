//! The termination handler's flags: those that its DaemonSet has always passed, and a few of ours.

use std::path::PathBuf;

use clap::Args;

use super::metadata::Endpoint;
use crate::logging::{DEFAULT_LEVEL, LogFormat};

/// Tells on this machine's Node what the cloud announces about its instance: a spot interruption, a
/// rebalance recommendation, scheduled events.
#[derive(Clone, Debug, Args)]
pub struct TerminationArgs {
    /// Name of the Node that this machine is.
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    pub node_name: String,

    /// Namespace of the Machines; only told in the log.
    #[arg(long, default_value = machinist_api::names::DEFAULT_NAMESPACE)]
    pub namespace: String,

    /// Seconds between two looks at the metadata service.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=60)
    )]
    pub poll_interval_seconds: u32,

    /// Where the metadata service is, and below which path.
    #[arg(
        long,
        value_name = "URL",
        env = "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        default_value = Endpoint::DEFAULT
    )]
    pub metadata_endpoint: Endpoint,

    /// Kubeconfig to use: the kubelet's, which may change this Node and no other. Without it the
    /// pod's own service account.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,

    /// What logs look like; json unless standard error is a terminal.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// Log levels, in the syntax of tracing's EnvFilter.
    #[arg(long, default_value = DEFAULT_LEVEL)]
    pub log_level: String,

    /// Accepted and ignored: the log always goes to standard error.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
    pub logtostderr: Option<bool>,

    /// Accepted and ignored: --log-level says more.
    #[arg(long = "v", hide = true)]
    pub verbosity: Option<i32>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{Command, CommandLine};

    #[test]
    fn the_flags_of_the_daemon_set_are_understood() {
        let line = CommandLine::try_parse_from([
            "machinist-operator",
            "termination-handler",
            "--logtostderr=true",
            "--v=3",
            "--node-name=node-a",
            "--namespace=somewhere",
            "--poll-interval-seconds=5",
        ]);
        let Some(Command::TerminationHandler(args)) = line.unwrap().command else {
            panic!("no subcommand");
        };
        assert_eq!((args.node_name.as_str(), args.namespace.as_str()), ("node-a", "somewhere"));
        assert_eq!(args.poll_interval_seconds, 5);
    }

    #[test]
    fn bad_flags_are_refused_by_name() {
        for (flag, word) in [
            ("--poll-interval-seconds=0", "poll-interval-seconds"),
            ("--metadata-endpoint=https://169.254.169.254", "http://"),
            ("--metadata-endpoint=metadata", "http://"),
            ("--cloud-list-period=1s", "cloud-list-period"),
        ] {
            let given = ["machinist-operator", "termination-handler", "--node-name=a", flag];
            let error = CommandLine::try_parse_from(given).unwrap_err().to_string();
            assert!(error.contains(word), "{flag}: {error}");
        }
    }

    #[test]
    fn the_operator_needs_no_subcommand_and_keeps_its_flags() {
        let given = ["machinist-operator", "--namespace", "ns", "--machine-concurrency=3"];
        let line = CommandLine::try_parse_from(given).unwrap();
        assert!(line.command.is_none());
        assert_eq!(
            (line.operator.namespace.as_str(), line.operator.machine_concurrency),
            ("ns", 3)
        );
        let both = ["machinist-operator", "--namespace", "ns", "termination-handler"];
        CommandLine::try_parse_from(both).unwrap_err();
    }
}
