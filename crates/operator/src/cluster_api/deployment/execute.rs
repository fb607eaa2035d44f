//! Makes, amends and deletes sets, in the order in which they were decided on; stops at the first failure.

use anyhow::Context as _;
use kube::{
    Api,
    api::{DeleteParams, ListParams, Preconditions},
};
use machinist_api::cluster_api::{MachineDeployment, MachineSet, names::label};
use machinist_core::cluster_api::{Identity, deployment::Action, identity::is_controlled_by};

use super::observe::Observation;
use crate::{
    cluster_api::{context::Context, decided::Written, templates},
    engine::store::ObjectKey,
    write::{self, Precondition, WriteError},
};

/// Whether an action is a write of the deployment itself.
pub fn changes_the_deployment(action: &Action) -> bool {
    matches!(action, Action::Amend(_) | Action::RemoveFinalizer(_))
}

pub async fn execute(
    context: &Context,
    observation: &Observation,
    actions: &[Action],
) -> anyhow::Result<()> {
    let written = Written::default();
    for action in actions {
        perform(context, observation, &written, action).await?;
    }
    Ok(())
}

async fn perform(
    context: &Context,
    observation: &Observation,
    written: &Written,
    action: &Action,
) -> anyhow::Result<()> {
    let deployment = &*observation.deployment;
    let key = ObjectKey::of(deployment);
    let client = &context.base.client;
    let sets = Api::<MachineSet>::namespaced(client.clone(), &key.namespace);
    match action {
        Action::Amend(patch) => {
            let api = Api::<MachineDeployment>::namespaced(client.clone(), &key.namespace);
            let written =
                write::object(&api, deployment, patch.clone(), Precondition::Observed).await?;
            context.stores.deployments.apply_written(written);
        }
        Action::RemoveFinalizer(patch) => {
            reveal_unseen(context, deployment, &sets).await?;
            let api = Api::<MachineDeployment>::namespaced(client.clone(), &key.namespace);
            let written =
                write::object(&api, deployment, patch.clone(), Precondition::Observed).await?;
            tracing::info!(deployment = %key, "the deployment has no sets any more and goes");
            let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
            let remaining = written.metadata.finalizers.iter().flatten().next().is_some();
            context.stores.deployments.apply_deleted(&key, uid, remaining.then_some(written));
        }
        Action::AmendTemplate { part, patch } => {
            let sight = observation.templates.iter().find(|sight| sight.part == *part);
            if let Some(sight) = sight {
                templates::amend(context, sight, patch.clone()).await?;
            }
        }
        Action::CreateSet(set) => {
            reveal_unseen(context, deployment, &sets).await?;
            create(context, deployment, &sets, set).await?;
        }
        Action::AmendSet { set, patch } => {
            let known = written.known(&context.stores.machine_sets, &key.namespace, set)?;
            let Some(known) = known else { return Ok(()) };
            let answer =
                write::object(&sets, &*known, patch.clone(), Precondition::Observed).await?;
            written.take(&context.stores.machine_sets, answer);
        }
        Action::DeleteSet(set) => {
            written.known(&context.stores.machine_sets, &key.namespace, set)?;
            delete(context, &key, &sets, set, written.version(set)).await?;
        }
    }
    Ok(())
}

/// Asks the API server for the deployment's sets before one is made, and before the deployment goes: a second set would
/// double its Machines. What was unseen is taken in, and the pass is decided again.
async fn reveal_unseen(
    context: &Context,
    deployment: &MachineDeployment,
    api: &Api<MachineSet>,
) -> anyhow::Result<()> {
    let key = ObjectKey::of(deployment);
    let selector = format!("{}={}", label::CLUSTER_NAME, deployment.spec.cluster_name);
    let listed = api
        .list_metadata(&ListParams::default().labels(&selector))
        .await
        .with_context(|| format!("failed to look for the sets of deployment {key}"))?;
    let unreadable = context.stores.machine_sets.invalid();
    let mut is_news = false;
    for set in listed.items {
        let set_key = ObjectKey::of(&set);
        let is_known = context.stores.machine_sets.get(&set_key).is_some()
            || unreadable.iter().any(|known| known.metadata.uid == set.metadata.uid);
        if is_controlled_by(&set.metadata, deployment.metadata.uid.as_deref()) && !is_known {
            tracing::warn!(deployment = %key, set = %set_key, "the watch does not show a set");
            context.stores.machine_sets.apply_written(api.get(&set_key.name).await?);
            is_news = true;
        }
    }
    if is_news {
        return Err(WriteError::Conflict { what: format!("the sets of deployment {key}") }.into());
    }
    Ok(())
}

/// The name follows from the template: one that is there already is the one that was wanted, or somebody else's.
async fn create(
    context: &Context,
    deployment: &MachineDeployment,
    api: &Api<MachineSet>,
    set: &MachineSet,
) -> anyhow::Result<()> {
    let name = set.metadata.name.clone().unwrap_or_default();
    let what = || format!("failed to make set {name}");
    match api.create(&write::creation(), set).await {
        Ok(created) => {
            tracing::info!(deployment = %ObjectKey::of(deployment), set = name, "made a set");
            context.stores.machine_sets.apply_written(created);
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let there = api.get(&name).await.with_context(what)?;
            let uid = deployment.metadata.uid.as_deref();
            let is_own = is_controlled_by(&there.metadata, uid);
            context.stores.machine_sets.apply_written(there);
            anyhow::ensure!(is_own, "{}: one that is not ours is there already", what());
            Err(WriteError::Conflict { what: format!("MachineSet {name}") }.into())
        }
        Err(error) => Err(anyhow::Error::new(error).context(what())),
    }
}

async fn delete(
    context: &Context,
    deployment: &ObjectKey,
    api: &Api<MachineSet>,
    set: &Identity,
    version: String,
) -> anyhow::Result<()> {
    context.base.require_leave()?;
    let key = ObjectKey::new(&deployment.namespace, &set.name);
    let preconditions =
        Preconditions { uid: Some(set.uid.clone()), resource_version: Some(version) };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..Default::default() };
    match api.delete(&set.name, &parameters).await {
        Ok(answer) => {
            tracing::info!(deployment = %deployment, set = set.name, "deleted a set");
            context.stores.machine_sets.apply_deleted(&key, &set.uid, answer.left());
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => {
            context.stores.machine_sets.forget_written(&key, &set.uid);
            Ok(())
        }
        Err(error) => Err(WriteError::of(format!("MachineSet {key}"), error).into()),
    }
}
