//! Makes and puts right. What fails is told, and keeps nothing else from being done.

use std::fmt::Debug;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Resource, api::PostParams};
use machinist_api::{MachineHealthCheck, names::event};
use machinist_core::{
    admission::configuration,
    upkeep::{
        Action, Kept, OLD_CONTROLLERS, decide, desired::TERMINATION_HANDLER, scale_down_patch,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Upkeep, observe::observe};
use crate::{
    context::Context,
    engine::{
        events::{EventTarget, EventType},
        store::{ObjectKey, Store},
    },
    write::{self, Precondition, WriteError},
};

#[derive(Debug, Default)]
pub struct Executed {
    pub failures: Vec<String>,
    /// Somebody else's write came first.
    pub is_superseded: bool,
}

pub async fn execute(context: &Context, upkeep: &Upkeep, actions: &[Action]) -> Executed {
    let mut executed = Executed::default();
    for action in actions {
        let Err(error) = perform(context, upkeep, action).await else { continue };
        let superseded = error.downcast_ref::<WriteError>().is_some_and(WriteError::is_superseded);
        if superseded {
            executed.is_superseded = true;
        } else {
            executed.failures.push(format!("{error:#}"));
        }
    }
    executed
}

/// Scales the controllers before us down, and does nothing else, while their leases are waited for.
pub(super) async fn take_over(context: &Context, upkeep: &Upkeep) -> anyhow::Result<()> {
    let observation = observe(context, upkeep);
    let history = upkeep.history().clone();
    for action in decide(&observation.observed(&history), context.env.now()).actions {
        if let Action::ScaleDown { uid, resource_version } = action {
            anyhow::ensure!(context.leadership.is_first_held(), "the operator's lease is lost");
            scale_down(context, upkeep, &uid, &resource_version).await?;
        }
    }
    Ok(())
}

async fn perform(context: &Context, upkeep: &Upkeep, action: &Action) -> anyhow::Result<()> {
    context.require_leadership()?;
    let (kept, step) = match action {
        Action::ScaleDown { uid, resource_version } => {
            return scale_down(context, upkeep, uid, resource_version).await;
        }
        Action::Create { kept, object } => (*kept, Step::Create(object)),
        Action::Restore { kept, patch, wanted, resource_version } => {
            (*kept, Step::Restore { patch, wanted, resource_version })
        }
    };
    let (client, namespace) = (context.client.clone(), upkeep.namespace.as_str());
    match kept {
        Kept::MutatingWebhooks => {
            write(context, upkeep, &Api::all(client), &upkeep.stores.mutating, kept, step).await
        }
        Kept::ValidatingWebhooks => {
            write(context, upkeep, &Api::all(client), &upkeep.stores.validating, kept, step).await
        }
        Kept::TerminationHandler => {
            let api = Api::namespaced(client, namespace);
            write(context, upkeep, &api, &upkeep.stores.daemon_sets, kept, step).await
        }
        Kept::TerminationCheck => {
            let api = Api::<MachineHealthCheck>::namespaced(client, namespace);
            write(context, upkeep, &api, &context.stores.health_checks, kept, step).await
        }
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Create(&'a Value),
    Restore { patch: &'a Value, wanted: &'a Value, resource_version: &'a str },
}

async fn write<K>(
    context: &Context,
    upkeep: &Upkeep,
    api: &Api<K>,
    store: &Store<K>,
    kept: Kept,
    step: Step<'_>,
) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
{
    let (written, wanted, words) = match step {
        Step::Create(object) => {
            let typed: K = serde_json::from_value(object.clone())?;
            let written = api
                .create(&PostParams::default(), &typed)
                .await
                .map_err(|error| WriteError::of(kept.to_string(), error))?;
            (written, object, "it did not exist")
        }
        Step::Restore { patch, wanted, resource_version } => {
            let stored = store.get(&key_of(upkeep, kept)).filter(|stored| {
                stored.meta().resource_version.as_deref() == Some(resource_version)
            });
            let stored = stored.ok_or_else(|| WriteError::Conflict { what: kept.to_string() })?;
            let written =
                write::object(api, &stored, patch.clone(), Precondition::Observed).await?;
            (written, wanted, "it was not as it should be")
        }
    };
    let answer = serde_json::to_value(&written)?;
    upkeep.history().note_written(kept, wanted, &answer, context.env.now());
    context.metrics.count_restored(kept);
    tracing::info!(object = %kept, why = words, "written");
    let target = EventTarget::of(&written);
    let message = format!("{kept} was written: {words}");
    upkeep.events.record(&target, EventType::Normal, event::RESTORED, "Restore", &message);
    store.apply_written(written);
    Ok(())
}

fn key_of(upkeep: &Upkeep, kept: Kept) -> ObjectKey {
    match kept {
        Kept::MutatingWebhooks | Kept::ValidatingWebhooks => {
            ObjectKey::cluster_wide(configuration::NAME)
        }
        Kept::TerminationHandler | Kept::TerminationCheck => {
            ObjectKey::new(upkeep.namespace.as_str(), TERMINATION_HANDLER)
        }
    }
}

async fn scale_down(
    context: &Context,
    upkeep: &Upkeep,
    uid: &str,
    resource_version: &str,
) -> anyhow::Result<()> {
    let key = ObjectKey::new(upkeep.namespace.as_str(), OLD_CONTROLLERS);
    let decided_on = |old: &Deployment| {
        old.metadata.uid.as_deref() == Some(uid)
            && old.metadata.resource_version.as_deref() == Some(resource_version)
    };
    let old = upkeep.stores.deployments.get(&key).filter(|old| decided_on(old));
    let old = old.ok_or_else(|| WriteError::Conflict { what: format!("Deployment {key}") })?;
    let api = Api::<Deployment>::namespaced(context.client.clone(), &upkeep.namespace);
    let patch = scale_down_patch(uid);
    let written = write::object(&api, &old, patch, Precondition::Observed).await?;
    tracing::info!(deployment = %key, "scaled the controllers before us to 0");
    let message = format!("scaled Deployment {key} to 0: this operator does its work");
    let target = EventTarget::of(&written);
    upkeep.events.record(&target, EventType::Normal, event::TAKEN_OVER, "TakeOver", &message);
    upkeep.stores.deployments.apply_written(written);
    Ok(())
}
