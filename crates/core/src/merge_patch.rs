//! Which JSON merge patch (RFC 7386) turns one value into another. Writing only the difference
//! leaves fields alone that we do not know, and an empty difference is no write at all (Rule 11).

use serde_json::{Map, Value};

/// The smallest merge patch from `before` to `after`; `None` when they are equal.
pub fn between(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, new) in after {
        let difference = match before.get(key) {
            Some(old) => between(old, new),
            None => Some(new.clone()),
        };
        if let Some(difference) = difference {
            patch.insert(key.clone(), difference);
        }
    }
    Some(Value::Object(patch))
}

/// The conditions of an object that others wrote meanwhile, with what changed from `before` to `wanted`
/// made on them. A merge patch replaces a list whole, so without this a record would undo what others
/// say. A condition that says what is already there keeps its time.
pub fn conditions_onto(before: &[Value], wanted: &[Value], current: &[Value]) -> Vec<Value> {
    let type_of = |condition: &Value| condition.get("type").cloned();
    let find = |list: &[Value], type_: &Option<Value>| {
        list.iter().find(|one| type_of(one) == *type_).cloned()
    };
    let is_changed = |type_: &Option<Value>| find(before, type_) != find(wanted, type_);
    let words = |condition: &Value| {
        ["status", "reason", "severity", "message"].map(|field| condition.get(field).cloned())
    };
    let mut all = Vec::new();
    for known in current {
        let type_ = type_of(known);
        match find(wanted, &type_) {
            Some(new) if is_changed(&type_) && words(&new) != words(known) => all.push(new),
            None if is_changed(&type_) => {}
            _ => all.push(known.clone()),
        }
    }
    let is_missing = |one: &&Value| find(current, &type_of(one)).is_none();
    all.extend(wanted.iter().filter(|one| is_missing(one) && is_changed(&type_of(one))).cloned());
    all.sort_by_key(|condition| type_of(condition).map(|type_| type_.to_string()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_others_survive_a_record() {
        let condition = |type_: &str, status: &str, at: u32| json!({"type": type_, "status": status, "lastTransitionTime": at});
        let before =
            [condition("A", "False", 1), condition("B", "False", 1), condition("C", "True", 1)];
        let wanted =
            [condition("A", "True", 2), condition("B", "False", 1), condition("D", "True", 2)];
        let current =
            [condition("A", "True", 1), condition("B", "True", 3), condition("C", "True", 1)];
        assert_eq!(
            conditions_onto(&before, &wanted, &current),
            [
                condition("A", "True", 1), // Said already: keeps its time.
                condition("B", "True", 3), // Another's.
                condition("D", "True", 2), // New; C is removed.
            ]
        );
    }

    use proptest::prelude::*;
    use serde_json::json;

    /// RFC 7386, section 2, word for word.
    fn apply(target: Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else { return patch.clone() };
        let mut target = match target {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                let old = target.remove(key).unwrap_or(Value::Null);
                target.insert(key.clone(), apply(old, value));
            }
        }
        Value::Object(target)
    }

    fn any_object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i32>().prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
            Just(json!([1, 2])),
        ];
        let tree = leaf.prop_recursive(3, 16, 4, |inner| {
            proptest::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
        });
        proptest::collection::btree_map("[a-d]", tree, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn applying_the_patch_gives_the_target(before in any_object(), after in any_object()) {
            match between(&before, &after) {
                None => prop_assert_eq!(before, after),
                Some(patch) => prop_assert_eq!(apply(before, &patch), after),
            }
        }
    }
}
