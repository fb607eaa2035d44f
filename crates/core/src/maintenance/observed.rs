//! What must be known to carry out one maintenance.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{
    Machine, MachineMaintenance, MachineSet,
    names::{annotation, taint},
};

use super::{
    action::Traits,
    plan::{ControlPlane, PlanEntry},
    reason::{Merged, Need},
    surge::Mark,
};
use crate::{
    cloud::{CloudFailure, Instance},
    disruption::Held,
    drain::Attempts,
    node::{self, Readiness},
};

/// One maintenance, its Machine, and everything that the next step depends on.
pub struct Observed<'a> {
    pub maintenance: &'a MachineMaintenance,
    /// The reasons as they are now, merged with those of the record.
    pub reasons: &'a Merged,
    /// What they come to; `None` when none of them holds any more.
    pub need: Option<&'a Need>,
    /// What the plan of the whole fleet says of this machine, made in the same pass.
    pub entry: Option<&'a PlanEntry>,
    /// The Machine of that name.
    pub machine: Option<&'a Machine>,
    pub node: Option<&'a Node>,
    pub cloud: CloudSight,
    pub traits: &'a Traits,
    pub is_control_plane: bool,
    pub zone: Option<&'a str>,
    pub pool: Option<PoolSight<'a>>,
    /// The copy that was made of a Machine without a pool, by the name in the record.
    pub replacement: Option<Member<'a>>,
    pub control_plane: &'a ControlPlane,
    /// The pods on the Node.
    pub pods: Vec<&'a Pod>,
    pub budgets: Vec<&'a PodDisruptionBudget>,
    /// What earlier passes of this process tried to evict.
    pub attempts: &'a Attempts,
    /// The disruption gate's word on taking this machine out of work (`disruption::Pool::permit`).
    pub gate: Result<(), Held>,
    /// Workloads that have fewer ready pods than they want, in words.
    pub workloads_missing: &'a [String],
    /// Why what is seen is not to be trusted, where something speaks against it.
    pub doubt: Option<&'a str>,
}

/// What the cloud is known to hold for the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum CloudSight {
    /// Not asked yet, or it failed. Says nothing about the instance (Rule 9).
    Unknown(Option<CloudFailure>),
    /// `None` where there is none any more.
    Known(Option<Box<Instance>>),
}

/// The MachineSet of the machine, and its Machines.
pub struct PoolSight<'a> {
    pub set: &'a MachineSet,
    /// Every Machine that it owns.
    pub members: Vec<Member<'a>>,
}

/// A Machine with its Node.
#[derive(Clone)]
pub struct Member<'a> {
    pub machine: &'a Machine,
    pub node: Option<&'a Node>,
    /// Whether every DaemonSet that belongs on the Node runs there.
    pub daemons_run: bool,
}

impl Member<'_> {
    pub fn uid(&self) -> &str {
        self.machine.metadata.uid.as_deref().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.machine.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn is_deleting(&self) -> bool {
        self.machine.metadata.deletion_timestamp.is_some()
    }

    /// Whether pods can be put there and are served there.
    pub fn is_ready(&self) -> bool {
        !self.is_deleting() && self.obstacle().is_none()
    }

    /// Why it is not ready, in words.
    pub fn obstacle(&self) -> Option<String> {
        let name = self.name();
        let Some(node) = self.node else { return Some(format!("machine {name} has no node yet")) };
        if node::readiness(node) != Readiness::Ready {
            return Some(format!("node {} of machine {name} is not ready", node::name(node)));
        }
        if node::is_unschedulable(node) {
            return Some(format!("node {} of machine {name} is cordoned", node::name(node)));
        }
        if !self.daemons_run {
            let node = node::name(node);
            return Some(format!("not all DaemonSets run on node {node} of machine {name}"));
        }
        None
    }
}

impl PoolSight<'_> {
    pub fn name(&self) -> &str {
        self.set.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn replicas(&self) -> i32 {
        self.set.spec.replicas.unwrap_or(1)
    }

    pub fn mark(&self) -> Mark {
        Mark::read(self.annotation(annotation::SURGE))
    }

    /// How many machines it is to have, without those that we added.
    pub fn wanted(&self) -> usize {
        let replicas = usize::try_from(self.replicas()).unwrap_or(0);
        replicas.saturating_sub(self.mark().count())
    }

    /// How many machines besides this one do their work.
    pub fn ready_besides(&self, uid: &str) -> usize {
        self.members.iter().filter(|member| member.uid() != uid && member.is_ready()).count()
    }

    /// The largest size that the autoscaler is told to give it.
    pub fn autoscaler_max(&self) -> Option<i32> {
        self.annotation(annotation::AUTOSCALER_MAX_SIZE)?.trim().parse().ok()
    }

    /// How many machines its own strategy allows above its size, where it has one.
    pub fn owner_surge(&self) -> Option<usize> {
        self.annotation(annotation::OWNER_SURGE)?.parse().ok()
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.set.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

impl Observed<'_> {
    pub fn uid(&self) -> &str {
        self.maintenance.metadata.uid.as_deref().unwrap_or_default()
    }

    pub fn instance(&self) -> Option<&Instance> {
        match &self.cloud {
            CloudSight::Known(instance) => instance.as_deref(),
            CloudSight::Unknown(_) => None,
        }
    }

    /// The Machine that work was begun on; one of the same name is another.
    pub fn worked_on(&self, uid: Option<&str>) -> Option<&Machine> {
        self.machine.filter(|machine| machine.metadata.uid.as_deref() == uid)
    }

    /// Whether the cordon of the Node is ours.
    pub fn is_cordoned_by_us(&self) -> bool {
        self.node
            .is_some_and(|node| node_annotation(node, annotation::CORDONED_FOR) == Some(self.uid()))
    }

    /// The Nodes that the autoscaler leaves alone for us.
    pub fn protected_nodes(&self) -> Vec<&Node> {
        let members = self.pool.iter().flat_map(|pool| pool.members.iter());
        let protected =
            |node: &&Node| node_annotation(node, annotation::PROTECTED_FOR) == Some(self.uid());
        members.filter_map(|member| member.node).filter(protected).collect()
    }
}

/// Whether a Node is tainted as out of service.
pub fn is_out_of_service(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().any(|one| one.key == taint::OUT_OF_SERVICE)
}

/// Whether a pod is not to be disrupted.
pub fn is_not_to_be_disrupted(pod: &Pod) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    [annotation::DO_NOT_DISRUPT, annotation::KARPENTER_DO_NOT_DISRUPT]
        .iter()
        .any(|key| annotations.and_then(|all| all.get(*key)).is_some_and(|value| value == "true"))
}

pub fn node_annotation<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

pub(super) fn machine_annotation<'a>(machine: &'a Machine, key: &str) -> Option<&'a str> {
    let annotations: &BTreeMap<String, String> = machine.metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}
