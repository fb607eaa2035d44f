//! How large is each set to be while a deployment is paused?
//!
//! No set is made and nothing is rolled out. A change of the size is shared among the sets that have Machines, in
//! proportion to theirs.

use super::sizes::Sizes;

/// A set in the order in which it is asked: the newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    pub sizes: Sizes,
    /// The largest size of the whole deployment when this set was last changed, as its annotation says.
    pub most: Option<i32>,
}

/// The sizes that are wanted, in the order given. `current` is the place of the set of the template as it is now.
pub fn scale(replicas: i32, surge: i32, sets: &[Shared], current: Option<usize>) -> Vec<i32> {
    let specs: Vec<i32> = sets.iter().map(|set| set.sizes.spec).collect();
    let active: Vec<usize> = (0..sets.len()).filter(|place| at(&specs, *place) > 0).collect();
    let only = match active.as_slice() {
        [] => current.or_else(|| (!sets.is_empty()).then_some(0)),
        [one] => Some(*one),
        _ => None,
    };
    if let Some(only) = only {
        return with(specs, only, replicas);
    }
    let is_saturated = current
        .and_then(|place| sets.get(place))
        .is_some_and(|set| set.sizes.spec == replicas && set.sizes.available == replicas);
    if is_saturated {
        let kept = |place| if Some(place) == current { replicas } else { 0 };
        return (0..sets.len()).map(kept).collect();
    }
    let most = if replicas > 0 { replicas.saturating_add(surge) } else { 0 };
    shared(most, sets, specs, &active)
}

fn shared(most: i32, sets: &[Shared], mut specs: Vec<i32>, active: &[usize]) -> Vec<i32> {
    let mut rest = most - specs.iter().sum::<i32>();
    let sign = rest.signum();
    // The largest first; of equal ones the newest grows first and shrinks last.
    let mut order = active.to_vec();
    order.sort_by_key(|place| {
        let age = i64::try_from(*place).unwrap_or(0);
        (std::cmp::Reverse(at(&specs, *place)), if sign >= 0 { age } else { -age })
    });
    for place in &order {
        let Some(set) = sets.get(*place) else { continue };
        let before = i64::from(set.most.filter(|most| *most > 0).unwrap_or(most).max(1));
        let spec = i64::from(set.sizes.spec);
        let scaled = (2 * spec * i64::from(most) + before) / (2 * before);
        let change = i32::try_from(scaled - spec).unwrap_or(0);
        let change = if sign >= 0 { change.clamp(0, rest) } else { change.clamp(rest, 0) };
        specs = add(specs, *place, change);
        rest -= change;
    }
    // What rounding left over is the largest's.
    if let Some(largest) = order.first() {
        specs = add(specs, *largest, rest);
    }
    specs
}

fn at(specs: &[i32], place: usize) -> i32 {
    specs.get(place).copied().unwrap_or(0)
}

fn with(mut specs: Vec<i32>, place: usize, size: i32) -> Vec<i32> {
    if let Some(known) = specs.get_mut(place) {
        *known = size;
    }
    specs
}

fn add(specs: Vec<i32>, place: usize, change: i32) -> Vec<i32> {
    let size = (at(&specs, place) + change).max(0);
    with(specs, place, size)
}
