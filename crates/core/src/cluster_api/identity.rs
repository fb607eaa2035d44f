//! Which object, in which version, was decided on? (Rule 3) And who owns whom?

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use machinist_api::cluster_api::{API_VERSION, Cluster};

/// An object as it was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
}

impl Identity {
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

/// The reference that makes an object of this API the controller of another.
pub fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        block_owner_deletion: Some(true),
        controller: Some(true),
        ..plain_reference(owner)
    }
}

/// The reference that ties the life of an object to another's.
pub fn plain_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        block_owner_deletion: None,
        controller: None,
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
    }
}

/// The owner that controls an object.
pub fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether an object is controlled by the one of this uid.
pub fn is_controlled_by(metadata: &ObjectMeta, uid: Option<&str>) -> bool {
    uid.is_some() && controller(metadata).map(|owner| owner.uid.as_str()) == uid
}

/// Whether the Cluster is among the owners.
pub fn is_owned_by_cluster(metadata: &ObjectMeta, cluster: &Cluster) -> bool {
    let wanted = plain_reference(cluster);
    metadata.owner_references.iter().flatten().any(|owner| *owner == wanted)
}

/// The owners of an object with this one among them, written as it is now.
pub fn with_owner(metadata: &ObjectMeta, owner: OwnerReference) -> Vec<OwnerReference> {
    let mut owners = metadata.owner_references.clone().unwrap_or_default();
    owners.retain(|known| known.uid != owner.uid);
    owners.push(owner);
    owners
}

pub fn is_deleting(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

pub fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

pub fn label<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}
