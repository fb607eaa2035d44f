//! What does the server do with Kubernetes' own kinds that it does not do with others?
//!
//! Reading an object through its Rust type drops unknown fields, refuses wrong types and cuts times to
//! the precision that the API has. The defaults are those of the fields that somebody here reads.

use base64::{Engine, prelude::BASE64_STANDARD};
use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    certificates::v1::CertificateSigningRequest,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Event, Namespace, Node, Pod, Secret},
    policy::v1::PodDisruptionBudget,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{
    failure::Cause,
    kinds::Kind,
    object::{as_object, metadata_of, object_at, text_at},
};

/// Reads and writes the object through its type.
pub(super) fn normalise(kind: &Kind, value: Value) -> Result<Value, String> {
    let mut value = match kind.plural {
        "namespaces" => round_trip::<Namespace>(value),
        "nodes" => round_trip::<Node>(value),
        "pods" => round_trip::<Pod>(value),
        "secrets" => round_trip::<Secret>(value),
        "configmaps" => round_trip::<ConfigMap>(value),
        "events" => round_trip::<Event>(value),
        "poddisruptionbudgets" => round_trip::<PodDisruptionBudget>(value),
        "leases" => round_trip::<Lease>(value),
        "certificatesigningrequests" => round_trip::<CertificateSigningRequest>(value),
        "daemonsets" => round_trip::<DaemonSet>(value),
        "deployments" => round_trip::<Deployment>(value),
        "replicasets" => round_trip::<ReplicaSet>(value),
        "statefulsets" => round_trip::<StatefulSet>(value),
        _ => Ok(value),
    }?;
    drop_empty_lists(&mut value);
    fill_defaults(kind, &mut value);
    Ok(value)
}

fn round_trip<K: DeserializeOwned + Serialize>(value: Value) -> Result<Value, String> {
    let typed: K = serde_json::from_value(value).map_err(|error| error.to_string())?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

/// Go leaves out lists and maps that are empty; an empty struct stays.
fn drop_empty_lists(value: &mut Value) {
    const MAPS: [&str; 8] = [
        "labels",
        "annotations",
        "matchLabels",
        "nodeSelector",
        "data",
        "binaryData",
        "disruptedPods",
        "capacity",
    ];
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            drop_empty_lists(value);
            match value {
                Value::Array(items) => !items.is_empty(),
                Value::Object(inner) => !(inner.is_empty() && MAPS.contains(&name.as_str())),
                Value::Null => false,
                Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
            }
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_empty_lists),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill_defaults(kind: &Kind, value: &mut Value) {
    match kind.plural {
        "pods" => fill_pod(value),
        "nodes" => {
            object_at(value, "spec");
            let status = object_at(value, "status");
            default(status, "daemonEndpoints", json!({ "kubeletEndpoint": { "Port": 0 } }));
            default(status, "nodeInfo", empty_node_info());
        }
        "namespaces" => {
            let name = text_at(value, "/metadata/name").to_owned();
            object_at(value, "spec");
            let labels = metadata_of(value).entry("labels").or_insert_with(|| json!({}));
            as_object(labels).insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
        }
        "secrets" => fill_secret(value),
        "poddisruptionbudgets" => {
            object_at(value, "spec");
            let status = object_at(value, "status");
            for field in ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"]
            {
                default(status, field, json!(0));
            }
        }
        "leases" => {
            object_at(value, "spec");
        }
        "certificatesigningrequests" => {
            object_at(value, "status");
        }
        _ => {}
    }
}

fn default(fields: &mut Map<String, Value>, name: &str, value: Value) {
    fields.entry(name).or_insert(value);
}

fn empty_node_info() -> Value {
    json!({
        "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "",
        "containerRuntimeVersion": "", "kubeletVersion": "", "kubeProxyVersion": "",
        "operatingSystem": "", "architecture": "",
    })
}

fn fill_pod(value: &mut Value) {
    object_at(value, "status");
    let spec = object_at(value, "spec");
    default(spec, "restartPolicy", json!("Always"));
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "schedulerName", json!("default-scheduler"));
    default(spec, "securityContext", json!({}));
    default(spec, "terminationGracePeriodSeconds", json!(30));
    default(spec, "enableServiceLinks", json!(true));
    for field in ["containers", "initContainers"] {
        for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            let container = as_object(container);
            default(container, "resources", json!({}));
            default(container, "terminationMessagePath", json!("/dev/termination-log"));
            default(container, "terminationMessagePolicy", json!("File"));
            let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
            let name = image.rsplit('/').next().unwrap_or_default();
            let fixed = name.contains('@')
                || name.split_once(':').is_some_and(|(_, version)| version != "latest");
            let policy = if fixed { "IfNotPresent" } else { "Always" };
            default(container, "imagePullPolicy", json!(policy));
        }
    }
}

fn fill_secret(value: &mut Value) {
    let fields = as_object(value);
    default(fields, "type", json!("Opaque"));
    let Some(Value::Object(texts)) = fields.remove("stringData") else { return };
    let data = object_at(value, "data");
    for (name, text) in texts {
        let encoded = BASE64_STANDARD.encode(text.as_str().unwrap_or_default());
        data.insert(name, Value::from(encoded));
    }
}

/// What the server adds to a new object, and what it takes away.
pub(super) fn prepare_create(kind: &Kind, value: &mut Value) {
    match kind.plural {
        "pods" => {
            let spec = object_at(value, "spec");
            // What the admission of a cluster as installed adds.
            default(spec, "serviceAccountName", json!("default"));
            let account = spec.get("serviceAccountName").cloned().unwrap_or_default();
            default(spec, "serviceAccount", account);
            default(spec, "priority", json!(0));
            default(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
            tolerate_for_five_minutes(spec);
            let quality = quality_of_service(spec);
            as_object(value)
                .insert("status".to_owned(), json!({ "phase": "Pending", "qosClass": quality }));
        }
        "nodes" => {
            // Until the node lifecycle controller has seen it Ready.
            let taint = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
            let taints = object_at(value, "spec").entry("taints").or_insert_with(|| json!([]));
            if let Some(taints) = taints.as_array_mut()
                && !taints.contains(&taint)
            {
                taints.push(taint);
            }
        }
        "namespaces" => {
            let finalizers =
                object_at(value, "spec").entry("finalizers").or_insert_with(|| json!([]));
            if let Some(finalizers) = finalizers.as_array_mut()
                && !finalizers.contains(&json!("kubernetes"))
            {
                finalizers.push(json!("kubernetes"));
            }
            as_object(value).insert("status".to_owned(), json!({ "phase": "Active" }));
        }
        "poddisruptionbudgets" => {
            as_object(value).remove("status");
            fill_defaults(kind, value);
        }
        _ => {}
    }
}

fn tolerate_for_five_minutes(spec: &mut Map<String, Value>) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|one| {
            let effect = text_at(one, "/effect");
            let own = text_at(one, "/key");
            (own.is_empty() || own == key) && (effect.is_empty() || effect == "NoExecute")
        });
        if !tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}

fn quality_of_service(spec: &Map<String, Value>) -> &'static str {
    let containers = spec.get("containers").and_then(Value::as_array);
    let has_resources = containers.into_iter().flatten().any(|container| {
        let resources = container.get("resources").and_then(Value::as_object);
        resources.is_some_and(|resources| !resources.is_empty())
    });
    if has_resources { "Burstable" } else { "BestEffort" }
}

/// What is wrong with an object, as far as somebody here could get it wrong.
pub(super) fn check(kind: &Kind, value: &Value) -> Vec<Cause> {
    if kind.plural != "events" {
        return Vec::new();
    }
    let own = text_at(value, "/metadata/namespace");
    let involved = text_at(value, "/involvedObject/namespace");
    let fits = if involved.is_empty() {
        matches!(own, "" | "default" | "kube-system")
    } else {
        involved == own
    };
    if fits {
        return Vec::new();
    }
    let detail = "does not match event.namespace";
    vec![Cause::invalid("involvedObject.namespace", &json!(involved), detail)]
}

/// What may not change in an update of the object itself.
pub(super) fn check_update(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    match kind.plural {
        "pods" => check_pod_update(old, new),
        "nodes" => check_node_update(old, new),
        _ => Vec::new(),
    }
}

fn check_pod_update(old: &Value, new: &Value) -> Vec<Cause> {
    let fixed = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        let fields = as_object(&mut spec);
        for field in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"] {
            fields.remove(field);
        }
        for field in ["containers", "initContainers"] {
            for container in
                fields.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
            {
                as_object(container).remove("image");
            }
        }
        spec
    };
    if fixed(old) == fixed(new) {
        return Vec::new();
    }
    vec![Cause::forbidden(
        "spec",
        "pod updates may not change fields other than `spec.containers[*].image`,\
         `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
         additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be \
         set to 1 if it was previously negative)",
    )]
}

fn check_node_update(old: &Value, new: &Value) -> Vec<Cause> {
    let before = text_at(old, "/spec/providerID");
    if before.is_empty() || before == text_at(new, "/spec/providerID") {
        return Vec::new();
    }
    vec![Cause::forbidden(
        "spec.providerID",
        "node updates may not change providerID except from \"\" to valid",
    )]
}

const EVENT_NAMES: [(&str, &str); 8] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("apiVersion", "apiVersion"),
];

/// An Event of `v1` in the words of `events.k8s.io/v1`.
pub(super) fn show_event(stored: &Value) -> Value {
    let mut shown = stored.clone();
    rename(&mut shown, |stored, shown| (stored, shown));
    as_object(&mut shown).insert("apiVersion".to_owned(), json!("events.k8s.io/v1"));
    shown
}

/// An Event of `events.k8s.io/v1` in the words of `v1`.
pub(super) fn store_event(mut shown: Value) -> Value {
    rename(&mut shown, |stored, shown| (shown, stored));
    as_object(&mut shown).insert("apiVersion".to_owned(), json!("v1"));
    shown
}

fn rename(
    value: &mut Value,
    direction: impl Fn(&'static str, &'static str) -> (&'static str, &'static str),
) {
    let fields = as_object(value);
    for (stored, shown) in EVENT_NAMES {
        let (from, to) = direction(stored, shown);
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}
