//! Whose is a provider's object?
//!
//! Providers wait until their object has a Machine as its controller. A MachineSet or a control plane that made the object
//! holds it until then, without being its controller, so that nothing is left behind when it fails half-way.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Map, Value, json};

use super::GroupKind;

/// The group of Machines, MachineSets and Clusters.
pub const GROUP: &str = "cluster.x-k8s.io";
const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";

/// Why an object cannot be taken over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is controlled by {kind} {name} already")]
pub struct AlreadyOwned {
    pub kind: String,
    pub name: String,
}

/// What to change so that `owner`, a Machine, controls the object: a merge patch, or `None` when all is right. Owners that only
/// held the object until its Machine was there are let go.
pub fn hand_over(
    object: &ObjectMeta,
    owner: &OwnerReference,
    cluster: &str,
    control_plane: Option<&GroupKind>,
) -> Result<Option<Value>, AlreadyOwned> {
    let known = object.owner_references.as_deref().unwrap_or_default();
    refuse_others(object, owner)?;
    let mut owners: Vec<_> = known
        .iter()
        .filter(|one| !is_same(one, owner) && !is_first_holder(one, control_plane))
        .cloned()
        .collect();
    owners.push(owner.clone());
    let is_right = known.len() == owners.len() && known.contains(owner);
    let owners = (!is_right).then_some(owners);
    Ok(patch(object, owners, cluster))
}

/// # Errors
/// Fails where another than `owner` controls the object: it is not ours to change or delete.
pub fn refuse_others(object: &ObjectMeta, owner: &OwnerReference) -> Result<(), AlreadyOwned> {
    let known = object.owner_references.as_deref().unwrap_or_default();
    match controller_of(known).filter(|other| !is_same(other, owner)) {
        Some(other) => Err(AlreadyOwned { kind: other.kind.clone(), name: other.name.clone() }),
        None => Ok(()),
    }
}

/// What to change so that `owner` is among those of the object, as it is now written: a merge patch, or `None`.
pub fn with_owner(object: &ObjectMeta, owner: &OwnerReference, cluster: &str) -> Option<Value> {
    let known = object.owner_references.as_deref().unwrap_or_default();
    let owners = (!known.contains(owner)).then(|| {
        let others = known.iter().filter(|one| !is_same(one, owner)).cloned();
        others.chain([owner.clone()]).collect()
    });
    patch(object, owners, cluster)
}

fn patch(object: &ObjectMeta, owners: Option<Vec<OwnerReference>>, cluster: &str) -> Option<Value> {
    let mut metadata = Map::new();
    if let Some(owners) = owners {
        metadata.insert("ownerReferences".to_owned(), json!(owners));
    }
    let label = object.labels.as_ref().and_then(|labels| labels.get(CLUSTER_NAME));
    if label.map(String::as_str) != Some(cluster) {
        metadata.insert("labels".to_owned(), json!({ CLUSTER_NAME: cluster }));
    }
    (!metadata.is_empty()).then(|| json!({ "metadata": metadata }))
}

/// The owner that controls, of these.
pub fn controller_of(owners: &[OwnerReference]) -> Option<&OwnerReference> {
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// The group of an owner's apiVersion.
pub fn group_of(owner: &OwnerReference) -> &str {
    owner.api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether both name the same object, whatever the version: an older one is written anew.
fn is_same(left: &OwnerReference, right: &OwnerReference) -> bool {
    group_of(left) == group_of(right) && left.kind == right.kind && left.name == right.name
}

fn is_first_holder(owner: &OwnerReference, control_plane: Option<&GroupKind>) -> bool {
    let group = group_of(owner);
    (group == GROUP && owner.kind == "MachineSet")
        || control_plane.is_some_and(|one| one.group == group && one.kind == owner.kind)
}
