//! Once quiet, is every maintenance over or said to wait for something, and is nothing of it left?

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    MaintenancePhase, MaintenanceReasonState,
    names::{annotation, maintenance_reason as reason},
};
use machinist_testbed::cloud::model::ScheduledEvent;
use serde_json::Value;

use super::{Record, is_control_plane, later};
use crate::{
    api_server::{KindRef, ObjectRef, value_at},
    invariants::{Judge, truth::MachineTruth},
};

/// What only people, or a day that is far away, can change.
const LEFT_TO_OTHERS: [&str; 8] = [
    reason::APPROVAL_MISSING,
    reason::CONTROL_PLANE_REPORT_ONLY,
    reason::NO_ACTION,
    reason::LEFT_TO_PROVIDER,
    reason::NO_WINDOW,
    reason::WINDOW_TOO_SHORT,
    reason::DO_NOT_DISRUPT,
    reason::MACHINE_NOT_FOUND,
];
/// Work that begins later than this is left to its time.
const FAR: SignedDuration = SignedDuration::from_hours(2);
/// How long after its time a plan is carried out, or is another one.
const SOON: SignedDuration = SignedDuration::from_mins(10);

type Open = Vec<(&'static str, String, String)>;

impl Judge {
    /// L9, L10 and S22, once nothing fails any more.
    pub(in crate::invariants) fn unsettled_maintenance(
        &self,
        events: &[ScheduledEvent],
        now: Timestamp,
    ) -> Open {
        let mut open = Open::new();
        for record in self.maintenance.records.values() {
            if let Some(words) = self.open_record(record, now) {
                open.push(("L9", record.machine().to_owned(), words));
            }
        }
        for event in events {
            let machine = self.machine_of_instance(&event.instance_id);
            let Some(machine) = machine.filter(|one| one.deleting_since.is_none()) else {
                continue;
            };
            let words = format!("event {} is neither dealt with nor over", event.event_id);
            open.push(("L9", machine.name.clone(), words));
        }
        self.left_on_objects(&mut open);
        open
    }

    fn open_record(&self, record: &Record, now: Timestamp) -> Option<String> {
        let status = record.object.status.clone().unwrap_or_default();
        if record.phase.is_under_way() {
            let waits = status.plan.as_ref().map(|plan| &plan.waits_on);
            return Some(format!("is {} and waits on {waits:?}", record.phase.as_str()));
        }
        let plan = status.plan.unwrap_or_default();
        let policy = plan.policy.as_ref().and_then(|name| self.maintenance.policies.get(name));
        let is_needed =
            status.reasons.iter().any(|one| one.state == MaintenanceReasonState::Active);
        let is_over = record.phase.is_over();
        if is_over && !(is_needed && record.phase == MaintenancePhase::Failed) {
            // A reason that still holds keeps its record.
            let removed = policy.and_then(|policy| policy.retention());
            let removed = removed.filter(|_| !is_needed).zip(status.finished_at.as_ref());
            return removed
                .is_some_and(|(keep, at)| later(at.0, keep) < later(now, FAR))
                .then(|| "is over, and its record is to be removed".to_owned());
        }
        // What a person asked for a Machine that is gone says so.
        let is_there = self.machines.values().any(|one| one.name == record.machine());
        if !is_there && status.message.is_some() {
            return None;
        }
        let is_said = is_over || !plan.waits_on.is_empty();
        // Two members can spare none.
        let is_too_small = self.machines.values().filter(|one| is_control_plane(one)).count() < 3;
        let is_left = plan.waits_on.iter().any(|wait| {
            LEFT_TO_OTHERS.contains(&&*wait.reason)
                || is_too_small && wait.reason == reason::CONTROL_PLANE_NOT_READY
        });
        if is_left || is_said && self.is_held_up(record) {
            return None;
        }
        match &plan.start {
            Some(start) if start.0 > later(now, FAR) => None,
            Some(start) => {
                let late = if later(start.0, SOON) < now { ", and that is over" } else { "" };
                Some(format!("is {} and to begin at {}{late}", record.phase.as_str(), start.0))
            }
            None => {
                let waits = &plan.waits_on;
                Some(format!("is {} without a time, and waits on {waits:?}", record.phase.as_str()))
            }
        }
    }

    /// Whether something is out of work for good that its budgets count, or that it is about itself: what
    /// is left to people keeps its place, and that is said.
    fn is_held_up(&self, record: &Record) -> bool {
        // Whether that one may stay so is judged by other promises.
        let is_broken = |one: &&MachineTruth| one.broken_since.is_some();
        self.machines.values().filter(is_broken).any(|broken| {
            let target = self.machines.values().find(|one| one.name == record.machine());
            let policy = target.map(|target| self.policy_for(target)).unwrap_or_default();
            let is_near = broken.name == record.machine()
                || target.is_some_and(|one| one.owner.is_some() && one.owner == broken.owner)
                || target.is_some_and(is_control_plane) && is_control_plane(broken);
            is_near || policy.of_zone().is_some() || policy.of_cluster().is_some()
        })
    }

    /// L10 and S22: nothing of a maintenance is left where none is under way.
    fn left_on_objects(&self, open: &mut Open) {
        let is_over = |uid: &str| {
            let record = self.maintenance.records.get(uid);
            record.is_none_or(|record| !record.phase.is_under_way())
        };
        for set in self.stored("machine.openshift.io", "machinesets") {
            if annotation_of(&set, annotation::SURGE).is_some() {
                let words = format!("pool {} still has a surplus", set.name());
                open.push(("L10", String::new(), words));
            }
        }
        for node in self.stored("", "nodes") {
            let name = node.name();
            if annotation_of(&node, annotation::CORDONED_FOR).is_some_and(|uid| is_over(&uid)) {
                let words = format!("node {name} is still cordoned for a maintenance");
                open.push(("S22", String::new(), words));
            }
            if annotation_of(&node, annotation::PROTECTED_FOR).is_some_and(|uid| is_over(&uid)) {
                let words = format!("node {name} is still kept from the autoscaler");
                open.push(("L10", String::new(), words));
            }
            let machine = self.machine_of_node(name).and_then(|uid| self.machines.get(&uid));
            let stays = machine.filter(|machine| machine.deleting_since.is_none());
            let is_ours = self.maintenance.cordons.get(node.uid()) == Some(&true);
            if let Some(machine) = stays.filter(|_| is_ours)
                && self.maintenance.under_way(&machine.uid).is_none()
            {
                let words = format!("node {name} is cordoned by us, and nothing is done to it");
                open.push(("S22", machine.name.clone(), words));
            }
        }
        for machine in self.stored("machine.openshift.io", "machines") {
            let name = machine.name().to_owned();
            let hold = annotation_of(&machine, annotation::HOLD);
            let is_held = hold.is_some_and(|value| {
                self.maintenance.records.keys().any(|uid| value.contains(uid) && is_over(uid))
            });
            let marked = annotation_of(&machine, annotation::DELETE_MACHINE);
            let is_marked = marked.is_some_and(|value| {
                self.maintenance.records.contains_key(&value) && is_over(&value)
            });
            if (is_held || is_marked) && !machine.is_being_deleted() {
                open.push(("L10", name, "still has the mark of a maintenance".to_owned()));
            }
        }
    }

    pub(in crate::invariants) fn stored(&self, group: &str, plural: &str) -> Vec<ObjectRef> {
        let kind = KindRef::find(group, plural);
        self.server
            .as_ref()
            .zip(kind)
            .map(|(server, kind)| server.objects(kind))
            .unwrap_or_default()
    }
}

fn annotation_of(object: &ObjectRef, key: &str) -> Option<String> {
    let all = value_at(object.value(), "/metadata/annotations")?;
    all.get(key).and_then(Value::as_str).map(str::to_owned)
}
