//! How does a Machine go, step by step?
//!
//! Hooks, drain, volumes, hooks again, infrastructure, bootstrap data, Node, finalizer. Each step begins when the one before is done, and
//! what is unknown is never taken for gone.

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    cluster_api::{
        Machine, MachineDeletionStatus, MachineStatus,
        names::{annotation, condition_type, event, reason},
    },
    condition::{self, to_seconds},
};

use super::{
    decide::{Action, Pass, Which},
    draining, node,
    observed::{Connection, NodeLookup, Observed, Reference},
    references, volumes,
};
use crate::{
    cluster_api::contract::{ownership, reading},
    decision::{Announcement, Wait},
    node as nodes,
};

/// How soon what is on a Node is read again where it could not be, or not in time: an empty list wakes nobody.
const CONTENTS_RECHECK: SignedDuration = SignedDuration::from_secs(10);

/// Where the deletion is, in Cluster API's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    pub reason: &'static str,
    pub message: String,
    /// Which steps are behind it, for readers of the version before.
    pub passed: Passed,
}

/// Which steps are done; `None` for one that is not reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub pre_drain: Option<bool>,
    pub drain: Option<bool>,
    pub volumes: Option<bool>,
    pub pre_terminate: Option<bool>,
    pub infrastructure: bool,
    pub bootstrap: bool,
}

/// Whether the Node is ours to empty and delete.
enum NodeWork {
    Allowed,
    NotAllowed,
    Unknown(String),
}

/// What a step ends with: the next one, or a wait.
type Step = Result<(), (&'static str, String)>;

/// Which of the steps that look into the Node may come now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeSteps {
    pub drain: bool,
    pub detach: bool,
}

/// What must be known of the Node for the next pass, by the same rules that it goes by: what no step needs is not read,
/// so that it cannot fail.
pub fn node_steps(observed: &Observed<'_>, now: Timestamp) -> NodeSteps {
    let status = observed.machine.status.clone().unwrap_or_default();
    let has_node = status.node_ref.is_some() || observed.connection.node().is_some();
    let is_held = hooks(observed, annotation::PRE_DRAIN_HOOK_PREFIX).is_some();
    match node_work(observed, has_node) {
        NodeWork::Allowed if !is_held => NodeSteps {
            drain: may_drain(observed, &status, now),
            detach: may_detach(observed, &status, now),
        },
        NodeWork::Allowed | NodeWork::NotAllowed | NodeWork::Unknown(_) => NodeSteps::default(),
    }
}

pub(super) fn step(pass: &mut Pass<'_>) -> Stage {
    let mut passed = Passed::default();
    let (reason, message) = match go(pass, &mut passed) {
        Ok(()) => last_step(pass),
        Err(waits) => waits,
    };
    if reason != reason::DELETION_COMPLETED {
        pass.decision.waiting.push(Wait::on(reason, message.clone()));
    }
    Stage { reason, message, passed }
}

/// What is said where the last step fails. Where it does not, nobody is left to read it.
fn last_step(pass: &Pass<'_>) -> (&'static str, String) {
    let node = pass.after.iter().find_map(|action| match action {
        Action::DeleteNode { node, .. } => Some(node),
        _ => None,
    });
    match node {
        Some(node) => (reason::DELETING_NODE, format!("Deleting Node {node}")),
        None => (reason::DELETION_COMPLETED, "Deletion completed".to_owned()),
    }
}

fn go(pass: &mut Pass<'_>, passed: &mut Passed) -> Step {
    let is_allowed = match node_work(pass.observed, pass.status.node_ref.is_some()) {
        NodeWork::Allowed => true,
        NodeWork::NotAllowed => false,
        NodeWork::Unknown(why) => {
            pass.problems.push(why.clone());
            return Err((reason::INTERNAL_ERROR, why));
        }
    };
    if is_allowed {
        pre_drain(pass, passed)?;
        if may_drain(pass.observed, &pass.status, pass.now) {
            drain(pass, passed)?;
        }
        if may_detach(pass.observed, &pass.status, pass.now) {
            detach(pass, passed)?;
        }
    }
    pre_terminate(pass, passed)?;
    remove(pass, Which::Infrastructure)?;
    passed.infrastructure = true;
    remove(pass, Which::Bootstrap)?;
    passed.bootstrap = true;
    if is_allowed {
        delete_node(pass)?;
    }
    pass.after.push(Action::RemoveFinalizer);
    Ok(())
}

fn node_work(observed: &Observed<'_>, has_node: bool) -> NodeWork {
    if observed.cluster.metadata.deletion_timestamp.is_some()
        || !has_node
        || observed.shares_node()
        || is_anothers(observed.machine, observed.infrastructure)
    {
        return NodeWork::NotAllowed;
    }
    match observed.control_plane {
        Reference::Unreadable(why) => {
            return NodeWork::Unknown(format!(
                "whether the Node may be deleted depends on the control plane: {why}"
            ));
        }
        Reference::Found { .. } if observed.control_plane.is_deleting() => {
            return NodeWork::NotAllowed;
        }
        Reference::Found { object, .. } if reading::is_externally_managed(&object.data) => {
            return NodeWork::Allowed;
        }
        Reference::NotDefined | Reference::Missing | Reference::Found { .. } => {}
    }
    match observed.has_active_control_plane {
        true => NodeWork::Allowed,
        false => NodeWork::NotAllowed,
    }
}

fn deletion<'a>(pass: &'a mut Pass<'_>) -> &'a mut MachineDeletionStatus {
    pass.status.deletion.get_or_insert_default()
}

/// The hooks with this prefix, sorted and joined.
fn hooks(observed: &Observed<'_>, prefix: &str) -> Option<String> {
    let annotations = observed.machine.metadata.annotations.as_ref()?;
    let found: Vec<_> =
        annotations.keys().filter(|key| key.starts_with(prefix)).map(String::as_str).collect();
    (!found.is_empty()).then(|| found.join(","))
}

fn pre_drain(pass: &mut Pass<'_>, passed: &mut Passed) -> Step {
    let Some(hooks) = hooks(pass.observed, annotation::PRE_DRAIN_HOOK_PREFIX) else {
        passed.pre_drain = Some(true);
        return Ok(());
    };
    passed.pre_drain = Some(false);
    let now = to_seconds(pass.now);
    deletion(pass).wait_for_pre_drain_hook_start_time.get_or_insert(now);
    let message = format!("Waiting for pre-drain hooks to succeed (hooks: {hooks})");
    Err((reason::WAITING_FOR_PRE_DRAIN_HOOK, message))
}

/// Hooks before the end hold also a Machine without a Node.
fn pre_terminate(pass: &mut Pass<'_>, passed: &mut Passed) -> Step {
    let Some(hooks) = hooks(pass.observed, annotation::PRE_TERMINATE_HOOK_PREFIX) else {
        passed.pre_terminate = Some(true);
        return Ok(());
    };
    passed.pre_terminate = Some(false);
    let now = to_seconds(pass.now);
    deletion(pass).wait_for_pre_terminate_hook_start_time.get_or_insert(now);
    let message = format!("Waiting for pre-terminate hooks to succeed (hooks: {hooks})");
    Err((reason::WAITING_FOR_PRE_TERMINATE_HOOK, message))
}

fn may_drain(observed: &Observed<'_>, status: &MachineStatus, now: Timestamp) -> bool {
    let deadline = drain_deadline(observed, status);
    may(observed, status, annotation::EXCLUDE_NODE_DRAINING) && deadline.is_none_or(|at| now < at)
}

fn may_detach(observed: &Observed<'_>, status: &MachineStatus, now: Timestamp) -> bool {
    let deadline = detach_deadline(observed, status);
    may(observed, status, annotation::EXCLUDE_VOLUME_DETACH) && deadline.is_none_or(|at| now < at)
}

/// Whether the Node is still to be emptied, or waited for: nobody forbade it, the wait before the end has not begun, and the
/// machine is there.
fn may(observed: &Observed<'_>, status: &MachineStatus, exclusion: &str) -> bool {
    let annotations = observed.machine.metadata.annotations.as_ref();
    let is_excluded = annotations.is_some_and(|all| all.contains_key(exclusion));
    let deletion = status.deletion.as_ref();
    let is_over = deletion.is_some_and(|one| one.wait_for_pre_terminate_hook_start_time.is_some());
    let is_there = match observed.infrastructure {
        Reference::Found { .. } => !observed.infrastructure.is_deleting(),
        // As long as it is not known to be gone, the pods have their time.
        Reference::Unreadable(_) => true,
        Reference::Missing | Reference::NotDefined => false,
    };
    !is_excluded && !is_over && is_there
}

fn after(start: Option<Timestamp>, seconds: Option<i32>) -> Option<Timestamp> {
    let seconds = seconds.filter(|seconds| *seconds > 0)?;
    start?.checked_add(SignedDuration::from_secs(i64::from(seconds))).ok()
}

fn drain_deadline(observed: &Observed<'_>, status: &MachineStatus) -> Option<Timestamp> {
    let start = status.deletion.as_ref()?.node_drain_start_time.as_ref().map(|time| time.0);
    after(start, observed.machine.spec.deletion.node_drain_timeout_seconds)
}

fn detach_deadline(observed: &Observed<'_>, status: &MachineStatus) -> Option<Timestamp> {
    let start = status.deletion.as_ref()?.wait_for_node_volume_detach_start_time.as_ref();
    let timeout = observed.machine.spec.deletion.node_volume_detach_timeout_seconds;
    after(start.map(|time| time.0), timeout)
}

/// What is on the Node is not known: why, as far as that is, and when it is looked at again.
fn unread(pass: &mut Pass<'_>, begun: String) -> String {
    pass.recheck_in(CONTENTS_RECHECK);
    match pass.observed.unread {
        Some(why) => format!("{begun}\n* what is on the Node cannot be read: {why}"),
        None => begun,
    }
}

fn drain(pass: &mut Pass<'_>, passed: &mut Passed) -> Step {
    let observed = pass.observed;
    let now = to_seconds(pass.now);
    let is_new = deletion(pass).node_drain_start_time.is_none();
    let started = deletion(pass).node_drain_start_time.get_or_insert(now).0;
    if let Some(at) = drain_deadline(observed, &pass.status) {
        pass.decision.recheck_by(at);
    }
    passed.drain = Some(false);
    let draining = match (&observed.connection, &observed.draining) {
        (Connection::Down { why, .. }, _) => return unreachable(pass, why, started),
        (Connection::Up { nodes: NodeLookup::NotFound, .. }, _) => None,
        (Connection::Up { nodes: NodeLookup::Ambiguous(names), .. }, _) => {
            let message = format!(
                "{}\n* it cannot be told which Node is the Machine's: {} have its spec.providerID",
                draining::begun(started),
                names.join(", ")
            );
            return Err((reason::DRAINING_NODE, message));
        }
        (Connection::Up { .. }, Some(draining)) => Some(draining),
        (Connection::Up { .. }, None) => {
            let message = unread(pass, draining::begun(started));
            return Err((reason::DRAINING_NODE, message));
        }
    };
    let progress = match draining {
        None => draining::Progress::default(),
        Some(one) => {
            match draining::drain(observed.machine, observed.cluster, one, started, pass.now) {
                Ok(progress) => progress,
                Err(why) => {
                    let message = format!("Error draining Node: {why}");
                    pass.problems.push(message.clone());
                    pass.decision
                        .announcements
                        .push(Announcement::warning(event::FAILED_DRAIN_NODE, message.clone()));
                    return Err((reason::DRAINING_NODE, message));
                }
            }
        }
    };
    if let Some(at) = progress.recheck {
        pass.decision.recheck_by(at);
    }
    if !progress.actions.is_empty() {
        if is_new {
            // Its time runs from what is stored, also where this process ends with the first pod.
            pass.decision.recheck_by(pass.now);
            return Err((reason::DRAINING_NODE, draining::begun(started)));
        }
        pass.after.push(Action::Drain(progress.actions));
    }
    if let Some(message) = progress.message {
        return Err((reason::DRAINING_NODE, message));
    }
    passed.drain = Some(true);
    if !is_told(pass, condition_type::V1BETA1_DRAINING_SUCCEEDED) {
        let node = pass.status.node_ref.as_ref().map_or("", |one| one.name.as_str());
        let message = format!("success draining Machine's node {node:?}");
        pass.decision
            .announcements
            .push(Announcement::normal(event::SUCCESSFUL_DRAIN_NODE, message));
    }
    Ok(())
}

/// The pods of a Node that nobody can reach are not known to be gone. What ends the wait is said.
fn unreachable(pass: &mut Pass<'_>, why: &str, started: Timestamp) -> Step {
    let ends = match drain_deadline(pass.observed, &pass.status) {
        Some(at) => format!("gives up at {at}"),
        None => format!(
            "spec.deletion.nodeDrainTimeoutSeconds or the annotation {} ends the wait",
            annotation::EXCLUDE_NODE_DRAINING
        ),
    };
    let message = format!(
        "{}\n* the workload cluster cannot be reached: {why} ({ends})",
        draining::begun(started)
    );
    Err((reason::DRAINING_NODE, message))
}

fn detach(pass: &mut Pass<'_>, passed: &mut Passed) -> Step {
    let observed = pass.observed;
    let now = to_seconds(pass.now);
    let started = deletion(pass).wait_for_node_volume_detach_start_time.get_or_insert(now).0;
    if let Some(at) = detach_deadline(observed, &pass.status) {
        pass.decision.recheck_by(at);
    }
    passed.volumes = Some(false);
    let waits = match &observed.connection {
        Connection::Down { why, .. } => Some(format!(
            "{}\n* the workload cluster cannot be reached: {why}",
            volumes::begun(started)
        )),
        Connection::Up { nodes: NodeLookup::Found(node), .. }
            if node::unreachable_since(node).is_none() =>
        {
            match &observed.volumes {
                None => Some(unread(pass, volumes::begun(started))),
                Some(one) => {
                    let staying = match &observed.draining {
                        Some(all) => draining::skipped(observed.machine, observed.cluster, all),
                        None => Ok(Vec::new()),
                    };
                    match staying {
                        Ok(staying) => volumes::waiting_for(one, &staying, started),
                        Err(why) => {
                            pass.problems.push(why.clone());
                            Some(format!("{}\n* {why}", volumes::begun(started)))
                        }
                    }
                }
            }
        }
        // A Node that is gone, or whose kubelet does not answer, will not tell.
        Connection::Up { .. } => None,
    };
    if let Some(message) = waits {
        return Err((reason::WAITING_FOR_VOLUME_DETACH, message));
    }
    passed.volumes = Some(true);
    if !is_told(pass, condition_type::V1BETA1_VOLUME_DETACH_SUCCEEDED) {
        let node = pass.status.node_ref.as_ref().map_or("", |one| one.name.as_str());
        let message = format!("success waiting for node volumes detaching Machine's node {node:?}");
        pass.decision
            .announcements
            .push(Announcement::normal(event::NODE_VOLUMES_DETACHED, message));
    }
    Ok(())
}

/// Whether the status says already that a step is done: then it was announced.
fn is_told(pass: &Pass<'_>, type_: &str) -> bool {
    let deprecated = pass.status.deprecated.as_ref().and_then(|all| all.v1beta1.as_ref());
    deprecated.is_some_and(|all| condition::is_true(&all.conditions, type_))
}

fn remove(pass: &mut Pass<'_>, which: Which) -> Step {
    let spec = &pass.observed.machine.spec;
    let (known, kind, waits) = match which {
        Which::Infrastructure => (
            pass.observed.infrastructure,
            spec.infrastructure_ref.kind.clone(),
            reason::WAITING_FOR_INFRASTRUCTURE_DELETION,
        ),
        Which::Bootstrap => (
            pass.observed.bootstrap,
            spec.bootstrap.config_ref.as_ref().map(|one| one.kind.clone()).unwrap_or_default(),
            reason::WAITING_FOR_BOOTSTRAP_DELETION,
        ),
    };
    match known {
        Reference::NotDefined | Reference::Missing => Ok(()),
        // Not known to be gone. The phases before have said why.
        Reference::Unreadable(why) => {
            Err((reason::INTERNAL_ERROR, format!("Failed to delete {kind}: {why}")))
        }
        // That of another is not ours to delete. The phases before have said whose it is.
        Reference::Found { .. } if is_anothers(pass.observed.machine, known) => Ok(()),
        Reference::Found { .. } => {
            if !known.is_deleting() {
                pass.after.push(Action::DeleteExternal(which));
            }
            Err((waits, format!("Waiting for {kind} to be deleted")))
        }
    }
}

/// Whether an object that the Machine names is controlled by another.
fn is_anothers(machine: &Machine, reference: Reference<'_>) -> bool {
    let own = references::owner_reference(machine);
    let found = reference.found();
    found.is_some_and(|(object, _)| ownership::refuse_others(&object.metadata, &own).is_err())
}

fn delete_node(pass: &mut Pass<'_>) -> Step {
    let machine = pass.observed.machine;
    let deleted_at = machine.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let until = after(deleted_at, machine.spec.deletion.node_deletion_timeout_seconds);
    match &pass.observed.connection {
        Connection::Up { nodes: NodeLookup::Found(node), .. } => {
            pass.after.push(Action::DeleteNode {
                node: nodes::name(node).to_owned(),
                uid: nodes::uid(node).to_owned(),
                until,
            });
            Ok(())
        }
        Connection::Up { .. } => Ok(()),
        Connection::Down { .. } if until.is_some_and(|until| pass.now >= until) => {
            pass.decision.announcements.push(Announcement::warning(
                event::FAILED_DELETE_NODE,
                "the workload cluster cannot be reached; going on without deleting the Node",
            ));
            Ok(())
        }
        Connection::Down { why, .. } => {
            if let Some(until) = until {
                pass.decision.recheck_by(until);
            }
            let message =
                format!("Error deleting Node: the workload cluster cannot be reached: {why}");
            Err((reason::DELETING_NODE, message))
        }
    }
}
