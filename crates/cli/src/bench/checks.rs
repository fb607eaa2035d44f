//! Does what was measured keep the limits? Each limit is one line with its verdict.

use serde::Serialize;

use super::run::Run;

/// Writes of the operator for each machine from creation to Running; Events, Leases and approvals
/// apart. The peer makes 15.
const WRITES_FOR_EACH_MACHINE_MAX: f64 = 8.0;
/// In MiB. The peer's four processes take 338 together.
const PEAK_RSS_MAX: f64 = 80.0;
/// A period that begins in one window may end in the next, so two windows of the same length can
/// differ by one call of each action without any growth.
const WINDOW_EDGE: usize = 1;

/// One limit and whether it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    pub name: String,
    pub measured: String,
    pub has_passed: bool,
}

pub fn check(runs: &[Run]) -> Vec<Check> {
    let mut checks: Vec<Check> = runs.iter().flat_map(check_run).collect();
    if let (Some(smallest), Some(largest)) =
        (runs.iter().min_by_key(|run| run.machines), runs.iter().max_by_key(|run| run.machines))
        && smallest.machines < largest.machines
    {
        checks.push(check_growth(smallest, largest));
    }
    checks
}

fn check_run(run: &Run) -> Vec<Check> {
    let machines = run.machines;
    let for_each = writes_for_each_machine(run);
    let writes = run.steady.requests.all_writes() + run.steady.requests.event_writes;
    vec![
        Check {
            name: format!(
                "{machines} machines: at most {WRITES_FOR_EACH_MACHINE_MAX} writes for each up to Running"
            ),
            measured: format!("{for_each:.2}"),
            has_passed: for_each <= WRITES_FOR_EACH_MACHINE_MAX,
        },
        Check {
            name: format!("{machines} machines: no writes but Lease renewals in steady state"),
            measured: writes.to_string(),
            has_passed: writes == 0,
        },
        Check {
            name: format!("{machines} machines: peak RSS at most {PEAK_RSS_MAX} MiB"),
            measured: format!("{:.1} MiB", run.peak_rss_mebibytes),
            has_passed: run.peak_rss_mebibytes <= PEAK_RSS_MAX,
        },
        Check {
            name: format!("{machines} machines: one instance for each machine"),
            measured: run.instances.to_string(),
            has_passed: run.instances == usize::from(machines),
        },
    ]
}

pub fn writes_for_each_machine(run: &Run) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a benchmark makes no 2^52 writes")]
    let writes = run.up.requests.all_writes() as f64;
    writes / f64::from(run.machines.max(1))
}

fn check_growth(smallest: &Run, largest: &Run) -> Check {
    let has_passed = largest.steady.ec2_calls.iter().all(|(action, count)| {
        let before = smallest.steady.ec2_calls.get(action).copied().unwrap_or(0);
        *count <= before + WINDOW_EDGE
    });
    Check {
        name: format!(
            "EC2 calls in steady state do not grow from {} to {} machines",
            smallest.machines, largest.machines
        ),
        measured: format!("{} and {}", smallest.steady.ec2_total(), largest.steady.ec2_total()),
        has_passed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::audit::Requests;
    use crate::bench::fleet::Latency;
    use crate::bench::run::Phase;
    use std::collections::BTreeMap;

    fn phase(writes: usize, calls: usize) -> Phase {
        Phase {
            wall_seconds: 1.0,
            cpu_seconds: 1.0,
            ec2_calls: BTreeMap::from([("DescribeInstances".to_owned(), calls)]),
            ec2_further_pages: 0,
            ec2_refused: BTreeMap::new(),
            requests: Requests { writes, ..Requests::default() },
        }
    }

    fn run(machines: u16, up_writes: usize, steady_writes: usize, steady_calls: usize) -> Run {
        Run {
            machines,
            created_to_running: Latency::default(),
            start: phase(0, 0),
            up: phase(up_writes, 0),
            steady: phase(steady_writes, steady_calls),
            down: phase(0, 0),
            peak_rss_mebibytes: 40.0,
            steady_rss_mebibytes: 30.0,
            instances: usize::from(machines),
        }
    }

    fn failures(runs: &[Run]) -> Vec<String> {
        check(runs).into_iter().filter(|one| !one.has_passed).map(|one| one.name).collect()
    }

    #[test]
    fn limits_hold_where_they_are_kept_and_fail_by_name_where_not() {
        assert_eq!(failures(&[run(100, 800, 0, 2), run(300, 2400, 0, 3)]), Vec::<String>::new());
        let failed = failures(&[run(100, 801, 1, 2), run(300, 0, 0, 6)]);
        assert_eq!(failed.len(), 3, "{failed:?}");
        assert!(failed[0].contains("at most 8 writes"), "{failed:?}");
        assert!(failed[1].contains("Lease renewals"), "{failed:?}");
        assert!(failed[2].contains("do not grow from 100 to 300"), "{failed:?}");
        let mut fat = run(1, 0, 0, 0);
        fat.peak_rss_mebibytes = 80.1;
        fat.instances = 2;
        assert_eq!(failures(&[fat]).len(), 2);
    }
}
