//! What keeps a machine from being maintained at all, until somebody or something changes it; and
//! what only puts it off.

use jiff::Timestamp;
use machinist_api::{
    MaintenanceAction,
    maintenance_policy::{AfterDrainDeadline, Approval, ControlPlaneMaintenance},
    names::{annotation, maintenance_reason as reason},
};

use super::Task;
use crate::{decision::Wait, maintenance::plan::fleet::ClusterState};

/// The earliest time by the machine's own circumstances, and why not at once.
pub(super) struct Earliest {
    pub(super) at: Timestamp,
    pub(super) wait: Option<Wait>,
}

/// Everything that stands in the way, the most general first.
pub(super) fn of(task: &Task<'_>, cluster: &ClusterState) -> Vec<Wait> {
    let machine = task.machine;
    let mut waits = Vec::new();
    if let Some(why) = &cluster.paused {
        waits.push(paused("maintenance is paused in the whole cluster", why));
    }
    if let Some(why) = &task.policy.paused {
        waits.push(paused(&format!("{} is paused", task.policy.title()), why));
    }
    if let Some(why) = machine.paused {
        waits.push(paused("maintenance is paused for the machine or its pool", why));
    }
    if let Some(why) = machine.hold {
        let message = with_why("the machine is on hold", why);
        waits.push(Wait::on(reason::ON_HOLD, message));
    }
    if machine.has_no_instance {
        let message = format!("machine {} has no instance yet", machine.name);
        waits.push(Wait::on(reason::CLOUD_UNKNOWN, message));
    }
    if machine.is_instance_missing && task.choice.action != MaintenanceAction::Replace {
        let message = format!("the provider knows no instance of machine {} now", machine.name);
        waits.push(Wait::on(reason::CLOUD_UNKNOWN, message));
    }
    if let Some(upgrade) = &cluster.upgrade {
        waits.push(Wait::on(reason::UPGRADE_UNDER_WAY, upgrade.clone()));
    }
    if machine.is_control_plane {
        waits.extend(control_plane(task, cluster));
    }
    if task.need.is_doubtful {
        let message = format!(
            "the provider does not show {} now; it is asked again before anything is done",
            task.need.in_words()
        );
        waits.push(Wait::on(reason::REASON_DOUBTFUL, message));
    }
    if task.need.approval == Approval::Manual && !is_approved(task) {
        waits.push(approval_missing(task, &format!("{} wants it", task.policy.title())));
    }
    let drain_ends = task.policy.drain.after_deadline == AfterDrainDeadline::Force;
    if !drain_ends && !machine.impossible_budgets.is_empty() {
        let message =
            format!("its node can never be drained: {}", machine.impossible_budgets.join("; "));
        waits.push(Wait::on(reason::DRAIN_IMPOSSIBLE, message));
    }
    if !machine.do_not_disrupt.is_empty() && task.latest_safe_start.is_none() {
        waits.push(not_to_be_disrupted(task, "they end"));
    }
    waits
}

/// What puts it off, the last of these first.
pub(super) fn earliest(task: &Task<'_>, now: Timestamp) -> Earliest {
    let mut earliest = Earliest { at: now, wait: None };
    let mut put_off = |at: Timestamp, wait: Wait| {
        if at > earliest.at {
            earliest = Earliest { at, wait: Some(wait) };
        }
    };
    if let Some(at) = task.need.earliest {
        let message = format!("work may begin at {at} at the earliest");
        put_off(at, Wait::on(reason::NOT_YET, message));
    }
    if let Some(at) = task.machine.next_attempt {
        let message = format!("the last attempt failed, and it is tried again at {at}");
        put_off(at, Wait::on(reason::RETRY_LATER, message));
    }
    if let (false, Some(at)) = (task.machine.do_not_disrupt.is_empty(), task.latest_safe_start) {
        put_off(at, not_to_be_disrupted(task, &format!("{at}, the latest safe start")));
    }
    earliest
}

/// Whether a person approved it: for whatever reason, or for one that it has.
pub(super) fn is_approved(task: &Task<'_>) -> bool {
    task.machine.approval.is_some_and(|value| {
        value == "true" || task.need.reasons.iter().any(|reason| reason.id == value)
    })
}

pub(super) fn approval_missing(task: &Task<'_>, because: &str) -> Wait {
    let mut message = format!(
        "a person must approve it, because {because}: machinist approve machine/{}, or the \
         annotation {} on its MachineMaintenance",
        task.machine.name,
        annotation::MAINTENANCE_APPROVED,
    );
    if let Some(value) = task.machine.approval {
        message.push_str(&format!("; what was approved ({value}) is none of its reasons"));
    }
    Wait::on(reason::APPROVAL_MISSING, message)
}

fn control_plane(task: &Task<'_>, cluster: &ClusterState) -> Option<Wait> {
    match task.policy.control_plane {
        ControlPlaneMaintenance::ReportOnly => Some(Wait::on(
            reason::CONTROL_PLANE_REPORT_ONLY,
            format!("{} only reports on the control plane", task.policy.title()),
        )),
        ControlPlaneMaintenance::OneAtATime => cluster
            .control_plane
            .obstacle(task.machine.name, task.choice.action)
            .map(|message| Wait::on(reason::CONTROL_PLANE_NOT_READY, message)),
    }
}

fn not_to_be_disrupted(task: &Task<'_>, until: &str) -> Wait {
    let pods = &task.machine.do_not_disrupt;
    let mut named = pods.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if pods.len() > 3 {
        named.push_str(&format!(" and {} more", pods.len() - 3));
    }
    let message =
        format!("pods that are not to be disrupted are waited for until {until}: {named}");
    Wait::on(reason::DO_NOT_DISRUPT, message)
}

fn paused(what: &str, why: &str) -> Wait {
    Wait::on(reason::PAUSED, with_why(what, why))
}

fn with_why(what: &str, why: &str) -> String {
    if why.is_empty() || why == "true" { what.to_owned() } else { format!("{what}: {why}") }
}
