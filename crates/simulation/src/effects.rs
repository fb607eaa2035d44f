//! What is an effect, and who may come between it and its record?
//!
//! Every write of an operator to the API server (Leases and Events apart) and every call of it that
//! changes the cloud passes here, in order, with a number of its own.

use std::{fmt::Debug, time::Duration};

/// An effect that is about to happen.
#[derive(Clone, Debug)]
pub struct Effect {
    /// Counts the effects of all processes, from one.
    pub number: u64,
    /// The life of the process that causes it.
    pub tag: String,
    pub place: Place,
    /// `RunInstances`, `MergePatch machines/status`.
    pub what: String,
    /// The object or instance that it is about.
    pub target: String,
}

/// Where an effect happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Cluster,
    Cloud,
}

/// What becomes of an effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EffectFate {
    #[default]
    Pass,
    /// The process dies before it is sent.
    CrashBefore,
    /// It happens, and the process dies before it hears of it.
    CrashAfter,
    /// It happens, and the process is told that nobody knows.
    LoseAnswer,
    /// It does not happen: a conflict of the API server, an internal error of the cloud.
    Refuse,
    /// It is on its way for so long, whatever becomes of the process.
    Delay(Duration),
}

/// Comes between effects and their records.
pub trait Interference: Debug + Send {
    fn on_effect(&mut self, effect: &Effect) -> EffectFate {
        let _ = effect;
        EffectFate::Pass
    }
}

impl Interference for Box<dyn Interference> {
    fn on_effect(&mut self, effect: &Effect) -> EffectFate {
        (**self).on_effect(effect)
    }
}

/// Lets everything pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoInterference;

impl Interference for NoInterference {}
