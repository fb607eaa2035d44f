//! How a machine is healed in place: rebooted, or stopped and started. Replacing it is next door.
//!
//! What the cloud is asked for is stored before it is asked. A stop, a start and the option to migrate
//! change nothing when they are repeated. A reboot does, so it is asked for only in the moment after it
//! was stored; a process that finds an older record waits for the boot first.

use jiff::SignedDuration;
use machinist_api::{
    CloudEffect, CloudEffectKind, MaintenanceAction, MaintenancePhase,
    condition::to_seconds,
    names::{annotation, maintenance_reason as reason},
};

use super::{MaintenanceDecision, Pass, later, missing_hold, replacing};
use crate::{
    cloud::{Instance, InstanceState, RebootMigration},
    drain::decide::must_go,
    maintenance::{
        observed::{CloudSight, is_out_of_service, machine_annotation},
        record,
        step::{NodeRef, Step},
    },
    node,
};

/// How long after it was stored a reboot may be asked for. Whoever finds an older record cannot know
/// whether it was.
const ASKED_WITHIN: SignedDuration = SignedDuration::from_secs(30);
/// How long a machine may take to come up again after a reboot.
const BOOTED_WITHIN: SignedDuration = SignedDuration::from_mins(15);
/// A stop or a start that shows no effect is asked for again after this long.
const ASKED_AGAIN: SignedDuration = SignedDuration::from_mins(2);
/// How long pods may take to leave a Node that is out of service.
const OUT_OF_SERVICE: SignedDuration = SignedDuration::from_mins(5);
/// How often the cloud is asked for one effect.
const ATTEMPTS_MAX: i32 = 5;

pub(super) fn decide(pass: Pass<'_>) -> MaintenanceDecision {
    let work = pass.work();
    // From the first effect on there is no way back but through to the end.
    if work.effect.is_none() && pass.action() != MaintenanceAction::Replace {
        if let Some(why) = pass.called_off() {
            return pass.undo(MaintenancePhase::Cancelled, format!("it is called off: {why}"));
        }
        if pass.is_doubtful() {
            return pass.wait(reason::REASON_DOUBTFUL, "the provider does not show the reason now");
        }
        // Since the drain began, another member of the control plane may have fallen ill.
        if pass.observed.is_control_plane {
            let name = &pass.observed.maintenance.spec.machinelink;
            let obstacle = pass.observed.control_plane.obstacle(name, pass.action());
            if let Some(words) = obstacle {
                return pass.wait(reason::CONTROL_PLANE_NOT_READY, words);
            }
        }
    }
    let action = pass.action();
    if action == MaintenanceAction::Replace {
        return replacing::decide(pass);
    }
    let observed = pass.observed;
    if observed.worked_on(work.machine_uid.as_deref()).is_none() {
        return pass.undo(MaintenancePhase::Cancelled, "somebody else deleted the machine");
    }
    let instance = match &observed.cloud {
        CloudSight::Known(Some(instance)) => instance,
        CloudSight::Known(None) => return pass.fail("the instance is gone"),
        CloudSight::Unknown(_) => {
            return pass.wait(reason::CLOUD_UNKNOWN, "the cloud could not be asked");
        }
    };
    if matches!(instance.state, InstanceState::ShuttingDown | InstanceState::Terminated) {
        return pass.fail(format!("instance {} was terminated", instance.id));
    }
    let hold = observed.machine.and_then(|machine| machine_annotation(machine, annotation::HOLD));
    if let Some(step) = missing_hold(observed) {
        if let Some(why) = hold {
            return pass.wait(reason::ON_HOLD, format!("the machine is on hold: {why}"));
        }
        return pass.step(step);
    }
    match action {
        MaintenanceAction::Reboot => reboot(pass, instance),
        MaintenanceAction::RebootMigrate => migrate(pass, instance),
        MaintenanceAction::StopStart => stop_start(pass, instance),
        MaintenanceAction::Nothing | MaintenanceAction::Replace => {
            pass.go(MaintenancePhase::Verifying, "nothing was to be done")
        }
    }
}

fn migrate(pass: Pass<'_>, instance: &Instance) -> MaintenanceDecision {
    let effect = pass.work().effect;
    let is_enabled = pass.observed.traits.reboot_migration == RebootMigration::Enabled;
    match effect {
        None if !is_enabled => ask(pass, CloudEffectKind::EnableMigration),
        Some(effect) if effect.kind == CloudEffectKind::EnableMigration => {
            if is_enabled || effect.requested_at.is_some() {
                return ask(pass, CloudEffectKind::Reboot);
            }
            repeat(pass, &effect, Step::EnableMigration(instance.id.clone()))
        }
        None | Some(_) => reboot(pass, instance),
    }
}

fn reboot(mut pass: Pass<'_>, instance: &Instance) -> MaintenanceDecision {
    let now = pass.now;
    let boot_id = pass.observed.node.and_then(node::boot_id);
    let work = pass.work();
    let Some(effect) = work.effect.clone().filter(|effect| effect.kind == CloudEffectKind::Reboot)
    else {
        // Another boot than this one is the one that we asked for.
        pass.work_mut().boot_id = boot_id.map(str::to_owned);
        return ask(pass, CloudEffectKind::Reboot);
    };
    let has_booted = boot_id.is_some() && boot_id != work.boot_id.as_deref();
    let asked_at = effect.requested_at.as_ref().map_or(effect.since.0, |time| time.0);
    // Without a boot id to compare only time tells.
    let is_blind = work.boot_id.is_none() && effect.requested_at.is_some();
    if has_booted || (is_blind && later(asked_at, ASKED_AGAIN) <= now) {
        let words = format!("instance {} was rebooted", instance.id);
        return pass.go(MaintenancePhase::Verifying, words);
    }
    let was_refused = effect.failure.is_some();
    if effect.requested_at.is_none() && !was_refused && later(effect.since.0, ASKED_WITHIN) >= now {
        return pass.step(Step::Reboot(instance.id.clone()));
    }
    let patience = if was_refused { ASKED_AGAIN } else { BOOTED_WITHIN };
    if later(asked_at, patience) > now {
        pass.decision.recheck_by(later(asked_at, patience));
        let words = match &effect.failure {
            Some(failure) => format!("the reboot was refused and is tried again: {failure}"),
            None => format!(
                "instance {} was to be rebooted, and its node shows no boot yet",
                instance.id
            ),
        };
        return pass.wait(reason::NODE_NOT_REBOOTED, words);
    }
    again(pass, &effect, "the machine was not rebooted")
}

fn stop_start(mut pass: Pass<'_>, instance: &Instance) -> MaintenanceDecision {
    let work = pass.work();
    let launched = instance.launched_at.map(|at| to_seconds(at).0);
    let was_started =
        launched.is_some() && launched != work.launch_time.as_ref().map(|time| time.0);
    let effect = work.effect.clone();
    match (&effect, instance.state) {
        (None, _) => {
            let work = pass.work_mut();
            work.launch_time = launched.map(to_seconds);
            work.stopped = true;
            ask(pass, CloudEffectKind::Stop)
        }
        (Some(_), InstanceState::Running) if was_started => {
            let words = format!("instance {} was stopped and started", instance.id);
            pass.go(MaintenancePhase::Verifying, words)
        }
        (Some(effect), InstanceState::Running) if effect.kind == CloudEffectKind::Start => {
            // It was never stopped as far as anybody can tell: begin anew.
            let effect = effect.clone();
            again(
                pass,
                &CloudEffect { kind: CloudEffectKind::Stop, ..effect },
                "it was not stopped",
            )
        }
        (Some(effect), InstanceState::Running) => {
            let effect = effect.clone();
            repeat(pass, &effect, Step::Stop(instance.id.clone()))
        }
        (Some(_), InstanceState::Pending | InstanceState::Stopping) => {
            let words = format!("instance {} is {}", instance.id, instance.state.as_str());
            pass.wait(reason::INSTANCE_NOT_RUNNING, words)
        }
        (Some(effect), InstanceState::Stopped) if effect.kind == CloudEffectKind::Start => {
            let effect = effect.clone();
            repeat(pass, &effect, Step::Start(instance.id.clone()))
        }
        (Some(effect), InstanceState::Stopped) => {
            let since = effect.since.0;
            stopped(pass, since)
        }
        (Some(_), InstanceState::ShuttingDown | InstanceState::Terminated) => {
            pass.fail(format!("instance {} was terminated", instance.id))
        }
    }
}

/// The machine is certainly off: pods that hang on it are let go before it is started again.
fn stopped(mut pass: Pass<'_>, since: jiff::Timestamp) -> MaintenanceDecision {
    let observed = pass.observed;
    let hanging = observed.pods.iter().filter(|pod| must_go(pod)).count();
    if let Some(node) = observed.node.filter(|_| hanging > 0) {
        if !is_out_of_service(node) {
            let deadline = to_seconds(pass.now);
            let drain = pass.work_mut().drain.get_or_insert_with(|| machinist_api::DrainRecord {
                cordoned_by_us: false,
                deadline: deadline.clone(),
                forced: false,
                out_of_service: false,
                since: deadline,
            });
            drain.out_of_service = true;
            return pass.step(Step::AddOutOfServiceTaint(NodeRef::of(node)));
        }
        if later(since, OUT_OF_SERVICE) > pass.now {
            let words = format!("{hanging} pods have yet to leave a node that is out of service");
            return pass.wait(reason::DRAINING, words);
        }
    }
    ask(pass, CloudEffectKind::Start)
}

/// Stores what the cloud is to be asked for next.
fn ask(mut pass: Pass<'_>, kind: CloudEffectKind) -> MaintenanceDecision {
    let now = to_seconds(pass.now);
    pass.work_mut().effect =
        Some(CloudEffect { attempt: 1, failure: None, kind, requested_at: None, since: now });
    let words = format!("the cloud is asked: {}", kind.as_str());
    let now = pass.now;
    record::note(&mut pass.status, words, now);
    pass.decision.recheck_by(now);
    pass.finish()
}

/// Asks for what is harmless to repeat; again, when it shows no effect.
fn repeat(mut pass: Pass<'_>, effect: &CloudEffect, step: Step) -> MaintenanceDecision {
    match &effect.requested_at {
        None if effect.failure.is_none() => pass.step(step),
        asked => {
            let asked = asked.as_ref().map_or(effect.since.0, |time| time.0);
            let at = later(asked, ASKED_AGAIN);
            if at > pass.now {
                pass.decision.recheck_by(at);
                let words = match &effect.failure {
                    Some(failure) => {
                        format!("{} failed and is tried again: {failure}", effect.kind.as_str())
                    }
                    None => format!("{} was asked for", effect.kind.as_str()),
                };
                return pass.wait(reason::INSTANCE_NOT_RUNNING, words);
            }
            again(pass, effect, &format!("{} had no effect", effect.kind.as_str()))
        }
    }
}

/// Stores another attempt, or gives the action up.
fn again(mut pass: Pass<'_>, effect: &CloudEffect, what: &str) -> MaintenanceDecision {
    let why = effect.failure.as_ref().map_or_else(String::new, |failure| format!(": {failure}"));
    if effect.attempt >= ATTEMPTS_MAX {
        return pass.fail(format!("{what} in {ATTEMPTS_MAX} attempts{why}"));
    }
    let now = to_seconds(pass.now);
    pass.work_mut().effect = Some(CloudEffect {
        attempt: effect.attempt.saturating_add(1),
        failure: None,
        kind: effect.kind,
        requested_at: None,
        since: now,
    });
    let now = pass.now;
    record::note(&mut pass.status, format!("{what}, and it is tried again{why}"), now);
    pass.decision.recheck_by(now);
    pass.finish()
}
