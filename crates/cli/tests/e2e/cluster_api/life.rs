//! Do machines come, change, recover and go, with the real in-memory provider?

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use machinist_testbed::cluster_api::objects::{self, GROUP, VERSION, WORKERS};
use serde_json::{Value, json};

use super::{
    compare::Outcome,
    on_both_sides,
    stage::{Stage, condition, text},
};
use crate::arena::run;

#[test]
fn a_deployment_scales_from_0_to_50_and_back() {
    run(on_both_sides("scale", async |stage| {
        let mut outcome = Outcome::default();
        stage.with_workers().await;

        stage.scale(50).await;
        stage.wait_running(50).await;
        one_of_each(stage, 50).await;
        outcome.note("up", stage).await;

        stage.scale(0).await;
        stage.wait_running(0).await;
        one_of_each(stage, 0).await;
        outcome.note("down", stage).await;
        outcome
    }));
}

#[test]
fn a_new_template_rolls_with_a_surge_of_one() {
    run(on_both_sides("roll", async |stage| {
        const REPLICAS: usize = 4;
        let mut outcome = Outcome::default();
        stage.with_workers().await;
        stage.scale(REPLICAS).await;
        let old = stage.wait_running(REPLICAS).await;
        let old = names(&old);

        stage.create(objects::template(&stage.name, &stage.name, "large")).await;
        let reference = objects::reference("DevMachineTemplate", "large");
        let template = json!({ "template": { "spec": { "infrastructureRef": reference } } });
        stage.patch("MachineDeployment", WORKERS, json!({ "spec": template })).await;
        stage
            .eventually("every machine is of the new template", async || {
                let machines = stage.workers().await;
                assert!(machines.len() <= REPLICAS + 1, "a surge of one: {:?}", names(&machines));
                let is_old = names(&machines).iter().any(|name| old.contains(name));
                (!is_old && machines.len() == REPLICAS).then_some(())
            })
            .await;
        stage.wait_running(REPLICAS).await;
        stage
            .eventually("the old set is gone", async || {
                (stage.list("MachineSet").await.len() == 1).then_some(())
            })
            .await;
        for machine in stage.list("DevMachine").await {
            let from = &machine["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"];
            let is_worker = text(&machine["metadata"]["name"]) != objects::CONTROL_PLANE;
            assert!(!is_worker || from == "large", "{machine}");
        }
        one_of_each(stage, REPLICAS).await;
        outcome.note("rolled", stage).await;
        outcome
    }));
}

#[test]
fn restarts_of_provider_and_controller_lose_and_double_nothing() {
    run(on_both_sides("restarts", async |stage| {
        let mut outcome = Outcome::default();
        stage.with_workers().await;

        stage.scale(20).await;
        some_machines_run(stage, 3).await;
        stage.kill_controller().await;
        stage.kill_provider().await;
        stage.restart_controller().await;
        stage.restart_provider().await;
        stage.wait_running(20).await;
        one_of_each(stage, 20).await;
        outcome.note("up", stage).await;

        stage.scale(5).await;
        stage
            .eventually("the first are gone", async || {
                (stage.workers().await.len() < 20).then_some(())
            })
            .await;
        stage.kill_provider().await;
        stage.kill_controller().await;
        stage.restart_provider().await;
        stage.restart_controller().await;
        stage.wait_running(5).await;
        one_of_each(stage, 5).await;
        outcome.note("down", stage).await;
        outcome
    }));
}

#[test]
fn a_health_check_has_a_sick_machine_replaced() {
    run(on_both_sides("remediation", async |stage| {
        let mut outcome = Outcome::default();
        stage.with_workers().await;
        stage.scale(3).await;
        let machines = stage.wait_running(3).await;
        stage
            .create(json!({
                "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": "MachineHealthCheck",
                "metadata": {
                    "name": "workers",
                    "namespace": stage.name,
                    "labels": objects::labels(&stage.name),
                },
                "spec": {
                    "clusterName": stage.name,
                    "selector": { "matchLabels": { "cluster.x-k8s.io/deployment-name": WORKERS } },
                    "checks": {
                        "nodeStartupTimeoutSeconds": 600,
                        "unhealthyNodeConditions": [
                            { "type": "Ready", "status": "False", "timeoutSeconds": 1 },
                        ],
                    },
                    "remediation": { "triggerIf": { "unhealthyLessThanOrEqualTo": "40%" } },
                },
            }))
            .await;
        stage
            .eventually("the check counts three healthy machines", async || {
                let check = stage.get("MachineHealthCheck", "workers").await?;
                (check["status"]["currentHealthy"] == 3).then_some(())
            })
            .await;

        let sick = text(&machines[0]["metadata"]["name"]).to_owned();
        make_sick(stage, text(&machines[0]["status"]["nodeRef"]["name"])).await;
        stage
            .eventually("the sick machine is gone", async || {
                stage.get("Machine", &sick).await.is_none().then_some(())
            })
            .await;
        stage.wait_running(3).await;
        stage
            .eventually("all are healthy", async || {
                let check = stage.get("MachineHealthCheck", "workers").await?;
                let healthy = |machine: &Value| {
                    let found = condition(machine, "HealthCheckSucceeded");
                    found.is_some_and(|one| one["status"] == "True")
                };
                let are_healthy = stage.workers().await.iter().all(healthy);
                (check["status"]["currentHealthy"] == 3 && are_healthy).then_some(())
            })
            .await;
        one_of_each(stage, 3).await;
        outcome.note("remediated", stage).await;
        outcome
    }));
}

/// What a kubelet says whose machine is broken. The in-memory API server has no subresources.
async fn make_sick(stage: &Stage, node: &str) {
    let nodes: Api<Node> = Api::all(stage.workload().await);
    let found = serde_json::to_value(nodes.get(node).await.unwrap()).unwrap();
    let mut conditions = found["status"]["conditions"].as_array().unwrap().clone();
    for condition in conditions.iter_mut().filter(|one| one["type"] == "Ready") {
        condition["status"] = json!("False");
        condition["reason"] = json!("KubeletNotReady");
        condition["lastTransitionTime"] = json!(jiff::Timestamp::now());
    }
    let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    nodes.patch(node, &PatchParams::default(), &patch).await.unwrap();
}

async fn some_machines_run(stage: &Stage, count: usize) {
    stage
        .eventually(&format!("{count} machines run"), async || {
            let machines = stage.workers().await;
            let running = machines.iter().filter(|one| one["status"]["phase"] == "Running");
            (running.count() >= count).then_some(())
        })
        .await;
}

/// Each worker and the control plane has one provider's object and one Node of its name, and there is
/// none besides.
async fn one_of_each(stage: &Stage, workers: usize) {
    stage
        .eventually("each machine has one provider's object and one Node", async || {
            let machines = names(&stage.list("Machine").await);
            let provided = names(&stage.provided().await);
            let nodes = stage.nodes().await;
            // Nodes come anew when the provider was restarted, and are labelled again some time later.
            let is_known = |node: &Value| {
                node["metadata"]["annotations"]["cluster.x-k8s.io/machine"].is_string()
            };
            let (are_known, nodes) = (nodes.iter().all(is_known), names(&nodes));
            let is_full = machines.len() == workers + 1;
            (is_full && are_known && machines == provided && machines == nodes).then_some(())
        })
        .await;
}

fn names(objects: &[Value]) -> BTreeSet<String> {
    objects.iter().map(|one| text(&one["metadata"]["name"]).to_owned()).collect()
}
