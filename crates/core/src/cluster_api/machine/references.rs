//! What is copied from the objects of the providers, and when are they handed over to the Machine?

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use machinist_api::cluster_api::{API_VERSION, ContractRef, Machine, MachineAddress, names::kind};
use serde_json::json;

use super::{
    decide::{Action, Pass, REFERENCE_RECHECK, Which},
    observed::Reference,
};
use crate::cluster_api::contract::{ownership, reading};

/// A provider that says that a machine is there, and not which, is given time; its watch usually tells sooner.
const PROVIDER_ID_RECHECK: SignedDuration = SignedDuration::from_secs(5);
/// As the deprecated part of the status calls it.
const INVALID_CONFIGURATION: &str = "InvalidConfiguration";
/// As many as the schema takes.
const ADDRESSES_MAX: usize = 32;

pub(super) fn bootstrap(pass: &mut Pass<'_>) {
    let machine = pass.machine();
    let Some(reference) = machine.spec.bootstrap.config_ref.clone() else { return };
    let is_known = machine.spec.bootstrap.data_secret_name.is_some();
    let Some(object) = look(pass, Which::Bootstrap, &reference) else { return };
    let (_, contract) = object;
    let object = object.0;
    terminal_failure(pass, object);
    if is_known {
        pass.status.initialization.bootstrap_data_secret_created = Some(true);
        return;
    }
    let is_going = object.metadata.deletion_timestamp.is_some();
    if is_going || !reading::is_data_secret_created(&object.data, contract) {
        return;
    }
    match reading::data_secret_name(&object.data) {
        Some(name) => {
            pass.spec.insert("bootstrap".to_owned(), json!({ "dataSecretName": name }));
            pass.status.initialization.bootstrap_data_secret_created = Some(true);
        }
        None => pass.problems.push(format!(
            "{} {}: {} is true, and status.dataSecretName is empty",
            reference.kind,
            reference.name,
            reading::data_secret_created_field(contract)
        )),
    }
}

pub(super) fn infrastructure(pass: &mut Pass<'_>) {
    let reference = pass.machine().spec.infrastructure_ref.clone();
    let was_provisioned = pass.status.initialization.infrastructure_provisioned == Some(true);
    let is_missing = pass.observed.infrastructure.is_missing();
    let Some((object, contract)) = look(pass, Which::Infrastructure, &reference) else {
        if is_missing && was_provisioned && !pass.observed.is_deleting() {
            let message = format!(
                "Machine infrastructure resource {} {} has been deleted after provisioning was completed",
                reference.kind, reference.name
            );
            let deprecated = pass.deprecated();
            deprecated.failure_reason = Some(INVALID_CONFIGURATION.to_owned());
            deprecated.failure_message = Some(message.clone());
            pass.problems.push(message);
        }
        return;
    };
    terminal_failure(pass, object);
    if object.metadata.deletion_timestamp.is_some() {
        // A machine that goes may still join. What it is called finds its Node when the object is gone.
        if let Some(provider_id) = reading::provider_id(&object.data)
            && pass.observed.machine.spec.provider_id.is_none()
        {
            pass.spec.insert("providerID".to_owned(), json!(provider_id));
        }
        return;
    }
    if !was_provisioned && !reading::is_provisioned(&object.data, contract) {
        return;
    }
    let Some(provider_id) = reading::provider_id(&object.data) else {
        pass.recheck_in(PROVIDER_ID_RECHECK);
        return;
    };
    let spec = &pass.observed.machine.spec;
    if spec.provider_id.as_deref() != Some(provider_id) {
        pass.spec.insert("providerID".to_owned(), json!(provider_id));
    }
    if let Some(domain) = reading::legacy_failure_domain(&object.data)
        && spec.failure_domain.as_deref() != Some(domain)
    {
        pass.spec.insert("failureDomain".to_owned(), json!(domain));
    }
    if let Some(domain) = reading::failure_domain(&object.data) {
        pass.status.failure_domain = Some(domain.to_owned());
    }
    pass.status.addresses = reading::addresses(&object.data)
        .into_iter()
        .filter(|(_, address)| !address.is_empty())
        .take(ADDRESSES_MAX)
        .map(|(type_, address)| MachineAddress {
            type_: type_.to_owned(),
            address: address.to_owned(),
        })
        .collect();
    pass.status.initialization.infrastructure_provisioned = Some(true);
}

/// The object, handed over to the Machine. `None` when there is none, which is said.
fn look<'a>(
    pass: &mut Pass<'a>,
    which: Which,
    reference: &ContractRef,
) -> Option<(&'a DynamicObject, crate::cluster_api::contract::Contract)> {
    let known = match which {
        Which::Bootstrap => pass.observed.bootstrap,
        Which::Infrastructure => pass.observed.infrastructure,
    };
    let (object, contract) = match known {
        Reference::NotDefined => return None,
        Reference::Unreadable(why) => {
            pass.problems.push(format!("{} {}: {why}", reference.kind, reference.name));
            return None;
        }
        Reference::Missing => {
            if !pass.observed.is_deleting() {
                pass.recheck_in(REFERENCE_RECHECK);
            }
            return None;
        }
        Reference::Found { object, contract } => (object, contract),
    };
    let control_plane = pass.observed.control_plane_kind();
    let owner = owner_reference(pass.observed.machine);
    let cluster = &pass.observed.machine.spec.cluster_name;
    match ownership::hand_over(&object.metadata, &owner, cluster, control_plane.as_ref()) {
        Ok(None) => {}
        Ok(Some(patch)) => pass.after.push(Action::PatchExternal { which, patch }),
        Err(error) => {
            pass.problems.push(format!("{} {}: {error}", reference.kind, reference.name));
            return None;
        }
    }
    Some((object, contract))
}

/// A Machine as the one that controls its objects.
pub(super) fn owner_reference(machine: &Machine) -> OwnerReference {
    let metadata = &machine.metadata;
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: kind::MACHINE.to_owned(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Only told, in the deprecated part: a failure of a provider has no other effect.
fn terminal_failure(pass: &mut Pass<'_>, object: &DynamicObject) {
    let (reason, message) = reading::terminal_failure(&object.data);
    let kind = object.types.as_ref().map_or("", |types| types.kind.as_str());
    let name = object.metadata.name.as_deref().unwrap_or_default();
    if let Some(reason) = reason {
        pass.deprecated().failure_reason = Some(reason.to_owned());
    }
    if let Some(message) = message {
        let api_version = object.types.as_ref().map_or("", |types| types.api_version.as_str());
        pass.deprecated().failure_message = Some(format!(
            "Failure detected from referenced resource {api_version}, Kind={kind} with name {name:?}: {message}"
        ));
    }
}
