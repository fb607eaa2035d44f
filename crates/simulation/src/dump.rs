//! What would the operator do with a fleet that `machinist dump` kept? It is loaded into the simulated API
//! server and cloud, what had happened to it happens to it there, and time goes on.
//!
//! A dump says what is wished (pools, machines, policies, health checks, budgets) and what happened (stops,
//! impairments, scheduled events, deletions, cordons). The first is loaded by `wished`: names, labels,
//! annotations and sizes stay, the provider's part becomes that of the simulated cloud, and the operator
//! itself launches the instances. The second is played by `happened` once the fleet stands. What had been
//! half done begins anew, and what is only known by an id of the real cloud is not looked for.

mod happened;
#[cfg(test)]
mod tests;
mod wished;

use std::{collections::BTreeMap, fs, io, path::Path, time::Duration};

use jiff::Timestamp;
use machinist_api::names::{label, phase};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    actors::{App, text},
    swarm::Plan,
    world::{self, Extras, RunReport, World},
};

/// How long the fleet may take to stand.
const START_UP_MAX: Duration = Duration::from_secs(40 * 60);
/// What runs in a world of pods is looked at again and again.
const APPS_MAX: usize = 40;
const REPLICAS_MAX: usize = 20;

/// What `machinist dump` wrote.
#[derive(Clone, Debug, Deserialize)]
pub struct Dump {
    machinist: Origin,
    items: Vec<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Origin {
    taken_at: Timestamp,
}

/// Why a dump cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: String, source: io::Error },
    #[error("{path} is no dump of `machinist dump`: {problem}")]
    Invalid { path: String, problem: String },
    #[error("{path} holds no Machine")]
    Empty { path: String },
}

/// How a dump is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    /// What chance is drawn from.
    pub seed: u64,
    /// How long time goes on, from when the dump was taken.
    pub lasting: Duration,
    /// Whether everything must come to rest in the end.
    pub to_rest: bool,
}

impl Dump {
    /// Reads a dump.
    ///
    /// # Errors
    /// Fails when the file cannot be read, is no dump or holds no Machine.
    pub fn load(path: &Path) -> Result<Self, DumpError> {
        let shown = path.display().to_string();
        let file = fs::read_to_string(path)
            .map_err(|source| DumpError::Unreadable { path: shown.clone(), source })?;
        // A dump of thousands of machines is more than the reader of YAML takes.
        let parsed: Result<Self, String> = match file.trim_start().starts_with('{') {
            true => serde_json::from_str(&file).map_err(|error| error.to_string()),
            false => serde_saphyr::from_str(&file).map_err(|error| error.to_string()),
        };
        let dump = parsed.map_err(|problem| DumpError::Invalid { path: shown.clone(), problem })?;
        let is_empty = dump.of("machine.openshift.io", "Machine").next().is_none();
        if is_empty { Err(DumpError::Empty { path: shown }) } else { Ok(dump) }
    }

    /// Loads it into a world, lets time go on there, and judges.
    #[must_use]
    pub fn replay(&self, how: &Replay, keep_timeline: bool) -> RunReport {
        let extras = Extras { start: Some(self.machinist.taken_at), ..Extras::default() };
        world::run_script_with(&self.plan(how.seed), &extras, keep_timeline, async |world| {
            if let Err(words) = self.play(world, how).await {
                world.scene.hub.violate("DUMP", "", words);
            }
        })
    }

    async fn play(&self, world: &World, how: &Replay) -> Result<(), String> {
        let hub = &world.scene.hub;
        hub.note("", format!("dump: the fleet of {}", self.machinist.taken_at));
        self.load_wishes(world)?;
        let expected = self.runs().collect::<Vec<_>>();
        if !world.wait_until(START_UP_MAX, |world| missing(world, &expected).is_empty()).await {
            let missing = missing(world, &expected);
            return Err(format!("not Running after {START_UP_MAX:?}: {}", missing.join(", ")));
        }
        hub.note("", "dump: the fleet stands; what had happened happens");
        self.play_happened(world);
        tokio::time::sleep(how.lasting).await;
        if how.to_rest {
            world.calm_down();
            world.settle_and_rest().await;
        }
        Ok(())
    }

    fn plan(&self, seed: u64) -> Plan {
        let named = |object: &Value| {
            let name = text(object, "/metadata/name");
            serde_json::json!({ "metadata": { "name": name }, "spec": object["spec"] })
        };
        Plan {
            policies: self.of("machinist.dev", "MaintenancePolicy").map(named).collect(),
            has_etcd: self.of("", "Pod").any(is_etcd),
            apps: self.apps(),
            ..Plan::calm(seed)
        }
    }

    /// The objects of a kind.
    fn of(&self, group: &str, kind: &str) -> impl Iterator<Item = &Value> {
        self.items.iter().filter(move |object| {
            let version = text(object, "/apiVersion");
            let its_group = version.split_once('/').map_or("", |(group, _)| group);
            its_group == group && text(object, "/kind") == kind
        })
    }

    /// Machines that ran, and are not on their way out.
    fn runs(&self) -> impl Iterator<Item = &str> {
        let machines = self.of("machine.openshift.io", "Machine");
        let ran = machines.filter(|machine| {
            text(machine, "/status/phase") == phase::RUNNING
                && text(machine, "/metadata/deletionTimestamp").is_empty()
        });
        ran.map(|machine| text(machine, "/metadata/name"))
    }

    /// Applications that a disruption budget watches over: what may hold a drain up.
    fn apps(&self) -> Vec<App> {
        let mut apps: BTreeMap<String, App> = BTreeMap::new();
        for budget in self.of("policy", "PodDisruptionBudget") {
            let (namespace, name) =
                (text(budget, "/metadata/namespace"), text(budget, "/metadata/name"));
            let labels = budget.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
            let Some(labels) = labels.filter(|labels| !labels.is_empty()) else { continue };
            let is_of = |pod: &&Value| {
                text(pod, "/metadata/namespace") == namespace
                    && labels
                        .iter()
                        .all(|(key, value)| pod["metadata"]["labels"].get(key) == Some(value))
            };
            let pods: Vec<&Value> = self.of("", "Pod").filter(is_of).collect();
            let Some(first) = pods.first() else { continue };
            let grace =
                first.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_u64);
            let app = App {
                name: format!("{namespace}-{name}"),
                replicas: pods.len().min(REPLICAS_MAX),
                max_unavailable: Some(most_away(budget, pods.len())),
                grace_seconds: grace.unwrap_or(30),
                is_daemon: false,
            };
            apps.insert(app.name.clone(), app);
        }
        apps.into_values().take(APPS_MAX).collect()
    }
}

/// How many pods a budget lets be away; shares as the disruption controller rounds them.
fn most_away(budget: &Value, pods: usize) -> i64 {
    let pods = i64::try_from(pods).unwrap_or(i64::MAX);
    let count = |field: &str| {
        let value = budget.pointer(field)?;
        let share = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
        // Up, for both: a share of pods is never less than what it says.
        share.map(|share| (share * pods + 99) / 100).or_else(|| value.as_i64())
    };
    match (count("/spec/maxUnavailable"), count("/spec/minAvailable")) {
        (Some(most), _) => most,
        (None, Some(least)) => (pods - least).max(0),
        (None, None) => 0,
    }
}

fn is_etcd(pod: &Value) -> bool {
    text(pod, "/metadata/namespace") == "openshift-etcd"
        || pod["metadata"]["labels"].get("component") == Some(&Value::from("etcd"))
}

/// Those of the expected Machines that do not run.
fn missing(world: &World, expected: &[&str]) -> Vec<String> {
    let machines = world.scene.objects("machine.openshift.io", "machines");
    let runs = |name: &str| {
        let mut named = machines.iter().filter(|machine| machine.name() == name);
        named.any(|machine| text(machine.value(), "/status/phase") == phase::RUNNING)
    };
    expected.iter().filter(|name| !runs(name)).map(|name| (*name).to_owned()).collect()
}

/// The id of the cluster that a dump is of, by its Machines.
fn cluster_of(dump: &Dump) -> Option<&str> {
    let mut machines = dump.of("machine.openshift.io", "Machine");
    machines.find_map(|machine| machine["metadata"]["labels"].get(label::CLUSTER)?.as_str())
}
