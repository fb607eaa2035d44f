//! What does a look at the cluster bring? What may not be read is noted with the reason, and judged as that.

use std::collections::BTreeMap;

use anyhow::anyhow;
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{ConfigMap, ResourceQuota, Secret},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams};
use kube::client::Body;
use kube::{Api, Client};
use machinist_api::names::{lease, reason};
use machinist_api::{Machine, MachineSet};
use machinist_core::doctor::{
    Asked, Clocks, Definition, DefinitionState, Deployed, FullQuota, LeaseState, Observed,
    SaidQuota, Stamp,
};
use machinist_core::lease::LeaseRecord;
use machinist_core::operator_status::{CONFIG_MAP, KEY, OperatorStatus};
use serde_json::Value;

use super::{rights, webhooks};
use crate::args::DoctorArgs;
use crate::kubeconfig::{Connection, Source};
use crate::state_file::OPERATOR_USER;
use crate::status::{Scope, api};

/// By these an operator's Deployment is known, whatever it is called.
const DEPLOYED: &str = "app.kubernetes.io/name=machinist,app.kubernetes.io/component=operator";
const SERVICE_ACCOUNT: &str = "machinist-operator";
const CERTIFICATE_SECRET: &str = "machine-api-operator-webhook-cert";
const CERTIFICATE: &str = "tls.crt";

/// How many objects that met a quota are named: they all tell the same story.
const SAID_MAX: usize = 5;

pub async fn look(connection: &Connection, args: &DoctorArgs) -> anyhow::Result<Observed> {
    let client = &connection.client;
    let namespace = args.namespace.as_str();
    let here = clocks(connection).await?;
    let now = here.map_or_else(Timestamp::now, |stamp| stamp.by_server);
    let deployment = deployment(client, namespace).await?;
    let user = match &args.operator_user {
        Some(user) => user.clone(),
        None => user_of(deployment.as_ref(), &connection.source, namespace),
    };
    let (definitions, own_rights, rights, leases, status, webhooks, quotas, said_quotas) = tokio::try_join!(
        definitions(client),
        rights::own(client, namespace),
        rights::operators(client, &user, namespace),
        leases(client, namespace),
        status(client, namespace),
        webhooks::look(client),
        quotas(client, namespace),
        said_quotas(client, namespace),
    )?;
    let has_webhooks = webhooks.as_ref().is_ok_and(|all| !all.is_empty());
    let serving_certificate =
        if has_webhooks { serving_certificate(client, namespace).await? } else { Ok(None) };
    Ok(Observed {
        namespace: namespace.to_owned(),
        now,
        definitions,
        own_rights,
        rights,
        leases,
        deployed: deployment.as_ref().map(deployed),
        status,
        clocks: Clocks { here },
        webhooks,
        serving_certificate,
        quotas,
        said_quotas,
    })
}

/// A refusal of the API server is an answer; a connection that is gone ends the examination.
pub fn asked<T>(what: &str, answer: Result<T, kube::Error>) -> anyhow::Result<Asked<T>> {
    match answer {
        Ok(found) => Ok(Ok(found)),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Ok(Err(format!("you may not {what}")))
        }
        Err(kube::Error::Api(status)) => {
            Ok(Err(format!("to {what} did not work: {}", status.message)))
        }
        Err(error) => Err(anyhow!(error).context(format!("cannot {what}"))),
    }
}

/// What this machine's clock shows when the API server's shows the date of its answer.
async fn clocks(connection: &Connection) -> anyhow::Result<Option<Stamp>> {
    let request = Request::get("/version").body(Body::empty())?;
    let begun = Timestamp::now();
    let answer = connection.client.send(request).await;
    let answer = answer.map_err(|error| connection.explain("cannot ask for the version", error))?;
    let took = Timestamp::now().duration_since(begun);
    let date = answer.headers().get(http::header::DATE).and_then(|value| value.to_str().ok());
    let by_server = date.and_then(|text| jiff::fmt::rfc2822::parse(text).ok());
    // Somewhere between question and answer.
    let by_it = begun.saturating_add(took / 2)?;
    Ok(by_server.map(|date| Stamp { by_it, by_server: date.timestamp() }))
}

async fn definitions(client: &Client) -> anyhow::Result<Vec<DefinitionState>> {
    let all = Api::<CustomResourceDefinition>::all(client.clone());
    let mut states = Vec::new();
    for shipped in machinist_api::crd::all() {
        let name = shipped.metadata.name.clone().unwrap_or_default();
        let installed = match all.get_opt(&name).await {
            Ok(Some(installed)) => Ok(Definition::Installed(Box::new(installed))),
            Ok(None) => Ok(Definition::Missing),
            Err(kube::Error::Api(status)) if status.code == 403 => served(client, &shipped).await?,
            Err(error) => asked(&format!("read the definition {name}"), Err(error))?,
        };
        states.push(DefinitionState { shipped, installed });
    }
    Ok(states)
}

/// Whoever may not read definitions may still see what is served.
async fn served(
    client: &Client,
    shipped: &CustomResourceDefinition,
) -> anyhow::Result<Asked<Definition>> {
    let version = shipped.spec.versions.first().map_or("", |version| version.name.as_str());
    let group = format!("{}/{version}", shipped.spec.group);
    let plural = &shipped.spec.names.plural;
    match client.list_api_group_resources(&group).await {
        Ok(known) if known.resources.iter().any(|one| one.name == *plural) => {
            Ok(Ok(Definition::Served))
        }
        Ok(_) => Ok(Ok(Definition::Missing)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Ok(Definition::Missing)),
        Err(error) => asked(&format!("ask what {group} has"), Err(error)),
    }
}

async fn deployment(client: &Client, namespace: &str) -> anyhow::Result<Option<Deployment>> {
    let deployments = Api::<Deployment>::namespaced(client.clone(), namespace);
    let found = deployments.list(&ListParams::default().labels(DEPLOYED)).await;
    // It is only a hint: the leases say who runs.
    let found = asked("list deployments", found)?;
    Ok(found.ok().and_then(|found| found.items.into_iter().next()))
}

fn deployed(deployment: &Deployment) -> Deployed {
    let status = deployment.status.as_ref();
    Deployed {
        name: deployment.metadata.name.clone().unwrap_or_default(),
        wanted: deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
        available: status.and_then(|status| status.available_replicas).unwrap_or_default(),
    }
}

fn user_of(deployment: Option<&Deployment>, source: &Source, namespace: &str) -> String {
    let pod = deployment.and_then(|one| one.spec.as_ref()?.template.spec.as_ref());
    match (pod.and_then(|pod| pod.service_account_name.as_deref()), source) {
        (Some(account), _) => format!("system:serviceaccount:{namespace}:{account}"),
        (None, Source::Up(_)) => OPERATOR_USER.to_owned(),
        (None, _) => format!("system:serviceaccount:{namespace}:{SERVICE_ACCOUNT}"),
    }
}

async fn leases(
    client: &Client,
    namespace: &str,
) -> anyhow::Result<Asked<BTreeMap<String, LeaseState>>> {
    let api = Api::<Lease>::namespaced(client.clone(), namespace);
    let found = futures::future::try_join_all(lease::ALL.map(|name| api.get_opt(name))).await;
    let found = asked(&format!("read leases in {namespace}"), found)?;
    Ok(found.map(|found| {
        let states = found
            .into_iter()
            .flatten()
            .map(|lease| (lease.metadata.name.clone().unwrap_or_default(), lease_state(lease)));
        states.collect()
    }))
}

fn lease_state(lease: Lease) -> LeaseState {
    let written = lease.metadata.managed_fields.into_iter().flatten();
    let written = written.filter_map(|entry| entry.time).map(|time| time.0).max();
    let spec = lease.spec.unwrap_or_default();
    LeaseState {
        record: LeaseRecord {
            holder: spec.holder_identity.unwrap_or_default(),
            duration_seconds: spec.lease_duration_seconds.unwrap_or_default(),
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        },
        written,
    }
}

async fn status(client: &Client, namespace: &str) -> anyhow::Result<Asked<Option<OperatorStatus>>> {
    let api = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let what = format!("read ConfigMap {namespace}/{CONFIG_MAP}");
    let found = match asked(&what, api.get_opt(CONFIG_MAP).await)? {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(Ok(None)),
        Err(why) => return Ok(Err(why)),
    };
    let text = found.data.unwrap_or_default().remove(KEY).unwrap_or_default();
    let status = serde_json::from_str(&text);
    Ok(status.map(Some).map_err(|error| format!("{KEY} in it is no status: {error}")))
}

async fn serving_certificate(
    client: &Client,
    namespace: &str,
) -> anyhow::Result<Asked<Option<Vec<u8>>>> {
    let api = Api::<Secret>::namespaced(client.clone(), namespace);
    let found = api.get_opt(CERTIFICATE_SECRET).await;
    let found = asked(&format!("read Secret {namespace}/{CERTIFICATE_SECRET}"), found)?;
    // The key beside it is dropped here.
    Ok(found.map(|secret| Some(secret?.data?.remove(CERTIFICATE)?.0)))
}

async fn quotas(client: &Client, namespace: &str) -> anyhow::Result<Asked<Vec<FullQuota>>> {
    let api = Api::<ResourceQuota>::namespaced(client.clone(), namespace);
    let found = api.list(&ListParams::default()).await;
    let found = asked(&format!("list resourcequotas in {namespace}"), found)?;
    Ok(found.map(|found| found.items.iter().flat_map(full).collect()))
}

/// What of a quota is used up. Both numbers are the API server's, in one spelling.
fn full(quota: &ResourceQuota) -> Vec<FullQuota> {
    let Some(status) = &quota.status else { return Vec::new() };
    let hard = status.hard.iter().flatten();
    let entries = hard.filter_map(|(resource, hard)| {
        let used = status.used.as_ref()?.get(resource)?;
        let is_full = used == hard || number(&used.0)? >= number(&hard.0)?;
        is_full.then(|| FullQuota {
            name: quota.metadata.name.clone().unwrap_or_default(),
            resource: resource.clone(),
            used: used.0.clone(),
            hard: hard.0.clone(),
        })
    });
    entries.collect()
}

fn number(quantity: &str) -> Option<i64> {
    quantity.parse().ok()
}

async fn said_quotas(client: &Client, namespace: &str) -> anyhow::Result<Asked<Vec<SaidQuota>>> {
    let scope = Scope::Namespace(namespace.to_owned());
    let (machines, sets) = (api::<Machine>(client, &scope), api::<MachineSet>(client, &scope));
    let mut said = Vec::new();
    for (kind, objects) in [("machine", machines), ("pool", sets)] {
        match objects.list(&ListParams::default()).await {
            Ok(found) => said.extend(found.items.iter().filter_map(|one| said_of(kind, one))),
            // Another check tells that the definition is missing.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return asked(&format!("list {kind}s in {namespace}"), Err(error)),
        }
    }
    said.truncate(SAID_MAX);
    Ok(Ok(said))
}

/// What an object says of the cloud's quotas, if it does.
fn said_of(kind: &str, object: &DynamicObject) -> Option<SaidQuota> {
    let conditions = object.data.pointer("/status/conditions")?.as_array()?;
    let text = |of: &Value, field: &str| of.get(field).and_then(Value::as_str).map(str::to_owned);
    let condition = conditions
        .iter()
        .find(|one| text(one, "reason").as_deref() == Some(reason::QUOTA_EXCEEDED))?;
    let message = text(condition, "message").unwrap_or_default();
    let name = object.metadata.name.clone().unwrap_or_default();
    Some(SaidQuota { object: format!("{kind} {name}"), message })
}

#[cfg(test)]
mod tests;
