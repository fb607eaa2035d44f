//! What is asked of the cloud for a maintenance. Each effect waits for its turn; then the record is read
//! once more from the API server, and the lease asked for, right before the call.

use std::sync::Arc;

use kube::Api;
use machinist_api::{MachineMaintenance, MachineMaintenanceStatus};
use machinist_core::{
    cloud::InstanceId,
    maintenance::{Step, outcome},
};

use super::{Maintenance, observe::Observation};
use crate::{
    cloud::{CloudAccess, view::failure_of},
    context::Context,
    engine::store::ObjectKey,
    write::{self, WriteError},
};

/// How the cloud took it.
pub enum Asked {
    Accepted(MachineMaintenanceStatus),
    Refused(MachineMaintenanceStatus),
}

pub async fn ask(
    context: &Context,
    maintenance: &Maintenance,
    observation: &Observation,
    object: &MachineMaintenance,
    status: &MachineMaintenanceStatus,
    step: &Step,
) -> anyhow::Result<Asked> {
    let access = access(context, observation).await?;
    let (action, id) = of(step);
    let uid = object.metadata.uid.as_deref().unwrap_or_default();
    access.pace.turn(action, uid).await?;
    fence(context, object).await?;
    context.require_leadership()?;
    let provider = access.provider();
    let answer = match step {
        Step::EnableMigration(id) => provider.enable_reboot_migration(id).await,
        Step::Reboot(id) => {
            let effect = status.work.as_ref().and_then(|work| work.effect.as_ref());
            let stored_at = effect.map(|one| format!("{} {}", one.since.0, one.attempt));
            let key = ObjectKey::of(object);
            if maintenance.memory.may_reboot(&key, &stored_at.unwrap_or_default()) {
                provider.reboot(id).await
            } else {
                Ok(())
            }
        }
        Step::Stop(id) => provider.stop(id).await.map(|_| ()),
        Step::Start(id) => provider.start(id).await.map(|_| ()),
        Step::MoveEvent { instance, event_id, to } => {
            provider.move_event(instance, event_id, *to).await
        }
        _ => Ok(()),
    };
    if matches!(step, Step::MoveEvent { .. }) {
        access.view.ask_for_reports();
    } else if let Some(id) = id {
        access.view.watch_closely(id.clone());
    }
    let now = context.env.now();
    Ok(match answer {
        Ok(()) => Asked::Accepted(outcome::accepted(status, step, now)),
        Err(error) => {
            tracing::warn!(
                maintenance = %ObjectKey::of(object),
                step = step.name(),
                class = error.class.as_str(),
                %error,
                "the cloud refused"
            );
            Asked::Refused(outcome::refused(status, step, &failure_of(&error), now))
        }
    })
}

async fn access(context: &Context, observation: &Observation) -> anyhow::Result<Arc<CloudAccess>> {
    if let Some(access) = &observation.access {
        return Ok(Arc::clone(access));
    }
    let machine = observation.machine.as_ref();
    let machine = machine.ok_or_else(|| anyhow::anyhow!("the machine is gone"))?;
    context.clouds.of(machine).await.map_err(|failure| anyhow::anyhow!(failure.message))
}

/// Reads the record once more: another process may have gone on with it, however late the watch is.
async fn fence(context: &Context, object: &MachineMaintenance) -> anyhow::Result<()> {
    let key = ObjectKey::of(object);
    let api = Api::<MachineMaintenance>::namespaced(context.client.clone(), &key.namespace);
    let current = api.get_opt(&key.name).await?;
    let is_same = current.is_some_and(|current| {
        current.metadata.uid == object.metadata.uid
            && current.metadata.resource_version == object.metadata.resource_version
    });
    if is_same {
        return Ok(());
    }
    Err(WriteError::Conflict { what: write::name_of(object) }.into())
}

/// The provider's name of the action, and the instance that changes by it.
fn of(step: &Step) -> (&'static str, Option<&InstanceId>) {
    match step {
        Step::EnableMigration(id) => ("ModifyInstanceMaintenanceOptions", Some(id)),
        Step::Reboot(id) => ("RebootInstances", Some(id)),
        Step::Stop(id) => ("StopInstances", Some(id)),
        Step::Start(id) => ("StartInstances", Some(id)),
        Step::MoveEvent { instance, .. } => ("ModifyInstanceEventStartTime", Some(instance)),
        _ => ("DescribeInstances", None),
    }
}
