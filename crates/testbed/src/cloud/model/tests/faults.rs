//! Do injected faults do what they say, and nothing when they are off?

use super::*;

fn describe_all() -> Request {
    Request::DescribeInstances(DescribeInstances::default())
}

fn faults(json: &str) -> Faults {
    serde_json::from_str(json).expect("faults")
}

#[test]
fn errors_strike_the_action_as_often_as_they_say() {
    let mut bench = Bench::new();
    let wanted = faults(r#"{"errors": [{"action": "*", "code": "InternalError", "count": 2}]}"#);
    bench.cloud.add_faults(bench.now, wanted).expect("faults");
    for _ in 0..2 {
        let error = bench.call(describe_all()).result.expect_err("a fault");
        assert_eq!((error.code.as_str(), error.status), ("InternalError", 500));
    }
    bench.call(describe_all()).result.expect("no fault any more");
}

#[test]
fn the_effect_happens_only_where_the_fault_says_so() {
    for (json, instances, lost) in [
        (r#"{"errors": [{"action": "RunInstances", "code": "InternalError"}]}"#, 0, false),
        (
            r#"{"errors": [{"action": "RunInstances", "code": "InternalError", "effect": true}]}"#,
            1,
            false,
        ),
        (r#"{"timeouts": [{"action": "RunInstances", "after": "5s"}]}"#, 1, true),
        (r#"{"timeouts": [{"action": "RunInstances", "effect": false}]}"#, 0, true),
    ] {
        let mut bench = Bench::new();
        bench.cloud.add_faults(bench.now, faults(json)).expect("faults");
        let launch = bench.launch_parameters();
        let outcome = bench.call(Request::RunInstances(launch.into()));
        assert_eq!(outcome.delivery.lost, lost, "{json}");
        assert_eq!(bench.cloud.instances.len(), instances, "{json}");
        let ledger = bench.cloud.ledger(&LedgerQuery::default());
        assert_eq!(ledger.calls[0].delivered, !lost);
    }
}

#[test]
fn latency_delays_the_answer_and_not_the_effect() {
    let mut bench = Bench::new();
    bench.cloud.add_faults(bench.now, faults(r#"{"latency": "1500ms"}"#)).expect("faults");
    let outcome = bench.call(describe_all());
    assert_eq!(outcome.delivery.after, SignedDuration::from_millis(1500));
    bench.cloud.clear_faults();
    assert_eq!(bench.call(describe_all()).delivery, Delivery::AT_ONCE);
}

#[test]
fn shortage_holds_launches_and_starts_of_its_type_and_zone() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    bench.call(Request::StopInstances(ids(&[&id]))).result.expect("a stop");
    bench.seconds(1);
    let shortage =
        r#"{"capacity": [{"instanceType": "m5.large", "availabilityZone": "us-east-1a"}]}"#;
    bench.cloud.add_faults(bench.now, faults(shortage)).expect("faults");
    let launch = bench.launch_parameters();
    let error = bench.try_launch(launch.clone()).expect_err("a shortage");
    assert_eq!((error.code.as_str(), error.status), ("InsufficientInstanceCapacity", 500));
    let start = bench.call(Request::StartInstances(ids(&[&id]))).result;
    assert_eq!(code(start), "InsufficientInstanceCapacity");
    let other = RunInstances { instance_type: Some("m5.xlarge".into()), ..launch };
    bench.try_launch(other).expect("another type");
    bench.cloud.clear_faults();
    bench.call(Request::StartInstances(ids(&[&id]))).result.expect("a start");
}

#[test]
fn hidden_launch_appears_after_its_lag() {
    let mut bench = Bench::new();
    bench
        .cloud
        .add_faults(bench.now, faults(r#"{"launchVisibility": {"lag": "30s"}}"#))
        .expect("faults");
    let launch = RunInstances { client_token: Some("t".into()), ..bench.launch_parameters() };
    let id = bench.try_launch(launch.clone()).expect("a launch")[0].id.clone();
    bench.seconds(29);
    let by_id =
        DescribeInstances { instance_ids: vec![id.clone()], ..DescribeInstances::default() };
    assert_eq!(bench.describe(DescribeInstances::default()), Ok(Vec::new()));
    assert_eq!(code(bench.describe(by_id.clone())), "InvalidInstanceID.NotFound");
    let terminate = bench.call(Request::TerminateInstances(ids(&[&id]))).result;
    assert_eq!(code(terminate), "InvalidInstanceID.NotFound");
    // The token finds it all the same: that is what heals a controller that lost the answer.
    assert_eq!(bench.try_launch(launch).expect("the same launch")[0].id, id);
    bench.seconds(1);
    assert_eq!(bench.describe(by_id), Ok(vec![id]));
}

#[test]
fn buckets_hold_aws_figures() {
    let narrow = || {
        Request::DescribeInstances(DescribeInstances {
            filters: vec![filter("instance-id", &["x"])],
            ..DescribeInstances::default()
        })
    };
    let unknown = || ids(&["i-00000000000000000"]);
    type Make<'a> = &'a dyn Fn() -> Request;
    let table: &[(Make<'_>, usize, usize)] = &[
        (&narrow, 100, 20),
        (&describe_all, 50, 10),
        (&|| Request::StopInstances(unknown()), 50, 5),
        (&|| Request::RunInstances(RunInstances::default().into()), 5, 2),
        (&|| Request::StartInstances(unknown()), 5, 2),
        (&|| Request::TerminateInstances(unknown()), 100, 5),
    ];
    for (make, size, each_second) in table {
        let mut bench = Bench::new();
        bench.cloud.add_faults(bench.now, faults(r#"{"throttling": true}"#)).expect("faults");
        let admitted = |bench: &mut Bench| {
            (0..500)
                .take_while(|_| match bench.call(make()).result {
                    Err(error) => error.code != "RequestLimitExceeded",
                    Ok(_) => true,
                })
                .count()
        };
        assert_eq!(admitted(&mut bench), *size);
        bench.seconds(1);
        assert_eq!(admitted(&mut bench), *each_second);
        bench.seconds(3600);
        assert_eq!(admitted(&mut bench), *size);
    }
}

#[test]
fn resource_tokens_bound_what_one_call_may_launch() {
    let mut bench = Bench::new();
    bench.cloud.add_faults(bench.now, faults(r#"{"throttling": true}"#)).expect("faults");
    let launch = RunInstances { min_count: 600, max_count: 600, ..bench.launch_parameters() };
    bench.try_launch(launch.clone()).expect("within the bucket");
    assert_eq!(code(bench.try_launch(launch)), "RequestLimitExceeded");
}

#[test]
fn access_keys_are_checked_only_when_they_are_named() {
    let caller = |key: Option<&str>| Caller {
        access_key_id: key.map(str::to_owned),
        user_agent: String::new(),
    };
    let mut open = Bench::new();
    open.cloud.call(open.now, &caller(None), describe_all()).result.expect("anybody");
    let allowed_access_keys = Some(BTreeSet::from(["AKIAGOOD".to_owned()]));
    let mut closed = Bench::with(CloudConfig { allowed_access_keys, ..CloudConfig::fast() });
    for (key, is_let_in) in [(Some("AKIAGOOD"), true), (Some("AKIABAD"), false), (None, false)] {
        let result = closed.cloud.call(closed.now, &caller(key), describe_all()).result;
        assert_eq!(result.is_ok(), is_let_in, "{key:?}");
        if let Err(error) = result {
            assert_eq!((error.code.as_str(), error.status), ("AuthFailure", 401));
        }
    }
}

#[test]
fn senseless_faults_are_refused_whole() {
    let mut bench = Bench::new();
    for json in [
        r#"{"errors": [{"action": "Fly", "code": "X"}]}"#,
        r#"{"errors": [{"action": "*", "code": "X", "status": 200}]}"#,
        r#"{"throttling": true, "timeouts": [{"action": "*", "probability": 2}]}"#,
        r#"{"launchVisibility": {"lag": "1s", "probability": -1}}"#,
    ] {
        assert!(matches!(
            bench.cloud.add_faults(bench.now, faults(json)),
            Err(ConsoleError::Invalid(_))
        ));
        assert_eq!(*bench.cloud.faults(), Faults::default());
    }
}

#[test]
fn ledger_keeps_secrets_out_and_its_size_bounded() {
    let mut bench = Bench::with(CloudConfig { ledger_calls_max: 10, ..CloudConfig::fast() });
    let launch = RunInstances {
        user_data: Some(UserData(b"bootstrap-token".to_vec())),
        ..bench.launch_parameters()
    };
    bench.try_launch(launch).expect("a launch");
    let ledger = bench.cloud.ledger(&LedgerQuery::default());
    let text = serde_json::to_string(&ledger).expect("json");
    assert!(text.contains(r#""UserData":{"Length":15,"Sha256":""#), "{text}");
    assert!(!text.contains("bootstrap-token") && !format!("{ledger:?}").contains("98, 111, 111"));
    for _ in 0..20 {
        bench.call(describe_all()).result.expect("an answer");
    }
    let ledger = bench.cloud.ledger(&LedgerQuery::default());
    assert_eq!((ledger.calls.len(), ledger.dropped_calls), (10, 11));
    assert_eq!(ledger.instances.len(), 1);
}
