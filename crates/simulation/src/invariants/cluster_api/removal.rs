//! What must hold while a Machine of Cluster API goes? Hooks, pods, the provider's object, the Node, in that order; and nothing
//! is left when the Machine is.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use machinist_api::cluster_api::{
    Machine,
    names::{annotation, label},
};
use machinist_core::drain::decide::must_go;
use serde_json::Value;

use super::{has_hook, is_deleting, may_leave_pods, name, uid};
use crate::{
    api_server::{Commit, Object, value_at},
    invariants::{Judge, condition_of},
    template::cluster_api::SCHEME,
};

impl Judge {
    /// S4, S5: a Machine goes only when the provider has nothing of it any more.
    pub(super) fn check_machine_let_go(&mut self, machine: &Machine, now: Timestamp) {
        let subject = name(&machine.metadata).to_owned();
        if !is_deleting(&machine.metadata) {
            let words = "the finalizer goes from a Machine that is not being deleted";
            self.find("S5", &subject, now, words);
        }
        let config = machine.spec.bootstrap.config_ref.as_ref();
        for reference in config.into_iter().chain([&machine.spec.infrastructure_ref]) {
            let left = self.stored(&reference.api_group, &plural(&reference.kind));
            let is_its_own = |object: &Object| {
                object.name() == reference.name
                    && object.namespace() == machine.metadata.namespace.as_deref().unwrap_or("")
            };
            if left.iter().any(|object| is_its_own(object)) {
                let words = format!("the finalizer goes while its {} is there", reference.kind);
                self.find("S4", &subject, now, words);
            }
        }
    }

    /// CA2, S6, S8, S14: a Machine has one object of each provider, which is deleted when its time has come.
    pub(super) fn check_provided(&mut self, commit: &Commit) {
        let object = commit.object();
        let kind = commit.kind.kind;
        let now = commit.time;
        let machines: Vec<Machine> = self.listed();
        let refers = |machine: &&Machine| {
            let config = machine.spec.bootstrap.config_ref.as_ref();
            let mut all = config.into_iter().chain([&machine.spec.infrastructure_ref]);
            all.any(|one| one.kind == kind.kind && one.name == object.name())
        };
        if let Some(owner) = owner_of(object) {
            let of_it = self.stored(kind.group, kind.plural);
            let count = of_it.iter().filter(|one| owner_of(one) == Some(owner)).count();
            let machine = machines.iter().find(|one| uid(&one.metadata) == owner);
            let subject = machine.map(|one| name(&one.metadata).to_owned()).unwrap_or_default();
            if count > 1 {
                self.find("CA2", &subject, now, format!("has {count} {}", kind.plural));
            }
        }
        let goes = |object: Option<&crate::api_server::ObjectRef>| {
            object.is_none_or(|object| object.is_being_deleted())
        };
        let begins_to_go = commit.before.as_ref().is_some_and(|one| !one.is_being_deleted())
            && goes(commit.after.as_ref());
        let Some(machine) = machines.iter().find(refers).filter(|_| begins_to_go) else { return };
        let subject = name(&machine.metadata).to_owned();
        if !is_deleting(&machine.metadata) {
            let words = format!("its {} is deleted, and the Machine stays", kind.kind);
            return self.find("S6", &subject, now, words);
        }
        if has_hook(machine, annotation::PRE_TERMINATE_HOOK_PREFIX) {
            let words = format!("its {} is deleted despite a hook", kind.kind);
            self.find("S14", &subject, now, words);
        }
        if kind.plural == "simmachines" {
            self.check_is_empty(machine, now);
        }
    }

    /// S8: the Node is empty before its machine goes.
    fn check_is_empty(&mut self, machine: &Machine, now: Timestamp) {
        let id = machine.spec.provider_id.as_deref();
        let Some(node) = self.node_with(id).filter(|_| !may_leave_pods(machine)) else { return };
        let cluster = self.cluster_named(&machine.spec.cluster_name);
        if cluster.is_none_or(|cluster| is_deleting(&cluster.metadata)) || !self.has_control_plane()
        {
            return;
        }
        let node_name = name(&node.metadata);
        let left: Vec<String> = self
            .listed::<Pod>()
            .into_iter()
            .filter(|pod| {
                let on = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
                // On a Node that nobody reaches, what was told to go counts as gone, and so does what does not
                // work and is kept by a budget only.
                let is_told = pod.metadata.deletion_timestamp.is_some();
                let is_over = is_unreachable(&node) && (is_told || !is_ready(pod));
                on == Some(node_name) && must_go(pod) && !is_over
            })
            .filter_map(|pod| pod.metadata.name)
            .collect();
        if !left.is_empty() {
            let words = format!("its machine goes while pods {} are on it", left.join(", "));
            self.find("S8", name(&machine.metadata), now, words);
        }
    }

    /// Whether somebody runs the cluster that pods could be evicted from.
    fn has_control_plane(&self) -> bool {
        self.listed::<Machine>().iter().any(|one| {
            let labels = one.metadata.labels.as_ref();
            !is_deleting(&one.metadata)
                && labels.is_some_and(|all| all.contains_key(label::CONTROL_PLANE))
        })
    }

    fn node_with(&self, id: Option<&str>) -> Option<Node> {
        let id = id?;
        self.listed::<Node>().into_iter().find(|node| {
            node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()) == Some(id)
        })
    }

    /// S9, S14, S26: what an operator does to the Node of a Machine.
    pub(in crate::invariants) fn check_workload_node(&mut self, commit: &Commit) {
        let object = commit.object();
        let id = value_at(object.value(), "/spec/providerID").and_then(Value::as_str);
        let Some(id) = id.filter(|id| id.starts_with(SCHEME)) else { return };
        let now = commit.time;
        let machines: Vec<Machine> = self.listed();
        let machine = machines.iter().find(|one| one.spec.provider_id.as_deref() == Some(id));
        let subject = machine.map(|one| name(&one.metadata).to_owned()).unwrap_or_default();
        let is_going = machine.is_none_or(|one| is_deleting(&one.metadata));
        if commit.after.as_ref().is_none_or(|node| node.is_being_deleted()) {
            let is_there = |one: &crate::api_server::ObjectRef| {
                value_at(one.value(), "/spec/providerID").and_then(Value::as_str) == Some(id)
            };
            let group = crate::template::cluster_api::INFRASTRUCTURE;
            if self.stored(group, "simmachines").iter().any(is_there) {
                let words = format!("node {} is deleted while its machine is there", object.name());
                self.find("S9", &subject, now, words);
            }
            if !is_going {
                let words = format!("node {} is deleted, and its Machine stays", object.name());
                self.find("S26", &subject, now, words);
            }
            return;
        }
        let is_cordoned = |object: Option<&Object>| {
            let flag = object.and_then(|object| value_at(object.value(), "/spec/unschedulable"));
            flag.and_then(Value::as_bool) == Some(true)
        };
        if !is_cordoned(commit.after.as_deref()) || is_cordoned(commit.before.as_deref()) {
            return;
        }
        if !is_going {
            let words = format!("node {} is cordoned, and its Machine stays", object.name());
            self.find("S26", &subject, now, words);
        }
        if machine.is_some_and(|one| has_hook(one, annotation::PRE_DRAIN_HOOK_PREFIX)) {
            let words = format!("node {} is cordoned despite a hook", object.name());
            self.find("S14", &subject, now, words);
        }
    }
}

/// The Machine that controls an object of a provider, by uid.
fn owner_of(object: &Object) -> Option<&str> {
    let owners = value_at(object.value(), "/metadata/ownerReferences").and_then(Value::as_array)?;
    let owner = owners.iter().find(|one| one.get("controller") == Some(&Value::Bool(true)))?;
    owner.get("uid").and_then(Value::as_str)
}

/// The played providers' kinds have the plainest of plurals.
fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

fn is_unreachable(node: &Node) -> bool {
    let value = serde_json::to_value(node).unwrap_or_default();
    let ready = condition_of(&value, "Ready").and_then(|ready| ready.get("status"));
    ready.and_then(Value::as_str) == Some("Unknown")
}
