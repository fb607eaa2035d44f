//! Do instances move between states as in EC2, and at the times that were configured?

use super::*;

#[test]
fn states_take_their_time() {
    let mut bench = Bench::with(CloudConfig::default());
    let launch = bench.launch_parameters();
    let id = bench.try_launch(launch).expect("a launch")[0].id.clone();
    let state = |bench: &Bench| bench.instance(&id).state;
    bench.seconds(9);
    assert_eq!(state(&bench), InstanceState::Pending);
    bench.seconds(1);
    assert_eq!(state(&bench), InstanceState::Running);
    bench.call(Request::StopInstances(ids(&[&id]))).result.expect("a stop");
    bench.seconds(19);
    assert_eq!(state(&bench), InstanceState::Stopping);
    bench.seconds(1);
    assert_eq!(state(&bench), InstanceState::Stopped);
    bench.call(Request::StartInstances(ids(&[&id]))).result.expect("a start");
    bench.seconds(10);
    assert_eq!((state(&bench), bench.instance(&id).boot_generation), (InstanceState::Running, 2));
    bench.call(Request::RebootInstances(ids(&[&id]))).result.expect("a reboot");
    assert!(bench.cloud.snapshot()[0].rebooting);
    bench.seconds(20);
    assert_eq!((state(&bench), bench.instance(&id).boot_generation), (InstanceState::Running, 3));
    bench.call(Request::TerminateInstances(ids(&[&id]))).result.expect("a termination");
    bench.seconds(20);
    assert_eq!(state(&bench), InstanceState::Terminated);
    bench.seconds(3599);
    assert_eq!(state(&bench), InstanceState::Terminated);
    bench.seconds(1);
    let request = DescribeInstances { instance_ids: vec![id], ..DescribeInstances::default() };
    assert_eq!(code(bench.describe(request)), "InvalidInstanceID.NotFound");
    let ledger = bench.cloud.ledger(&LedgerQuery::default());
    assert_eq!(ledger.instances.len(), 1);
    assert_eq!(ledger.instances[0].state, InstanceState::Terminated);
    assert!(ledger.instances[0].termination_time.is_some());
    assert_eq!(bench.cloud.next_transition(), None);
}

#[test]
fn each_verb_is_refused_in_the_states_where_ec2_refuses_it() {
    use InstanceState::{Pending, Running, ShuttingDown, Stopped, Stopping, Terminated};
    type Verb = fn(InstanceIds) -> Request;
    let table: &[(Verb, &[InstanceState])] = &[
        (Request::StopInstances, &[Pending, ShuttingDown, Terminated]),
        (Request::StartInstances, &[Stopping, ShuttingDown, Terminated]),
        (Request::RebootInstances, &[Pending, Stopping, Stopped, ShuttingDown, Terminated]),
        (Request::TerminateInstances, &[]),
    ];
    for (verb, refused) in table {
        for state in [Pending, Running, ShuttingDown, Terminated, Stopping, Stopped] {
            let (mut bench, id) = instance_in(state);
            let result = bench.call(verb(ids(&[&id]))).result;
            if refused.contains(&state) {
                assert_eq!(code(result), "IncorrectInstanceState", "{state:?}");
            } else {
                result.unwrap_or_else(|error| panic!("{state:?}: {error}"));
            }
        }
    }
}

fn instance_in(state: InstanceState) -> (Bench, String) {
    let mut bench = Bench::new();
    let launch = bench.launch_parameters();
    let id = bench.try_launch(launch).expect("a launch")[0].id.clone();
    if state != InstanceState::Pending {
        bench.seconds(1);
    }
    match state {
        InstanceState::Pending | InstanceState::Running => {}
        InstanceState::Stopping | InstanceState::Stopped => {
            bench.call(Request::StopInstances(ids(&[&id]))).result.expect("a stop");
        }
        InstanceState::ShuttingDown | InstanceState::Terminated => {
            bench.call(Request::TerminateInstances(ids(&[&id]))).result.expect("a termination");
        }
    }
    if matches!(state, InstanceState::Stopped | InstanceState::Terminated) {
        bench.seconds(1);
    }
    assert_eq!(bench.instance(&id).state, state);
    (bench, id)
}

#[test]
fn public_address_changes_at_a_start_and_private_one_stays() {
    let mut bench = Bench::new();
    let launch = RunInstances {
        subnet_id: bench.world().public_subnets.get("us-east-1a").cloned(),
        ..bench.launch_parameters()
    };
    let id = bench.launch_running_with(launch);
    let before = bench.instance(&id).clone();
    assert!(before.public_address().is_some());
    bench.call(Request::StopInstances(ids(&[&id]))).result.expect("a stop");
    bench.seconds(1);
    assert_eq!(bench.instance(&id).public_address(), None);
    bench.call(Request::StartInstances(ids(&[&id]))).result.expect("a start");
    bench.seconds(1);
    let after = bench.instance(&id);
    assert!(after.public_address().is_some() && after.public_address() != before.public_address());
    assert_eq!(after.private_address(), before.private_address());
    assert!(after.launch_time > before.launch_time);
    assert_eq!(after.created_at, before.created_at);
}

#[test]
fn reason_tells_who_did_it() {
    for (by, stop, termination) in [
        (ChangedBy::User, "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown"),
        (ChangedBy::Provider, "Server.ScheduledStop", "Server.InternalError"),
        (ChangedBy::Guest, "Client.InstanceInitiatedShutdown", "Client.InstanceInitiatedShutdown"),
    ] {
        let mut bench = Bench::new();
        let id = bench.launch_running();
        let reason = |bench: &Bench| bench.instance(&id).state_reason.clone().expect("a reason");
        bench.cloud.console_stop(bench.now, &id, by).expect("a stop");
        assert_eq!(reason(&bench).code, stop);
        bench.seconds(1);
        bench.cloud.console_terminate(bench.now, &id, by).expect("a termination");
        assert_eq!(reason(&bench).code, termination);
    }
}

#[test]
fn spot_notice_ends_a_spot_instance_and_no_other() {
    let mut bench = Bench::new();
    let ordinary = bench.launch_running();
    let request = SpotNoticeRequest::default();
    let refused = bench.cloud.console_spot_notice(bench.now, &ordinary, &request);
    assert!(matches!(refused, Err(ConsoleError::Conflict(_))));
    let launch = RunInstances {
        instance_market_options: Some(InstanceMarketOptions {
            market_type: Some("spot".into()),
            spot_options: None,
        }),
        ..bench.launch_parameters()
    };
    let id = bench.launch_running_with(launch);
    assert_eq!(
        code(bench.call(Request::StopInstances(ids(&[&id]))).result),
        "UnsupportedOperation"
    );
    bench.cloud.console_spot_notice(bench.now, &id, &request).expect("a notice");
    bench.seconds(119);
    assert_eq!(bench.instance(&id).state, InstanceState::Running);
    bench.seconds(2);
    let instance = bench.instance(&id);
    assert_eq!(instance.state, InstanceState::Terminated);
    let reason = instance.state_reason.clone().expect("a reason");
    assert_eq!(reason.code, "Server.SpotInstanceTermination");
}

#[test]
fn impairment_shows_in_the_checks_and_the_right_work_heals_it() {
    for (check, system, healed_by_reboot) in
        [(ImpairedCheck::Instance, "ok", true), (ImpairedCheck::System, "impaired", false)]
    {
        let mut bench = Bench::new();
        let id = bench.launch_running();
        assert_eq!(bench.status(&id).instance_check.status, "ok");
        let impair = Impair { check, impaired: true };
        bench.cloud.console_impair(bench.now, &id, &impair).expect("an impairment");
        let status = bench.status(&id);
        assert_eq!(status.instance_check.status, "impaired");
        assert_eq!(status.system_check.status, system);
        assert_eq!(status.instance_check.impaired_since, Some(bench.now));
        bench.call(Request::RebootInstances(ids(&[&id]))).result.expect("a reboot");
        bench.seconds(2);
        assert_eq!(bench.instance(&id).impairment.is_none(), healed_by_reboot);
        bench.call(Request::StopInstances(ids(&[&id]))).result.expect("a stop");
        bench.seconds(1);
        bench.call(Request::StartInstances(ids(&[&id]))).result.expect("a start");
        bench.seconds(2);
        assert_eq!(bench.status(&id).instance_check.status, "ok");
    }
}

#[test]
fn tags_of_a_call_are_all_written_or_none() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    let tag = |key: &str| Tag { key: key.into(), value: "v".into() };
    let request = |resources: &[&str], tags: Vec<Tag>| {
        Request::CreateTags(CreateTags {
            resources: resources.iter().map(|id| (*id).into()).collect(),
            tags,
            dry_run: false,
        })
    };
    let unknown = bench.call(request(&[&id, "i-00000000000000000"], vec![tag("a")])).result;
    assert_eq!(code(unknown), "InvalidInstanceID.NotFound");
    let many = (0..51).map(|number| tag(&format!("k{number}"))).collect();
    assert_eq!(code(bench.call(request(&[&id], many)).result), "TagLimitExceeded");
    assert!(bench.instance(&id).tags.is_empty());
    let subnet = bench.world().private_subnets["us-east-1a"].clone();
    bench.call(request(&[&id, &subnet], vec![tag("a")])).result.expect("tags");
    assert_eq!(bench.instance(&id).tags["a"], "v");
    assert_eq!(bench.cloud.world().subnets[&subnet].tags["a"], "v");
}
