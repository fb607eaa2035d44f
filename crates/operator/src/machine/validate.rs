//! Whether a wanted launch would be accepted, as far as reads can tell. Asked before the intent is
//! stored, so that a Machine that can never be launched never has one.

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::Api;
use machinist_core::{
    cloud::{CloudFailure, ErrorClass},
    machine::{decide::wants_launch, observed::validate},
};
use machinist_providers::{LaunchRequest, PreparedLaunch, UserData};

use machinist_api::{Machine, names::secret_key};

use super::observe::Observation;
use crate::{cloud::view::failure_of, context::Context};

/// What the checks said.
pub struct LaunchCheck {
    pub verdict: Result<(), CloudFailure>,
    pub prepared: Option<PreparedLaunch>,
}

/// Checks the launch, if one is wanted.
pub async fn launch_check(context: &Context, observation: &Observation) -> Option<LaunchCheck> {
    let access = observation.access.as_ref()?;
    let observed = observation.observed(None);
    if !wants_launch(&observed, &context.policy, context.env.now()) {
        return None;
    }
    let machine = &observation.machine;
    let request = match launch_request(context, machine, &access.cluster_tags).await {
        Ok(request) => request,
        Err(failure) => return Some(LaunchCheck { verdict: Err(failure), prepared: None }),
    };
    Some(match access.provider.prepare(&request).await {
        Ok(prepared) => LaunchCheck { verdict: Ok(()), prepared: Some(prepared) },
        Err(error) => LaunchCheck { verdict: Err(failure_of(&error)), prepared: None },
    })
}

async fn launch_request(
    context: &Context,
    machine: &Machine,
    cluster_tags: &std::collections::BTreeMap<String, String>,
) -> Result<LaunchRequest, CloudFailure> {
    let invalid =
        |message: String| CloudFailure { class: ErrorClass::InvalidConfiguration, message };
    let facts = validate(machine).map_err(|fault| invalid(fault.to_string()))?;
    let provider_spec = machine
        .spec
        .provider_spec
        .value
        .clone()
        .ok_or_else(|| invalid("spec.providerSpec.value: Required value".to_owned()))?;
    let user_data = match &facts.user_data_secret {
        Some(name) => Some(user_data(context, machine, name).await?),
        None => None,
    };
    Ok(LaunchRequest {
        cluster_id: machinist_core::machine::observed::cluster_id(machine)
            .unwrap_or_default()
            .to_owned(),
        machine_name: machine.metadata.name.clone().unwrap_or_default(),
        machine_uid: machine.metadata.uid.clone().unwrap_or_default(),
        provider_spec,
        user_data,
        cluster_tags: cluster_tags.clone(),
    })
}

/// A secret that is missing may still come: not a fault of the configuration.
async fn user_data(
    context: &Context,
    machine: &Machine,
    name: &str,
) -> Result<UserData, CloudFailure> {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let path = format!("spec.providerSpec.value.userDataSecret.name: secret {namespace}/{name}");
    let transient = |message: String| CloudFailure { class: ErrorClass::Transient, message };
    let secret = Api::<Secret>::namespaced(context.client.clone(), namespace)
        .get_opt(name)
        .await
        .map_err(|error| transient(format!("{path} could not be read: {error}")))?
        .ok_or_else(|| transient(format!("{path} was not found")))?;
    let ByteString(bytes) = secret
        .data
        .and_then(|mut data| data.remove(secret_key::USER_DATA))
        .ok_or_else(|| transient(format!("{path} has no key {}", secret_key::USER_DATA)))?;
    Ok(UserData(bytes))
}
