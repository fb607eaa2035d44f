//! What is filled in? A field that says something is never changed, but for a version without its `v`.

use machinist_api::cluster_api::names::{annotation, label, strategy};
use serde_json::{Value, json};

use super::Kind;
use crate::cluster_api::naming;

/// How long the deletion of a Node is tried.
const NODE_DELETION_SECONDS: i32 = 10;
/// How long a machine may be without a Node.
const NODE_STARTUP_SECONDS: i32 = 600;

const SELECTED: [&str; 3] = ["spec", "selector", "matchLabels"];
const TEMPLATE_LABELS: [&str; 4] = ["spec", "template", "metadata", "labels"];
const STRATEGY: [&str; 3] = ["spec", "rollout", "strategy"];

/// The object with its defaults. `old` is what was stored before an update.
pub fn fill_in(kind: Kind, object: &Value, old: Option<&Value>) -> Value {
    let mut object = object.clone();
    match kind {
        Kind::Machine => {
            name_cluster(&mut object);
            with_v(&mut object, "/spec/version");
            let path = ["spec", "deletion", "nodeDeletionTimeoutSeconds"];
            set(&mut object, &path, json!(NODE_DELETION_SECONDS));
        }
        Kind::MachineSet => {
            name_cluster(&mut object);
            replicas(&mut object, old);
            selector(&mut object, label::SET_NAME);
            with_v(&mut object, "/spec/template/spec/version");
        }
        Kind::MachineDeployment => {
            name_cluster(&mut object);
            replicas(&mut object, old);
            selector(&mut object, label::DEPLOYMENT_NAME);
            let cluster = text(&object, "/spec/clusterName").unwrap_or_default().to_owned();
            set(&mut object, &within(&SELECTED, &[label::CLUSTER_NAME]), json!(cluster));
            set(&mut object, &within(&TEMPLATE_LABELS, &[label::CLUSTER_NAME]), json!(cluster));
            set(&mut object, &within(&STRATEGY, &["type"]), json!(strategy::ROLLING_UPDATE));
            if text(&object, "/spec/rollout/strategy/type") == Some(strategy::ROLLING_UPDATE) {
                set(&mut object, &within(&STRATEGY, &["rollingUpdate", "maxSurge"]), json!(1));
                set(
                    &mut object,
                    &within(&STRATEGY, &["rollingUpdate", "maxUnavailable"]),
                    json!(0),
                );
            }
            with_v(&mut object, "/spec/template/spec/version");
        }
        Kind::MachineHealthCheck => {
            name_cluster(&mut object);
            let path = ["spec", "checks", "nodeStartupTimeoutSeconds"];
            set(&mut object, &path, json!(NODE_STARTUP_SECONDS));
        }
        Kind::MachineDrainRule => {}
    }
    object
}

fn within<'a>(outer: &[&'a str], inner: &[&'a str]) -> Vec<&'a str> {
    outer.iter().chain(inner).copied().collect()
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Sets a field that is absent, and makes the objects around it.
fn set(object: &mut Value, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else { return };
    if object.is_null() {
        *object = json!({});
    }
    let Some(map) = object.as_object_mut() else { return };
    let place = map.entry(*first).or_insert(Value::Null);
    if !rest.is_empty() {
        set(place, rest, value);
    } else if place.is_null() {
        *place = value;
    }
}

fn name_cluster(object: &mut Value) {
    if let Some(cluster) = text(object, "/spec/clusterName").map(str::to_owned) {
        set(object, &["metadata", "labels", label::CLUSTER_NAME], json!(cluster));
    }
}

fn with_v(object: &mut Value, pointer: &str) {
    let version = text(object, pointer).filter(|version| !version.starts_with('v'));
    if let Some(version) = version.map(|version| format!("v{version}"))
        && let Some(place) = object.pointer_mut(pointer)
    {
        *place = json!(version);
    }
}

/// An empty selector selects by the name of the object.
fn selector(object: &mut Value, key: &str) {
    let is_empty = |pointer: &str| match object.pointer(pointer) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        _ => true,
    };
    let is_bare =
        is_empty("/spec/selector/matchLabels") && is_empty("/spec/selector/matchExpressions");
    let name = text(object, "/metadata/name").map(naming::label_value);
    if let (true, Some(name)) = (is_bare, name) {
        set(object, &within(&SELECTED, &[key]), json!(name));
        set(object, &within(&TEMPLATE_LABELS, &[key]), json!(name));
    }
}

/// One, or what the autoscaler's bounds say: within them the old size is kept.
fn replicas(object: &mut Value, old: Option<&Value>) {
    let size = |object: &Value| object.pointer("/spec/replicas").and_then(Value::as_i64);
    if size(object).is_some() {
        return;
    }
    let bound = |key: &str| {
        let annotations = object.pointer("/metadata/annotations")?;
        annotations.get(key)?.as_str()?.parse::<i64>().ok()
    };
    let bounds = bound(annotation::AUTOSCALER_MIN_SIZE).zip(bound(annotation::AUTOSCALER_MAX_SIZE));
    let wanted = match (bounds, old.and_then(size)) {
        (None, old) => old.unwrap_or(1),
        (Some((least, _)), None) => least,
        (Some((least, most)), Some(old)) => old.clamp(least, most.max(least)),
    };
    set(object, &["spec", "replicas"], json!(wanted));
}
