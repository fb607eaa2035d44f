//! What do the guests of running instances do? They join as Nodes, keep them Ready, end pods; and what
//! is done about those that fall silent: the node lifecycle.

mod node;
mod papers;
mod pods;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use machinist_testbed::cloud::model::{InstanceFacts, InstanceState};
use serde_json::Value;

pub(super) use self::node::{find_node, ready};
use self::{
    node::{node_object, node_status, provider_id, unknown_status},
    papers::Papers,
};
use super::{Actor, Scene, earliest, later, text};
use crate::{
    api_server::{ObjectRef, Subresource},
    chance::Chance,
    faults::FaultKind,
};

const KUBELET: &str = "kubelet";
const LIFECYCLE: &str = "node-lifecycle";
const NODES: (&str, &str) = ("", "nodes");
/// After this silence a Node counts as unknown.
const SILENCE: Duration = Duration::from_secs(40);
/// How long after its instance is gone a Node is removed by the cloud controller.
const REMOVAL: Duration = Duration::from_secs(60);
/// A Node whose name is taken by an older one is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// How long one tries to join under a name that is taken.
const PATIENCE: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// How guests behave.
#[derive(Clone, Debug)]
pub struct KubeletSettings {
    /// How long a boot takes until the Node is there, in seconds.
    pub boot_seconds: (u64, u64),
    /// Whether Nodes of gone instances are removed by the cluster itself.
    pub removes_nodes: bool,
    /// Whether the cloud gives the address of a gone instance, and so its name, to the next.
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
    /// The chance that a Node asks for a certificate with another's name in it.
    pub overreaching: f64,
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
    papers: Papers,
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
        let mut next = None;
        if !self.guests.contains_key(&facts.id) {
            let name = &facts.private_dns_name;
            if !name.is_empty() && self.guests.values().any(|guest| guest.name == *name) {
                let name = facts.tags.get("Name").map(String::as_str);
                scene.hub.count_fault(FaultKind::F55, name);
            }
            self.guests.insert(facts.id.clone(), Guest::new(facts));
        }
        let guest = self.guests.get_mut(&facts.id)?;
        if guest.facts != *facts {
            guest.facts = facts.clone();
        }
        if facts.state == InstanceState::Terminated {
            guest.gone_since.get_or_insert(now);
        }
        guest.suffer(scene, &self.settings, &mut self.chance, now);
        let is_dead = guest.dead_until.is_some_and(|until| until > now);
        let found = find_node(scene, &guest.name);
        let is_own = found
            .as_ref()
            .is_some_and(|node| text(node.value(), "/spec/providerID") == provider_id(facts));
        if facts.is_up() && !is_dead && !guest.never_joins {
            guest.silent_since = None;
            guest.work(scene, found.as_ref().filter(|_| is_own), found.as_ref(), now, &mut next);
        } else {
            if guest.silent_since.is_none() {
                scene.hub.weather().served.remove(&guest.name);
            }
            let since = *guest.silent_since.get_or_insert(now);
            let unknown_at = later(since, SILENCE);
            if found.as_ref().is_some_and(|node| is_own && ready(node) != "Unknown") {
                if unknown_at <= now {
                    let status = unknown_status(now);
                    let at = ("", guest.name.as_str());
                    scene.patch(LIFECYCLE, Subresource::Status, NODES, at, status);
                } else {
                    earliest(&mut next, unknown_at);
                }
            }
        }
        if let Some(gone) = guest.gone_since.filter(|_| self.settings.removes_nodes && is_own) {
            let removed_at = later(gone, REMOVAL);
            if removed_at <= now {
                scene.delete(LIFECYCLE, NODES, ("", &guest.name), Value::Null);
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
}

impl Guest {
    fn new(facts: &InstanceFacts) -> Self {
        Self {
            name: facts.private_dns_name.clone(),
            boot: 0,
            joins_at: None,
            never_joins: false,
            joined: false,
            silent_since: None,
            dead_until: None,
            unready_until: None,
            gone_since: None,
            papers: Papers::default(),
            facts: facts.clone(),
        }
    }

    /// Takes what the weather brings, and a new boot.
    fn suffer(
        &mut self,
        scene: &Scene,
        settings: &KubeletSettings,
        chance: &mut Chance,
        now: Timestamp,
    ) {
        if let Some((kind, lasting)) = scene.hub.weather().take_node_trouble(&self.facts.id) {
            let until = Some(later(now, lasting));
            match kind {
                FaultKind::F72 => self.dead_until = until,
                _ => self.unready_until = until,
            }
        }
        let storm = scene.hub.weather().disturbance.clone();
        if storm.is_none() {
            (self.never_joins, self.dead_until, self.unready_until) = (false, None, None);
        }
        if !self.facts.is_up() || self.boot == self.facts.boot_generation {
            return;
        }
        let (least, most) = settings.boot_seconds;
        let mut delay = chance.seconds(least, most);
        self.never_joins = false;
        if let Some(storm) = &storm {
            if chance.hits(storm.late) {
                delay += chance.seconds(60, 1200);
                scene.hub.count_fault(FaultKind::F70, None);
            } else if chance.hits(storm.never) {
                self.never_joins = true;
                scene.hub.count_fault(FaultKind::F70, None);
            }
            self.papers.will_overreach = chance.hits(storm.overreaching);
        }
        self.boot = self.facts.boot_generation;
        self.joins_at = Some(later(self.facts.booted_at.unwrap_or(now), delay));
        self.joined = false;
    }

    /// What a kubelet that is alive does. `own` is its Node; `found` the Node of its name, whose ever.
    fn work(
        &mut self,
        scene: &Scene,
        own: Option<&ObjectRef>,
        found: Option<&ObjectRef>,
        now: Timestamp,
        next: &mut Option<Timestamp>,
    ) {
        let at = ("", self.name.as_str());
        if !self.joined && self.joins_at.is_none_or(|due| due <= now) {
            let has_client = self.papers.has_client(scene, &self.facts.id, &self.name, now);
            match (own, found) {
                (None, Some(other)) => {
                    self.wait_for_name(scene, other, now);
                    earliest(next, later(now, RETRY));
                }
                _ if !has_client => {}
                (None, None) => {
                    let body = node_object(&self.facts, &self.name, now);
                    self.joined = scene.create(KUBELET, NODES.0, NODES.1, body).is_some();
                    let status = node_status(&self.facts, "True", now);
                    scene.patch(KUBELET, Subresource::Status, NODES, at, status);
                }
                (Some(_), _) => {
                    self.joined = true;
                    let status = node_status(&self.facts, "True", now);
                    scene.patch(KUBELET, Subresource::Status, NODES, at, status);
                }
            }
        }
        let Some(node) = own.filter(|_| self.joined) else { return };
        let is_unready = self.unready_until.is_some_and(|until| until > now);
        let wanted = if is_unready { "False" } else { "True" };
        if ready(node) != wanted {
            let status = node_status(&self.facts, wanted, now);
            scene.patch(KUBELET, Subresource::Status, NODES, at, status);
        }
        if self.papers.will_overreach {
            scene.hub.count_fault(FaultKind::F73, None);
            self.papers.overreach(scene, &self.facts, &self.name);
        }
        if let Some(at) = self.papers.mind_serving(scene, &self.facts, &self.name, now) {
            earliest(next, at);
        }
    }

    /// The name still belongs to the Node of another instance, which may be left to people: in the end
    /// somebody removes it.
    fn wait_for_name(&self, scene: &Scene, other: &ObjectRef, now: Timestamp) {
        let since = self.facts.booted_at.unwrap_or(now);
        let owner = text(other.value(), "/spec/providerID");
        let facts = scene.cloud.facts();
        let is_live = facts.iter().any(|one| {
            one.state != InstanceState::Terminated && owner.ends_with(&format!("/{}", one.id))
        });
        if now.duration_since(since) > PATIENCE && !is_live {
            scene.delete("user", NODES, ("", other.name()), Value::Null);
        }
    }
}

impl Actor for Kubelets {
    fn step(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp> {
        let mut next = None;
        let facts = scene.cloud.facts();
        // What the cloud has forgotten is gone all the same.
        let forgotten: Vec<InstanceFacts> = self
            .guests
            .values()
            .filter(|guest| facts.iter().all(|facts| facts.id != guest.facts.id))
            .map(|guest| InstanceFacts { state: InstanceState::Terminated, ..guest.facts.clone() })
            .collect();
        for facts in facts.iter().chain(&forgotten) {
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
