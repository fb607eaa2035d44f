//! Which type each field of an object has: what is of another type is wrong, what has no place is
//! unknown.
//!
//! The walk follows the shape and not the value, so it goes no deeper than the shape does.

use serde_json::{Map, Value};

use super::fault::{cut, invalid};
use crate::decision::FieldError;

/// Findings of each sort that are kept. Others would be memory that nobody reads: a list of a million
/// wrong elements fits into one request.
const KEPT_MAX: usize = 100;

/// What a value must look like. An absent or null field is fine everywhere.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    Text,
    Boolean,
    Integer32,
    Integer64,
    /// Not our concern.
    Anything,
    /// An object whose values are all text.
    TextMap,
    List(&'static Self),
    /// An object of exactly these fields.
    Object(&'static [(&'static str, Self)]),
    /// An object of which only these fields concern us.
    Open(&'static [(&'static str, Self)]),
}

/// What does not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub wrong: Vec<FieldError>,
    /// The paths of fields that have no place.
    pub unknown: Vec<String>,
}

impl Findings {
    fn add_wrong(&mut self, path: &str, value: &Value, expected: &str) {
        if self.wrong.len() < KEPT_MAX {
            self.wrong.push(invalid(path, value, expected));
        }
    }
}

/// Holds a value against a shape; paths begin with `path`.
pub fn check(value: &Value, shape: &Shape, path: &str) -> Findings {
    let mut findings = Findings::default();
    walk(value, shape, path, &mut findings);
    findings
}

/// Holds the fields of an object against those that it may have.
pub fn check_fields(
    map: &Map<String, Value>,
    fields: &'static [(&'static str, Shape)],
    path: &str,
) -> Findings {
    let mut findings = Findings::default();
    walk_object(map, fields, path, &mut findings);
    findings
}

fn walk(value: &Value, shape: &Shape, path: &str, findings: &mut Findings) {
    let expected = match (shape, value) {
        (Shape::Anything, _)
        | (Shape::Text, Value::String(_))
        | (Shape::Boolean, Value::Bool(_)) => return,
        (Shape::Integer32, Value::Number(number))
            if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) =>
        {
            return;
        }
        (Shape::Integer64, Value::Number(number)) if number.is_i64() => return,
        (Shape::TextMap, Value::Object(map)) => return walk_text_map(map, path, findings),
        (Shape::List(element), Value::Array(list)) => {
            for (index, value) in list.iter().enumerate() {
                walk(value, element, &format!("{path}[{index}]"), findings);
            }
            return;
        }
        (Shape::Object(fields), Value::Object(map)) => {
            return walk_object(map, fields, path, findings);
        }
        (Shape::Open(fields), Value::Object(map)) => {
            return walk_fields(map, fields, path, findings);
        }
        (Shape::Text, _) => "must be a string",
        (Shape::Boolean, _) => "must be true or false",
        (Shape::Integer32, _) => "must be a whole number of 32 bits",
        (Shape::Integer64, _) => "must be a whole number of 64 bits",
        (Shape::List(_), _) => "must be a list",
        (Shape::TextMap | Shape::Object(_) | Shape::Open(_), _) => "must be an object",
    };
    findings.add_wrong(path, value, expected);
}

fn walk_object(
    map: &Map<String, Value>,
    fields: &[(&'static str, Shape)],
    path: &str,
    findings: &mut Findings,
) {
    walk_fields(map, fields, path, findings);
    let has_no_place = |key: &&String| !fields.iter().any(|(name, _)| name == key);
    for key in map.keys().filter(has_no_place) {
        if findings.unknown.len() < KEPT_MAX {
            findings.unknown.push(joined(path, key));
        }
    }
}

fn walk_fields(
    map: &Map<String, Value>,
    fields: &[(&'static str, Shape)],
    path: &str,
    findings: &mut Findings,
) {
    for (name, shape) in fields {
        if let Some(value) = map.get(*name).filter(|value| !value.is_null()) {
            walk(value, shape, &joined(path, name), findings);
        }
    }
}

fn walk_text_map(map: &Map<String, Value>, path: &str, findings: &mut Findings) {
    for (key, value) in map.iter().filter(|(_, value)| !value.is_string()) {
        let path = format!("{path}[{}]", cut(key));
        findings.add_wrong(&path, value, "must be a string");
    }
}

fn joined(path: &str, key: &str) -> String {
    let key = cut(key);
    if path.is_empty() { key } else { format!("{path}.{key}") }
}
