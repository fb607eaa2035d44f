//! Do load balancers know their targets, and their health, as AWS's do?

use super::*;

fn elb(bench: &mut Bench, request: ElbRequest) -> Result<ElbResponse, Ec2Error> {
    match bench.call(Request::Elb(request)).result? {
        Response::Elb(response) => Ok(response),
        other => panic!("{other:?}"),
    }
}

fn elbv2(bench: &mut Bench, request: Elbv2Request) -> Result<Elbv2Response, Ec2Error> {
    match bench.call(Request::Elbv2(request)).result? {
        Response::Elbv2(response) => Ok(response),
        other => panic!("{other:?}"),
    }
}

fn classic(bench: &mut Bench, name: &str) {
    let subnet = bench.world().private_subnets["us-east-1a"].clone();
    let request = CreateClassicLoadBalancer {
        load_balancer_name: name.into(),
        listeners: vec![ClassicListener {
            protocol: "TCP".into(),
            load_balancer_port: 6443,
            instance_protocol: None,
            instance_port: 6443,
        }],
        subnets: vec![subnet],
        ..CreateClassicLoadBalancer::default()
    };
    elb(bench, ElbRequest::CreateLoadBalancer(request)).expect("a load balancer");
}

fn instances(name: &str, ids: &[&str]) -> ClassicInstances {
    ClassicInstances {
        load_balancer_name: name.into(),
        instances: ids.iter().map(|id| ClassicInstance { instance_id: (*id).into() }).collect(),
    }
}

/// Makes a load balancer, a group and the listener between them; returns the group's ARN.
fn group(bench: &mut Bench, name: &str, target_type: &str) -> String {
    let arn = group_alone(bench, name, target_type);
    let subnet = bench.world().private_subnets["us-east-1a"].clone();
    let request = CreateLoadBalancer {
        name: format!("{name}-lb"),
        r#type: Some("network".into()),
        subnets: vec![subnet],
        ..CreateLoadBalancer::default()
    };
    let made = elbv2(bench, Elbv2Request::CreateLoadBalancer(request)).expect("a load balancer");
    let Elbv2Response::LoadBalancers(page) = made else { panic!("{made:?}") };
    let listener = CreateListener {
        load_balancer_arn: page.items[0].arn.clone(),
        protocol: Some("TCP".into()),
        port: Some(6443),
        target_group_arns: vec![arn.clone()],
    };
    elbv2(bench, Elbv2Request::CreateListener(listener)).expect("a listener");
    arn
}

fn group_alone(bench: &mut Bench, name: &str, target_type: &str) -> String {
    let request = CreateTargetGroup {
        name: name.into(),
        protocol: Some("TCP".into()),
        port: Some(6443),
        vpc_id: Some(bench.world().vpc_id),
        target_type: Some(target_type.into()),
        ..CreateTargetGroup::default()
    };
    let made = elbv2(bench, Elbv2Request::CreateTargetGroup(request)).expect("a group");
    let Elbv2Response::TargetGroups(page) = made else { panic!("{made:?}") };
    page.items[0].group.arn.clone()
}

fn targets(arn: &str, ids: &[&str]) -> Targets {
    Targets {
        target_group_arn: arn.into(),
        targets: ids
            .iter()
            .map(|id| TargetDescription { id: (*id).into(), ..TargetDescription::default() })
            .collect(),
    }
}

fn register(bench: &mut Bench, arn: &str, id: &str) -> Result<(), Ec2Error> {
    elbv2(bench, Elbv2Request::RegisterTargets(targets(arn, &[id]))).map(drop)
}

fn deregister(bench: &mut Bench, arn: &str, id: &str) -> Result<(), Ec2Error> {
    elbv2(bench, Elbv2Request::DeregisterTargets(targets(arn, &[id]))).map(drop)
}

fn health(bench: &mut Bench, arn: &str, ids: &[&str]) -> Vec<(String, &'static str)> {
    match elbv2(bench, Elbv2Request::DescribeTargetHealth(targets(arn, ids))) {
        Ok(Elbv2Response::TargetHealth(described)) => {
            described.into_iter().map(|(target, health)| (target.id, health.state)).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn classic_registration_repeats_safely_and_refuses_what_is_unknown() {
    let mut bench = Bench::new();
    classic(&mut bench, "api");
    let id = bench.launch_running();
    let register = ElbRequest::RegisterInstancesWithLoadBalancer;
    for _ in 0..2 {
        let answer = elb(&mut bench, register(instances("api", &[&id]))).expect("registered");
        let ElbResponse::Instances { registered, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(registered, vec![id.clone()]);
    }
    let unknown = elb(&mut bench, register(instances("api", &[&id, "i-00000000000000000"])));
    assert_eq!(code(unknown), "InvalidInstance");
    assert_eq!(code(elb(&mut bench, register(instances("web", &[&id])))), "LoadBalancerNotFound");
    let deregister = ElbRequest::DeregisterInstancesFromLoadBalancer;
    for _ in 0..2 {
        elb(&mut bench, deregister(instances("api", &[&id]))).expect("deregistered");
    }
    assert!(bench.cloud.load_balancer_facts(bench.now).classic[0].instances.is_empty());
}

#[test]
fn classic_health_follows_the_instance() {
    let mut bench = Bench::new();
    classic(&mut bench, "api");
    let id = bench.launch_running();
    let request = ElbRequest::RegisterInstancesWithLoadBalancer(instances("api", &[&id]));
    elb(&mut bench, request).expect("registered");
    let state = |bench: &Bench| {
        bench.cloud.load_balancer_facts(bench.now).classic[0].instances[0].state.clone()
    };
    assert_eq!(state(&bench), "OutOfService");
    bench.seconds(1);
    assert_eq!(state(&bench), "InService");
    bench.call(Request::StopInstances(ids(&[&id]))).result.expect("a stop");
    assert_eq!(state(&bench), "OutOfService");
    bench.call(Request::TerminateInstances(ids(&[&id]))).result.expect("a termination");
    bench.seconds(1);
    assert_eq!(state(&bench), "OutOfService");
    bench.seconds(10);
    assert!(bench.cloud.load_balancer_facts(bench.now).classic[0].instances.is_empty());
}

#[test]
fn an_instance_target_goes_from_initial_to_healthy_to_draining_to_unused() {
    let mut bench = Bench::new();
    let arn = group(&mut bench, "api", "instance");
    let id = bench.launch_running();
    assert_eq!(health(&mut bench, &arn, &[&id]), [(id.clone(), "unused")]);
    register(&mut bench, &arn, &id).expect("registered");
    assert_eq!(health(&mut bench, &arn, &[]), [(id.clone(), "initial")]);
    bench.seconds(1);
    assert_eq!(health(&mut bench, &arn, &[]), [(id.clone(), "healthy")]);
    // Registering again does not begin anew.
    register(&mut bench, &arn, &id).expect("registered");
    assert_eq!(health(&mut bench, &arn, &[]), [(id.clone(), "healthy")]);
    bench.cloud.console_impair(bench.now, &id, &Impair::default()).expect("impaired");
    assert_eq!(health(&mut bench, &arn, &[]), [(id.clone(), "unhealthy")]);
    deregister(&mut bench, &arn, &id).expect("deregistered");
    deregister(&mut bench, &arn, &id).expect("still draining");
    assert_eq!(health(&mut bench, &arn, &[]), [(id.clone(), "draining")]);
    bench.seconds(1);
    assert_eq!(health(&mut bench, &arn, &[]), []);
    assert_eq!(health(&mut bench, &arn, &[&id]), [(id.clone(), "unused")]);
    assert_eq!(code(deregister(&mut bench, &arn, &id)), "InvalidTarget");
}

#[test]
fn a_target_that_drains_can_be_registered_again() {
    let mut bench = Bench::new();
    let arn = group(&mut bench, "api", "instance");
    let id = bench.launch_running();
    register(&mut bench, &arn, &id).expect("registered");
    deregister(&mut bench, &arn, &id).expect("deregistered");
    register(&mut bench, &arn, &id).expect("registered");
    bench.seconds(5);
    assert_eq!(health(&mut bench, &arn, &[]), [(id, "healthy")]);
}

#[test]
fn targets_that_cannot_be_are_refused() {
    let mut bench = Bench::new();
    let by_instance = group(&mut bench, "a", "instance");
    let by_address = group(&mut bench, "b", "ip");
    let by_balancer = group(&mut bench, "c", "alb");
    let launch = bench.launch_parameters();
    let pending = bench.try_launch(launch).expect("a launch")[0].id.clone();
    for (arn, id, expected) in [
        (&by_instance, pending.as_str(), "InvalidTarget"),
        (&by_instance, "i-00000000000000000", "InvalidTarget"),
        (&by_instance, "10.0.0.9", "InvalidTarget"),
        (&by_address, "192.168.0.1", "InvalidTarget"),
        (&by_address, "2600:1f18:1000:1000::1", "InvalidTarget"),
        (&by_address, "nonsense", "ValidationError"),
        (&by_balancer, "nonsense", "InvalidTarget"),
        (&"arn:nobody".to_owned(), "10.0.0.9", "TargetGroupNotFound"),
    ] {
        assert_eq!(code(register(&mut bench, arn, id)), expected, "{id}");
    }
    bench.seconds(1);
    register(&mut bench, &by_instance, &pending).expect("it runs now");
    bench.call(Request::StopInstances(ids(&[&pending]))).result.expect("a stop");
    assert_eq!(health(&mut bench, &by_instance, &[]), [(pending, "unused")]);
}

#[test]
fn an_address_outlives_its_instance_and_an_instance_does_not() {
    let mut bench = Bench::new();
    let by_instance = group(&mut bench, "a", "instance");
    let by_address = group(&mut bench, "b", "ip");
    let id = bench.launch_running();
    let address = bench.instance(&id).private_address().expect("an address").to_string();
    register(&mut bench, &by_instance, &id).expect("registered");
    register(&mut bench, &by_address, &address).expect("registered");
    bench.seconds(1);
    assert_eq!(health(&mut bench, &by_address, &[]), [(address.clone(), "healthy")]);
    bench.call(Request::TerminateInstances(ids(&[&id]))).result.expect("a termination");
    bench.seconds(1);
    assert_eq!(health(&mut bench, &by_instance, &[]), [(id, "unused")]);
    bench.seconds(10);
    assert_eq!(health(&mut bench, &by_instance, &[]), []);
    assert_eq!(health(&mut bench, &by_address, &[]), [(address.clone(), "unhealthy")]);
    deregister(&mut bench, &by_address, &address).expect("deregistered");
    bench.seconds(1);
    assert_eq!(health(&mut bench, &by_address, &[]), []);
}

#[test]
fn a_group_belongs_to_a_load_balancer_through_its_listener() {
    let mut bench = Bench::new();
    let arn = group(&mut bench, "api", "ip");
    let alone = group_alone(&mut bench, "alone", "ip");
    let facts = bench.cloud.load_balancer_facts(bench.now);
    let balancer = facts.load_balancers[0].arn.clone();
    let of_balancer = DescribeTargetGroups {
        load_balancer_arn: Some(balancer.clone()),
        ..DescribeTargetGroups::default()
    };
    let found = elbv2(&mut bench, Elbv2Request::DescribeTargetGroups(of_balancer.clone()));
    let Ok(Elbv2Response::TargetGroups(page)) = found else { panic!("{found:?}") };
    let arns: Vec<&str> = page.items.iter().map(|item| item.group.arn.as_str()).collect();
    assert_eq!(arns, [arn.as_str()]);
    let delete = |arn: &str| {
        Elbv2Request::DeleteTargetGroup(TargetGroupArn { target_group_arn: arn.into() })
    };
    assert_eq!(code(elbv2(&mut bench, delete(&arn))), "ResourceInUse");
    elbv2(&mut bench, delete(&alone)).expect("deleted");
    let gone = Elbv2Request::DeleteLoadBalancer(LoadBalancerArn { load_balancer_arn: balancer });
    elbv2(&mut bench, gone).expect("deleted");
    let missing = elbv2(&mut bench, Elbv2Request::DescribeTargetGroups(of_balancer));
    assert_eq!(code(missing), "LoadBalancerNotFound");
    elbv2(&mut bench, delete(&arn)).expect("deleted");
}

#[test]
fn faults_and_the_ledger_know_load_balancing_by_its_own_names() {
    let mut bench = Bench::new();
    let arn = group(&mut bench, "api", "instance");
    let id = bench.launch_running();
    let faults = r#"{"errors": [{"action": "elbv2:RegisterTargets", "code": "InternalFailure",
        "count": 1, "effect": true}], "latency": "1s"}"#;
    bench.cloud.add_faults(bench.now, serde_json::from_str(faults).expect("faults")).expect("on");
    assert_eq!(code(register(&mut bench, &arn, &id)), "InternalFailure");
    assert_eq!(health(&mut bench, &arn, &[]).len(), 1);
    register(&mut bench, &arn, &id).expect("registered");
    let query = LedgerQuery { action: Some("elbv2:RegisterTargets".into()), after: None };
    let calls = bench.cloud.ledger(&query).calls;
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].instance_ids, vec![id.clone()]);
    let parameters = serde_json::to_value(&calls[1].parameters).expect("json");
    let expected = serde_json::json!({ "TargetGroupArn": arn, "Targets": [{ "Id": id }] });
    assert_eq!(parameters, expected);
}

#[test]
fn each_service_throttles_and_refuses_in_its_own_words() {
    let mut bench = Bench::new();
    let faults = r#"{"throttling": true}"#;
    bench.cloud.add_faults(bench.now, serde_json::from_str(faults).expect("faults")).expect("on");
    let describe = || Elbv2Request::DescribeLoadBalancers(DescribeLoadBalancers::default());
    let admitted = (0..100).take_while(|_| elbv2(&mut bench, describe()).is_ok()).count();
    assert_eq!(admitted, 40);
    assert_eq!(code(elbv2(&mut bench, describe())), "Throttling");
    let classic = ElbRequest::DescribeLoadBalancers(DescribeClassicLoadBalancers::default());
    elb(&mut bench, classic).expect("a bucket of its own");
    bench.cloud.clear_faults();
    let refused = r#"{"refusedAccessKeys": ["AKIAOLD"]}"#;
    bench.cloud.add_faults(bench.now, serde_json::from_str(refused).expect("faults")).expect("on");
    let caller = Caller { access_key_id: Some("AKIAOLD".into()), user_agent: String::new() };
    let result = bench.cloud.call(bench.now, &caller, Request::Elbv2(describe())).result;
    assert_eq!(code(result), "InvalidClientTokenId");
}
