//! How large is each set to be while Machines go over to a new template?
//!
//! Pure arithmetic over sizes; the rules are Cluster API's.

use super::{observed::Policy, sizes::Sizes};

/// Sizes that are wanted: of the current set, and of the old ones in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub new: i32,
    pub old: Vec<i32>,
}

/// `old` are the other sets, the oldest first.
pub fn plan(policy: &Policy, replicas: i32, new: Sizes, old: &[Sizes]) -> Plan {
    if policy.is_on_delete {
        on_delete(replicas, new, old)
    } else {
        rolling(policy, replicas, new, old)
    }
}

fn rolling(policy: &Policy, replicas: i32, new: Sizes, old: &[Sizes]) -> Plan {
    let mut plan = Plan {
        new: grown(replicas, policy.surge(replicas), new, old),
        old: old.iter().map(|one| one.spec).collect(),
    };
    if old.iter().all(|one| one.spec == 0) {
        return plan;
    }
    let least = (replicas - policy.unavailable(replicas)).max(0);
    // What is told to go already, and in the worst case is what works.
    let going = |one: &Sizes, wanted: i32| (one.status - wanted.min(one.spec)).max(0);
    let all = || old.iter().chain([&new]);
    let told: i32 = all().map(|one| one.spec).sum();
    let pending: i32 =
        old.iter().map(|one| going(one, one.spec)).sum::<i32>() + going(&new, plan.new);
    let starting = (new.spec - new.available).max(0);
    let mut budget = (told - pending - least - starting).max(0);
    let mut available: i32 =
        all().map(|one| one.available - going(one, one.spec).min(one.available)).sum();
    for is_only_unavailable in [true, false] {
        for (one, size) in old.iter().zip(&mut plan.old) {
            let works = one.available.min(*size);
            let room = if is_only_unavailable { *size - works } else { *size };
            // A set chooses itself which Machines go: those that work may be the first.
            let bound = if available - works >= least { *size } else { (available - least).max(0) };
            let cut = room.min(budget).min(bound).max(0);
            *size -= cut;
            budget -= cut;
            available -= cut.min(works);
        }
    }
    let is_unmoved =
        plan.new == new.spec && old.iter().zip(&plan.old).all(|(one, size)| one.spec == *size);
    let is_quiet = all().all(|one| one.is_told && one.spec == one.status);
    let is_new_complete = new.spec == new.available;
    if is_unmoved && is_quiet && is_new_complete {
        // Nothing will move by itself: what does not work in an old set makes room.
        let broken = old.iter().zip(&mut plan.old).find(|(one, _)| one.spec > one.available);
        if let Some((_, size)) = broken {
            *size -= 1;
        }
    }
    plan
}

/// The size of the current set: as large as the whole may be.
fn grown(replicas: i32, surge: i32, new: Sizes, old: &[Sizes]) -> i32 {
    if new.spec >= replicas {
        return replicas;
    }
    let total: i32 = old.iter().chain([&new]).map(|one| one.spec.max(one.status)).sum();
    let room = (replicas.saturating_add(surge) - total).max(0);
    new.spec + room.min(replicas - new.spec)
}

/// Old Machines go when a person deletes them; each that is gone is made anew in the current set.
fn on_delete(replicas: i32, new: Sizes, old: &[Sizes]) -> Plan {
    // One of which nothing is told may have all its Machines: it is not told to be smaller.
    let there = |one: &Sizes| if one.is_told { one.spec.min(one.status) } else { one.spec };
    let mut sizes: Vec<i32> = old.iter().map(there).collect();
    let kept = new.spec.min(replicas);
    let mut surplus = (sizes.iter().sum::<i32>() + kept - replicas).max(0);
    for size in &mut sizes {
        let cut = (*size).min(surplus);
        *size -= cut;
        surplus -= cut;
    }
    Plan { new: grown(replicas, 0, new, old), old: sizes }
}
