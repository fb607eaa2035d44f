//! How does one command become a whole cluster?
//!
//! Programs, control plane and cloud (the testbed), machines and the operator, then workloads; then
//! it watches over them until it is told to end.

mod console;
mod detach;
mod experiment;
pub mod manifests;
pub mod operator;
mod page;
mod progress;
mod wait;
mod welcome;

use std::path::Path;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use machinist_testbed::manifests::apply;
use machinist_testbed::operator_process::OperatorConfig;
use machinist_testbed::programs::{self, Progress as BuildProgress};
use machinist_testbed::singletons::MACHINE_NAMESPACE;
use machinist_testbed::{Cluster, ClusterConfig};
use serde_json::{Value, json};

use crate::args::UpArgs;
use crate::home::{Home, Lock};
use crate::shutdown::Shutdown;
use crate::state_file::{OPERATOR_USER, UpState};
use operator::{Keeper, Operator};
use progress::Progress;

pub async fn run(args: UpArgs) -> anyhow::Result<()> {
    if let Some(experiment) = &args.experiment {
        return experiment::run(experiment).await;
    }
    if args.detach && !args.background {
        return detach::run(&args).await;
    }
    if args.background {
        // The terminal of the other half may close; this half stays. A leader of its session
        // already has that.
        rustix::process::setsid().ok();
    }
    if !args.no_operator {
        // What is missing is better said before anything is started.
        OperatorConfig::find(Vec::new())?;
    }
    let mut shutdown = Shutdown::listen()?;
    let home = Home::here()?;
    let lock = home.lock()?;
    home.remove_leftovers()?;

    let progress = Progress::detect();
    let result = live(&args, &home, &progress, &mut shutdown).await;
    progress.clear();
    finish(&home, lock, result)
}

/// An orderly end leaves nothing; a failure leaves the logs.
fn finish(home: &Home, lock: Lock, result: anyhow::Result<()>) -> anyhow::Result<()> {
    match result {
        Ok(()) => home.remove(lock),
        Err(error) => {
            home.remove_state()?;
            let logs = home.cluster().join("logs");
            if logs.exists() {
                eprintln!("the logs are kept in {}", logs.display());
            }
            drop(lock);
            Err(error)
        }
    }
}

/// Starts everything and stays until it is told to end.
async fn live(
    args: &UpArgs,
    home: &Home,
    progress: &Progress,
    shutdown: &mut Shutdown,
) -> anyhow::Result<()> {
    let started = tokio::select! {
        biased;
        // Dropping a cluster that is half started ends what runs of it.
        () = shutdown.requested() => return Ok(()),
        started = start(args, home, progress) => started?,
    };
    let (cluster, state) = started;
    let ended = tokio::select! {
        biased;
        () = shutdown.requested() => Ok(()),
        ended = tend(args, &cluster, &state, progress) => ended,
    };
    progress.start("removing the cluster");
    tokio::select! {
        biased;
        // Whoever asks twice does not want to wait; the children end with this process.
        () = shutdown.requested() => {}
        stopped = cluster.shutdown() => stopped?,
    }
    progress.done("the cluster is gone");
    ended
}

/// Up to machines that nobody looks after yet.
async fn start(
    args: &UpArgs,
    home: &Home,
    progress: &Progress,
) -> anyhow::Result<(Cluster, SharedState)> {
    // With its own display: the first time this takes minutes.
    programs::ensure(BuildProgress::detect()).await?;
    progress.start("starting Kubernetes and the simulated cloud");
    let cluster = Cluster::start(cluster_config(args, home)?).await?;
    let version = programs::kubernetes_version();
    progress.done(&format!("Kubernetes {version} serves at {}", cluster.access().server()));
    progress.done(&format!("the simulated EC2 cloud serves at {}", cluster.ec2_endpoint_tls()));

    progress.start("creating the machines");
    for object in manifests::machines(&cluster.cloud().world(), args.control_plane, args.workers)? {
        apply(cluster.admin(), object).await?;
    }
    if args.no_operator {
        create_workloads(&cluster).await?;
    }
    write_kubeconfig(cluster.kubeconfig(), &home.kubeconfig())?;
    let state = UpState {
        kubeconfig: home.kubeconfig(),
        ec2_endpoint: cluster.ec2_endpoint().to_owned(),
        ec2_endpoint_tls: cluster.ec2_endpoint_tls().to_owned(),
        ec2_ca_file: cluster.ec2_authority_file().to_owned(),
        cloud_admin: cluster.cloud_admin().to_owned(),
        operator_metrics: None,
        operator_kubeconfig: cluster.operator_kubeconfig(OPERATOR_USER, MACHINE_NAMESPACE).await?,
        operator_process: None,
        page: None,
        page_token: Some(page::token(cluster.admin()).await?),
        kubectl: cluster.kubectl().to_owned(),
        logs: cluster.log_folder(),
        audit_log: cluster.audit_log().map(Path::to_owned),
        process: std::process::id(),
        ready: false,
    };
    Ok((cluster, SharedState::new(home, state)))
}

/// Keeps the operator running and the person informed; returns only if something is broken.
async fn tend(
    args: &UpArgs,
    cluster: &Cluster,
    state: &SharedState,
    progress: &Progress,
) -> anyhow::Result<()> {
    let operator = if args.no_operator {
        None
    } else {
        progress.start("starting the operator");
        let operator_kubeconfig = state.read(|state| state.operator_kubeconfig.clone());
        Some(Operator::start(cluster, operator_flags(args, &operator_kubeconfig)).await?)
    };
    let keeper = Keeper { cluster, state, progress, operator };
    keeper.publish()?;
    let mut keeping = pin!(keeper.run());

    let machines = usize::from(args.workers) + usize::from(args.control_plane);
    let settling = async {
        if !args.no_operator {
            wait::until_running(cluster, machines, args.background, progress).await?;
            create_workloads(cluster).await?;
        }
        progress.clear();
        let facts = welcome::Facts::gather(cluster, args);
        state.read(|state| anstream::println!("{}", welcome::text(state, &facts)));
        // Last: whoever waits for it finds everything.
        state.change(|state| state.ready = true)
    };
    tokio::select! {
        biased;
        broken = &mut keeping => return broken,
        settled = settling => settled?,
    }
    keeping.await
}

async fn create_workloads(cluster: &Cluster) -> anyhow::Result<()> {
    for object in manifests::workloads() {
        apply(cluster.admin(), object).await?;
    }
    Ok(())
}

fn cluster_config(args: &UpArgs, home: &Home) -> anyhow::Result<ClusterConfig> {
    let machines = usize::from(args.workers) + usize::from(args.control_plane);
    let config =
        if args.fast { ClusterConfig::fast_for(machines) } else { ClusterConfig::default() };
    Ok(ClusterConfig {
        folder: Some(home.cluster()),
        progress: BuildProgress::Silent,
        audit: args.audit_log,
        // Another operator may leave that to a third.
        approve_kubelets: args.no_operator,
        etcd_members: usize::from(args.control_plane),
        machine_crds: machine_crds()?,
        ..config
    })
}

/// The definitions, as JSON, which is YAML too.
pub fn machine_crds() -> anyhow::Result<Vec<String>> {
    let definitions = machinist_api::crd::all();
    definitions
        .iter()
        .map(|definition| serde_json::to_string(definition).context("cannot write a definition"))
        .collect()
}

/// The operator's flags for a cluster on one machine. A restarted operator has the same name, so
/// that it takes its leases back at once instead of waiting until they run out.
fn operator_flags(args: &UpArgs, kubeconfig: &Path) -> Vec<String> {
    let mut flags = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--namespace={MACHINE_NAMESPACE}"),
        format!("--identity=machinist-up-{}", std::process::id()),
        "--leader-elect-lease-duration=15s".to_owned(),
    ];
    if args.fast {
        // In step with a cloud that takes half a second for what EC2 takes half a minute.
        flags.extend(
            ["--cloud-list-period=5s", "--cloud-first-look=300ms", "--launch-visibility=10s"]
                .map(str::to_owned),
        );
    }
    flags
}

/// The administrator's kubeconfig, with the namespace in which a newcomer expects the machines.
fn write_kubeconfig(from: &Path, to: &Path) -> anyhow::Result<()> {
    let describe = || format!("cannot read {}", from.display());
    let text = std::fs::read_to_string(from).with_context(describe)?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&text).with_context(describe)?;
    let context = kubeconfig.pointer_mut("/contexts/0/context").and_then(Value::as_object_mut);
    context.with_context(describe)?.insert("namespace".to_owned(), json!(MACHINE_NAMESPACE));
    machinist_testbed::api_access::write_private(to, &format!("{kubeconfig:#}\n"))
}

/// The state file, kept true while things change.
pub struct SharedState {
    home: Home,
    state: Mutex<UpState>,
}

impl SharedState {
    fn new(home: &Home, state: UpState) -> Self {
        Self { home: home.clone(), state: Mutex::new(state) }
    }

    pub fn read<T>(&self, look: impl FnOnce(&UpState) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn change(&self, change: impl FnOnce(&mut UpState)) -> anyhow::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        state.write(self.home.folder())
    }
}
