//! What does the Node of a guest look like?

use jiff::Timestamp;
use machinist_testbed::cloud::model::InstanceFacts;
use serde_json::{Value, json};

use super::super::{Scene, text, time};
use crate::{api_server::ObjectRef, chance::fingerprint, invariants::condition_of};

pub(super) fn provider_id(facts: &InstanceFacts) -> String {
    format!("aws:///{}/{}", facts.zone, facts.id)
}

pub(in crate::actors) fn find_node(scene: &Scene, name: &str) -> Option<ObjectRef> {
    scene.server.get_object(crate::api_server::KindRef::find("", "nodes")?, "", name)
}

/// What the Ready condition says.
pub(in crate::actors) fn ready(node: &ObjectRef) -> &str {
    condition_of(node.value(), "Ready").map_or("", |ready| text(ready, "/status"))
}

pub(super) fn ready_since(node: &ObjectRef) -> Option<Timestamp> {
    condition_of(node.value(), "Ready").and_then(|ready| time(ready, "/lastTransitionTime"))
}

pub(super) fn node_object(facts: &InstanceFacts, name: &str, now: Timestamp) -> Value {
    let mut object = node_status(facts, "False", now);
    object["metadata"] = json!({
        "name": name,
        "labels": {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "node-role.kubernetes.io/worker": "",
        },
    });
    object["spec"] = json!({ "providerID": provider_id(facts) });
    object
}

pub(super) fn node_status(facts: &InstanceFacts, is_ready: &str, now: Timestamp) -> Value {
    let address = facts.private_ip.map(|address| address.to_string()).unwrap_or_default();
    let boot = fingerprint(format!("{} boot {}", facts.id, facts.boot_generation).as_bytes());
    json!({ "status": {
        "addresses": [
            { "type": "InternalIP", "address": address },
            { "type": "Hostname", "address": facts.private_dns_name },
        ],
        "conditions": [condition(is_ready, now)],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": format!("{boot:016x}"),
            "containerRuntimeVersion": "cri-o://1.36.0",
            "kernelVersion": "5.14.0",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.0",
            "machineID": facts.id,
            "operatingSystem": "linux",
            "osImage": "simulation",
            "systemUUID": facts.id,
        },
    } })
}

fn condition(is_ready: &str, now: Timestamp) -> Value {
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({
        "type": "Ready",
        "status": is_ready,
        "reason": "Simulated",
        "message": "",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    })
}

/// Nothing but the condition changes: the last word of the kubelet stays.
pub(super) fn unknown_status(now: Timestamp) -> Value {
    json!({ "status": { "conditions": [condition("Unknown", now)] } })
}
