//! How does an instance move between its states? Terminate, stop, start, reboot, and what time does.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Cloud, Timer,
    error::Ec2Error,
    events::UserWork,
    instance::{ImpairedCheck, Instance, InstanceState, SpotAction, StateReason},
    ledger::LedgerInstance,
    random::is_resource_id,
    request::InstanceIds,
    response::{Response, StateChange},
    time::{later, user_initiated},
};

/// EC2 takes at most 1000 ids in one terminate call.
const IDS_MAX: usize = 1000;

/// Who made a change; it decides the reason that EC2 gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangedBy {
    /// Somebody called the API or used the console.
    #[default]
    User,
    /// AWS did it, for a scheduled event or a fault of its own.
    Provider,
    /// The guest shut itself down.
    Guest,
    /// AWS took a spot instance back.
    #[serde(alias = "spot")]
    SpotReclaim,
}

impl ChangedBy {
    fn stop_reason(self) -> StateReason {
        let (code, message) = match self {
            Self::User => ("Client.UserInitiatedShutdown", "User initiated shutdown"),
            Self::Provider => ("Server.ScheduledStop", "Stopped due to scheduled retirement"),
            Self::Guest => ("Client.InstanceInitiatedShutdown", "Instance initiated shutdown"),
            Self::SpotReclaim => ("Server.SpotInstanceShutdown", "Instance shutdown by spot"),
        };
        reason(code, message)
    }

    fn termination_reason(self) -> StateReason {
        let (code, message) = match self {
            Self::User => ("Client.UserInitiatedShutdown", "User initiated shutdown"),
            Self::Provider => ("Server.InternalError", "Internal error on launch or host failure"),
            Self::Guest => ("Client.InstanceInitiatedShutdown", "Instance initiated shutdown"),
            Self::SpotReclaim => ("Server.SpotInstanceTermination", "Spot instance termination"),
        };
        reason(code, message)
    }

    fn transition_text(self, now: Timestamp, reason: &StateReason) -> String {
        match self {
            Self::User => user_initiated(now),
            Self::Provider | Self::Guest | Self::SpotReclaim => {
                format!("{} ({})", reason.code, now.strftime("%Y-%m-%d %H:%M:%S GMT"))
            }
        }
    }
}

fn reason(code: &str, message: &str) -> StateReason {
    StateReason { code: code.into(), message: format!("{code}: {message}") }
}

impl Cloud {
    /// Returns the instances of these ids, or the error that EC2 gives for the first bad ones.
    pub(super) fn visible_instances(
        &self,
        now: Timestamp,
        ids: &[String],
    ) -> Result<Vec<&Instance>, Ec2Error> {
        check_instance_ids(ids)?;
        let find =
            |id: &String| self.instances.get(id).filter(|instance| instance.visible_from <= now);
        let missing: Vec<&str> =
            ids.iter().filter(|id| find(id).is_none()).map(String::as_str).collect();
        if !missing.is_empty() {
            return Err(Ec2Error::instances_not_found(&missing));
        }
        Ok(ids.iter().filter_map(find).collect())
    }

    fn addressed(&self, now: Timestamp, request: &InstanceIds) -> Result<Vec<String>, Ec2Error> {
        if request.instance_ids.is_empty() {
            return Err(Ec2Error::missing_parameter("InstanceId"));
        }
        if request.instance_ids.len() > IDS_MAX {
            return Err(Ec2Error::invalid_value(format!(
                "The maximum number of instance IDs in a call is {IDS_MAX}"
            )));
        }
        self.visible_instances(now, &request.instance_ids)?;
        // The same id twice is one instance; EC2 answers it once.
        let mut ids = request.instance_ids.clone();
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    pub(super) fn terminate_instances(
        &mut self,
        now: Timestamp,
        request: &InstanceIds,
    ) -> Result<Response, Ec2Error> {
        let ids = self.addressed(now, request)?;
        let instances = self.visible_instances(now, &ids)?;
        if let Some(protected) = instances.iter().find(|instance| {
            instance.parameters.disable_api_termination == Some(true) && !instance.state.is_ending()
        }) {
            return Err(Ec2Error::new(
                "OperationNotPermitted",
                format!(
                    "The instance '{}' may not be terminated. Modify its 'disableApiTermination' \
                     instance attribute and try again.",
                    protected.id
                ),
            ));
        }
        let mut changes = Vec::new();
        for id in &ids {
            match self.draw_lingering() {
                None => changes.extend(self.begin_termination(now, id, ChangedBy::User)),
                Some(lasting) => {
                    let previous = self.instances.get(id).map(|instance| instance.state);
                    if previous.is_some_and(|state| !state.is_ending()) {
                        self.linger(now, id, lasting);
                    }
                    // The answer says what an answer of EC2 says, whatever happens next.
                    changes.extend(previous.map(|previous| StateChange {
                        instance_id: id.clone(),
                        previous,
                        current: if previous.is_ending() {
                            previous
                        } else {
                            InstanceState::ShuttingDown
                        },
                    }));
                }
            }
        }
        Ok(Response::StateChanges(changes))
    }

    pub(super) fn stop_instances(
        &mut self,
        now: Timestamp,
        request: &InstanceIds,
    ) -> Result<Response, Ec2Error> {
        let ids = self.addressed(now, request)?;
        for instance in self.visible_instances(now, &ids)? {
            check_stoppable(instance)?;
        }
        let changes =
            ids.iter().filter_map(|id| self.begin_stop(now, id, ChangedBy::User)).collect();
        Ok(Response::StateChanges(changes))
    }

    pub(super) fn start_instances(
        &mut self,
        now: Timestamp,
        request: &InstanceIds,
    ) -> Result<Response, Ec2Error> {
        let ids = self.addressed(now, request)?;
        for instance in self.visible_instances(now, &ids)? {
            self.check_startable(instance)?;
        }
        let changes = ids.iter().filter_map(|id| self.begin_start(now, id)).collect();
        Ok(Response::StateChanges(changes))
    }

    pub(super) fn reboot_instances(
        &mut self,
        now: Timestamp,
        request: &InstanceIds,
    ) -> Result<Response, Ec2Error> {
        let ids = self.addressed(now, request)?;
        for instance in self.visible_instances(now, &ids)? {
            check_rebootable(instance)?;
        }
        for id in &ids {
            self.begin_reboot(now, id, ChangedBy::User);
        }
        Ok(Response::Done)
    }

    pub(super) fn begin_termination(
        &mut self,
        now: Timestamp,
        id: &str,
        by: ChangedBy,
    ) -> Option<StateChange> {
        let ends_at = later(now, self.config.delays.shutting_down_to_terminated);
        let instance = self.instances.get_mut(id)?;
        let previous = instance.state;
        if !previous.is_ending() {
            let reason = by.termination_reason();
            instance.transition_reason = by.transition_text(now, &reason);
            instance.state_reason = Some(reason);
            instance.rebooting_until = None;
            enter(instance, InstanceState::ShuttingDown, ends_at);
            self.set_timer(ends_at, id, Timer::TransitionEnds);
            self.touch();
        }
        self.changed_from(id, previous)
    }

    pub(super) fn begin_stop(
        &mut self,
        now: Timestamp,
        id: &str,
        by: ChangedBy,
    ) -> Option<StateChange> {
        let ends_at = later(now, self.config.delays.stopping_to_stopped);
        let instance = self.instances.get_mut(id)?;
        let previous = instance.state;
        if matches!(previous, InstanceState::Running | InstanceState::Pending) {
            let reason = by.stop_reason();
            instance.transition_reason = by.transition_text(now, &reason);
            instance.state_reason = Some(reason);
            instance.rebooting_until = None;
            enter(instance, InstanceState::Stopping, ends_at);
            self.set_timer(ends_at, id, Timer::TransitionEnds);
            self.touch();
        }
        self.changed_from(id, previous)
    }

    pub(super) fn begin_start(&mut self, now: Timestamp, id: &str) -> Option<StateChange> {
        let ends_at = later(now, self.config.delays.pending_to_running);
        let launch_time = self.shown_launch_time(now);
        let host_id = self.host_to_start_on(id).ok().flatten();
        let instance = self.instances.get_mut(id)?;
        let previous = instance.state;
        if previous == InstanceState::Stopped {
            instance.state_reason = None;
            instance.transition_reason = String::new();
            instance.launch_time = launch_time;
            instance.host_id = host_id;
            // A start lands on another host, so whatever was impaired is left behind.
            instance.impairment = None;
            enter(instance, InstanceState::Pending, ends_at);
            for interface in &mut instance.interfaces {
                if interface.wants_public_address {
                    interface.public_address =
                        Some(super::launch::public_address(&mut self.randomness));
                }
            }
            self.set_timer(ends_at, id, Timer::TransitionEnds);
            self.settle_events(now, id, UserWork::StoppedAndStarted);
            self.touch();
        }
        self.changed_from(id, previous)
    }

    pub(super) fn begin_reboot(&mut self, now: Timestamp, id: &str, by: ChangedBy) {
        let ends_at = later(now, self.config.delays.reboot);
        let Some(instance) = self.instances.get_mut(id) else {
            return;
        };
        instance.rebooting_until = Some(ends_at);
        self.set_timer(ends_at, id, Timer::RebootEnds);
        if by == ChangedBy::User {
            self.settle_events(now, id, UserWork::Rebooted);
        }
        self.touch();
    }

    pub(super) fn check_startable(&self, instance: &Instance) -> Result<(), Ec2Error> {
        match instance.state {
            InstanceState::Running | InstanceState::Pending => Ok(()),
            InstanceState::Stopped => {
                self.host_to_start_on(&instance.id)?;
                self.check_capacity(&instance.instance_type, &instance.availability_zone, 1)?;
                Ok(())
            }
            InstanceState::Stopping | InstanceState::ShuttingDown | InstanceState::Terminated => {
                Err(incorrect_state(instance, "started"))
            }
        }
    }

    fn changed_from(&self, id: &str, previous: InstanceState) -> Option<StateChange> {
        self.instances.get(id).map(|instance| StateChange {
            instance_id: id.to_owned(),
            previous,
            current: instance.state,
        })
    }

    pub(super) fn transition_ends(&mut self, at: Timestamp, id: &str) {
        let Some(instance) = self.instances.get_mut(id) else {
            return;
        };
        if instance.transition_due != Some(at) {
            return;
        }
        instance.transition_due = None;
        if instance.state == InstanceState::Pending && self.dies_at_launch(at, id) {
            self.touch();
            return;
        }
        let Some(instance) = self.instances.get_mut(id) else {
            return;
        };
        match instance.state {
            InstanceState::Pending => {
                instance.state = InstanceState::Running;
                instance.booted_at = Some(at);
                instance.boot_generation += 1;
            }
            InstanceState::Stopping => {
                instance.state = InstanceState::Stopped;
                instance.booted_at = None;
                for interface in &mut instance.interfaces {
                    interface.public_address = None;
                }
                if instance.affinity() != Some("host") {
                    instance.host_id = None;
                }
            }
            InstanceState::ShuttingDown => self.terminated(at, id),
            InstanceState::Running | InstanceState::Stopped | InstanceState::Terminated => {}
        }
        self.touch();
    }

    pub(super) fn terminated(&mut self, at: Timestamp, id: &str) {
        let fades_at = later(at, self.config.delays.terminated_visible);
        let Some(instance) = self.instances.get_mut(id) else {
            return;
        };
        instance.state = InstanceState::Terminated;
        instance.terminated_at = Some(at);
        instance.booted_at = None;
        instance.impairment = None;
        instance.events.clear();
        instance.vpc_id = None;
        instance.subnet_id = None;
        instance.private_dns_name = String::new();
        instance.security_groups.clear();
        instance.volumes.clear();
        let interfaces = std::mem::take(&mut instance.interfaces);
        let token = instance.token.clone();
        for interface in interfaces {
            if let Some(subnet) = self.world.subnets.get_mut(&interface.subnet_id) {
                for address in interface.private_addresses {
                    subnet.release(address);
                }
            }
        }
        if let Some(entry) = token.and_then(|token| self.tokens.get_mut(&token)) {
            entry.instance_ended(at, id);
        }
        self.set_timer(fades_at, id, Timer::Fades);
        if self.is_balanced(id) {
            let forgotten_at = later(at, self.config.delays.terminated_target_remembered);
            self.set_timer(forgotten_at, id, Timer::TargetsForgotten);
        }
    }

    pub(super) fn fades(&mut self, id: &str) {
        if let Some(instance) = self.instances.remove(id) {
            self.ledger.archive(LedgerInstance::from(&instance));
            self.touch();
        }
    }

    pub(super) fn reboot_ends(&mut self, at: Timestamp, id: &str) {
        let Some(instance) = self.instances.get_mut(id) else {
            return;
        };
        if instance.rebooting_until != Some(at) {
            return;
        }
        instance.rebooting_until = None;
        instance.boot_generation += 1;
        instance.booted_at = Some(at);
        let guest_was_impaired = instance
            .impairment
            .as_ref()
            .is_some_and(|impairment| impairment.check == ImpairedCheck::Instance);
        if guest_was_impaired {
            instance.impairment = None;
        }
        self.touch();
    }

    pub(super) fn spot_reclaimed(&mut self, at: Timestamp, id: &str) {
        let notice = self
            .instances
            .get_mut(id)
            .and_then(|instance| instance.spot.as_mut())
            .and_then(|spot| spot.notice.take_if(|notice| notice.time == at));
        match notice.map(|notice| notice.action) {
            Some(SpotAction::Terminate) => {
                self.begin_termination(at, id, ChangedBy::SpotReclaim);
            }
            Some(SpotAction::Stop | SpotAction::Hibernate) => {
                self.begin_stop(at, id, ChangedBy::SpotReclaim);
            }
            None => {}
        }
    }
}

/// Refuses ids that are no instance's.
pub(super) fn check_instance_ids(ids: &[String]) -> Result<(), Ec2Error> {
    match ids.iter().find(|id| !is_resource_id(id, "i")) {
        None => Ok(()),
        Some(id) => Err(Ec2Error::new(
            "InvalidInstanceID.Malformed",
            format!("Invalid id: \"{id}\" (expecting \"i-...\")"),
        )),
    }
}

fn enter(instance: &mut Instance, state: InstanceState, until: Timestamp) {
    instance.state = state;
    instance.transition_due = Some(until);
}

pub(super) fn check_stoppable(instance: &Instance) -> Result<(), Ec2Error> {
    match instance.state {
        InstanceState::Stopped | InstanceState::Stopping => return Ok(()),
        InstanceState::Running => {}
        InstanceState::Pending | InstanceState::ShuttingDown | InstanceState::Terminated => {
            return Err(incorrect_state(instance, "stopped"));
        }
    }
    if instance.parameters.disable_api_stop == Some(true) {
        return Err(Ec2Error::new(
            "OperationNotPermitted",
            format!(
                "The instance '{}' may not be stopped. Modify its 'disableApiStop' instance \
                 attribute and try again.",
                instance.id
            ),
        ));
    }
    if instance.spot.as_ref().is_some_and(|spot| !spot.persistent) {
        return Err(Ec2Error::unsupported(format!(
            "You can't stop the Spot Instance '{}' because it is associated with a one-time Spot \
             Instance request. You can only stop Spot Instances associated with persistent Spot \
             Instance requests.",
            instance.id
        )));
    }
    Ok(())
}

pub(super) fn check_rebootable(instance: &Instance) -> Result<(), Ec2Error> {
    match instance.state {
        InstanceState::Running => Ok(()),
        InstanceState::Pending
        | InstanceState::ShuttingDown
        | InstanceState::Terminated
        | InstanceState::Stopping
        | InstanceState::Stopped => Err(incorrect_state(instance, "rebooted")),
    }
}

fn incorrect_state(instance: &Instance, verb: &str) -> Ec2Error {
    Ec2Error::new(
        "IncorrectInstanceState",
        format!("The instance '{}' is not in a state from which it can be {verb}.", instance.id),
    )
}
