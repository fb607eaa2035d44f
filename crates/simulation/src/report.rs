//! What is said of many runs? How fast they were, what was injected, which cells of the matrix of faults
//! and phases stayed empty, and which states were never reached.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use crate::{
    faults::{FaultKind, Level, NOT_INJECTED},
    tally::{PHASES, SOMETIMES, Tally},
    world::RunReport,
};

/// Cells that cannot be hit, with the reason.
pub const IMPOSSIBLE: &[(FaultKind, &[&str], &str)] = &[
    (FaultKind::F25, WITHOUT_INSTANCE, "pods of a Machine that was never launched are on no Node"),
    (FaultKind::F30, &["Failed"], "nothing more is done for a Machine that failed for good"),
    (FaultKind::F35, &["Deleting"], "a Machine that goes is not edited by its users"),
    (FaultKind::F40, BUT_PROVISIONING, "instances are new while their Machine is Provisioning"),
    (FaultKind::F44, BUT_PROVISIONING, "only a Machine that is Provisioning is launched"),
    (FaultKind::F45, BUT_PROVISIONING, "only a Machine that is Provisioning is launched"),
    (FaultKind::F49, BUT_PROVISIONING, "decided at the launch, in Provisioning"),
    (FaultKind::F50, BUT_DELETING, "only the instance of a Machine being deleted is terminated"),
    (FaultKind::F55, BUT_PROVISIONING, "a name is given to a new instance, in Provisioning"),
    (FaultKind::F56, WITHOUT_INSTANCE, "there is no instance to act on"),
    (FaultKind::F57, WITHOUT_INSTANCE, "there is no instance to give notice of"),
    (FaultKind::F59, &["none", "Deleting", "Failed"], "noted at launches and starts"),
    (FaultKind::F71, WITHOUT_INSTANCE, "there is no Node"),
    (FaultKind::F72, WITHOUT_INSTANCE, "there is no Node"),
];

const BUT_PROVISIONING: &[&str] = &["none", "Provisioned", "Running", "Deleting", "Failed"];
const BUT_DELETING: &[&str] = &["none", "Provisioning", "Provisioned", "Running", "Failed"];
const WITHOUT_INSTANCE: &[&str] = &["none", "Failed"];

/// Many runs.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub runs: u64,
    pub tally: Tally,
    /// The seeds that broke a promise, by promise.
    pub failures: BTreeMap<&'static str, Vec<u64>>,
}

impl Summary {
    pub fn add(&mut self, report: &RunReport) {
        self.runs += 1;
        self.tally.add(&report.tally);
        if let Some(violation) = &report.violation {
            self.failures.entry(violation.id).or_default().push(report.seed);
        }
    }

    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }

    /// How many runs broke a promise.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.failures.values().map(Vec::len).sum()
    }

    /// Faults that are on at the level and hit no Machine in a phase, undeclared.
    #[must_use]
    pub fn empty_cells(&self) -> Vec<(FaultKind, &'static str)> {
        let mut empty = Vec::new();
        for kind in FaultKind::ALL {
            for phase in PHASES {
                let count = self.tally.faults.get(kind).and_then(|by| by.get(phase));
                let is_impossible = IMPOSSIBLE
                    .iter()
                    .any(|(impossible, of, _)| impossible == kind && of.contains(&phase));
                if count.is_none() && !is_impossible {
                    empty.push((*kind, phase));
                }
            }
        }
        empty
    }

    #[must_use]
    pub fn never_reached(&self) -> Vec<&'static str> {
        SOMETIMES.into_iter().filter(|what| !self.tally.reached.contains_key(what)).collect()
    }

    /// How much was run, and how fast.
    #[must_use]
    pub fn headline(&self, level: Level, took: Duration) -> String {
        let seconds = took.as_secs_f64().max(0.001);
        let hours = self.tally.simulated_seconds / 3600.0;
        format!(
            "{} {} seeds in {seconds:.1} s: {:.2} seeds/s, {hours:.0} simulated hours ({:.1} per real \
             second), {:.0} machine-hours, {} broke a promise",
            self.runs,
            level.as_str(),
            self.runs as f64 / seconds,
            hours / seconds,
            self.tally.machine_seconds / 3600.0,
            self.failed(),
        )
    }

    /// The whole report.
    #[must_use]
    pub fn render(&self, level: Level, took: Duration) -> String {
        let mut text = String::new();
        let tally = &self.tally;
        let line = |text: &mut String, words: String| {
            // Writing to a string cannot fail.
            writeln!(text, "{words}").ok();
        };
        line(&mut text, self.headline(level, took));
        line(
            &mut text,
            format!(
                "{} API requests, {} cloud calls, {} process starts",
                tally.api_requests, tally.cloud_calls, tally.process_starts
            ),
        );
        line(&mut text, String::new());
        line(
            &mut text,
            format!(
                "{:<5} {:>9}  {}",
                "fault",
                "injected",
                PHASES.map(|phase| format!("{phase:>12}")).concat()
            ),
        );
        for kind in FaultKind::ALL {
            let injected = tally.injected.get(kind).copied().unwrap_or_default();
            let by_phase = tally.faults.get(kind);
            let cells = PHASES.map(|phase| {
                let count = by_phase.and_then(|by| by.get(phase)).copied().unwrap_or_default();
                format!("{count:>12}")
            });
            line(
                &mut text,
                format!("{:<5} {injected:>9}  {}  {}", kind.id(), cells.concat(), kind.words()),
            );
        }
        for (kind, phases, why) in IMPOSSIBLE {
            let phases = phases.join(", ");
            line(&mut text, format!("{:<5} cannot hit {phases}: {why}", kind.id()));
        }
        for (id, why) in NOT_INJECTED {
            line(&mut text, format!("{id:<5} {:>9}  {why}", "-"));
        }
        line(&mut text, String::new());
        for what in SOMETIMES {
            let count = tally.reached.get(what).copied().unwrap_or_default();
            line(&mut text, format!("{count:>9}  {what}"));
        }
        line(&mut text, String::new());
        if self.failures.is_empty() {
            line(&mut text, "no promise was broken".to_owned());
        }
        for (id, seeds) in &self.failures {
            let shown: Vec<String> = seeds.iter().take(10).map(u64::to_string).collect();
            line(&mut text, format!("BROKEN {id}: {} seeds: {}", seeds.len(), shown.join(" ")));
        }
        text
    }
}
