//! How does the server say no? With the Status objects, reasons and words of the real one.

use serde_json::{Map, Value, json};

use super::kinds::Kind;

/// A refusal, as a `metav1.Status`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: u16,
    /// Empty where the real server gives none.
    pub reason: String,
    pub message: String,
    /// `metav1.StatusDetails`.
    pub details: Option<Value>,
    pub retry_after_seconds: Option<u32>,
    /// A token for the rest of a list whose version has expired.
    pub continue_token: Option<String>,
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: &'static str,
    pub field: String,
    pub message: String,
}

impl Cause {
    pub(super) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {value}: {detail}"),
        }
    }

    pub(super) fn required(field: impl Into<String>, detail: &str) -> Self {
        Self {
            reason: "FieldValueRequired",
            field: field.into(),
            message: with_detail("Required value", detail),
        }
    }

    pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            field: field.into(),
            message: with_detail("Forbidden", detail),
        }
    }
}

fn with_detail(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}

impl Failure {
    /// A refusal with nothing but a code, a reason and words: for faults.
    #[must_use]
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message: message.into(),
            details: None,
            retry_after_seconds: None,
            continue_token: None,
        }
    }

    #[must_use]
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.group_resource());
        Self::new(404, "NotFound", message).about(kind.group, kind.plural, name)
    }

    #[must_use]
    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.group_resource());
        Self::new(409, "AlreadyExists", message).about(kind.group, kind.plural, name)
    }

    #[must_use]
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        Self::conflict_on(kind.group, kind.plural, &kind.group_resource(), name, why)
    }

    /// A refused precondition of a DELETE, which names the kind where others name the resource.
    pub(super) fn delete_conflict(kind: &Kind, name: &str, why: &str) -> Self {
        Self::conflict_on(kind.group, kind.kind, &kind.group_kind(), name, why)
    }

    fn conflict_on(group: &str, kind: &str, qualified: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {qualified} \"{name}\": {why}");
        Self::new(409, "Conflict", message).about(group, kind, name)
    }

    #[must_use]
    pub fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(kind, name, why)
    }

    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// The version that was asked for is no longer kept.
    #[must_use]
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    #[must_use]
    pub fn forbidden(group: &str, kind: &str, name: &str, why: &str) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let message = format!("{qualified} \"{name}\" is forbidden: {why}");
        Self::new(403, "Forbidden", message).about(group, kind, name)
    }

    #[must_use]
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut failure = Self::new(405, "MethodNotAllowed", message);
        failure.details = Some(json!({}));
        failure
    }

    /// A path that nothing is served at.
    #[must_use]
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        let mut failure = Self::new(404, "NotFound", message);
        failure.details = Some(json!({}));
        failure
    }

    #[must_use]
    pub fn too_many_requests(message: &str, retry_after_seconds: u32, cause: Value) -> Self {
        let mut details = Map::new();
        details.insert("causes".to_owned(), json!([cause]));
        let mut failure = Self::new(429, "TooManyRequests", message);
        if retry_after_seconds > 0 {
            details.insert("retryAfterSeconds".to_owned(), json!(retry_after_seconds));
            failure.retry_after_seconds = Some(retry_after_seconds);
        }
        failure.details = Some(Value::Object(details));
        failure
    }

    pub(super) fn too_large_version(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let mut failure = Self::new(504, "Timeout", message);
        failure.retry_after_seconds = Some(1);
        failure.details = Some(json!({
            "causes": [{
                "reason": "ResourceVersionTooLarge",
                "message": "Too large resource version",
            }],
            "retryAfterSeconds": 1,
        }));
        failure
    }

    pub(super) fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        Self::invalid_of(kind.group, kind.kind, name, causes)
    }

    pub(super) fn invalid_of(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let mut sentences: Vec<String> = Vec::new();
        for cause in causes {
            let sentence = format!("{}: {}", cause.field, cause.message);
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
        let text = match sentences.as_slice() {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let message = format!("{qualified} \"{name}\" is invalid: {text}");
        let mut failure = Self::new(422, "Invalid", message).about(group, kind, name);
        let listed: Vec<Value> = causes
            .iter()
            .map(|cause| {
                json!({ "reason": cause.reason, "message": cause.message, "field": cause.field })
            })
            .collect();
        if let Some(details) = failure.details.as_mut().and_then(Value::as_object_mut) {
            details.insert("causes".to_owned(), Value::from(listed));
        }
        failure
    }

    pub(super) fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let mut details = Map::new();
        for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), Value::from(value));
            }
        }
        self.details = Some(Value::Object(details));
        self
    }

    /// The `metav1.Status` that goes over the wire.
    #[must_use]
    pub fn status(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), Value::from(token.clone()));
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if let Some(fields) = status.as_object_mut() {
            if !self.reason.is_empty() {
                fields.insert("reason".to_owned(), Value::from(self.reason.clone()));
            }
            if let Some(details) = &self.details {
                fields.insert("details".to_owned(), details.clone());
            }
        }
        status
    }
}
