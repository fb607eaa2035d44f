//! What do a Cluster API cluster's machines cost with Machinist, and with Cluster API's own core manager?
//!
//! The same provider, the same objects, default settings, a fresh testbed for each of the two, in turn, several times
//! in one run: what the core manager needs was seen to differ by half from one round to the next.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use machinist_testbed::cluster_api::objects::{self, GROUP, VERSION, WORKERS};
use machinist_testbed::cluster_api::{CORE_USER, ClusterApi};
use machinist_testbed::manifests::apply;
use machinist_testbed::operator_process::{OperatorConfig, OperatorProcess};
use machinist_testbed::permissions::grant_cluster_api;
use machinist_testbed::programs::Progress;
use machinist_testbed::{Cluster, ClusterConfig};
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::audit::{Requests, requests_of};
use super::checks::Check;
use super::process::{Usage, usage};
use super::refusals::of_own_making;
use crate::args::BenchArgs;
use crate::table::{Cell, Row, lines};
use crate::up::machine_crds;

/// What `--scenario` calls it.
pub const NAME: &str = "cluster-api";
const MACHINES: u16 = 100;

/// Of an odd number one is in the middle.
const ROUNDS: usize = 3;

/// Namespace of the objects, and the name of the Cluster.
const PLACE: &str = "bench";
const OPERATOR_USER: &str = "machinist-operator-bench";
/// What trails behind belongs to what it follows.
const SETTLING: Duration = Duration::from_secs(10);
/// Without any change for so long, something is stuck.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Machinist is to need at most this part of the time.
const TIME_PART_MAX: f64 = 1.0 / 3.0;
const WRITES_PART_MAX: f64 = 0.5;
const MEMORY_PART_MAX: f64 = 0.5;

/// The two, measured alike, in every round.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    pub machines: u16,
    pub core: Vec<Measured>,
    pub machinist: Vec<Measured>,
}

/// What one controller needed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    /// From the scaling until all Machines are Running.
    pub up: Span,
    /// From the scaling to zero until no Machine of the deployment is left.
    pub down: Span,
    pub peak_rss_mebibytes: f64,
    /// When all Machines run.
    pub settled_rss_mebibytes: f64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    pub wall_seconds: f64,
    pub cpu_seconds: f64,
    /// The controller's, at the management API server.
    pub requests: Requests,
    /// Refused writes that no write of another program to the same object excuses.
    pub refused_of_own_making: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Controller {
    Core,
    Machinist,
}

pub async fn run(args: &BenchArgs) -> anyhow::Result<Comparison> {
    let (mut core, mut machinist) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        core.push(measure(Controller::Core, args).await.context("Cluster API's core manager")?);
        machinist.push(measure(Controller::Machinist, args).await.context("Machinist")?);
    }
    Ok(Comparison { machines: MACHINES, core, machinist })
}

/// The round that is in the middle by its time to Running.
fn middle(rounds: &[Measured]) -> Option<&Measured> {
    let mut rounds: Vec<&Measured> = rounds.iter().collect();
    rounds.sort_by(|left, right| left.up.wall_seconds.total_cmp(&right.up.wall_seconds));
    rounds.get(rounds.len() / 2).copied()
}

async fn measure(who: Controller, args: &BenchArgs) -> anyhow::Result<Measured> {
    say(who, "starting the cluster");
    let cluster = Cluster::start(ClusterConfig {
        audit: true,
        progress: Progress::detect(),
        machine_crds: machine_crds()?,
        cloud_controller: false,
        ..ClusterConfig::fast()
    })
    .await?;
    let programs = ClusterApi::install(&cluster, Progress::detect()).await?;
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": PLACE } }))?;
    Api::all(cluster.admin().clone()).create(&PostParams::default(), &namespace).await?;
    let provider = programs.start_provider(&cluster).await?;
    let (user, controller) = match who {
        Controller::Core => (CORE_USER, programs.start_core(&cluster, PLACE).await?),
        Controller::Machinist => (OPERATOR_USER, start_operator(&cluster, args).await?),
    };
    let measured = tokio::select! {
        biased;
        measured = up_and_down(who, &cluster, user, controller.process().id()) => measured,
        _ = controller.process().wait() => {
            controller.process().check_running()?;
            bail!("the controller ended");
        }
        _ = provider.process().wait() => {
            provider.process().check_running()?;
            bail!("the provider ended");
        }
    };
    controller.stop().await;
    provider.stop().await;
    cluster.shutdown().await?;
    measured
}

async fn up_and_down(
    who: Controller,
    cluster: &Cluster,
    user: &str,
    process: u32,
) -> anyhow::Result<Measured> {
    let client = cluster.admin();
    for object in objects::cluster(PLACE, PLACE)? {
        apply(client, object).await?;
    }
    for object in objects::control_plane(PLACE, PLACE) {
        apply(client, object).await?;
    }
    apply(client, objects::template(PLACE, PLACE, "small")).await?;
    apply(client, objects::workers(PLACE, PLACE, "small", 0)).await?;
    // The control plane's own Machine.
    until_running(client, 1).await?;
    sleep(SETTLING).await;

    let before = Mark::now(process)?;
    say(who, "going up");
    let clock = Instant::now();
    scale(client, MACHINES).await?;
    until_running(client, usize::from(MACHINES) + 1).await?;
    let up = clock.elapsed();
    sleep(SETTLING).await;

    let between = Mark::now(process)?;
    say(who, &format!("all run after {:.1} s; going down", up.as_secs_f64()));
    let clock = Instant::now();
    scale(client, 0).await?;
    until_running(client, 1).await?;
    let down = clock.elapsed();
    sleep(SETTLING).await;

    let after = Mark::now(process)?;
    let log = cluster.audit_log().context("no audit log")?;
    let requests = requests_of(user, log)?;
    let span = |from: Mark, until: Mark, wall: Duration| -> anyhow::Result<Span> {
        Ok(Span {
            wall_seconds: wall.as_secs_f64(),
            cpu_seconds: until.usage.cpu_seconds - from.usage.cpu_seconds,
            requests: Requests::between(&requests, from.at, until.at),
            refused_of_own_making: of_own_making(user, log, from.at, until.at)?,
        })
    };
    Ok(Measured {
        up: span(before, between, up)?,
        down: span(between, after, down)?,
        peak_rss_mebibytes: after.usage.peak_rss_mebibytes,
        settled_rss_mebibytes: between.usage.rss_mebibytes,
    })
}

#[derive(Clone, Copy)]
struct Mark {
    at: Timestamp,
    usage: Usage,
}

impl Mark {
    fn now(process: u32) -> anyhow::Result<Self> {
        Ok(Self { at: Timestamp::now(), usage: usage(process)? })
    }
}

async fn start_operator(cluster: &Cluster, args: &BenchArgs) -> anyhow::Result<OperatorProcess> {
    let kubeconfig = cluster.operator_kubeconfig(OPERATOR_USER, PLACE).await?;
    grant_cluster_api(cluster.admin(), OPERATOR_USER, PLACE).await?;
    let mut flags = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--namespace={PLACE}"),
        "--cluster-api".to_owned(),
        format!("--cluster-api-namespace={PLACE}"),
        format!("--cluster-api-lease-namespace={PLACE}"),
        "--http-address=127.0.0.1:0".to_owned(),
        "--webhook-address=127.0.0.1:0".to_owned(),
        "--metrics-tls-address=127.0.0.1:0".to_owned(),
        "--keep-webhooks=off".to_owned(),
    ];
    flags.extend(args.operator_flag.iter().cloned());
    let config = OperatorConfig::find(flags.into_iter().map(Into::into).collect())?;
    cluster.start_operator(config).await
}

fn api(client: &Client, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, VERSION, kind));
    Api::namespaced_with(client.clone(), PLACE, &resource)
}

async fn scale(client: &Client, machines: u16) -> anyhow::Result<()> {
    let scale = Patch::Merge(json!({ "spec": { "replicas": machines } }));
    api(client, "MachineDeployment").patch(WORKERS, &PatchParams::default(), &scale).await?;
    Ok(())
}

/// Waits until there are exactly so many Machines and all run. By a watch, which costs next to nothing.
async fn until_running(client: &Client, wanted: usize) -> anyhow::Result<()> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, VERSION, "Machine"));
    let machines: Api<DynamicObject> = Api::namespaced_with(client.clone(), PLACE, &kind);
    let mut changes = watcher(machines, watcher::Config::default()).default_backoff().boxed();
    let mut running = BTreeMap::new();
    let mut is_listed = false;
    while !(is_listed && running.len() == wanted && running.values().all(|runs| *runs)) {
        let Ok(change) = timeout(SILENCE_MAX, changes.next()).await else {
            let run = running.values().filter(|runs| **runs).count();
            bail!(
                "nothing happened for {} s while waiting for {wanted} machines: {} are there, {run} run",
                SILENCE_MAX.as_secs(),
                running.len()
            );
        };
        match change.context("the watch ended")? {
            Ok(Event::Apply(machine) | Event::InitApply(machine)) => {
                let runs = machine.data["status"]["phase"] == "Running";
                running.insert(machine.name_any(), runs);
            }
            Ok(Event::Delete(machine)) => {
                running.remove(&machine.name_any());
            }
            Ok(Event::Init) => running.clear(),
            Ok(Event::InitDone) => is_listed = true,
            Err(error) => eprintln!("bench: a watch was interrupted: {error}"),
        }
    }
    Ok(())
}

fn say(who: Controller, what: &str) {
    let who = if who == Controller::Core { "Cluster API's core manager" } else { "Machinist" };
    eprintln!("bench: {NAME}, {MACHINES} machines, {who}: {what}");
}

pub fn checks(compared: &Comparison) -> Vec<Check> {
    let (Some(core), Some(own)) = (middle(&compared.core), middle(&compared.machinist)) else {
        return Vec::new();
    };
    let part = |name: &str, own: f64, core: f64, part_max: f64, unit: &str| Check {
        name: format!("{NAME}: {name} at most {part_max:.2} of Cluster API's core manager's"),
        measured: format!("{own:.1} and {core:.1} {unit}, {:.2}", own / core),
        has_passed: own <= core * part_max,
    };
    let spans = compared.machinist.iter().flat_map(|round| [&round.up, &round.down]);
    let conflicts: usize = spans.map(|span| span.refused_of_own_making).sum();
    vec![
        part("time to Running", own.up.wall_seconds, core.up.wall_seconds, TIME_PART_MAX, "s"),
        part(
            "writes for each machine",
            for_each(compared, own.up.requests.writes),
            for_each(compared, core.up.requests.writes),
            WRITES_PART_MAX,
            "writes",
        ),
        part(
            "peak memory",
            own.peak_rss_mebibytes,
            core.peak_rss_mebibytes,
            MEMORY_PART_MAX,
            "MiB",
        ),
        Check {
            name: format!("{NAME}: no conflict of Machinist's own making"),
            measured: conflicts.to_string(),
            has_passed: conflicts == 0,
        },
    ]
}

pub fn text(compared: &Comparison) -> String {
    let (Some(core), Some(own)) = (middle(&compared.core), middle(&compared.machinist)) else {
        return String::new();
    };
    let mut rows: Vec<Row> = Vec::new();
    let heading = format!("Cluster API, {} machines, defaults", compared.machines);
    let titles = [heading.as_str(), "its core manager", "machinist"];
    rows.push(titles.map(Cell::plain).to_vec().into());
    let mut row = |name: &str, value: &dyn Fn(&Measured) -> String| {
        let cells = [name.to_owned(), value(core), value(own)].map(Cell::plain);
        rows.push(cells.to_vec().into());
    };
    let count = |count: usize| format!("{count} ({:.2})", for_each(compared, count));
    type Of = fn(&Measured) -> &Span;
    let spans: [(&str, Of); 2] =
        [("zero to Running", |one| &one.up), ("Running to zero", |one| &one.down)];
    for (title, span) in spans {
        row(title, &|_| String::new());
        row("  wall time, s", &|one| format!("{:.1}", span(one).wall_seconds));
        row("  CPU, s", &|one| format!("{:.2}", span(one).cpu_seconds));
        row("  writes accepted (for each machine)", &|one| count(span(one).requests.writes));
        row("  writes refused (for each machine)", &|one| count(span(one).requests.refused_writes));
        row("  of these, of its own making", &|one| count(span(one).refused_of_own_making));
        row("  writes apart: Events", &|one| span(one).requests.event_writes.to_string());
        row("  reads", &|one| span(one).requests.reads.to_string());
    }
    row("peak RSS, MiB", &|one| format!("{:.1}", one.peak_rss_mebibytes));
    row("RSS with all running, MiB", &|one| format!("{:.1}", one.settled_rss_mebibytes));
    let seconds = |rounds: &[Measured]| {
        let all: Vec<_> =
            rounds.iter().map(|round| format!("{:.1}", round.up.wall_seconds)).collect();
        Cell::plain(all.join(", "))
    };
    let title = Cell::plain("zero to Running in each round, s");
    rows.push(vec![title, seconds(&compared.core), seconds(&compared.machinist)].into());
    lines(&rows, None).into_iter().map(|line| line + "\n").collect()
}

fn for_each(compared: &Comparison, count: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a benchmark counts to no 2^52")]
    let count = count as f64;
    count / f64::from(compared.machines.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(seconds: f64, writes: usize, refused_writes: usize, memory: f64) -> Measured {
        let requests = Requests { writes, refused_writes, ..Requests::default() };
        let span = Span {
            wall_seconds: seconds,
            cpu_seconds: 1.0,
            requests,
            refused_of_own_making: refused_writes,
        };
        Measured {
            up: span.clone(),
            down: span,
            peak_rss_mebibytes: memory,
            settled_rss_mebibytes: memory,
        }
    }

    fn failures(machinist: Measured) -> Vec<String> {
        let seconds = [45.0, 25.0, 30.0];
        let core = seconds.map(|seconds| measured(seconds, 2000, 1200, 100.0)).to_vec();
        let checks = checks(&Comparison { machines: 100, core, machinist: vec![machinist] });
        checks.into_iter().filter(|one| !one.has_passed).map(|one| one.name).collect()
    }

    #[test]
    fn the_aims_hold_where_they_are_reached_and_fail_by_name_where_not() {
        assert_eq!(failures(measured(10.0, 1000, 0, 50.0)), Vec::<String>::new());
        let failed = failures(measured(10.1, 1001, 1, 50.1));
        assert_eq!(failed.len(), 4, "{failed:?}");
        assert!(failed[0].contains("time to Running"), "{failed:?}");
        assert!(failed[3].contains("own making"), "{failed:?}");
    }

    /// Each round counts.
    #[test]
    fn a_conflict_in_any_round_fails() {
        let core = vec![measured(30.0, 2000, 1200, 100.0)];
        let machinist = [0, 0, 1].map(|refused| measured(1.0, 100, refused, 1.0)).to_vec();
        let checks = checks(&Comparison { machines: 100, core, machinist });
        let failed: Vec<_> = checks.iter().filter(|one| !one.has_passed).collect();
        assert!(matches!(failed.as_slice(), [one] if one.name.contains("own making")));
    }

    #[test]
    fn the_table_has_both_by_the_round_in_the_middle() {
        let core = [9.0, 10.0, 50.0].map(|seconds| measured(seconds, 1000, 0, 50.0)).to_vec();
        let text = text(&Comparison { machines: 100, machinist: core.clone(), core });
        assert!(text.contains("9.0, 10.0, 50.0"), "{text}");
        assert!(text.contains("1000 (10.00)"), "{text}");
        assert!(text.contains("its core manager"), "{text}");
    }
}
