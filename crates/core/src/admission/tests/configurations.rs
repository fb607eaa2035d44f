//! The webhook configurations, field for field, and how they are put right.

use k8s_openapi::ByteString;

use super::*;
use configuration::{Address, Client, Trust, corrected, mutating, validating};

fn webhook(name: &str, path: &str, resource: &str, operations: &[&str]) -> Value {
    json!({
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {
            "namespace": "openshift-machine-api",
            "name": "machine-api-operator-webhook",
            "path": path,
            "port": 443,
        }},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "rules": [{
            "apiGroups": ["machine.openshift.io"],
            "apiVersions": ["v1beta1"],
            "operations": operations,
            "resources": [resource],
        }],
    })
}

#[test]
fn on_openshift_they_are_the_contract_word_for_word() {
    let metadata = json!({
        "name": "machine-api",
        "annotations": {"service.beta.openshift.io/inject-cabundle": "true"},
    });
    assert_eq!(
        serde_json::to_value(mutating(&Client::default())).unwrap(),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": metadata,
            "webhooks": [
                webhook(
                    "default.machine.machine.openshift.io",
                    "/mutate-machine-openshift-io-v1beta1-machine",
                    "machines",
                    &["CREATE"],
                ),
                webhook(
                    "default.machineset.machine.openshift.io",
                    "/mutate-machine-openshift-io-v1beta1-machineset",
                    "machinesets",
                    &["CREATE"],
                ),
            ],
        })
    );
    assert_eq!(
        serde_json::to_value(validating(&Client::default())).unwrap(),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": metadata,
            "webhooks": [
                webhook(
                    "validation.machine.machine.openshift.io",
                    "/validate-machine-openshift-io-v1beta1-machine",
                    "machines",
                    &["CREATE", "UPDATE"],
                ),
                webhook(
                    "validation.machineset.machine.openshift.io",
                    "/validate-machine-openshift-io-v1beta1-machineset",
                    "machinesets",
                    &["CREATE", "UPDATE"],
                ),
            ],
        })
    );
}

#[test]
fn a_process_outside_the_cluster_has_a_url_and_its_own_bundle() {
    let client = Client {
        address: Address::Url("https://127.0.0.1:9443/".to_owned()),
        trust: Trust::Bundle(b"pem".to_vec()),
    };
    let configuration = validating(&client);
    assert_eq!(configuration.metadata.annotations, None);
    let config = configuration.webhooks.unwrap().remove(0).client_config;
    assert_eq!(
        config.url.as_deref(),
        Some("https://127.0.0.1:9443/validate-machine-openshift-io-v1beta1-machine")
    );
    assert_eq!(config.service, None);
    assert_eq!(config.ca_bundle, Some(ByteString(b"pem".to_vec())));
    let client = Client { trust: Trust::CertManager("ns/cert".to_owned()), ..Client::default() };
    assert_eq!(
        mutating(&client).metadata.annotations.unwrap()["cert-manager.io/inject-ca-from"],
        "ns/cert"
    );
}

/// As the API server stores it, with its defaults and a bundle that service-ca wrote.
fn stored() -> k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration {
    let mut stored = mutating(&Client::default());
    stored.metadata.uid = Some("u".to_owned());
    stored.metadata.resource_version = Some("7".to_owned());
    stored.metadata.annotations.as_mut().unwrap().insert("theirs".to_owned(), "kept".to_owned());
    for webhook in stored.webhooks.as_mut().unwrap() {
        webhook.timeout_seconds = Some(10);
        webhook.match_policy = Some("Equivalent".to_owned());
        webhook.rules.as_mut().unwrap()[0].scope = Some("*".to_owned());
        webhook.client_config.ca_bundle = Some(ByteString(webhook.name.clone().into_bytes()));
    }
    stored
}

#[test]
fn what_the_server_and_others_add_is_no_difference() {
    assert_eq!(corrected(&stored(), &mutating(&Client::default())).unwrap(), None);
}

#[test]
fn every_change_is_put_right_and_the_bundles_are_kept() {
    let wanted = mutating(&Client::default());
    let mut changes = vec![stored(), stored(), stored(), stored(), stored()];
    changes[0].webhooks.as_mut().unwrap()[0].failure_policy = Some("Fail".to_owned());
    changes[1].webhooks.as_mut().unwrap()[1].admission_review_versions = vec!["v1beta1".to_owned()];
    changes[2].webhooks.as_mut().unwrap().swap(0, 1);
    changes[3]
        .metadata
        .annotations
        .as_mut()
        .unwrap()
        .remove("service.beta.openshift.io/inject-cabundle");
    let extra = stored().webhooks.unwrap().remove(0);
    changes[4].webhooks.as_mut().unwrap().push(extra);
    for (index, changed) in changes.into_iter().enumerate() {
        let corrected = corrected(&changed, &wanted).unwrap();
        let corrected = corrected.unwrap_or_else(|| panic!("change {index} was not seen"));
        assert_eq!(corrected.metadata.resource_version.as_deref(), Some("7"));
        let annotations = corrected.metadata.annotations.as_ref().unwrap();
        assert_eq!(annotations["theirs"], "kept");
        assert_eq!(annotations["service.beta.openshift.io/inject-cabundle"], "true");
        let webhooks = corrected.webhooks.as_ref().unwrap();
        assert_eq!(webhooks.len(), 2);
        for webhook in webhooks {
            let bundle = webhook.client_config.ca_bundle.as_ref().unwrap();
            assert_eq!(bundle.0, webhook.name.as_bytes());
        }
        assert_eq!(configuration::corrected(&corrected, &wanted).unwrap(), None);
    }
}

#[test]
fn a_bundle_of_our_own_replaces_an_older_one() {
    let client = Client { trust: Trust::Bundle(b"new".to_vec()), ..Client::default() };
    let corrected = corrected(&stored(), &mutating(&client)).unwrap().unwrap();
    for webhook in corrected.webhooks.unwrap() {
        assert_eq!(webhook.client_config.ca_bundle, Some(ByteString(b"new".to_vec())));
    }
}

#[test]
fn every_path_finds_its_webhook() {
    for webhook in Webhook::ALL {
        assert_eq!(Webhook::of_path(webhook.path()), Some(webhook));
    }
    assert_eq!(Webhook::of_path("/mutate"), None);
}
