//! What a Machine is: `machine.openshift.io/v1beta1`, field for field.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type and a description, as the derive macro wants"
)]

use k8s_openapi::{
    api::core::v1::Taint,
    apimachinery::pkg::apis::meta::v1::{OwnerReference, Time},
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::{Condition, RawObject};

/// What this machine is to be.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "machine.openshift.io",
    version = "v1beta1",
    kind = "Machine",
    plural = "machines",
    singular = "machine",
    namespaced,
    status = "MachineStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Machine is one machine: this object, a cloud instance and a Node, seen together.",
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Phase of machine"
    ),
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".metadata.labels['machine\\.openshift\\.io/instance-type']",
        description = "Type of instance"
    ),
    printcolumn(
        name = "Region",
        type_ = "string",
        json_path = ".metadata.labels['machine\\.openshift\\.io/region']",
        description = "Region associated with machine"
    ),
    printcolumn(
        name = "Zone",
        type_ = "string",
        json_path = ".metadata.labels['machine\\.openshift\\.io/zone']",
        description = "Zone associated with machine"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Machine age"
    ),
    printcolumn(
        name = "Node",
        type_ = "string",
        json_path = ".status.nodeRef.name",
        description = "Node associated with machine",
        priority = 1
    ),
    printcolumn(
        name = "ProviderID",
        type_ = "string",
        json_path = ".spec.providerID",
        description = "Provider ID of machine created in cloud provider",
        priority = 1
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".metadata.annotations['machine\\.openshift\\.io/instance-state']",
        description = "State of instance"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// Which API is the source of truth; only where the migration CRDs are installed.
    #[serde(rename = "authoritativeAPI", default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub authoritative_api: Option<AuthoritativeApi>,
    /// Hooks that hold a step of the deletion until their owners remove them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle_hooks: Option<LifecycleHooks>,
    /// Labels and annotations that are copied to the Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MachineObjectMeta>,
    /// The instance's identity for the Node and the cloud: `aws:///<zone>/<instance id>`.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// What the cloud provider is to launch.
    #[serde(default)]
    pub provider_spec: ProviderSpec,
    /// Taints that the Node gets besides its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Option<Vec<Taint>>,
}

/// The API that owns an object during a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuthoritativeApi {
    MachineAPI,
    ClusterAPI,
    Migrating,
}

impl AuthoritativeApi {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MachineAPI => "MachineAPI",
            Self::ClusterAPI => "ClusterAPI",
            Self::Migrating => "Migrating",
        }
    }
}

/// Hooks that hold a step of the deletion until their owners remove them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleHooks {
    /// Hooks that hold the drain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pre_drain: Vec<LifecycleHook>,
    /// Hooks that hold the termination of the instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pre_terminate: Vec<LifecycleHook>,
}

/// A hold on one step of the deletion, with the name of its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LifecycleHook {
    /// Unique name of the hook, best with a domain prefix.
    #[schemars(length(min = 3, max = 256))]
    #[schemars(regex(
        pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
    ))]
    pub name: String,
    /// Who removes the hook.
    #[schemars(length(min = 3, max = 512))]
    pub owner: String,
}

/// The metadata that a template may carry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineObjectMeta {
    /// Annotations to copy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Accepted and ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_name: Option<String>,
    /// Labels to copy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Accepted and ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Accepted and ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Accepted and ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub owner_references: Option<Vec<OwnerReference>>,
}

/// What the cloud provider is to launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderSpec {
    /// The provider's own configuration; kept byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<RawObject>,
}

/// What was last seen of this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// Addresses of the instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub addresses: Vec<MachineAddress>,
    #[serde(rename = "authoritativeAPI", default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub authoritative_api: Option<AuthoritativeApi>,
    /// What holds and what does not, one entry for each type, sorted by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Set while the phase is Failed: a sentence for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Set while the phase is Failed: a word for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    /// What another controller last did. We never write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    /// When this status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// The Node of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub node_ref: Option<NodeReference>,
    /// Provisioning, Provisioned, Running, Deleting or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The provider's own record; kept byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_status: Option<RawObject>,
}

/// An ObjectReference; we write kind, name and uid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeReference {
    /// API version of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Part of the object, when only a part is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
    /// Kind of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Version of the object that was meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// UID of the object; a Node of the same name made anew has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

impl NodeReference {
    pub fn to_node(name: &str, uid: &str) -> Self {
        Self {
            kind: Some("Node".to_owned()),
            name: Some(name.to_owned()),
            uid: Some(uid.to_owned()),
            ..Self::default()
        }
    }
}

/// One address of the instance.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct MachineAddress {
    /// The address itself.
    pub address: String,
    /// Hostname, ExternalIP, InternalIP, ExternalDNS or InternalDNS.
    #[serde(rename = "type")]
    pub type_: String,
}

/// Never written by us; kept so that what others wrote survives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastOperation {
    /// A sentence for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When the operation last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// How far the operation is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Which operation it is.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}
