//! What do the guests of running instances do? They join as Nodes, keep them Ready, end pods; and what
//! is done about those that fall silent: the node lifecycle.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use machinist_testbed::cloud::model::{InstanceFacts, InstanceState};
use serde_json::{Value, json};

use super::{Actor, Scene, earliest, later, text, time};
use crate::api_server::value_at;
use crate::{
    api_server::{ObjectRef, Subresource},
    chance::{Chance, fingerprint},
    faults::FaultKind,
    invariants::condition_of,
};

const KUBELET: &str = "kubelet";
const LIFECYCLE: &str = "node-lifecycle";
/// After this silence a Node counts as unknown.
const SILENCE: Duration = Duration::from_secs(40);
/// How long after its instance is gone a Node is removed by the cloud controller.
const REMOVAL: Duration = Duration::from_secs(60);
/// A Node whose name is taken by an older one is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// How long one tries to join under a name that is taken.
const PATIENCE: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);
/// Pods of an unknown Node are evicted by its taint after this long.
const TAINT_EVICTION: Duration = Duration::from_secs(300);

/// How guests behave.
#[derive(Clone, Debug)]
pub struct KubeletSettings {
    /// How long a boot takes until the Node is there, in seconds.
    pub boot_seconds: (u64, u64),
    /// Whether Nodes of gone instances are removed by the cluster itself.
    pub removes_nodes: bool,
    /// Whether names go round a few.
    pub reuses_names: bool,
}

/// What disturbs guests; all off means that they recover.
#[derive(Clone, Debug, Default)]
pub struct Disturbance {
    /// The chance that a boot joins very late.
    pub late: f64,
    /// The chance that a boot never joins while the disturbance lasts.
    pub never: f64,
    /// Pods that take all the time they are given.
    pub stubborn: f64,
}

#[derive(Debug)]
struct Guest {
    name: String,
    boot: u64,
    joins_at: Option<Timestamp>,
    never_joins: bool,
    joined: bool,
    silent_since: Option<Timestamp>,
    /// The kubelet is dead until then, though the guest runs.
    dead_until: Option<Timestamp>,
    /// Says that it is not ready until then.
    unready_until: Option<Timestamp>,
    gone_since: Option<Timestamp>,
    /// The instance as it was last seen.
    facts: InstanceFacts,
}

/// All guests and the node lifecycle.
#[derive(Debug)]
pub struct Kubelets {
    settings: KubeletSettings,
    chance: Chance,
    guests: BTreeMap<String, Guest>,
    /// When each pod is ready or ended, by uid.
    pods: BTreeMap<String, Timestamp>,
}

impl Kubelets {
    #[must_use]
    pub fn new(settings: KubeletSettings, chance: Chance) -> Self {
        Self { settings, chance, guests: BTreeMap::new(), pods: BTreeMap::new() }
    }

    fn follow(
        &mut self,
        scene: &Scene,
        facts: &InstanceFacts,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let storm = scene.hub.weather().disturbance.clone();
        let mut next = None;
        let settings = self.settings.clone();
        let taken: BTreeSet<String> = self
            .guests
            .values()
            .filter(|guest| guest.gone_since.is_none())
            .map(|guest| guest.name.clone())
            .collect();
        let is_new = !self.guests.contains_key(&facts.id);
        let name = node_name(facts, &settings, &taken);
        if is_new && self.guests.values().any(|guest| guest.name == name) {
            scene.hub.count_fault(FaultKind::F55, facts.tags.get("Name").map(String::as_str));
        }
        let chance = &mut self.chance;
        let guest = self.guests.entry(facts.id.clone()).or_insert_with(|| Guest {
            name,
            boot: 0,
            joins_at: None,
            never_joins: false,
            joined: false,
            silent_since: None,
            dead_until: None,
            unready_until: None,
            gone_since: None,
            facts: facts.clone(),
        });
        guest.facts = facts.clone();
        if facts.state == InstanceState::Terminated {
            guest.gone_since.get_or_insert(now);
        }
        if let Some((kind, lasting)) = scene.hub.weather().take_node_trouble(&facts.id) {
            let until = Some(later(now, lasting));
            match kind {
                FaultKind::F72 => guest.dead_until = until,
                _ => guest.unready_until = until,
            }
        }
        if storm.is_none() {
            (guest.never_joins, guest.dead_until, guest.unready_until) = (false, None, None);
        }
        let is_dead = guest.dead_until.is_some_and(|until| until > now);
        if facts.is_up() && guest.boot != facts.boot_generation {
            let (least, most) = settings.boot_seconds;
            let mut delay = chance.seconds(least, most);
            guest.never_joins = false;
            if let Some(storm) = &storm {
                if chance.hits(storm.late) {
                    delay += chance.seconds(60, 1200);
                    scene.hub.count_fault(FaultKind::F70, None);
                } else if chance.hits(storm.never) {
                    guest.never_joins = true;
                    scene.hub.count_fault(FaultKind::F70, None);
                }
            }
            guest.boot = facts.boot_generation;
            guest.joins_at = Some(later(facts.booted_at.unwrap_or(now), delay));
            guest.joined = false;
        }
        let kind = ("", "nodes");
        let found = find_node(scene, &guest.name);
        let is_own = found
            .as_ref()
            .is_some_and(|node| text(node.value(), "/spec/providerID") == provider_id(facts));
        if facts.is_up() && !is_dead && !guest.never_joins {
            guest.silent_since = None;
            let due = guest.joins_at.unwrap_or(now);
            if !guest.joined && due <= now {
                match &found {
                    None => {
                        let body = node_object(facts, &guest.name, now);
                        guest.joined = scene.create(KUBELET, kind.0, kind.1, body).is_some();
                        let status = node_status(facts, "True", now);
                        let at = ("", guest.name.as_str());
                        scene.patch(KUBELET, Subresource::Status, kind, at, status);
                    }
                    Some(_) if is_own => {
                        guest.joined = true;
                        let status = node_status(facts, "True", now);
                        let at = ("", guest.name.as_str());
                        scene.patch(KUBELET, Subresource::Status, kind, at, status);
                    }
                    // The name still belongs to a Node of another instance, which may be left to people:
                    // in the end somebody gives this one a name of its own.
                    Some(_) => {
                        let since = facts.booted_at.unwrap_or(now);
                        if now.duration_since(since) > PATIENCE {
                            guest.name.clone_from(&facts.private_dns_name);
                        }
                        guest.joins_at = Some(later(now, RETRY));
                    }
                }
            }
            let is_unready = guest.unready_until.is_some_and(|until| until > now);
            let wanted = if is_unready { "False" } else { "True" };
            if guest.joined && is_own && found.as_ref().is_some_and(|node| ready(node) != wanted) {
                let status = node_status(facts, wanted, now);
                let at = ("", guest.name.as_str());
                scene.patch(KUBELET, Subresource::Status, kind, at, status);
            }
        } else {
            let since = *guest.silent_since.get_or_insert(now);
            let unknown_at = later(since, SILENCE);
            if found.as_ref().is_some_and(|node| is_own && ready(node) != "Unknown") {
                if unknown_at <= now {
                    let status = unknown_status(now);
                    let at = ("", guest.name.as_str());
                    scene.patch(LIFECYCLE, Subresource::Status, kind, at, status);
                } else {
                    earliest(&mut next, unknown_at);
                }
            }
        }
        if let Some(gone) = guest.gone_since.filter(|_| settings.removes_nodes && is_own) {
            let removed_at = later(gone, REMOVAL);
            if removed_at <= now {
                scene.delete(LIFECYCLE, kind, ("", &guest.name), Value::Null);
            } else {
                earliest(&mut next, removed_at);
            }
        }
        let times = [
            guest.joins_at.filter(|_| !guest.joined && !guest.never_joins),
            guest.dead_until,
            guest.unready_until,
        ];
        for at in times.into_iter().flatten().filter(|at| *at > now) {
            earliest(&mut next, at);
        }
        next
    }

    /// Starts, ends and gives up pods.
    fn mind_pods(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp> {
        let mut next = None;
        let nodes = scene.objects("", "nodes");
        let states: BTreeMap<&str, (&str, Option<Timestamp>)> =
            nodes.iter().map(|node| (node.name(), (ready(node), ready_since(node)))).collect();
        let stubborn = scene.hub.weather().disturbance.as_ref().map_or(0.0, |storm| storm.stubborn);
        let mut seen = BTreeSet::new();
        for pod in scene.objects("", "pods") {
            let value = pod.value();
            let node = text(value, "/spec/nodeName");
            if node.is_empty() {
                continue;
            }
            seen.insert(pod.uid().to_owned());
            let at = (pod.namespace(), pod.name());
            let kind = ("", "pods");
            let now_gone = json!({ "gracePeriodSeconds": 0 });
            let Some((is_ready, since)) = states.get(node) else {
                // The pod garbage collector removes what is bound to no Node.
                scene.delete("pod-gc", kind, at, now_gone);
                continue;
            };
            if pod.is_being_deleted() {
                if *is_ready == "Unknown" {
                    continue;
                }
                let given = value_at(value, "/metadata/deletionGracePeriodSeconds");
                let given = given.and_then(Value::as_u64).unwrap_or(30);
                let chance = &mut self.chance;
                let key = format!("end {}", pod.uid());
                seen.insert(key.clone());
                let due = *self.pods.entry(key).or_insert_with(|| {
                    let is_stubborn = chance.hits(stubborn);
                    if is_stubborn {
                        scene.hub.count_fault(FaultKind::F25, None);
                    }
                    let most = given.max(1);
                    let take = if is_stubborn { most } else { chance.between(1, most.min(5)) };
                    later(now, Duration::from_secs(take))
                });
                if due <= now {
                    scene.delete(KUBELET, kind, at, now_gone);
                } else {
                    earliest(&mut next, due);
                }
                continue;
            }
            if *is_ready == "Unknown" {
                let evicted_at = later(since.unwrap_or(now), TAINT_EVICTION);
                if evicted_at <= now {
                    scene.delete("taint-eviction", kind, at, Value::Null);
                } else {
                    earliest(&mut next, evicted_at);
                }
                continue;
            }
            if text(value, "/status/phase") != "Running" {
                let chance = &mut self.chance;
                let due = *self
                    .pods
                    .entry(pod.uid().to_owned())
                    .or_insert_with(|| later(now, chance.seconds(1, 4)));
                if due <= now {
                    let status = json!({ "status": {
                        "phase": "Running",
                        "conditions": [{ "type": "Ready", "status": "True" }],
                    } });
                    scene.patch(KUBELET, Subresource::Status, kind, at, status);
                } else {
                    earliest(&mut next, due);
                }
            }
        }
        self.pods.retain(|uid, _| seen.contains(uid));
        next
    }
}

impl Actor for Kubelets {
    fn step(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp> {
        let mut next = None;
        let mut snapshot = scene.cloud.model().snapshot();
        // What the cloud has forgotten is gone all the same.
        let forgotten: Vec<InstanceFacts> = self
            .guests
            .values()
            .filter(|guest| snapshot.iter().all(|facts| facts.id != guest.facts.id))
            .map(|guest| InstanceFacts { state: InstanceState::Terminated, ..guest.facts.clone() })
            .collect();
        snapshot.extend(forgotten);
        for facts in &snapshot {
            if let Some(at) = self.follow(scene, facts, now) {
                earliest(&mut next, at);
            }
        }
        if let Some(at) = self.mind_pods(scene, now) {
            earliest(&mut next, at);
        }
        next
    }
}

/// As EC2 names guests, or one of a few names that is free.
fn node_name(
    facts: &InstanceFacts,
    settings: &KubeletSettings,
    taken: &BTreeSet<String>,
) -> String {
    if settings.reuses_names {
        let mut names = (1..).map(|number| format!("ip-10-0-0-{number}.ec2.internal"));
        if let Some(free) = names.find(|name| !taken.contains(name)) {
            return free;
        }
    }
    facts.private_dns_name.clone()
}

fn provider_id(facts: &InstanceFacts) -> String {
    format!("aws:///{}/{}", facts.zone, facts.id)
}

fn find_node(scene: &Scene, name: &str) -> Option<ObjectRef> {
    scene.server.get_object(crate::api_server::KindRef::find("", "nodes")?, "", name)
}

/// What the Ready condition says.
fn ready(node: &ObjectRef) -> &str {
    condition_of(node.value(), "Ready").map_or("", |ready| text(ready, "/status"))
}

fn ready_since(node: &ObjectRef) -> Option<Timestamp> {
    condition_of(node.value(), "Ready").and_then(|ready| time(ready, "/lastTransitionTime"))
}

fn node_object(facts: &InstanceFacts, name: &str, now: Timestamp) -> Value {
    let mut object = node_status(facts, "False", now);
    object["metadata"] = json!({
        "name": name,
        "labels": {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "node-role.kubernetes.io/worker": "",
        },
    });
    object["spec"] = json!({ "providerID": provider_id(facts) });
    object
}

fn node_status(facts: &InstanceFacts, is_ready: &str, now: Timestamp) -> Value {
    let address = facts.private_ip.map(|address| address.to_string()).unwrap_or_default();
    let boot = fingerprint(format!("{} boot {}", facts.id, facts.boot_generation).as_bytes());
    json!({ "status": {
        "addresses": [
            { "type": "InternalIP", "address": address },
            { "type": "Hostname", "address": facts.private_dns_name },
        ],
        "conditions": [condition(is_ready, now)],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": format!("{boot:016x}"),
            "containerRuntimeVersion": "cri-o://1.36.0",
            "kernelVersion": "5.14.0",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.0",
            "machineID": facts.id,
            "operatingSystem": "linux",
            "osImage": "simulation",
            "systemUUID": facts.id,
        },
    } })
}

fn condition(is_ready: &str, now: Timestamp) -> Value {
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({
        "type": "Ready",
        "status": is_ready,
        "reason": "Simulated",
        "message": "",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    })
}

/// Nothing but the condition changes: the last word of the kubelet stays.
fn unknown_status(now: Timestamp) -> Value {
    json!({ "status": { "conditions": [condition("Unknown", now)] } })
}
