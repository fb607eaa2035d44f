//! What does a person want changed, and what is written for it?
//!
//! The command line and the page ask here, and write with the person's own rights. Where nothing is to be
//! written, that is said.

pub mod approve;
pub mod pause;
pub mod postpone;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use machinist_api::names::annotation::OWNER_SURGE;
use serde_json::{Value, json};

use crate::cluster_api::maintained;

/// What is written, and what is said.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// None where it is so already.
    pub write: Option<Write>,
    pub sentence: String,
}

/// A merge patch of one object, for the one that was looked at and no other of its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub on: Object,
    /// Empty for what has no namespace.
    pub namespace: String,
    pub name: String,
    pub patch: Value,
}

/// The kind of what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    Maintenance,
    Machine,
    Pool,
    Policy,
    Namespace,
    /// Those of Cluster API.
    ClusterApiMachine,
    ClusterApiSet,
    ClusterApiDeployment,
}

/// Why nothing can be done, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Refusal {
    pub what: String,
    pub hint: String,
    pub cause: Cause,
}

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There is no such object.
    NotFound,
    /// What is asked for makes no sense.
    Invalid,
    /// It makes no sense now.
    NotNow,
}

impl Refusal {
    pub(super) fn not_found(kind: &str, name: &str, namespace: &str) -> Self {
        Self {
            what: format!("there is no {kind} {name} in namespace {namespace}"),
            hint: "`machinist status` lists them; choose a namespace with -n".to_owned(),
            cause: Cause::NotFound,
        }
    }

    pub(super) fn not_now(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into(), cause: Cause::NotNow }
    }

    pub(super) fn invalid(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into(), cause: Cause::Invalid }
    }
}

/// A patch that sets an annotation, or removes it, for an object with this uid.
fn annotation_patch(uid: Option<&str>, key: &str, value: Option<&str>) -> Value {
    json!({ "metadata": { "uid": uid, "annotations": { key: value } } })
}

/// Sets or removes an annotation of an object.
fn annotate(on: Object, metadata: &ObjectMeta, key: &str, value: Option<&str>) -> Write {
    let patch = annotation_patch(metadata.uid.as_deref(), key, value);
    let name = metadata.name.clone().unwrap_or_default();
    let namespace = metadata.namespace.clone().unwrap_or_default();
    let Some((namespace, name)) = maintained::parts(&name) else {
        return Write { on, namespace, name, patch };
    };
    let annotations = metadata.annotations.as_ref();
    let is_deployment = annotations.is_some_and(|all| all.contains_key(OWNER_SURGE));
    let on = match on {
        Object::Machine => Object::ClusterApiMachine,
        Object::Pool if is_deployment => Object::ClusterApiDeployment,
        Object::Pool => Object::ClusterApiSet,
        other => other,
    };
    Write { on, namespace: namespace.to_owned(), name: name.to_owned(), patch }
}
