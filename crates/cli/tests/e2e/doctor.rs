//! Does `machinist doctor` name what is really wrong? Each fault is made on a cluster and in a cloud, and one
//! after the other is found; a healthy installation has none.
//!
//! Alone: definitions are the whole cluster's.

use std::process::Output;

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        admissionregistration::v1::ValidatingWebhookConfiguration, coordination::v1::Lease,
        core::v1::Secret, rbac::v1::Role,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use machinist_testbed::{
    cloud::model::{Denied, Faults},
    manifests::apply_crds,
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    arena::{Arena, run},
    seen::free_port,
};

const EXPIRED: &[u8] = include_bytes!("../../testdata/doctor/expired.pem");
const WEBHOOKS: &str = "e2e-doctor";
const POLICIES: &str = "maintenancepolicies.machinist.dev";

impl Arena {
    /// Runs `machinist doctor` on this test's operator.
    async fn doctor(&self, format: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_machinist"))
            .args(["doctor", "--output", format, "--namespace", &self.name])
            .args(["--operator-user", &self.name])
            .arg("--kubeconfig")
            .arg(self.cluster.kubeconfig())
            .output()
            .await
            .unwrap()
    }

    /// Waits until a finding with this code says all these words, and returns it.
    async fn wait_finding(&self, code: &str, words: &[&str]) -> Value {
        self.eventually(&format!("doctor finds {code} with {words:?}"), async || {
            let output = self.doctor("json").await;
            let report: Value = serde_json::from_slice(&output.stdout).ok()?;
            let finding = findings(&report).into_iter().find(|finding| {
                let text = finding.to_string();
                finding["code"] == code && words.iter().all(|word| text.contains(word))
            })?;
            assert_eq!(output.status.code(), Some(1), "{finding:#}");
            println!("{finding:#}");
            Some(finding)
        })
        .await
    }
}

fn findings(report: &Value) -> Vec<Value> {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().flat_map(|check| check["findings"].as_array().unwrap().clone()).collect()
}

/// Everything is as it should be.
async fn check_healthy(arena: &Arena) {
    arena.create_machine("one", json!({})).await;
    arena.wait_running(1).await;
    arena
        .eventually("doctor finds nothing", async || {
            let output = arena.doctor("json").await;
            let report: Value = serde_json::from_slice(&output.stdout).ok()?;
            println!("{:#?}", findings(&report));
            (output.status.code() == Some(0) && report["level"] == "ok").then_some(())
        })
        .await;
    let table = arena.doctor("table").await;
    println!("{}", String::from_utf8_lossy(&table.stdout));
    let names = arena.doctor("name").await;
    assert_eq!(String::from_utf8(names.stdout).unwrap(), "");
}

async fn check_rights(arena: &Arena) {
    let roles = arena.api::<Role>();
    let mut role = roles.get("machinist-operator").await.unwrap();
    for rule in role.rules.iter_mut().flatten() {
        if rule.resources.as_deref() == Some(&["machines".to_owned()]) {
            // Nothing is deleted in this test, so that the operator does not ask for it.
            rule.verbs.retain(|verb| verb != "delete");
        }
    }
    roles.replace("machinist-operator", &PostParams::default(), &role).await.unwrap();
    let right = format!("delete machines.machine.openshift.io in {}", arena.name);
    arena.wait_finding("missing-rbac-verb", &[&right, &arena.name, "rbac.yaml"]).await;
}

/// What only the operator can know: the cloud refuses its keys, or one of its calls.
async fn check_cloud(arena: &Arena) {
    let refused_key = format!("{}REFUSED", arena.access_key());
    let denied = Denied {
        action: "ec2:DescribeInstanceStatus".to_owned(),
        access_key: Some(arena.access_key()),
    };
    let faults = Faults {
        refused_access_keys: [refused_key.clone()].into(),
        denied: vec![denied],
        ..Faults::default()
    };
    arena.cluster.cloud().add_faults(faults).unwrap();
    arena.wait_finding("missing-iam-action", &["ec2:DescribeInstanceStatus"]).await;

    arena
        .create::<Secret>(json!({
            "metadata": {"name": "refused"},
            "stringData": {"aws_access_key_id": refused_key, "aws_secret_access_key": "x"},
        }))
        .await;
    let spec = json!({"spec": {"providerSpec": {"value": {
        "credentialsSecret": {"name": "refused"},
    }}}});
    arena.create_machine("refused", spec).await;
    let words = [&format!("{}/refused", arena.name), "AuthFailure"];
    arena.wait_finding("wrong-credentials", &words).await;
    arena.cluster.cloud().clear_fault_kind("refusedAccessKeys").unwrap();
    arena.cluster.cloud().clear_fault_kind("denied").unwrap();
}

/// Another controller, whose clock is wrong besides.
async fn check_leases(arena: &Arena) {
    arena.wait_finding("operator-not-running", &["no operator runs"]).await;
    let name = "cluster-api-provider-nodelink-leader";
    let ahead = Timestamp::now() + SignedDuration::from_hours(3);
    let holder = json!({"spec": {
        "holderIdentity": "stranger-7f9c_1",
        "leaseDurationSeconds": 3600,
        "renewTime": format!("{ahead:.6}"),
    }});
    arena.patch::<Lease>(name, holder).await;
    arena.wait_finding("second-controller", &[name, "stranger-7f9c_1"]).await;
    arena.wait_finding("clock-skew", &["stranger-7f9c_1 is", "hours ahead"]).await;
    arena.api::<Lease>().delete(name, &DeleteParams::default()).await.unwrap();
}

async fn check_webhooks(arena: &Arena) {
    let webhooks = Api::<ValidatingWebhookConfiguration>::all(arena.client.clone());
    let configuration = serde_json::from_value(json!({
        "metadata": {"name": WEBHOOKS},
        "webhooks": [{
            "name": "nowhere.machinist.dev",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "clientConfig": {
                "service": {"namespace": arena.name, "name": "nowhere", "path": "/"},
                "caBundle": STANDARD.encode(EXPIRED),
            },
            "rules": [{
                "apiGroups": ["machine.openshift.io"],
                "apiVersions": ["v1beta1"],
                "resources": ["machines"],
                "operations": ["CREATE"],
            }],
        }],
    }));
    webhooks.create(&PostParams::default(), &configuration.unwrap()).await.unwrap();
    let service = format!("Service {}/nowhere", arena.name);
    arena.wait_finding("webhook-pointing-nowhere", &[WEBHOOKS, &service, "does not exist"]).await;
    let words = ["the authority in", WEBHOOKS, "2021-01-01T00:00:00Z"];
    arena.wait_finding("expired-webhook-certificate", &words).await;
    let served = json!({"data": {"tls.crt": STANDARD.encode(EXPIRED)}});
    arena.patch::<Secret>("machine-api-operator-webhook-cert", served).await;
    let words = ["machine-api-operator-webhook-cert has expired", "2021-01-01T00:00:00Z"];
    arena.wait_finding("expired-webhook-certificate", &words).await;
    webhooks.delete(WEBHOOKS, &DeleteParams::default()).await.unwrap();
}

async fn check_definitions(arena: &Arena) {
    let definitions = Api::<CustomResourceDefinition>::all(arena.client.clone());
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/freezes";
    let older = serde_json::from_value(json!([{"op": "remove", "path": field}])).unwrap();
    let patch = Patch::<()>::Json(older);
    definitions.patch(POLICIES, &PatchParams::default(), &patch).await.unwrap();
    arena.wait_finding("old-crd-version", &[POLICIES, "spec.freezes"]).await;
    definitions.delete(POLICIES, &DeleteParams::default()).await.unwrap();
    arena.wait_finding("missing-crd", &[POLICIES, "kubectl apply -f"]).await;
    let shipped = machinist_api::crd::all().into_iter();
    let shipped = shipped.filter(|one| one.metadata.name.as_deref() == Some(POLICIES));
    for definition in shipped {
        let text = serde_json::to_string(&definition).unwrap();
        apply_crds(&arena.client, &text).await.unwrap();
    }
}

#[test]
fn doctor_names_what_is_wrong_on_a_real_control_plane() {
    run(async {
        let arena = Arena::alone("doctor").await;
        let operator = arena.start_operator().await;
        check_healthy(&arena).await;
        check_rights(&arena).await;
        check_cloud(&arena).await;
        operator.stop().await;
        check_leases(&arena).await;
        check_webhooks(&arena).await;

        let nowhere = format!("http://127.0.0.1:{}", free_port());
        let operator = arena.start_operator_with(&[("--aws-ec2-endpoint", &nowhere)]).await;
        arena.wait_finding("unreachable-endpoint", &[&nowhere]).await;
        operator.stop().await;
        check_definitions(&arena).await;
    });
}
