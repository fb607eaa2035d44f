//! What is done about one unhealthy machine: deleted, handed over to another controller, left alone,
//! or held by the disruption gate.

use std::collections::BTreeMap;

use jiff::Timestamp;
use machinist_api::{
    AuthoritativeApi, Machine,
    names::{annotation, event, reason},
};
use serde_json::Value;

use super::{
    external,
    observed::{Observed, Target, Template},
    policy::Policy,
    verdict::{Cause, is_failed, is_marked_for_repair},
};
use crate::{
    decision::Announcement,
    disruption,
    drift::{DriftPolicy, policy::has_control_plane_role},
    node,
};

/// One step for a check, in the check's namespace. One that fails keeps no other from being tried.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Deletes a Machine with the uid and resourceVersion that this was decided on (Rule 3).
    DeleteMachine {
        name: String,
        uid: String,
        resource_version: String,
        /// A Node that must be asked for by name, and not be found, before.
        absent_node: Option<String>,
        target: String,
        cause: String,
    },
    /// Adds the annotation that asks the bare-metal operator for a repair.
    MarkForRepair {
        name: String,
        uid: String,
        resource_version: String,
        absent_node: Option<String>,
        target: String,
        cause: String,
    },
    /// Creates a request to another controller. That it exists already is success.
    CreateRequest {
        machine: String,
        machine_uid: String,
        absent_node: Option<String>,
        object: Box<Value>,
    },
    /// Deletes a request whose machine is healthy again.
    DeleteRequest {
        api_version: String,
        kind: String,
        name: String,
        uid: String,
        resource_version: String,
    },
}

impl Action {
    /// The Machine that the events of this action are about: its name and uid.
    pub fn machine(&self) -> Option<(&str, &str)> {
        match self {
            Self::DeleteMachine { name, uid, .. } | Self::MarkForRepair { name, uid, .. } => {
                Some((name, uid))
            }
            Self::CreateRequest { machine, machine_uid, .. } => Some((machine, machine_uid)),
            Self::DeleteRequest { .. } => None,
        }
    }

    /// The Node that must not exist for this action to be right. The stores may lag, so it is asked
    /// for; when it is there after all, the action is dropped.
    pub fn absent_node(&self) -> Option<&str> {
        match self {
            Self::DeleteMachine { absent_node, .. }
            | Self::MarkForRepair { absent_node, .. }
            | Self::CreateRequest { absent_node, .. } => absent_node.as_deref(),
            Self::DeleteRequest { .. } => None,
        }
    }

    /// What is told on the Machine when it was done.
    pub fn done(&self) -> Option<Announcement> {
        match self {
            Self::DeleteMachine { target, cause, .. } => Some(Announcement::normal(
                event::MACHINE_DELETED,
                format!(
                    "Machine {target} has been remediated by requesting to delete Machine object: \
                     {cause}"
                ),
            )),
            Self::MarkForRepair { target, cause, .. } => Some(Announcement::normal(
                event::EXTERNAL_ANNOTATION_ADDED,
                format!(
                    "Requesting external remediation of node associated with machine {target}: \
                     {cause}"
                ),
            )),
            Self::CreateRequest { .. } | Self::DeleteRequest { .. } => None,
        }
    }

    /// What is told on the Machine when it could not be done. A failed request shows in the check's
    /// condition instead.
    pub fn failed(&self, error: &str) -> Option<Announcement> {
        match self {
            Self::DeleteMachine { target, .. } => Some(Announcement::warning(
                event::MACHINE_DELETION_FAILED,
                format!("Machine {target}: failed to request its deletion: {error}"),
            )),
            Self::MarkForRepair { target, .. } => Some(Announcement::warning(
                event::EXTERNAL_ANNOTATION_FAILED,
                format!("Machine {target}: failed to request external remediation: {error}"),
            )),
            Self::CreateRequest { .. } | Self::DeleteRequest { .. } => None,
        }
    }

    /// Whether it takes a machine out of work, or has another do so.
    pub fn is_remediation(&self) -> bool {
        !matches!(self, Self::DeleteRequest { .. })
    }

    /// Whether its success counts in `mapi_machinehealthcheck_remediation_success_total`.
    pub fn is_counted_remediation(&self) -> bool {
        matches!(self, Self::DeleteMachine { .. })
    }
}

/// The answer for one unhealthy machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Choice {
    Act(Box<Action>),
    /// Another controller is at it.
    InProgress,
    /// Nothing is done for this machine, for a reason of its own.
    Leave {
        reason: &'static str,
        words: String,
    },
    /// The gate says no.
    Held(String),
    /// The template must be read first.
    WantsTemplate,
    TemplateUnusable(String),
}

/// Chooses for one machine after another, in one pass. What was granted counts for the next.
pub(super) struct Chooser<'a> {
    observed: &'a Observed<'a>,
    policy: &'a Policy,
    now: Timestamp,
    /// Machines that worked until they were granted in this pass, by the uid of their pool.
    granted: BTreeMap<String, usize>,
    control_plane_granted: bool,
}

impl<'a> Chooser<'a> {
    pub fn new(observed: &'a Observed<'a>, policy: &'a Policy, now: Timestamp) -> Self {
        Self { observed, policy, now, granted: BTreeMap::new(), control_plane_granted: false }
    }

    pub fn choose(&mut self, target: &Target<'_>, cause: &Cause) -> Choice {
        let machine = target.machine;
        if let Some(owner) = machine.status.as_ref().and_then(|status| status.authoritative_api)
            && owner != AuthoritativeApi::MachineAPI
        {
            let words = format!("its API is {}", owner.as_str());
            return Choice::Leave { reason: reason::AUTHORITATIVE_API_NOT_MACHINE_API, words };
        }
        let owner = controller(machine);
        let pool = owner.and_then(|uid| self.observed.pools.get(uid));
        let wishes = match DriftPolicy::read(machine, pool, is_control_plane(target)) {
            Ok(wishes) => wishes,
            Err(fault) => return Choice::Held(format!("machine {}: {fault}", target.name())),
        };
        if let Some(why) = wishes.hold {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let words = format!("it is on hold{why}");
            return Choice::Leave { reason: reason::DISRUPTION_HELD, words };
        }
        let action = match self.wanted(target, cause, owner) {
            Ok(action) => action,
            Err(choice) => return choice,
        };
        if pool.is_some_and(|pool| pool.is_deleting) {
            let words = "its pool is being deleted".to_owned();
            return Choice::Leave { reason: reason::DISRUPTION_HELD, words };
        }
        match self.permit(target, cause, owner, wishes.approved_until) {
            Ok(()) => Choice::Act(Box::new(action)),
            Err(held) => Choice::Held(held),
        }
    }

    /// The action, if the gate allows it; or why there is none.
    fn wanted(
        &self,
        target: &Target<'_>,
        cause: &Cause,
        owner: Option<&str>,
    ) -> Result<Action, Choice> {
        let machine = target.machine;
        let absent_node = match cause {
            Cause::NodeMissing { node } => Some(node.clone()),
            Cause::Failed | Cause::NoNode { .. } | Cause::NodeCondition { .. } => None,
        };
        if let Some(reference) = &self.policy.template {
            let Some(requests) = self.observed.requests else { return Err(Choice::InProgress) };
            if requests.contains_key(target.name()) {
                return Err(Choice::InProgress);
            }
            let template = match &self.observed.template {
                Template::NotAsked => return Err(Choice::WantsTemplate),
                Template::NotFound(why) => return Err(Choice::TemplateUnusable(why.clone())),
                Template::Found(template) => template,
            };
            let object = external::new_request(reference, template, machine)
                .map_err(Choice::TemplateUnusable)?;
            return Ok(Action::CreateRequest {
                machine: target.name().to_owned(),
                machine_uid: target.uid().to_owned(),
                absent_node,
                object: Box::new(object),
            });
        }
        let name = target.name().to_owned();
        let uid = target.uid().to_owned();
        let resource_version = machine.metadata.resource_version.clone().unwrap_or_default();
        let (target, cause) = (target.describe(self.observed.check), cause.words());
        if self.policy.is_external_baremetal && !is_failed(machine) {
            if is_marked_for_repair(machine) {
                return Err(Choice::InProgress);
            }
            return Ok(Action::MarkForRepair {
                name,
                uid,
                resource_version,
                absent_node,
                target,
                cause,
            });
        }
        if owner.is_none() {
            let words = format!("machine {target} has no controller that would make another");
            return Err(Choice::Leave { reason: event::SKIPPED_NO_CONTROLLER, words });
        }
        Ok(Action::DeleteMachine { name, uid, resource_version, absent_node, target, cause })
    }

    fn permit(
        &mut self,
        target: &Target<'_>,
        cause: &Cause,
        owner: Option<&str>,
        approved_until: Option<Timestamp>,
    ) -> Result<(), String> {
        let is_control_plane = is_control_plane(target);
        if is_control_plane {
            self.permit_control_plane(target)?;
        }
        let works = disruption::is_healthy(target.machine, target.linked_node());
        let pool = owner.and_then(|uid| Some((uid, self.observed.pools.get(uid)?)));
        if let Some((uid, pool)) = pool {
            let granted = self.granted.get(uid).copied().unwrap_or(0);
            // A share that somebody chose for the check is chosen for the gate as well, unless the
            // pool has one of its own.
            let has_own_share = pool.annotations.contains_key(annotation::MAX_DISRUPTED);
            let asks_gate = has_own_share || !self.policy.max_unhealthy.is_explicit();
            if asks_gate && !cause.is_unavoidable(target.machine) {
                let taken = granted + usize::from(works);
                let mut pool = pool.clone();
                pool.healthy_others = pool.healthy_others.saturating_sub(taken);
                pool.permit(approved_until, self.now).map_err(|held| held.0)?;
            }
            self.granted.insert(uid.to_owned(), granted + usize::from(works));
        }
        self.control_plane_granted |= is_control_plane;
        Ok(())
    }

    /// The control plane goes one at a time, and only while the others are a quorum (Rule 8). No
    /// annotation and no share changes that.
    fn permit_control_plane(&self, asking: &Target<'_>) -> Result<(), String> {
        if self.control_plane_granted {
            return Err("another machine of the control plane is being remediated".to_owned());
        }
        let all = self.observed.machines.iter().filter(|target| is_control_plane(target));
        let (mut staying, mut working_others) = (0_usize, 0_usize);
        for target in all {
            if target.machine.metadata.deletion_timestamp.is_some() {
                return Err(format!(
                    "machine {} of the control plane is being deleted",
                    target.name()
                ));
            }
            staying += 1;
            let is_other = target.uid() != asking.uid();
            if is_other && disruption::is_healthy(target.machine, target.linked_node()) {
                working_others += 1;
            }
        }
        let quorum = staying / 2 + 1;
        if working_others >= quorum {
            return Ok(());
        }
        Err(format!(
            "only {working_others} of the {staying} machines of the control plane work beside it, \
             and {quorum} must"
        ))
    }
}

fn is_control_plane(target: &Target<'_>) -> bool {
    has_control_plane_role(target.machine)
        || target.linked_node().is_some_and(node::is_control_plane)
}

/// The uid of the controller of a Machine.
fn controller(machine: &Machine) -> Option<&str> {
    let owners = machine.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    controllers.next().map(|owner| owner.uid.as_str())
}
