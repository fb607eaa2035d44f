//! Which effects does a script strike? Aims are taken one after the other; whatever they let pass, the
//! script's caller may still interfere with.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;

use super::{step::OnEffect, witness::Witness};
use crate::{
    clock::Clock,
    effects::{Effect, EffectFate, Interference},
    hub::lock,
};

/// What stands between effects and their records. Clones share everything.
#[derive(Clone, Debug)]
pub struct Aims {
    clock: Clock,
    witness: Witness,
    shared: Arc<Mutex<Shared>>,
    beyond: Arc<Mutex<Box<dyn Interference>>>,
}

#[derive(Debug, Default)]
struct Shared {
    aims: Vec<Aim>,
    log: Vec<LoggedEffect>,
}

#[derive(Debug)]
struct Aim {
    spec: OnEffect,
    /// Whether the effect that it waits for has been seen.
    is_ready: bool,
    seen: u64,
}

/// An effect that was tried.
#[derive(Clone, Debug)]
pub struct LoggedEffect {
    pub at: Timestamp,
    pub what: String,
    pub target: String,
}

impl Aims {
    #[must_use]
    pub fn new(clock: Clock, witness: Witness, beyond: Box<dyn Interference>) -> Self {
        let beyond = Arc::new(Mutex::new(beyond));
        Self { clock, witness, shared: Arc::default(), beyond }
    }

    pub fn add(&self, spec: &OnEffect) {
        let aim = Aim { spec: spec.clone(), is_ready: spec.after.is_none(), seen: 0 };
        lock(&self.shared).aims.push(aim);
    }

    pub fn clear(&self) {
        lock(&self.shared).aims.clear();
    }

    pub fn log<T>(&self, look: impl FnOnce(&[LoggedEffect]) -> T) -> T {
        look(&lock(&self.shared).log)
    }

    fn is_about(&self, effect: &Effect, spec: &OnEffect) -> bool {
        spec.machine.as_ref().is_none_or(|name| {
            self.witness.machine(name).is_some_and(|machine| machine.name == effect.target)
        })
    }
}

impl Interference for Aims {
    fn on_effect(&mut self, effect: &Effect) -> EffectFate {
        let mut fate = EffectFate::Pass;
        {
            let mut shared = lock(&self.shared);
            shared.log.push(LoggedEffect {
                at: self.clock.now(),
                what: effect.what.clone(),
                target: effect.target.clone(),
            });
            for aim in &mut shared.aims {
                let is_meant = effect.what == aim.spec.what && self.is_about(effect, &aim.spec);
                if aim.is_ready && is_meant {
                    aim.seen += 1;
                    let first = aim.spec.occurrence;
                    let is_hit = aim.seen >= first && aim.seen < first + aim.spec.times;
                    if is_hit && fate == EffectFate::Pass {
                        fate = aim.spec.fate.0;
                    }
                }
                if aim.spec.after.as_deref() == Some(effect.what.as_str()) {
                    aim.is_ready = true;
                }
            }
        }
        if fate == EffectFate::Pass { lock(&self.beyond).on_effect(effect) } else { fate }
    }
}
