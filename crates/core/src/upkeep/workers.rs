//! Whether a new cluster has the workers that it needs to be called available.

use std::collections::BTreeMap;

use machinist_api::{Machine, MachineSet, names::phase};

use crate::selector::MachineSelector;

/// A cluster's own workloads need two places.
const MINIMUM: usize = 2;

/// What is missing, in the contract's words; none when it is enough. Asked only until the operator
/// was available for the first time.
pub fn missing(sets: &[&MachineSet], machines: &[&Machine]) -> Option<String> {
    let (mut expected, mut running) = (0_usize, 0_usize);
    let mut waiting: Vec<&str> = Vec::new();
    for set in sets {
        let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or_default();
        let of_set: Vec<&&Machine> = members(set, machines).collect();
        if of_set.len() != wanted {
            let name = set.metadata.name.as_deref().unwrap_or_default();
            return Some(format!(
                "replicas not satisfied for MachineSet {name}: expected {wanted} replicas, got {} \
                 current replicas",
                of_set.len()
            ));
        }
        expected += wanted;
        for machine in of_set {
            if is_running(machine) {
                running += 1;
            } else {
                waiting.push(machine.metadata.name.as_deref().unwrap_or_default());
            }
        }
    }
    if expected <= 1 || running >= MINIMUM {
        return None;
    }
    waiting.sort_unstable();
    Some(format!(
        "minimum worker replica count ({MINIMUM}) not yet met: current running replicas {running}, \
         waiting for [{}]",
        waiting.join(" ")
    ))
}

fn members<'a>(
    set: &MachineSet,
    machines: &'a [&'a Machine],
) -> impl Iterator<Item = &'a &'a Machine> {
    // A selector that cannot be read selects nothing, and the count says so.
    let selector = MachineSelector::read("spec.selector", &set.spec.selector).ok();
    machines.iter().filter(move |machine| {
        let empty = BTreeMap::new();
        let labels = machine.metadata.labels.as_ref().unwrap_or(&empty);
        selector.as_ref().is_some_and(|selector| selector.matches(labels))
    })
}

fn is_running(machine: &Machine) -> bool {
    let phase = machine.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some(phase::RUNNING)
}
