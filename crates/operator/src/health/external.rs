//! How the objects of other controllers are reached: templates, and requests for remediation. Their
//! kinds are named by the check alone, so nothing of them is watched.

use std::collections::BTreeMap;

use anyhow::Context as _;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
    core::{ApiResource, GroupVersionKind},
    discovery,
};
use machinist_core::health::{
    external::TemplateReference,
    observed::{ExternalRequest, Template},
};

use super::memory::Memory;

/// The API of one kind in one namespace; `None` when the cluster does not have the kind.
pub async fn api(
    client: &Client,
    memory: &Memory,
    namespace: &str,
    api_version: &str,
    kind: &str,
) -> anyhow::Result<Option<Api<DynamicObject>>> {
    let resource = resource(client, memory, api_version, kind)
        .await
        .with_context(|| format!("failed to look up kind {kind} of {api_version}"))?;
    Ok(resource.map(|resource| Api::namespaced_with(client.clone(), namespace, &resource)))
}

async fn resource(
    client: &Client,
    memory: &Memory,
    api_version: &str,
    kind: &str,
) -> kube::Result<Option<ApiResource>> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    if let Some(known) = memory.resource(&kind) {
        return Ok(Some(known));
    }
    match discovery::pinned_kind(client, &kind).await {
        Ok((resource, _)) => {
            memory.learn_resource(&kind, resource.clone());
            Ok(Some(resource))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(kube::Error::Discovery(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The requests of the template's kind, by name. A kind that does not exist has none: what is wrong
/// is then told by the template, which cannot exist either.
pub async fn requests(
    client: &Client,
    memory: &Memory,
    namespace: &str,
    reference: &TemplateReference,
) -> anyhow::Result<BTreeMap<String, ExternalRequest>> {
    let kind = reference.request_kind();
    let Some(api) = api(client, memory, namespace, &reference.api_version, kind).await? else {
        return Ok(BTreeMap::new());
    };
    let listed = match api.list_metadata(&ListParams::default()).await {
        Ok(listed) => listed,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(BTreeMap::new()),
        Err(error) => {
            let words = format!("failed to list the {kind} objects of namespace {namespace}");
            return Err(anyhow::Error::new(error).context(words));
        }
    };
    let known = listed.items.into_iter().map(|object| {
        let metadata = object.metadata;
        let owners = metadata.owner_references.into_iter().flatten();
        let request = ExternalRequest {
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            is_deleting: metadata.deletion_timestamp.is_some(),
            owner_uids: owners.map(|owner| owner.uid).collect(),
        };
        (metadata.name.unwrap_or_default(), request)
    });
    Ok(known.collect())
}

/// Reads the template. What time alone may heal is an error; anything else is said of the template.
pub async fn template(
    client: &Client,
    memory: &Memory,
    namespace: &str,
    reference: &TemplateReference,
) -> anyhow::Result<Template> {
    let TemplateReference { api_version, kind, name } = reference;
    let Some(api) = api(client, memory, namespace, api_version, kind).await? else {
        let words = format!("the cluster does not have kind {kind} of {api_version}");
        return Ok(Template::NotFound(words));
    };
    match api.get(name).await {
        Ok(template) => Ok(Template::Found(serde_json::to_value(template)?)),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Ok(Template::NotFound(format!("{kind} {namespace}/{name} does not exist")))
        }
        Err(kube::Error::Api(status)) if status.code == 403 => {
            let words = format!("{kind} {namespace}/{name} may not be read: {}", status.message);
            Ok(Template::NotFound(words))
        }
        Err(error) => {
            let words = format!("failed to read {kind} {namespace}/{name}");
            Err(anyhow::Error::new(error).context(words))
        }
    }
}
