//! What must be known of a providerSpec before its provider can be asked: which provider, which
//! credentials, which region, which user data. What the provider makes of the rest is its own.

use machinist_api::{ProviderSpec, RawObject};
use serde_json::{Map, Value};

use crate::decision::FieldError;

/// The provider that a providerSpec is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProviderKind {
    Aws,
}

/// A providerSpec as far as it does not depend on the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSpecFacts {
    pub kind: ProviderKind,
    /// Empty where the cluster's own region is meant.
    pub region: Option<String>,
    /// The Secret with credentials in the Machine's namespace; none means the default chain.
    pub credentials_secret: Option<String>,
    pub user_data_secret: Option<String>,
    /// The names of the load balancers that the instance is registered with while it runs.
    pub load_balancers: Vec<String>,
    /// Whether a host is allocated for the Machine alone, which must be given back.
    pub has_own_host: bool,
}

const PATH: &str = "spec.providerSpec.value";

/// Reads the common part; the error names the field.
pub fn read(provider_spec: &ProviderSpec) -> Result<ProviderSpecFacts, FieldError> {
    let value = provider_spec
        .value
        .as_ref()
        .ok_or_else(|| FieldError::new(PATH, "Required value: a value must be provided"))?;
    let object = RawObject::as_object(value).ok_or_else(|| {
        FieldError::new(PATH, format!("Invalid value: must be an object, not {}", kind_of(value)))
    })?;
    let kind = match text(&object, "kind", PATH)?.as_deref() {
        Some("AWSMachineProviderConfig") => ProviderKind::Aws,
        Some(other) => {
            return Err(FieldError::new(
                format!("{PATH}.kind"),
                format!(
                    "Unsupported value: {other:?}: supported values: \"AWSMachineProviderConfig\""
                ),
            ));
        }
        None if is_aws(&object) => ProviderKind::Aws,
        None => {
            return Err(FieldError::new(
                format!("{PATH}.kind"),
                "Required value: the kind says which provider is meant",
            ));
        }
    };
    Ok(ProviderSpecFacts {
        kind,
        region: nested_text(&object, "placement", "region")?,
        credentials_secret: nested_text(&object, "credentialsSecret", "name")?,
        user_data_secret: nested_text(&object, "userDataSecret", "name")?,
        load_balancers: load_balancers(&object),
        has_own_host: object
            .get("placement")
            .and_then(|placement| placement.pointer("/host/dedicatedHost/allocationStrategy"))
            .is_some_and(|strategy| strategy == "Dynamic"),
    })
}

/// Whether a providerSpec is AWS's, for the controllers and for admission alike. The controllers before us
/// read whatever they found as AWS's, and users left the kind out: then it is one that has the field `ami`,
/// which no other cloud's has, and no Machine on AWS can do without.
pub fn is_aws(object: &Map<String, Value>) -> bool {
    match object.get("kind") {
        Some(Value::String(kind)) if !kind.is_empty() => kind == "AWSMachineProviderConfig",
        None | Some(Value::Null | Value::String(_)) => {
            object.get("ami").is_some_and(Value::is_object)
        }
        Some(_) => false,
    }
}

/// What is no list of named things is the provider's to refuse.
fn load_balancers(object: &Map<String, Value>) -> Vec<String> {
    let named = object.get("loadBalancers").and_then(Value::as_array).into_iter().flatten();
    named.filter_map(|one| one.get("name")?.as_str().map(str::to_owned)).collect()
}

fn nested_text(
    object: &Map<String, Value>,
    outer: &str,
    inner: &str,
) -> Result<Option<String>, FieldError> {
    match object.get(outer) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(nested)) => text(nested, inner, &format!("{PATH}.{outer}")),
        Some(_) => {
            Err(FieldError::new(format!("{PATH}.{outer}"), "Invalid value: must be an object"))
        }
    }
}

/// A string field; absent, null and empty read the same.
fn text(object: &Map<String, Value>, key: &str, path: &str) -> Result<Option<String>, FieldError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(FieldError::new(format!("{path}.{key}"), "Invalid value: must be a string")),
    }
}

fn kind_of(value: &RawObject) -> &'static str {
    match value.parse() {
        Ok(Value::Null) => "null",
        Ok(Value::Bool(_)) => "a boolean",
        Ok(Value::Number(_)) => "a number",
        Ok(Value::String(_)) => "a string",
        Ok(Value::Array(_)) => "a list",
        Ok(Value::Object(_)) | Err(_) => "this",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read_value(value: Value) -> Result<ProviderSpecFacts, FieldError> {
        read(&ProviderSpec { value: Some(RawObject::from_value(&value).unwrap()) })
    }

    #[test]
    fn a_whole_one_is_read() {
        let facts = read_value(json!({
            "kind": "AWSMachineProviderConfig",
            "placement": {"region": "us-east-1"},
            "credentialsSecret": {"name": "aws-cloud-credentials"},
            "userDataSecret": {"name": "worker-user-data"},
            "somethingNew": [1],
        }))
        .unwrap();
        assert_eq!(facts.region.as_deref(), Some("us-east-1"));
        assert_eq!(facts.credentials_secret.as_deref(), Some("aws-cloud-credentials"));
        assert_eq!(facts.user_data_secret.as_deref(), Some("worker-user-data"));
    }

    #[test]
    fn one_without_a_kind_is_awss_if_it_names_an_image_of_aws() {
        for kind in [json!(null), json!("")] {
            let value = json!({"kind": kind, "ami": {"id": "ami-1"}, "placement": {"region": "r"}});
            let facts = read_value(value).unwrap();
            assert_eq!((facts.kind, facts.region.as_deref()), (ProviderKind::Aws, Some("r")));
        }
        for other in
            [json!({"machineType": "n1-standard-4"}), json!({"ami": null}), json!({"ami": 1})]
        {
            let error = read_value(other.clone()).unwrap_err().to_string();
            assert!(error.starts_with("spec.providerSpec.value.kind: Required value"), "{other}");
        }
    }

    #[test]
    fn each_fault_names_its_field() {
        let cases = [
            (json!("text"), "spec.providerSpec.value: Invalid value: must be an object"),
            (json!({}), "spec.providerSpec.value.kind: Required value"),
            (
                json!({"kind": "FooSpec"}),
                "spec.providerSpec.value.kind: Unsupported value: \"FooSpec\"",
            ),
            (json!({"kind": 7}), "spec.providerSpec.value.kind: Invalid value"),
            (
                json!({"kind": "AWSMachineProviderConfig", "placement": "here"}),
                "spec.providerSpec.value.placement: Invalid value",
            ),
            (
                json!({"kind": "AWSMachineProviderConfig", "credentialsSecret": {"name": 1}}),
                "spec.providerSpec.value.credentialsSecret.name: Invalid value",
            ),
        ];
        for (value, expected) in cases {
            let error = read_value(value.clone()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{value}: {error}");
        }
        let missing = read(&ProviderSpec::default()).unwrap_err().to_string();
        assert!(missing.starts_with("spec.providerSpec.value: Required value"), "{missing}");
    }

    #[test]
    fn what_is_quoted_is_cut() {
        let error = read_value(json!({"kind": "x".repeat(1_000_000)})).unwrap_err().to_string();
        assert!(error.len() < 5000, "{}", error.len());
    }

    /// Names of fields that are read here, and others, at any depth.
    fn any_json() -> impl Strategy<Value = Value> {
        let name = prop_oneof![
            4 => proptest::sample::select(
                &["kind", "placement", "region", "credentialsSecret", "userDataSecret", "name",
                  "loadBalancers", "host", "dedicatedHost", "allocationStrategy"][..],
            )
            .prop_map(str::to_owned),
            1 => any::<String>(),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            Just(Value::from("AWSMachineProviderConfig")),
            Just(Value::from("Dynamic")),
        ];
        leaf.prop_recursive(6, 64, 8, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(name.clone(), inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn with_kind(mut value: Value) -> Value {
        if let Some(object) = value.as_object_mut() {
            object.insert("kind".to_owned(), json!("AWSMachineProviderConfig"));
        }
        value
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// Any JSON is read, or refused by the name of a field under the providerSpec.
        #[test]
        fn any_json_is_read_or_refused_by_field(value in any_json(), has_kind in any::<bool>()) {
            let value = if has_kind { with_kind(value) } else { value };
            match read_value(value.clone()) {
                Ok(facts) => {
                    let said = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
                    prop_assert_eq!(said("/kind"), Some("AWSMachineProviderConfig"));
                    prop_assert_eq!(facts.region.as_deref().unwrap_or_default(),
                        said("/placement/region").unwrap_or_default());
                    prop_assert_eq!(facts.credentials_secret.as_deref().unwrap_or_default(),
                        said("/credentialsSecret/name").unwrap_or_default());
                }
                Err(error) => prop_assert!(error.path.starts_with(PATH), "{}", error),
            }
        }

        /// Any bytes that get as far as a Machine: whatever is no JSON never does.
        #[test]
        fn any_bytes_are_no_value_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(value) = serde_json::from_slice::<RawObject>(&bytes) {
                read(&ProviderSpec { value: Some(value) }).ok();
            }
        }
    }
}
