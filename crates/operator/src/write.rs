//! How objects are written: by merge patches that carry the uid, and the resourceVersion wherever
//! the write decides something (Rule 3). Nothing is written that is already so (Rule 11).

use std::fmt::Debug;

use kube::{
    Api, Resource,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use machinist_core::merge_patch;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Who we are in `managedFields`.
const FIELD_MANAGER: &str = "machinist-operator";
const APPROVAL_MANAGER: &str = "machinist-operator-approval";

/// What a write must find unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The object as it was observed.
    Observed,
    /// The same object, whatever happened to it: for recording an effect that has happened, and for
    /// what is right whatever else the object holds.
    SameObject,
}

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{what} was changed by somebody else meanwhile")]
    Conflict { what: String },
    #[error("{what} is gone")]
    Gone { what: String },
    #[error("failed to write {what}")]
    Failed {
        what: String,
        #[source]
        source: Box<kube::Error>,
    },
}

impl WriteError {
    pub fn of(what: String, error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 409 => Self::Conflict { what },
            kube::Error::Api(status) if status.code == 404 => Self::Gone { what },
            // Another object of that name: the API server calls its uid immutable.
            kube::Error::Api(status)
                if status.code == 422 && status.message.contains("metadata.uid") =>
            {
                Self::Gone { what }
            }
            _ => Self::Failed { what, source: Box::new(error) },
        }
    }

    /// Whether a newer version of the object is on its way through the watch.
    pub fn is_superseded(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::Gone { .. })
    }
}

/// How often a record is tried again while others write the same object.
const RECORDING_ATTEMPTS: usize = 10;

/// Patches the status from what is stored to what it shall be; `None` when they are equal.
///
/// For the status of a custom resource the API server does not look at a uid in the patch, so the
/// resourceVersion is always carried. Where the same object is all that matters, a conflict is
/// followed by a look at whose version came first.
pub async fn status<K, S>(
    api: &Api<K>,
    object: &K,
    stored: Option<&S>,
    wanted: &S,
    precondition: Precondition,
) -> Result<Option<K>, WriteError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
    S: Serialize,
{
    let what = format!("the status of {}", name_of(object));
    let before = stored.map_or(Value::Null, to_value);
    let before = if before.is_null() { json!({}) } else { before };
    let wanted = to_value(wanted);
    let Some(mut difference) = merge_patch::between(&before, &wanted) else {
        return Ok(None);
    };
    let name = object.meta().name.clone().unwrap_or_default();
    let mut target = object.clone();
    for _ in 0..RECORDING_ATTEMPTS {
        let patch =
            with_precondition(&target, json!({ "status": difference }), Precondition::Observed);
        let answer = api
            .patch_status(&name, &parameters(), &Patch::Merge(&patch))
            .await
            .map_err(|error| WriteError::of(what.clone(), error));
        match answer {
            Ok(written) => return Ok(Some(written)),
            Err(WriteError::Conflict { .. }) if precondition == Precondition::SameObject => {}
            Err(error) => return Err(error),
        }
        let current = api
            .get_opt(&name)
            .await
            .map_err(|error| WriteError::of(what.clone(), error))?
            .filter(|current| current.meta().uid == object.meta().uid);
        target = current.ok_or_else(|| WriteError::Gone { what: what.clone() })?;
        if let Some(conditions) = difference.get_mut("conditions") {
            let stored = to_value(&target)["status"].take();
            *conditions = Value::Array(merge_patch::conditions_onto(
                conditions_of(&before),
                conditions_of(&wanted),
                conditions_of(&stored),
            ));
        }
    }
    Err(WriteError::Conflict { what })
}

fn conditions_of(status: &Value) -> &[Value] {
    status.get("conditions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Patches the object itself with a merge patch.
pub async fn object<K>(
    api: &Api<K>,
    object: &K,
    patch: Value,
    precondition: Precondition,
) -> Result<K, WriteError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let patch = with_precondition(object, patch, precondition);
    let name = object.meta().name.clone().unwrap_or_default();
    api.patch(&name, &parameters(), &Patch::Merge(&patch))
        .await
        .map_err(|error| WriteError::of(name_of(object), error))
}

/// Patches an object of a kind that is known only at run time with a merge patch.
pub async fn external(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    patch: Value,
    precondition: Precondition,
) -> Result<DynamicObject, WriteError> {
    let patch = with_precondition(object, patch, precondition);
    let metadata = &object.metadata;
    let name = metadata.name.clone().unwrap_or_default();
    api.patch(&name, &parameters(), &Patch::Merge(&patch)).await.map_err(|error| {
        let kind = object.types.as_ref().map_or("object", |types| types.kind.as_str());
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        WriteError::of(format!("{kind} {namespace}/{name}"), error)
    })
}

/// Sets one annotation of the object of this uid, at this version where one is given.
pub async fn annotation<K>(
    api: &Api<K>,
    name: &str,
    uid: &str,
    resource_version: Option<&str>,
    key: &str,
    value: &str,
) -> Result<K, WriteError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let mut patch = json!({ "metadata": { "uid": uid, "annotations": { key: value } } });
    if let Some(version) = resource_version {
        patch["metadata"]["resourceVersion"] = json!(version);
    }
    api.patch(name, &parameters(), &Patch::Merge(&patch))
        .await
        .map_err(|error| WriteError::of(format!("{} {name}", K::kind(&())), error))
}

/// Patches an object as it was seen: of this uid, at this version.
pub async fn at<K>(
    api: &Api<K>,
    name: &str,
    uid: &str,
    resource_version: &str,
    mut patch: Value,
) -> Result<K, WriteError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    patch["metadata"]["uid"] = json!(uid);
    patch["metadata"]["resourceVersion"] = json!(resource_version);
    api.patch(name, &parameters(), &Patch::Merge(&patch))
        .await
        .map_err(|error| WriteError::of(format!("{} {name}", K::kind(&())), error))
}

/// What every patch of ours is sent with.
pub fn parameters() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER)
}

/// What every creation of ours is sent with.
pub fn creation() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() }
}

/// What the patches are sent with that belong to the approval of a certificate. Elsewhere that is the work
/// of a program of its own, so managed fields and audit logs tell them from the life of a Machine.
pub fn approval_parameters() -> PatchParams {
    PatchParams::apply(APPROVAL_MANAGER)
}

/// Kind, namespace and name, for messages.
pub fn name_of<K: Resource<DynamicType = ()>>(object: &K) -> String {
    let metadata = object.meta();
    let name = metadata.name.as_deref().unwrap_or_default();
    match metadata.namespace.as_deref() {
        Some(namespace) => format!("{} {namespace}/{name}", K::kind(&())),
        None => format!("{} {name}", K::kind(&())),
    }
}

fn with_precondition<K: Resource>(object: &K, mut patch: Value, condition: Precondition) -> Value {
    let metadata = object.meta();
    if let Some(patch) = patch.as_object_mut() {
        let entry = patch.entry("metadata").or_insert_with(|| json!({}));
        if let Some(target) = entry.as_object_mut() {
            target.insert("uid".to_owned(), json!(metadata.uid));
            if condition == Precondition::Observed {
                target.insert("resourceVersion".to_owned(), json!(metadata.resource_version));
            }
        }
    }
    patch
}

/// Serialising our own types cannot fail; a value that does would read as no change.
fn to_value<S: Serialize>(value: &S) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests;
