//! Do launches die and terminations linger only when they should, and leave nothing behind?

use super::*;

fn add(bench: &mut Bench, json: &str) {
    let faults = serde_json::from_str(json).expect("faults");
    bench.cloud.add_faults(bench.now, faults).expect("faults");
}

#[test]
fn a_launch_that_dies_says_why_and_gives_its_address_back() {
    for (json, expected) in [
        (r#"{"launchFates": [{"kind": "dies", "count": 1}]}"#, "Server.InternalError"),
        (
            r#"{"launchFates": [{"kind": "dies", "code": "Client.InternalError", "count": 1}]}"#,
            "Client.InternalError",
        ),
    ] {
        let mut bench = Bench::new();
        add(&mut bench, json);
        let launch = bench.launch_parameters();
        let id = bench.try_launch(launch).expect("accepted")[0].id.clone();
        assert_eq!(bench.instance(&id).state, InstanceState::Pending);
        bench.seconds(1);
        let instance = bench.instance(&id);
        assert_eq!((instance.state, instance.boot_generation), (InstanceState::Terminated, 0));
        assert_eq!(instance.state_reason.as_ref().expect("a reason").code, expected);
        assert_eq!(instance.transition_reason, expected);
        assert!(bench.cloud.world().subnets.values().all(|subnet| subnet.used.is_empty()));
        bench.launch_running();
    }
}

#[test]
fn a_stuck_launch_stays_pending_until_it_is_terminated() {
    let mut bench = Bench::new();
    add(&mut bench, r#"{"launchFates": [{"kind": "stuck", "count": 1}]}"#);
    let launch = bench.launch_parameters();
    let id = bench.try_launch(launch).expect("accepted")[0].id.clone();
    assert_eq!(bench.cloud.next_transition(), None);
    bench.seconds(24 * 3600);
    assert_eq!(bench.instance(&id).state, InstanceState::Pending);
    bench.call(Request::TerminateInstances(ids(&[&id]))).result.expect("a termination");
    bench.seconds(1);
    assert_eq!(bench.instance(&id).state, InstanceState::Terminated);
}

#[test]
fn a_lingering_termination_is_accepted_and_happens_later() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    add(&mut bench, r#"{"lingeringTerminations": [{"for": "5m", "count": 1}]}"#);
    let answer = bench.call(Request::TerminateInstances(ids(&[&id]))).result.expect("accepted");
    let Response::StateChanges(changes) = answer else { panic!("{answer:?}") };
    assert_eq!(changes[0].current, InstanceState::ShuttingDown);
    bench.seconds(299);
    assert_eq!(bench.instance(&id).state, InstanceState::Running);
    bench.seconds(2);
    assert_eq!(bench.instance(&id).state, InstanceState::Terminated);
    let reason = bench.instance(&id).state_reason.clone().expect("a reason");
    assert_eq!(reason.code, "Client.UserInitiatedShutdown");
}

#[test]
fn asking_again_ends_what_lingers() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    add(&mut bench, r#"{"lingeringTerminations": [{"for": "5m", "count": 1}]}"#);
    for _ in 0..2 {
        bench.call(Request::TerminateInstances(ids(&[&id]))).result.expect("accepted");
    }
    bench.seconds(1);
    assert_eq!(bench.instance(&id).state, InstanceState::Terminated);
    bench.seconds(400);
}

#[test]
fn terminate_can_deny_an_instance_that_runs() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    add(
        &mut bench,
        r#"{"errors": [{"action": "TerminateInstances", "code": "InvalidInstanceID.NotFound",
            "count": 1}]}"#,
    );
    let terminate = || Request::TerminateInstances(ids(&[&id]));
    assert_eq!(code(bench.call(terminate()).result), "InvalidInstanceID.NotFound");
    assert_eq!(bench.instance(&id).state, InstanceState::Running);
    bench.call(terminate()).result.expect("a termination");
}

#[test]
fn launch_times_are_off_by_at_most_the_skew() {
    let mut bench = Bench::new();
    add(&mut bench, r#"{"launchTimeSkew": "5m"}"#);
    let launch = RunInstances { min_count: 200, max_count: 200, ..bench.launch_parameters() };
    let offsets: Vec<i64> = bench
        .try_launch(launch)
        .expect("a launch")
        .iter()
        .map(|instance| instance.launch_time.duration_since(bench.now).as_secs())
        .collect();
    assert!(offsets.iter().all(|offset| offset.abs() <= 300));
    assert!(offsets.iter().any(|offset| *offset < -60));
    assert!(offsets.iter().any(|offset| *offset > 60));
    // The ledger keeps the truth.
    let ledger = bench.cloud.ledger(&LedgerQuery::default());
    assert!(ledger.instances.iter().all(|instance| instance.launch_time == bench.now));
}

#[test]
fn a_vanished_instance_is_gone_from_every_call_and_kept_in_the_ledger() {
    for state in ["running", "stopped", "terminated"] {
        let mut bench = Bench::new();
        let launch = RunInstances { client_token: Some("t".into()), ..bench.launch_parameters() };
        let id = bench.launch_running_with(launch);
        match state {
            "stopped" => drop(bench.call(Request::StopInstances(ids(&[&id])))),
            "terminated" => drop(bench.call(Request::TerminateInstances(ids(&[&id])))),
            _ => {}
        }
        bench.seconds(1);
        bench.cloud.console_vanish(bench.now, &id).expect("vanished");
        for request in [
            Request::DescribeInstances(DescribeInstances {
                instance_ids: vec![id.clone()],
                ..DescribeInstances::default()
            }),
            Request::TerminateInstances(ids(&[&id])),
            Request::StartInstances(ids(&[&id])),
        ] {
            assert_eq!(code(bench.call(request).result), "InvalidInstanceID.NotFound", "{state}");
        }
        assert!(bench.cloud.snapshot().is_empty());
        assert!(bench.cloud.world().subnets.values().all(|subnet| subnet.used.is_empty()));
        let ledger = bench.cloud.ledger(&LedgerQuery::default());
        assert_eq!(ledger.instances[0].state, InstanceState::Terminated);
        let again = RunInstances { client_token: Some("t".into()), ..bench.launch_parameters() };
        assert_eq!(code(bench.try_launch(again)), "IdempotentInstanceTerminated");
        bench.seconds(3600);
        assert!(matches!(
            bench.cloud.console_vanish(bench.now, &id),
            Err(ConsoleError::NotFound(_))
        ));
    }
}
