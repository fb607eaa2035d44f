//! Are machines marked once, and the check's own numbers written with them?

use serde_json::{Value, json};

use super::*;
use crate::{
    cluster_api::testing::{CHECKS, Fleet, MACHINES, machine},
    testing::read,
};

fn put_check(fleet: &Fleet, remediation: Value) {
    let check = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck",
        "metadata": {
            "name": "mhc", "namespace": "ns", "uid": "uid-mhc", "resourceVersion": "3", "generation": 1,
        },
        "spec": {
            "clusterName": "c1", "selector": { "matchLabels": { "pool": "a" } },
            "remediation": remediation,
        },
    });
    fleet.server.put(CHECKS, check.clone());
    fleet.context.stores.health_checks.apply_written(read(check));
}

fn put_machine(fleet: &Fleet, name: &str, node: &str) {
    let mut machine = machine(name);
    machine["status"] = json!({ "nodeRef": { "name": node } });
    fleet.server.put(MACHINES, machine.clone());
    fleet.context.stores.machines.apply_written(read(machine));
}

/// Whoever remediates is no provider of Cluster API, and its definition has no label of a contract.
#[tokio::test(start_paused = true)]
async fn a_request_is_made_in_the_version_that_the_check_names() {
    let fleet = Fleet::new();
    let of = "/apis/fix.example.com/v3/namespaces/ns";
    let template = json!({
        "apiVersion": "fix.example.com/v3", "kind": "RepairTemplate",
        "metadata": { "name": "t", "namespace": "ns" },
        "spec": { "template": { "spec": { "how": "reboot" } } },
    });
    fleet.server.put(&format!("{of}/repairtemplates"), template);
    put_check(
        &fleet,
        json!({ "templateRef": {
            "apiVersion": "fix.example.com/v3", "kind": "RepairTemplate", "name": "t",
        } }),
    );
    put_machine(&fleet, "a", "gone-a");
    reconcile(&fleet.context, &Memory::default(), ObjectKey::new("ns", "mhc")).await;
    assert_eq!(fleet.requests("POST"), [format!("{of}/repairs")]);
    assert_eq!(fleet.names(&format!("{of}/repairs")), ["a"]);
    let asked = fleet.requests("GET");
    assert!(!asked.iter().any(|path| path.contains("customresourcedefinitions")), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_node_is_gone_is_marked_for_its_owner_once() {
    let fleet = Fleet::new();
    put_check(&fleet, json!({}));
    for (name, node) in [("a", "gone-a"), ("b", "node-b")] {
        put_machine(&fleet, name, node);
    }
    let memory = Memory::default();
    let key = ObjectKey::new("ns", "mhc");
    for _ in 0..4 {
        reconcile(&fleet.context, &memory, key.clone()).await;
    }
    let patches = fleet.requests("PATCH");
    let of = |path: String| patches.iter().filter(|known| **known == path).count();
    assert_eq!(of(format!("{MACHINES}/a/status")), 1);
    assert_eq!(of(format!("{MACHINES}/b/status")), 1);
    assert_eq!(of(format!("{CHECKS}/mhc")), 1, "its owner and its label");
    assert_eq!(of(format!("{CHECKS}/mhc/status")), 1);
    let stored = fleet.server.lock().objects[&(MACHINES.to_owned(), "a".to_owned())].clone();
    let conditions = stored["status"]["conditions"].as_array().unwrap().clone();
    let types: Vec<_> = conditions.iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["HealthCheckSucceeded", "OwnerRemediated"]);
}
