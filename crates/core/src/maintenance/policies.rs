//! Which policy holds for a machine, where there are several, and which of them cannot be used.
//!
//! Of those that select a machine the one with the highest priority holds, and of equal ones the
//! first by name. One that cannot be read still selects: its machines wait, because without it they
//! would be maintained at an hour that nobody chose.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::{Selector, SelectorExt};
use machinist_api::{Machine, MaintenancePolicy, names::label};

use super::{
    managed_upgrade::Legacy,
    policy::{self, Policy},
};
use crate::decision::FieldError;

/// All policies of the cluster, read.
#[derive(Clone, Debug, Default)]
pub struct PolicySet {
    /// Highest priority first, then by name.
    candidates: Vec<Candidate>,
    usual: Policy,
}

#[derive(Clone, Debug)]
struct Candidate {
    name: String,
    priority: i32,
    selects: Selects,
    policy: Result<Policy, Vec<FieldError>>,
}

#[derive(Clone, Debug)]
enum Selects {
    /// The selector cannot be read: it is of nobody.
    Nobody,
    These {
        labels: Option<Selector>,
        pools: BTreeSet<String>,
        roles: BTreeSet<String>,
    },
}

/// What of a machine a policy is chosen by.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub labels: Option<&'a BTreeMap<String, String>>,
    pub pool: Option<&'a str>,
    pub role: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// The pool is the one that made the Machine, also when that is gone already: what its policy asks for holds to the end.
    pub fn of(machine: &'a Machine) -> Self {
        let labels = machine.metadata.labels.as_ref();
        let owners = machine.metadata.owner_references.iter().flatten();
        let mut controllers = owners.filter(|owner| owner.controller == Some(true));
        Self {
            labels,
            pool: controllers.next().map(|owner| owner.name.as_str()),
            role: labels.and_then(|all| all.get(label::MACHINE_ROLE)).map(String::as_str),
        }
    }
}

/// The policy of a machine.
#[derive(Clone, Debug)]
pub struct Resolution<'a> {
    pub policy: Chosen<'a>,
    /// Those that select the machine too and do not hold, in order.
    pub overruled: Vec<&'a str>,
}

#[derive(Clone, Debug)]
pub enum Chosen<'a> {
    Valid(&'a Policy),
    Invalid { name: &'a str, faults: &'a [FieldError] },
}

impl PolicySet {
    /// Reads all policies. The freezes of `legacy` hold for all of them, its windows for those that
    /// have none.
    pub fn read<'a>(
        policies: impl IntoIterator<Item = &'a MaintenancePolicy>,
        legacy: &Legacy,
    ) -> Self {
        let mut candidates: Vec<Candidate> = policies
            .into_iter()
            .filter(|policy| policy.metadata.deletion_timestamp.is_none())
            .map(|policy| Candidate {
                name: policy.metadata.name.clone().unwrap_or_default(),
                priority: policy.spec.priority.unwrap_or(0),
                selects: Selects::of(policy),
                policy: policy::read(policy).map(|policy| legacy.applied_to(policy)),
            })
            .collect();
        candidates.sort_by(|left, right| {
            right.priority.cmp(&left.priority).then_with(|| left.name.cmp(&right.name))
        });
        Self { candidates, usual: legacy.applied_to(Policy::default()) }
    }

    /// One policy for all machines: to try one that is in a file, or none at all.
    pub fn of(policy: Policy) -> Self {
        Self { candidates: Vec::new(), usual: policy }
    }

    /// The policy that holds for a machine.
    pub fn resolve(&self, subject: &Subject<'_>) -> Resolution<'_> {
        let mut selecting =
            self.candidates.iter().filter(|candidate| candidate.selects.matches(subject));
        let Some(first) = selecting.next() else {
            return Resolution { policy: Chosen::Valid(&self.usual), overruled: Vec::new() };
        };
        let policy = match &first.policy {
            Ok(policy) => Chosen::Valid(policy),
            Err(faults) => Chosen::Invalid { name: &first.name, faults },
        };
        Resolution { policy, overruled: selecting.map(|one| one.name.as_str()).collect() }
    }

    /// The policy of a name, where it can be used; without a name, what holds without a policy.
    pub fn get(&self, name: Option<&str>) -> Option<&Policy> {
        let Some(name) = name else { return Some(&self.usual) };
        self.candidates.iter().find(|one| one.name == name)?.policy.as_ref().ok()
    }

    /// The policies that cannot be used, each with what is wrong, by name.
    pub fn faults(&self) -> BTreeMap<&str, &[FieldError]> {
        self.candidates
            .iter()
            .filter_map(|one| {
                one.policy.as_ref().err().map(|faults| (one.name.as_str(), &**faults))
            })
            .collect()
    }
}

impl Selects {
    fn of(policy: &MaintenancePolicy) -> Self {
        let Ok(labels) = policy::selector(policy) else { return Self::Nobody };
        let selector = policy.spec.selector.clone().unwrap_or_default();
        Self::These {
            labels,
            pools: selector.pools.into_iter().collect(),
            roles: selector.roles.iter().map(|role| role_name(role).to_owned()).collect(),
        }
    }

    fn matches(&self, subject: &Subject<'_>) -> bool {
        let Self::These { labels, pools, roles } = self else { return false };
        let empty = BTreeMap::new();
        let is_of = |names: &BTreeSet<String>, name: Option<&str>| {
            names.is_empty() || name.is_some_and(|name| names.contains(name))
        };
        is_of(pools, subject.pool)
            && is_of(roles, subject.role.map(role_name))
            && labels.as_ref().is_none_or(|labels| labels.matches(subject.labels.unwrap_or(&empty)))
    }
}

/// One role has two names.
fn role_name(role: &str) -> &str {
    if role == "control-plane" { "master" } else { role }
}
