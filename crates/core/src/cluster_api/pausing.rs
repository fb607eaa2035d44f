//! Is an object to be left alone, and how is that said?

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use machinist_api::cluster_api::{
    Cluster,
    condition::{self, FALSE, TRUE},
    names::{annotation, condition_type, reason},
};

/// Whether nothing may be done for an object: its Cluster says so, or its own annotation.
pub fn is_paused(metadata: &ObjectMeta, cluster: Option<&Cluster>) -> bool {
    is_cluster_paused(cluster) || is_annotated(metadata)
}

fn is_cluster_paused(cluster: Option<&Cluster>) -> bool {
    cluster.is_some_and(|cluster| cluster.spec.paused == Some(true))
}

fn is_annotated(metadata: &ObjectMeta) -> bool {
    metadata.annotations.as_ref().is_some_and(|all| all.contains_key(annotation::PAUSED))
}

/// The condition Paused, in the words of Cluster API.
pub fn paused_condition(
    kind: &str,
    metadata: &ObjectMeta,
    cluster: Option<&Cluster>,
    now: Timestamp,
) -> Condition {
    let mut why = Vec::new();
    if is_cluster_paused(cluster) {
        why.push("Cluster spec.paused is set to true".to_owned());
    }
    if is_annotated(metadata) {
        why.push(format!("{kind} has the {} annotation", annotation::PAUSED));
    }
    match why.is_empty() {
        true => condition::new(condition_type::PAUSED, FALSE, reason::NOT_PAUSED, "", now),
        false => condition::new(condition_type::PAUSED, TRUE, reason::PAUSED, why.join(", "), now),
    }
}
