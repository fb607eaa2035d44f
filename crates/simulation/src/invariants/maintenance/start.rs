//! May work begin? The calendar, people's word, the budgets and the quorum, at the moment at which it is
//! stored that it begins.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{MaintenanceAction, MaintenancePhase};

use super::{Record, is_control_plane, later, policy::PolicyTruth};
use crate::invariants::{Judge, truth::MachineTruth};

/// Times of the record are whole seconds.
const ROUNDING: SignedDuration = SignedDuration::from_secs(2);

/// What has a budget.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    ControlPlane,
    Pool(String),
    Zone(String),
    Cluster,
}

impl Judge {
    /// S13, S15, S16, S21, S23: a maintenance is committed to.
    pub(super) fn check_start(&mut self, record: &Record, now: Timestamp) {
        let uid = record.work.machine_uid.clone().unwrap_or_default();
        let Some(machine) = self.machines.get(&uid).cloned() else {
            // It may go in this very moment.
            if !self.gone.contains_key(&uid) {
                let words = "work begins on a Machine that never was";
                self.find("S15", record.machine(), now, words);
            }
            return;
        };
        let policy = self.policy_for(&machine);
        self.check_calendar(record, &machine, &policy, now);
        self.check_people(record, &machine, &policy, now);
        self.check_places(record, &machine, &policy, now);
        self.check_pool_capacity(record, &machine, &policy, now);
    }

    /// S21. The time is that of the decision: what is stored may have been on its way.
    fn check_calendar(
        &mut self,
        record: &Record,
        machine: &MachineTruth,
        policy: &PolicyTruth,
        now: Timestamp,
    ) {
        if self.allowance.clocks_jump {
            return;
        }
        let at = record.work.started_at.as_ref().map_or(now, |time| time.0);
        let Some(refusal) = policy.calendar.refusal(at, least(record.action())) else { return };
        let plan = record.object.status.as_ref().and_then(|status| status.plan.as_ref());
        let has_deadline = plan.is_some_and(|plan| plan.deadline.is_some());
        if has_deadline && policy.overrules_calendar(record.is_approved()) {
            self.reached.push("work is done against the calendar");
            return;
        }
        let words = format!("{} begins, and {refusal}", record.action().as_str());
        self.find("S21", &machine.name, now, words);
    }

    /// S13 and S23: policy and people allow it.
    fn check_people(
        &mut self,
        record: &Record,
        machine: &MachineTruth,
        policy: &PolicyTruth,
        now: Timestamp,
    ) {
        if is_control_plane(machine) && !policy.allows_control_plane() {
            let words = "work begins on the control plane, which is only reported on";
            self.find("S13", &machine.name, now, words);
        }
        if policy.wants_approval() && !record.is_approved() {
            self.find("S21", &machine.name, now, "work begins that nobody approved");
        }
        let pauses = [self.maintenance.paused_since, policy.paused_since];
        for since in pauses.into_iter().flatten() {
            if self.must_be_seen(since, now) {
                let words = format!("work begins, and maintenance is paused since {since}");
                self.find("S23", &machine.name, now, words);
            }
        }
    }

    /// S15 and S16: no place is taken twice, whoever began the rest. What another operator stored is
    /// known to this one, however late its watches are.
    fn check_places(
        &mut self,
        record: &Record,
        machine: &MachineTruth,
        policy: &PolicyTruth,
        now: Timestamp,
    ) {
        let mut taken: BTreeMap<Place, (usize, usize, Vec<String>)> = BTreeMap::new();
        let mut take = |place: Place, limit: Option<usize>, name: &str| {
            let (count, most, who) = taken.entry(place).or_insert((0, usize::MAX, Vec::new()));
            *count += 1;
            *most = (*most).min(limit.unwrap_or(usize::MAX));
            who.push(name.to_owned());
        };
        for other in self.maintenance.records.values() {
            let uid = other.work.machine_uid.as_deref().unwrap_or_default();
            let is_this = other.uid() == record.uid();
            let target = self.machines.get(uid);
            if let Some(target) = target.filter(|_| other.phase.is_under_way()) {
                let of = if is_this { policy.clone() } else { self.policy_for(target) };
                for (place, limit) in self.places(target, other, &of) {
                    take(place, limit, &target.name);
                }
            } else if let Some(target) =
                target.filter(|_| !is_this && self.is_cooling(other, record))
            {
                for (place, _) in self.places(target, other, &PolicyTruth::default()) {
                    take(place, None, &target.name);
                }
            }
        }
        let own = self.places(machine, record, policy);
        for (place, (count, most, who)) in taken {
            if count > most && own.iter().any(|(one, _)| *one == place) {
                let id = if place == Place::ControlPlane { "S13" } else { "S15" };
                let words = format!(
                    "work begins as number {count} of {place:?}, and {most} may be out of work at \
                     once ({})",
                    who.join(", ")
                );
                self.find(id, &machine.name, now, words);
            }
        }
    }

    /// S16: what was finished a moment ago keeps its place for the cool-down.
    fn is_cooling(&self, other: &Record, record: &Record) -> bool {
        let status = other.object.status.as_ref();
        let finished = status.and_then(|status| status.finished_at.as_ref());
        let started = record.work.started_at.as_ref();
        let name = status.and_then(|status| status.plan.as_ref()?.policy.clone());
        let policy = name.and_then(|name| self.maintenance.policies.get(&name));
        let (Some(finished), Some(started), Some(policy)) = (finished, started, policy) else {
            return false;
        };
        let cool = policy.cool_down();
        other.phase == MaintenancePhase::Succeeded
            && !self.allowance.clocks_jump
            && !cool.is_zero()
            && later(finished.0, cool) > later(started.0, ROUNDING)
    }

    fn places(
        &self,
        machine: &MachineTruth,
        record: &Record,
        policy: &PolicyTruth,
    ) -> Vec<(Place, Option<usize>)> {
        let mut places = vec![(Place::Cluster, policy.of_cluster())];
        if is_control_plane(machine) {
            places.push((Place::ControlPlane, Some(1)));
        }
        if let Some(zone) = &record.work.zone {
            places.push((Place::Zone(zone.clone()), policy.of_zone()));
        }
        if let Some(set) = machine.owner.as_ref().and_then(|owner| self.sets.get(owner)) {
            let (_, most) = set.wanted_since(None);
            places.push((Place::Pool(set.name.clone()), Some(policy.of_pool(most))));
        }
        places
    }

    /// S15, with what is broken or missing for whatever reason: as far as a view must show it.
    fn check_pool_capacity(
        &mut self,
        record: &Record,
        machine: &MachineTruth,
        policy: &PolicyTruth,
        now: Timestamp,
    ) {
        let Some(since) = self.seen_since(now) else { return };
        let Some(set) = machine.owner.as_ref().and_then(|owner| self.sets.get(owner)) else {
            return;
        };
        let (least, most) = set.wanted_since(Some(since));
        let least = least.saturating_sub(set.surplus());
        let others = self.machines.values().filter(|one| {
            one.owner == machine.owner
                && one.uid != machine.uid
                && !self.is_seen_broken(one, now)
                && self.maintenance.under_way(&one.uid).is_none()
        });
        let others = others.count();
        let limit = policy.of_pool(most);
        let out = least.saturating_sub(others);
        if out > limit {
            let words = format!(
                "{} begins with {others} others of {least} in pool {}, and {limit} may be out of \
                 work",
                record.action().as_str(),
                set.name
            );
            self.find("S15", &machine.name, now, words);
        }
    }
}

/// What work takes at least: no window that is shorter may be begun in.
const fn least(action: MaintenanceAction) -> SignedDuration {
    SignedDuration::from_mins(match action {
        MaintenanceAction::Nothing => 0,
        MaintenanceAction::Reboot => 10,
        MaintenanceAction::RebootMigrate | MaintenanceAction::StopStart => 15,
        MaintenanceAction::Replace => 20,
    })
}
