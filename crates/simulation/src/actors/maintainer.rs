//! What do people and providers do about maintenance? Events are announced, moved and called off;
//! people ask, approve, pause, cordon and change their minds; an autoscaler scales meanwhile.

use std::time::Duration;

use jiff::Timestamp;
use machinist_api::names::{annotation, maintenance_of};
use machinist_testbed::cloud::model::{
    EventCode, EventPatch, EventState, InstanceState, NewEvent, ScheduledEvent,
};
use serde_json::{Value, json};

use super::{Scene, later};
use crate::{
    api_server::{ObjectRef, Subresource, text_at, value_at},
    chance::Chance,
    faults::FaultKind,
    template,
};

const USER: &str = "user";
const MACHINES: (&str, &str) = ("machine.openshift.io", "machines");
const SETS: (&str, &str) = ("machine.openshift.io", "machinesets");
const NODES: (&str, &str) = ("", "nodes");
const MAINTENANCES: (&str, &str) =
    ("machinemaintenance.managed.openshift.io", "machinemaintenances");
const POLICIES: (&str, &str) = ("machinist.dev", "maintenancepolicies");

/// Something that is done about maintenance.
#[derive(Clone, Debug)]
pub enum MaintenanceAct {
    /// The provider announces an event on one of the instances that run.
    Announce {
        code: EventCode,
        after: Duration,
        /// For how much longer it may be moved.
        movable: Option<Duration>,
    },
    /// The provider moves one of its events.
    Move {
        by: Duration,
    },
    /// The provider calls one of its events off, or says that it is done.
    End {
        state: EventState,
    },
    /// The provider forgets one of its events.
    Forget,
    /// A person asks on a Machine.
    Request {
        action: Option<&'static str>,
    },
    /// A person asks by an object.
    RequestByObject {
        action: Option<&'static str>,
    },
    /// A person takes a request back, or deletes an object.
    Withdraw,
    Approve,
    /// Pauses everything, or one policy, or goes on.
    Pause {
        is_paused: bool,
        policy: Option<String>,
    },
    /// Somebody else takes a Node out of work, or puts it back.
    Cordon {
        is_cordoned: bool,
    },
    /// An autoscaler changes a pool by so many.
    Autoscale {
        set: String,
        by: i64,
    },
}

impl MaintenanceAct {
    pub(super) fn play(&self, scene: &Scene, chance: &mut Chance) {
        match self {
            Self::Announce { code, after, movable } => {
                announce(scene, chance, None, *code, *after, *movable);
            }
            Self::Move { by } => change_event(scene, chance, |event| EventPatch {
                not_before: Some(later(event.not_before, *by)),
                not_before_deadline: event.not_before_deadline.map(|at| later(at, *by)),
                ..EventPatch::default()
            }),
            Self::End { state } => change_event(scene, chance, |_| EventPatch {
                state: Some(*state),
                ..EventPatch::default()
            }),
            Self::Forget => {
                let Some(event) = any_event(scene, chance) else { return };
                scene.hub.note("", format!("provider: forgets event {}", event.event_id));
                scene.cloud.change(|model, now| model.delete_event(now, &event.event_id).err());
            }
            Self::Request { action } => {
                let names = scene.hub.judge().living_machines();
                if let Some(name) = chance.pick(&names) {
                    let value = action.unwrap_or("true");
                    annotate(scene, MACHINES, name, annotation::MAINTENANCE_REQUESTED, Some(value));
                }
            }
            Self::RequestByObject { action } => {
                let names = scene.hub.judge().living_machines();
                if let Some(name) = chance.pick(&names) {
                    request_by_object(scene, name, *action);
                }
            }
            Self::Withdraw => withdraw(scene, chance),
            Self::Approve => {
                let waiting: Vec<ObjectRef> = scene
                    .objects(MAINTENANCES.0, MAINTENANCES.1)
                    .into_iter()
                    .filter(|one| {
                        matches!(text_at(one.value(), "/status/phase"), "Pending" | "Scheduled")
                    })
                    .collect();
                if let Some(one) = chance.pick(&waiting) {
                    let key = annotation::MAINTENANCE_APPROVED;
                    annotate(scene, MAINTENANCES, one.name(), key, Some("true"));
                }
            }
            Self::Pause { is_paused, policy } => pause(scene, *is_paused, policy.as_deref()),
            Self::Cordon { is_cordoned } => cordon(scene, chance, *is_cordoned),
            Self::Autoscale { set, by } => autoscale(scene, set, *by),
        }
    }
}

/// Announces an event on the instance of a Machine, or on any; whether there was one.
pub(crate) fn announce(
    scene: &Scene,
    chance: &mut Chance,
    machine: Option<&str>,
    code: EventCode,
    after: Duration,
    movable: Option<Duration>,
) -> bool {
    let facts = scene.cloud.facts();
    let candidates: Vec<(String, String)> = facts
        .iter()
        .filter(|one| one.state == InstanceState::Running)
        .map(|one| (one.id.clone(), one.tags.get("Name").cloned().unwrap_or_default()))
        .filter(|(_, name)| machine.is_none_or(|wanted| wanted == name))
        .collect();
    let Some((id, name)) = chance.pick(&candidates).cloned() else { return false };
    scene.hub.count_fault(FaultKind::F57, Some(&name));
    let now = scene.hub.clock.now();
    let not_before = whole_seconds(later(now, after));
    let new = NewEvent {
        instance_id: id.clone(),
        code,
        description: None,
        not_before,
        not_after: Some(later(not_before, Duration::from_secs(3600))),
        not_before_deadline: movable.map(|by| later(not_before, by)),
    };
    let words = format!("provider: announces {} of {id} for {not_before}", code.name());
    scene.hub.note(&name, words);
    let refused = scene.cloud.change(|model, now| model.schedule_event(now, new).err());
    refused.is_none()
}

fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// The events of instances that live and are not over.
pub(crate) fn active_events(scene: &Scene) -> Vec<ScheduledEvent> {
    let model = scene.cloud.model();
    model.events().filter(|event| event.state == EventState::Active).cloned().collect()
}

fn any_event(scene: &Scene, chance: &mut Chance) -> Option<ScheduledEvent> {
    chance.pick(&active_events(scene)).cloned()
}

fn change_event(
    scene: &Scene,
    chance: &mut Chance,
    change: impl FnOnce(&ScheduledEvent) -> EventPatch,
) {
    let Some(event) = any_event(scene, chance) else { return };
    patch_event(scene, &event, change(&event));
}

pub(crate) fn patch_event(scene: &Scene, event: &ScheduledEvent, patch: EventPatch) {
    let words = match (patch.state, patch.not_before) {
        (Some(state), _) => format!("says that event {} is {state:?}", event.event_id),
        (None, Some(to)) => format!("moves event {} to {to}", event.event_id),
        (None, None) => format!("changes event {}", event.event_id),
    };
    scene.hub.note("", format!("provider: {words}"));
    scene.cloud.change(|model, now| model.patch_event(now, &event.event_id, patch).err());
}

pub(crate) fn request_by_object(scene: &Scene, machine: &str, action: Option<&str>) {
    let object = json!({
        "metadata": { "name": maintenance_of(machine), "namespace": template::NAMESPACE },
        "spec": {
            "machinelink": machine, "machineid": "", "maintenancescheduled": false,
            "action": action,
        },
    });
    scene.create(USER, MAINTENANCES.0, MAINTENANCES.1, object);
}

fn withdraw(scene: &Scene, chance: &mut Chance) {
    let asked: Vec<ObjectRef> = scene
        .objects(MACHINES.0, MACHINES.1)
        .into_iter()
        .filter(|machine| has_annotation(machine, annotation::MAINTENANCE_REQUESTED))
        .collect();
    let objects = scene.objects(MAINTENANCES.0, MAINTENANCES.1);
    match chance.pick(&asked) {
        Some(machine) if chance.hits(0.5) || objects.is_empty() => {
            let key = annotation::MAINTENANCE_REQUESTED;
            annotate(scene, MACHINES, machine.name(), key, None);
        }
        _ => {
            if let Some(object) = chance.pick(&objects) {
                let at = (object.namespace(), object.name());
                scene.delete(USER, MAINTENANCES, at, Value::Null);
            }
        }
    }
}

pub(crate) fn pause(scene: &Scene, is_paused: bool, policy: Option<&str>) {
    let none = Subresource::None;
    match policy {
        Some(policy) => {
            let body = json!({ "spec": { "paused": is_paused.then_some(true) } });
            scene.patch(USER, none, POLICIES, ("", policy), body);
        }
        None => {
            let value = is_paused.then_some("a person wants it");
            let annotations = json!({ annotation::MAINTENANCE_PAUSED: value });
            let body = json!({ "metadata": { "annotations": annotations } });
            scene.patch(USER, none, ("", "namespaces"), ("", template::NAMESPACE), body);
        }
    }
}

/// Nobody touches a cordon that maintenance has made.
fn cordon(scene: &Scene, chance: &mut Chance, is_cordoned: bool) {
    let found: Vec<ObjectRef> = scene
        .objects(NODES.0, NODES.1)
        .into_iter()
        .filter(|node| is_unschedulable(node) != is_cordoned)
        .filter(|node| !has_annotation(node, annotation::CORDONED_FOR))
        .collect();
    if let Some(node) = chance.pick(&found) {
        let body = json!({ "spec": { "unschedulable": is_cordoned.then_some(true) } });
        scene.patch("stranger", Subresource::None, NODES, ("", node.name()), body);
    }
}

fn autoscale(scene: &Scene, set: &str, by: i64) {
    let sets = scene.objects(SETS.0, SETS.1);
    let Some(found) = sets.iter().find(|one| one.name() == set) else { return };
    let size = value_at(found.value(), "/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let body = json!({ "spec": { "replicas": (size + by).clamp(0, 8) } });
    let at = (template::NAMESPACE, set);
    scene.patch("autoscaler", Subresource::None, SETS, at, body);
}

/// Ends what only people can end: pauses, cordons of others, and events that are far away. Windows and
/// freezes end as well: what is planned by them changes with the hour, and never comes to rest.
pub(crate) fn calm_down(scene: &Scene, far: Duration) {
    pause(scene, false, None);
    for policy in scene.objects(POLICIES.0, POLICIES.1) {
        if value_at(policy.value(), "/spec/paused").is_some() {
            pause(scene, false, Some(policy.name()));
        }
        let has = |field| value_at(policy.value(), field).is_some();
        if has("/spec/windows") || has("/spec/freezes") {
            let body = json!({ "spec": { "windows": null, "freezes": null } });
            scene.patch(USER, Subresource::None, POLICIES, ("", policy.name()), body);
        }
    }
    for node in scene.objects(NODES.0, NODES.1) {
        if is_unschedulable(&node) && scene.hub.judge().is_cordoned_by_others(node.uid()) {
            let body = json!({ "spec": { "unschedulable": null } });
            scene.patch("stranger", Subresource::None, NODES, ("", node.name()), body);
        }
    }
    let end = later(scene.hub.clock.now(), far);
    for event in active_events(scene).iter().filter(|event| event.not_before > end) {
        let state = Some(EventState::Canceled);
        patch_event(scene, event, EventPatch { state, ..EventPatch::default() });
    }
}

fn annotate(scene: &Scene, kind: (&str, &str), name: &str, key: &str, value: Option<&str>) {
    let body = json!({ "metadata": { "annotations": { key: value } } });
    scene.patch(USER, Subresource::None, kind, (template::NAMESPACE, name), body);
}

fn has_annotation(object: &ObjectRef, key: &str) -> bool {
    let all = value_at(object.value(), "/metadata/annotations");
    all.is_some_and(|all| all.get(key).is_some())
}

fn is_unschedulable(node: &ObjectRef) -> bool {
    value_at(node.value(), "/spec/unschedulable").and_then(Value::as_bool) == Some(true)
}
