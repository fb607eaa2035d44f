//! How is an object kept? Parsed once, written out once, shared by whoever looks at it.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// An object at one resourceVersion. It never changes.
#[derive(Debug)]
pub struct Object {
    value: Value,
    text: OnceLock<Bytes>,
}

/// A shared object.
pub type ObjectRef = Arc<Object>;

impl Object {
    pub(super) fn new(value: Value) -> ObjectRef {
        Arc::new(Self { value, text: OnceLock::new() })
    }

    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// The object as JSON text.
    #[must_use]
    pub fn text(&self) -> Bytes {
        self.text.get_or_init(|| Bytes::from(self.value.to_string())).clone()
    }

    /// The object as a type.
    ///
    /// # Errors
    /// Fails when the object does not have the type's shape.
    pub fn parse<K: DeserializeOwned>(&self) -> Result<K, serde_json::Error> {
        K::deserialize(&self.value)
    }

    #[must_use]
    pub fn name(&self) -> &str {
        text_at(&self.value, "/metadata/name")
    }

    /// Empty for objects of the whole cluster.
    #[must_use]
    pub fn namespace(&self) -> &str {
        text_at(&self.value, "/metadata/namespace")
    }

    #[must_use]
    pub fn uid(&self) -> &str {
        text_at(&self.value, "/metadata/uid")
    }

    #[must_use]
    pub fn revision(&self) -> u64 {
        text_at(&self.value, "/metadata/resourceVersion").parse().unwrap_or_default()
    }

    #[must_use]
    pub fn is_being_deleted(&self) -> bool {
        value_at(&self.value, "/metadata/deletionTimestamp").is_some()
    }

    /// The same object as another revision shows it.
    pub(super) fn at_revision(&self, revision: u64) -> ObjectRef {
        let mut value = self.value.clone();
        set_revision(&mut value, revision);
        Self::new(value)
    }
}

/// The value at a path of plain names. `Value::pointer` looks for escapes in every name, which was a
/// tenth of a run's time.
#[must_use]
pub fn value_at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = value;
    let mut rest = path.strip_prefix('/')?;
    loop {
        let end = rest.bytes().position(|byte| byte == b'/');
        let name = end.map_or(rest, |end| rest.get(..end).unwrap_or_default());
        value = match value {
            Value::Object(fields) => fields.get(name)?,
            Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
        match end {
            Some(end) => rest = rest.get(end + 1..).unwrap_or_default(),
            None => return Some(value),
        }
    }
}

/// The text at a path, or nothing.
#[must_use]
pub fn text_at<'a>(value: &'a Value, path: &str) -> &'a str {
    value_at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The metadata, made if it is not there.
pub(super) fn metadata_of(value: &mut Value) -> &mut Map<String, Value> {
    object_at(value, "metadata")
}

/// A field that is an object, made if it is not there or something else.
pub(super) fn object_at<'a>(value: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    let fields = as_object(value);
    as_object(fields.entry(field).or_insert_with(|| Value::Object(Map::new())))
}

pub(super) fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            unreachable!("the lines above made it an object")
        }
    }
}

pub(super) fn set_revision(value: &mut Value, revision: u64) {
    metadata_of(value).insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
}

pub(super) fn labels_of(value: &Value) -> BTreeMap<&str, &str> {
    let labels = value_at(value, "/metadata/labels").and_then(Value::as_object);
    labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect()
}

pub(super) fn finalizers_of(value: &Value) -> Vec<String> {
    let finalizers = value_at(value, "/metadata/finalizers").and_then(Value::as_array);
    finalizers.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(super) fn set_finalizers(value: &mut Value, finalizers: &[String]) {
    let metadata = metadata_of(value);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), Value::from(finalizers));
    }
}

/// The key of an object in its collection, in etcd's order.
pub(super) fn key_of(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}
