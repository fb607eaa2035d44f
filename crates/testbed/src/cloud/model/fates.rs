//! Which instances have bad luck? Launches that die or never boot, terminations that take effect late,
//! and clocks that disagree.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    Cloud, Timer,
    faults::strikes,
    instance::{InstanceState, StateReason},
    lifecycle::ChangedBy,
    time::later,
};

/// What becomes of a launch that EC2 accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LaunchFate {
    pub kind: FateKind,
    /// The code of the state reason of one that dies; `Server.InternalError` where absent.
    #[serde(default)]
    pub code: Option<String>,
    /// How many launches at most; without it, until the faults are cleared.
    #[serde(default)]
    pub count: Option<u32>,
    #[serde(default = "super::faults::always")]
    pub probability: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FateKind {
    /// It is terminated at the moment when it should run.
    Dies,
    /// It stays pending until it is terminated.
    Stuck,
}

/// Terminations that are accepted while the instance runs on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LingeringTermination {
    #[serde(rename = "for")]
    pub lasting: SignedDuration,
    /// How many instances at most; without it, until the faults are cleared.
    #[serde(default)]
    pub count: Option<u32>,
    #[serde(default = "super::faults::always")]
    pub probability: f64,
}

/// The fate that was drawn for one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Dies(StateReason),
    Stuck,
}

impl Cloud {
    pub(super) fn draw_fate(&mut self) -> Option<Fate> {
        let randomness = &mut self.randomness;
        let drawn = self.faults.launch_fates.iter_mut().find_map(|fate| {
            strikes(&mut fate.count, fate.probability, randomness).then_some(fate)
        })?;
        Some(match drawn.kind {
            FateKind::Stuck => Fate::Stuck,
            FateKind::Dies => {
                let code = drawn.code.clone().unwrap_or_else(|| "Server.InternalError".into());
                let message = format!("{code}: Internal error on launch");
                Fate::Dies(StateReason { code, message })
            }
        })
    }

    /// Returns how long the termination of one more instance is put off; none means not at all.
    pub(super) fn draw_lingering(&mut self) -> Option<SignedDuration> {
        let randomness = &mut self.randomness;
        self.faults.lingering_terminations.iter_mut().find_map(|fault| {
            strikes(&mut fault.count, fault.probability, randomness).then_some(fault.lasting)
        })
    }

    /// Puts the termination of an instance off. Reads go on to show it as it is.
    pub(super) fn linger(&mut self, now: Timestamp, id: &str, lasting: SignedDuration) {
        let at = later(now, lasting);
        if let Some(instance) = self.instances.get_mut(id) {
            instance.lingers_until = Some(at);
            self.set_timer(at, id, Timer::LingeringEnds);
        }
    }

    pub(super) fn lingering_ends(&mut self, at: Timestamp, id: &str) {
        let is_due = self
            .instances
            .get_mut(id)
            .is_some_and(|instance| instance.lingers_until.take_if(|until| *until == at).is_some());
        if is_due {
            self.begin_termination(at, id, ChangedBy::User);
        }
    }

    /// Returns whether an instance whose boot is due dies of it instead.
    pub(super) fn dies_at_launch(&mut self, at: Timestamp, id: &str) -> bool {
        let Some(instance) = self.instances.get_mut(id) else {
            return false;
        };
        let Some(Fate::Dies(reason)) = instance.fate.take() else {
            return false;
        };
        debug_assert_eq!(instance.state, InstanceState::Pending);
        instance.transition_reason = reason.code.clone();
        instance.state_reason = Some(reason);
        self.terminated(at, id);
        true
    }

    /// Returns the time that the cloud's clock shows for a launch or start.
    pub(super) fn shown_launch_time(&mut self, now: Timestamp) -> Timestamp {
        let Some(skew) = self.faults.launch_time_skew else {
            return now;
        };
        let most = i64::try_from(skew.abs().as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
        let drawn = self.randomness.fault_below(most.unsigned_abs() * 2 + 1);
        let offset = i64::try_from(drawn).unwrap_or(0) - most;
        later(now, SignedDuration::from_millis(offset))
    }
}
