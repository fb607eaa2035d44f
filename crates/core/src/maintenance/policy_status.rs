//! What there is to say on a MaintenancePolicy itself: whether it can be used, for how many machines it
//! holds, and when work may begin next.

use std::collections::BTreeMap;

use jiff::Timestamp;
use machinist_api::{
    Condition, ConditionSeverity, MaintenancePolicy, MaintenancePolicyStatus,
    condition::{self, to_seconds},
    names::{condition_type, reason},
};

use super::{
    policies::{Chosen, PolicySet, Subject},
    policy,
};
use crate::calendar::HORIZON;

/// For how many machines each policy holds, and who comes before it, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    holds: BTreeMap<String, usize>,
    /// By loser and winner.
    overruled: BTreeMap<String, BTreeMap<String, usize>>,
}

impl Coverage {
    pub fn of<'a>(set: &PolicySet, subjects: impl IntoIterator<Item = Subject<'a>>) -> Self {
        let mut coverage = Self::default();
        for subject in subjects {
            let resolution = set.resolve(&subject);
            let winner = match resolution.policy {
                Chosen::Valid(policy) => policy.name.clone(),
                Chosen::Invalid { name, .. } => Some(name.to_owned()),
            };
            let Some(winner) = winner else { continue };
            *coverage.holds.entry(winner.clone()).or_default() += 1;
            for loser in resolution.overruled {
                let winners = coverage.overruled.entry(loser.to_owned()).or_default();
                *winners.entry(winner.clone()).or_default() += 1;
            }
        }
        coverage
    }
}

/// The status of a policy; the same as before where nothing changed.
pub fn status(
    policy: &MaintenancePolicy,
    coverage: &Coverage,
    now: Timestamp,
) -> MaintenancePolicyStatus {
    let name = policy.metadata.name.as_deref().unwrap_or_default();
    let mut status = policy.status.clone().unwrap_or_default();
    status.observed_generation = policy.metadata.generation;
    let holds = coverage.holds.get(name).copied().unwrap_or(0);
    status.machines = Some(i32::try_from(holds).unwrap_or(i32::MAX));
    let read = policy::read(policy);
    let valid = match &read {
        Ok(_) => Condition::holds(condition_type::VALID, now),
        Err(faults) => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            let message =
                format!("it cannot be used, and its machines wait: {}", faults.join("; "));
            Condition::fails(
                condition_type::VALID,
                ConditionSeverity::Error,
                reason::INVALID_CONFIGURATION,
                message,
                now,
            )
        }
    };
    condition::set(&mut status.conditions, valid);
    let overruled = match coverage.overruled.get(name) {
        None => Condition::fails(
            condition_type::OVERRULED,
            ConditionSeverity::Info,
            reason::AS_DESIRED,
            "no other policy comes before it",
            now,
        ),
        Some(winners) => {
            let words: Vec<String> = winners
                .iter()
                .map(|(winner, machines)| format!("policy {winner} for {machines} machines"))
                .collect();
            Condition::holds(condition_type::OVERRULED, now)
                .with_reason("OtherPolicyFirst")
                .with_message(format!("others come before it: {}", words.join(", ")))
        }
    };
    condition::set(&mut status.conditions, overruled);
    status.next_opening = match &read {
        Ok(policy)
            if !policy.calendar.windows.is_empty() || !policy.calendar.freezes.is_empty() =>
        {
            let limit = now.checked_add(HORIZON).unwrap_or(Timestamp::MAX);
            let next = policy.calendar.next_opening(now, limit).map(|opening| opening.start);
            // While it is open, the time at which that was first seen stays.
            let known = status.next_opening.filter(|known| next == Some(now) && known.0 <= now);
            known.or_else(|| next.map(to_seconds))
        }
        Ok(_) | Err(_) => None,
    };
    status
}
