//! When are two answers the same? When they differ only in what a server makes up.
//!
//! Uids, versions and generated names are replaced by the order in which a server first told them, so
//! that "the same version as before" and "a new one" must agree; times are replaced as such.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::by_design;
use crate::side::Answer;
use crate::step::{Part, Step};

/// What one server made up so far in this sequence, in order.
#[derive(Default)]
pub struct Names {
    uids: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
    generated: BTreeMap<String, String>,
}

impl Names {
    /// An answer without what the server made up.
    pub fn answer(&mut self, step: &Step, answer: &Answer) -> Value {
        let mut body = answer.body.clone();
        let is_status = body.get("kind") == Some(&json!("Status"));
        if is_status {
            self.status(answer.code, &mut body);
        } else if let Some(items) = body.get("items").and_then(Value::as_array) {
            let mut items: Vec<Value> =
                items.iter().map(|item| self.object(step.part, item)).collect();
            if !self.generated.is_empty() {
                // What is made up comes in an order that is made up.
                items.sort_by_key(|item| item["metadata"]["name"].to_string());
            }
            let token = body.pointer("/metadata/continue").and_then(Value::as_str);
            let more = token.is_some_and(|token| !token.is_empty());
            let remaining = body.pointer("/metadata/remainingItemCount").cloned();
            body = json!({ "kind": body.get("kind"), "items": items, "more": more, "remaining": remaining });
        } else if body.is_object() {
            body = self.object(step.part, &body);
        }
        json!({ "code": answer.code, "retryAfter": answer.retry_after, "body": body })
    }

    /// An event of a watch without what the server made up.
    pub fn event(&mut self, part: Part, event: &Value) -> Value {
        let object = event.get("object").map(|object| self.object(part, object));
        json!({ "type": event.get("type"), "object": object })
    }

    fn object(&mut self, part: Part, object: &Value) -> Value {
        let mut object = object.clone();
        if let Some(fields) = object.as_object_mut() {
            // Told by the list, for built-in kinds.
            fields.remove("kind");
            fields.remove("apiVersion");
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            if let Some(version) = metadata.get("resourceVersion").and_then(Value::as_str) {
                let number = self.versions.len();
                let symbol = self
                    .versions
                    .entry(version.to_owned())
                    .or_insert_with(|| format!("version {number}"));
                let symbol = json!(symbol);
                metadata.insert("resourceVersion".to_owned(), symbol);
            }
            let text = |field: &str| metadata.get(field).and_then(Value::as_str);
            if let (Some(base), Some(name)) = (text("generateName"), text("name"))
                && let Some(suffix) = name.strip_prefix(base)
                && suffix.len() == 5
            {
                let number = self.generated.len();
                self.generated
                    .entry(name.to_owned())
                    .or_insert_with(|| format!("{base}<generated {number}>"));
            }
        }
        by_design::drop_fields(part, &mut object);
        if !part.is_custom() {
            drop_empty(&mut object);
        }
        self.texts(&mut object);
        object
    }

    fn status(&mut self, code: u16, status: &mut Value) {
        if let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
            // The same cause is told by several validations, in an order of Go's maps.
            causes.sort_by_key(ToString::to_string);
            causes.dedup();
        }
        if by_design::ignores_message(code, status) {
            let fields = status.as_object_mut().unwrap();
            fields.remove("message");
            for cause in fields
                .get_mut("details")
                .and_then(|details| details.get_mut("causes"))
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                cause.as_object_mut().unwrap().remove("message");
            }
        }
        if by_design::lists_causes_in_any_order(status) {
            status.as_object_mut().unwrap().remove("message");
        }
        self.texts(status);
        hide_numbers(status);
    }

    /// Replaces uids, times and generated names in all texts.
    fn texts(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for (name, symbol) in &self.generated {
                    *text = text.replace(name, symbol);
                }
                *text = self.without_uids(text);
                *text = without_times(text);
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.texts(item)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.texts(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn without_uids(&mut self, text: &str) -> String {
        const LENGTH: usize = 36;
        let mut result = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(candidate) = rest.get(..LENGTH)
                && is_uid(candidate)
            {
                let number = self.uids.len();
                let symbol = self
                    .uids
                    .entry(candidate.to_owned())
                    .or_insert_with(|| format!("<uid {number}>"));
                result.push_str(symbol);
                rest = &rest[LENGTH..];
            } else {
                let character = rest.chars().next().unwrap();
                result.push(character);
                rest = &rest[character.len_utf8()..];
            }
        }
        result
    }
}

fn is_uid(text: &str) -> bool {
    text.chars().enumerate().all(|(index, character)| match index {
        8 | 13 | 18 | 23 => character == '-',
        _ => character.is_ascii_hexdigit(),
    })
}

fn without_times(text: &str) -> String {
    let shape = |text: &str| {
        text.len() >= 20
            && text.ends_with('Z')
            && text.chars().enumerate().all(|(index, character)| match index {
                4 | 7 => character == '-',
                10 => character == 'T',
                13 | 16 => character == ':',
                _ => character.is_ascii_digit() || ".Z".contains(character),
            })
    };
    if shape(text) { "<time>".to_owned() } else { text.to_owned() }
}

/// Versions appear in sentences; they are the only long numbers there.
fn hide_numbers(value: &mut Value) {
    match value {
        Value::String(text) => {
            let mut result = String::new();
            for character in text.chars() {
                if !character.is_ascii_digit() {
                    result.push(character);
                } else if !result.ends_with('#') {
                    result.push('#');
                }
            }
            *text = result;
        }
        Value::Array(items) => items.iter_mut().for_each(hide_numbers),
        Value::Object(fields) => fields.values_mut().for_each(hide_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Go writes out some fields that hold nothing, and leaves out others.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|_, value| {
            drop_empty(value);
            match value {
                Value::Null => false,
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty(),
                Value::Bool(_) | Value::Number(_) => true,
            }
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Where two answers differ, a line for each place.
pub fn differences(real: &Value, memory: &Value) -> String {
    let mut lines = String::new();
    collect_differences("", Some(real), Some(memory), &mut lines);
    lines
}

fn collect_differences(
    path: &str,
    real: Option<&Value>,
    memory: Option<&Value>,
    lines: &mut String,
) {
    match (real, memory) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let path = format!("{path}/{name}");
                collect_differences(&path, one.get(name), other.get(name), lines);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for index in 0..one.len().max(other.len()) {
                let path = format!("{path}/{index}");
                collect_differences(&path, one.get(index), other.get(index), lines);
            }
        }
        (one, other) if one != other => {
            let text = |value: Option<&Value>| {
                value.map_or_else(|| "nothing".to_owned(), ToString::to_string)
            };
            lines.push_str(&format!(
                "  at {path}\n    kube-apiserver: {}\n    in memory:      {}\n",
                text(one),
                text(other)
            ));
        }
        _ => {}
    }
}
