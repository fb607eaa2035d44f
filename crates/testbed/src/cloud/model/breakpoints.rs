//! Where is a call held without an answer, so that a test can kill its caller exactly there?

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Caller, Cloud,
    console::ConsoleError,
    faults::{check_action, concerns},
    ledger::LedgerCall,
    request::Request,
};

/// What `POST /breakpoints` takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewBreakpoint {
    /// An action as the ledger names it; `*` is every action, and may end a name.
    pub action: String,
    /// Which matching call is held, counted from one and from now on.
    #[serde(default = "first")]
    pub nth: u64,
    #[serde(default)]
    pub when: HoldWhen,
    /// Whether reads are neither counted nor held.
    #[serde(default)]
    pub mutating_only: bool,
    /// Whose calls; none means everybody's.
    #[serde(default)]
    pub access_key: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldWhen {
    /// The call has no effect.
    #[default]
    Before,
    /// The call has its effect; only its answer is held.
    After,
}

/// A breakpoint that stands. It holds one call and lets every other pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Breakpoint {
    pub id: u64,
    #[serde(flatten)]
    pub wanted: NewBreakpoint,
    /// How many matching calls have come.
    pub seen: u64,
    pub hit: bool,
    pub call: Option<HeldCall>,
}

/// The call that a breakpoint holds, as the ledger has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldCall {
    pub sequence: u64,
    pub time: Timestamp,
    pub action: String,
    /// `Held` where the call had no effect, else what it would have answered.
    pub result: String,
    pub instance_ids: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Breakpoints {
    standing: Vec<Breakpoint>,
    next_id: u64,
    revision: u64,
}

impl Breakpoints {
    /// Counts the call, and returns which breakpoint holds it and when.
    pub(super) fn strike(&mut self, caller: &Caller, request: &Request) -> Option<(u64, HoldWhen)> {
        let mut held = None;
        for breakpoint in &mut self.standing {
            let wanted = &breakpoint.wanted;
            let is_meant = wanted
                .access_key
                .as_ref()
                .is_none_or(|key| caller.access_key_id.as_ref() == Some(key));
            let matches = is_meant
                && concerns(&wanted.action, request.action())
                && (request.is_mutating() || !wanted.mutating_only);
            if !matches {
                continue;
            }
            breakpoint.seen += 1;
            // Where two breakpoints mean the same call, the later one waits for the next.
            let is_due = !breakpoint.hit && breakpoint.seen >= breakpoint.wanted.nth;
            if is_due && held.is_none() {
                breakpoint.hit = true;
                held = Some((breakpoint.id, breakpoint.wanted.when));
                self.revision += 1;
            }
        }
        held
    }

    pub(super) fn note(&mut self, id: u64, call: &LedgerCall) {
        if let Some(breakpoint) = self.standing.iter_mut().find(|breakpoint| breakpoint.id == id) {
            breakpoint.call = Some(HeldCall {
                sequence: call.sequence,
                time: call.time,
                action: call.action.clone(),
                result: call.result.clone(),
                instance_ids: call.instance_ids.clone(),
            });
        }
    }
}

impl Cloud {
    pub fn add_breakpoint(&mut self, wanted: NewBreakpoint) -> Result<Breakpoint, ConsoleError> {
        check_action(&wanted.action).map_err(ConsoleError::Invalid)?;
        if wanted.nth == 0 {
            return Err(ConsoleError::Invalid("nth counts from 1".into()));
        }
        self.breakpoints.next_id += 1;
        let breakpoint =
            Breakpoint { id: self.breakpoints.next_id, wanted, seen: 0, hit: false, call: None };
        self.breakpoints.standing.push(breakpoint.clone());
        self.breakpoints.revision += 1;
        Ok(breakpoint)
    }

    pub fn breakpoints(&self) -> &[Breakpoint] {
        &self.breakpoints.standing
    }

    pub fn breakpoint(&self, id: u64) -> Option<&Breakpoint> {
        self.breakpoints.standing.iter().find(|breakpoint| breakpoint.id == id)
    }

    pub fn remove_breakpoint(&mut self, id: u64) -> Result<(), ConsoleError> {
        if self.breakpoint(id).is_none() {
            return Err(ConsoleError::NotFound(format!("breakpoint {id} does not exist")));
        }
        self.breakpoints.standing.retain(|breakpoint| breakpoint.id != id);
        self.breakpoints.revision += 1;
        Ok(())
    }

    pub fn clear_breakpoints(&mut self) {
        self.breakpoints.standing.clear();
        self.breakpoints.revision += 1;
    }

    /// Returns a number that grows when a breakpoint is set, hit or removed.
    pub fn breakpoint_revision(&self) -> u64 {
        self.breakpoints.revision
    }
}

fn first() -> u64 {
    1
}
