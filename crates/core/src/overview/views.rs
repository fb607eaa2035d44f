//! One machine seen three times: in what do the object, the instance and the Node differ?

use machinist_api::{
    Machine,
    names::{label, phase},
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{picture::Sight, seen};
use crate::{
    machine::observed::Identity,
    node::{self, Readiness},
};

/// The three views side by side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ViewsView {
    pub rows: Vec<ViewRow>,
    /// Why the Node may not be seen.
    pub node_hidden: Option<String>,
}

/// The same question, asked of the machine, of the instance and of the Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ViewRow {
    pub key: &'static str,
    pub label: &'static str,
    pub hint: &'static str,
    pub machine: Option<String>,
    pub instance: Option<String>,
    pub node: Option<String>,
    pub differs: bool,
    /// What differs, in words.
    pub why: Option<String>,
}

impl ViewRow {
    fn new(key: &'static str, label: &'static str, hint: &'static str) -> Self {
        let none = None;
        Self {
            key,
            label,
            hint,
            machine: none.clone(),
            instance: none.clone(),
            node: none.clone(),
            differs: false,
            why: none,
        }
    }

    fn differing(mut self, why: Option<String>) -> Self {
        self.differs = why.is_some();
        self.why = why;
        self
    }
}

/// Lays the three views of a machine side by side.
pub fn views(sight: &Sight<'_>, no_node: Option<&str>) -> ViewsView {
    let machine = sight.machine;
    let node = sight.node.filter(|_| no_node.is_none());
    let mut rows = vec![
        name(machine, node),
        standing(machine, node, no_node.is_none()),
        identity(machine, node),
        addresses(machine, node),
        placed("zone", "Zone", "Where in the region it is.", machine, node, ZONE),
        placed("region", "Region", "Where it is.", machine, node, REGION),
        placed("type", "Type", "What kind of instance it is.", machine, node, TYPE),
        boot(machine, node),
        taints(machine, node),
    ];
    let is_said =
        |row: &ViewRow| row.machine.is_some() || row.instance.is_some() || row.node.is_some();
    rows.retain(is_said);
    ViewsView { rows, node_hidden: no_node.map(str::to_owned) }
}

type NodeObject = k8s_openapi::api::core::v1::Node;

fn name(machine: &Machine, node: Option<&NodeObject>) -> ViewRow {
    let mut row = ViewRow::new("name", "Name", "What each of the three calls it.");
    row.machine = machine.metadata.name.clone();
    row.instance = seen::instance(machine).map(|instance| instance.id);
    row.node = node.map(|node| node::name(node).to_owned());
    row
}

fn standing(machine: &Machine, node: Option<&NodeObject>, is_seen: bool) -> ViewRow {
    let mut row = ViewRow::new("state", "State", "Whether each of the three is there and works.");
    let status = machine.status.as_ref();
    let current = status.and_then(|status| status.phase.clone());
    let instance = seen::instance(machine).and_then(|instance| instance.state);
    let readiness = node.map(|node| match node::readiness(node) {
        Readiness::Ready => "Ready",
        Readiness::NotReady => "NotReady",
        Readiness::Unknown => "Unknown",
    });
    let is_linked = status.is_some_and(|status| status.node_ref.is_some());
    let is_running = current.as_deref() == Some(phase::RUNNING);
    let why = match (instance.as_deref(), readiness) {
        (Some(state), _) if is_running && state != "running" => {
            Some(format!("the machine is Running, but its instance is {state}"))
        }
        (Some("running"), Some(readiness)) if is_running && readiness != "Ready" => {
            Some(format!("the instance runs, but its node is {readiness}"))
        }
        (Some("running"), None) if is_linked && is_seen => {
            Some("the machine names a node that is not there".to_owned())
        }
        (Some("stopped" | "terminated"), Some("Ready")) => {
            Some("the instance is off, but its node is said to be ready".to_owned())
        }
        _ => None,
    };
    row.machine = current;
    row.instance = instance;
    row.node = readiness.map(|readiness| {
        let is_cordoned = node.is_some_and(node::is_unschedulable);
        if is_cordoned { format!("{readiness}, cordoned") } else { readiness.to_owned() }
    });
    row.differing(why)
}

fn identity(machine: &Machine, node: Option<&NodeObject>) -> ViewRow {
    let mut row = ViewRow::new(
        "providerID",
        "Provider ID",
        "The identity by which machine, instance and node know each other.",
    );
    row.machine = machine.spec.provider_id.clone();
    row.instance = Identity::of(machine).instance_id.map(|id| id.0);
    row.node = node.and_then(node::provider_id).map(str::to_owned);
    let why = match (&row.machine, &row.instance, &row.node) {
        (Some(machine), _, Some(node)) if machine != node => {
            Some("the node says that it is another instance".to_owned())
        }
        // Where names of instances are no one's alone, what they belong to stands before the providerID.
        (Some(machine), Some(instance), _)
            if !machine.ends_with(&format!("/{instance}"))
                && !instance.ends_with(machine.as_str()) =>
        {
            Some("the machine's providerID is of another instance".to_owned())
        }
        _ => None,
    };
    row.differing(why)
}

fn addresses(machine: &Machine, node: Option<&NodeObject>) -> ViewRow {
    let mut row = ViewRow::new("addresses", "Addresses", "Where it can be reached.");
    let status = machine.status.as_ref();
    let known = status.map(|status| status.addresses.as_slice()).unwrap_or_default();
    let all: Vec<&str> = known.iter().map(|one| one.address.as_str()).collect();
    let ips: Vec<&str> = known
        .iter()
        .filter(|one| one.type_ == "InternalIP")
        .map(|one| one.address.as_str())
        .collect();
    let of_node = node.map(node::internal_ips).unwrap_or_default();
    row.machine = listed(&all);
    row.node = listed(&of_node);
    let is_shared = of_node.iter().any(|ip| ips.contains(ip));
    let why = (!ips.is_empty() && !of_node.is_empty() && !is_shared)
        .then(|| "the node has none of the machine's internal addresses".to_owned());
    row.differing(why)
}

/// The labels of Machine and Node for the same.
const ZONE: (&str, &str) = (label::ZONE, "topology.kubernetes.io/zone");
const REGION: (&str, &str) = (label::REGION, "topology.kubernetes.io/region");
const TYPE: (&str, &str) = (label::INSTANCE_TYPE, "node.kubernetes.io/instance-type");

fn placed(
    key: &'static str,
    title: &'static str,
    hint: &'static str,
    machine: &Machine,
    node: Option<&NodeObject>,
    (of_machine, of_node): (&str, &str),
) -> ViewRow {
    let mut row = ViewRow::new(key, title, hint);
    row.machine = machine.metadata.labels.as_ref().and_then(|all| all.get(of_machine)).cloned();
    row.node = node
        .and_then(|node| node.metadata.labels.as_ref())
        .and_then(|all| all.get(of_node))
        .cloned();
    let why = match (&row.machine, &row.node) {
        (Some(machine), Some(node)) if machine != node => {
            Some(format!("the machine says {machine}, the node {node}"))
        }
        _ => None,
    };
    row.differing(why)
}

fn boot(machine: &Machine, node: Option<&NodeObject>) -> ViewRow {
    let mut row = ViewRow::new(
        "boot",
        "Boot",
        "When the instance was last started, and the id of the boot that the node runs.",
    );
    let provider = seen::provider_status(machine);
    row.machine = provider.boot_id.clone();
    row.instance = provider.launch_time.map(|time| format!("started {time}"));
    row.node = node.and_then(node::boot_id).map(str::to_owned);
    let why = match (&row.machine, &row.node) {
        (Some(machine), Some(node)) if machine != node && !provider.boot_pending => {
            Some("the node has booted since the machine was last looked at".to_owned())
        }
        _ => None,
    };
    row.differing(why)
}

fn taints(machine: &Machine, node: Option<&NodeObject>) -> ViewRow {
    let mut row = ViewRow::new("taints", "Taints", "What keeps pods away that do not bear it.");
    let wanted: Vec<String> = machine
        .spec
        .taints
        .iter()
        .flatten()
        .map(|taint| format!("{}:{}", taint.key, taint.effect))
        .collect();
    let has: Vec<String> = node
        .and_then(|node| node.spec.as_ref())
        .and_then(|spec| spec.taints.as_ref())
        .into_iter()
        .flatten()
        .map(|taint| format!("{}:{}", taint.key, taint.effect))
        .collect();
    let missing: Vec<&str> = wanted
        .iter()
        .filter(|taint| node.is_some() && !has.contains(taint))
        .map(String::as_str)
        .collect();
    let why = (!missing.is_empty()).then(|| format!("the node lacks {}", missing.join(", ")));
    row.machine = listed(&wanted.iter().map(String::as_str).collect::<Vec<_>>());
    row.node = listed(&has.iter().map(String::as_str).collect::<Vec<_>>());
    row.differing(why)
}

fn listed(all: &[&str]) -> Option<String> {
    (!all.is_empty()).then(|| all.join(", "))
}
