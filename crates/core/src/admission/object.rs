//! What the rules read of a Machine or a MachineSet, and how an object that cannot be read at all
//! is told from one that can.

use std::collections::BTreeMap;

use machinist_api::names::label;
use serde_json::{Map, Value, value::RawValue};

use super::{
    fault::{cut, required},
    shape::Shape,
};
use crate::decision::FieldError;

/// A kind of object that there are rules for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Machine,
    MachineSet,
}

/// Whether a Machine belongs to the control plane; the members of a MachineSet never count as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    ControlPlane,
    Other,
}

/// The path that every message about a providerSpec begins with, whichever object it is in.
pub const PROVIDER_SPEC: &str = "providerSpec";

const METADATA: Shape = Shape::Open(&[
    ("name", Shape::Text),
    ("namespace", Shape::Text),
    ("labels", Shape::TextMap),
    ("annotations", Shape::TextMap),
    ("finalizers", Shape::List(&Shape::Text)),
    ("deletionTimestamp", Shape::Text),
]);

const HOOKS: Shape = Shape::List(&Shape::Open(&[("name", Shape::Text), ("owner", Shape::Text)]));

const MACHINE_SPEC: Shape = Shape::Open(&[
    ("lifecycleHooks", Shape::Open(&[("preDrain", HOOKS), ("preTerminate", HOOKS)])),
    ("providerSpec", Shape::Open(&[("value", Shape::Anything)])),
]);

const MACHINE: Shape = Shape::Open(&[("metadata", METADATA), ("spec", MACHINE_SPEC)]);

const SELECTOR: Shape = Shape::Open(&[
    ("matchLabels", Shape::TextMap),
    (
        "matchExpressions",
        Shape::List(&Shape::Open(&[
            ("key", Shape::Text),
            ("operator", Shape::Text),
            ("values", Shape::List(&Shape::Text)),
        ])),
    ),
]);

const MACHINE_SET: Shape = Shape::Open(&[
    ("metadata", METADATA),
    (
        "spec",
        Shape::Open(&[
            ("replicas", Shape::Integer32),
            ("deletePolicy", Shape::Text),
            ("selector", SELECTOR),
            (
                "template",
                Shape::Open(&[
                    ("metadata", Shape::Open(&[("labels", Shape::TextMap)])),
                    ("spec", MACHINE_SPEC),
                ]),
            ),
        ]),
    ),
]);

impl Kind {
    pub(super) fn shape(self) -> &'static Shape {
        match self {
            Self::Machine => &MACHINE,
            Self::MachineSet => &MACHINE_SET,
        }
    }

    pub(super) fn provider_spec_path(self) -> &'static [&'static str] {
        match self {
            Self::Machine => &["spec", "providerSpec", "value"],
            Self::MachineSet => &["spec", "template", "spec", "providerSpec", "value"],
        }
    }

    /// The provider's own part of an object.
    pub(super) fn provider_spec(self, object: &Value) -> Option<&Value> {
        at(object, self.provider_spec_path())
    }

    pub(super) fn role(self, object: &Value) -> Role {
        let is_master =
            |key| at(object, &["metadata", "labels", key]).is_some_and(|value| value == "master");
        match self {
            Self::Machine if is_master(label::MACHINE_ROLE) || is_master(label::MACHINE_TYPE) => {
                Role::ControlPlane
            }
            Self::Machine | Self::MachineSet => Role::Other,
        }
    }
}

/// The value at a path; null reads as absent.
pub(super) fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let found = path.iter().try_fold(object, |value, key| value.get(*key));
    found.filter(|value| !value.is_null())
}

/// A text that says something: absent, null and empty read the same.
pub(super) fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

pub(super) fn is_deleting(object: &Value) -> bool {
    at(object, &["metadata", "deletionTimestamp"]).is_some()
}

/// The providerSpec as an object. Every provider wants one.
pub(super) fn provider_spec_object(
    value: Option<&Value>,
) -> Result<&Map<String, Value>, FieldError> {
    const PATH: &str = "providerSpec.value";
    match value {
        None => Err(required(PATH, "a value must be provided")),
        Some(Value::Object(map)) => Ok(map),
        Some(other) => Err(super::fault::invalid(PATH, other, "must be an object")),
    }
}

/// Reads an object. What cannot be read (nested too deeply, a number out of range) is named by its
/// path.
pub(super) fn read(raw: &RawValue) -> Result<Value, FieldError> {
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(value) => Err(super::fault::invalid("object", &value, "must be an object")),
        Err(error) => {
            // Without the position: the same fault must read the same in the stored object.
            let error = error.to_string();
            let cause = error.split(" at line ").next().unwrap_or_default();
            Err(FieldError::new(
                unreadable_path(raw),
                format!("Invalid value: cannot be read: {cause}"),
            ))
        }
    }
}

/// Descends into the field that cannot be read, as far as a person wants to know.
fn unreadable_path(raw: &RawValue) -> String {
    const STEPS_MAX: usize = 8;
    let mut path: Vec<String> = Vec::new();
    let mut rest = raw;
    while path.len() < STEPS_MAX {
        let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(rest.get()) else {
            break;
        };
        let is_unreadable = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).is_err();
        let Some((key, raw)) = fields.into_iter().find(|(_, raw)| is_unreadable(raw)) else {
            break;
        };
        path.push(cut(&key));
        rest = raw;
    }
    if path.is_empty() { "object".to_owned() } else { path.join(".") }
}
