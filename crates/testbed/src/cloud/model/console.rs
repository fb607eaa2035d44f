//! What can a person at the console, or the provider itself, do to the cloud? The admin verbs.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::{
    Cloud, Timer,
    error::Ec2Error,
    faults::Faults,
    instance::{ImpairedCheck, Impairment, Instance, InstanceState, SpotAction, SpotNotice},
    lifecycle::{ChangedBy, check_rebootable, check_stoppable},
    reads::Hidden,
    response::StateChange,
    time::later,
};

/// Why a verb was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConsoleError {
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Invalid(String),
}

/// What `POST /instances/{id}/impair` takes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Impair {
    pub check: ImpairedCheck,
    /// False ends the impairment.
    pub impaired: bool,
}

/// What `POST /instances/{id}/spot-notice` takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SpotNoticeRequest {
    /// How long until the reclaim; two minutes when absent.
    pub after: Option<SignedDuration>,
}

/// What `POST /instances/{id}/rebalance` takes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RebalanceRequest {
    /// False takes the recommendation back.
    pub recommended: bool,
}

/// What `POST /instances/{id}/hide` takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HideRequest {
    /// How long; without it, until it is shown again.
    #[serde(rename = "for")]
    pub lasting: Option<SignedDuration>,
    /// From how many reads that ask for it at most.
    pub count: Option<u32>,
}

impl Default for Impair {
    fn default() -> Self {
        Self { check: ImpairedCheck::default(), impaired: true }
    }
}

impl Default for RebalanceRequest {
    fn default() -> Self {
        Self { recommended: true }
    }
}

impl From<Ec2Error> for ConsoleError {
    fn from(error: Ec2Error) -> Self {
        Self::Conflict(error.message)
    }
}

impl Cloud {
    pub fn console_stop(
        &mut self,
        now: Timestamp,
        id: &str,
        by: ChangedBy,
    ) -> Result<StateChange, ConsoleError> {
        self.advance(now);
        let instance = self.console_instance_mut(id)?;
        // The provider and the guest stop what a user's call may not.
        if by == ChangedBy::User {
            check_stoppable(instance)?;
        }
        // EC2 terminates such an instance when its guest shuts down.
        let ends_with_guest = instance.parameters.instance_initiated_shutdown_behavior.as_deref()
            == Some("terminate");
        if by == ChangedBy::Guest && ends_with_guest {
            return self.begin_termination(now, id, by).ok_or_else(|| cannot(id, "stopped"));
        }
        self.begin_stop(now, id, by)
            .filter(|change| {
                matches!(change.current, InstanceState::Stopping | InstanceState::Stopped)
            })
            .ok_or_else(|| cannot(id, "stopped"))
    }

    pub fn console_start(&mut self, now: Timestamp, id: &str) -> Result<StateChange, ConsoleError> {
        self.advance(now);
        let instance = self.console_instance_mut(id)?.clone();
        self.check_startable(&instance)?;
        self.begin_start(now, id).ok_or_else(|| cannot(id, "started"))
    }

    pub fn console_reboot(
        &mut self,
        now: Timestamp,
        id: &str,
        by: ChangedBy,
    ) -> Result<StateChange, ConsoleError> {
        self.advance(now);
        let instance = self.console_instance_mut(id)?;
        check_rebootable(instance)?;
        let state = instance.state;
        self.begin_reboot(now, id, by);
        Ok(StateChange { instance_id: id.to_owned(), previous: state, current: state })
    }

    pub fn console_terminate(
        &mut self,
        now: Timestamp,
        id: &str,
        by: ChangedBy,
    ) -> Result<StateChange, ConsoleError> {
        self.advance(now);
        self.console_instance_mut(id)?;
        self.begin_termination(now, id, by).ok_or_else(|| cannot(id, "terminated"))
    }

    pub fn console_impair(
        &mut self,
        now: Timestamp,
        id: &str,
        impair: &Impair,
    ) -> Result<Option<Impairment>, ConsoleError> {
        self.advance(now);
        let instance = self.console_instance_mut(id)?;
        if instance.state != InstanceState::Running {
            return Err(ConsoleError::Conflict(format!(
                "instance {id} is {}; only a running instance has status checks",
                instance.state.name()
            )));
        }
        instance.impairment =
            impair.impaired.then_some(Impairment { check: impair.check, since: now });
        let impairment = instance.impairment.clone();
        self.touch();
        Ok(impairment)
    }

    pub fn console_spot_notice(
        &mut self,
        now: Timestamp,
        id: &str,
        request: &SpotNoticeRequest,
    ) -> Result<SpotNotice, ConsoleError> {
        self.advance(now);
        let time = later(now, request.after.unwrap_or(self.config.delays.spot_notice));
        let instance = self.console_instance_mut(id)?;
        let state = instance.state;
        let behavior = instance
            .parameters
            .instance_market_options
            .as_ref()
            .and_then(|market| market.spot_options.as_ref())
            .and_then(|spot| spot.instance_interruption_behavior.as_deref());
        let action = match behavior {
            Some("stop") => SpotAction::Stop,
            Some("hibernate") => SpotAction::Hibernate,
            _ => SpotAction::Terminate,
        };
        let Some(spot) = &mut instance.spot else {
            return Err(ConsoleError::Conflict(format!("instance {id} is not a spot instance")));
        };
        if !matches!(state, InstanceState::Pending | InstanceState::Running) {
            return Err(ConsoleError::Conflict(format!(
                "instance {id} is {}; only a pending or running one can be reclaimed",
                state.name()
            )));
        }
        let notice = SpotNotice { action, time };
        spot.notice = Some(notice.clone());
        self.set_timer(time, id, Timer::SpotReclaimed);
        self.touch();
        Ok(notice)
    }

    /// Recommends to leave a spot instance; returns since when.
    pub fn console_rebalance(
        &mut self,
        now: Timestamp,
        id: &str,
        request: &RebalanceRequest,
    ) -> Result<Option<Timestamp>, ConsoleError> {
        self.advance(now);
        let Some(spot) = &mut self.console_instance_mut(id)?.spot else {
            return Err(ConsoleError::Conflict(format!("instance {id} is not a spot instance")));
        };
        spot.rebalance = request.recommended.then(|| spot.rebalance.unwrap_or(now));
        let since = spot.rebalance;
        self.touch();
        Ok(since)
    }

    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    pub fn add_faults(&mut self, now: Timestamp, faults: Faults) -> Result<&Faults, ConsoleError> {
        faults.check().map_err(ConsoleError::Invalid)?;
        self.faults.add(now, faults);
        self.refresh_replicas(now);
        Ok(&self.faults)
    }

    /// Clears the faults of one kind, named as in their JSON form.
    pub fn clear_fault_kind(&mut self, kind: &str) -> Result<(), ConsoleError> {
        self.faults = self.faults.without(kind).map_err(ConsoleError::Invalid)?;
        Ok(())
    }

    /// Leaves an instance out of every read, for a while or until it is shown again.
    pub fn console_hide(
        &mut self,
        now: Timestamp,
        id: &str,
        request: &HideRequest,
    ) -> Result<(), ConsoleError> {
        self.advance(now);
        self.console_show(now, id)?;
        let hidden = Hidden {
            instance_id: id.to_owned(),
            lasting: request.lasting,
            count: request.count,
            until: None,
        };
        self.faults.hidden.push(hidden.beginning(now));
        Ok(())
    }

    pub fn console_show(&mut self, now: Timestamp, id: &str) -> Result<(), ConsoleError> {
        self.advance(now);
        self.console_instance_mut(id)?;
        self.faults.hidden.retain(|hidden| hidden.instance_id != id);
        Ok(())
    }

    /// Takes an instance away for good and at once: no call finds it again, as an hour after its
    /// termination.
    pub fn console_vanish(
        &mut self,
        now: Timestamp,
        id: &str,
    ) -> Result<StateChange, ConsoleError> {
        self.advance(now);
        let previous = self.console_instance_mut(id)?.state;
        self.begin_termination(now, id, ChangedBy::Provider);
        if previous != InstanceState::Terminated {
            self.terminated(now, id);
        }
        self.forget_targets(id);
        self.fades(id);
        Ok(StateChange { instance_id: id.to_owned(), previous, current: InstanceState::Terminated })
    }

    pub fn clear_faults(&mut self) {
        self.faults = Faults::default();
        self.replicas.clear();
        // A full bucket again: the next throttling fault starts as a fresh account does.
        self.throttle = super::throttle::Throttle::default();
    }

    pub(super) fn console_instance_mut(&mut self, id: &str) -> Result<&mut Instance, ConsoleError> {
        self.instances
            .get_mut(id)
            .ok_or_else(|| ConsoleError::NotFound(format!("instance {id} does not exist")))
    }
}

fn cannot(id: &str, verb: &str) -> ConsoleError {
    ConsoleError::Conflict(format!("instance {id} is not in a state from which it can be {verb}"))
}
