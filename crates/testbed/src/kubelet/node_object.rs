//! What does a kubelet say about its machine?

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time};
use kube::ResourceExt;

use crate::instances::{Instance, Role};
use crate::programs::kubernetes_version;

use super::POWERED_LABEL;

/// As a real kubelet's Lease says.
const LEASE_SECONDS: i32 = 40;
/// OpenShift's limit of pods on a node.
const PODS: &str = "250";

#[derive(Clone, Copy, Debug)]
pub enum Readiness {
    Starting,
    Ready { since: Timestamp },
}

/// The Node as a kubelet creates it: not Ready yet.
pub fn node(instance: &Instance, boot: u64, now: Timestamp) -> Node {
    Node {
        metadata: ObjectMeta {
            name: Some(instance.private_name.clone()),
            labels: Some(labels(instance)),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(instance.provider_id()),
            taints: taints(instance.role),
            ..NodeSpec::default()
        }),
        status: Some(status(instance, boot, Readiness::Starting, now)),
    }
}

/// Labels that a kubelet may give itself.
fn labels(instance: &Instance) -> BTreeMap<String, String> {
    [
        ("beta.kubernetes.io/arch", instance.architecture.as_str()),
        ("beta.kubernetes.io/instance-type", &instance.instance_type),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", &instance.architecture),
        ("kubernetes.io/hostname", &instance.private_name),
        ("kubernetes.io/os", "linux"),
        ("node.kubernetes.io/instance-type", &instance.instance_type),
        ("topology.kubernetes.io/region", &instance.region),
        ("topology.kubernetes.io/zone", &instance.zone),
        (POWERED_LABEL, "on"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

/// Labels that only somebody else may give it.
pub fn role_labels(role: Role) -> BTreeMap<&'static str, &'static str> {
    match role {
        Role::ControlPlane => BTreeMap::from([
            ("node-role.kubernetes.io/control-plane", ""),
            ("node-role.kubernetes.io/master", ""),
        ]),
        Role::Worker => BTreeMap::from([("node-role.kubernetes.io/worker", "")]),
    }
}

/// Keeps ordinary pods off the control plane, as OpenShift does.
fn taints(role: Role) -> Option<Vec<Taint>> {
    (role == Role::ControlPlane).then(|| {
        vec![Taint {
            key: "node-role.kubernetes.io/master".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        }]
    })
}

pub fn status(instance: &Instance, boot: u64, readiness: Readiness, now: Timestamp) -> NodeStatus {
    let capacity = resources(instance.cpus * 1000, instance.memory_mebibytes);
    // What the machine keeps for itself.
    let allocatable = resources(
        (instance.cpus * 1000).saturating_sub(500),
        instance.memory_mebibytes.saturating_sub(1024),
    );
    NodeStatus {
        addresses: Some(vec![
            address("InternalIP", &instance.private_address),
            address("InternalDNS", &instance.private_name),
            address("Hostname", &instance.private_name),
        ]),
        allocatable: Some(allocatable),
        capacity: Some(capacity),
        conditions: Some(conditions(readiness, now)),
        node_info: Some(NodeSystemInfo {
            architecture: instance.architecture.clone(),
            boot_id: identifier(&instance.id, &format!("boot {boot}")),
            container_runtime_version: "cri-o://1.36.0".to_owned(),
            kernel_version: "5.14.0-570.el9".to_owned(),
            kube_proxy_version: String::new(),
            kubelet_version: kubernetes_version().to_owned(),
            machine_id: identifier(&instance.id, "machine").replace('-', ""),
            operating_system: "linux".to_owned(),
            os_image: "Machinist testbed".to_owned(),
            system_uuid: format!(
                "ec2{}",
                identifier(&instance.id, "system").get(3..).unwrap_or_default()
            ),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}

/// The heartbeat. It belongs to the Node, so that it goes with it.
pub fn lease(node: &Node, now: Timestamp) -> Lease {
    let name = node.name_any();
    Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            owner_references: node.uid().map(|uid| {
                vec![OwnerReference {
                    api_version: "v1".to_owned(),
                    kind: "Node".to_owned(),
                    name: name.clone(),
                    uid,
                    ..OwnerReference::default()
                }]
            }),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    }
}

fn conditions(readiness: Readiness, now: Timestamp) -> Vec<NodeCondition> {
    let (ready, since, reason, message) = match readiness {
        Readiness::Starting => ("False", now, "KubeletNotReady", "network plugin not ready"),
        Readiness::Ready { since } => {
            ("True", since, "KubeletReady", "kubelet is posting ready status")
        }
    };
    let condition = |kind: &str, status: &str, reason: &str, message: &str| NodeCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: Some(Time(since)),
    };
    vec![
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        condition(
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        condition(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        condition("Ready", ready, reason, message),
    ]
}

fn resources(millicpus: u32, memory_mebibytes: u64) -> BTreeMap<String, Quantity> {
    [
        ("cpu", format!("{millicpus}m")),
        ("memory", format!("{memory_mebibytes}Mi")),
        ("ephemeral-storage", "120Gi".to_owned()),
        ("pods", PODS.to_owned()),
    ]
    .into_iter()
    .map(|(name, quantity)| (name.to_owned(), Quantity(quantity)))
    .collect()
}

fn address(kind: &str, address: &str) -> NodeAddress {
    NodeAddress { address: address.to_owned(), type_: kind.to_owned() }
}

/// In the form of a UUID; the same for the same machine and purpose.
fn identifier(instance: &str, purpose: &str) -> String {
    let part = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (instance, purpose, salt).hash(&mut hasher);
        hasher.finish()
    };
    let digits = format!("{:016x}{:016x}", part(0), part(1));
    let piece = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-{}-{}-{}",
        piece(0, 8),
        piece(8, 12),
        piece(12, 16),
        piece(16, 20),
        piece(20, 32)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_look_like_uuids_and_differ_by_purpose() {
        let first = identifier("i-0abc", "boot 1");
        assert_eq!(first.len(), 36);
        assert_eq!(first, identifier("i-0abc", "boot 1"));
        assert_ne!(first, identifier("i-0abc", "boot 2"));
        assert_ne!(first, identifier("i-0abd", "boot 1"));
    }
}
