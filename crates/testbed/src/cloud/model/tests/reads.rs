//! Are reads wrong only where a fault says so, and in the ways that EC2's own are?

use proptest::prelude::*;

use super::*;

fn add(bench: &mut Bench, json: &str) {
    let faults = serde_json::from_str(json).expect("faults");
    bench.cloud.add_faults(bench.now, faults).expect("faults");
}

fn by_id(bench: &mut Bench, id: &str) -> Result<Vec<String>, Ec2Error> {
    bench.describe(DescribeInstances {
        instance_ids: vec![id.into()],
        ..DescribeInstances::default()
    })
}

fn listed(bench: &mut Bench) -> Vec<String> {
    bench.describe(DescribeInstances::default()).expect("a list")
}

fn statuses(bench: &mut Bench, instance_ids: Vec<String>) -> Result<usize, Ec2Error> {
    let request = DescribeInstanceStatus {
        instance_ids,
        include_all_instances: true,
        ..DescribeInstanceStatus::default()
    };
    match bench.call(Request::DescribeInstanceStatus(request)).result? {
        Response::InstanceStatuses(page) => Ok(page.items.len()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hidden_instance_is_in_no_read_until_it_is_shown() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    let other = bench.launch_running();
    let hide = HideRequest { lasting: None, count: None };
    bench.cloud.console_hide(bench.now, &id, &hide).expect("hidden");
    bench.seconds(3600);
    assert_eq!(code(by_id(&mut bench, &id)), "InvalidInstanceID.NotFound");
    assert_eq!(listed(&mut bench), [other]);
    assert_eq!(statuses(&mut bench, Vec::new()), Ok(1));
    assert_eq!(code(statuses(&mut bench, vec![id.clone()])), "InvalidInstanceID.NotFound");
    // It is there all the same: its guest runs and a change finds it.
    assert!(bench.cloud.snapshot().iter().any(|facts| facts.id == id && facts.is_up()));
    bench.call(Request::RebootInstances(ids(&[&id]))).result.expect("a reboot");
    bench.cloud.console_show(bench.now, &id).expect("shown");
    assert_eq!(by_id(&mut bench, &id), Ok(vec![id]));
}

#[test]
fn hiding_ends_by_time_or_by_count() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    add(&mut bench, &format!(r#"{{"hidden": [{{"instanceId": "{id}", "for": "30s"}}]}}"#));
    bench.seconds(29);
    assert_eq!(listed(&mut bench), Vec::<String>::new());
    bench.seconds(1);
    assert_eq!(listed(&mut bench), vec![id.clone()]);
    add(&mut bench, &format!(r#"{{"hidden": [{{"instanceId": "{id}", "count": 1}}]}}"#));
    assert_eq!(listed(&mut bench), Vec::<String>::new());
    assert_eq!(listed(&mut bench), vec![id.clone()]);
    add(&mut bench, &format!(r#"{{"hidden": [{{"instanceId": "{id}"}}]}}"#));
    bench.cloud.clear_fault_kind("hidden").expect("a kind");
    assert_eq!(listed(&mut bench), [id]);
}

#[test]
fn clearing_one_kind_leaves_the_others_as_they_are() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    add(
        &mut bench,
        &format!(
            r#"{{"hidden": [{{"instanceId": "{id}", "for": "30s"}}], "latency": "1s",
                 "launchTimeSkew": "5m", "staleReads": {{"lag": "1m", "probability": 0.5}}}}"#
        ),
    );
    let mut expected = bench.cloud.faults().clone();
    expected.latency = None;
    bench.cloud.clear_fault_kind("latency").expect("a kind");
    assert_eq!(*bench.cloud.faults(), expected);
    assert!(expected.hidden[0].until.is_some());
}

#[test]
fn a_lookup_by_id_and_a_list_can_disagree() {
    for (json, found_by_id, found_in_list) in [
        (r#"{"omissions": {"byId": 1}}"#, false, true),
        (r#"{"omissions": {"byFilter": 1}}"#, true, false),
        (r#"{"omissions": {}}"#, true, true),
    ] {
        let mut bench = Bench::new();
        let id = bench.launch_running();
        add(&mut bench, json);
        assert_eq!(by_id(&mut bench, &id).is_ok(), found_by_id, "{json}");
        assert_eq!(listed(&mut bench).len(), usize::from(found_in_list), "{json}");
    }
}

#[test]
fn omissions_strike_about_as_often_as_they_say() {
    let mut bench = Bench::new();
    let launch = RunInstances { min_count: 100, max_count: 100, ..bench.launch_parameters() };
    bench.try_launch(launch).expect("a launch");
    add(&mut bench, r#"{"omissions": {"byFilter": 0.1}}"#);
    let shown: usize = (0..50).map(|_| listed(&mut bench).len()).sum();
    assert!((4_300..4_700).contains(&shown), "{shown} of 5000");
}

#[test]
fn stale_reads_show_the_past_and_never_older_than_the_lag() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    add(&mut bench, r#"{"staleReads": {"lag": "60s", "probability": 1}}"#);
    bench.call(Request::StopInstances(ids(&[&id]))).result.expect("a stop");
    bench.seconds(5);
    let new = bench.try_launch(bench.launch_parameters()).expect("a launch")[0].id.clone();
    let state = |bench: &mut Bench| {
        let answer = bench.call(Request::DescribeInstances(DescribeInstances {
            instance_ids: vec![id.clone()],
            ..DescribeInstances::default()
        }));
        let Ok(Response::Instances(page)) = answer.result else { panic!("{answer:?}") };
        page.items[0].instances[0].state
    };
    // The only copy is from before the stop, and from before the launch.
    assert_eq!(state(&mut bench), InstanceState::Running);
    assert_eq!(code(by_id(&mut bench, &new)), "InvalidInstanceID.NotFound");
    assert_eq!(bench.instance(&id).state, InstanceState::Stopped);
    bench.seconds(61);
    bench.call(Request::DescribeInstances(DescribeInstances::default()));
    assert_eq!(state(&mut bench), InstanceState::Stopped);
    assert_eq!(by_id(&mut bench, &new), Ok(vec![new]));
}

#[test]
fn pages_of_one_list_can_be_of_different_age() {
    let mut bench = Bench::new();
    let launch = RunInstances { min_count: 40, max_count: 40, ..bench.launch_parameters() };
    let launched = bench.try_launch(launch).expect("a launch");
    add(&mut bench, r#"{"staleReads": {"lag": "60s", "probability": 0.5}}"#);
    bench.seconds(2);
    let mut states = BTreeSet::new();
    let mut next_token = None;
    loop {
        let page = Page { max_results: Some(5), next_token };
        let request = DescribeInstances { page, ..DescribeInstances::default() };
        let answer = bench.call(Request::DescribeInstances(request)).result;
        let Ok(Response::Instances(page)) = answer else { panic!("{answer:?}") };
        let instances = page.items.iter().flat_map(|reservation| &reservation.instances);
        states.extend(instances.map(|instance| instance.state));
        next_token = page.next_token;
        if next_token.is_none() {
            break;
        }
    }
    assert_eq!(launched.len(), 40);
    assert_eq!(states, BTreeSet::from([InstanceState::Pending, InstanceState::Running]));
}

#[test]
fn copies_for_stale_reads_stay_few() {
    let mut bench = Bench::new();
    add(&mut bench, r#"{"staleReads": {"lag": "60s", "probability": 0.5}}"#);
    for _ in 0..200 {
        bench.seconds(1);
        listed(&mut bench);
        assert!(bench.cloud.replicas.len() <= 9);
    }
    bench.cloud.clear_faults();
    listed(&mut bench);
    assert!(bench.cloud.replicas.is_empty());
}

proptest! {
    #[test]
    fn short_and_shuffled_pages_lose_and_repeat_nothing(count in 1_i64..40, size in 5_i64..20) {
        let mut bench = Bench::new();
        let launch =
            RunInstances { min_count: count, max_count: count, ..bench.launch_parameters() };
        bench.try_launch(launch).expect("a launch");
        add(&mut bench, r#"{"pages": {"short": true, "shuffled": true}}"#);
        let mut seen = Vec::new();
        let mut next_token = None;
        let mut pages = 0;
        loop {
            let page = Page { max_results: Some(size), next_token };
            let request = DescribeInstances { page, ..DescribeInstances::default() };
            let answer = bench.call(Request::DescribeInstances(request)).result;
            let Ok(Response::Instances(page)) = answer else { panic!("{answer:?}") };
            let instances = page.items.iter().flat_map(|reservation| &reservation.instances);
            let shown: Vec<String> = instances.map(|instance| instance.id.clone()).collect();
            prop_assert!(shown.len() <= 5);
            seen.extend(shown);
            pages += 1;
            prop_assert!(pages < 1000);
            next_token = page.next_token;
            if next_token.is_none() {
                break;
            }
        }
        seen.sort();
        let expected: Vec<String> = bench.cloud.instances.keys().cloned().collect();
        prop_assert_eq!(seen, expected);
    }
}
