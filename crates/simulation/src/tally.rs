//! What was reached? Faults by kind and by the phase of the Machines they hit, and interesting states.

use std::collections::BTreeMap;

use crate::faults::FaultKind;

/// The phases of the coverage matrix; `none` is a Machine that has none yet.
pub const PHASES: [&str; 6] =
    ["none", "Provisioning", "Provisioned", "Running", "Deleting", "Failed"];

/// States that every good amount of seeds must reach at least once.
pub const SOMETIMES: [&str; 32] = [
    "a launch whose answer was lost is healed by its token",
    "a crash between a launch and its record",
    "a launch arrives after its caller died",
    "a process that stops gives its leases back",
    "a process gives up because its lease is lost",
    "a machine is deleted while it is launched",
    "a drain waits for a disruption budget",
    "a drain of an unreachable node completes",
    "a stopped instance is started again",
    "a terminated instance's machine is replaced",
    "a name is used again by another machine",
    "a relist after expired history",
    "a certificate request is approved",
    "a certificate request is refused",
    "an unhealthy machine is remediated",
    "a health check restricts remediation",
    "a maintenance waits for its window",
    "a maintenance waits for the end of a freeze",
    "a maintenance waits for a budget",
    "a maintenance comes too late and asks a person",
    "a maintenance is left to the provider",
    "a maintenance is called off and everything is put back",
    "a maintenance fails and everything is put back",
    "a machine is replaced with a surplus first",
    "a machine of the control plane is replaced by a copy",
    "a machine is rebooted in place",
    "a machine is stopped and started",
    "a drain is forced after its deadline",
    "an action that failed gives way to another",
    "a surplus is taken back",
    "the provider's event is moved",
    "work is done against the calendar",
];

/// Counters of one run or of many.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub faults: BTreeMap<FaultKind, BTreeMap<&'static str, u64>>,
    /// How often each fault was injected, however many Machines there were.
    pub injected: BTreeMap<FaultKind, u64>,
    pub reached: BTreeMap<&'static str, u64>,
    pub cloud_calls: u64,
    pub api_requests: u64,
    pub process_starts: u64,
    pub machine_seconds: f64,
    pub simulated_seconds: f64,
}

impl Tally {
    pub fn count(&mut self, kind: FaultKind, phases: &[&'static str]) {
        *self.injected.entry(kind).or_default() += 1;
        let by_phase = self.faults.entry(kind).or_default();
        for phase in phases {
            *by_phase.entry(phase).or_default() += 1;
        }
    }

    pub fn sometimes(&mut self, what: &'static str) {
        *self.reached.entry(what).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (kind, phases) in &other.faults {
            let mine = self.faults.entry(*kind).or_default();
            for (phase, count) in phases {
                *mine.entry(phase).or_default() += count;
            }
        }
        for (kind, count) in &other.injected {
            *self.injected.entry(*kind).or_default() += count;
        }
        for (what, count) in &other.reached {
            *self.reached.entry(what).or_default() += count;
        }
        self.cloud_calls += other.cloud_calls;
        self.api_requests += other.api_requests;
        self.process_starts += other.process_starts;
        self.machine_seconds += other.machine_seconds;
        self.simulated_seconds += other.simulated_seconds;
    }
}
