//! Are dedicated hosts allocated once, filled by the rules, and released only when empty?

use super::*;

fn allocate(
    bench: &mut Bench,
    change: impl FnOnce(&mut AllocateHosts),
) -> Result<Vec<String>, Ec2Error> {
    let mut request = AllocateHosts {
        quantity: Some(1),
        instance_type: Some("m5.large".into()),
        availability_zone: Some("us-east-1a".into()),
        auto_placement: Some("off".into()),
        ..AllocateHosts::default()
    };
    change(&mut request);
    match bench.call(Request::AllocateHosts(request)).result? {
        Response::HostsAllocated(ids) => Ok(ids),
        other => panic!("{other:?}"),
    }
}

fn on_host(bench: &Bench, host_id: Option<&str>, affinity: Option<&str>) -> RunInstances {
    RunInstances {
        placement: Some(Placement {
            tenancy: Some("host".into()),
            host_id: host_id.map(str::to_owned),
            affinity: affinity.map(str::to_owned),
            ..Placement::default()
        }),
        ..bench.launch_parameters()
    }
}

fn release(bench: &mut Bench, id: &str) -> Result<(), String> {
    let request = ReleaseHosts { host_ids: vec![id.into()] };
    match bench.call(Request::ReleaseHosts(request)).result {
        Ok(Response::HostsReleased { successful, unsuccessful }) => match unsuccessful.first() {
            None => {
                assert_eq!(successful, [id]);
                Ok(())
            }
            Some(host) => Err(host.code.to_owned()),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn bad_allocations_are_refused() {
    type Change = fn(&mut AllocateHosts);
    let table: &[(&str, Change)] = &[
        ("MissingParameter", |request| request.instance_type = None),
        ("MissingParameter", |request| request.availability_zone = None),
        ("InvalidParameterValue", |request| request.availability_zone = Some("mars-1a".into())),
        ("InvalidParameterValue", |request| request.instance_type = Some("x9.huge".into())),
        ("InvalidParameterCombination", |request| request.instance_family = Some("m5".into())),
        ("InvalidParameterValue", |request| request.quantity = Some(0)),
        ("InvalidParameterValue", |request| request.auto_placement = Some("maybe".into())),
        ("InvalidParameterValue", |request| {
            request.tag_specifications =
                vec![TagSpecification { resource_type: "instance".into(), tags: Vec::new() }];
        }),
    ];
    let mut bench = Bench::new();
    for (expected, change) in table {
        assert_eq!(code(allocate(&mut bench, change)), *expected);
    }
    assert!(bench.cloud.hosts().is_empty());
}

#[test]
fn a_token_allocates_once() {
    let mut bench = Bench::new();
    let token = |request: &mut AllocateHosts| request.client_token = Some("t".into());
    let first = allocate(&mut bench, token).expect("a host");
    assert_eq!(allocate(&mut bench, token), Ok(first));
    let other = allocate(&mut bench, |request| {
        token(request);
        request.quantity = Some(2);
    });
    assert_eq!(code(other), "IdempotentParameterMismatch");
    assert_eq!(bench.cloud.hosts().len(), 1);
}

#[test]
fn a_launch_on_a_host_is_refused_where_the_host_does_not_fit() {
    let mut bench = Bench::new();
    let id = allocate(&mut bench, |_| {}).expect("a host")[0].clone();
    let elsewhere =
        allocate(&mut bench, |request| request.availability_zone = Some("us-east-1b".into()))
            .expect("a host")[0]
            .clone();
    let other_type =
        allocate(&mut bench, |request| request.instance_type = Some("c5.large".into()))
            .expect("a host")[0]
            .clone();
    let released = allocate(&mut bench, |_| {}).expect("a host")[0].clone();
    release(&mut bench, &released).expect("released");
    for (host, expected) in [
        ("h-00000000000000000", "InvalidHostID.NotFound"),
        ("nonsense", "InvalidHostID.Malformed"),
        (elsewhere.as_str(), "InvalidParameterValue"),
        (other_type.as_str(), "InvalidParameterValue"),
        (released.as_str(), "InvalidHostState"),
    ] {
        let launch = on_host(&bench, Some(host), Some("host"));
        assert_eq!(code(bench.try_launch(launch)), expected, "{host}");
    }
    // None of the hosts takes instances by itself.
    let anywhere = on_host(&bench, None, None);
    assert_eq!(code(bench.try_launch(anywhere)), "InsufficientCapacityOnHost");
    let launch = on_host(&bench, Some(&id), Some("host"));
    let launched = bench.launch_running_with(launch);
    let instance = bench.instance(&launched);
    assert_eq!(instance.host_id.as_ref(), Some(&id));
    assert_eq!((instance.tenancy(), instance.affinity()), ("host", Some("host")));
}

#[test]
fn a_host_is_full_at_its_vcpus() {
    let mut bench = Bench::new();
    let id = allocate(&mut bench, |request| {
        request.instance_type = None;
        request.instance_family = Some("m5".into());
    })
    .expect("a host")[0]
        .clone();
    let many = RunInstances { max_count: 100, ..on_host(&bench, Some(&id), None) };
    assert_eq!(bench.try_launch(many).expect("as many as fit").len(), 48);
    let one = on_host(&bench, Some(&id), None);
    assert_eq!(code(bench.try_launch(one)), "InsufficientCapacityOnHost");
    assert_eq!(bench.cloud.hosts()[0].available_vcpus, 0);
}

#[test]
fn an_occupied_host_cannot_be_released() {
    let mut bench = Bench::new();
    let id = allocate(&mut bench, |request| request.auto_placement = Some("on".into()))
        .expect("a host")[0]
        .clone();
    let launch = on_host(&bench, None, Some("host"));
    let instance = bench.launch_running_with(launch);
    assert_eq!(release(&mut bench, &id), Err("Client.InvalidHost.Occupied".into()));
    bench.call(Request::TerminateInstances(ids(&[&instance]))).result.expect("a termination");
    assert_eq!(release(&mut bench, &id), Err("Client.InvalidHost.Occupied".into()));
    bench.seconds(1);
    assert_eq!(release(&mut bench, &id), Ok(()));
    assert_eq!(release(&mut bench, &id), Err("Client.InvalidHostID.NotFound".into()));
    assert_eq!(bench.cloud.hosts()[0].host.state, HostState::Released);
    bench.seconds(3600);
    assert!(bench.cloud.hosts().is_empty());
}

#[test]
fn affinity_brings_a_stopped_instance_back_to_its_host() {
    for (affinity, starts) in [("host", false), ("default", true)] {
        let mut bench = Bench::new();
        let auto = |request: &mut AllocateHosts| request.auto_placement = Some("on".into());
        let first = allocate(&mut bench, auto).expect("a host")[0].clone();
        let launch = on_host(&bench, Some(&first), Some(affinity));
        let id = bench.launch_running_with(launch);
        bench.call(Request::StopInstances(ids(&[&id]))).result.expect("a stop");
        bench.seconds(1);
        // A stopped instance holds no host, so this one can go.
        release(&mut bench, &first).expect("released");
        let second = allocate(&mut bench, auto).expect("a host")[0].clone();
        let started = bench.call(Request::StartInstances(ids(&[&id]))).result;
        assert_eq!(started.is_ok(), starts, "{affinity}");
        if starts {
            assert_eq!(bench.instance(&id).host_id.as_ref(), Some(&second));
        }
    }
}

#[test]
fn hosts_are_found_by_tag_zone_and_state() {
    let mut bench = Bench::new();
    let tagged = allocate(&mut bench, |request| {
        request.tag_specifications = vec![TagSpecification {
            resource_type: "dedicated-host".into(),
            tags: vec![Tag { key: "machine".into(), value: "uid-1".into() }],
        }];
    })
    .expect("a host")[0]
        .clone();
    let other = allocate(&mut bench, |_| {}).expect("a host")[0].clone();
    let create = Request::CreateTags(CreateTags {
        resources: vec![other.clone()],
        tags: vec![Tag { key: "machine".into(), value: "uid-2".into() }],
        dry_run: false,
    });
    bench.call(create).result.expect("tags");
    release(&mut bench, &other).expect("released");
    let mut found = |filters: Vec<Filter>| {
        let request = DescribeHosts { filters, ..DescribeHosts::default() };
        match bench.call(Request::DescribeHosts(request)).result {
            Ok(Response::Hosts(page)) => {
                page.items.into_iter().map(|described| described.host.id).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(found(vec![filter("tag:machine", &["uid-1"])]), vec![tagged.clone()]);
    assert_eq!(found(vec![filter("tag:machine", &["uid-2"])]), [other]);
    assert_eq!(found(vec![filter("state", &["available"])]), [tagged]);
    assert_eq!(found(vec![filter("availability-zone", &["us-east-1b"])]), Vec::<String>::new());
    assert_eq!(found(vec![filter("instance-type", &["m5.large"])]).len(), 2);
}
