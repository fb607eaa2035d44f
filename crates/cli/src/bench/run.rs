//! One run: a fresh cluster, N machines up, a while of steady state, all down.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use machinist_api::MachineSet;
use machinist_api::names::lease;
use machinist_testbed::cloud::model::{InstanceState, LedgerCall, LedgerQuery};
use machinist_testbed::manifests::apply;
use machinist_testbed::programs::Progress;
use machinist_testbed::singletons::MACHINE_NAMESPACE;
use machinist_testbed::{Cluster, ClusterConfig};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::audit::{Request, Requests, requests_of};
use super::fleet::{Fleet, Latency};
use super::process::{Usage, usage};
use super::scenario::Scenario;
use crate::args::BenchArgs;
use crate::up::manifests::{worker_pool, worker_pool_name};
use crate::up::{machine_crds, operator::Operator};

/// As whom the audit log knows the operator.
const OPERATOR_USER: &str = "machinist-operator-bench";
/// After the last machine runs, for what trails behind (the pool's counts, Events). What is written
/// in it counts as the way up, so it hides nothing; a write after it breaks the steady state.
const SETTLING: Duration = Duration::from_secs(10);
const LOOK_PERIOD: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(600);

/// What one run cost.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub scenario: Scenario,
    /// From the creation of a Machine to Running, as a watch sees it.
    pub created_to_running: Latency,
    /// From the operator's start until it leads.
    pub start: Phase,
    /// From the creation of the MachineSet until all machines run on Ready nodes.
    pub up: Phase,
    pub steady: Phase,
    /// From the scaling to zero until no machine, node or instance is left.
    pub down: Phase,
    pub peak_rss_mebibytes: f64,
    pub steady_rss_mebibytes: f64,
    /// Instances that were ever launched.
    pub instances: usize,
}

/// What one phase of a run cost.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    pub wall_seconds: f64,
    pub cpu_seconds: f64,
    /// By action, further pages of an answer apart.
    pub ec2_calls: BTreeMap<String, usize>,
    pub ec2_further_pages: usize,
    /// Of the calls, those that EC2 refused, by action and code.
    pub ec2_refused: BTreeMap<String, usize>,
    pub requests: Requests,
}

impl Phase {
    pub fn ec2_total(&self) -> usize {
        self.ec2_calls.values().sum()
    }
}

/// The boundary between two phases.
#[derive(Clone, Copy)]
struct Mark {
    at: Timestamp,
    usage: Usage,
}

pub async fn run(scenario: Scenario, args: &BenchArgs) -> anyhow::Result<Run> {
    let machines = scenario.machines;
    let count = usize::from(machines);
    say(&scenario, "starting the cluster");
    let cluster = Cluster::start(ClusterConfig {
        audit: true,
        progress: Progress::detect(),
        machine_crds: machine_crds()?,
        // The operator removes the Nodes itself: it is what is measured.
        cloud_controller: false,
        ..ClusterConfig::fast_for(count)
    })
    .await?;
    cluster.cloud().add_faults(scenario.faults())?;
    let mut fleet = Fleet::watch(cluster.admin());
    let kubeconfig = cluster.operator_kubeconfig(OPERATOR_USER, MACHINE_NAMESPACE).await?;
    let begun = Timestamp::now();
    let operator = Operator::start(&cluster, flags(kubeconfig, &scenario, args)).await?;
    let process = operator.process.process().id();
    let mark = || usage(process).map(|usage| Mark { at: Timestamp::now(), usage });
    let result = async {
        until_leading(&cluster).await?;
        let leads = mark()?;

        say(&scenario, "going up");
        let clock = Instant::now();
        apply(cluster.admin(), worker_pool(&cluster.cloud().world(), machines)?).await?;
        fleet.until_running(count).await?;
        let up_wall = clock.elapsed();
        until_counted(&cluster, machines).await?;
        sleep(SETTLING).await;
        let created_to_running = fleet.latency();
        let settled = mark()?;

        say(&scenario, &format!("all run after {:.1} s; steady state", up_wall.as_secs_f64()));
        let clock = Instant::now();
        sleep(scenario.steady()).await;
        let steady_wall = clock.elapsed();
        let steady = mark()?;

        say(&scenario, "going down");
        let clock = Instant::now();
        scale_to_zero(&cluster).await?;
        fleet.until_gone().await?;
        until_terminated(&cluster).await?;
        let down_wall = clock.elapsed();
        sleep(SETTLING).await;
        let down = mark()?;

        let requests = requests_of(OPERATOR_USER, cluster.audit_log().context("no audit log")?)?;
        let ledger = cluster.cloud().ledger(&LedgerQuery::default());
        if ledger.dropped_calls > 0 {
            bail!("the ledger has dropped {} calls; nothing can be counted", ledger.dropped_calls);
        }
        let phase = |from: Mark, until: Mark, wall: Duration| {
            phase(&ledger.calls, &requests, from, until, wall)
        };
        let zero = Mark { at: begun, usage: Usage::default() };
        let start_wall = Duration::try_from(leads.at.duration_since(begun)).unwrap_or_default();
        anyhow::Ok(Run {
            scenario: scenario.clone(),
            created_to_running,
            start: phase(zero, leads, start_wall),
            up: phase(leads, settled, up_wall),
            steady: phase(settled, steady, steady_wall),
            down: phase(steady, down, down_wall),
            peak_rss_mebibytes: down.usage.peak_rss_mebibytes,
            steady_rss_mebibytes: steady.usage.rss_mebibytes,
            instances: ledger.instances.len(),
        })
    };
    let run = tokio::select! {
        biased;
        run = result => run,
        status = operator.process.process().wait() => {
            operator.process.process().check_running()?;
            bail!("the operator ended ({status:?})");
        }
    };
    operator.process.stop().await;
    drop(fleet);
    cluster.shutdown().await?;
    run
}

/// The operator's defaults, but for where it is.
fn flags(kubeconfig: PathBuf, scenario: &Scenario, args: &BenchArgs) -> Vec<String> {
    let mut flags = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--namespace={MACHINE_NAMESPACE}"),
    ];
    flags.extend(scenario.operator_flags());
    flags.extend(args.operator_flag.iter().cloned());
    flags
}

fn say(scenario: &Scenario, what: &str) {
    eprintln!("bench: {}: {what}", scenario.label());
}

fn phase(
    calls: &[LedgerCall],
    requests: &[Request],
    from: Mark,
    until: Mark,
    wall: Duration,
) -> Phase {
    let mut phase = Phase {
        wall_seconds: wall.as_secs_f64(),
        cpu_seconds: until.usage.cpu_seconds - from.usage.cpu_seconds,
        ec2_calls: BTreeMap::new(),
        ec2_further_pages: 0,
        ec2_refused: BTreeMap::new(),
        requests: Requests::between(requests, from.at, until.at),
    };
    for call in calls.iter().filter(|call| from.at <= call.time && call.time < until.at) {
        if is_further_page(call) {
            phase.ec2_further_pages += 1;
        } else {
            *phase.ec2_calls.entry(call.action.clone()).or_default() += 1;
        }
        if call.result != "ok" {
            let refusal = format!("{} {}", call.action, call.result);
            *phase.ec2_refused.entry(refusal).or_default() += 1;
        }
    }
    phase
}

/// Whether a call asks for more of an answer that began with another call.
fn is_further_page(call: &LedgerCall) -> bool {
    let parameters = serde_json::to_value(&call.parameters).unwrap_or_default();
    let token = parameters.get("NextToken").and_then(Value::as_str);
    token.is_some_and(|token| !token.is_empty())
}

/// Waits until the operator holds all its leases.
async fn until_leading(cluster: &Cluster) -> anyhow::Result<()> {
    let leases: Api<Lease> = Api::namespaced(cluster.admin().clone(), MACHINE_NAMESPACE);
    eventually("the operator to lead", || async {
        let held = leases.list(&Default::default()).await?;
        let is_held = |name: &str| {
            held.items.iter().any(|one| {
                let holder = one.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
                one.metadata.name.as_deref() == Some(name)
                    && holder.is_some_and(|holder| !holder.is_empty())
            })
        };
        Ok(lease::ALL.into_iter().all(is_held))
    })
    .await
}

/// Waits until the pool's own counts say it as well.
async fn until_counted(cluster: &Cluster, machines: u16) -> anyhow::Result<()> {
    let pools: Api<MachineSet> = Api::namespaced(cluster.admin().clone(), MACHINE_NAMESPACE);
    let name = worker_pool_name(&cluster.cloud().world())?;
    eventually("the pool to count its machines", || async {
        let status = pools.get(&name).await?.status.unwrap_or_default();
        Ok(status.available_replicas == Some(i32::from(machines)))
    })
    .await
}

async fn scale_to_zero(cluster: &Cluster) -> anyhow::Result<()> {
    let pools: Api<MachineSet> = Api::namespaced(cluster.admin().clone(), MACHINE_NAMESPACE);
    let name = worker_pool_name(&cluster.cloud().world())?;
    let scale = json!({ "spec": { "replicas": 0 } });
    pools.patch_scale(&name, &PatchParams::default(), &Patch::Merge(scale)).await?;
    Ok(())
}

async fn until_terminated(cluster: &Cluster) -> anyhow::Result<()> {
    eventually("the instances to terminate", || async {
        let instances = cluster.cloud().snapshot();
        Ok(instances.iter().all(|instance| instance.state == InstanceState::Terminated))
    })
    .await
}

async fn eventually<Look: Future<Output = anyhow::Result<bool>>>(
    what: &str,
    look: impl Fn() -> Look,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !look().await? {
        if Instant::now() > deadline {
            bail!("waited {} s in vain for {what}", PATIENCE.as_secs());
        }
        sleep(LOOK_PERIOD).await;
    }
    Ok(())
}
