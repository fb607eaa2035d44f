//! Which objects does a selector mean?

use serde_json::Value;

use super::{
    failure::Failure,
    kinds::{FieldRefusal, Kind, Scope},
    object::labels_of,
};

/// A label selector and a field selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldTerm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    GreaterThan(i64),
    LessThan(i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTerm {
    /// A path into the stored object.
    pointer: String,
    value: String,
    equal: bool,
}

impl Selector {
    pub(super) fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self, Failure> {
        Ok(Self { labels: parse_labels(labels)?, fields: parse_fields(kind, fields)? })
    }

    /// The selector of a `metav1.LabelSelector`; none where it is malformed.
    pub(super) fn of_label_selector(selector: &Value) -> Option<Self> {
        let mut labels = Vec::new();
        for (key, value) in
            selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten()
        {
            let value = value.as_str()?.to_owned();
            labels.push(Requirement { key: key.clone(), test: Test::In(vec![value]) });
        }
        let expressions = selector.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            let key = expression.get("key")?.as_str()?.to_owned();
            let values = expression.get("values").and_then(Value::as_array);
            let values: Vec<String> =
                values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            let test = match expression.get("operator")?.as_str()? {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::Absent,
                _ => return None,
            };
            labels.push(Requirement { key, test });
        }
        Some(Self { labels, fields: Vec::new() })
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        if !self.fields.iter().all(|term| term.matches(object)) {
            return false;
        }
        if self.labels.is_empty() {
            return true;
        }
        let labels = labels_of(object);
        self.labels
            .iter()
            .all(|requirement| requirement.matches(labels.get(requirement.key.as_str()).copied()))
    }
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|text| text.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::In(values) => value.is_some_and(|one| values.iter().any(|other| other == one)),
            Test::NotIn(values) => value.is_none_or(|one| values.iter().all(|other| other != one)),
            Test::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Test::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl FieldTerm {
    fn matches(&self, object: &Value) -> bool {
        let found = match object.pointer(&self.pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(value)) => value.to_string(),
            Some(Value::Number(value)) => value.to_string(),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => {
                // A bool that Go leaves out is false.
                let is_bool = self.pointer == "/spec/unschedulable";
                if is_bool { "false".to_owned() } else { String::new() }
            }
        };
        (found == self.value) == self.equal
    }
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, Failure> {
    split_outside_parentheses(text).into_iter().map(parse_requirement).collect()
}

fn parse_requirement(text: &str) -> Result<Requirement, Failure> {
    let unreadable = || Failure::bad_request(format!("unable to parse requirement: {text}"));
    let (key, test) = if let Some((key, value)) = text.split_once("!=") {
        (key, Test::NotIn(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (key, Test::In(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = text.split_once('>') {
        (key, Test::GreaterThan(value.trim().parse().map_err(|_| unreadable())?))
    } else if let Some((key, value)) = text.split_once('<') {
        (key, Test::LessThan(value.trim().parse().map_err(|_| unreadable())?))
    } else if let Some((before, values)) = text.split_once('(') {
        let values = values.trim().strip_suffix(')').ok_or_else(unreadable)?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        match before.trim().rsplit_once(char::is_whitespace).ok_or_else(unreadable)? {
            (key, "in") => (key, Test::In(values)),
            (key, "notin") => (key, Test::NotIn(values)),
            _ => return Err(unreadable()),
        }
    } else if let Some(key) = text.strip_prefix('!') {
        (key, Test::Absent)
    } else {
        (text, Test::Exists)
    };
    let key = key.trim();
    let is_key = !key.is_empty()
        && key.chars().all(|one| one.is_ascii_alphanumeric() || "-_./".contains(one));
    if is_key { Ok(Requirement { key: key.to_owned(), test }) } else { Err(unreadable()) }
}

/// The parts between commas, where a set in parentheses is one part.
fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0_u32;
    let mut rest = text;
    let mut offset = 0;
    while let Some(character) = rest.get(offset..).and_then(|tail| tail.chars().next()) {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(rest.get(..offset).unwrap_or_default());
                rest = rest.get(offset + 1..).unwrap_or_default();
                offset = 0;
                continue;
            }
            _ => {}
        }
        offset += character.len_utf8();
    }
    parts.push(rest);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn parse_fields(kind: &Kind, text: &str) -> Result<Vec<FieldTerm>, Failure> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| parse_field(kind, part)).collect()
}

fn parse_field(kind: &Kind, text: &str) -> Result<FieldTerm, Failure> {
    let (field, value, equal) = if let Some((field, value)) = text.split_once("!=") {
        (field, value, false)
    } else if let Some((field, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (field, value, true)
    } else {
        let message = format!("invalid selector: '{text}'; can't understand '{text}'");
        return Err(Failure::bad_request(message));
    };
    let stored = stored_field(kind, field);
    let known = stored == "metadata.name"
        || (stored == "metadata.namespace" && kind.scope == Scope::Namespaced)
        || kind.selectable_fields.contains(&stored.as_str());
    if !known {
        return Err(Failure::bad_request(match kind.field_refusal {
            FieldRefusal::NotSupported => format!("field label not supported: {field}"),
            FieldRefusal::NotKnown => format!(
                "\"{field}\" is not a known field selector: only \"metadata.name\", \
                 \"metadata.namespace\""
            ),
        }));
    }
    let pointer = format!("/{}", stored.replace('.', "/"));
    Ok(FieldTerm { pointer, value: value.to_owned(), equal })
}

/// The name of a field in the stored object. Events have two sets of names.
fn stored_field(kind: &Kind, field: &str) -> String {
    if kind.shows.is_none() {
        return field.to_owned();
    }
    match field.strip_prefix("regarding.") {
        Some(rest) => format!("involvedObject.{rest}"),
        None if field == "reportingController" => "reportingComponent".to_owned(),
        None => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api_server::kinds::KindRef;

    fn kind(plural: &str) -> &'static Kind {
        KindRef::find("", plural).unwrap().kind
    }

    #[test]
    fn label_selectors_select_as_in_kubernetes() {
        let object = json!({ "metadata": { "labels": { "a": "1", "b/c": "x" } } });
        let table = [
            ("", true),
            ("a", true),
            ("!a", false),
            ("z", false),
            ("!z", true),
            ("a=1", true),
            ("a==1,b/c=x", true),
            ("a==1,b/c=y", false),
            ("a!=1", false),
            ("z!=1", true),
            ("a in (1,2)", true),
            ("a in (2, 3),b/c", false),
            ("a notin (2)", true),
            ("z notin (2)", true),
            ("a>0", true),
            ("a<1", false),
        ];
        for (text, expected) in table {
            let selector = Selector::parse(kind("pods"), text, "").unwrap();
            assert_eq!(selector.matches(&object), expected, "{text}");
        }
        assert_eq!(Selector::parse(kind("pods"), "a b", "").unwrap_err().code, 400);
    }

    #[test]
    fn field_selectors_are_those_of_the_kind() {
        let pod = json!({
            "metadata": { "name": "p", "namespace": "n" },
            "spec": { "nodeName": "one" },
        });
        let table = [
            ("pods", "spec.nodeName=one,metadata.name=p", Some(true)),
            ("pods", "spec.nodeName!=one", Some(false)),
            ("pods", "spec.nodeName=", Some(false)),
            ("pods", "metadata.namespace=n", Some(true)),
            ("pods", "spec.unschedulable=false", None),
            ("nodes", "spec.unschedulable=false", Some(true)),
            ("nodes", "metadata.namespace=n", None),
            ("configmaps", "spec.nodeName=one", None),
        ];
        for (plural, text, expected) in table {
            let selector = Selector::parse(kind(plural), "", text);
            assert_eq!(selector.ok().map(|one| one.matches(&pod)), expected, "{plural} {text}");
        }
    }

    #[test]
    fn a_label_selector_of_a_budget_selects_pods() {
        let pod = json!({ "metadata": { "labels": { "app": "web" } } });
        let selector = json!({
            "matchLabels": { "app": "web" },
            "matchExpressions": [{ "key": "tier", "operator": "DoesNotExist" }],
        });
        assert!(Selector::of_label_selector(&selector).unwrap().matches(&pod));
        assert!(Selector::of_label_selector(&json!({})).unwrap().matches(&pod));
        let broken = json!({ "matchExpressions": [{ "key": "a", "operator": "Near" }] });
        assert_eq!(Selector::of_label_selector(&broken), None);
    }
}
