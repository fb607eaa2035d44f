//! What does a CustomResourceDefinition let through? Drops unknown fields, fills in defaults, and
//! checks types, required fields, enums, lengths and the keys of list maps.
//!
//! Patterns, formats other than int32, and CEL rules are not checked.

use std::collections::BTreeMap;

use serde_json::Value;

use super::failure::Cause;

/// A structural schema.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    kind: Option<String>,
    properties: BTreeMap<String, Self>,
    additional: Option<Box<Self>>,
    items: Option<Box<Self>>,
    required: Vec<String>,
    choices: Vec<Value>,
    default: Option<Value>,
    length_min: Option<u64>,
    length_max: Option<u64>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    keeps_unknown: bool,
    nullable: bool,
    is_int32: bool,
    map_keys: Vec<String>,
}

impl Schema {
    /// Reads the schema of the stored version from the text of a definition.
    pub(super) fn of_definition(yaml: &str) -> Option<Self> {
        let definition: Value = serde_saphyr::from_str(yaml).ok()?;
        let versions = definition.pointer("/spec/versions")?.as_array()?;
        let stored = versions
            .iter()
            .find(|version| version.get("storage").and_then(Value::as_bool).unwrap_or_default())?;
        Some(Self::read(stored.pointer("/schema/openAPIV3Schema")?))
    }

    fn read(schema: &Value) -> Self {
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
        let texts = |name: &str| -> Vec<String> {
            let values = schema.get(name).and_then(Value::as_array);
            values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let boxed = |name: &str| {
            schema.get(name).filter(|one| one.is_object()).map(|one| Box::new(Self::read(one)))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        Self {
            kind: schema.get("type").and_then(Value::as_str).map(str::to_owned),
            properties: properties
                .into_iter()
                .flatten()
                .map(|(name, property)| (name.clone(), Self::read(property)))
                .collect(),
            additional: boxed("additionalProperties"),
            items: boxed("items"),
            required: texts("required"),
            choices: schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            default: schema.get("default").cloned(),
            length_min: schema.get("minLength").and_then(Value::as_u64),
            length_max: schema.get("maxLength").and_then(Value::as_u64),
            minimum: schema.get("minimum").and_then(Value::as_f64),
            maximum: schema.get("maximum").and_then(Value::as_f64),
            keeps_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            nullable: flag("nullable"),
            is_int32: schema.get("format").and_then(Value::as_str) == Some("int32"),
            map_keys: texts("x-kubernetes-list-map-keys"),
        }
    }

    /// Drops what the schema does not know. Metadata, kind and apiVersion of the object itself stay.
    pub(super) fn prune(&self, object: &mut Value) {
        let Some(fields) = object.as_object_mut() else { return };
        fields.retain(|name, value| {
            if matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                return true;
            }
            match self.properties.get(name) {
                Some(schema) => {
                    schema.prune_below(value);
                    true
                }
                None => self.keeps_unknown,
            }
        });
    }

    fn prune_below(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => fields.retain(|name, value| {
                match self.properties.get(name).or(self.additional.as_deref()) {
                    Some(schema) => {
                        schema.prune_below(value);
                        true
                    }
                    None => self.keeps_unknown,
                }
            }),
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    items.iter_mut().for_each(|item| schema.prune_below(item));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Fills in defaults.
    pub(super) fn fill(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, schema) in &self.properties {
                    // A null where a default is known and null is not allowed counts as absent.
                    let absent = match fields.get(name) {
                        None => true,
                        Some(Value::Null) => !schema.nullable && schema.default.is_some(),
                        Some(_) => false,
                    };
                    if absent && let Some(default) = &schema.default {
                        fields.insert(name.clone(), default.clone());
                    }
                }
                for (name, value) in fields {
                    if let Some(schema) = self.properties.get(name).or(self.additional.as_deref()) {
                        schema.fill(value);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    items.iter_mut().for_each(|item| schema.fill(item));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// What is wrong with the object. What is as it was before is right.
    pub(super) fn check(&self, old: Option<&Value>, value: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        let parts = ["spec", "status"];
        let is_kept = |name: &&str| old.is_some_and(|old| old.get(*name) == value.get(*name));
        let changed = parts.into_iter().filter(|name| !is_kept(name)).collect::<Vec<_>>();
        if changed.len() == parts.len() {
            self.check_at("", value, &mut causes);
            return causes;
        }
        for name in changed {
            match (self.properties.get(name), value.get(name)) {
                (Some(schema), Some(part)) => schema.check_at(name, part, &mut causes),
                (_, None) if self.required.iter().any(|required| required == name) => {
                    causes.push(Cause::required(name, ""));
                }
                _ => {}
            }
        }
        causes
    }

    fn check_at(&self, path: &str, value: &Value, causes: &mut Vec<Cause>) {
        if value.is_null() && self.nullable {
            return;
        }
        if let Some(expected) = &self.kind
            && !has_type(value, expected)
        {
            let found = type_name(value);
            causes.push(Cause {
                reason: "FieldValueTypeInvalid",
                field: path.to_owned(),
                message: format!(
                    "Invalid value: \"{found}\": {path} in body must be of type {expected}: \
                     \"{found}\""
                ),
            });
            return;
        }
        if !self.choices.is_empty() && !self.choices.contains(value) {
            let choices: Vec<String> = self.choices.iter().map(ToString::to_string).collect();
            causes.push(Cause {
                reason: "FieldValueNotSupported",
                field: path.to_owned(),
                message: format!(
                    "Unsupported value: {value}: supported values: {}",
                    choices.join(", ")
                ),
            });
        }
        match value {
            Value::Object(fields) => {
                for name in &self.required {
                    if !fields.contains_key(name) {
                        causes.push(Cause::required(child(path, name), ""));
                    }
                }
                for (name, value) in fields {
                    if let Some(schema) = self.properties.get(name).or(self.additional.as_deref()) {
                        schema.check_at(&child(path, name), value, causes);
                    }
                }
            }
            Value::Array(items) => self.check_items(path, items, causes),
            Value::String(text) => self.check_length(path, text, causes),
            Value::Number(number) => self.check_range(path, number.as_f64(), value, causes),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn check_items(&self, path: &str, items: &[Value], causes: &mut Vec<Cause>) {
        let mut seen: Vec<Vec<Option<&Value>>> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let here = format!("{path}[{index}]");
            if let Some(schema) = &self.items {
                schema.check_at(&here, item, causes);
            }
            if !self.map_keys.is_empty() {
                let key: Vec<_> = self.map_keys.iter().map(|name| item.get(name)).collect();
                if seen.contains(&key) {
                    causes.push(Cause {
                        reason: "FieldValueDuplicate",
                        field: here,
                        message: format!("Duplicate value: {item}"),
                    });
                } else {
                    seen.push(key);
                }
            }
        }
    }

    fn check_length(&self, path: &str, text: &str, causes: &mut Vec<Cause>) {
        let length = text.chars().count() as u64;
        if let Some(least) = self.length_min.filter(|least| length < *least) {
            let detail = format!("{path} in body should be at least {least} chars long");
            causes.push(Cause::invalid(path, &Value::from(text), &detail));
        }
        if let Some(most) = self.length_max.filter(|most| length > *most) {
            causes.push(Cause {
                reason: "FieldValueTooLong",
                field: path.to_owned(),
                message: format!("Too long: may not be more than {most} bytes"),
            });
        }
    }

    fn check_range(&self, path: &str, number: Option<f64>, value: &Value, causes: &mut Vec<Cause>) {
        let Some(number) = number else { return };
        let out_of_int32 =
            self.is_int32 && (number < f64::from(i32::MIN) || number > f64::from(i32::MAX));
        if out_of_int32 {
            let detail = format!("{path} in body must be of type int32: {value}");
            causes.push(Cause::invalid(path, value, &detail));
        }
        if let Some(least) = self.minimum.filter(|least| number < *least) {
            let detail = format!("{path} in body should be greater than or equal to {least}");
            causes.push(Cause::invalid(path, value, &detail));
        }
        if let Some(most) = self.maximum.filter(|most| number > *most) {
            let detail = format!("{path} in body should be less than or equal to {most}");
            causes.push(Cause::invalid(path, value, &detail));
        }
    }
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn has_type(value: &Value, expected: &str) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        _ => true,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api_server::kinds::{Fields, KindRef};

    fn schema(plural: &str) -> Schema {
        match KindRef::find("machine.openshift.io", plural).unwrap().kind.fields {
            Fields::Custom(text) => Schema::of_definition(text).unwrap(),
            Fields::BuiltIn | Fields::CustomUnchecked => panic!("{plural} has no definition"),
        }
    }

    #[test]
    fn unknown_fields_go_but_those_of_the_provider_stay() {
        let mut machine = json!({
            "kind": "Machine",
            "metadata": { "name": "a", "labels": {} },
            "junk": 1,
            "spec": { "junk": 2, "providerSpec": { "value": { "any": [1] }, "junk": 3 } },
        });
        schema("machines").prune(&mut machine);
        let expected = json!({
            "kind": "Machine",
            "metadata": { "name": "a", "labels": {} },
            "spec": { "providerSpec": { "value": { "any": [1] } } },
        });
        assert_eq!(machine, expected);
    }

    #[test]
    fn defaults_are_filled_in_below_what_is_there() {
        let mut set = json!({ "spec": {} });
        schema("machinesets").fill(&mut set);
        assert_eq!(set, json!({ "spec": { "replicas": 1 } }));
        let mut empty = json!({});
        schema("machinesets").fill(&mut empty);
        assert_eq!(empty, json!({}));
    }

    #[test]
    fn types_required_fields_choices_and_keys_are_checked() {
        let table = [
            (json!({ "spec": {} }), vec![]),
            (json!({}), vec!["spec"]),
            (json!({ "spec": { "providerID": 3 } }), vec!["spec.providerID"]),
            (json!({ "spec": { "taints": [{ "key": "a" }] } }), vec!["spec.taints[0].effect"]),
            (
                json!({ "spec": {}, "status": { "conditions": [
                    { "type": "A", "status": "Maybe", "lastTransitionTime": "2026-01-01T00:00:00Z" },
                ] } }),
                vec!["status.conditions[0].status"],
            ),
            (
                json!({ "spec": { "lifecycleHooks": { "preDrain": [
                    { "name": "abc", "owner": "abc" }, { "name": "abc", "owner": "ab" },
                ] } } }),
                vec!["spec.lifecycleHooks.preDrain[1].owner", "spec.lifecycleHooks.preDrain[1]"],
            ),
        ];
        for (object, expected) in table {
            let fields: Vec<String> = schema("machines")
                .check(None, &object)
                .into_iter()
                .map(|cause| cause.field)
                .collect();
            assert_eq!(fields, expected, "{object}");
        }
    }
}
