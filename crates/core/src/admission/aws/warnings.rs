//! What in a providerSpec for AWS is allowed and most likely not meant.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{GROUPS, KIND, VERSIONS, list, object, shape_findings};
use crate::admission::{
    context::SecretKnowledge,
    fault::{cut, listed, quoted},
    object::text,
};

/// Says what a person should look at again.
pub fn warnings(
    spec: &Map<String, Value>,
    namespace: &str,
    secret: &SecretKnowledge,
) -> Vec<String> {
    let mut warnings = Vec::from_iter(kind_warning(spec));
    warnings.extend(unused(spec, "ami", "arn"));
    warnings.extend(unused(spec, "ami", "filters"));
    warnings.extend(secret_warning(spec, namespace, secret));
    if !["id", "arn", "filters"].iter().any(|key| is_given(spec, "subnet", key)) {
        warnings.push(
            "providerSpec.subnet: no subnet is named, so the instance is launched in whichever is \
             found first"
                .to_owned(),
        );
    }
    // Filters find the subnet where there is no id; an arn never does.
    if is_given(spec, "subnet", "arn") {
        warnings.push("providerSpec.subnet.arn: has no effect, use id or filters".to_owned());
    }
    if object(spec, "iamInstanceProfile").is_none() {
        warnings.push(
            "providerSpec.iamInstanceProfile: no profile is named, so the instance has no \
             permissions of its own"
                .to_owned(),
        );
    }
    warnings.extend(unused(spec, "iamInstanceProfile", "arn"));
    warnings.extend(unused(spec, "iamInstanceProfile", "filters"));
    warnings.extend(tags_warning(spec));
    // Last, because there may be more of them than are listed.
    let unknown = shape_findings(spec).unknown.into_iter();
    warnings.extend(unknown.map(|path| format!("{path}: unknown field, it has no effect")));
    warnings
}

fn kind_warning(spec: &Map<String, Value>) -> Option<String> {
    let api_version = text(spec, "apiVersion").unwrap_or_default();
    let kind = text(spec, "kind").unwrap_or_default();
    let is_known = api_version
        .split_once('/')
        .is_some_and(|(group, version)| GROUPS.contains(&group) && VERSIONS.contains(&version));
    (!is_known || kind != KIND).then(|| {
        format!(
            "providerSpec: expected kind {KIND} of {}, not kind {} of {}",
            GROUPS.map(|group| format!("{group}/v1beta1")).join(" or "),
            quoted(&Value::from(kind)),
            quoted(&Value::from(api_version)),
        )
    })
}

fn unused(spec: &Map<String, Value>, outer: &str, inner: &str) -> Option<String> {
    is_given(spec, outer, inner)
        .then(|| format!("providerSpec.{outer}.{inner}: has no effect, use id"))
}

/// Whether a part of a reference says something.
fn is_given(spec: &Map<String, Value>, outer: &str, inner: &str) -> bool {
    object(spec, outer).and_then(|reference| reference.get(inner)).is_some_and(
        |value| match value {
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
        },
    )
}

fn secret_warning(
    spec: &Map<String, Value>,
    namespace: &str,
    secret: &SecretKnowledge,
) -> Option<String> {
    let name = text(object(spec, "credentialsSecret")?, "name")?;
    let secret_words =
        format!("providerSpec.credentialsSecret: secret {}", cut(&format!("{namespace}/{name}")));
    match secret {
        SecretKnowledge::NotAsked | SecretKnowledge::Found => None,
        SecretKnowledge::Missing => Some(format!("{secret_words} was not found")),
        SecretKnowledge::Unreadable(cause) => {
            Some(format!("{secret_words} could not be read: {}", cut(cause)))
        }
    }
}

fn tags_warning(spec: &Map<String, Value>) -> Option<String> {
    let names = list(spec, "tags").iter().filter_map(|tag| tag.get("name")?.as_str());
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<&str> = names.filter(|name| !seen.insert(*name)).collect();
    (!repeated.is_empty()).then(|| {
        let repeated = listed(repeated.into_iter().map(cut)).join(", ");
        format!(
            "providerSpec.tags: only the first value is used of what is named twice: {repeated}"
        )
    })
}
