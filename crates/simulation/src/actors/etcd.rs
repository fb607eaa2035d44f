//! Who looks after etcd? Its static pods on the Nodes of the control plane, and the operator of it that
//! keeps a Machine by a hook until the rest can do without.

use jiff::Timestamp;
use machinist_api::names::label;
use serde_json::json;

use super::{Actor, Scene, text};
use crate::{
    api_server::{ObjectRef, Subresource, value_at},
    invariants::condition_of,
    template,
};

const WHO: &str = "etcd-operator";
const NAMESPACE: &str = "kube-system";
const MACHINES: (&str, &str) = ("machine.openshift.io", "machines");
const HOOK: &str = "EtcdQuorumOperator";

/// Static pods of etcd, and whoever keeps its quorum.
#[derive(Debug)]
pub struct Etcd {
    /// Whether there is any; else this plays no part.
    is_there: bool,
    /// Whether an operator of it protects its Machines.
    has_operator: bool,
}

impl Etcd {
    #[must_use]
    pub const fn new(is_there: bool, has_operator: bool) -> Self {
        Self { is_there, has_operator }
    }

    /// The hook is on every member's Machine, and goes when all that stay are well.
    fn mind_hooks(scene: &Scene, nodes: &[&ObjectRef]) {
        let machines = scene.objects(MACHINES.0, MACHINES.1);
        let is_member = |machine: &&ObjectRef| {
            let role = value_at(machine.value(), "/metadata/labels");
            role.and_then(|all| all.get(label::MACHINE_ROLE)).is_some_and(|role| role == "master")
        };
        let is_well = |machine: &&&ObjectRef| {
            let node = text(machine.value(), "/status/nodeRef/name");
            !machine.is_being_deleted() && nodes.iter().any(|one| one.name() == node)
        };
        let members: Vec<&ObjectRef> = machines.iter().filter(is_member).collect();
        let others = members.iter().filter(|machine| !machine.is_being_deleted());
        let are_all_well = others.clone().count() > 0 && others.clone().all(|one| is_well(&one));
        for machine in members {
            let hooks = value_at(machine.value(), "/spec/lifecycleHooks/preDrain");
            let has_hook = hooks.is_some_and(|hooks| hooks.to_string().contains(HOOK));
            let body = match (has_hook, machine.is_being_deleted()) {
                (false, false) if is_well(&&machine) => json!({ "spec": { "lifecycleHooks": {
                    "preDrain": [{ "name": HOOK, "owner": "clusteroperator/etcd" }],
                } } }),
                (true, true) if are_all_well => {
                    json!({ "spec": { "lifecycleHooks": null } })
                }
                _ => continue,
            };
            let at = (template::NAMESPACE, machine.name());
            scene.patch(WHO, Subresource::None, MACHINES, at, body);
        }
    }
}

impl Actor for Etcd {
    fn step(&mut self, scene: &Scene, _: Timestamp) -> Option<Timestamp> {
        if !self.is_there {
            return None;
        }
        let all = scene.objects("", "nodes");
        let nodes: Vec<&ObjectRef> = all.iter().filter(|node| is_member(node)).collect();
        for node in &nodes {
            let name = format!("etcd-{}", node.name());
            let kind = crate::api_server::KindRef::find("", "pods");
            let found = kind.and_then(|kind| scene.server.get_object(kind, NAMESPACE, &name));
            if found.is_some() {
                continue;
            }
            let pod = json!({
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    "labels": { "component": "etcd" },
                    "annotations": { "kubernetes.io/config.mirror": "simulated" },
                },
                "spec": {
                    "nodeName": node.name(),
                    "containers": [{ "name": "etcd", "image": "simulated" }],
                },
            });
            scene.create("kubelet", "", "pods", pod);
        }
        if self.has_operator {
            Self::mind_hooks(scene, &nodes);
        }
        None
    }
}

/// Whether etcd runs on a Node: one of the control plane that is ready.
fn is_member(node: &ObjectRef) -> bool {
    let labels = value_at(node.value(), "/metadata/labels");
    let is_control_plane = labels.is_some_and(|all| all.get(label::NODE_MASTER).is_some());
    let is_ready =
        condition_of(node.value(), "Ready").is_some_and(|ready| text(ready, "/status") == "True");
    is_control_plane && is_ready && !node.is_being_deleted()
}
