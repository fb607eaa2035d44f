//! How a provider's own JSON (providerSpec, providerStatus) travels through us untouched.
//!
//! The bytes are kept as they came: a field that this version does not know, a number written in
//! another way, the order of the keys, all survive a copy from a MachineSet to its Machines.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

/// A JSON value whose bytes are preserved.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawObject(Box<RawValue>);

impl RawObject {
    /// Serialises any value into its raw form.
    pub fn from_value<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The bytes as they came.
    pub fn as_json(&self) -> &str {
        self.0.get()
    }

    /// Reads the bytes as `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }

    /// Reads the bytes as a JSON object; a value of another type reads as `None`.
    pub fn as_object(&self) -> Option<serde_json::Map<String, Value>> {
        self.parse().ok()
    }
}

/// Equality is that of the JSON, not of its spelling: the API server may reorder keys.
impl PartialEq for RawObject {
    fn eq(&self, other: &Self) -> bool {
        self.as_json() == other.as_json()
            || match (self.parse::<Value>(), other.parse::<Value>()) {
                (Ok(left), Ok(right)) => left == right,
                _ => false,
            }
    }
}

impl JsonSchema for RawObject {
    fn schema_name() -> Cow<'static, str> {
        "RawObject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_a_round_trip() {
        let text = r#"{"zeta":1.0,"alpha":{"unknown":[1,2 ,3]},"big":12345678901234567890123}"#;
        let raw: RawObject = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
    }

    #[test]
    fn spelling_does_not_matter_for_equality() {
        let left: RawObject = serde_json::from_str(r#"{"a":1,"b":2}"#).unwrap();
        let right: RawObject = serde_json::from_str(r#"{"b":2, "a":1}"#).unwrap();
        let other: RawObject = serde_json::from_str(r#"{"b":2, "a":2}"#).unwrap();
        assert_eq!(left, right);
        assert_ne!(left, other);
    }
}
