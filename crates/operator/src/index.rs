//! By what the stores are searched. Each index has one name and one function.

use k8s_openapi::{
    ByteString,
    api::{
        certificates::v1::CertificateSigningRequest,
        core::v1::{Node, Pod},
    },
};
use machinist_api::{Machine, names::annotation};
use machinist_core::{
    approval::{self, Reading},
    cloud::InstanceId,
    machine::observed::bound_instance,
    node,
};

pub const NODE_BY_INSTANCE: &str = "instance";
pub const NODE_BY_INTERNAL_IP: &str = "internal-ip";
pub const MACHINE_BY_INTERNAL_IP: &str = "internal-ip";
pub const MACHINE_BY_UID: &str = "uid";
pub const MACHINE_BY_INSTANCE: &str = "instance";
pub const MACHINE_BY_NODE: &str = "node";
pub const MACHINE_BY_OWNER: &str = "owner-uid";
pub const MACHINE_BY_INTERNAL_DNS: &str = "internal-dns";
pub const POD_BY_NODE: &str = "node";
/// Signing requests that are not decided, by the Node that they are for.
pub const REQUEST_BY_NODE: &str = "node";
pub const REQUEST_BY_STATE: &str = "state";

/// Under which undecided requests of kubelets are found in [`REQUEST_BY_STATE`].
pub const PENDING: &str = "pending";

/// Under which a request that certainly came to nothing is found in [`REQUEST_BY_STATE`].
pub fn void_request(uid: &str) -> String {
    format!("void/{uid}")
}

/// Under which Machines without a controller are found in [`MACHINE_BY_OWNER`]: those that a pool
/// may adopt.
pub const NO_OWNER: &str = "";

pub fn instance_of_node(node: &Node) -> Vec<String> {
    let id = node::provider_id(node).and_then(InstanceId::from_provider_id);
    id.map(|id| id.0).into_iter().collect()
}

pub fn internal_ips_of_node(node: &Node) -> Vec<String> {
    node::internal_ips(node).into_iter().map(str::to_owned).collect()
}

pub fn internal_ips_of_machine(machine: &Machine) -> Vec<String> {
    let addresses = machine.status.iter().flat_map(|status| &status.addresses);
    addresses
        .filter(|address| address.type_ == "InternalIP")
        .map(|address| address.address.clone())
        .collect()
}

/// In lower case: the names of hosts have none.
pub fn internal_dns_of_machine(machine: &Machine) -> Vec<String> {
    let addresses = machine.status.iter().flat_map(|status| &status.addresses);
    addresses
        .filter(|address| address.type_ == "InternalDNS")
        .map(|address| address.address.to_ascii_lowercase())
        .collect()
}

pub fn uid_of_machine(machine: &Machine) -> Vec<String> {
    machine.metadata.uid.clone().into_iter().collect()
}

pub fn instance_of_machine(machine: &Machine) -> Vec<String> {
    bound_instance(machine).map(|id| id.0).into_iter().collect()
}

pub fn node_of_machine(machine: &Machine) -> Vec<String> {
    let node = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
    node.and_then(|node| node.name.clone()).into_iter().collect()
}

pub fn owner_of_machine(machine: &Machine) -> Vec<String> {
    let mut owners = machine.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    vec![controller.map_or_else(|| NO_OWNER.to_owned(), |owner| owner.uid.clone())]
}

pub fn node_of_pod(pod: &Pod) -> Vec<String> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).into_iter().collect()
}

pub fn node_of_request(
    request: &CertificateSigningRequest,
    policy: &approval::Policy,
) -> Vec<String> {
    match approval::read(request, policy) {
        Reading::Client { node, .. } | Reading::Serving { node, .. } => vec![node],
        Reading::NotOurs | Reading::Decided | Reading::Refused(_) => Vec::new(),
    }
}

pub fn state_of_request(
    request: &CertificateSigningRequest,
    policy: &approval::Policy,
) -> Vec<String> {
    match approval::read(request, policy) {
        Reading::Decided if approval::is_void(request) => {
            request.metadata.uid.as_deref().map(void_request).into_iter().collect()
        }
        Reading::NotOurs | Reading::Decided => Vec::new(),
        Reading::Client { .. } | Reading::Serving { .. } | Reading::Refused(_) => {
            vec![PENDING.to_owned()]
        }
    }
}

/// The annotations of pods that decisions read.
const KEPT_ON_PODS: [&str; 3] = [
    "kubernetes.io/config.mirror",
    annotation::DO_NOT_DISRUPT,
    annotation::KARPENTER_DO_NOT_DISRUPT,
];

/// Drops what no decision reads; memory is paid for each object.
pub fn prune_pod(pod: &mut Pod) {
    let node_name = pod.spec.as_mut().and_then(|spec| spec.node_name.take());
    pod.spec = Some(k8s_openapi::api::core::v1::PodSpec { node_name, ..Default::default() });
    pod.status = None;
    if let Some(annotations) = &mut pod.metadata.annotations {
        annotations.retain(|key, _| KEPT_ON_PODS.contains(&key.as_str()));
    }
}

pub fn prune_node(node: &mut Node) {
    if let Some(status) = &mut node.status {
        status.images = None;
        status.capacity = None;
        status.allocatable = None;
        status.volumes_attached = None;
        status.volumes_in_use = None;
        if let Some(conditions) = &mut status.conditions {
            for condition in conditions {
                // Any type may be one that a MachineHealthCheck names. A heartbeat alone changes nothing.
                condition.last_heartbeat_time = None;
                condition.message = None;
            }
        }
    }
    if let Some(annotations) = &mut node.metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

/// What is wrong with a request stays wrong when it is cut here: it is longer than any is read.
const REQUEST_BYTES_MAX: usize = 64 * 1024 + 1;

/// Requests that are not for us, or decided, are kept as a name: a flood of them must not fill memory.
pub fn prune_request(request: &mut CertificateSigningRequest, policy: &approval::Policy) {
    request.metadata.annotations = None;
    request.metadata.labels = None;
    request.spec.extra = None;
    request.spec.request.0.truncate(REQUEST_BYTES_MAX);
    request.spec.request.0.shrink_to_fit();
    let issued = request.status.as_mut().and_then(|status| status.certificate.as_mut());
    if let Some(ByteString(bytes)) = issued {
        // That there is one says that it is decided.
        bytes.truncate(1);
        bytes.shrink_to_fit();
    }
    if matches!(approval::read(request, policy), Reading::NotOurs | Reading::Decided) {
        request.spec.request = ByteString::default();
    }
}
