//! Secrets are canaries: after a whole life at TRACE, with a cloud that echoes user data in its
//! errors, they sing nowhere.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::Request;
use k8s_openapi::api::core::v1::Secret;
use machinist_testbed::cloud::model::{ChangedBy, ErrorFault, Faults};
use serde_json::json;

use crate::{
    arena::{Arena, run},
    page::{Page, bind, token},
    seen::{Subject, free_port},
};

const IN_USER_DATA: &str = "canary-5ca1ab1e-user-data-0ddba11c0ffee";
const IN_KEYS: &str = "Canary/ACCESS+KEY/f00dfacefeedbeefdeadc0de";
const IN_CONFIG: &str = "Canary/SHARED+CONFIG/cafebabe8badf00d0defaced";

fn user_data() -> String {
    format!(r#"{{"ignition":{{"version":"3.2.0","config":{{"token":"{IN_USER_DATA}"}}}}}}"#)
}

/// A secret as it is, and as it looks inside longer base64, wherever it begins in it.
fn forms(secret: &str) -> Vec<String> {
    let shifted = (0..3).map(|shift| {
        let text = STANDARD.encode(format!("{}{secret}", " ".repeat(shift)));
        // Its ends depend on what stands beside it.
        text[4..text.len() - 4].to_owned()
    });
    shifted.chain([secret.to_owned()]).collect()
}

fn check(place: &str, text: &str) {
    for secret in [IN_USER_DATA, IN_KEYS, IN_CONFIG] {
        for form in forms(secret) {
            if let Some(at) = text.find(&form) {
                let line = text[..at].lines().count();
                let begin = text[..at].char_indices().rev().nth(300).map_or(0, |(index, _)| index);
                panic!("{secret} is in {place}, line {line}, after {:?}", &text[begin..at]);
            }
        }
    }
}

async fn check_objects(arena: &Arena) {
    let namespace = &arena.name;
    let machine_api = format!("/apis/machine.openshift.io/v1beta1/namespaces/{namespace}");
    for path in [
        format!("{machine_api}/machines"),
        format!("{machine_api}/machinesets"),
        format!("/api/v1/namespaces/{namespace}/events"),
        format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"),
        format!("/api/v1/namespaces/{namespace}/configmaps"),
        format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
        "/api/v1/nodes".to_owned(),
        "/apis/config.openshift.io/v1/clusteroperators".to_owned(),
    ] {
        let request = Request::get(&path).body(Vec::new()).unwrap();
        match arena.client.request_text(request).await {
            Ok(text) => check(&path, &text),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => panic!("{path}: {error}"),
        }
    }
}

/// Everything that the page shows to somebody who may see everything.
async fn check_page(page: &Page, token: &str) {
    let list = page.get("machines", token).await.unwrap();
    let mut paths: Vec<String> =
        ["me", "fleet", "pools", "map", "machines", "plan", "calendar", "policies", "drift"]
            .map(str::to_owned)
            .to_vec();
    for machine in list["machines"].as_array().unwrap() {
        let name = machine["name"].as_str().unwrap();
        paths.push(format!("machines/{name}"));
        paths.push(format!("machines/{name}/timeline"));
    }
    for path in paths {
        // A machine may be gone since it was listed.
        if let Ok(answer) = page.get(&path, token).await {
            check(&format!("/api/v1/{path}"), &answer.to_string());
        }
    }
    let trial = page.post("what-if", token, json!({})).await.unwrap();
    check("/api/v1/what-if", &trial.to_string());
}

fn key_in_config(arena: &Arena) -> String {
    format!("{}CONFIG", arena.access_key())
}

async fn put_secrets(arena: &Arena) {
    let text = json!({"stringData": {"userData": user_data()}});
    arena.patch::<Secret>("worker-user-data", text).await;
    let keys = json!({"stringData": {"aws_secret_access_key": IN_KEYS}});
    arena.patch::<Secret>("aws-cloud-credentials", keys).await;
    let key = key_in_config(arena);
    let config =
        format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = {IN_CONFIG}\n");
    arena
        .create::<Secret>(json!({
            "metadata": {"name": "shared-config"},
            "stringData": {"credentials": config},
        }))
        .await;
}

#[test]
fn no_secret_is_in_a_log_at_trace_an_event_a_status_a_metric_or_on_the_page() {
    run(async {
        let arena = Arena::new("canary").await;
        put_secrets(&arena).await;
        let cloud = arena.cluster.cloud();
        // The cloud echoes what it was given.
        let message = format!(
            "user data {} ({}) could not be stored",
            user_data(),
            STANDARD.encode(user_data())
        );
        let echo_to = |access_key: String| ErrorFault {
            action: "RunInstances".to_owned(),
            code: "Unavailable".to_owned(),
            message: Some(message.clone()),
            status: None,
            count: None,
            probability: 1.0,
            effect: false,
            access_key: Some(access_key),
        };
        let errors = vec![echo_to(arena.access_key()), echo_to(key_in_config(&arena))];
        cloud.add_faults(Faults { errors, ..Faults::default() }).unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let flags = [
            ("--log-level", "trace"),
            ("--page-address", address.as_str()),
            ("--page-plain-http", "true"),
            ("--page-writes", "true"),
        ];
        let operator = arena.start_operator_with(&flags).await;
        let (page, reader) = (Page::at(&address), token(&arena, "reader").await);
        bind(&arena, "machinist-page-reader", &["reader"]).await;
        let grace = json!({"metadata": {"annotations": {
            "machinist.dev/stopped-grace-period": "0s",
        }}});
        arena.create_machine("by-keys", grace).await;
        let config = json!({"spec": {"providerSpec": {"value": {
            "credentialsSecret": {"name": "shared-config"},
        }}}});
        arena.create_machine("by-config", config).await;
        for machine in ["by-keys", "by-config"] {
            arena.wait_event(machine, "FailedCreate", "Unavailable").await;
        }
        check_objects(&arena).await;
        let shows = async || page.get("drift", &reader).await.ok();
        arena.eventually("the page knows the reader's rights", shows).await;
        check_page(&page, &reader).await;
        cloud.clear_fault_kind("errors").unwrap();
        let machines = arena.wait_running(2).await;
        let is_by_keys =
            |machine: &&machinist_api::Machine| machine.metadata.name.as_deref() == Some("by-keys");
        let subject = Subject::of(machines.iter().find(is_by_keys).unwrap());
        cloud.stop(&subject.instance, ChangedBy::User).unwrap();
        arena.wait_event("by-keys", "StartingInstance", &subject.instance).await;
        arena.wait_true("by-keys", "InstanceRunning").await;
        check_objects(&arena).await;
        check_page(&page, &reader).await;
        check("/metrics", &arena.metrics().await);
        for machine in ["by-keys", "by-config"] {
            arena.delete_machine(machine).await;
        }
        for machine in ["by-keys", "by-config"] {
            arena.wait_gone(machine).await;
        }
        check_objects(&arena).await;
        check("/metrics", &arena.metrics().await);
        let log = operator.process().log().to_owned();
        operator.stop().await;
        let words = String::from_utf8_lossy(&std::fs::read(&log).unwrap()).into_owned();
        // Of our own code; libraries may not log that much at any level.
        assert!(words.contains(r#""level":"DEBUG""#), "{words}");
        check(&log.display().to_string(), &words);
        // Whoever reads the log must not be able to look at the page.
        assert!(!words.contains(&reader), "the token of a person is in the log");
    });
}
