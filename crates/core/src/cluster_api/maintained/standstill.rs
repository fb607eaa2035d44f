//! Why does Cluster API let nothing happen to a machine now?

use machinist_api::cluster_api::{
    Cluster, MachineDeployment, MachineSet,
    names::{annotation, strategy},
};

use super::Owners;
use crate::cluster_api::{identity, pausing};

/// In words; `None` where nothing stands still. Work that was begun waits for it as well.
pub fn standstill(
    machine: &machinist_api::cluster_api::Machine,
    owners: &Owners<'_>,
) -> Option<String> {
    let annotated = |kind: &str, metadata| {
        identity::annotation(metadata, annotation::PAUSED)
            .map(|_| format!("{kind} has the annotation {}", annotation::PAUSED))
    };
    let cluster = owners.cluster;
    if let Some(why) = cluster.and_then(of_cluster) {
        return Some(why);
    }
    if let Some(why) = annotated("the Machine", &machine.metadata) {
        return Some(why);
    }
    if let Some(why) = owners.set.and_then(|set| annotated("its MachineSet", &set.metadata)) {
        return Some(why);
    }
    owners.deployment.and_then(|one| of_deployment(one, &owners.siblings))
}

fn of_cluster(cluster: &Cluster) -> Option<String> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    if identity::is_deleting(&cluster.metadata) {
        return Some(format!("Cluster {name} is being deleted"));
    }
    pausing::is_paused(&cluster.metadata, Some(cluster))
        .then(|| format!("Cluster {name} is paused"))
}

fn of_deployment(deployment: &MachineDeployment, sets: &[&MachineSet]) -> Option<String> {
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let is_annotated = identity::annotation(&deployment.metadata, annotation::PAUSED).is_some();
    if is_annotated || deployment.spec.paused == Some(true) {
        return Some(format!("MachineDeployment {name} is paused"));
    }
    is_rolling(deployment, sets).then(|| {
        format!("MachineDeployment {name} is being rolled out, and its old machines go with that")
    })
}

/// Which of its sets grows or shrinks is then the rollout's choice. One whose old machines go only when somebody deletes
/// them is in no hurry.
fn is_rolling(deployment: &MachineDeployment, sets: &[&MachineSet]) -> bool {
    if deployment.spec.rollout.strategy.type_.as_deref() == Some(strategy::ON_DELETE) {
        return false;
    }
    let has_machines = |set: &&&MachineSet| {
        let status = set.status.as_ref().and_then(|status| status.replicas);
        set.spec.replicas.unwrap_or(1) > 0 || status.unwrap_or(0) > 0
    };
    sets.iter().filter(has_machines).count() > 1
}
