//! What is done about a maintenance that is over: it is tried again after a failure, starts anew for a
//! new reason, and lets its object go.

use machinist_api::{
    MaintenancePhase, MaintenanceReason, MaintenanceReasonKind, MaintenanceReasonState,
    names::{annotation, maintenance_reason as reason},
};

use super::{
    MaintenanceDecision, Pass, has_finalizer, is_leaving, later, verifying::EVENT_REFRESH,
};
use crate::maintenance::{record, records, step::Step};

pub(super) fn decide(mut pass: Pass<'_>) -> MaintenanceDecision {
    let observed = pass.observed;
    if has_finalizer(observed) {
        return pass.step(Step::RemoveFinalizer);
    }
    if is_leaving(observed) {
        return pass.finish();
    }
    if let Some(need) = observed.need {
        let fresh = need.reasons.iter().any(|one| is_fresh(&pass, one));
        if fresh || is_asked_again(&pass) {
            return start_anew(pass);
        }
        if pass.status.phase == Some(MaintenancePhase::Failed) {
            return retry(pass);
        }
    }
    // What became of the reasons is still noted: one that comes back is a new one.
    pass.status.reasons.clone_from(&observed.reasons.reasons);
    pass.finish()
}

/// Whether a reason is not the one that was dealt with.
fn is_fresh(pass: &Pass<'_>, one: &MaintenanceReason) -> bool {
    let Some(known) = pass.status.reasons.iter().find(|known| known.id == one.id) else {
        return true;
    };
    if known.state != MaintenanceReasonState::Active {
        return true;
    }
    let is_of_the_cloud =
        matches!(one.kind, MaintenanceReasonKind::Event | MaintenanceReasonKind::Drift);
    let finished = pass.status.finished_at.as_ref().map_or(pass.now, |time| time.0);
    let is_refreshed = later(finished, EVENT_REFRESH) <= pass.now;
    let has_failed = pass.status.phase == Some(MaintenancePhase::Failed);
    is_of_the_cloud && is_refreshed && !has_failed
}

/// Whether a person set `maintenancescheduled` back to false, which means: to be done.
fn is_asked_again(pass: &Pass<'_>) -> bool {
    pass.status.work.is_some() && !pass.observed.maintenance.spec.maintenancescheduled
}

/// A new reason: the record starts anew, and what was approved before is approved no more.
fn start_anew(mut pass: Pass<'_>) -> MaintenanceDecision {
    let observed = pass.observed;
    let annotations = observed.maintenance.metadata.annotations.as_ref();
    if annotations.is_some_and(|all| all.contains_key(annotation::MAINTENANCE_APPROVED)) {
        pass.do_step(Step::ClearApproval);
    }
    if let Some(need) = observed.need {
        let spec = records::spec_for(&observed.maintenance.spec, need, observed.instance());
        if spec != observed.maintenance.spec {
            pass.do_step(Step::SetSpec(Box::new(spec)));
        }
    }
    let now = pass.now;
    pass.status = record::started_anew(&pass.status);
    pass.status.observed_generation = observed.maintenance.metadata.generation;
    pass.status.reasons.clone_from(&observed.reasons.reasons);
    record::note(&mut pass.status, "it starts anew for a new reason", now);
    pass.decision.recheck_by(now);
    pass.finish()
}

/// The same reason, tried again when the plan says so.
fn retry(mut pass: Pass<'_>) -> MaintenanceDecision {
    let observed = pass.observed;
    // Since when the provider does not show one is noted too: without that it would be in doubt for ever.
    pass.status.reasons.clone_from(&observed.reasons.reasons);
    let Some(entry) = observed.entry else {
        return pass.wait(reason::RETRY_LATER, "it is planned with the next look at the fleet");
    };
    record::set_plan(&mut pass.status, entry, pass.now);
    pass.decision.waiting.clone_from(&entry.waits_on);
    if !entry.is_due() {
        if let Some(start) = entry.start.filter(|start| *start > pass.now) {
            pass.decision.recheck_by(start);
        }
        return pass.finish();
    }
    let attempts = pass.status.attempts;
    let now = pass.now;
    pass.status = record::started_anew(&pass.status);
    pass.status.attempts = attempts;
    pass.status.observed_generation = observed.maintenance.metadata.generation;
    pass.status.reasons.clone_from(&observed.reasons.reasons);
    record::note(&mut pass.status, "it is tried again", now);
    pass.decision.recheck_by(now);
    pass.finish()
}
