//! What of an object is kept in a dump? What Machinist judges by, and nothing that could be secret.
//!
//! Secrets are never read. Of pods little is kept: environment, arguments, commands and volumes may hold
//! anything. Of annotations those of known owners are kept. What is called as a secret is taken out wherever
//! it stands.

use machinist_core::overview::timeline;
use serde_json::{Map, Value, json};

/// Owners of annotations that are kept: what we, Kubernetes' autoscaler and the projects we know judge by.
const ANNOTATIONS: [&str; 7] = [
    "machinist.dev",
    "openshift.io",
    "cluster.x-k8s.io",
    "cluster-autoscaler.kubernetes.io",
    "node.alpha.kubernetes.io",
    "karpenter.sh",
    "metal3.io",
];

/// Keys whose values are taken out, whatever they hold; in lower case, without what is between words.
const SECRETS: [&str; 12] = [
    "userdata",
    "customdata",
    "password",
    "passphrase",
    "token",
    "secretkey",
    "secretaccesskey",
    "accesskey",
    "accesskeyid",
    "privatekey",
    "sshkey",
    "credentials",
];

/// The object as it is written; none for one that is not written at all.
pub(super) fn kept(mut object: Value) -> Option<Value> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    metadata(object.get_mut("metadata"));
    match kind.as_str() {
        // Nobody asks for them. Should one come in, it goes no further.
        "Secret" | "ConfigMap" => return None,
        "Event" if !is_of_fleet(&object) => return None,
        "Pod" => object = pod(&object),
        "Node" => {
            if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
                status.retain(|key, _| {
                    ["addresses", "allocatable", "capacity", "conditions", "nodeInfo"]
                        .contains(&key.as_str())
                });
            }
        }
        _ => {}
    }
    without_secrets(&mut object);
    Some(object)
}

fn is_of_fleet(event: &Value) -> bool {
    let kind = event.pointer("/involvedObject/kind").and_then(Value::as_str);
    kind.is_some_and(timeline::is_of_fleet)
}

fn metadata(metadata: Option<&mut Value>) {
    let Some(metadata) = metadata.and_then(Value::as_object_mut) else { return };
    metadata.remove("managedFields");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| {
            let owner = key.split_once('/').map_or("", |(owner, _)| owner);
            ANNOTATIONS.iter().any(|known| {
                let before = owner.strip_suffix(*known);
                before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
            })
        });
    }
}

/// Where a pod runs, how it leaves, and whose it is.
fn pod(pod: &Value) -> Value {
    let part = |pointer: &str, keys: &[&str]| -> Map<String, Value> {
        let fields = pod.pointer(pointer).and_then(Value::as_object);
        let kept = fields.into_iter().flatten().filter(|(key, _)| keys.contains(&key.as_str()));
        kept.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let mut spec = part(
        "/spec",
        &[
            "nodeName",
            "priority",
            "priorityClassName",
            "terminationGracePeriodSeconds",
            "tolerations",
        ],
    );
    let names = |list: &str| -> Value {
        let all = pod.pointer(list).and_then(Value::as_array);
        all.into_iter().flatten().map(|one| json!({ "name": one["name"] })).collect()
    };
    spec.insert("containers".to_owned(), names("/spec/containers"));
    spec.insert("volumes".to_owned(), volumes(pod));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": pod["metadata"],
        "spec": spec,
        "status": part("/status", &["conditions", "phase", "startTime"]),
    })
}

/// Only that there is local storage matters to a drain.
fn volumes(pod: &Value) -> Value {
    let all = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let local = all.into_iter().flatten().filter(|volume| volume.get("emptyDir").is_some());
    local.map(|volume| json!({ "name": volume["name"], "emptyDir": {} })).collect()
}

fn without_secrets(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, value| {
                let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
                // A reference to a Secret has a name and no content.
                let is_reference = value.is_object();
                is_reference || !SECRETS.contains(&plain.to_ascii_lowercase().as_str())
            });
            fields.values_mut().for_each(without_secrets);
        }
        Value::Array(items) => items.iter_mut().for_each(without_secrets),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
