//! How are the results told? A table for people, JSON for programs.

use std::collections::BTreeSet;
use std::thread::available_parallelism;

use jiff::Timestamp;
use machinist_testbed::programs::kubernetes_version;
use serde::Serialize;

use super::checks::{Check, writes_for_each_machine};
use super::cluster_api::{self, Comparison};
use super::run::{Phase, Run};
use crate::table::{Cell, Row, lines};

/// Everything that was measured, and on what.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    pub measured_at: Timestamp,
    pub version: &'static str,
    pub kubernetes: &'static str,
    pub processors: usize,
    /// Whether this is a release build; figures of others say nothing.
    pub is_optimised: bool,
    pub runs: Vec<Run>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_api: Option<Comparison>,
    pub checks: Vec<Check>,
}

impl Results {
    pub fn new(runs: Vec<Run>, cluster_api: Option<Comparison>, checks: Vec<Check>) -> Self {
        let now = Timestamp::now();
        Self {
            measured_at: Timestamp::from_second(now.as_second()).unwrap_or(now),
            version: env!("CARGO_PKG_VERSION"),
            kubernetes: kubernetes_version(),
            processors: available_parallelism().map_or(1, usize::from),
            is_optimised: !cfg!(debug_assertions),
            runs,
            cluster_api,
            checks,
        }
    }

    pub fn has_passed(&self) -> bool {
        self.checks.iter().all(|check| check.has_passed)
    }
}

pub fn text(results: &Results) -> String {
    let build = if results.is_optimised { "release build" } else { "DEBUG BUILD" };
    let mut text = format!(
        "\nmachinist {} on Kubernetes {}, {} processors, {build}, {}\n\n",
        results.version, results.kubernetes, results.processors, results.measured_at
    );
    if !results.runs.is_empty() {
        for line in lines(&rows(&results.runs), None) {
            text.push_str(&line);
            text.push('\n');
        }
        text.push('\n');
    }
    if let Some(comparison) = &results.cluster_api {
        text.push_str(&cluster_api::text(comparison));
        text.push('\n');
    }
    for check in &results.checks {
        let verdict = if check.has_passed { "PASS" } else { "FAIL" };
        text.push_str(&format!("{verdict}  {} (measured: {})\n", check.name, check.measured));
    }
    text
}

fn rows(runs: &[Run]) -> Vec<Row> {
    let mut table = Table { runs, rows: Vec::new() };
    table.heading("");
    table.row("created to Running, p50 / p99, s", |run| {
        let latency = run.created_to_running;
        format!("{:.1} / {:.1}", latency.p50_seconds, latency.p99_seconds)
    });
    table.row("operator, peak RSS, MiB", |run| format!("{:.1}", run.peak_rss_mebibytes));
    table.row("operator, RSS in steady state, MiB", |run| {
        format!("{:.1}", run.steady_rss_mebibytes)
    });
    table.row("writes for each machine up to Running", |run| {
        format!("{:.2}", writes_for_each_machine(run))
    });
    table.phase("zero to Running", |run| &run.up);
    table.phase("steady state", |run| &run.steady);
    table.phase("Running to zero", |run| &run.down);
    table.rows
}

struct Table<'a> {
    runs: &'a [Run],
    rows: Vec<Row>,
}

impl Table<'_> {
    fn heading(&mut self, title: &str) {
        let mut cells = vec![Cell::plain(title)];
        let columns = self.runs.iter().map(|run| run.scenario.label());
        cells.extend(columns.map(Cell::plain));
        self.rows.push(cells.into());
    }

    fn row(&mut self, name: &str, value: impl Fn(&Run) -> String) {
        let mut cells = vec![Cell::plain(name)];
        cells.extend(self.runs.iter().map(|run| Cell::plain(value(run))));
        self.rows.push(cells.into());
    }

    fn phase(&mut self, title: &str, phase: impl Fn(&Run) -> &Phase) {
        self.rows.push(Row::default());
        self.heading(title);
        self.row("  wall time, s", |run| format!("{:.1}", phase(run).wall_seconds));
        self.row("  wall time for each machine, s", |run| {
            let machines = f64::from(run.scenario.machines.max(1));
            format!("{:.3}", phase(run).wall_seconds / machines)
        });
        self.row("  operator CPU, s", |run| format!("{:.2}", phase(run).cpu_seconds));
        self.row("  EC2 calls (for each machine)", |run| counted(phase(run).ec2_total(), run));
        let actions = names(self.runs, |run| phase(run).ec2_calls.keys());
        for action in actions {
            self.row(&format!("    {action}"), |run| {
                phase(run).ec2_calls.get(&action).copied().unwrap_or(0).to_string()
            });
        }
        self.row("    further pages", |run| phase(run).ec2_further_pages.to_string());
        for refusal in names(self.runs, |run| phase(run).ec2_refused.keys()) {
            self.row(&format!("    refused: {refusal}"), |run| {
                phase(run).ec2_refused.get(&refusal).copied().unwrap_or(0).to_string()
            });
        }
        let requests = |run: &Run| phase(run).requests.clone();
        self.row("  API writes accepted (for each machine)", |run| {
            counted(requests(run).writes, run)
        });
        self.row("  API writes refused", |run| requests(run).refused_writes.to_string());
        for refusal in names(self.runs, |run| phase(run).requests.refused.keys()) {
            self.row(&format!("    {refusal}"), |run| {
                phase(run).requests.refused.get(&refusal).copied().unwrap_or(0).to_string()
            });
        }
        self.row("  API writes apart: Events", |run| requests(run).event_writes.to_string());
        self.row("  API writes apart: Leases", |run| requests(run).lease_writes.to_string());
        self.row("  API writes apart: CSR approvals", |run| {
            requests(run).certificate_approvals.to_string()
        });
        self.row("  API reads", |run| requests(run).reads.to_string());
        for request in names(self.runs, |run| phase(run).requests.by_verb_and_resource.keys()) {
            self.row(&format!("    {request}"), |run| {
                let counts = &phase(run).requests.by_verb_and_resource;
                counts.get(&request).copied().unwrap_or(0).to_string()
            });
        }
    }
}

fn names<'a, Keys: Iterator<Item = &'a String>>(
    runs: &'a [Run],
    keys: impl Fn(&'a Run) -> Keys,
) -> BTreeSet<String> {
    runs.iter().flat_map(keys).cloned().collect()
}

fn counted(count: usize, run: &Run) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a benchmark counts to no 2^52")]
    let for_each = count as f64 / f64::from(run.scenario.machines.max(1));
    format!("{count} ({for_each:.2})")
}
