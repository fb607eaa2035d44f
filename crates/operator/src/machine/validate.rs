//! Whether a wanted launch would be accepted, as far as reads can tell. Asked before the intent is
//! stored, so that a Machine that can never be launched never has one.

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::Api;
use machinist_core::{
    cloud::{CloudFailure, ErrorClass},
    machine::{
        decide::wants_launch,
        observed::{LaunchParameters, cluster_id, provider_status, validate},
    },
};
use machinist_providers::{LaunchRequest, PreparedLaunch, UserData};

use machinist_api::{Machine, names::secret_key};

use super::observe::Observation;
use crate::{
    cloud::{CloudAccess, view::failure_of},
    context::Context,
};

/// What the checks said.
pub struct LaunchCheck {
    pub verdict: Result<LaunchParameters, CloudFailure>,
    pub prepared: Option<PreparedLaunch>,
}

/// Checks the launch, if one is wanted.
pub async fn launch_check(context: &Context, observation: &Observation) -> Option<LaunchCheck> {
    let access = observation.access.as_ref()?;
    let observed = observation.observed(None);
    if !wants_launch(&observed, &context.policy(), context.env.now()) {
        return None;
    }
    let machine = &observation.machine;
    let request = match user_data(context, machine).await {
        Ok(user_data) => launch_request(machine, access, user_data),
        Err(failure) => Err(failure),
    };
    let request = match request {
        Ok(request) => request,
        Err(failure) => return Some(LaunchCheck { verdict: Err(failure), prepared: None }),
    };
    let prepared = match promised_parameters(machine) {
        Some(resolved) => Ok(PreparedLaunch { request, resolved }),
        None => access.provider().prepare(&request).await,
    };
    Some(match prepared {
        Ok(prepared) => {
            LaunchCheck { verdict: Ok(prepared.resolved.clone()), prepared: Some(prepared) }
        }
        Err(error) => LaunchCheck { verdict: Err(failure_of(&error)), prepared: None },
    })
}

/// What an open intent promised to send: a repeated call sends the same, whatever the filters of
/// the providerSpec match by now.
fn promised_parameters(machine: &Machine) -> Option<LaunchParameters> {
    provider_status(machine).launch.filter(|intent| !intent.refused)?.parameters
}

/// What would be launched for a Machine.
pub(super) fn launch_request(
    machine: &Machine,
    access: &CloudAccess,
    user_data: Option<UserData>,
) -> Result<LaunchRequest, CloudFailure> {
    let provider_spec = machine.spec.provider_spec.value.clone().ok_or_else(|| CloudFailure {
        class: ErrorClass::InvalidConfiguration,
        message: "spec.providerSpec.value: Required value".to_owned(),
    })?;
    Ok(LaunchRequest {
        cluster_id: cluster_id(machine).unwrap_or_default().to_owned(),
        machine_name: machine.metadata.name.clone().unwrap_or_default(),
        machine_uid: machine.metadata.uid.clone().unwrap_or_default(),
        provider_spec,
        user_data,
        cluster_tags: access.cluster_tags.clone(),
        ip_family: access.ip_family,
    })
}

/// A secret that is missing may still come: not a fault of the configuration.
async fn user_data(context: &Context, machine: &Machine) -> Result<Option<UserData>, CloudFailure> {
    let facts = validate(machine).map_err(|fault| CloudFailure {
        class: ErrorClass::InvalidConfiguration,
        message: fault.to_string(),
    })?;
    let Some(name) = facts.user_data_secret else { return Ok(None) };
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let path = format!("spec.providerSpec.value.userDataSecret.name: secret {namespace}/{name}");
    let transient = |message: String| CloudFailure { class: ErrorClass::Transient, message };
    let secret = Api::<Secret>::namespaced(context.client.clone(), namespace)
        .get_opt(&name)
        .await
        .map_err(|error| transient(format!("{path} could not be read: {error}")))?
        .ok_or_else(|| transient(format!("{path} was not found")))?;
    let ByteString(bytes) = secret
        .data
        .and_then(|mut data| data.remove(secret_key::USER_DATA))
        .ok_or_else(|| transient(format!("{path} has no key {}", secret_key::USER_DATA)))?;
    Ok(Some(UserData(bytes)))
}
