//! What is known of one deployment: its sets, their Machines, its templates, its cluster.

use std::{collections::BTreeMap, sync::Arc};

use machinist_api::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet};
use machinist_core::cluster_api::{
    deployment::{Observed, current, validate},
    identity::{self, is_deleting},
    machineset::Part,
    pausing,
};

use super::{DeploymentMemory, Memory};
use crate::{
    cluster_api::{
        context::Context,
        index,
        templates::{self, Sight},
    },
    engine::store::ObjectKey,
};

pub struct Observation {
    pub deployment: Arc<MachineDeployment>,
    cluster: Option<Arc<Cluster>>,
    sets: Vec<Arc<MachineSet>>,
    unreadable: usize,
    machines: Vec<Arc<Machine>>,
    pub templates: Vec<Sight>,
    memory: DeploymentMemory,
}

impl Observation {
    pub fn observed(&self) -> Observed<'_> {
        Observed {
            deployment: &self.deployment,
            cluster: self.cluster.as_deref(),
            sets: self.sets.iter().map(|set| &**set).collect(),
            unreadable: self.unreadable,
            machines: self.machines.iter().map(|machine| &**machine).collect(),
            templates: self.templates.iter().map(Sight::template).collect(),
            status_written_at: self.memory.status_written_at,
            last_failure: self.memory.last_failure.as_deref(),
        }
    }
}

pub async fn observe(
    context: &Context,
    memory: &Memory,
    deployment: &Arc<MachineDeployment>,
) -> Observation {
    let key = ObjectKey::of(&**deployment);
    let cluster = context.stores.cluster(&key.namespace, &deployment.spec.cluster_name);
    let sets = sets(context, deployment);
    let machines = sets
        .iter()
        .filter_map(|set| set.metadata.uid.as_deref())
        .flat_map(|uid| context.stores.machines.by_index(index::MACHINE_BY_OWNER, uid))
        .collect();

    let is_alive = !is_deleting(&deployment.metadata)
        && !pausing::is_paused(&deployment.metadata, cluster.as_deref());
    let known: Vec<&MachineSet> = sets.iter().map(|set| &**set).collect();
    let is_new = current::find(deployment, &known, context.base.env.now()).is_none();
    let generation = deployment.metadata.uid.clone().zip(deployment.metadata.generation);
    let is_news = memory.of(&key).templates_seen != generation;
    let templates = match is_alive && (is_new || is_news) {
        true => {
            let spec = &deployment.spec.template.spec;
            let bootstrap = spec.bootstrap.config_ref.iter().map(|one| (Part::Bootstrap, one));
            let references = bootstrap.chain([(Part::Infrastructure, &spec.infrastructure_ref)]);
            templates::look(context, &key.namespace, references.collect()).await
        }
        false => Vec::new(),
    };
    if !templates.is_empty() {
        memory.change(&key, |memory| memory.templates_seen = generation);
    }
    let uid = deployment.metadata.uid.as_deref();
    let invalid = context.stores.machine_sets.invalid();
    let unreadable =
        invalid.iter().filter(|set| identity::is_controlled_by(&set.metadata, uid)).count();
    Observation {
        deployment: Arc::clone(deployment),
        cluster,
        sets,
        unreadable,
        machines,
        templates,
        memory: memory.of(&key),
    }
}

/// What the deployment controls, whatever its labels, and what matches and has no controller.
fn sets(context: &Context, deployment: &MachineDeployment) -> Vec<Arc<MachineSet>> {
    let sets = &context.stores.machine_sets;
    let Some(uid) = deployment.metadata.uid.as_deref() else { return Vec::new() };
    let mut own = sets.by_index(index::MACHINE_BY_OWNER, uid);
    if let Ok(policy) = validate(deployment) {
        let empty = BTreeMap::new();
        let orphans = sets.by_index(index::MACHINE_BY_OWNER, index::NO_OWNER);
        own.extend(orphans.into_iter().filter(|set| {
            !is_deleting(&set.metadata)
                && policy.selector.matches(set.metadata.labels.as_ref().unwrap_or(&empty))
        }));
    }
    own.retain(|set| set.metadata.namespace == deployment.metadata.namespace);
    own
}
