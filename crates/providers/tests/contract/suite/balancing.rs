//! What do attaching and detaching promise?

use aws_sdk_elasticloadbalancingv2::types::TargetTypeEnum;
use machinist_api::RawObject;
use machinist_providers::{ErrorClass, Instance};
use serde_json::{Value, json};

use crate::harness::{Capability, Harness, raw};

fn spec(load_balancers: &Value) -> RawObject {
    raw(&json!({"loadBalancers": load_balancers}))
}

fn first_ipv4(instance: &Instance) -> String {
    let internal = instance.addresses.iter().filter(|address| address.type_ == "InternalIP");
    let mut ipv4 = internal.filter(|address| address.address.contains('.'));
    ipv4.next().unwrap().address.clone()
}

pub async fn classic_load_balancer_gets_the_instance_and_loses_it(harness: &Harness) {
    let name = harness.name("classic");
    harness.console.create_classic(&name).await;
    let instance = harness.running(&harness.request()).await;
    let spec = spec(&json!([{"name": name, "type": "classic"}]));
    let times = if harness.can(Capability::StrictLoadBalancers) { 2 } else { 1 };
    for _ in 0..times {
        harness.provider.attach(&spec, &instance).await.unwrap();
        assert_eq!(
            harness.console.classic_instances(&name).await,
            std::slice::from_ref(&instance.id.0)
        );
    }
    for _ in 0..2 {
        harness.provider.detach(&spec, &instance).await.unwrap();
        assert_eq!(harness.console.classic_instances(&name).await, Vec::<String>::new());
    }
}

pub async fn target_groups_get_the_instance_by_id_or_by_address(harness: &Harness) {
    let name = harness.name("network");
    let console = &harness.console;
    let balancer = console.create_network(&name).await;
    let names = ["ids", "ips", "albs"].map(|prefix| harness.name(prefix));
    let by_id = console.add_group(&balancer, &names[0], TargetTypeEnum::Instance, 443).await;
    let by_ip = console.add_group(&balancer, &names[1], TargetTypeEnum::Ip, 6443).await;
    // No instance can be in a group of load balancers: it is left alone.
    console.add_group(&balancer, &names[2], TargetTypeEnum::Alb, 80).await;
    let instance = harness.running(&harness.request()).await;
    let spec = spec(&json!([{"name": name, "type": "network"}]));
    let calls = |action: &str| harness.calls.count(action);

    let registered = calls("elbv2:RegisterTargets");
    harness.provider.attach(&spec, &instance).await.unwrap();
    assert_eq!(console.targets(&by_id).await, std::slice::from_ref(&instance.id.0));
    assert_eq!(console.targets(&by_ip).await, [first_ipv4(&instance)]);
    assert_eq!(calls("elbv2:RegisterTargets") - registered, 2);

    let looked_up = calls("elbv2:DescribeLoadBalancers") + calls("elbv2:DescribeTargetGroups");
    harness.provider.attach(&spec, &instance).await.unwrap();
    assert_eq!(calls("elbv2:RegisterTargets") - registered, 2, "it is registered already");
    let looked_up_again =
        calls("elbv2:DescribeLoadBalancers") + calls("elbv2:DescribeTargetGroups");
    assert_eq!(looked_up_again, looked_up, "a load balancer's groups are kept for a while");

    harness.provider.detach(&spec, &instance).await.unwrap();
    assert_eq!(console.targets(&by_id).await, Vec::<String>::new());
    assert_eq!(console.targets(&by_ip).await, Vec::<String>::new());
    harness.provider.detach(&spec, &instance).await.unwrap();
    harness.provider.attach(&spec, &instance).await.unwrap();
    assert_eq!(console.targets(&by_id).await, std::slice::from_ref(&instance.id.0));
}

pub async fn missing_load_balancer_is_named_and_needs_no_leaving(harness: &Harness) {
    let instance = harness.running(&harness.request()).await;
    let strict = harness.can(Capability::StrictLoadBalancers);
    let kinds: &[&str] = if strict { &["network", "classic"] } else { &["network"] };
    for kind in kinds {
        let spec = spec(&json!([{"name": "no-such-thing", "type": kind}]));
        let error = harness.provider.attach(&spec, &instance).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::NotFound, "{error}");
        assert!(error.message.starts_with("providerSpec.loadBalancers[0]: failed to "), "{error}");
        assert!(error.message.contains("load balancer no-such-thing"), "{error}");
        harness.provider.detach(&spec, &instance).await.unwrap();
    }
    harness.provider.attach(&spec(&json!([])), &instance).await.unwrap();
    if !strict {
        return;
    }
    let name = harness.name("classic");
    harness.console.create_classic(&name).await;
    let spec = spec(&json!([{"name": name, "type": "classic"}]));
    let stranger = Instance {
        id: machinist_providers::InstanceId("i-0123456789abcdef0".to_owned()),
        ..instance.clone()
    };
    let error = harness.provider.attach(&spec, &stranger).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unknown, "nothing about a load balancer is terminal");
    harness.provider.detach(&spec, &stranger).await.unwrap();
}

pub async fn one_load_balancer_does_not_keep_from_another(harness: &Harness) {
    let name = harness.name("classic");
    harness.console.create_classic(&name).await;
    let instance = harness.running(&harness.request()).await;
    let spec = spec(&json!([
        {"name": "no-such-thing", "type": "network"}, {"name": name, "type": "classic"},
    ]));
    let error = harness.provider.attach(&spec, &instance).await.unwrap_err();
    assert!(error.message.starts_with("providerSpec.loadBalancers[0]: "), "{error}");
    assert_eq!(
        harness.console.classic_instances(&name).await,
        std::slice::from_ref(&instance.id.0)
    );
    harness.provider.detach(&spec, &instance).await.unwrap();
    assert_eq!(harness.console.classic_instances(&name).await, Vec::<String>::new());
}
