//! Does maintenance do what it promises? The fixtures that its tests share.

mod actions;
mod durations;
mod executing;
mod executing_properties;
mod failing;
mod gathering;
mod outdated;
mod planning;
mod planning_late;
mod planning_properties;
mod policies;
mod reasons;
mod surge;
mod upgrades;
mod world;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{MaintenancePolicy, MaintenanceReason};
use serde_json::{Value, json};

use super::{
    action::{Replacement, Traits},
    durations::Durations,
    managed_upgrade::Legacy,
    note::Note,
    plan::{
        ClusterState, ControlPlane, Finished, Fleet, FleetMachine, FleetPool, Home, Plan, plan,
    },
    policies::PolicySet,
    policy::Policy,
    reason::Need,
};

/// A Monday.
fn now() -> Timestamp {
    at("2026-11-02T10:00:00Z")
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

fn minutes(minutes: i64) -> SignedDuration {
    SignedDuration::from_mins(minutes)
}

fn after(duration: SignedDuration) -> Timestamp {
    now().checked_add(duration).unwrap()
}

fn policy_named(name: &str, spec: Value) -> MaintenancePolicy {
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

fn read_policy(spec: Value) -> Policy {
    super::policy::read(&policy_named("workers", spec)).unwrap()
}

/// An event of the provider, as it is recorded.
fn event(code: &str, id: &str, not_before: Option<Timestamp>) -> MaintenanceReason {
    serde_json::from_value(json!({
        "kind": "Event",
        "id": id,
        "code": code,
        "notBefore": not_before,
        "since": at("2026-11-01T00:00:00Z"),
        "state": "Active",
        "sources": ["API"],
    }))
    .unwrap()
}

fn request(id: &str) -> MaintenanceReason {
    serde_json::from_value(json!({
        "kind": "Request",
        "id": id,
        "code": "Requested",
        "since": at("2026-11-01T00:00:00Z"),
        "state": "Active",
    }))
    .unwrap()
}

/// A fleet that a test changes as it likes.
struct Scene {
    policies: PolicySet,
    durations: Durations,
    pools: BTreeMap<String, FleetPool<'static>>,
    cluster: ClusterState,
    machines: Vec<FleetMachine<'static>>,
    finished: Vec<Finished<'static>>,
    now: Timestamp,
}

impl Scene {
    fn new(spec: Value) -> Self {
        Self::with_policies(&[policy_named("workers", spec)])
    }

    fn with_policies(policies: &[MaintenancePolicy]) -> Self {
        Self {
            policies: PolicySet::read(policies, &Legacy::default()),
            durations: Durations::default(),
            pools: BTreeMap::new(),
            cluster: ClusterState {
                control_plane: ControlPlane { members: 3, problems: Vec::new() },
                ..ClusterState::default()
            },
            machines: Vec::new(),
            finished: Vec::new(),
            now: now(),
        }
    }

    /// A pool of healthy machines, `<pool>-0` and so on, in a zone.
    fn pool(mut self, name: &'static str, zone: &'static str, size: usize) -> Self {
        let pool = FleetPool { desired: size, zone: Some(zone.to_owned()), ..FleetPool::default() };
        self.pools.insert(name.to_owned(), pool);
        for number in 0..size {
            self.machines.push(FleetMachine {
                name: leak(&format!("{name}-{number}")),
                uid: leak(&format!("uid-{name}-{number}")),
                pool: Some(name),
                maker: Some(name),
                zone: Some(zone),
                role: Some("worker"),
                is_available: true,
                traits: Traits { replacement: Replacement::Pool, ..Traits::default() },
                ..FleetMachine::default()
            });
        }
        self
    }

    /// Puts a pool with its machines into a workload cluster.
    fn in_cluster(mut self, pool: &str, cluster: &'static str) -> Self {
        let home = Home::Workload(cluster);
        self.pools.get_mut(pool).unwrap().home = home;
        for machine in self.machines.iter_mut().filter(|machine| machine.pool == Some(pool)) {
            machine.home = home;
        }
        self
    }

    /// The members of the control plane, `master-0` and so on.
    fn control_plane(mut self, size: usize) -> Self {
        for number in 0..size {
            self.machines.push(FleetMachine {
                name: leak(&format!("master-{number}")),
                uid: leak(&format!("uid-master-{number}")),
                role: Some("master"),
                is_control_plane: true,
                is_available: true,
                traits: Traits { replacement: Replacement::Copy, ..Traits::default() },
                ..FleetMachine::default()
            });
        }
        self.cluster.control_plane.members = size;
        self
    }

    fn change(mut self, name: &str, change: impl FnOnce(&mut FleetMachine<'static>)) -> Self {
        let machine = self.machines.iter_mut().find(|machine| machine.name == name).unwrap();
        change(machine);
        self
    }

    fn needs(self, name: &str, reasons: &[MaintenanceReason]) -> Self {
        let policy = self.policies.get(Some("workers")).cloned().unwrap_or_default();
        let need = Need::of(reasons, &policy).unwrap();
        self.change(name, |machine| machine.need = Some(need))
    }

    /// An event of this code in so many hours.
    fn retires(self, name: &str, code: &str, in_hours: i64) -> Self {
        let id = format!("instance-event-{name}");
        self.needs(name, &[event(code, &id, Some(after(hours(in_hours))))])
    }

    fn plan(&self) -> Plan {
        let fleet = Fleet {
            machines: self.machines.clone(),
            pools: self.pools.iter().map(|(name, pool)| (name.as_str(), pool.clone())).collect(),
            finished: self.finished.clone(),
            policies: &self.policies,
            durations: &self.durations,
            cluster: self.cluster.clone(),
            notes: Vec::<Note>::new(),
        };
        plan(&fleet, self.now)
    }
}

/// Tests are short-lived, and a fleet borrows its names.
fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// Changes an object as a merge patch does.
fn patch(target: &mut Value, changes: &Value) {
    let Value::Object(changes) = changes else {
        *target = changes.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in changes {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            patch(&mut target[key], value);
        }
    }
}
