//! Instances are registered with their load balancers when they run, and leave them before they go.

use machinist_testbed::cloud::model::{
    Caller, ClassicListener, CreateClassicLoadBalancer, CreateListener, CreateLoadBalancer,
    CreateTargetGroup, ElbRequest, Elbv2Request, Elbv2Response, Request, Response,
};
use serde_json::json;

use crate::{
    arena::{Arena, run},
    seen::Subject,
};

const NETWORK: &str = "e2e-network";
const CLASSIC: &str = "e2e-classic";
const BY_INSTANCE: &str = "e2e-by-instance";
const BY_ADDRESS: &str = "e2e-by-address";

/// Who made the load balancers: not the operator.
fn installer() -> Caller {
    Caller { access_key_id: Some("INSTALLER".to_owned()), user_agent: "installer".to_owned() }
}

fn elbv2(arena: &Arena, request: Elbv2Request) -> Elbv2Response {
    let outcome = arena.cluster.cloud().call(&installer(), Request::Elbv2(request));
    match outcome.result.unwrap() {
        Response::Elbv2(answer) => answer,
        other => panic!("{other:?}"),
    }
}

/// A network load balancer with a group by instance and one by address, and a classic one.
fn make_load_balancers(arena: &Arena) {
    let world = arena.cluster.cloud().world();
    let subnet = world.private_subnets[&world.availability_zones[0]].clone();
    let request = CreateLoadBalancer {
        name: NETWORK.to_owned(),
        r#type: Some("network".to_owned()),
        subnets: vec![subnet.clone()],
        ..CreateLoadBalancer::default()
    };
    let answer = elbv2(arena, Elbv2Request::CreateLoadBalancer(request));
    let Elbv2Response::LoadBalancers(made) = answer else { panic!("{answer:?}") };
    for (name, target_type, port) in [(BY_INSTANCE, "instance", 6443), (BY_ADDRESS, "ip", 22623)] {
        let request = CreateTargetGroup {
            name: name.to_owned(),
            protocol: Some("TCP".to_owned()),
            port: Some(port),
            vpc_id: Some(world.vpc_id.clone()),
            target_type: Some(target_type.to_owned()),
            ..CreateTargetGroup::default()
        };
        let answer = elbv2(arena, Elbv2Request::CreateTargetGroup(request));
        let Elbv2Response::TargetGroups(group) = answer else { panic!("{answer:?}") };
        let request = CreateListener {
            load_balancer_arn: made.items[0].arn.clone(),
            protocol: Some("TCP".to_owned()),
            port: Some(port),
            target_group_arns: vec![group.items[0].group.arn.clone()],
        };
        elbv2(arena, Elbv2Request::CreateListener(request));
    }
    let request = CreateClassicLoadBalancer {
        load_balancer_name: CLASSIC.to_owned(),
        listeners: vec![ClassicListener {
            protocol: "TCP".to_owned(),
            load_balancer_port: 80,
            instance_protocol: None,
            instance_port: 80,
        }],
        subnets: vec![subnet],
        ..CreateClassicLoadBalancer::default()
    };
    let request = Request::Elb(ElbRequest::CreateLoadBalancer(request));
    arena.cluster.cloud().call(&installer(), request).result.unwrap();
}

/// What the load balancers hold: by instance, by address, and the classic one.
fn targets(arena: &Arena) -> [Vec<String>; 3] {
    let facts = arena.cluster.cloud().load_balancers();
    let of_group = |name: &str| {
        let group = facts.target_groups.iter().find(|group| group.name == name).unwrap();
        let staying = group.targets.iter().filter(|target| target.state != "draining");
        let mut ids: Vec<_> = staying.map(|target| target.id.clone()).collect();
        ids.sort();
        ids
    };
    let classic = facts.classic.iter().find(|balancer| balancer.name == CLASSIC).unwrap();
    let mut in_classic: Vec<_> = classic.instances.iter().map(|one| one.id.clone()).collect();
    in_classic.sort();
    [of_group(BY_INSTANCE), of_group(BY_ADDRESS), in_classic]
}

#[test]
fn machines_join_their_load_balancers_and_leave_them_before_they_go() {
    run(async {
        let (arena, _operator) = Arena::with_operator("balancers").await;
        make_load_balancers(&arena);
        let value = arena.provider_spec(json!({"loadBalancers": [
            {"name": NETWORK, "type": "network"},
            {"name": CLASSIC, "type": "classic"},
        ]}));
        let overrides = json!({"spec": {"template": {"spec": {"providerSpec": {"value": value}}}}});
        arena.create_set("pool", 2, overrides).await;
        let machines = arena.wait_running(2).await;
        let mut addresses = Vec::new();
        let mut instances = Vec::new();
        for machine in &machines {
            let subject = Subject::of(machine);
            arena.wait_true(&subject.machine, "LoadBalancersAttached").await;
            let addresses_of = &machine.status.as_ref().unwrap().addresses;
            let internal = addresses_of.iter().find(|one| one.type_ == "InternalIP").unwrap();
            addresses.push(internal.address.clone());
            instances.push(subject.instance);
        }
        addresses.sort();
        instances.sort();
        assert_eq!(targets(&arena), [instances.clone(), addresses, instances.clone()]);

        let page = arena.page_of_the_books();
        let subject = Subject::of(&machines[0]);
        arena.delete_machine(&subject.machine).await;
        arena.wait_gone(&subject.machine).await;
        let calls = arena.calls_since(page, "*");
        let position = |action: &str| {
            let found = calls.iter().position(|call| call.action == action && call.result == "ok");
            found.unwrap_or_else(|| panic!("there is no {action}"))
        };
        let terminated = position("TerminateInstances");
        assert!(position("elbv2:DeregisterTargets") < terminated, "traffic leaves first");
        let classic = position("elb:DeregisterInstancesFromLoadBalancer");
        assert!(classic < terminated, "traffic leaves first");
        let left = calls.iter().filter(|call| call.action == "elbv2:DeregisterTargets").count();
        assert_eq!(left, 2, "of both groups");

        // Its successor is registered in its place.
        let machines = arena.wait_running(2).await;
        for machine in &machines {
            arena
                .wait_true(machine.metadata.name.as_deref().unwrap(), "LoadBalancersAttached")
                .await;
        }
        let [by_instance, by_address, classic] = targets(&arena);
        assert!(!by_instance.contains(&subject.instance));
        assert_eq!((by_instance.len(), by_address.len(), classic.len()), (2, 2, 2));
        arena.check_ledger().await;
    });
}
