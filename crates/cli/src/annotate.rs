//! How is an object changed at a person's request? One merge patch, for the object that was looked at
//! and no other of its name.

use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What `kubectl get -o yaml --show-managed-fields` shows as the writer.
const FIELD_MANAGER: &str = "machinist-cli";

/// Whether anything is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Real,
    /// The API server checks it and stores nothing.
    DryRun,
}

impl Effect {
    pub fn of(dry_run: bool) -> Self {
        if dry_run { Self::DryRun } else { Self::Real }
    }

    /// What is put behind a sentence about it, as kubectl does.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Real => "",
            Self::DryRun => " (dry run)",
        }
    }
}

/// A patch that sets an annotation, or removes it, for an object with this uid.
pub fn annotation(uid: Option<&str>, key: &str, value: Option<&str>) -> Value {
    json!({ "metadata": { "uid": uid, "annotations": { key: value } } })
}

/// Sends a merge patch.
pub async fn patch<K>(
    api: &Api<K>,
    name: &str,
    patch: &Value,
    effect: Effect,
) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let parameters = PatchParams {
        dry_run: effect == Effect::DryRun,
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    api.patch(name, &parameters, &Patch::Merge(patch)).await.map(|_| ())
}
