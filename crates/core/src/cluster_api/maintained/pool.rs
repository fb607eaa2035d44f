//! How is a MachineDeployment, or a MachineSet without one, seen as a pool?

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use machinist_api::{
    MachineSet as SeenPool, MachineSetStatus as SeenStatus,
    cluster_api::{
        MachineDeployment, MachineSet, TemplateSpec,
        names::{annotation as theirs, label as their_label},
    },
    names::{annotation, label},
};

use super::{OWNER_SURGE, STANDSTILL, WORKLOAD_CLUSTER, join, name};
use crate::cluster_api::{deployment, identity};

/// How a MachineDeployment is seen.
pub fn of_deployment(deployment: &MachineDeployment) -> SeenPool {
    let spec = &deployment.spec;
    let mut pool = pool(&deployment.metadata, &spec.cluster_name, spec.replicas, &spec.template);
    pool.spec.delete_policy = spec.deletion.order.clone();
    let annotations = pool.metadata.annotations.get_or_insert_default();
    annotations.insert(OWNER_SURGE.to_owned(), surge(deployment).to_string());
    let status = deployment.status.clone().unwrap_or_default();
    pool.status = Some(SeenStatus {
        replicas: status.replicas,
        ready_replicas: status.ready_replicas,
        available_replicas: status.available_replicas,
        observed_generation: status.observed_generation,
        ..SeenStatus::default()
    });
    pool
}

/// How a MachineSet without a MachineDeployment is seen.
pub fn of_set(set: &MachineSet) -> SeenPool {
    let spec = &set.spec;
    let mut pool = pool(&set.metadata, &spec.cluster_name, spec.replicas, &spec.template);
    pool.spec.delete_policy = spec.deletion.order.clone();
    let status = set.status.clone().unwrap_or_default();
    pool.status = Some(SeenStatus {
        replicas: status.replicas,
        ready_replicas: status.ready_replicas,
        available_replicas: status.available_replicas,
        observed_generation: status.observed_generation,
        ..SeenStatus::default()
    });
    pool
}

fn pool(
    metadata: &ObjectMeta,
    cluster: &str,
    replicas: Option<i32>,
    template: &TemplateSpec,
) -> SeenPool {
    let mut annotations = annotations(metadata);
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    annotations.insert(WORKLOAD_CLUSTER.to_owned(), join(namespace, cluster));
    let metadata = ObjectMeta {
        name: Some(name(metadata)),
        annotations: Some(annotations),
        ..metadata.clone()
    };
    let mut pool = SeenPool { metadata, ..SeenPool::default() };
    pool.spec.replicas = replicas;
    let labels = &mut pool.spec.template.metadata.labels;
    labels.clone_from(&template.metadata.labels);
    if let Some(zone) = &template.spec.failure_domain {
        labels.insert(label::ZONE.to_owned(), zone.clone());
    }
    pool
}

/// The annotations of a Machine or a pool, in the words of the other API where the two differ.
pub(super) fn annotations(metadata: &ObjectMeta) -> BTreeMap<String, String> {
    let mut all = metadata.annotations.clone().unwrap_or_default();
    all.retain(|key, _| ![OWNER_SURGE, STANDSTILL, WORKLOAD_CLUSTER].contains(&key.as_str()));
    // Of these each API has its own, and only that counts for its objects.
    for (own, other) in [
        (theirs::DELETE_MACHINE, annotation::DELETE_MACHINE),
        (theirs::AUTOSCALER_MAX_SIZE, annotation::AUTOSCALER_MAX_SIZE),
    ] {
        all.remove(other);
        if let Some(value) = all.remove(own) {
            // Here presence is enough, there the value counts.
            let value = if value.is_empty() { "true".to_owned() } else { value };
            all.insert(other.to_owned(), value);
        }
    }
    all
}

/// How many machines may be above the size while one is replaced. Where the size is written by the Cluster's topology, or the
/// strategy cannot be read, none: what we wrote would be taken back.
fn surge(deployment: &MachineDeployment) -> i32 {
    if identity::label(&deployment.metadata, their_label::TOPOLOGY_OWNED).is_some() {
        return 0;
    }
    let replicas = deployment.spec.replicas.unwrap_or(1);
    deployment::observed::validate(deployment).map_or(0, |policy| policy.surge(replicas))
}
