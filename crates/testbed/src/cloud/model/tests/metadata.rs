//! Does the metadata service answer as EC2's does? Tokens, items, notices, faults.

use serde_json::{Value, json};

use super::*;

fn spot(bench: &Bench, behavior: Option<&str>) -> RunInstances {
    RunInstances {
        instance_market_options: Some(InstanceMarketOptions {
            market_type: Some("spot".into()),
            spot_options: Some(SpotOptions {
                spot_instance_type: Some("persistent".into()),
                instance_interruption_behavior: behavior.map(str::to_owned),
                ..SpotOptions::default()
            }),
        }),
        ..bench.launch_parameters()
    }
}

fn with_options(bench: &Bench, options: MetadataOptions) -> RunInstances {
    RunInstances { metadata_options: Some(options), ..bench.launch_parameters() }
}

fn put_token(bench: &mut Bench, id: &str, seconds: Option<&str>) -> MetadataAnswer {
    let request = MetadataRequest {
        method: "PUT".into(),
        path: "/latest/api/token".into(),
        token_seconds: seconds.map(str::to_owned),
        ..MetadataRequest::default()
    };
    bench.cloud.metadata(bench.now, id, &request)
}

fn token(bench: &mut Bench, id: &str) -> String {
    let answer = put_token(bench, id, Some("21600"));
    assert_eq!((answer.status, answer.token_seconds), (200, Some(21_600)));
    String::from_utf8(answer.body).expect("a token")
}

fn get(bench: &mut Bench, id: &str, token: Option<&str>, item: &str) -> (u16, String) {
    let request = MetadataRequest {
        method: "GET".into(),
        path: format!("/latest/meta-data/{item}"),
        token: token.map(str::to_owned),
        ..MetadataRequest::default()
    };
    let answer = bench.cloud.metadata(bench.now, id, &request);
    (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
}

#[test]
fn tokens_are_asked_for_where_the_instance_requires_them() {
    for (tokens, bare) in [(None, 200), (Some("optional"), 200), (Some("required"), 401)] {
        let mut bench = Bench::new();
        let options = MetadataOptions {
            http_tokens: tokens.map(str::to_owned),
            ..MetadataOptions::default()
        };
        let launch = with_options(&bench, options);
        let id = bench.launch_running_with(launch);
        assert_eq!(get(&mut bench, &id, None, "instance-id").0, bare);
        assert_eq!(get(&mut bench, &id, Some("wrong"), "instance-id").0, 401);
        let token = token(&mut bench, &id);
        assert_eq!(get(&mut bench, &id, Some(&token), "instance-id"), (200, id.clone()));
        let other = bench.launch_running();
        assert_eq!(get(&mut bench, &other, Some(&token), "instance-id").0, 401, "not its own");
        bench.seconds(21_599);
        assert_eq!(get(&mut bench, &id, Some(&token), "instance-id").0, 401, "it ended");
    }
}

#[test]
fn a_token_needs_a_sound_life_and_no_proxy() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    for (seconds, status) in
        [(None, 400), (Some("0"), 400), (Some("21601"), 400), (Some("x"), 400), (Some("1"), 200)]
    {
        assert_eq!(put_token(&mut bench, &id, seconds).status, status, "{seconds:?}");
    }
    let forwarded = MetadataRequest {
        method: "PUT".into(),
        path: "/latest/api/token".into(),
        token_seconds: Some("60".into()),
        forwarded: true,
        ..MetadataRequest::default()
    };
    assert_eq!(bench.cloud.metadata(bench.now, &id, &forwarded).status, 403);
    let disabled =
        MetadataOptions { http_endpoint: Some("disabled".into()), ..MetadataOptions::default() };
    let launch = with_options(&bench, disabled);
    let closed = bench.launch_running_with(launch);
    assert_eq!(put_token(&mut bench, &closed, Some("60")).status, 403);
    assert_eq!(get(&mut bench, &closed, None, "instance-id").0, 403);
}

#[test]
fn items_and_folders_are_those_of_the_instance() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    let instance = bench.instance(&id).clone();
    let address = instance.private_address().expect("an address").to_string();
    for (item, expected) in [
        ("ami-id", instance.image_id.as_str()),
        ("local-ipv4", &address),
        ("hostname", &instance.private_dns_name),
        ("placement/availability-zone", "us-east-1a"),
        ("placement/region", "us-east-1"),
        ("placement", "availability-zone\navailability-zone-id\nregion"),
        ("placement/", "availability-zone\navailability-zone-id\nregion"),
        ("instance-life-cycle", "on-demand"),
        ("events/maintenance/scheduled", "[]"),
        ("events", "maintenance/"),
    ] {
        assert_eq!(get(&mut bench, &id, None, item), (200, expected.to_owned()), "{item}");
    }
    let (_, all) = get(&mut bench, &id, None, "");
    assert!(all.contains("placement/\n") && all.contains("ami-id\n"), "{all}");
    for item in ["spot/termination-time", "spot/instance-action", "spot", "tags", "x", "ami-id/x"] {
        assert_eq!(get(&mut bench, &id, None, item).0, 404, "{item}");
    }
    bench.cloud.console_stop(bench.now, &id, ChangedBy::User).expect("a stop");
    bench.seconds(5);
    let request = MetadataRequest { method: "GET".into(), ..MetadataRequest::default() };
    for id in [id.as_str(), "i-00000000000000000"] {
        assert!(bench.cloud.metadata(bench.now, id, &request).delivery.lost, "nobody is there");
    }
}

#[test]
fn a_spot_notice_is_shown_until_it_comes_true() {
    for (behavior, action, last) in [
        (None, "terminate", InstanceState::Terminated),
        (Some("stop"), "stop", InstanceState::Stopped),
        (Some("hibernate"), "hibernate", InstanceState::Stopped),
    ] {
        let mut bench = Bench::new();
        let launch = spot(&bench, behavior);
        let id = bench.launch_running_with(launch);
        assert_eq!(get(&mut bench, &id, None, "spot/instance-action").0, 404);
        let request = SpotNoticeRequest::default();
        let notice = bench.cloud.console_spot_notice(bench.now, &id, &request).expect("a notice");
        let time = notice.time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let (_, text) = get(&mut bench, &id, None, "spot/instance-action");
        let shown: Value = serde_json::from_str(&text).expect("json");
        assert_eq!(shown, json!({"action": action, "time": time}));
        let expected = if behavior.is_none() { (200, time) } else { (404, "Not Found".into()) };
        assert_eq!(get(&mut bench, &id, None, "spot/termination-time"), expected);
        bench.seconds(119);
        assert_eq!(get(&mut bench, &id, None, "spot/instance-action").0, 200);
        assert_eq!(bench.instance(&id).state, InstanceState::Running);
        bench.seconds(3);
        assert_eq!(bench.instance(&id).state, last);
    }
}

#[test]
fn a_rebalance_recommendation_is_for_spot_instances_and_can_be_taken_back() {
    let mut bench = Bench::new();
    let ordinary = bench.launch_running();
    let request = RebalanceRequest::default();
    let refused = bench.cloud.console_rebalance(bench.now, &ordinary, &request);
    assert!(matches!(refused, Err(ConsoleError::Conflict(_))));
    let launch = spot(&bench, None);
    let id = bench.launch_running_with(launch);
    let since = bench.cloud.console_rebalance(bench.now, &id, &request).expect("spot");
    bench.seconds(5);
    let again = bench.cloud.console_rebalance(bench.now, &id, &request).expect("spot");
    assert_eq!(since, again, "it keeps its time");
    let item = "events/recommendations/rebalance";
    let (_, text) = get(&mut bench, &id, None, item);
    assert!(text.contains(r#""noticeTime":"2026-06-01T12:00:"#), "{text}");
    assert!(bench.cloud.snapshot().iter().any(|one| one.rebalance_recommended == since));
    let back = RebalanceRequest { recommended: false };
    assert_eq!(bench.cloud.console_rebalance(bench.now, &id, &back), Ok(None));
    assert_eq!(get(&mut bench, &id, None, item).0, 404);
}

#[test]
fn events_are_scheduled_and_then_history() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    let new = NewEvent {
        instance_id: id.clone(),
        code: EventCode::SystemReboot,
        description: Some("scheduled reboot".into()),
        not_before: "2026-07-01T09:00:43Z".parse().expect("a time"),
        not_after: Some("2026-07-01T09:17:23Z".parse().expect("a time")),
        not_before_deadline: None,
    };
    let event = bench.cloud.schedule_event(bench.now, new).expect("an event");
    let (_, text) = get(&mut bench, &id, None, "events/maintenance/scheduled");
    let shown: Value = serde_json::from_str(&text).expect("json");
    assert_eq!(
        shown,
        json!([{
            "NotBefore": "1 Jul 2026 09:00:43 GMT",
            "NotAfter": "1 Jul 2026 09:17:23 GMT",
            "Code": "system-reboot",
            "Description": "scheduled reboot",
            "EventId": event.event_id,
            "State": "active",
        }])
    );
    let patch = EventPatch { state: Some(EventState::Canceled), ..EventPatch::default() };
    bench.cloud.patch_event(bench.now, &event.event_id, patch).expect("an event");
    assert_eq!(get(&mut bench, &id, None, "events/maintenance/scheduled").1, "[]");
    let (_, text) = get(&mut bench, &id, None, "events/maintenance/history");
    let shown: Value = serde_json::from_str(&text).expect("json");
    assert_eq!(shown[0]["State"], "canceled");
    assert_eq!(shown[0]["Description"], "[Canceled] scheduled reboot");
}

#[test]
fn faults_strike_the_service_they_name_and_as_often_as_they_say() {
    let mut bench = Bench::new();
    let (id, other) = (bench.launch_running(), bench.launch_running());
    let faults = json!({"metadata": [
        {"kind": "error", "instanceId": id, "path": "/latest/meta-data/ami-id", "count": 2},
        {"kind": "garbage", "instanceId": id, "path": "/latest/meta-data/h*", "count": 1},
        {"kind": "slow", "instanceId": id, "path": "/latest/meta-data/mac", "after": "3s"},
        {"kind": "error", "status": 401, "instanceId": id, "path": "/latest/api/token"},
        {"kind": "silence", "instanceId": id, "path": "/latest/meta-data/placement/*"},
    ]});
    let faults = serde_json::from_value(faults).expect("faults");
    bench.cloud.add_faults(bench.now, faults).expect("sound faults");
    let statuses: Vec<u16> = (0..3).map(|_| get(&mut bench, &id, None, "ami-id").0).collect();
    assert_eq!(statuses, [500, 500, 200]);
    assert_eq!(get(&mut bench, &other, None, "ami-id").0, 200);
    let (status, text) = get(&mut bench, &id, None, "hostname");
    assert!(status == 200 && text.contains("garbage"), "{text}");
    assert!(get(&mut bench, &id, None, "hostname").1.contains("internal"));
    assert_eq!(put_token(&mut bench, &id, Some("60")).status, 401);
    let ask = |bench: &mut Bench, path: &str| {
        let path = format!("/latest/meta-data/{path}");
        let request = MetadataRequest { method: "GET".into(), path, ..MetadataRequest::default() };
        bench.cloud.metadata(bench.now, &id, &request)
    };
    let slow = ask(&mut bench, "mac");
    assert_eq!((slow.status, slow.delivery.after), (200, SignedDuration::from_secs(3)));
    assert!(ask(&mut bench, "placement/region").delivery.lost);
    bench.cloud.clear_fault_kind("metadata").expect("a kind");
    assert_eq!(put_token(&mut bench, &id, Some("60")).status, 200);
    for unsound in [
        json!({"metadata": [{"kind": "error", "status": 200}]}),
        json!({"metadata": [{"kind": "error", "path": "spot/*"}]}),
        json!({"metadata": [{"kind": "slow", "probability": 2.0}]}),
    ] {
        let faults = serde_json::from_value(unsound.clone()).expect("faults");
        assert!(bench.cloud.add_faults(bench.now, faults).is_err(), "{unsound}");
    }
    assert_eq!(bench.cloud.ledger(&LedgerQuery::default()).calls.len(), 2, "only the launches");
}
