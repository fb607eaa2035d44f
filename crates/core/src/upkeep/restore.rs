//! What must change of an object that is not as it should be. We own its content whole, and of its
//! metadata the labels and annotations that we set. A CA bundle that somebody put into a webhook is
//! kept, unless there is one of ours.

use serde_json::{Map, Value};

use super::observed::Kept;
use crate::merge_patch;

/// The merge patch from what is stored to what is wanted; none where they agree.
pub(super) fn difference(kept: Kept, stored: &Value, wanted: &Value) -> Option<Value> {
    let wanted = match kept {
        Kept::MutatingWebhooks | Kept::ValidatingWebhooks => with_bundles_of(stored, wanted),
        Kept::TerminationHandler | Kept::TerminationCheck => wanted.clone(),
    };
    merge_patch::between(&owned(stored, &wanted), &owned(&wanted, &wanted))
}

/// The part of an object that is ours.
pub(super) fn owned(object: &Value, wanted: &Value) -> Value {
    let empty = Map::new();
    let fields = wanted.as_object().unwrap_or(&empty);
    let mut ours = Map::new();
    for key in fields.keys().filter(|key| !matches!(key.as_str(), "apiVersion" | "kind" | "status"))
    {
        let Some(value) = object.get(key) else { continue };
        let value = match key.as_str() {
            "metadata" => owned_metadata(value, fields.get(key).unwrap_or(&Value::Null)),
            _ => value.clone(),
        };
        ours.insert(key.clone(), value);
    }
    Value::Object(ours)
}

fn owned_metadata(metadata: &Value, wanted: &Value) -> Value {
    let mut ours = Map::new();
    for field in ["labels", "annotations"] {
        let Some(wanted) = wanted.get(field).and_then(Value::as_object) else { continue };
        let present = metadata.get(field).and_then(Value::as_object);
        let entries: Map<String, Value> = wanted
            .keys()
            .filter_map(|key| Some((key.clone(), present?.get(key)?.clone())))
            .collect();
        ours.insert(field.to_owned(), Value::Object(entries));
    }
    Value::Object(ours)
}

fn with_bundles_of(stored: &Value, wanted: &Value) -> Value {
    let mut wanted = wanted.clone();
    let present = stored.get("webhooks").and_then(Value::as_array);
    let webhooks = wanted.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        let bundle = present
            .into_iter()
            .flatten()
            .find(|one| one.get("name") == webhook.get("name"))
            .and_then(|one| one.pointer("/clientConfig/caBundle"))
            .cloned();
        let config = webhook.get_mut("clientConfig").and_then(Value::as_object_mut);
        if let (Some(bundle), Some(config)) = (bundle, config) {
            config.entry("caBundle").or_insert(bundle);
        }
    }
    wanted
}
