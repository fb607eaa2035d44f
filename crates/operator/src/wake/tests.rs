//! Is everyone found, and woken, whom a change of a Machine concerns?

use serde_json::{Value, json};

use crate::{
    engine::store::ObjectKey,
    testing::{connected, machine, pool, read, stores},
};

#[tokio::test(start_paused = true)]
async fn a_pool_is_woken_by_what_happens_to_its_unreadable_machines() {
    let stores = stores();
    let metadata = |version: &str| {
        let metadata = machine("broken", json!({ "resourceVersion": version }))["metadata"].take();
        read(metadata)
    };
    stores.machines.apply_invalid(metadata("10"), "bad".to_owned());
    let changes = connected(&stores);
    stores.machines.apply_invalid(metadata("11"), "bad".to_owned());
    assert_eq!(changes.machine_sets.depth(), 1);
    let goes = connected(&stores);
    stores.machines.forget_written(&ObjectKey::new("ns", "broken"), "uid-broken");
    assert_eq!(goes.machine_sets.depth(), 1);
}

fn claiming(name: &str, version: &str, provider_id: &str) -> Value {
    let mut claiming = machine(name, json!({ "resourceVersion": version }));
    claiming["spec"]["providerID"] = json!(provider_id);
    claiming
}

#[tokio::test(start_paused = true)]
async fn a_node_is_woken_when_one_of_two_machines_lets_go_of_it() {
    let stores = stores();
    stores.nodes.apply_written(read(json!({
        "metadata": { "name": "n", "uid": "uid-n", "resourceVersion": "10" },
        "spec": { "providerID": "aws:///a/i-1" },
    })));
    for name in ["one", "two"] {
        stores.machines.apply_written(read(claiming(name, "10", "aws:///a/i-1")));
    }
    let unrelated = connected(&stores);
    stores.machines.apply_written(read(claiming("one", "11", "aws:///a/i-1")));
    assert_eq!(unrelated.nodes.depth(), 0, "nothing changed that a link depends on");
    let changed = connected(&stores);
    stores.machines.apply_written(read(claiming("one", "12", "aws:///a/i-2")));
    assert_eq!(changed.nodes.depth(), 1);
    let deleted = connected(&stores);
    stores.machines.forget_written(&ObjectKey::new("ns", "two"), "uid-two");
    assert_eq!(deleted.nodes.depth(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_pool_says_of_its_capacity_depends_on_the_pool_and_the_clusters_region() {
    let stores = stores();
    let made = connected(&stores);
    stores.machine_sets.apply_written(read(pool(3)));
    assert_eq!(made.capacities.depth(), 1);
    let scaled = connected(&stores);
    stores.machines.apply_written(read(machine("one", json!({}))));
    assert_eq!((scaled.machine_sets.depth(), scaled.capacities.depth()), (1, 0));
    let moved = connected(&stores);
    stores.infrastructures.apply_written(read(json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
        "metadata": { "name": "cluster", "uid": "uid-cluster", "resourceVersion": "10" },
        "spec": {},
    })));
    assert_eq!(moved.capacities.depth(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pools_policy_concerns_those_to_whom_something_happened() {
    let stores = stores();
    let with = |version: &str, annotations: Value| {
        let mut pool = pool(3);
        pool["metadata"]["resourceVersion"] = json!(version);
        pool["metadata"]["annotations"] = annotations;
        read(pool)
    };
    stores.machine_sets.apply_written(with("10", json!({})));
    stores.machines.apply_written(read(machine("well", json!({}))));
    let mut stopped = machine("stopped", json!({}));
    stopped["status"] = json!({ "providerStatus": { "drift": {
        "class": "StoppedByUser", "since": "2026-01-01T00:00:00Z", "response": "Report",
    } } });
    stores.machines.apply_written(read(stopped));
    let unchanged = connected(&stores);
    stores.machine_sets.apply_written(with("11", json!({})));
    assert_eq!(unchanged.machines.depth(), 0);
    let changed = connected(&stores);
    stores.machine_sets.apply_written(with("12", json!({ "machinist.dev/on-stopped": "Start" })));
    assert_eq!(changed.machines.depth(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_check_is_woken_by_its_machines_their_nodes_and_pools() {
    let stores = stores();
    let check = |version: &str, status: Value| {
        read(json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineHealthCheck",
            "metadata": {
                "name": "check", "namespace": "ns", "uid": "uid-check", "resourceVersion": version,
            },
            "spec": {
                "selector": { "matchLabels": { "pool": "a" } },
                "unhealthyConditions": [{ "type": "Ready", "status": "False", "timeout": "300s" }],
            },
            "status": status,
        }))
    };
    let made = connected(&stores);
    stores.health_checks.apply_written(check("10", json!({})));
    assert_eq!(made.health_checks.depth(), 1);
    let counted = connected(&stores);
    stores.health_checks.apply_written(check("11", json!({ "expectedMachines": 1 })));
    assert_eq!(counted.health_checks.depth(), 0, "its own status is no news");

    let other = connected(&stores);
    let mut stray = machine("stray", json!({ "labels": { "pool": "b" } }));
    stray["status"] = json!({ "nodeRef": { "kind": "Node", "name": "stray" } });
    stores.machines.apply_written(read(stray));
    assert_eq!(other.health_checks.depth(), 0);
    let selected = connected(&stores);
    let mut linked = machine("one", json!({}));
    linked["status"] = json!({ "nodeRef": { "kind": "Node", "name": "one" } });
    stores.machines.apply_written(read(linked));
    assert_eq!(selected.health_checks.depth(), 1);

    let node = |name: &str| read(json!({ "metadata": { "name": name, "resourceVersion": "10" } }));
    let foreign = connected(&stores);
    stores.nodes.apply_written(node("stray"));
    assert_eq!(foreign.health_checks.depth(), 0);
    let own = connected(&stores);
    stores.nodes.apply_written(node("one"));
    assert_eq!(own.health_checks.depth(), 1);
    let pools = connected(&stores);
    stores.machine_sets.apply_written(read(pool(3)));
    assert_eq!(pools.health_checks.depth(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pending_request_is_woken_by_who_may_speak_for_it() {
    let stores = stores();
    stores.requests.apply_written(crate::approval::tests::client("csr"));
    let addressed = |name: &str, version: &str, address: &str| {
        let mut addressed = machine(name, json!({ "resourceVersion": version }));
        addressed["status"] =
            json!({ "addresses": [{ "type": "InternalDNS", "address": address }] });
        read(addressed)
    };
    let others = connected(&stores);
    stores.machines.apply_written(addressed("one", "10", "other.ec2.internal"));
    assert_eq!(others.requests.depth(), 0);
    let own = connected(&stores);
    stores.machines.apply_written(addressed("one", "11", "IP-10-0-1-7.ec2.internal"));
    assert_eq!(own.requests.depth(), 1);
    let unchanged = connected(&stores);
    stores.machines.apply_written(addressed("one", "12", "IP-10-0-1-7.ec2.internal"));
    assert_eq!(unchanged.requests.depth(), 0);
    let node = connected(&stores);
    stores.nodes.apply_written(read(json!({
        "metadata": { "name": "ip-10-0-1-7.ec2.internal", "resourceVersion": "10" },
    })));
    assert_eq!(node.requests.depth(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pending_request_is_woken_when_the_one_before_it_comes_to_nothing() {
    let stores = stores();
    let (first, second) =
        (crate::approval::tests::client("first"), crate::approval::tests::client("second"));
    stores.requests.apply_written(first.clone());
    stores.requests.apply_written(second);
    let mut bound = machine(
        "one",
        json!({ "annotations": {
        "machinist.dev/client-certificate-request": "uid-one/uid-first/key",
    } }),
    );
    bound["status"] = json!({ "addresses": [
        { "type": "InternalDNS", "address": "ip-10-0-1-7.ec2.internal" },
    ] });
    stores.machines.apply_written(read(bound));
    let ended = |type_: &str, version: &str| {
        let mut first = first.clone();
        first.metadata.resource_version = Some(version.to_owned());
        first.status = Some(read(json!({ "conditions": [{ "type": type_, "status": "True" }] })));
        first
    };
    let approved = connected(&stores);
    stores.requests.apply_written(ended("Approved", "11"));
    assert_eq!(approved.requests.depth(), 1, "itself alone");
    let denied = connected(&stores);
    stores.requests.apply_written(ended("Denied", "12"));
    assert_eq!(denied.requests.depth(), 2);
}

#[tokio::test(start_paused = true)]
async fn requests_are_woken_when_it_changes_who_approves_them() {
    let stores = stores();
    stores.requests.apply_written(crate::approval::tests::client("csr"));
    stores.openshift.approvers.mark_synced();
    stores.infrastructures.apply_written(read(json!({
        "metadata": { "name": "cluster", "uid": "i", "resourceVersion": "1" }, "spec": {},
    })));
    let scale = |version: u32, replicas: i32| {
        stores.openshift.approvers.apply_written(read(json!({
            "metadata": {
                "name": "machine-approver", "namespace": "openshift-cluster-machine-approver",
                "uid": "a", "resourceVersion": version.to_string(),
            },
            "spec": {
                "replicas": replicas, "selector": {},
                "template": { "metadata": {}, "spec": { "containers": [] } },
            },
        })));
    };
    let begins = connected(&stores);
    scale(2, 1);
    assert_eq!(begins.requests.depth(), 1, "it stands by from now on");
    let ends = connected(&stores);
    scale(3, 1);
    scale(4, 0);
    assert_eq!(ends.requests.depth(), 1, "they are ours again");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_features_wakes_machines_pools_and_checks() {
    let stores = stores();
    stores.machines.apply_written(read(machine("one", json!({}))));
    stores.machine_sets.apply_written(read(pool(1)));
    let queues = connected(&stores);
    stores.openshift.feature_gates.apply_written(read(json!({
        "metadata": { "name": "cluster", "uid": "g", "resourceVersion": "1" }, "spec": {},
    })));
    assert_eq!((queues.machines.depth(), queues.machine_sets.depth()), (1, 1));
    assert_eq!(queues.capacities.depth(), 1);
}
