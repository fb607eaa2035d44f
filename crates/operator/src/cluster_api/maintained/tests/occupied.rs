//! Are the pods and the budgets of a workload cluster looked at before, while and after a machine of it is replaced, and not
//! otherwise?

use machinist_api::MaintenancePhase::{Pending, Succeeded, Surging, Verifying};
use serde_json::{Value, json};

use super::bench::Bench;

const PODS: &str = "/api/v1/namespaces/app/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/app/poddisruptionbudgets";
const DAEMONS: &str = "/apis/apps/v1/namespaces/app/daemonsets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/app/deployments";
const REPLICAS: &str = "/apis/apps/v1/namespaces/app/replicasets";

fn pod(name: &str, node: &str, owner: (&str, &str)) -> Value {
    let (kind, owner) = owner;
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "app", "labels": { "app": owner },
            "creationTimestamp": "2026-01-01T10:00:00Z",
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": format!("uid-{owner}"),
                "controller": true,
            }],
        },
        "spec": { "nodeName": node, "containers": [] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

fn deployment(ready: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "app", "uid": "uid-web-all" },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": {}, "spec": { "containers": [] } },
        },
        "status": { "readyReplicas": ready },
    })
}

fn waits(bench: &Bench) -> Vec<(String, String)> {
    let waits = bench.status().plan.unwrap_or_default().waits_on;
    waits.into_iter().map(|wait| (wait.reason, wait.message)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_never_met_is_found_before_the_start() {
    let mut bench = Bench::new(json!({})).await;
    let (target, _) = bench.target();
    bench.put_there(PODS, pod("web-1", &target, ("ReplicaSet", "web")));
    bench.put_there(
        BUDGETS,
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": "all", "namespace": "app" },
            "spec": { "selector": { "matchLabels": { "app": "web" } }, "minAvailable": 1 },
            "status": {
                "currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1,
            },
        }),
    );
    bench.request(&target, "Replace");
    bench.rounds(10).await;
    assert_eq!(bench.status().phase, Some(Pending));
    let (reason, message) = waits(&bench).remove(0);
    assert_eq!(reason, "DrainImpossible");
    assert!(message.contains("disruption budget app/all never lets pod web-1 go"), "{message}");
    bench.remove_there(BUDGETS, "all");
    bench.until_phase(Succeeded).await;
    assert!(!bench.machines().contains(&target));
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_not_to_be_disrupted_are_waited_for() {
    let mut bench = Bench::new(json!({})).await;
    let (target, _) = bench.target();
    let mut busy = pod("job-1", &target, ("Job", "job"));
    busy["metadata"]["annotations"] = json!({ "machinist.dev/do-not-disrupt": "true" });
    bench.put_there(PODS, busy);
    bench.request(&target, "Replace");
    bench.rounds(10).await;
    assert_eq!(bench.status().phase, Some(Pending));
    let (reason, message) = waits(&bench).remove(0);
    assert_eq!(reason, "DoNotDisrupt");
    assert!(message.contains("app/job-1"), "{message}");
    bench.remove_there(PODS, "job-1");
    bench.until_phase(Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_node_takes_over_only_when_its_daemons_run() {
    let mut bench = Bench::new(json!({})).await;
    let (target, others) = bench.target();
    bench.put_there(
        DAEMONS,
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": { "name": "net", "namespace": "app", "uid": "uid-net" },
            "spec": {
                "selector": { "matchLabels": { "app": "net" } },
                "template": { "metadata": {}, "spec": { "containers": [] } },
            },
        }),
    );
    bench.request(&target, "Replace");
    bench.until_phase(Surging).await;
    bench.rounds(20).await;
    assert_eq!(bench.status().phase, Some(Surging));
    let told = waits(&bench);
    assert!(told.iter().any(|(_, message)| message.contains("not all DaemonSets run")), "{told:?}");
    let is_new = |name: &String| *name != target && !others.contains(name);
    let new = bench.machines().into_iter().find(is_new).unwrap();
    bench.put_there(PODS, pod("net-1", &new, ("DaemonSet", "net")));
    bench.until_phase(Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn what_had_pods_on_it_must_be_back_afterwards() {
    let mut bench = Bench::new(json!({})).await;
    let (target, _) = bench.target();
    bench.put_there(DEPLOYMENTS, deployment(0));
    let replicas = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": "web", "namespace": "app", "uid": "uid-web", "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-web-all",
            "controller": true,
        }] },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "web" } } },
    });
    bench.put_there(REPLICAS, replicas);
    bench.put_there(PODS, pod("web-1", &target, ("ReplicaSet", "web")));
    bench.request(&target, "Replace");
    bench.until_phase(Verifying).await;
    assert_eq!(bench.status().work.unwrap().workloads, ["app/ReplicaSet/web"]);
    bench.rounds(3).await;
    assert_eq!(bench.status().phase, Some(Verifying));
    let told = waits(&bench);
    assert!(told.iter().any(|(_, message)| message.contains("not all pods are back")), "{told:?}");
    bench.put_there(DEPLOYMENTS, deployment(1));
    bench.until_phase(Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn a_workload_cluster_is_asked_for_nothing_while_nothing_is_planned() {
    let mut bench = Bench::new(json!({})).await;
    bench.rounds(20).await;
    let asked = bench.asked_there();
    assert!(!asked.iter().any(|line| line.starts_with("GET")), "{asked:?}");
}
