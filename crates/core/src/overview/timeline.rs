//! What happened, in one order: what the cloud did, what the cluster did, and what we did?
//!
//! Events are forgotten after an hour; what the objects themselves remember (when they were made, the
//! timeline of a maintenance, since when a condition is as it is) fills the gaps. What both tell is told
//! once.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, Node};
use machinist_api::{
    Machine, MachineMaintenance, MaintenancePhase, MaintenanceReasonKind,
    condition::ConditionStatus,
    names::{condition_type, event},
};
use serde::Serialize;

use super::told::Told;
use crate::{
    decision::Severity,
    drift::Class,
    machine::observed::{Identity, is_deleting, provider_status},
    maintenance::reason,
    node,
};

/// Two that say the same within this time are one: an Event and a record of the same moment.
const SAME_MOMENT: SignedDuration = SignedDuration::from_mins(2);

/// Kinds of the fleet; Events about others are left out, unless we wrote them.
const KINDS: [&str; 7] = [
    "Machine",
    "MachineSet",
    "MachineDeployment",
    "MachineHealthCheck",
    "MachineMaintenance",
    "MaintenancePolicy",
    "Node",
];

/// Whether Events about this kind are told.
pub fn is_of_fleet(kind: &str) -> bool {
    KINDS.contains(&kind)
}

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// The provider, or somebody through it.
    Cloud,
    /// Kubernetes, and whoever works on it.
    Cluster,
    /// We.
    Machinist,
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cloud => "cloud",
            Self::Cluster => "cluster",
            Self::Machinist => "machinist",
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Happening {
    pub time: Timestamp,
    pub source: Source,
    pub severity: Severity,
    pub reason: String,
    pub message: String,
    pub count: u32,
    /// Kind and name: `Machine x`.
    pub about: String,
    /// The machine that it belongs to, where there is one.
    pub machine: Option<String>,
}

/// What there is to tell from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    pub machines: &'a [&'a Machine],
    pub maintenances: &'a [&'a MachineMaintenance],
    pub nodes: &'a [&'a Node],
    pub events: &'a [&'a Event],
}

/// Everything, the oldest first.
pub fn timeline(sources: &Sources<'_>) -> Vec<Happening> {
    let belonging = Belonging::of(sources.machines, sources.maintenances);
    let mut told: Vec<Happening> =
        sources.events.iter().filter_map(|event| belonging.happening(event)).collect();
    let mut remembered = Vec::new();
    for machine in sources.machines {
        remembered.extend(of_machine(machine));
    }
    for node in sources.nodes {
        remembered.extend(of_node(node, &belonging));
    }
    for maintenance in sources.maintenances {
        remembered.extend(of_maintenance(maintenance));
    }
    let mut by_machine: BTreeMap<Option<&str>, Vec<&Happening>> = BTreeMap::new();
    for one in &told {
        by_machine.entry(one.machine.as_deref()).or_default().push(one);
    }
    remembered.retain(|one| {
        let known = by_machine.get(&one.machine.as_deref());
        !known.into_iter().flatten().any(|known| known.says(one))
    });
    told.extend(remembered);
    told.sort_by(|left, right| order(left).cmp(&order(right)));
    once(told)
}

fn order(one: &Happening) -> (Timestamp, Source, &str, &str, &str) {
    (one.time, one.source, &one.about, &one.reason, &one.message)
}

/// A step of a maintenance is told on the maintenance and on its machine, and its beginning as a step, too: one
/// of them is enough.
fn once(sorted: Vec<Happening>) -> Vec<Happening> {
    let mut kept: Vec<Happening> = Vec::with_capacity(sorted.len());
    for one in sorted {
        let recent = kept
            .iter()
            .rev()
            .take_while(|known| one.time.duration_since(known.time) <= SAME_MOMENT);
        if !recent.into_iter().any(|known| one.repeats(known)) {
            kept.push(one);
        }
    }
    kept
}

impl Happening {
    /// Whether it says in the same words what was told of the same machine just before, on another object or by
    /// another name.
    pub fn repeats(&self, known: &Self) -> bool {
        known.machine.is_some()
            && known.machine == self.machine
            && known.message == self.message
            && (known.about != self.about
                || known.source == self.source && known.reason != self.reason)
            && self.time.duration_since(known.time).abs() <= SAME_MOMENT
    }

    /// Whether it says of a machine what a record says of it, too.
    fn says(&self, other: &Self) -> bool {
        self.time.duration_since(other.time).abs() <= SAME_MOMENT
            && (self.message == other.message || self.reason == other.reason)
    }
}

/// Which objects belong to which machine.
#[derive(Clone, Debug, Default)]
pub struct Belonging {
    /// Machines by the names of their Nodes.
    nodes: BTreeMap<String, String>,
    /// Machines by the names of their MachineMaintenances.
    maintenances: BTreeMap<String, String>,
}

impl Belonging {
    pub fn of(machines: &[&Machine], maintenances: &[&MachineMaintenance]) -> Self {
        let mut belonging = Self::default();
        for machine in machines {
            belonging.take_machine(machine);
        }
        for maintenance in maintenances {
            belonging.take_maintenance(maintenance);
        }
        belonging
    }

    pub fn take_machine(&mut self, machine: &Machine) {
        let name = machine.metadata.name.clone().unwrap_or_default();
        let link = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
        if let Some(node) = link.and_then(|link| link.name.clone()) {
            self.nodes.insert(node, name);
        }
    }

    pub fn take_maintenance(&mut self, maintenance: &MachineMaintenance) {
        let name = maintenance.metadata.name.clone().unwrap_or_default();
        self.maintenances.insert(name, maintenance.spec.machinelink.clone());
    }

    /// What an Event tells of the fleet; none where it is about something else.
    pub fn happening(&self, event: &Event) -> Option<Happening> {
        let told = Told::of(event)?;
        if !told.is_ours && !is_of_fleet(told.kind) {
            return None;
        }
        Some(Happening {
            time: told.last,
            source: source_of(&told),
            severity: told.severity,
            reason: told.reason.to_owned(),
            message: told.message.trim().to_owned(),
            count: told.times,
            about: format!("{} {}", told.kind, told.name),
            machine: self.machine_of(told.kind, &told.name).map(str::to_owned),
        })
    }

    fn machine_of<'a>(&'a self, kind: &str, name: &'a str) -> Option<&'a str> {
        match kind {
            "Machine" => Some(name),
            "Node" => self.nodes.get(name).map(String::as_str),
            // The usual name says it, where the object is gone already.
            "MachineMaintenance" => {
                let known = self.maintenances.get(name).map(String::as_str);
                known.or_else(|| name.strip_prefix("mm-"))
            }
            _ => None,
        }
    }
}

/// We tell what the cloud did, too.
fn source_of(told: &Told<'_>) -> Source {
    let is_of_cloud = told.reason == event::SPOT_NOTICE
        || told.reason == event::INSTANCE_HEALTHY
        || Class::from_reason(told.reason).is_some();
    match told.is_ours {
        true if is_of_cloud => Source::Cloud,
        true => Source::Machinist,
        false => Source::Cluster,
    }
}

fn of_machine(machine: &Machine) -> Vec<Happening> {
    let name = machine.metadata.name.clone().unwrap_or_default();
    let base = |time: Timestamp, source: Source, reason: &str, message: String| Happening {
        time,
        source,
        severity: Severity::Normal,
        reason: reason.to_owned(),
        message,
        count: 1,
        about: format!("Machine {name}"),
        machine: Some(name.clone()),
    };
    let mut told = Vec::new();
    if let Some(created) = &machine.metadata.creation_timestamp {
        let message = "the machine was created".to_owned();
        told.push(base(created.0, Source::Cluster, "Created", message));
    }
    if let Some(deleted) = &machine.metadata.deletion_timestamp {
        let message = "its deletion was asked for".to_owned();
        told.push(base(deleted.0, Source::Cluster, "Deleting", message));
    }
    if let (Some(started), Some(id)) =
        (provider_status(machine).launch_time, Identity::of(machine).instance_id)
    {
        let message = format!("instance {id} was started");
        told.push(base(started, Source::Cloud, "InstanceStarted", message));
    }
    let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice());
    for condition in conditions.unwrap_or_default() {
        let is_cloud = matches!(
            condition.type_.as_str(),
            condition_type::INSTANCE_RUNNING | condition_type::INSTANCE_HEALTHY
        );
        let (Some(reason), Some(message)) = (&condition.reason, &condition.message) else {
            continue;
        };
        // A hook is there from the beginning, and holds something only once the machine is to go.
        let is_hook = matches!(
            condition.type_.as_str(),
            condition_type::DRAINABLE | condition_type::TERMINABLE
        );
        let is_idle = is_hook && !is_deleting(machine);
        if condition.status != ConditionStatus::False || is_idle {
            continue;
        }
        let source = if is_cloud { Source::Cloud } else { Source::Machinist };
        told.push(Happening {
            severity: Severity::Warning,
            ..base(condition.last_transition_time.0, source, reason, message.clone())
        });
    }
    told
}

fn of_node(node: &Node, belonging: &Belonging) -> Vec<Happening> {
    let name = node::name(node);
    let Some(machine) = belonging.nodes.get(name) else { return Vec::new() };
    let base = |time: Timestamp, severity: Severity, reason: &str, message: String| Happening {
        time,
        source: Source::Cluster,
        severity,
        reason: reason.to_owned(),
        message,
        count: 1,
        about: format!("Node {name}"),
        machine: Some(machine.clone()),
    };
    let mut told = Vec::new();
    if let Some(created) = &node.metadata.creation_timestamp {
        let message = format!("node {name} joined");
        told.push(base(created.0, Severity::Normal, "RegisteredNode", message));
    }
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|condition| condition.type_ == "Ready");
    let since = ready.and_then(|ready| Some((ready, ready.last_transition_time.as_ref()?.0)));
    if let Some((ready, since)) = since {
        let (severity, reason, words) = match ready.status.as_str() {
            "True" => (Severity::Normal, "NodeReady", "is ready"),
            "False" => (Severity::Warning, "NodeNotReady", "is not ready"),
            _ => (Severity::Warning, "NodeNotReady", "does not report"),
        };
        let why = ready.message.as_deref().filter(|_| ready.status != "True");
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        told.push(base(since, severity, reason, format!("node {name} {words}{why}")));
    }
    told
}

fn of_maintenance(maintenance: &MachineMaintenance) -> Vec<Happening> {
    let name = maintenance.metadata.name.clone().unwrap_or_default();
    let machine = maintenance.spec.machinelink.clone();
    let base = |time: Timestamp, source: Source, reason: &str, message: String| Happening {
        time,
        source,
        severity: Severity::Normal,
        reason: reason.to_owned(),
        message,
        count: 1,
        about: format!("MachineMaintenance {name}"),
        machine: Some(machine.clone()),
    };
    let Some(status) = &maintenance.status else { return Vec::new() };
    let mut told = Vec::new();
    for one in &status.reasons {
        let source = match one.kind {
            MaintenanceReasonKind::Event | MaintenanceReasonKind::Drift => Source::Cloud,
            MaintenanceReasonKind::Request | MaintenanceReasonKind::Outdated => Source::Cluster,
        };
        let description = one.description.as_ref().map(|words| format!(": {words}"));
        let message = format!("{}{}", reason::title(one), description.unwrap_or_default());
        told.push(base(one.since.0, source, &one.code, message));
    }
    for step in &status.timeline {
        let message = step.message.clone();
        told.push(base(step.time.0, Source::Machinist, step.phase.as_str(), message));
    }
    for past in &status.history {
        let action = past.action.map_or("the maintenance", |action| action.as_str());
        let outcome = past.outcome.as_str();
        let words = past.message.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
        let severity = match past.outcome {
            MaintenancePhase::Failed => Severity::Warning,
            _ => Severity::Normal,
        };
        let message = format!("{action} {}{words}", outcome.to_lowercase());
        let at = past.finished_at.0;
        told.push(Happening { severity, ..base(at, Source::Machinist, outcome, message) });
    }
    told
}
