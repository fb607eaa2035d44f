//! Says how the machines of a check are, on the check, on the machines, and to who measures.

use kube::{Api, Resource};
use machinist_api::{Machine, MachineHealthCheck};
use machinist_core::health::HealthDecision;

use super::memory::Memory;
use crate::{
    context::Context,
    engine::{events::EventTarget, store::ObjectKey},
    write::{self, Precondition, WriteError},
};

pub async fn publish(
    context: &Context,
    memory: &Memory,
    check: &MachineHealthCheck,
    answer: &HealthDecision,
) -> Result<(), WriteError> {
    let key = ObjectKey::of(check);
    if let Some(gauges) = answer.gauges {
        context.metrics.set_health_check(&key.namespace, &key.name, gauges);
    }
    let api = Api::<MachineHealthCheck>::namespaced(context.client.clone(), &key.namespace);
    let (stored, wanted) = (check.status.as_ref(), &answer.decision.status);
    let written = write::status(&api, check, stored, wanted, Precondition::Observed).await?;
    // Only now: what is told once is told by its difference from the stored status.
    context.announce(&EventTarget::of(check), "Remediate", &answer.decision.announcements);
    for told in &answer.machine_events {
        let target = machine_target(&key.namespace, &told.name, &told.uid);
        context.announce(&target, "Remediate", std::slice::from_ref(&told.announcement));
    }
    let now = context.env.now();
    memory.change(&key, |memory| {
        memory.decided = answer.memory.clone();
        if written.is_some() {
            memory.status_written_at = Some(now);
        }
    });
    if let Some(written) = written {
        context.stores.health_checks.apply_written(written);
    }
    Ok(())
}

/// A Machine of which no more than this may be known by now.
pub fn machine_target(namespace: &str, name: &str, uid: &str) -> EventTarget {
    EventTarget {
        api_version: Machine::api_version(&()).into_owned(),
        kind: Machine::kind(&()).into_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
    }
}
