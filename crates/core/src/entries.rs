//! Which entries of a map of labels or annotations are missing somewhere, or different there.

use std::collections::BTreeMap;

/// What of `wanted` must be added to `present`.
pub fn missing_from(
    wanted: BTreeMap<String, String>,
    present: Option<&BTreeMap<String, String>>,
) -> BTreeMap<String, String> {
    wanted
        .into_iter()
        .filter(|(key, value)| present.and_then(|present| present.get(key)) != Some(value))
        .collect()
}
