//! What is done to the cloud for one Machine. Each effect waits for its turn and asks for the lease
//! right before the call.

use std::{collections::BTreeMap, sync::Arc};

use machinist_api::{Machine, names::event};
use machinist_core::{
    cloud::{ErrorClass, Instance, InstanceId},
    decision::Announcement,
    machine::{
        observed::{Identity, has_finalizer, is_deleting, provider_status},
        outcome,
    },
};
use machinist_providers::{PreparedLaunch, ProviderError};

use super::{
    NAME,
    execute::{Executed, machines},
    memory::Memory,
    observe::Observation,
};
use crate::{
    audit::Destruction,
    cloud::{CloudAccess, pace::NotYet, view::failure_of},
    context::Context,
    engine::{events::EventTarget, store::ObjectKey},
    metrics::InstanceOperation,
    write::{self, WriteError},
};

pub(super) async fn launch(
    context: &Context,
    memory: &Memory,
    access: &CloudAccess,
    prepared: &PreparedLaunch,
    client_token: &str,
    executed: &mut Executed,
) -> anyhow::Result<()> {
    turn(access, &executed.machine, "RunInstances").await?;
    fence(context, executed).await?;
    context.require_leave()?;
    let only_call = memory.sends(&ObjectKey::of(&*executed.machine), client_token);
    let answer = access.provider().launch(prepared, client_token).await;
    let machine = Arc::clone(&executed.machine);
    let now = context.env.now();
    match answer {
        Ok(instance) => {
            executed.aftermath = Some(outcome::launched(&machine, &instance, now));
            access.view.learn(instance);
            Ok(())
        }
        Err(error) if error.class == ErrorClass::TokenMismatch => {
            let identity = Identity::of(&machine);
            let found =
                access.provider().find(&identity.machine_uid, &identity.client_tokens).await?;
            let existing = found.iter().find(|one| one.state.is_live()).or_else(|| found.first());
            executed.aftermath =
                outcome::token_mismatch(&machine, existing, &context.policy(), now);
            match executed.aftermath {
                Some(_) => Ok(()),
                None => Err(error.into()),
            }
        }
        Err(error) => {
            count_failure(context, &machine, InstanceOperation::Create, error.class);
            let failure = failure_of(&error);
            let proves = only_call || nothing_came_of(context, access, &machine).await;
            executed.aftermath = Some(outcome::launch_failed(&machine, &failure, proves, now));
            match error.class {
                ErrorClass::InvalidConfiguration => Ok(()),
                _ => Err(error.into()),
            }
        }
    }
}

/// Whether none of the calls made with a token had an effect: by now it would be seen.
async fn nothing_came_of(context: &Context, access: &CloudAccess, machine: &Machine) -> bool {
    let since = provider_status(machine).launch.map(|intent| intent.since);
    let policy = context.policy();
    let visible_from =
        since.and_then(|at| policy.at_latest(at).checked_add(policy.disappearance()).ok());
    if visible_from.is_none_or(|from| from > context.env.now()) {
        return false;
    }
    let identity = Identity::of(machine);
    let found = access.provider().find(&identity.machine_uid, &identity.client_tokens).await;
    found.is_ok_and(|found| found.is_empty())
}

/// Waits for the turn to start the Machine's instance.
pub(super) async fn turn_to_start(observation: &Observation) -> anyhow::Result<()> {
    let access = observation.access.as_ref();
    let access = access.ok_or_else(|| anyhow::anyhow!("the cloud is not within reach"))?;
    Ok(turn(access, &observation.machine, "StartInstances").await?)
}

/// Waits for the Machine's turn; while it has to come back, its place in line is kept under its uid.
async fn turn(access: &CloudAccess, machine: &Machine, action: &'static str) -> Result<(), NotYet> {
    let uid = machine.metadata.uid.as_deref().unwrap_or_default();
    access.pace.turn(action, uid).await
}

/// Reads the Machine once more from the API server right before a launch: what is being deleted
/// must not be launched for, however late the watch is and however long the turn took (S2).
async fn fence(context: &Context, executed: &Executed) -> anyhow::Result<()> {
    let known = ObjectKey::of(&*executed.machine);
    let api = machines(context, &executed.machine);
    let current = api.get_opt(&known.name).await?;
    match current {
        Some(current)
            if current.metadata.uid == executed.machine.metadata.uid
                && !is_deleting(&current)
                && has_finalizer(&current) =>
        {
            Ok(())
        }
        _ => Err(WriteError::Conflict { what: write::name_of(&*executed.machine) }.into()),
    }
}

/// Tags what is there. Where that is not permitted everything else goes on.
pub(super) async fn tag(
    context: &Context,
    observation: &Observation,
    id: &InstanceId,
    tags: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let access = access_of(observation, id)?;
    turn(access, &observation.machine, "CreateTags").await?;
    context.require_leave()?;
    match access.provider().tag(id, tags).await {
        Ok(()) => {
            access.view.watch_closely(id.clone());
            Ok(())
        }
        Err(error) if error.class == ErrorClass::Unauthorized => {
            tell_failure(context, &observation.machine, event::FAILED_UPDATE, &error);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn start(
    context: &Context,
    observation: &Observation,
    id: &InstanceId,
    executed: &mut Executed,
) -> anyhow::Result<()> {
    let access = access_of(observation, id)?;
    context.require_leave()?;
    let answer = access.provider().start(id).await;
    access.view.watch_closely(id.clone());
    if let Err(error) = answer {
        count_failure(context, &executed.machine, InstanceOperation::Update, error.class);
        let failure = failure_of(&error);
        // The record says when it is tried again.
        executed.aftermath =
            Some(outcome::start_failed(&executed.machine, &failure, context.env.now()));
    }
    Ok(())
}

pub(super) async fn attach(
    context: &Context,
    observation: &Observation,
    instance: &Instance,
    fingerprint: &str,
    executed: &mut Executed,
) -> anyhow::Result<()> {
    let access = access_of(observation, &instance.id)?;
    let spec = &executed.machine.spec.provider_spec.value;
    let Some(spec) = spec else { anyhow::bail!("a machine without providerSpec has no balancers") };
    turn(access, &observation.machine, "elbv2:RegisterTargets").await?;
    context.require_leave()?;
    let answer = access.provider().attach(spec, instance).await;
    let now = context.env.now();
    match answer {
        Ok(()) => {
            executed.aftermath = Some(outcome::attached(&executed.machine, fingerprint, now));
            Ok(())
        }
        Err(error) => {
            let failure = failure_of(&error);
            executed.aftermath = Some(outcome::attach_failed(&executed.machine, &failure, now));
            Err(error.into())
        }
    }
}

/// Takes traffic away before the instance goes. What does not heal by itself does not keep the
/// machine: the load balancer's own checks take it out.
pub(super) async fn detach(
    context: &Context,
    observation: &Observation,
    instance: &Instance,
    executed: &mut Executed,
) -> anyhow::Result<()> {
    let access = access_of(observation, &instance.id)?;
    let Some(spec) = &observation.machine.spec.provider_spec.value else { return Ok(()) };
    turn(access, &observation.machine, "elbv2:DeregisterTargets").await?;
    context.require_leave()?;
    if let Err(error) = access.provider().detach(spec, instance).await {
        tell_failure(context, &observation.machine, event::FAILED_DELETE, &error);
        if matches!(error.class, ErrorClass::Transient | ErrorClass::Throttled) {
            return Err(error.into());
        }
    }
    executed.aftermath = Some(outcome::detached(&executed.machine, context.env.now()));
    Ok(())
}

pub(super) async fn terminate(
    context: &Context,
    observation: &Observation,
    id: &InstanceId,
    executed: &mut Executed,
) -> anyhow::Result<()> {
    let access = access_of(observation, id)?;
    turn(access, &observation.machine, "TerminateInstances").await?;
    context.require_leave()?;
    Destruction::of_machine("TerminateInstances", NAME, &id.0, &observation.machine).record();
    let answer = access.provider().terminate(id).await;
    access.view.watch_closely(id.clone());
    match answer {
        Ok(_) => Ok(()),
        // Gone already: the next look shows it.
        Err(error) if error.class == ErrorClass::NotFound => Ok(()),
        Err(error) => {
            let machine = &observation.machine;
            count_failure(context, machine, InstanceOperation::Delete, error.class);
            let failure = failure_of(&error);
            executed.aftermath =
                Some(outcome::terminate_failed(&executed.machine, &failure, context.env.now()));
            Err(error.into())
        }
    }
}

pub(super) async fn release_hosts(
    context: &Context,
    observation: &Observation,
    executed: &mut Executed,
) -> anyhow::Result<()> {
    let machine = &observation.machine;
    let Some(access) = &observation.access else {
        anyhow::bail!("the host of a machine cannot be released without access to its cloud");
    };
    turn(access, machine, "ReleaseHosts").await?;
    context.require_leave()?;
    let uid = machine.metadata.uid.as_deref().unwrap_or_default();
    Destruction::of_machine("ReleaseHosts", NAME, "", machine).record();
    if let Err(error) = access.provider().release_hosts(uid).await {
        let failure = failure_of(&error);
        executed.aftermath =
            Some(outcome::release_failed(&executed.machine, &failure, context.env.now()));
        return Err(error.into());
    }
    Ok(())
}

fn access_of<'a>(
    observation: &'a Observation,
    id: &InstanceId,
) -> anyhow::Result<&'a Arc<CloudAccess>> {
    let access = observation.access.as_ref();
    access.ok_or_else(|| anyhow::anyhow!("instance {id}: its cloud is not within reach"))
}

fn tell_failure(context: &Context, machine: &Machine, reason: &'static str, error: &ProviderError) {
    let announcement = Announcement::warning(reason, error.to_string());
    context.announce(&EventTarget::of(machine), "Reconcile", &[announcement]);
}

fn count_failure(
    context: &Context,
    machine: &Machine,
    operation: InstanceOperation,
    class: ErrorClass,
) {
    let key = ObjectKey::of(machine);
    context.metrics.count_instance_failure(operation, &key.namespace, &key.name, class.as_str());
}
