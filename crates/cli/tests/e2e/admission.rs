//! The API server asks the operator about Machines and MachineSets: W-1 to W-4, M-6, A-1 and A-4 of the
//! original's acceptance suite, and O-4 to O-9 about the configurations that make it ask.
//!
//! Alone: the configurations are the whole cluster's.

use http::Request;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::{
    Api, Error,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use machinist_api::{Machine, MachineSet};
use machinist_testbed::operator_process::OperatorProcess;
use serde_json::{Value, json};

use crate::{
    arena::{Arena, merge, run},
    seen::free_port,
};

const CONFIGURATIONS: &str = "machine-api";

/// The fields of an AWS providerSpec that nobody can fill in.
fn minimal(arena: &Arena) -> Value {
    let whole = arena.provider_spec(json!({}));
    json!({
        "apiVersion": whole["apiVersion"],
        "kind": whole["kind"],
        "ami": whole["ami"],
        "placement": {"availabilityZone": whole["placement"]["availabilityZone"]},
        "subnet": whole["subnet"],
        "securityGroups": whole["securityGroups"],
    })
}

fn machine(arena: &Arena, name: &str, provider_spec: Value) -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": arena.name, "labels": arena.labels("none")},
        "spec": {"providerSpec": {"value": provider_spec}},
    }))
    .unwrap()
}

fn set(arena: &Arena, name: &str, provider_spec: Value) -> MachineSet {
    let mut set = json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": arena.labels(name)},
            "template": {"metadata": {"labels": arena.labels(name)}, "spec": {"providerSpec": {}}},
        },
    });
    merge(&mut set["spec"]["template"]["spec"]["providerSpec"], json!({"value": provider_spec}));
    serde_json::from_value(set).unwrap()
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(Error::Api(status)) => status.message,
        other => panic!("not refused: {other:?}"),
    }
}

/// The configurations, without what the API server fills in.
async fn configurations(arena: &Arena) -> [Value; 2] {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(arena.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(arena.client.clone());
    arena
        .eventually("both configurations are there", async || {
            let one = mutating.get_opt(CONFIGURATIONS).await.unwrap()?;
            let other = validating.get_opt(CONFIGURATIONS).await.unwrap()?;
            Some([json!(one), json!(other)])
        })
        .await
}

fn bundles(configuration: &Value) -> Vec<Value> {
    let webhooks = configuration["webhooks"].as_array().unwrap();
    webhooks.iter().map(|webhook| webhook["clientConfig"]["caBundle"].clone()).collect()
}

fn is_asked(configuration: &Value) -> bool {
    let has = |bundle: &Value| bundle.as_str().is_some_and(|text| !text.is_empty());
    bundles(configuration).iter().all(has)
}

async fn start(arena: &Arena) -> OperatorProcess {
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let kept = format!("url:https://{address}");
    let flags = [("--webhook-address", address.as_str()), ("--keep-webhooks", kept.as_str())];
    let operator = arena.start_operator_with(&flags).await;
    arena
        .eventually("the API server can ask", async || {
            configurations(arena).await.iter().all(is_asked).then_some(())
        })
        .await;
    // It takes a moment to learn of its configurations.
    arena
        .eventually("the API server asks", async || {
            let made = arena
                .api::<MachineSet>()
                .create(&dry_run(), &set(arena, "asked", Value::Null))
                .await;
            made.is_err().then_some(())
        })
        .await;
    operator
}

fn dry_run() -> PostParams {
    PostParams { dry_run: true, ..PostParams::default() }
}

/// Others must not be asked by a server that is gone.
async fn remove_configurations(arena: &Arena) {
    let parameters = DeleteParams::default();
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(arena.client.clone());
    mutating.delete(CONFIGURATIONS, &parameters).await.ok();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(arena.client.clone());
    validating.delete(CONFIGURATIONS, &parameters).await.ok();
}

async fn check_machines(arena: &Arena) {
    // W-1: what is missing is filled in.
    let made = arena
        .api::<Machine>()
        .create(&PostParams::default(), &machine(arena, "minimal", minimal(arena)))
        .await
        .unwrap();
    let stored = json!(made.spec.provider_spec);
    assert_eq!(stored["value"]["userDataSecret"]["name"], "worker-user-data");
    assert_eq!(stored["value"]["credentialsSecret"]["name"], "aws-cloud-credentials");
    assert_eq!(stored["value"]["instanceType"], "m5.large");
    let region = arena.cluster.cloud().world().region.clone();
    assert_eq!(stored["value"]["placement"]["region"], json!(region));
    arena.wait_running(1).await;

    // W-3: what must not be taken away.
    let patch = Patch::Merge(json!({"spec": {"providerSpec": {"value": {"ami": null}}}}));
    let denied = arena.api::<Machine>().patch("minimal", &PatchParams::default(), &patch).await;
    let words = refusal(denied);
    let denied_by =
        "admission webhook \"validation.machine.machine.openshift.io\" denied the request";
    assert!(words.contains(denied_by), "{words}");

    //
    for (overrides, expected) in [
        (
            json!({"metadataServiceOptions": {"authentication": "fooobaar"}}),
            "Invalid value: \"fooobaar\": Allowed values are either 'Optional' or 'Required'",
        ),
        (
            json!({"capacityReservationId": "fooobaar"}),
            "invalid value for capacityReservationId: \"fooobaar\", it must start with 'cr-' and be \
             exactly 20 characters long with 17 hexadecimal characters",
        ),
    ] {
        let refused = machine(arena, "refused", arena.provider_spec(overrides));
        let words = refusal(arena.api::<Machine>().create(&dry_run(), &refused).await);
        assert!(words.contains(expected), "{words}");
    }
}

async fn check_sets(arena: &Arena) {
    // M-6, to the letter.
    let words = refusal(
        arena.api::<MachineSet>().create(&dry_run(), &set(arena, "bad", Value::Null)).await,
    );
    assert_eq!(
        words,
        "admission webhook \"default.machineset.machine.openshift.io\" denied the request: \
         providerSpec.value: Required value: a value must be provided"
    );
    // W-2.
    let whole = set(arena, "whole", minimal(arena));
    arena.api::<MachineSet>().create(&PostParams::default(), &whole).await.unwrap();
    arena.wait_set_columns("whole", "1 1 1 1").await;
    // W-4, and the selector.
    let denied_by =
        "admission webhook \"validation.machineset.machine.openshift.io\" denied the request";
    for (change, expected) in [
        (
            json!({"template": {"spec": {"providerSpec": {"value": {"ami": null}}}}}),
            "expected providerSpec.ami.id to be populated",
        ),
        (
            json!({"selector": {"matchLabels": {"another": "label"}}}),
            "spec.selector: Forbidden: selector is immutable",
        ),
    ] {
        let patch = Patch::Merge(json!({"spec": change}));
        let parameters = PatchParams::default();
        let words = refusal(arena.api::<MachineSet>().patch("whole", &parameters, &patch).await);
        assert!(words.contains(denied_by) && words.contains(expected), "{words}");
    }
}

/// A typing error is told of when the object is made (the original drops it without a word).
async fn check_warning(arena: &Arena) {
    let path =
        format!("/apis/machine.openshift.io/v1beta1/namespaces/{}/machines?dryRun=All", arena.name);
    let spec = arena.provider_spec(json!({"instanceTyp": "m5.large"}));
    let body = serde_json::to_vec(&machine(arena, "typing", spec)).unwrap();
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(kube::client::Body::from(body))
        .unwrap();
    let answer = arena.client.send(request).await.unwrap();
    let warnings: Vec<_> = answer.headers().get_all("warning").iter().collect();
    let told = warnings.iter().any(|one| one.to_str().unwrap_or_default().contains("instanceTyp"));
    assert!(told, "{} {warnings:?}", answer.status());
}

/// O-4 to O-9, with changes that really are changes.
async fn check_configurations(arena: &Arena) {
    let before = configurations(arena).await;
    let comparable = |configuration: &Value| {
        let mut webhooks = configuration["webhooks"].clone();
        for webhook in webhooks.as_array_mut().unwrap() {
            webhook["clientConfig"] = Value::Null;
        }
        webhooks
    };
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(arena.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(arena.client.clone());
    let is_restored = async || {
        let after = configurations(arena).await;
        let same = before.iter().zip(&after).all(|(one, other)| {
            comparable(one) == comparable(other) && bundles(one) == bundles(other)
        });
        same.then_some(after)
    };

    for (change, words) in [
        (
            json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}]),
            "policy",
        ),
        (json!([{"op": "remove", "path": "/webhooks/1"}]), "a webhook"),
        (
            json!([{"op": "replace", "path": "/webhooks/0/rules/0/resources", "value": ["pods"]}]),
            "what is asked about",
        ),
    ] {
        let patch = Patch::<Value>::Json(serde_json::from_value(change).unwrap());
        let parameters = PatchParams::default();
        mutating.patch(CONFIGURATIONS, &parameters, &patch).await.unwrap();
        validating.patch(CONFIGURATIONS, &parameters, &patch).await.unwrap();
        arena.eventually(&format!("{words} restored, the bundle kept"), is_restored).await;
    }

    let uid = |configuration: &Value| configuration["metadata"]["uid"].clone();
    remove_configurations(arena).await;
    let after = arena.eventually("made anew", is_restored).await;
    for (one, other) in before.iter().zip(&after) {
        assert_ne!(uid(one), uid(other));
    }
}

#[test]
fn o_4_to_o_9_m_6_w_1_to_w_4_a_1_and_a_4_admission_answers_as_the_original_and_is_kept() {
    run(async {
        let arena = Arena::alone("admission").await;
        let operator = start(&arena).await;
        check_machines(&arena).await;
        check_sets(&arena).await;
        check_warning(&arena).await;
        check_configurations(&arena).await;
        operator.stop().await;
        // Nobody answers: the API server goes on without us, and deletions go through.
        arena.api::<Machine>().delete("minimal", &DeleteParams::default()).await.unwrap();
        arena
            .api::<Machine>()
            .create(&dry_run(), &machine(&arena, "unasked", json!({"anything": true})))
            .await
            .unwrap();
        remove_configurations(&arena).await;
    });
}
