//! What does a provider's object tell us?
//!
//! Only the fields of the contract are kept of an object (`keep_contract`): memory is paid for each machine.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Contract;

/// Another's condition, as it is mirrored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    pub status: String,
    pub reason: String,
    pub message: String,
    /// `None` when the provider does not say.
    pub since: Option<Timestamp>,
}

/// Cluster API's word for a condition without a reason.
pub const NO_REASON_REPORTED: &str = "NoReasonReported";

/// The fields of `spec` that are read: of an InfraMachine, an InfraCluster and a control plane.
const SPEC: [&str; 5] =
    ["providerID", "failureDomain", "controlPlaneEndpoint", "version", "replicas"];
/// The fields of `status` that are read.
const STATUS: [&str; 15] = [
    "ready",
    "initialized",
    "initialization",
    "addresses",
    "failureDomain",
    "failureDomains",
    "failureReason",
    "failureMessage",
    "interruptible",
    "dataSecretName",
    "externalManagedControlPlane",
    "version",
    "versions",
    "observedGeneration",
    "capacity",
];

/// Drops whatever no contract names.
pub fn keep_contract(object: &mut Value) {
    let Some(all) = object.as_object_mut() else { return };
    let spec = kept(all.get("spec"), &SPEC);
    let mut status = kept(all.get("status"), &STATUS);
    let ready = |conditions: &Value| {
        let conditions = conditions.as_array().map_or(&[][..], Vec::as_slice);
        let ready = conditions.iter().filter(|one| one["type"] == "Ready").cloned();
        Value::Array(ready.collect())
    };
    if let Some(conditions) = all.get("status").and_then(|status| status.get("conditions")) {
        status.insert("conditions".to_owned(), ready(conditions));
    }
    if let Some(conditions) =
        all.get("status").and_then(|status| status.pointer("/v1beta2/conditions"))
    {
        status.insert("v1beta2".to_owned(), json!({ "conditions": ready(conditions) }));
    }
    let deprecated = "/deprecated/v1beta1/conditions";
    if let Some(conditions) = all.get("status").and_then(|status| status.pointer(deprecated)) {
        let conditions = json!({ "v1beta1": { "conditions": ready(conditions) } });
        status.insert("deprecated".to_owned(), conditions);
    }
    *all = Map::new();
    all.insert("spec".to_owned(), Value::Object(spec));
    all.insert("status".to_owned(), Value::Object(status));
}

fn kept(part: Option<&Value>, fields: &[&str]) -> Map<String, Value> {
    let part = part.and_then(Value::as_object);
    let all = part.into_iter().flatten();
    all.filter(|(name, _)| fields.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Whether the infrastructure of an InfraMachine or InfraCluster is there.
pub fn is_provisioned(object: &Value, contract: Contract) -> bool {
    is_initialized(object, contract, "/status/initialization/provisioned", "/status/ready")
}

/// Whether a BootstrapConfig has written its Secret.
pub fn is_data_secret_created(object: &Value, contract: Contract) -> bool {
    is_initialized(object, contract, "/status/initialization/dataSecretCreated", "/status/ready")
}

/// Whether a control plane has come up once.
pub fn is_control_plane_initialized(object: &Value, contract: Contract) -> bool {
    let new = "/status/initialization/controlPlaneInitialized";
    is_initialized(object, contract, new, "/status/initialized")
}

fn is_initialized(object: &Value, contract: Contract, new: &str, old: &str) -> bool {
    let path = match contract {
        Contract::V1Beta2 => new,
        Contract::V1Beta1 => old,
    };
    object.pointer(path) == Some(&Value::Bool(true))
}

/// How the field is called that says whether infrastructure is there, for messages.
pub fn provisioned_field(contract: Contract) -> &'static str {
    match contract {
        Contract::V1Beta2 => "status.initialization.provisioned",
        Contract::V1Beta1 => "status.ready",
    }
}

/// How the field is called that says whether the bootstrap data is there, for messages.
pub fn data_secret_created_field(contract: Contract) -> &'static str {
    match contract {
        Contract::V1Beta2 => "status.initialization.dataSecretCreated",
        Contract::V1Beta1 => "status.ready",
    }
}

/// A text that is there and not empty.
pub fn text<'a>(object: &'a Value, path: &str) -> Option<&'a str> {
    object.pointer(path)?.as_str().filter(|text| !text.is_empty())
}

pub fn provider_id(object: &Value) -> Option<&str> {
    text(object, "/spec/providerID")
}

pub fn data_secret_name(object: &Value) -> Option<&str> {
    text(object, "/status/dataSecretName")
}

/// Where the machine is, by the provider's word.
pub fn failure_domain(object: &Value) -> Option<&str> {
    text(object, "/status/failureDomain")
}

/// Where the machine is, as older providers say it.
pub fn legacy_failure_domain(object: &Value) -> Option<&str> {
    text(object, "/spec/failureDomain")
}

pub fn is_interruptible(object: &Value) -> bool {
    object.pointer("/status/interruptible") == Some(&Value::Bool(true))
}

/// Whether the control plane is run by somebody else, without Machines.
pub fn is_externally_managed(object: &Value) -> bool {
    object.pointer("/status/externalManagedControlPlane") == Some(&Value::Bool(true))
}

/// The reason and the message of a failure that the provider calls terminal.
pub fn terminal_failure(object: &Value) -> (Option<&str>, Option<&str>) {
    (text(object, "/status/failureReason"), text(object, "/status/failureMessage"))
}

/// The addresses, as pairs of type and address. One that is no such pair is left out.
pub fn addresses(object: &Value) -> Vec<(&str, &str)> {
    let all = object.pointer("/status/addresses").and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .filter_map(|one| Some((one["type"].as_str()?, one["address"].as_str()?)))
        .collect()
}

/// Where an InfraCluster can put machines, as the newer contract has it: a list in the order of names.
pub fn failure_domains(object: &Value, contract: Contract) -> Vec<Value> {
    let told = object.pointer("/status/failureDomains");
    let mut domains: Vec<Value> = match contract {
        Contract::V1Beta2 => told.and_then(Value::as_array).cloned().unwrap_or_default(),
        // By name, and whoever says nothing of the control plane means no.
        Contract::V1Beta1 => {
            let all = told.and_then(Value::as_object).into_iter().flatten();
            let named = all.map(|(name, one)| {
                let mut domain = Map::from_iter([
                    ("name".to_owned(), json!(name)),
                    ("controlPlane".to_owned(), json!(one["controlPlane"] == json!(true))),
                ]);
                if let Some(attributes) = one.get("attributes") {
                    domain.insert("attributes".to_owned(), attributes.clone());
                }
                Value::Object(domain)
            });
            named.collect()
        }
    };
    domains.sort_by(|left, right| left["name"].as_str().cmp(&right["name"].as_str()));
    domains
}

/// What the object says of itself: its condition Ready; `None` when it has none.
///
/// # Errors
/// Fails, in words, when the condition is none by any contract.
pub fn ready_condition(object: &Value) -> Result<Option<Mirrored>, String> {
    let conditions = object
        .pointer("/status/v1beta2/conditions")
        .or_else(|| object.pointer("/status/conditions"))
        .and_then(Value::as_array);
    let Some(found) = find_ready(conditions) else { return Ok(None) };
    let status = found["status"].as_str().unwrap_or_default();
    if !matches!(status, "True" | "False" | "Unknown") {
        return Err(format!("condition Ready has the status {status:?}, which is none"));
    }
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    let reason = match (text("reason"), status) {
        // Cluster API rewrites what has no reason and is well.
        (reason, "True") if reason.is_empty() || reason == NO_REASON_REPORTED => "Ready".to_owned(),
        (reason, _) if reason.is_empty() => NO_REASON_REPORTED.to_owned(),
        (reason, _) => reason,
    };
    Ok(Some(Mirrored {
        status: status.to_owned(),
        reason,
        message: text("message"),
        since: found["lastTransitionTime"].as_str().and_then(|time| time.parse().ok()),
    }))
}

/// The same as readers of the version before find it, whatever version the object is of.
pub fn v1beta1_ready_condition(object: &Value) -> Option<machinist_api::Condition> {
    let found = find_ready(object.pointer("/status/conditions").and_then(Value::as_array))?;
    let mut told: machinist_api::Condition = serde_json::from_value(found.clone()).ok()?;
    // Here nothing is said by leaving it out; the newer conditions say it with empty words.
    told.reason = told.reason.filter(|reason| !reason.is_empty());
    told.message = told.message.filter(|message| !message.is_empty());
    Some(told)
}

fn find_ready(conditions: Option<&Vec<Value>>) -> Option<&Value> {
    conditions.into_iter().flatten().find(|one| one["type"] == "Ready")
}
