//! Whom does the API server ask about our objects, and is somebody there?

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::{
    admissionregistration::v1::{
        MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhookConfiguration,
        WebhookClientConfig,
    },
    core::v1::Service,
    discovery::v1::EndpointSlice,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, api::ListParams};
use machinist_core::doctor::{Asked, Reach, WebhookState};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::look::asked;

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is said where nothing is.
const DEFAULT_PORT: i32 = 443;

/// A webhook as its configuration has it.
struct Configured {
    configuration: String,
    name: String,
    client: WebhookClientConfig,
    fails_closed: bool,
}

pub async fn look(client: &Client) -> anyhow::Result<Asked<Vec<WebhookState>>> {
    let configured = match asked("list webhook configurations", configured(client).await)? {
        Ok(configured) => configured,
        Err(why) => return Ok(Err(why)),
    };
    // Several webhooks point to one place.
    let mut known: BTreeMap<String, Asked<Reach>> = BTreeMap::new();
    let mut states = Vec::new();
    for one in configured {
        let target = target(&one.client);
        let reach = match known.get(&target) {
            Some(reach) => reach.clone(),
            None => {
                let reach = reach(client, &one.client).await?;
                known.insert(target.clone(), reach.clone());
                reach
            }
        };
        states.push(WebhookState {
            configuration: one.configuration,
            name: one.name,
            target,
            reach,
            ca_bundle: one.client.ca_bundle.map(|bytes| bytes.0).unwrap_or_default(),
            fails_closed: one.fails_closed,
        });
    }
    Ok(Ok(states))
}

async fn configured(client: &Client) -> Result<Vec<Configured>, kube::Error> {
    let everything = ListParams::default();
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
    let validating = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let (mutating, validating) =
        tokio::try_join!(mutating.list(&everything), validating.list(&everything))?;
    let ours = machinist_api::crd::all();
    let mut all = Vec::new();
    let mut add = |configuration: &str, name, rules: Option<&[_]>, client, policy: Option<&str>| {
        if is_about(rules, &ours) {
            // Objects are refused unless it is said otherwise.
            let fails_closed = policy != Some("Ignore");
            all.push(Configured {
                configuration: configuration.to_owned(),
                name,
                client,
                fails_closed,
            });
        }
    };
    for found in mutating.items {
        let of =
            format!("MutatingWebhookConfiguration {}", found.metadata.name.unwrap_or_default());
        for one in found.webhooks.into_iter().flatten() {
            let policy = one.failure_policy.as_deref();
            add(&of, one.name, one.rules.as_deref(), one.client_config, policy);
        }
    }
    for found in validating.items {
        let of =
            format!("ValidatingWebhookConfiguration {}", found.metadata.name.unwrap_or_default());
        for one in found.webhooks.into_iter().flatten() {
            let policy = one.failure_policy.as_deref();
            add(&of, one.name, one.rules.as_deref(), one.client_config, policy);
        }
    }
    Ok(all)
}

/// Whether one of our kinds is meant by name. Those that ask about everything are others' matter.
fn is_about(rules: Option<&[RuleWithOperations]>, ours: &[CustomResourceDefinition]) -> bool {
    let names = |rule: &RuleWithOperations, definition: &CustomResourceDefinition| {
        let group = &definition.spec.group;
        let plural = &definition.spec.names.plural;
        let has_group = rule.api_groups.iter().flatten().any(|one| one == group);
        let has_resource = rule
            .resources
            .iter()
            .flatten()
            .any(|one| one == "*" || one.split('/').next() == Some(plural.as_str()));
        has_group && has_resource
    };
    let rules = rules.unwrap_or_default();
    rules.iter().any(|rule| ours.iter().any(|definition| names(rule, definition)))
}

/// Where it points to, without the path.
fn target(client: &WebhookClientConfig) -> String {
    match (&client.service, &client.url) {
        (Some(service), _) => match service.port.unwrap_or(DEFAULT_PORT) {
            DEFAULT_PORT => format!("Service {}/{}", service.namespace, service.name),
            port => format!("Service {}/{} port {port}", service.namespace, service.name),
        },
        (None, Some(url)) => match address(url) {
            Some((host, port)) => format!("{host}:{port}"),
            None => url.clone(),
        },
        (None, None) => "nothing".to_owned(),
    }
}

async fn reach(client: &Client, config: &WebhookClientConfig) -> anyhow::Result<Asked<Reach>> {
    match (&config.service, &config.url) {
        (Some(service), _) => {
            let port = service.port.unwrap_or(DEFAULT_PORT);
            let found = of_service(client, &service.namespace, &service.name, port).await;
            asked(&format!("read Service {}/{}", service.namespace, service.name), found)
        }
        (None, Some(url)) => Ok(Ok(of_url(url).await)),
        (None, None) => Ok(Ok(Reach::NoSuchService)),
    }
}

async fn of_service(
    client: &Client,
    namespace: &str,
    name: &str,
    port: i32,
) -> Result<Reach, kube::Error> {
    let services = Api::<Service>::namespaced(client.clone(), namespace);
    let Some(service) = services.get_opt(name).await? else { return Ok(Reach::NoSuchService) };
    let ports = service.spec.and_then(|spec| spec.ports).unwrap_or_default();
    if !ports.iter().any(|one| one.port == port) {
        return Ok(Reach::NoSuchPort);
    }
    let slices = Api::<EndpointSlice>::namespaced(client.clone(), namespace);
    let of_it = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
    let slices = slices.list(&of_it).await?;
    let is_ready = slices.items.iter().flat_map(|slice| &slice.endpoints).any(|endpoint| {
        let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready);
        // Where nothing is said, it is.
        ready.unwrap_or(true) && !endpoint.addresses.is_empty()
    });
    Ok(if is_ready { Reach::Answers } else { Reach::NoEndpoint })
}

async fn of_url(url: &str) -> Reach {
    let Some((host, port)) = address(url) else { return Reach::NobodyListens };
    match timeout(PATIENCE, TcpStream::connect((host.as_str(), port))).await {
        Ok(Ok(_)) => Reach::Answers,
        Ok(Err(_)) | Err(_) => Reach::NobodyListens,
    }
}

fn address(url: &str) -> Option<(String, u16)> {
    let uri: http::Uri = url.parse().ok()?;
    let host = uri.host()?.trim_matches(['[', ']']).to_owned();
    Some((host, uri.port_u16().unwrap_or(443)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn webhooks_of_others_are_left_alone() {
        let ours = machinist_api::crd::all();
        let about = |group: &str, resource: &str| {
            let rule = json!({ "apiGroups": [group], "resources": [resource] });
            is_about(Some(&[serde_json::from_value(rule).unwrap()]), &ours)
        };
        assert!(about("machine.openshift.io", "machines"));
        assert!(about("machine.openshift.io", "machinesets/scale"));
        assert!(about("machinist.dev", "*"));
        assert!(!about("machine.openshift.io", "controlplanemachinesets"));
        assert!(!about("*", "*"));
        assert!(!about("", "pods"));
        assert!(!is_about(None, &ours));
    }

    #[test]
    fn a_target_is_named_without_its_path() {
        let of = |config: serde_json::Value| target(&serde_json::from_value(config).unwrap());
        let service = json!({ "service": { "namespace": "ns", "name": "hook", "path": "/a" } });
        assert_eq!(of(service), "Service ns/hook");
        let port = json!({ "service": { "namespace": "ns", "name": "hook", "port": 8443 } });
        assert_eq!(of(port), "Service ns/hook port 8443");
        assert_eq!(of(json!({ "url": "https://127.0.0.1:9443/path" })), "127.0.0.1:9443");
        assert_eq!(address("https://[::1]/x"), Some(("::1".to_owned(), 443)));
    }

    #[tokio::test]
    async fn a_port_that_is_closed_is_noticed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/path", listener.local_addr().unwrap());
        assert_eq!(of_url(&url).await, Reach::Answers);
        drop(listener);
        assert_eq!(of_url(&url).await, Reach::NobodyListens);
    }
}
