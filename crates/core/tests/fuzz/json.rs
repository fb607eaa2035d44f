//! Damage to JSON that leaves it JSON, mostly: values of other types, huge numbers and strings, deep
//! nesting, keys that are there twice.

use serde_json::{Value, json};

use crate::{Chance, bytes};

/// Stands for a piece of text that serde_json would not write itself.
const PLACE: &str = "@place@";

pub fn damaged(value: &Value, chance: &mut Chance) -> Vec<u8> {
    let mut value = value.clone();
    let mut pieces = Vec::new();
    for _ in 0..chance.below(4) {
        let place = some_place(&mut value, chance);
        if let Some(piece) = replace(place, chance) {
            pieces.push(piece);
        }
    }
    let mut text = value.to_string();
    for piece in pieces {
        text = text.replacen(&format!("\"{PLACE}\""), &piece, 1);
    }
    let mut damaged = text.into_bytes();
    if chance.one_in(4) {
        bytes::damage(&mut damaged, chance);
    }
    damaged
}

/// Goes down from the root and stops anywhere.
fn some_place<'a>(value: &'a mut Value, chance: &mut Chance) -> &'a mut Value {
    let count = match value {
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    if count == 0 || chance.one_in(6) {
        return value;
    }
    let at = chance.below(count);
    let inner = match value {
        Value::Array(list) => list.get_mut(at),
        Value::Object(map) => map.values_mut().nth(at),
        _ => None,
    };
    some_place(inner.expect("it was counted"), chance)
}

/// Puts something else there; the text that it returns goes in the place's stead.
fn replace(place: &mut Value, chance: &mut Chance) -> Option<String> {
    let piece = match chance.below(12) {
        0 => {
            *place = Value::Null;
            return None;
        }
        1 => {
            *place = json!([place.clone(), place.clone()]);
            return None;
        }
        2 => {
            *place = json!({ "name": place.clone() });
            return None;
        }
        3 => {
            let length = if chance.one_in(30) { 1 << 20 } else { 1 << chance.below(12) };
            *place = json!("x".repeat(length));
            return None;
        }
        4 => {
            let odd = ["", " ", "\u{0}", "é", "\u{202e}", "-1", "0x1", "*", "a,b=c", "../..", "%"];
            *place = json!(chance.pick(&odd));
            return None;
        }
        5 => (*chance.pick(&["true", "false", "0", "-0", "1", "-1", "0.5"])).to_owned(),
        6 => {
            let huge = ["1e400", "-1e400", "9223372036854775808", "-9223372036854775809"];
            (*chance.pick(&huge)).to_owned()
        }
        7 => "9".repeat(1 + chance.below(400)),
        8 => nested(chance.below(300), "[", "]"),
        9 => nested(chance.below(300), "{\"value\":", "}"),
        // Deeper than any reader goes.
        10 => nested(if chance.one_in(30) { 100_000 } else { 200 }, "[", "]"),
        // The key after it is there twice, or comes from elsewhere.
        _ => {
            let key =
                chance.pick(&["kind", "spec", "metadata", "uid", "object", "value", "replicas"]);
            format!("1,\"{key}\":{}", chance.pick(&["null", "[]", "{}", "\"x\"", "7"]))
        }
    };
    *place = json!(PLACE);
    Some(piece)
}

fn nested(depth: usize, open: &str, close: &str) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}
