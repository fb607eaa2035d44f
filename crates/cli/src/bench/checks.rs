//! Does what was measured keep the limits? Each limit is one line with its verdict.

use serde::Serialize;

use super::run::Run;

/// Writes of the operator for each machine from creation to Running; Events, Leases and approvals
/// apart. The peer makes 15.
const WRITES_FOR_EACH_MACHINE_MAX: f64 = 8.0;
/// In MiB. The peer's four processes take 338 together.
const PEAK_RSS_MAX: f64 = 80.0;
/// One for the instances, one for their checks and events, while both fit one page.
const CALLS_FOR_EACH_LOOK_MAX: u64 = 2;
/// From creation to Running: the launch, and what all launches share.
const CALLS_BEYOND_DESCRIBES_MAX: f64 = 1.2;
const AMPLIFICATION_MAX: f64 = 1.2;
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
    checks.extend(check_growth(runs));
    checks.extend(check_amplification(runs));
    checks
}

fn check_run(run: &Run) -> Vec<Check> {
    let label = run.scenario.label();
    let for_each = writes_for_each_machine(run);
    let beyond = calls_beyond_describes(run);
    let writes = run.steady.requests.all_writes() + run.steady.requests.event_writes;
    let looks = run.scenario.polls();
    let looked = run.steady.ec2_total() + run.steady.ec2_further_pages;
    let looked_max = looks * CALLS_FOR_EACH_LOOK_MAX + CALLS_FOR_EACH_LOOK_MAX;
    let mut checks = vec![
        Check {
            name: format!(
                "{label}: at most {WRITES_FOR_EACH_MACHINE_MAX} writes for each up to Running"
            ),
            measured: format!("{for_each:.2}"),
            has_passed: for_each <= WRITES_FOR_EACH_MACHINE_MAX,
        },
        Check {
            name: format!("{label}: no writes but Lease renewals in steady state"),
            measured: writes.to_string(),
            has_passed: writes == 0,
        },
        Check {
            name: format!(
                "{label}: at most {CALLS_FOR_EACH_LOOK_MAX} EC2 calls for each of {looks} looks"
            ),
            measured: looked.to_string(),
            has_passed: looked as u64 <= looked_max,
        },
        Check {
            name: format!("{label}: peak RSS at most {PEAK_RSS_MAX} MiB"),
            measured: format!("{:.1} MiB", run.peak_rss_mebibytes),
            has_passed: run.peak_rss_mebibytes <= PEAK_RSS_MAX,
        },
        Check {
            name: format!("{label}: one instance for each machine"),
            measured: run.instances.to_string(),
            has_passed: run.instances == usize::from(run.scenario.machines),
        },
    ];
    // Refused calls are spoken of by the amplification.
    if !run.scenario.is_throttled {
        checks.push(Check {
            name: format!(
                "{label}: at most {CALLS_BEYOND_DESCRIBES_MAX} EC2 calls for each up to Running, \
                 DescribeInstances apart"
            ),
            measured: format!("{beyond:.2}"),
            has_passed: beyond <= CALLS_BEYOND_DESCRIBES_MAX,
        });
    }
    checks
}

pub fn writes_for_each_machine(run: &Run) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a benchmark makes no 2^52 writes")]
    let writes = run.up.requests.all_writes() as f64;
    writes / f64::from(run.scenario.machines.max(1))
}

fn calls_beyond_describes(run: &Run) -> f64 {
    let others = run.up.ec2_calls.iter().filter(|(action, _)| *action != "DescribeInstances");
    #[expect(clippy::cast_precision_loss, reason = "a benchmark makes no 2^52 calls")]
    let calls = others.map(|(_, count)| *count).sum::<usize>() as f64;
    calls / f64::from(run.scenario.machines.max(1))
}

/// Compares the smallest and the largest fleet that are alike in all but their size.
fn check_growth(runs: &[Run]) -> Option<Check> {
    let usual = runs.iter().filter(|run| {
        let scenario = &run.scenario;
        scenario.list_period_seconds == 30 && scenario.steady_seconds >= 60
    });
    let smallest = usual.clone().min_by_key(|run| run.scenario.machines)?;
    let largest = usual.max_by_key(|run| run.scenario.machines)?;
    if smallest.scenario.machines == largest.scenario.machines {
        return None;
    }
    let has_passed = largest.steady.ec2_calls.iter().all(|(action, count)| {
        let before = smallest.steady.ec2_calls.get(action).copied().unwrap_or(0);
        *count <= before + WINDOW_EDGE
    });
    Some(Check {
        name: format!(
            "EC2 calls in steady state do not grow from {} to {} machines",
            smallest.scenario.machines, largest.scenario.machines
        ),
        measured: format!("{} and {}", smallest.steady.ec2_total(), largest.steady.ec2_total()),
        has_passed,
    })
}

/// Compares a throttled run with the same one without: refusals must not multiply the calls, although
/// the run lasts longer.
fn check_amplification(runs: &[Run]) -> Vec<Check> {
    let mut checks = Vec::new();
    for throttled in runs.iter().filter(|run| run.scenario.is_throttled) {
        let free = runs.iter().find(|run| {
            !run.scenario.is_throttled
                && run.scenario.machines == throttled.scenario.machines
                && run.scenario.ec2_latency_milliseconds
                    == throttled.scenario.ec2_latency_milliseconds
        });
        let Some(free) = free else { continue };
        for action in ["RunInstances", "DescribeInstances"] {
            let count = |run: &Run| {
                let calls = run.up.ec2_calls.get(action).copied().unwrap_or(0).max(1);
                #[expect(clippy::cast_precision_loss, reason = "a benchmark makes no 2^52 calls")]
                let calls = calls as f64;
                calls
            };
            let ratio = count(throttled) / count(free);
            checks.push(Check {
                name: format!(
                    "{} machines: throttling costs at most {AMPLIFICATION_MAX} x the {action}",
                    throttled.scenario.machines
                ),
                measured: format!("{ratio:.2}"),
                has_passed: ratio <= AMPLIFICATION_MAX,
            });
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::audit::Requests;
    use crate::bench::fleet::Latency;
    use crate::bench::run::Phase;
    use crate::bench::scenario::Scenario;
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
            scenario: Scenario::sized(machines, 60),
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
        assert_eq!(failures(&[run(100, 800, 0, 3), run(300, 2400, 0, 4)]), Vec::<String>::new());
        let failed = failures(&[run(100, 801, 1, 2), run(300, 0, 0, 4)]);
        assert_eq!(failed.len(), 3, "{failed:?}");
        assert!(failed[0].contains("at most 8 writes"), "{failed:?}");
        assert!(failed[1].contains("Lease renewals"), "{failed:?}");
        assert!(failed[2].contains("do not grow from 100 to 300"), "{failed:?}");
        let mut fat = run(1, 0, 0, 0);
        fat.peak_rss_mebibytes = 80.1;
        fat.instances = 2;
        assert_eq!(failures(&[fat]).len(), 2);
        assert_eq!(failures(&[run(1, 0, 0, 7)]).len(), 1, "two looks in a minute");
    }

    #[test]
    fn refusals_must_not_multiply_calls() {
        let with = |is_throttled: bool, launches: usize, beyond: usize| {
            let mut one = run(100, 0, 0, 0);
            one.scenario.is_throttled = is_throttled;
            one.up.ec2_calls = BTreeMap::from([
                ("RunInstances".to_owned(), launches),
                ("DescribeImages".to_owned(), beyond),
            ]);
            one
        };
        assert_eq!(failures(&[with(false, 100, 20), with(true, 120, 200)]), Vec::<String>::new());
        let failed = failures(&[with(false, 100, 21), with(true, 121, 0)]);
        assert_eq!(failed.len(), 2, "{failed:?}");
        assert!(failed[0].contains("DescribeInstances apart"), "{failed:?}");
        assert!(
            failed[1].contains("throttling costs at most 1.2 x the RunInstances"),
            "{failed:?}"
        );
    }
}
