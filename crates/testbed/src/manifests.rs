//! How do YAML manifests get into the cluster?

use std::time::Duration;

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::{Instant, sleep};

const FIELD_MANAGER: &str = "machinist-testbed";
/// Until the API server tells of a kind that it serves; the cores may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

/// Applies every document of `yaml`, in order.
pub async fn apply_yaml(client: &Client, yaml: &str) -> anyhow::Result<()> {
    for object in documents(yaml)? {
        apply(client, object).await?;
    }
    Ok(())
}

/// Applies CustomResourceDefinitions and waits until the API server serves them.
pub async fn apply_crds(client: &Client, yaml: &str) -> anyhow::Result<()> {
    apply_definitions(client, documents(yaml)?).await
}

/// Applies CustomResourceDefinitions that were read already, and waits until they are served.
pub async fn apply_definitions(client: &Client, objects: Vec<Value>) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut names = Vec::new();
    for object in objects {
        names.push(text(&object, "/metadata/name")?);
        apply(client, object).await?;
    }
    for name in names {
        let definition = await_condition(definitions.clone(), &name, is_crd_established())
            .await
            .with_context(|| format!("waiting for {name} to be established"))?;
        for kind in definition.iter().flat_map(served) {
            find(client, &kind).await.with_context(|| format!("{name} cannot be looked up"))?;
        }
    }
    Ok(())
}

/// The kind, in each version that is served.
fn served(definition: &CustomResourceDefinition) -> Vec<GroupVersionKind> {
    let spec = &definition.spec;
    let versions = spec.versions.iter().filter(|version| version.served);
    versions.map(|one| GroupVersionKind::gvk(&spec.group, &one.name, &spec.names.kind)).collect()
}

/// Waits until a kind is found by those who look it up, which is a moment after it is established.
async fn find(client: &Client, kind: &GroupVersionKind) -> kube::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match pinned_kind(client, kind).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => sleep(POLL).await,
        }
    }
}

/// Applies one object, and its status where it has one.
pub async fn apply(client: &Client, object: Value) -> anyhow::Result<()> {
    let api_version = text(&object, "/apiVersion")?;
    let kind = text(&object, "/kind")?;
    let name = text(&object, "/metadata/name")?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let identity = GroupVersionKind::gvk(group, version, &kind);
    let (resource, capabilities) = pinned_kind(client, &identity)
        .await
        .with_context(|| format!("{kind} {name}: the API server does not know {api_version}"))?;
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    let api: Api<DynamicObject> = match (capabilities.scope, namespace) {
        (Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
    };
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(&name, &parameters, &Patch::Apply(&object))
        .await
        .with_context(|| format!("cannot apply {kind} {name}"))?;
    if object.get("status").is_some() {
        api.patch_status(&name, &parameters, &Patch::Apply(&object))
            .await
            .with_context(|| format!("cannot apply the status of {kind} {name}"))?;
    }
    Ok(())
}

/// The documents of a text that may hold several.
pub fn documents(yaml: &str) -> anyhow::Result<Vec<Value>> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(yaml).context("cannot parse a manifest")?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

fn text(object: &Value, pointer: &str) -> anyhow::Result<String> {
    let value = object.pointer(pointer).and_then(Value::as_str);
    Ok(value.with_context(|| format!("a manifest has no {pointer}"))?.to_owned())
}
