//! The operator's flags.

pub mod upkeep;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Parser, Subcommand};
use machinist_core::machineset::Ceilings;

use self::upkeep::UpkeepArgs;
use crate::{
    logging::{DEFAULT_LEVEL, LogFormat},
    termination::args::TerminationArgs,
};

/// Machine lifecycle and maintenance for Kubernetes: creates, links, drains and deletes machines.
#[derive(Debug, Parser)]
#[command(name = "machinist-operator", version, args_conflicts_with_subcommands = true)]
pub struct CommandLine {
    /// Without one, the operator itself.
    #[command(subcommand)]
    pub command: Option<Command>,

    #[command(flatten)]
    pub operator: Args,
}

/// What else the program does.
#[derive(Debug, Subcommand)]
pub enum Command {
    TerminationHandler(TerminationArgs),
}

impl CommandLine {
    /// What logs look like, and their levels.
    #[must_use]
    pub fn logging(&self) -> (LogFormat, &str) {
        match &self.command {
            None => (self.operator.log_format, &self.operator.log_level),
            Some(Command::TerminationHandler(args)) => (args.log_format, &args.log_level),
        }
    }
}

/// Machine lifecycle and maintenance for Kubernetes: creates, links, drains and deletes machines.
#[derive(Debug, Parser)]
#[command(name = "machinist-operator", version)]
pub struct Args {
    /// Kubeconfig to use; without it the pod's own service account.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Namespace whose Machines and MachineSets are looked after, and where the leases are.
    #[arg(long, default_value = machinist_api::names::DEFAULT_NAMESPACE)]
    pub namespace: String,

    /// Address of /healthz, /readyz and, unless --http-metrics=false, /metrics; port 0 takes a free one. May be repeated.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8081")]
    pub http_address: Vec<SocketAddr>,

    /// File to which the bound addresses are written, a line each, once they are.
    #[arg(long, value_name = "FILE")]
    pub http_address_file: Option<PathBuf>,

    #[command(flatten)]
    pub serving: crate::serving::ServingArgs,

    /// AWS region, where neither the Machine nor the Infrastructure object names one.
    #[arg(long, value_name = "REGION")]
    pub aws_region: Option<String>,

    /// EC2 endpoint, instead of the Infrastructure object's or AWS's own. Serves load balancing too,
    /// unless --aws-elb-endpoint is given.
    #[arg(long, value_name = "URL")]
    pub aws_ec2_endpoint: Option<String>,

    /// Endpoint of load balancing, classic and network, instead of the Infrastructure object's
    /// (`elasticloadbalancing`), of --aws-ec2-endpoint or of AWS's own.
    #[arg(long, value_name = "URL")]
    pub aws_elb_endpoint: Option<String>,

    /// STS endpoint, where roles and web identities are exchanged for credentials, instead of the
    /// Infrastructure object's or AWS's own.
    #[arg(long, value_name = "URL")]
    pub aws_sts_endpoint: Option<String>,

    /// SQS endpoint of --aws-event-queue-url, instead of the Infrastructure object's or AWS's own.
    #[arg(long, value_name = "URL")]
    pub aws_sqs_endpoint: Option<String>,

    /// Queue of SQS that EventBridge sends EC2's and Health's events to. With it, changes are noticed
    /// within seconds instead of at the next list. Read with the Machines' own credentials of the
    /// queue's region; messages about instances of others are left in it.
    #[arg(long, value_name = "URL")]
    pub aws_event_queue_url: Option<String>,

    /// PEM file of certificates to trust for AWS endpoints, instead of the cluster's.
    #[arg(long, value_name = "FILE")]
    pub aws_ca_bundle: Option<PathBuf>,

    /// Time between complete lists of a cloud's instances.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub cloud_list_period: Duration,

    /// First pause before another look at an instance that is changing.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub cloud_first_look: Duration,

    /// Time between questions for the cloud's own checks of instances and its scheduled events.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub cloud_report_period: Duration,

    /// Least time between two sweeps for instances that carry the cluster's tag and belong to no
    /// Machine. They are counted in machinist_orphan_instances and named in the ConfigMap
    /// machinist-operator-status.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub sweep_period: Duration,

    /// How old an instance without a Machine must be to count as an orphan: longer than any launch
    /// takes and any clock is wrong.
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration)]
    pub orphan_age: Duration,

    /// Terminates orphans that were launched for a Machine that no longer exists: only when seen in
    /// two sweeps, on a fresh list of all Machines, never one that a Machine names, and at most one
    /// in twenty of the cluster's instances in a sweep. Machines of other namespaces are not seen:
    /// leave this off where they share the cluster's tag.
    #[arg(long)]
    pub terminate_orphans: bool,

    /// How long after a launch the cloud may not show the instance yet.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub launch_visibility: Duration,

    /// Machines that are worked on at once.
    #[arg(long, default_value_t = 32)]
    pub machine_concurrency: usize,

    /// Machines that one MachineSet may own, those that are going included. One that wants more makes
    /// none at all and says so; nothing is deleted for it.
    #[arg(long, value_name = "N", default_value_t = Ceilings::default().of_one_set)]
    pub max_machines_per_set: usize,

    /// Machines that there may be in all. At that number none is made.
    #[arg(long, value_name = "N", default_value_t = Ceilings::default().of_all)]
    pub max_machines: usize,

    /// Nodes that are drained at once.
    #[arg(long, default_value_t = 64)]
    pub drain_concurrency: usize,

    /// Address that is told, by a POST of JSON, when a maintenance changes its phase; unless the
    /// MaintenancePolicy of its machine names another.
    #[arg(long, value_name = "URL")]
    pub maintenance_webhook: Option<String>,

    /// Label selector of the MaintenancePolicies that this operator goes by; all of them by default.
    /// Where several operators share a cluster, each needs policies of its own.
    #[arg(long, value_name = "SELECTOR")]
    pub maintenance_policies: Option<String>,

    /// Approves the certificates that kubelets of this cluster's Machines ask for. On OpenShift this
    /// stands by for as long as its own cluster-machine-approver runs.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        action = clap::ArgAction::Set
    )]
    pub approve_certificates: bool,

    /// Lets machines join with bootstrap tokens as kubeadm makes them, besides the service account
    /// node-bootstrapper of OpenShift.
    #[arg(long)]
    pub approve_bootstrap_tokens: bool,

    /// PEM file of the certificates that sign those of kubelets' servers, by default those of the
    /// ConfigMap openshift-config-managed/csr-controller-ca. Only for renewals that no Machine
    /// speaks for.
    #[arg(long, value_name = "FILE")]
    pub kubelet_ca_bundle: Option<PathBuf>,

    #[command(flatten)]
    pub upkeep: UpkeepArgs,

    #[command(flatten)]
    pub cluster_api: crate::cluster_api::start::ClusterApiArgs,

    /// Name of this process in the leases; the host's name and the process id by default.
    #[arg(long, value_name = "NAME")]
    pub identity: Option<String>,

    /// Duration of all leases; by default the originals' (137s and 120s). The renew deadline and
    /// the retry period follow from it.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub leader_elect_lease_duration: Option<Duration>,

    /// What logs look like; json unless standard error is a terminal.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// Log levels, in the syntax of tracing's EnvFilter.
    #[arg(long, default_value = DEFAULT_LEVEL)]
    pub log_level: String,
}

/// `30s`, `2m`, `500ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration =
        text.parse().map_err(|error| format!("{error}; write it as 30s, 2m or 500ms"))?;
    Duration::try_from(parsed).map_err(|_| "a duration must not be negative".to_owned())
}
