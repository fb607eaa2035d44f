//! What does a launch on a dedicated host promise, and what is left of it?

use machinist_providers::{ErrorClass, InstanceState, LaunchRequest};
use serde_json::{Value, json};

use crate::{
    console::tag_of,
    harness::{Capability, Harness, token},
};

const UID: &str = "machinist.dev/machine-uid";

fn on_host(harness: &Harness, dedicated_host: &Value) -> LaunchRequest {
    let mut placement = harness.provider_spec["placement"].clone();
    placement["tenancy"] = json!("host");
    placement["host"] = json!({"affinity": "DedicatedHost", "dedicatedHost": dedicated_host});
    harness.request_with(&json!({"placement": placement}))
}

fn on_own_host(harness: &Harness) -> LaunchRequest {
    let tags = json!([{"name": "team", "value": "blue"}, {"name": "Name", "value": "evil"}]);
    on_host(
        harness,
        &json!({"allocationStrategy": "Dynamic", "dynamicHostAllocation": {"tags": tags}}),
    )
}

async fn hosts_of(harness: &Harness, request: &LaunchRequest) -> Vec<aws_sdk_ec2::types::Host> {
    let hosts = harness.console.hosts().await.into_iter();
    hosts.filter(|host| tag_of(host, UID) == Some(request.machine_uid.as_str())).collect()
}

pub async fn own_host_is_allocated_tagged_and_given_back(harness: &Harness) {
    let request = on_own_host(harness);
    harness.provider.prepare(&request).await.unwrap();
    assert!(hosts_of(harness, &request).await.is_empty(), "preparing has no effect");
    let instance = harness.launch(&request).await;
    let hosts = hosts_of(harness, &request).await;
    let [host] = hosts.as_slice() else { panic!("one host, not {hosts:?}") };
    assert_eq!(host.availability_zone(), Some(harness.console.zone.as_str()));
    assert_eq!(tag_of(host, "team"), Some("blue"));
    assert_eq!(tag_of(host, "Name"), Some(request.machine_name.as_str()));
    let cluster_tag = format!("kubernetes.io/cluster/{}", request.cluster_id);
    assert_eq!(tag_of(host, &cluster_tag), Some("owned"));
    assert_eq!(instance.host_id.as_deref(), host.host_id());

    harness.provider.release_hosts("no-such-uid").await.unwrap();
    if !harness.can(Capability::HostsAreHeld) {
        return;
    }
    let error = harness.provider.release_hosts(&request.machine_uid).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient, "{error}");
    assert!(error.message.contains("is still occupied"), "{error}");
    harness.provider.terminate(&instance.id).await.unwrap();
    harness.wait_for(&instance.id, InstanceState::Terminated).await;
    for _ in 0..2 {
        harness.provider.release_hosts(&request.machine_uid).await.unwrap();
        assert!(hosts_of(harness, &request).await.is_empty());
    }
}

pub async fn same_token_gives_the_same_host(harness: &Harness) {
    if !harness.can(Capability::ClientTokens) {
        return;
    }
    let request = on_own_host(harness);
    let prepared = harness.provider.prepare(&request).await.unwrap();
    harness.levers().lose_answer("RunInstances");
    let error = harness.provider.launch(&prepared, &token(&request)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient, "{error}");
    assert_eq!(hosts_of(harness, &request).await.len(), 1, "the launch may have had an effect");
    let instance = harness.provider.launch(&prepared, &token(&request)).await.unwrap();
    let hosts = hosts_of(harness, &request).await;
    assert_eq!(hosts.len(), 1);
    assert_eq!(instance.host_id.as_deref(), hosts[0].host_id());
}

pub async fn refused_launch_gives_its_host_back(harness: &Harness) {
    if !harness.can(Capability::Faults) {
        return;
    }
    let request = on_own_host(harness);
    let prepared = harness.provider.prepare(&request).await.unwrap();
    harness.levers().refuse("RunInstances", "InsufficientCapacityOnHost");
    let error = harness.provider.launch(&prepared, &token(&request)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::InsufficientCapacity, "{error}");
    assert!(hosts_of(harness, &request).await.is_empty());
    harness.levers().clear();
    // The token stands for a host that is gone.
    let error = harness.provider.launch(&prepared, &token(&request)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::TokenMismatch, "{error}");
    let second_token = format!("{}-g2", request.machine_uid);
    let instance = harness.provider.launch(&prepared, &second_token).await.unwrap();
    assert_eq!(hosts_of(harness, &request).await.len(), 1);
    assert!(instance.host_id.is_some());
}

pub async fn host_of_the_user_is_marked_as_shared_and_never_released(harness: &Harness) {
    let instance_type = harness.provider_spec["instanceType"].as_str().unwrap();
    let host_id = harness.console.allocate_host(instance_type).await;
    let request = on_host(harness, &json!({"id": host_id}));
    let instance = harness.launch(&request).await;
    assert_eq!(instance.host_id.as_deref(), Some(host_id.as_str()));
    harness.provider.terminate(&instance.id).await.unwrap();
    harness.wait_for(&instance.id, InstanceState::Terminated).await;
    harness.provider.release_hosts(&request.machine_uid).await.unwrap();
    let hosts = harness.console.hosts().await;
    let host = hosts.iter().find(|host| host.host_id() == Some(host_id.as_str())).unwrap();
    let cluster_tag = format!("kubernetes.io/cluster/{}", request.cluster_id);
    assert_eq!(tag_of(host, &cluster_tag), Some("shared"));
    assert_eq!(tag_of(host, UID), None);
}
