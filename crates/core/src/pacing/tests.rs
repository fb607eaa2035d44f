//! Does the pace find the account's limit, keep near it, and treat those who wait fairly?

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn every_action_is_in_the_lane_of_its_published_limit() {
    for (action, lane, rate) in [
        ("DescribeInstances", Lane::Reads, 20.0),
        ("DescribeInstanceStatus", Lane::Reads, 20.0),
        ("GetConsoleOutput", Lane::Reads, 20.0),
        ("RunInstances", Lane::Launches, 2.0),
        ("StartInstances", Lane::Starts, 2.0),
        ("StopInstances", Lane::Stops, 5.0),
        ("TerminateInstances", Lane::Terminations, 5.0),
        ("CreateTags", Lane::Tags, 10.0),
        ("RebootInstances", Lane::Changes, 5.0),
        ("AllocateHosts", Lane::Changes, 5.0),
        ("elbv2:DescribeTargetHealth", Lane::LoadBalancerReads, 20.0),
        ("elbv2:RegisterTargets", Lane::LoadBalancerChanges, 5.0),
        ("sqs:ReceiveMessage", Lane::Messages, 1000.0),
    ] {
        assert_eq!(Lane::of(action), lane, "{action}");
        assert_eq!(Pacing::default().rate(lane), rate, "{action}");
    }
}

#[test]
fn the_burst_is_free_and_then_the_refill_counts() {
    let mut pacing = Pacing::default();
    for index in 0..5 {
        let turn = pacing.ask(Lane::Launches, &format!("m{index}"), millis(0));
        assert_eq!(turn, Turn::Mine { after: millis(0) });
    }
    assert_eq!(pacing.ask(Lane::Launches, "m5", millis(0)), Turn::Mine { after: millis(500) });
    assert_eq!(pacing.ask(Lane::Launches, "m6", millis(0)), Turn::Mine { after: millis(1000) });
    let turn = pacing.ask(Lane::Launches, "m7", millis(0));
    assert!(matches!(turn, Turn::ComeBack { .. }), "{turn:?}");
    assert_eq!(pacing.ask(Lane::Launches, "m7", millis(1500)), Turn::Mine { after: millis(0) });
}

#[test]
fn other_lanes_are_not_held_up() {
    let mut pacing = Pacing::default();
    pacing.learn(Lane::Launches, Answer::Refused, millis(0));
    assert_eq!(pacing.rate(Lane::Launches), 1.0);
    assert_eq!(pacing.rate(Lane::Reads), 20.0);
    assert_eq!(pacing.reserve(Lane::Reads, millis(0)), millis(0));
}

#[test]
fn a_refusal_halves_once_a_second_and_empties_the_bucket() {
    let mut pacing = Pacing::default();
    for (at, rate) in [(0, 1.0), (10, 1.0), (999, 1.0), (1000, 0.5), (2000, 0.25), (3000, 0.125)] {
        pacing.learn(Lane::Launches, Answer::Refused, millis(at));
        assert_eq!(pacing.rate(Lane::Launches), rate, "at {at}");
    }
    for second in 4..20 {
        pacing.learn(Lane::Launches, Answer::Refused, millis(second * 1000));
    }
    assert_eq!(pacing.rate(Lane::Launches), 2.0 * FACTOR_MIN, "never slower than that");
    let turn = pacing.ask(Lane::Launches, "m", millis(20_000));
    assert!(matches!(turn, Turn::ComeBack { .. }), "{turn:?}");
}

#[test]
fn a_pace_that_holds_nobody_back_does_not_grow() {
    let mut pacing = Pacing::default();
    for second in 0..10_000 {
        pacing.reserve(Lane::Reads, millis(second * 1000));
        pacing.learn(Lane::Reads, Answer::Admitted, millis(second * 1000));
    }
    assert_eq!(pacing.rate(Lane::Reads), 20.0);
}

/// An account with a bucket of its own, and callers who come back when they are told to.
struct Account {
    size: f64,
    refill: f64,
    tokens: f64,
    at: Duration,
}

impl Account {
    fn admits(&mut self, now: Duration) -> bool {
        let elapsed = (now - self.at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * self.refill).min(self.size);
        self.at = now;
        let admitted = self.tokens >= 1.0;
        if admitted {
            self.tokens -= 1.0;
        }
        admitted
    }
}

#[derive(Debug, Default)]
struct Run {
    calls: usize,
    refused: usize,
    asked: usize,
    last: Duration,
}

enum Step {
    Ask,
    Call,
    Hear(Answer),
}

/// Launches `count` machines at once; an answer takes `latency`.
fn launch(count: usize, account: Option<(f64, f64)>, latency: Duration) -> Run {
    let mut account =
        account.map(|(size, refill)| Account { size, refill, tokens: size, at: Duration::ZERO });
    let mut pacing = Pacing::default();
    let mut run = Run::default();
    let mut order = 0_u64;
    let mut agenda: BTreeMap<(Duration, u64), (usize, Step)> = BTreeMap::new();
    let mut plan = |agenda: &mut BTreeMap<_, _>, at: Duration, machine: usize, step: Step| {
        order += 1;
        agenda.insert((at, order), (machine, step));
    };
    for machine in 0..count {
        plan(&mut agenda, Duration::ZERO, machine, Step::Ask);
    }
    while let Some(((now, _), (machine, step))) = agenda.pop_first() {
        match step {
            Step::Ask => {
                run.asked += 1;
                match pacing.ask(Lane::Launches, &machine.to_string(), now) {
                    Turn::Mine { after } => plan(&mut agenda, now + after, machine, Step::Call),
                    Turn::ComeBack { after } => plan(&mut agenda, now + after, machine, Step::Ask),
                }
            }
            Step::Call => {
                run.calls += 1;
                let admitted = account.as_mut().is_none_or(|account| account.admits(now));
                let answer = if admitted { Answer::Admitted } else { Answer::Refused };
                plan(&mut agenda, now + latency, machine, Step::Hear(answer));
            }
            Step::Hear(answer) => {
                pacing.learn(Lane::Launches, answer, now);
                match answer {
                    Answer::Admitted => run.last = now,
                    Answer::Refused => {
                        run.refused += 1;
                        plan(&mut agenda, now + Duration::from_secs(1), machine, Step::Ask);
                    }
                }
            }
        }
    }
    run
}

#[test]
fn at_the_published_limit_few_calls_are_refused_and_little_time_is_lost() {
    let run = launch(500, Some((5.0, 2.0)), millis(100));
    assert_eq!(run.calls, 500 + run.refused);
    assert!(run.refused <= 20, "at most four in a hundred: {run:?}");
    // The account itself needs 247.5 s.
    assert!(run.last <= Duration::from_secs(290), "{run:?}");
    assert!(run.asked <= 500 * 12, "nobody asks all the time: {run:?}");
}

#[test]
fn a_smaller_account_is_found_out() {
    let run = launch(100, Some((5.0, 0.5)), millis(100));
    assert!(run.refused <= 15, "{run:?}");
    assert!(run.last <= Duration::from_secs(300), "the account needs 190 s: {run:?}");
}

#[test]
fn without_a_limit_the_pace_grows_until_it_no_longer_matters() {
    let run = launch(300, None, millis(100));
    assert_eq!(run.calls, 300);
    assert!(run.last <= Duration::from_secs(30), "150 s at the published limit: {run:?}");
}

#[test]
fn whoever_waits_longest_goes_first() {
    let mut pacing = Pacing::default();
    let mut now = Duration::ZERO;
    let mut waiting: BTreeMap<usize, Duration> = (0..60).map(|one| (one, now)).collect();
    let mut served = Vec::new();
    while let Some((machine, due)) =
        waiting.iter().map(|(machine, due)| (*machine, *due)).min_by_key(|(one, due)| (*due, *one))
    {
        now = now.max(due);
        match pacing.ask(Lane::Launches, &machine.to_string(), now) {
            Turn::Mine { .. } => {
                waiting.remove(&machine);
                served.push(machine);
            }
            Turn::ComeBack { after } => {
                waiting.insert(machine, now + after);
            }
        }
    }
    for (place, machine) in served.iter().enumerate() {
        assert!(place.abs_diff(*machine) <= 4, "{machine} was served as number {place}");
    }
}

proptest! {
    #[test]
    fn turns_never_exceed_burst_and_rate(
        gaps in proptest::collection::vec(0_u64..400, 1..200),
        refusals in proptest::collection::vec(any::<bool>(), 200),
    ) {
        let mut pacing = Pacing::default();
        let (mut now, mut given) = (0_u64, Vec::new());
        for (index, gap) in gaps.iter().enumerate() {
            now += gap;
            if let Turn::Mine { after } = pacing.ask(Lane::Launches, &index.to_string(), millis(now)) {
                prop_assert!(after <= PATIENCE);
                given.push(millis(now) + after);
            }
            if refusals[index] {
                pacing.learn(Lane::Launches, Answer::Refused, millis(now));
            }
            let rate = pacing.rate(Lane::Launches);
            prop_assert!((2.0 * FACTOR_MIN..=2.0 * FACTOR_MAX).contains(&rate));
        }
        // Nothing was learnt to be faster, so no window has more than the published figures allow.
        given.sort();
        for (first, from) in given.iter().enumerate() {
            for (last, to) in given.iter().enumerate().skip(first) {
                let allowed = 5.0 + 2.0 * (*to - *from).as_secs_f64() + 0.001;
                prop_assert!(((last - first + 1) as f64) <= allowed.max(1.0) + 1.0);
            }
        }
    }
}
