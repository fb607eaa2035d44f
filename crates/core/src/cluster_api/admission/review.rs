//! How is a question of the API server about an object of Cluster API read, and its answer written?
//!
//! The bytes of an `admission.k8s.io/v1` AdmissionReview, or of an `apiextensions.k8s.io/v1` ConversionReview.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::{Kind, defaults::fill_in, rules::faults};
use crate::{
    admission::fault,
    cluster_api::conversion::{Served, convert},
};

/// What is wanted to know: what to fill in, or whether to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Default,
    Validate,
}

/// Why bytes are no question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request is no {kind}: {problem}")]
pub struct NoReview {
    kind: &'static str,
    problem: String,
}

/// Answers a question about an object that is written.
pub fn answer(kind: Kind, purpose: Purpose, body: &[u8]) -> Result<Value, NoReview> {
    let (review, request, uid) = read("AdmissionReview", body)?;
    let object = request.get("object").filter(|object| object.is_object());
    let old = request.get("oldObject").filter(|object| object.is_object());
    let is_asked = matches!(request["operation"].as_str(), Some("CREATE" | "UPDATE"))
        && request["subResource"].as_str().is_none_or(str::is_empty);
    let mut response = json!({ "uid": uid, "allowed": true });
    if let (true, Some(object)) = (is_asked, object) {
        match purpose {
            Purpose::Default => {
                let patch = patch(object, &fill_in(kind, object, old));
                if let Ok(bytes) = serde_json::to_vec(&patch)
                    && !patch.is_empty()
                {
                    response["patchType"] = json!("JSONPatch");
                    response["patch"] = json!(ByteString(bytes));
                }
            }
            // What goes is not held up by what is wrong with it: its finalizers must come off.
            Purpose::Validate if !object["metadata"]["deletionTimestamp"].is_null() => {}
            Purpose::Validate => {
                let faults = faults(kind, object, old);
                if !faults.is_empty() {
                    response["allowed"] = json!(false);
                    response["status"] = json!({
                        "status": "Failure", "code": 422, "reason": "Invalid",
                        "message": fault::message(&faults),
                    });
                }
            }
        }
    }
    Ok(
        json!({ "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response }),
    )
}

/// Answers a question for objects in another version. One that cannot be carried over fails them all, as the API server
/// wants it.
pub fn converted(body: &[u8], served: Served<'_>) -> Result<Value, NoReview> {
    let (review, request, uid) = read("ConversionReview", body)?;
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().map_or(&[][..], Vec::as_slice);
    let all: Result<Vec<Value>, _> =
        objects.iter().map(|object| convert(object, wanted, served)).collect();
    let response = match all {
        Ok(objects) => json!({
            "uid": uid, "convertedObjects": objects, "result": { "status": "Success" },
        }),
        Err(error) => json!({
            "uid": uid, "result": { "status": "Failure", "message": error.to_string() },
        }),
    };
    Ok(
        json!({ "apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response }),
    )
}

fn read(kind: &'static str, body: &[u8]) -> Result<(Value, Value, Value), NoReview> {
    let refuse = |problem: String| NoReview { kind, problem: fault::cut(&problem) };
    let mut review: Value =
        serde_json::from_slice(body).map_err(|error| refuse(error.to_string()))?;
    if review["kind"] != kind {
        return Err(refuse(format!("its kind is {}", review["kind"])));
    }
    let request = review["request"].take();
    let uid = request["uid"].clone();
    if uid.as_str().is_none_or(str::is_empty) {
        return Err(refuse("request.uid: Required value".to_owned()));
    }
    Ok((review, request, uid))
}

/// The steps of a JSON patch (RFC 6902): whole parts, which is all that was filled in.
fn patch(before: &Value, after: &Value) -> Vec<Value> {
    let mut steps = Vec::new();
    let mut step = |path: &str| {
        let new = after.pointer(path);
        if let Some(new) = new.filter(|new| before.pointer(path) != Some(new)) {
            steps.push(json!({ "op": "add", "path": path, "value": new }));
        }
    };
    step("/metadata/labels");
    step("/spec");
    steps
}
