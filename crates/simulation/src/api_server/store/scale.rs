//! How is the number of replicas read and set without touching anything else?

use serde_json::{Value, json};

use super::{Answer, Store, Turn, replace::apply_patch};
use crate::api_server::{
    failure::Failure,
    object::{Object, ObjectRef, object_at, text_at},
    request::{ApiRequest, Verb},
};

impl Store {
    pub(super) fn get_scale(&self, request: &ApiRequest) -> Result<Answer, Failure> {
        Ok(Answer::Value { code: 200, value: scale_of(self.scaled(request)?.as_ref()) })
    }

    pub(super) fn write_scale(
        &mut self,
        turn: &Turn<'_>,
        request: &ApiRequest,
    ) -> Result<Answer, Failure> {
        let existing = self.scaled(request)?;
        let scale = match request.verb {
            Verb::Update => request.body.clone(),
            _ => {
                let mut scale = scale_of(&existing);
                apply_patch(request, &mut scale)?;
                scale
            }
        };
        let mut value = existing.value().clone();
        let replicas = scale.pointer("/spec/replicas").cloned().unwrap_or_else(|| json!(0));
        object_at(&mut value, "spec").insert("replicas".to_owned(), replicas);
        let version = text_at(&scale, "/metadata/resourceVersion");
        // A scale without a version overwrites, even where the object itself may not be overwritten.
        if !version.is_empty() {
            object_at(&mut value, "metadata")
                .insert("resourceVersion".to_owned(), Value::from(version));
        }
        let object = self.replace(turn, request.kind, &existing, value)?;
        Ok(Answer::Value { code: 200, value: scale_of(&object) })
    }

    fn scaled(&self, request: &ApiRequest) -> Result<ObjectRef, Failure> {
        let found = self.get(request.kind, &request.namespace, &request.name);
        found.cloned().ok_or_else(|| Failure::not_found(request.kind.kind, &request.name))
    }
}

fn scale_of(object: &Object) -> Value {
    let value = object.value();
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": object.name(),
            "namespace": object.namespace(),
            "uid": object.uid(),
            "resourceVersion": text_at(value, "/metadata/resourceVersion"),
            "creationTimestamp": text_at(value, "/metadata/creationTimestamp"),
        },
        "spec": {},
        "status": { "replicas": number("/status/replicas") },
    });
    let wanted = number("/spec/replicas");
    if wanted != 0 {
        object_at(&mut scale, "spec").insert("replicas".to_owned(), json!(wanted));
    }
    // Cluster API's kinds name another field for it.
    let selectors = ["/status/labelSelector", "/status/selector"];
    let known = selectors.map(|pointer| text_at(value, pointer));
    if let Some(selector) = known.into_iter().find(|text| !text.is_empty()) {
        object_at(&mut scale, "status").insert("selector".to_owned(), json!(selector));
    }
    scale
}
