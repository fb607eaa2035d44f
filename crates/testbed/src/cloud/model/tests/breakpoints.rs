//! Is exactly the call held that a breakpoint names, with or without its effect?

use super::*;

fn breakpoint(json: &str) -> NewBreakpoint {
    serde_json::from_str(json).expect("a breakpoint")
}

fn describe() -> Request {
    Request::DescribeInstances(DescribeInstances::default())
}

#[test]
fn the_nth_matching_call_is_held_and_no_other() {
    for (json, instances, result) in [
        (r#"{"action": "RunInstances", "nth": 2, "when": "before"}"#, 2, "Held"),
        (r#"{"action": "RunInstances", "nth": 2, "when": "after"}"#, 3, "ok"),
    ] {
        let mut bench = Bench::new();
        bench.cloud.add_breakpoint(breakpoint(json)).expect("a breakpoint");
        let mut held = Vec::new();
        for _ in 0..3 {
            bench.call(describe());
            let launch = Request::RunInstances(bench.launch_parameters().into());
            held.push(bench.call(launch).delivery.held.is_some());
        }
        assert_eq!(held, [false, true, false], "{json}");
        assert_eq!(bench.cloud.instances.len(), instances, "{json}");
        let [standing] = bench.cloud.breakpoints() else { panic!("one breakpoint") };
        assert!(standing.hit && standing.seen == 3);
        let call = standing.call.clone().expect("the held call");
        assert_eq!((call.sequence, call.action.as_str()), (4, "RunInstances"));
        assert_eq!(call.result, result);
        assert_eq!(call.instance_ids.len(), usize::from(result == "ok"));
        let ledger = bench.cloud.ledger(&LedgerQuery::default());
        let undelivered: Vec<u64> =
            ledger.calls.iter().filter(|call| !call.delivered).map(|call| call.sequence).collect();
        assert_eq!(undelivered, [4]);
    }
}

#[test]
fn reads_pass_where_only_changes_count() {
    let mut bench = Bench::new();
    bench
        .cloud
        .add_breakpoint(breakpoint(r#"{"action": "*", "mutatingOnly": true}"#))
        .expect("a breakpoint");
    assert_eq!(bench.call(describe()).delivery.held, None);
    let launch = Request::RunInstances(bench.launch_parameters().into());
    assert_eq!(bench.call(launch).delivery.held, Some(1));
    assert!(bench.cloud.instances.is_empty());
}

#[test]
fn calls_of_others_pass_where_one_caller_is_meant() {
    let mut bench = Bench::new();
    let wanted = r#"{"action": "DescribeInstances", "accessKey": "AKIAMINE"}"#;
    bench.cloud.add_breakpoint(breakpoint(wanted)).expect("a breakpoint");
    for (key, held) in [(None, None), (Some("AKIAOTHER"), None), (Some("AKIAMINE"), Some(1))] {
        let caller = Caller { access_key_id: key.map(str::to_owned), user_agent: String::new() };
        let outcome = bench.cloud.call(bench.now, &caller, describe());
        assert_eq!(outcome.delivery.held, held, "{key:?}");
    }
}

#[test]
fn two_breakpoints_hold_two_calls() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench
            .cloud
            .add_breakpoint(breakpoint(r#"{"action": "DescribeInstances"}"#))
            .expect("a breakpoint");
    }
    let held: Vec<Option<u64>> = (0..3).map(|_| bench.call(describe()).delivery.held).collect();
    assert_eq!(held, [Some(1), Some(2), None]);
}

#[test]
fn what_is_held_counts_before_any_fault_strikes() {
    let mut bench = Bench::new();
    let errors = r#"{"errors": [{"action": "RunInstances", "code": "InternalError", "count": 1}]}"#;
    bench.cloud.add_faults(bench.now, serde_json::from_str(errors).expect("faults")).expect("on");
    bench.cloud.add_breakpoint(breakpoint(r#"{"action": "RunInstances"}"#)).expect("a breakpoint");
    let launch = bench.launch_parameters();
    let held = bench.call(Request::RunInstances(launch.clone().into()));
    assert_eq!(code(held.result), "Held");
    assert_eq!(code(bench.try_launch(launch)), "InternalError");
}

#[test]
fn breakpoints_are_removed_one_by_one_or_all() {
    let mut bench = Bench::new();
    for action in ["RunInstances", "elbv2:*", "*"] {
        let wanted = breakpoint(&format!(r#"{{"action": "{action}"}}"#));
        bench.cloud.add_breakpoint(wanted).expect("a breakpoint");
    }
    bench.cloud.remove_breakpoint(2).expect("a removal");
    assert!(matches!(bench.cloud.remove_breakpoint(2), Err(ConsoleError::NotFound(_))));
    assert_eq!(bench.cloud.breakpoints().len(), 2);
    bench.cloud.clear_breakpoints();
    assert!(bench.cloud.breakpoints().is_empty());
    bench.call(describe()).result.expect("nothing holds");
}

#[test]
fn senseless_breakpoints_are_refused() {
    let mut bench = Bench::new();
    for json in [r#"{"action": "Fly"}"#, r#"{"action": "*", "nth": 0}"#] {
        let refused = bench.cloud.add_breakpoint(breakpoint(json));
        assert!(matches!(refused, Err(ConsoleError::Invalid(_))), "{json}");
    }
}
