//! What the kept objects are, and how they are put right.

use std::fmt::Debug;

use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    apps::v1::DaemonSet,
};
use machinist_api::MachineHealthCheck;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    super::{
        Action, History, Kept, Object, TerminationHandler, desired::default_kubelet_config,
        termination_handler,
    },
    common::{KEPT, decided, handler, of, stored, wanted},
};
use crate::proxy::ProxySettings;

/// Read as its type and written again, an object says the same: so the stored one can be compared.
fn survives<K: Serialize + DeserializeOwned + Debug>(kept: Kept) {
    let typed: K = serde_json::from_value(wanted(kept)).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), wanted(kept), "{kept}");
}

#[test]
fn the_kubelets_kubeconfig_is_where_the_cluster_has_it() {
    assert_eq!(default_kubelet_config(true), "/var/lib/kubelet/kubeconfig");
    let kubelet_config = default_kubelet_config(false).to_owned();
    assert_eq!(kubelet_config, "/etc/kubernetes/kubelet.conf");
    let set = termination_handler(&TerminationHandler { kubelet_config, ..handler() });
    let pod = &set["spec"]["template"]["spec"];
    for found in [
        &pod["volumes"][0]["hostPath"]["path"],
        &pod["containers"][0]["volumeMounts"][0]["mountPath"],
        &pod["containers"][0]["env"][0]["value"],
    ] {
        assert_eq!(*found, "/etc/kubernetes/kubelet.conf");
    }
    assert!(!set.to_string().contains("/var/lib/kubelet/kubeconfig"), "{set}");
}

#[test]
fn every_object_is_one_of_its_kind() {
    survives::<MutatingWebhookConfiguration>(Kept::MutatingWebhooks);
    survives::<ValidatingWebhookConfiguration>(Kept::ValidatingWebhooks);
    survives::<DaemonSet>(Kept::TerminationHandler);
    survives::<MachineHealthCheck>(Kept::TerminationCheck);
}

#[test]
fn the_handlers_are_the_contracts() {
    let set = wanted(Kept::TerminationHandler);
    let pod = &set["spec"]["template"]["spec"];
    let labels = json!({ "api": "clusterapi", "k8s-app": "termination-handler" });
    let table = [
        (&set["metadata"]["labels"], labels.clone()),
        (&set["spec"]["selector"]["matchLabels"], labels.clone()),
        (&set["spec"]["template"]["metadata"]["labels"], labels),
        (
            &set["spec"]["template"]["metadata"]["annotations"]["openshift.io/required-scc"],
            json!("machine-api-termination-handler"),
        ),
        (&set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], json!("10%")),
        (
            &pod["nodeSelector"],
            json!({ "machine.openshift.io/interruptible-instance": "", "kubernetes.io/os": "linux" }),
        ),
        (&pod["hostNetwork"], json!(true)),
        (&pod["serviceAccountName"], json!("machine-api-termination-handler")),
        (&pod["automountServiceAccountToken"], json!(false)),
        (&pod["tolerations"], json!([{ "effect": "NoSchedule", "operator": "Exists" }])),
        (&pod["volumes"][0]["hostPath"]["path"], json!("/var/lib/kubelet/kubeconfig")),
        (&pod["volumes"][1]["hostPath"]["path"], json!("/var/lib/kubelet/pki")),
        (&pod["containers"][0]["volumeMounts"][0]["readOnly"], json!(true)),
        (&pod["containers"][0]["volumeMounts"][1]["readOnly"], json!(true)),
        (&pod["containers"][0]["command"], json!(["machinist-operator"])),
        (
            &pod["containers"][0]["args"],
            json!([
                "termination-handler",
                "--node-name=$(NODE_NAME)",
                "--namespace=ns",
                "--poll-interval-seconds=5",
            ]),
        ),
    ];
    for (found, expected) in table {
        assert_eq!(*found, expected);
    }
}

#[test]
fn the_proxy_is_in_the_handlers_environment_and_leaves_it_again() {
    let names = |proxy: ProxySettings| -> Vec<String> {
        let set = termination_handler(&TerminationHandler { proxy, ..handler() });
        let environment = &set["spec"]["template"]["spec"]["containers"][0]["env"];
        let of = |entry: &Value| entry["name"].as_str().unwrap().to_owned();
        environment.as_array().unwrap().iter().map(of).collect()
    };
    assert_eq!(names(ProxySettings::default()), ["KUBECONFIG", "NODE_NAME"]);
    let proxy = ProxySettings {
        http: Some("http://p".to_owned()),
        https: Some("http://q".to_owned()),
        no_proxy: Some("a".to_owned()),
    };
    let all = ["KUBECONFIG", "NODE_NAME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
    assert_eq!(names(proxy.clone()), all);
    let before = termination_handler(&TerminationHandler { proxy, ..handler() });
    let kept = Kept::TerminationHandler;
    let object = Object { kept, stored: Some(before), wanted: wanted(kept) };
    let decision = decided(vec![object], &History::default());
    assert_eq!(decision.actions.len(), 1, "the environment has less in it now");
}

#[test]
fn what_is_missing_is_made_and_what_is_there_is_left_alone() {
    for kept in KEPT {
        let decision = decided(vec![of(kept, None)], &History::default());
        assert_eq!(decision.actions, [Action::Create { kept, object: wanted(kept) }]);
        let decision = decided(vec![of(kept, Some(stored(kept)))], &History::default());
        assert_eq!(decision.actions, [], "{kept}");
        let mut going = stored(kept);
        going["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z".into();
        going["spec"] = json!({});
        let decision = decided(vec![of(kept, Some(going))], &History::default());
        assert_eq!(decision.actions, [], "{kept} is made anew when it is gone");
    }
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            if !target[key].is_object() && value.is_object() {
                target[key] = json!({});
            }
            merge(&mut target[key], value);
        }
    }
}

#[test]
fn what_was_changed_is_put_right_and_what_others_added_is_kept() {
    let webhooks = "/webhooks/0/failurePolicy";
    let table = [
        (Kept::MutatingWebhooks, webhooks, json!("Fail")),
        (Kept::ValidatingWebhooks, "/webhooks/1/admissionReviewVersions", json!(["v1beta1"])),
        (
            Kept::ValidatingWebhooks,
            "/webhooks/0/objectSelector",
            json!({ "matchLabels": { "a": "b" } }),
        ),
        (Kept::ValidatingWebhooks, "/webhooks/0/timeoutSeconds", json!(1)),
        (Kept::ValidatingWebhooks, "/webhooks", json!([])),
        (Kept::MutatingWebhooks, "/metadata/annotations", json!({ "theirs": "kept" })),
        (Kept::TerminationHandler, "/spec/template/spec/containers/0/image", json!("other")),
        (Kept::TerminationHandler, "/spec/template/spec/nodeSelector/nowhere", json!("x")),
        (Kept::TerminationHandler, "/spec/template/spec/affinity", json!({ "nodeAffinity": {} })),
        (Kept::TerminationHandler, "/metadata/labels", json!({ "api": "other" })),
        (Kept::TerminationCheck, "/spec/maxUnhealthy", json!("0%")),
        (Kept::TerminationCheck, "/spec/selector", json!({})),
    ];
    for (kept, path, value) in table {
        let mut changed = stored(kept);
        let (parent, field) = path.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[field] = value;
        let decision = decided(vec![of(kept, Some(changed.clone()))], &History::default());
        let [Action::Restore { patch, resource_version, .. }] = decision.actions.as_slice() else {
            panic!("{kept} {path}: {:?}", decision.actions)
        };
        assert_eq!(resource_version, "7");
        merge(&mut changed, patch);
        assert_eq!(changed, stored(kept), "{path}");
    }
}

#[test]
fn a_bundle_that_somebody_injected_is_kept_for_each_webhook() {
    for kept in [Kept::MutatingWebhooks, Kept::ValidatingWebhooks] {
        let mut injected = stored(kept);
        injected["webhooks"][0]["clientConfig"]["caBundle"] = "b25l".into();
        injected["webhooks"][1]["clientConfig"]["caBundle"] = "dHdv".into();
        let decision = decided(vec![of(kept, Some(injected.clone()))], &History::default());
        assert_eq!(decision.actions, []);
        let mut changed = injected.clone();
        changed["webhooks"][1]["sideEffects"] = "Some".into();
        let decision = decided(vec![of(kept, Some(changed.clone()))], &History::default());
        let [Action::Restore { patch, .. }] = decision.actions.as_slice() else { panic!() };
        merge(&mut changed, patch);
        assert_eq!(changed, injected);
        let mut own = of(kept, Some(injected));
        for webhook in own.wanted["webhooks"].as_array_mut().unwrap() {
            webhook["clientConfig"]["caBundle"] = "b3Vycw==".into();
        }
        let decision = decided(vec![own], &History::default());
        let [Action::Restore { patch, .. }] = decision.actions.as_slice() else { panic!() };
        assert_eq!(patch["webhooks"][1]["clientConfig"]["caBundle"], "b3Vycw==");
    }
}
