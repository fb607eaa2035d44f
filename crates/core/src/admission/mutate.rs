//! What is filled in when an object is created. A field that says something is never changed, and
//! a field that nobody here knows is kept: the answer is a list of additions, not a new object.

use machinist_api::names::label;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    aws,
    context::Context,
    object::{Kind, at, provider_spec_object},
    shape,
    validate::{Rules, rules_for},
};
use crate::decision::FieldError;

/// An object with its defaults, and how it got them.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaulted {
    pub object: Value,
    /// In order; empty when nothing was missing.
    pub patch: Vec<PatchOperation>,
}

/// One step of a JSON patch (RFC 6902).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PatchOperation {
    /// Always `add`, which also replaces a null or an empty text.
    pub op: &'static str,
    pub path: String,
    pub value: Value,
}

/// Fills in the defaults, or says what keeps it from that.
pub fn mutate(kind: Kind, object: &Value, context: &Context) -> Result<Defaulted, Vec<FieldError>> {
    let findings = shape::check(object, kind.shape(), "");
    if !findings.wrong.is_empty() {
        return Err(findings.wrong);
    }
    let mut defaulted = Defaulted { object: object.clone(), patch: Vec::new() };
    if kind == Kind::Machine {
        defaulted.name_cluster(context);
    }
    let value = kind.provider_spec(object);
    match rules_for(value, context) {
        Rules::Untouched => {}
        Rules::Aws => {
            let spec = provider_spec_object(value).map_err(|fault| vec![fault])?;
            for (field, default) in aws::defaults(spec, context)? {
                let mut path = kind.provider_spec_path().to_vec();
                path.extend(field);
                defaulted.set(&path, default);
            }
        }
    }
    Ok(defaulted)
}

impl Defaulted {
    /// A label that is there is never replaced, not even an empty one: another value would make the
    /// Machine an orphan, and its set would make a second one.
    fn name_cluster(&mut self, context: &Context) {
        let path = ["metadata", "labels", label::CLUSTER];
        if at(&self.object, &path).is_none()
            && let Some(cluster_id) = &context.cluster_id
        {
            self.set(&path, json!(cluster_id));
        }
    }

    /// Sets a field, and makes the objects around it where they are absent.
    fn set(&mut self, path: &[&str], value: Value) {
        let Some((leaf, parents)) = path.split_last() else { return };
        let mut pointer = String::new();
        let mut place = &mut self.object;
        for parent in parents {
            pointer.push_str(&pointer_step(parent));
            let Value::Object(map) = place else { return };
            place = map.entry(*parent).or_insert(Value::Null);
            if place.is_null() {
                *place = json!({});
                self.patch.push(PatchOperation::add(&pointer, json!({})));
            }
        }
        let Value::Object(map) = place else { return };
        pointer.push_str(&pointer_step(leaf));
        map.insert((*leaf).to_owned(), value.clone());
        self.patch.push(PatchOperation::add(&pointer, value));
    }
}

impl PatchOperation {
    fn add(path: &str, value: Value) -> Self {
        Self { op: "add", path: path.to_owned(), value }
    }
}

/// One step of a JSON pointer (RFC 6901).
fn pointer_step(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}
