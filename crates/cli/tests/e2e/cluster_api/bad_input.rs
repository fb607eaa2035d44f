//! What is said about input that cannot work, and does everybody else go on?

use k8s_openapi::api::core::v1::{Node, Secret};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use machinist_testbed::cluster_api::objects::{self, BOOTSTRAP, GROUP, INFRASTRUCTURE, VERSION};
use serde_json::{Value, json};

use super::{
    compare::Outcome,
    on_both_sides,
    stage::{Stage, condition, text},
};
use crate::arena::run;

const TWIN: &str = "played://twin";

#[test]
fn bad_input_is_named_on_the_object_and_others_go_on() {
    run(on_both_sides("bad-input", async |stage| {
        stage.with_workers().await;

        unlabelled_provider(stage).await;
        missing_template(stage).await;
        bootstrap_that_goes(stage).await;
        twins(stage).await;

        wait_reason(stage, "unlabelled", "InfrastructureReady", "InternalError").await;
        stage
            .eventually("the deployment without template has its conditions", async || {
                let found = stage.get("MachineDeployment", "no-template").await?;
                condition(&found, "Available")?;
                condition(&found, "ScalingUp").cloned()
            })
            .await;
        assert_eq!(sets_of(stage, "no-template").await, 0);

        // Everybody else goes on.
        stage.scale(2).await;
        stage.wait_running(2).await;

        let mut objects = Vec::new();
        for machine in ["unlabelled", "booted", "twin-a", "twin-b"] {
            objects.push(("Machine", stage.get("Machine", machine).await.unwrap()));
        }
        let deployment = stage.get("MachineDeployment", "no-template").await.unwrap();
        objects.push(("MachineDeployment", deployment));
        let mut outcome = Outcome::default();
        outcome.note_each("bad input", &stage.name, objects);
        outcome
    }));
}

/// A Machine whose provider speaks no contract that can be told.
async fn unlabelled_provider(stage: &Stage) {
    played_machine(stage, "UnlabelledMachine", "unlabelled", json!({})).await;
    let spec = objects::machine_spec(&stage.name, "UnlabelledMachine", "unlabelled");
    machine(stage, "unlabelled", spec).await;
}

async fn missing_template(stage: &Stage) {
    let mut deployment = objects::workers(&stage.name, &stage.name, "absent", 1);
    let mut labels = objects::labels(&stage.name);
    labels["cluster.x-k8s.io/deployment-name"] = json!("no-template");
    deployment["metadata"]["name"] = json!("no-template");
    deployment["metadata"]["labels"] = labels.clone();
    deployment["spec"]["selector"]["matchLabels"] = labels.clone();
    deployment["spec"]["template"]["metadata"]["labels"] = labels;
    stage.create(deployment).await;
}

/// A bootstrap provider's secret disappears, then its object: what was taken over stays.
async fn bootstrap_that_goes(stage: &Stage) {
    let secrets: Api<Secret> = Api::namespaced(stage.client().clone(), &stage.name);
    let secret: Secret = serde_json::from_value(json!({
        "metadata": { "name": "booted-data", "labels": objects::labels(&stage.name) },
        "stringData": { "value": "#!/bin/true" },
    }))
    .unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    stage
        .create(json!({
            "apiVersion": format!("{BOOTSTRAP}/{VERSION}"),
            "kind": "PlayedConfig",
            "metadata": {
                "name": "booted", "namespace": stage.name, "labels": objects::labels(&stage.name),
            },
        }))
        .await;
    played_machine(stage, "PlayedMachine", "booted", json!({})).await;
    let mut spec = objects::machine_spec(&stage.name, "PlayedMachine", "booted");
    let config = json!({ "apiGroup": BOOTSTRAP, "kind": "PlayedConfig", "name": "booted" });
    spec["bootstrap"] = json!({ "configRef": config });
    machine(stage, "booted", spec).await;
    wait_reason(stage, "booted", "BootstrapConfigReady", "NotReady").await;

    let status =
        json!({ "dataSecretName": "booted-data", "initialization": { "dataSecretCreated": true } });
    stage.patch_status("PlayedConfig", "booted", status).await;
    stage
        .eventually("the name of the secret is taken over", async || {
            let machine = stage.get("Machine", "booted").await?;
            let is_named = machine["spec"]["bootstrap"]["dataSecretName"] == "booted-data";
            (is_named && machine["status"]["phase"] == "Provisioning").then_some(())
        })
        .await;

    secrets.delete("booted-data", &DeleteParams::default()).await.unwrap();
    stage.delete("PlayedConfig", "booted").await;
    wait_reason(stage, "booted", "BootstrapConfigReady", "ObjectDoesNotExist").await;
    let machine = stage.get("Machine", "booted").await.unwrap();
    assert_eq!(machine["spec"]["bootstrap"]["dataSecretName"], "booted-data");
}

/// Two Machines whose provider gives both the same instance.
async fn twins(stage: &Stage) {
    let nodes: Api<Node> = Api::all(stage.workload().await);
    let node = json!({
        "metadata": { "name": "twin" },
        "spec": { "providerID": TWIN },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    let node: Node = serde_json::from_value(node).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    for name in ["twin-a", "twin-b"] {
        played_machine(stage, "PlayedMachine", name, json!({ "providerID": TWIN })).await;
        machine(stage, name, objects::machine_spec(&stage.name, "PlayedMachine", name)).await;
        let status = json!({ "initialization": { "provisioned": true } });
        stage.patch_status("PlayedMachine", name, status).await;
        stage
            .eventually(&format!("{name} has its providerID"), async || {
                let machine = stage.get("Machine", name).await?;
                (text(&machine["spec"]["providerID"]) == TWIN).then_some(())
            })
            .await;
    }
}

async fn machine(stage: &Stage, name: &str, spec: Value) {
    stage
        .create(json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": "Machine",
            "metadata": {
                "name": name, "namespace": stage.name, "labels": objects::labels(&stage.name),
            },
            "spec": spec,
        }))
        .await;
}

async fn played_machine(stage: &Stage, kind: &str, name: &str, spec: Value) {
    stage
        .create(json!({
            "apiVersion": format!("{INFRASTRUCTURE}/{VERSION}"),
            "kind": kind,
            "metadata": {
                "name": name, "namespace": stage.name, "labels": objects::labels(&stage.name),
            },
            "spec": spec,
        }))
        .await;
}

async fn wait_reason(stage: &Stage, machine: &str, type_: &str, reason: &str) {
    stage
        .eventually(&format!("{type_} of {machine} is {reason}"), async || {
            let found = stage.get("Machine", machine).await?;
            (condition(&found, type_)?["reason"] == reason).then_some(())
        })
        .await;
}

async fn sets_of(stage: &Stage, deployment: &str) -> usize {
    let label = "cluster.x-k8s.io/deployment-name";
    let sets = stage.list("MachineSet").await;
    sets.iter().filter(|set| set["metadata"]["labels"][label] == deployment).count()
}
