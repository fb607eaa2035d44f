//! How the API server is told whom to ask, and whether it is still told the right thing.
//!
//! `timeoutSeconds`, `matchPolicy` and the like are left to the API server's defaults, because the
//! objects are compared field for field with those of the operator before us.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
        ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use machinist_api::names::DEFAULT_NAMESPACE;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::webhooks::{GROUP, Purpose, VERSION, Webhook};

/// The name of both configurations.
pub const NAME: &str = "machine-api";

/// The Service that the webhooks are behind.
pub const SERVICE: &str = "machine-api-operator-webhook";
pub const SERVICE_PORT: i32 = 443;

const INJECT_BY_SERVICE_CA: &str = "service.beta.openshift.io/inject-cabundle";
const INJECT_BY_CERT_MANAGER: &str = "cert-manager.io/inject-ca-from";

/// An object is admitted when we do not answer: nobody's machines may depend on us being up.
const FAILURE_POLICY: &str = "Ignore";

/// Where the API server finds us, and how it knows that it is us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub address: Address,
    pub trust: Trust,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Service {
        namespace: String,
        name: String,
        port: i32,
    },
    /// `https://host:port`, for a process outside the cluster; the path is added.
    Url(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// OpenShift's service-ca writes the bundle.
    ServiceCa,
    /// cert-manager writes the bundle of this certificate, `<namespace>/<name>`.
    CertManager(String),
    /// This bundle, in PEM.
    Bundle(Vec<u8>),
}

impl Default for Client {
    /// As on OpenShift.
    fn default() -> Self {
        Self {
            address: Address::Service {
                namespace: DEFAULT_NAMESPACE.to_owned(),
                name: SERVICE.to_owned(),
                port: SERVICE_PORT,
            },
            trust: Trust::ServiceCa,
        }
    }
}

/// The questions about what to fill in.
pub fn mutating(client: &Client) -> MutatingWebhookConfiguration {
    let webhook = |webhook: Webhook| MutatingWebhook {
        name: webhook.name().to_owned(),
        client_config: client.config(webhook),
        rules: Some(vec![rule(webhook)]),
        failure_policy: Some(FAILURE_POLICY.to_owned()),
        side_effects: "None".to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        ..MutatingWebhook::default()
    };
    MutatingWebhookConfiguration {
        metadata: client.metadata(),
        webhooks: Some(asked_for(Purpose::Default).map(webhook).collect()),
    }
}

/// The questions about what to refuse.
pub fn validating(client: &Client) -> ValidatingWebhookConfiguration {
    let webhook = |webhook: Webhook| ValidatingWebhook {
        name: webhook.name().to_owned(),
        client_config: client.config(webhook),
        rules: Some(vec![rule(webhook)]),
        failure_policy: Some(FAILURE_POLICY.to_owned()),
        side_effects: "None".to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        ..ValidatingWebhook::default()
    };
    ValidatingWebhookConfiguration {
        metadata: client.metadata(),
        webhooks: Some(asked_for(Purpose::Validate).map(webhook).collect()),
    }
}

/// What a stored configuration must become, or none when all that is wanted is there. What others
/// added to its metadata is kept, and so is each webhook's CA bundle where somebody else writes it.
pub fn corrected<Configuration>(
    stored: &Configuration,
    wanted: &Configuration,
) -> Result<Option<Configuration>, serde_json::Error>
where
    Configuration: Serialize + DeserializeOwned,
{
    let (stored, wanted) = (serde_json::to_value(stored)?, serde_json::to_value(wanted)?);
    if is_covered(&wanted, &stored) {
        return Ok(None);
    }
    let mut corrected = stored.clone();
    overlay(&mut corrected, "metadata", &wanted);
    if let Some(object) = corrected.as_object_mut() {
        object.insert("webhooks".to_owned(), with_bundles_of(&wanted, &stored));
    }
    serde_json::from_value(corrected).map(Some)
}

impl Client {
    fn metadata(&self) -> ObjectMeta {
        let annotation = match &self.trust {
            Trust::ServiceCa => Some((INJECT_BY_SERVICE_CA, "true")),
            Trust::CertManager(certificate) => Some((INJECT_BY_CERT_MANAGER, certificate.as_str())),
            Trust::Bundle(_) => None,
        };
        ObjectMeta {
            name: Some(NAME.to_owned()),
            annotations: annotation
                .map(|(key, value)| BTreeMap::from([(key.to_owned(), value.to_owned())])),
            ..ObjectMeta::default()
        }
    }

    fn config(&self, webhook: Webhook) -> WebhookClientConfig {
        let ca_bundle = match &self.trust {
            Trust::ServiceCa | Trust::CertManager(_) => None,
            Trust::Bundle(pem) => Some(ByteString(pem.clone())),
        };
        match &self.address {
            Address::Service { namespace, name, port } => WebhookClientConfig {
                ca_bundle,
                service: Some(ServiceReference {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    path: Some(webhook.path().to_owned()),
                    port: Some(*port),
                }),
                url: None,
            },
            Address::Url(base) => WebhookClientConfig {
                ca_bundle,
                service: None,
                url: Some(format!("{}{}", base.trim_end_matches('/'), webhook.path())),
            },
        }
    }
}

fn asked_for(purpose: Purpose) -> impl Iterator<Item = Webhook> {
    Webhook::ALL.into_iter().filter(move |webhook| webhook.purpose() == purpose)
}

fn rule(webhook: Webhook) -> RuleWithOperations {
    RuleWithOperations {
        api_groups: Some(vec![GROUP.to_owned()]),
        api_versions: Some(vec![VERSION.to_owned()]),
        resources: Some(vec![webhook.resource().to_owned()]),
        operations: Some(webhook.operations().iter().map(|&name| name.to_owned()).collect()),
        scope: None,
    }
}

/// Whether all that is wanted is there; fields that we leave to others may be anything. The walk
/// follows what is wanted, which is ours.
fn is_covered(wanted: &Value, stored: &Value) -> bool {
    match (wanted, stored) {
        (Value::Object(wanted), Value::Object(stored)) => wanted
            .iter()
            .all(|(key, value)| stored.get(key).is_some_and(|other| is_covered(value, other))),
        (Value::Array(wanted), Value::Array(stored)) => {
            wanted.len() == stored.len()
                && wanted.iter().zip(stored).all(|(value, other)| is_covered(value, other))
        }
        (wanted, stored) => wanted == stored,
    }
}

/// Sets what is wanted of one field's entries, and keeps its other entries.
fn overlay(target: &mut Value, key: &str, wanted: &Value) {
    let Some(Value::Object(wanted)) = wanted.get(key) else { return };
    let Some(target) = target.as_object_mut() else { return };
    let entry = target.entry(key).or_insert_with(|| Value::Object(Map::new()));
    for (inner, value) in wanted {
        match (entry.get_mut(inner), value) {
            (Some(Value::Object(present)), Value::Object(more)) => {
                present.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            _ => {
                if let Some(entry) = entry.as_object_mut() {
                    entry.insert(inner.clone(), value.clone());
                }
            }
        }
    }
}

fn with_bundles_of(wanted: &Value, stored: &Value) -> Value {
    let mut webhooks = wanted.get("webhooks").cloned().unwrap_or_default();
    let present = stored.get("webhooks").and_then(Value::as_array);
    for webhook in webhooks.as_array_mut().into_iter().flatten() {
        let bundle = present
            .into_iter()
            .flatten()
            .find(|one| one.get("name") == webhook.get("name"))
            .and_then(|one| one.pointer("/clientConfig/caBundle"))
            .cloned();
        if let Some(bundle) = bundle
            && let Some(config) = webhook.get_mut("clientConfig").and_then(Value::as_object_mut)
        {
            config.entry("caBundle").or_insert(bundle);
        }
    }
    webhooks
}
