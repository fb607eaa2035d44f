//! What does the provider announce? Scheduled events: how they start, move, end and fade.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    Cloud, Timer,
    console::ConsoleError,
    error::Ec2Error,
    instance::InstanceState,
    launch_plan::check_word,
    lifecycle::ChangedBy,
    request::{ModifyInstanceEventStartTime, ModifyInstanceMaintenanceOptions},
    response::Response,
    time::later,
};

/// AWS refuses to move an event that starts within five minutes.
const MOVE_CLOSES_BEFORE_START: SignedDuration = SignedDuration::from_mins(5);
/// The new start must be at least an hour from now.
const MOVE_EARLIEST: SignedDuration = SignedDuration::from_mins(60);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledEvent {
    pub event_id: String,
    pub instance_id: String,
    pub code: EventCode,
    pub description: String,
    pub not_before: Timestamp,
    pub not_after: Option<Timestamp>,
    pub not_before_deadline: Option<Timestamp>,
    pub state: EventState,
    /// The user has done the work, and the cloud has not yet noticed.
    #[serde(skip)]
    pub(super) settling: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventCode {
    InstanceStop,
    InstanceRetirement,
    InstanceReboot,
    SystemReboot,
    SystemMaintenance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventState {
    Active,
    Completed,
    #[serde(alias = "cancelled")]
    Canceled,
}

/// What `POST /events` takes.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEvent {
    pub instance_id: String,
    pub code: EventCode,
    #[serde(default)]
    pub description: Option<String>,
    pub not_before: Timestamp,
    #[serde(default)]
    pub not_after: Option<Timestamp>,
    #[serde(default)]
    pub not_before_deadline: Option<Timestamp>,
}

/// What `PATCH /events/{id}` takes: only what is named changes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EventPatch {
    pub state: Option<EventState>,
    pub description: Option<String>,
    pub not_before: Option<Timestamp>,
    pub not_after: Option<Timestamp>,
    pub not_before_deadline: Option<Timestamp>,
}

/// What the user did with an instance; each kind of work settles other events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserWork {
    Rebooted,
    /// A stop and start moves the instance to another host, which settles everything.
    StoppedAndStarted,
}

impl EventCode {
    pub fn name(self) -> &'static str {
        match self {
            Self::InstanceStop => "instance-stop",
            Self::InstanceRetirement => "instance-retirement",
            Self::InstanceReboot => "instance-reboot",
            Self::SystemReboot => "system-reboot",
            Self::SystemMaintenance => "system-maintenance",
        }
    }

    fn usual_description(self) -> &'static str {
        match self {
            Self::InstanceStop => "The instance is running on degraded hardware",
            Self::InstanceRetirement => {
                "The instance is running on degraded hardware and is scheduled for retirement"
            }
            Self::InstanceReboot => "The instance is scheduled for a reboot",
            Self::SystemReboot => "The host of the instance is scheduled for a reboot",
            Self::SystemMaintenance => "The host of the instance is scheduled for maintenance",
        }
    }

    fn is_settled_by(self, work: UserWork, migrates: bool) -> bool {
        match work {
            UserWork::StoppedAndStarted => true,
            // An own reboot stays on the host, so it does nothing for the host's events, unless the
            // instance may migrate at a reboot.
            UserWork::Rebooted => {
                self == Self::InstanceReboot || (migrates && self == Self::SystemReboot)
            }
        }
    }
}

impl ScheduledEvent {
    /// Returns the description as EC2 lists it: finished events carry their state in front.
    pub fn wire_description(&self) -> String {
        match self.state {
            EventState::Active => self.description.clone(),
            EventState::Completed => format!("[Completed] {}", self.description),
            EventState::Canceled => format!("[Canceled] {}", self.description),
        }
    }
}

impl Cloud {
    pub fn schedule_event(
        &mut self,
        now: Timestamp,
        new: NewEvent,
    ) -> Result<ScheduledEvent, ConsoleError> {
        self.advance(now);
        let event_id = self.randomness.resource_id("instance-event");
        let instance = self.console_instance_mut(&new.instance_id)?;
        if instance.state.is_ending() {
            return Err(ConsoleError::Conflict(format!(
                "instance {} is {}; no event can be scheduled for it",
                instance.id,
                instance.state.name()
            )));
        }
        let event = ScheduledEvent {
            event_id: event_id.clone(),
            instance_id: new.instance_id.clone(),
            code: new.code,
            description: new.description.unwrap_or_else(|| new.code.usual_description().into()),
            not_before: new.not_before,
            not_after: new.not_after,
            not_before_deadline: new.not_before_deadline,
            state: EventState::Active,
            settling: false,
        };
        instance.events.insert(event_id.clone(), event.clone());
        self.set_timer(event.not_before, &new.instance_id, Timer::EventStarts(event_id));
        self.touch();
        Ok(event)
    }

    /// Returns every event that is still listed, in the order of instances and ids.
    pub fn events(&self) -> impl Iterator<Item = &ScheduledEvent> {
        self.instances.values().flat_map(|instance| instance.events.values())
    }

    pub fn patch_event(
        &mut self,
        now: Timestamp,
        event_id: &str,
        patch: EventPatch,
    ) -> Result<ScheduledEvent, ConsoleError> {
        self.advance(now);
        let event = self.console_event_mut(event_id)?;
        if let Some(description) = patch.description {
            event.description = description;
        }
        event.not_before = patch.not_before.unwrap_or(event.not_before);
        event.not_after = patch.not_after.or(event.not_after);
        event.not_before_deadline = patch.not_before_deadline.or(event.not_before_deadline);
        if let Some(state) = patch.state {
            event.state = state;
            event.settling = false;
        }
        let event = event.clone();
        let (at, timer) = match event.state {
            EventState::Active => (event.not_before, Timer::EventStarts(event_id.into())),
            EventState::Completed | EventState::Canceled => (
                later(now, self.config.delays.finished_event_visible),
                Timer::EventFades(event_id.into()),
            ),
        };
        self.set_timer(at, &event.instance_id, timer);
        self.touch();
        Ok(event)
    }

    pub fn delete_event(&mut self, now: Timestamp, event_id: &str) -> Result<(), ConsoleError> {
        self.advance(now);
        let instance_id = self.console_event_mut(event_id)?.instance_id.clone();
        if let Some(instance) = self.instances.get_mut(&instance_id) {
            instance.events.remove(event_id);
        }
        self.touch();
        Ok(())
    }

    pub(super) fn modify_event_start(
        &mut self,
        now: Timestamp,
        request: &ModifyInstanceEventStartTime,
    ) -> Result<Response, Ec2Error> {
        self.visible_instances(now, std::slice::from_ref(&request.instance_id))?;
        let event = self
            .instances
            .get_mut(&request.instance_id)
            .and_then(|instance| instance.events.get_mut(&request.instance_event_id))
            .ok_or_else(|| {
                Ec2Error::new(
                    "InvalidInstanceEventIDNotFound",
                    format!(
                        "The event '{}' does not exist for instance '{}'",
                        request.instance_event_id, request.instance_id
                    ),
                )
            })?;
        let refuse = |why: &str| {
            Err(Ec2Error::new(
                "InvalidInstanceEventStartTime",
                format!("The event '{}' cannot be rescheduled: {why}", request.instance_event_id),
            ))
        };
        let Some(deadline) = event.not_before_deadline else {
            return refuse("it has no deadline, so its start is fixed");
        };
        if event.state != EventState::Active || event.not_before <= now {
            return refuse("it has already started or finished");
        }
        if event.not_before < later(now, MOVE_CLOSES_BEFORE_START) {
            return refuse("it starts in less than 5 minutes");
        }
        if request.not_before < later(now, MOVE_EARLIEST) {
            return refuse("the new start must be at least 60 minutes from now");
        }
        if request.not_before > deadline {
            return refuse("the new start is after the deadline");
        }
        if let Some(not_after) = event.not_after {
            let length = not_after.duration_since(event.not_before);
            event.not_after = Some(later(request.not_before, length));
        }
        event.not_before = request.not_before;
        let event = event.clone();
        self.set_timer(
            event.not_before,
            &request.instance_id,
            Timer::EventStarts(event.event_id.clone()),
        );
        self.touch();
        Ok(Response::EventMoved(event))
    }

    pub(super) fn modify_maintenance_options(
        &mut self,
        now: Timestamp,
        request: &ModifyInstanceMaintenanceOptions,
    ) -> Result<Response, Ec2Error> {
        let words = &["disabled", "default"];
        check_word("autoRecovery", request.auto_recovery.as_deref(), words)?;
        check_word("rebootMigration", request.reboot_migration.as_deref(), words)?;
        let id = &request.instance_id;
        self.visible_instances(now, std::slice::from_ref(id))?;
        let instance = self
            .instances
            .get_mut(id)
            .filter(|instance| !instance.state.is_ending())
            .ok_or_else(|| {
                Ec2Error::new(
                    "IncorrectInstanceState",
                    format!("The maintenance options of instance '{id}' cannot be modified now"),
                )
            })?;
        if let Some(auto_recovery) = &request.auto_recovery {
            instance.auto_recovery.clone_from(auto_recovery);
        }
        if let Some(reboot_migration) = &request.reboot_migration {
            instance.reboot_migration.clone_from(reboot_migration);
        }
        let answer = Response::MaintenanceOptions {
            instance_id: id.clone(),
            auto_recovery: instance.auto_recovery.clone(),
            reboot_migration: instance.reboot_migration.clone(),
        };
        self.touch();
        Ok(answer)
    }

    /// Does at its start what the provider announced.
    pub(super) fn event_starts(&mut self, at: Timestamp, instance_id: &str, event_id: &str) {
        let Some(instance) = self.instances.get_mut(instance_id) else {
            return;
        };
        let state = instance.state;
        let is_spot = instance.is_spot();
        let Some(event) = instance.events.get_mut(event_id) else {
            return;
        };
        // An event that was moved since has another timer; one that is settling has nothing left to do.
        let is_due = event.state == EventState::Active && event.not_before == at && !event.settling;
        if !is_due {
            return;
        }
        event.state = EventState::Completed;
        let code = event.code;
        self.set_timer(
            later(at, self.config.delays.finished_event_visible),
            instance_id,
            Timer::EventFades(event_id.into()),
        );
        self.touch();
        let is_up = matches!(state, InstanceState::Running | InstanceState::Pending);
        match code {
            EventCode::InstanceStop | EventCode::InstanceRetirement if is_up => {
                if is_spot {
                    self.begin_termination(at, instance_id, ChangedBy::Provider);
                } else {
                    self.begin_stop(at, instance_id, ChangedBy::Provider);
                }
            }
            EventCode::InstanceReboot | EventCode::SystemReboot if is_up => {
                self.begin_reboot(at, instance_id, ChangedBy::Provider);
            }
            // A stopped instance has nothing to stop or reboot; maintenance is a short loss of
            // connectivity, which a state machine of instances does not show.
            EventCode::InstanceStop
            | EventCode::InstanceRetirement
            | EventCode::InstanceReboot
            | EventCode::SystemReboot
            | EventCode::SystemMaintenance => {}
        }
    }

    /// Notes that the user did the work of some events; the cloud shows it after a while.
    pub(super) fn settle_events(&mut self, now: Timestamp, instance_id: &str, work: UserWork) {
        let Some(instance) = self.instances.get_mut(instance_id) else {
            return;
        };
        let migrates = instance.reboot_migration == "default";
        let mut settled = Vec::new();
        for event in instance.events.values_mut() {
            let settles = event.state == EventState::Active
                && !event.settling
                && event.code.is_settled_by(work, migrates);
            if settles {
                event.settling = true;
                settled.push(event.event_id.clone());
            }
        }
        let noticed_at = later(now, self.config.delays.event_refresh);
        for event_id in settled {
            self.set_timer(noticed_at, instance_id, Timer::EventSettles(event_id));
        }
    }

    pub(super) fn event_settles(&mut self, at: Timestamp, instance_id: &str, event_id: &str) {
        let fades_at = later(at, self.config.delays.finished_event_visible);
        let Some(event) = self
            .instances
            .get_mut(instance_id)
            .and_then(|instance| instance.events.get_mut(event_id))
            .filter(|event| event.settling)
        else {
            return;
        };
        event.settling = false;
        event.state = EventState::Completed;
        self.set_timer(fades_at, instance_id, Timer::EventFades(event_id.into()));
        self.touch();
    }

    pub(super) fn event_fades(&mut self, instance_id: &str, event_id: &str) {
        let Some(instance) = self.instances.get_mut(instance_id) else {
            return;
        };
        let is_finished =
            instance.events.get(event_id).is_some_and(|event| event.state != EventState::Active);
        if is_finished {
            instance.events.remove(event_id);
            self.touch();
        }
    }

    fn console_event_mut(&mut self, event_id: &str) -> Result<&mut ScheduledEvent, ConsoleError> {
        self.instances
            .values_mut()
            .find_map(|instance| instance.events.get_mut(event_id))
            .ok_or_else(|| ConsoleError::NotFound(format!("event {event_id} does not exist")))
    }
}
