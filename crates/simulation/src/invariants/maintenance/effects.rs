//! Is what is done for a maintenance allowed by its record, and by how the rest is doing? Cordons,
//! evictions, the size of a pool, deletions, and what the cloud is asked for.

use jiff::{SignedDuration, Timestamp};
use machinist_api::{CloudEffectKind, MaintenanceAction, MaintenancePhase, names::annotation};
use machinist_core::drain::decide::must_go;
use serde_json::Value;

use super::{is_control_plane, later};
use crate::{
    api_server::{Commit, Object, value_at},
    invariants::{CloudCall, Judge, condition_of, truth::MachineTruth},
};

/// Times of the record are whole seconds.
const ROUNDING: SignedDuration = SignedDuration::from_secs(2);

fn is_cordoned(object: Option<&Object>) -> bool {
    let flag = object.and_then(|object| value_at(object.value(), "/spec/unschedulable"));
    flag.and_then(Value::as_bool) == Some(true)
}

fn text<'a>(object: &'a Object, annotation: &str) -> Option<&'a str> {
    let all = value_at(object.value(), "/metadata/annotations")?;
    all.get(annotation)?.as_str()
}

impl Judge {
    /// S22: who cordons and uncordons a Node.
    pub(in crate::invariants) fn cordon_changed(&mut self, commit: &Commit, by_operator: bool) {
        let uid = commit.object().uid().to_owned();
        let (before, after) =
            (is_cordoned(commit.before.as_deref()), is_cordoned(commit.after.as_deref()));
        match (before, after) {
            (false, true) => {
                self.maintenance.cordons.insert(uid, by_operator);
            }
            (true, false) => {
                let was_ours = self.maintenance.cordons.remove(&uid);
                let stays = commit.after.is_some();
                if !by_operator {
                    let name = commit.object().name().to_owned();
                    self.maintenance.uncordoned.insert(name, commit.time);
                }
                if by_operator && stays && was_ours == Some(false) {
                    let words = format!(
                        "node {} is uncordoned, and others cordoned it",
                        commit.object().name()
                    );
                    let machine = self.machine_of_node(commit.object().name());
                    let name =
                        machine.and_then(|uid| self.machines.get(&uid)).map(|it| it.name.clone());
                    self.find("S22", &name.unwrap_or_default(), commit.time, words);
                }
            }
            _ => {}
        }
    }

    /// Whether a Node that is cordoned was not cordoned by an operator.
    #[must_use]
    pub fn is_cordoned_by_others(&self, node_uid: &str) -> bool {
        self.maintenance.cordons.get(node_uid) == Some(&false)
    }

    /// Whether others made a Node schedulable so lately that pods could come unseen.
    pub(in crate::invariants) fn is_just_uncordoned(&self, node: &str, now: Timestamp) -> bool {
        let at = self.maintenance.uncordoned.get(node);
        at.is_some_and(|at| !self.must_be_seen(*at, now))
    }

    /// Whether a Node may be emptied though its Machine stays: for a maintenance that says so.
    pub(in crate::invariants) fn is_drained_for_maintenance(&self, machine: &MachineTruth) -> bool {
        let record = self.maintenance.under_way(&machine.uid);
        record.is_some_and(|record| record.phase == MaintenancePhase::Draining)
    }

    /// S11 and S10: pods are removed whatever protects them only by a maintenance that may, and after
    /// the deadline of its drain.
    pub(in crate::invariants) fn may_force(&self, machine: &MachineTruth, now: Timestamp) -> bool {
        let Some(record) = self.maintenance.under_way(&machine.uid) else { return false };
        let drain = record.work.drain.as_ref().filter(|drain| drain.forced);
        drain.is_some_and(|drain| {
            self.allowance.clocks_jump || later(drain.deadline.0, -ROUNDING) <= now
        })
    }

    /// S13 and S18: a machine is taken out of work by a maintenance. The others are as they were seen.
    pub(in crate::invariants) fn check_taken_out(
        &mut self,
        machine: &MachineTruth,
        how: &str,
        now: Timestamp,
    ) {
        self.check_quorum(machine, how, now);
        self.check_surplus_ready(machine, how, now);
    }

    /// S13: enough members are left, and all others are well as far as a view must show it.
    fn check_quorum(&mut self, machine: &MachineTruth, how: &str, now: Timestamp) {
        if !is_control_plane(machine) {
            return;
        }
        let others: Vec<MachineTruth> = self
            .machines
            .values()
            .filter(|one| is_control_plane(one) && one.uid != machine.uid)
            .cloned()
            .collect();
        for other in &others {
            let is_taken = self.maintenance.under_way(&other.uid).is_some();
            if is_taken {
                let words = format!("{how}, and {} is under way as well", other.name);
                self.find("S13", &machine.name, now, words);
            }
        }
        if self.allowance.view_lag.is_none() {
            return;
        }
        let bad: Vec<String> = others
            .iter()
            .filter(|other| self.is_seen_broken(other, now))
            .map(|other| other.name.clone())
            .collect();
        if !bad.is_empty() {
            let words = format!("{how}, and {} are not well", bad.join(", "));
            self.find("S13", &machine.name, now, words);
        }
    }

    /// S18: where there is to be a surplus first, it is there.
    fn check_surplus_ready(&mut self, machine: &MachineTruth, how: &str, now: Timestamp) {
        let Some(record) = self.maintenance.under_way(&machine.uid) else { return };
        let has_surplus =
            record.action() == MaintenanceAction::Replace && record.work.surge.is_some();
        let policy = self.policy_for(machine);
        let Some(since) = self.seen_since(now) else { return };
        let Some(set) = machine.owner.as_ref().and_then(|owner| self.sets.get(owner)) else {
            return;
        };
        if !has_surplus || policy.goes_on_without_surplus() || set.deleting_since.is_some() {
            return;
        }
        let (least, _) = set.wanted_since(Some(since));
        let wanted = least.saturating_sub(set.surplus());
        // A new one works with its Node, whoever has yet to write down that it runs.
        let is_new = |one: &MachineTruth| one.phase != "Failed" && one.deleting_since.is_none();
        let works = |one: &&MachineTruth| {
            !self.is_seen_broken(one, now) || is_new(one) && self.has_ready_node(one)
        };
        let of_pool = |one: &&MachineTruth| one.owner == machine.owner && one.uid != machine.uid;
        let ready = self.machines.values().filter(of_pool).filter(works).count();
        if ready < wanted {
            let words = format!("{how}, and pool {} keeps {ready} of {wanted}", set.name);
            self.find("S18", &machine.name, now, words);
        }
    }

    /// S17: an operator changes the size of a pool only together with the mark of its surplus, by the
    /// machine that the mark is for.
    pub(in crate::invariants) fn check_resize(&mut self, commit: &Commit) {
        let (Some(before), Some(after)) = (&commit.before, &commit.after) else { return };
        let size = |object: &Object| {
            value_at(object.value(), "/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
        };
        let marks = |object: &Object| -> Vec<String> {
            let text = text(object, annotation::SURGE).unwrap_or_default();
            let uids = text.split_once("for=").map(|(_, uids)| uids).unwrap_or_default();
            uids.split(',').filter(|uid| !uid.is_empty()).map(str::to_owned).collect()
        };
        let (was, is) = (size(before), size(after));
        let (had, has) = (marks(before), marks(after));
        let now = commit.time;
        let pool = after.name().to_owned();
        for uid in has.iter().filter(|uid| !had.contains(uid)) {
            let record = self.maintenance.records.get(uid);
            if record.is_none_or(|record| record.phase != MaintenancePhase::Surging) {
                let words = format!("pool {pool} grows for {uid}, which does not ask for it");
                self.find("S17", "", now, words);
            }
        }
        let grown = i64::try_from(has.len()).unwrap_or(0) - i64::try_from(had.len()).unwrap_or(0);
        let is_right = match is - was {
            // Others took the surplus away already.
            0 => grown <= 0,
            by => by == grown && by.abs() == 1,
        };
        if !is_right {
            let words = format!("pool {pool} goes from {was} to {is}, and its surplus by {grown}");
            self.find("S17", "", now, words);
        }
        for uid in had.iter().filter(|uid| !has.contains(uid)) {
            let Some(record) = self.maintenance.records.get(uid).cloned() else { continue };
            if record.phase == MaintenancePhase::Undoing {
                self.reached.push("a surplus is taken back");
            }
            let target = record.work.machine_uid.as_deref().unwrap_or_default();
            let target = self.machines.get(target).cloned();
            let is_taken_out = record.phase == MaintenancePhase::Acting && is < was;
            if let Some(target) = target.filter(|one| is_taken_out && one.deleting_since.is_none())
            {
                self.check_taken_out(&target, "its pool is told to delete it", now);
            }
        }
    }

    /// S19: what a maintenance deletes is the machine that it is about, or the one made for it. Says
    /// whether the deletion is one of those.
    pub(in crate::invariants) fn check_maintained_deletion(
        &mut self,
        machine: &MachineTruth,
        now: Timestamp,
    ) -> bool {
        let record = self.maintenance.under_way(&machine.uid).cloned();
        if let Some(record) = &record
            && record.action() == MaintenanceAction::Replace
            && record.phase == MaintenancePhase::Acting
            && record.work.surge.is_none()
        {
            self.check_taken_out(machine, "it is deleted to be replaced", now);
            return true;
        }
        if machine.replaces_for.as_ref().is_some_and(|uid| {
            let record = self.maintenance.records.get(uid);
            record.is_some_and(|record| record.phase == MaintenancePhase::Undoing)
        }) {
            return true;
        }
        let Some(since) = self.seen_since(now) else { return false };
        let others = self.machines.values().filter(|one| {
            one.owner.is_some()
                && one.owner == machine.owner
                && one.uid != machine.uid
                && one.deleting_since.is_none()
        });
        let others: Vec<&MachineTruth> = others.collect();
        let meant = others.iter().filter(|one| one.marked_since.is_some_and(|at| at < since));
        let meant: Vec<&str> = meant.map(|one| one.name.as_str()).collect();
        // Several go at once and in no order: a marked one may be among those that follow.
        let set = machine.owner.as_ref().and_then(|owner| self.sets.get(owner));
        let least = set.map_or(0, |set| set.wanted_since(Some(since)).0);
        let may_follow = others.len().saturating_sub(least);
        let is_better = machine.marked_since.is_some()
            || machine.is_adrift
            || self.is_seen_broken(machine, now)
            || machine.broken_since.is_some();
        if meant.len() > may_follow && !is_better {
            let words = format!("deleted, and {} was marked for it", meant.join(", "));
            self.find("S19", &machine.name, now, words);
        }
        false
    }

    /// S8, S13 and S15: what the cloud is asked to do to an instance is what the record says.
    pub(in crate::invariants) fn check_asked(&mut self, call: &CloudCall, now: Timestamp) {
        let wanted = match call.action {
            "StopInstances" => CloudEffectKind::Stop,
            "RebootInstances" => CloudEffectKind::Reboot,
            _ => return,
        };
        let Some(id) = call.ids().first().cloned() else { return };
        let Some(machine) = self.machine_of_instance(&id).cloned() else { return };
        let record = self.maintenance.under_way(&machine.uid);
        let effect = record.and_then(|record| record.work.effect.as_ref());
        if effect.is_none_or(|effect| effect.kind != wanted) {
            let words = format!("{call} is sent, and no maintenance of it says so");
            self.find("S15", &machine.name, now, words);
            return;
        }
        self.check_taken_out(&machine, call.action, now);
        self.check_emptied(&machine, &id, call.action, now);
    }

    /// S8: nothing that must go is left on the Node, unless somebody made it schedulable again.
    fn check_emptied(&mut self, machine: &MachineTruth, id: &str, how: &str, now: Timestamp) {
        let Some(node) = self.node_of_instance(id) else { return };
        let is_reached = condition_of(node.value(), "Ready")
            .is_some_and(|it| it.get("status").and_then(Value::as_str) != Some("Unknown"));
        if !is_cordoned(Some(&node)) || !is_reached {
            return;
        }
        let left: Vec<String> = self
            .pods_on_instance(id)
            .into_iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none() && must_go(pod))
            .filter_map(|pod| pod.metadata.name)
            .collect();
        if !left.is_empty() {
            let words = format!("{how} is sent under pods {}", left.join(", "));
            self.find("S8", &machine.name, now, words);
        }
    }
}
