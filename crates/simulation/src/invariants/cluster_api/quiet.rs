//! Is everything of Cluster API as wanted, once nothing fails any more?

use k8s_openapi::api::core::v1::Node;
use machinist_api::cluster_api::{
    Cluster, Machine, MachineDeployment, MachineSet,
    names::{annotation, condition_type, machine_phase},
};

use super::{controller, has_hook, is_deleting, is_true, name, uid};
use crate::{
    api_server::{ApiServer, KindRef},
    template::cluster_api::{BOOTSTRAP, INFRASTRUCTURE, SCHEME},
};

type Open = Vec<(&'static str, String, String)>;

/// What is not as wanted, with the promise that says so.
pub(in crate::invariants) fn unsettled(server: &ApiServer) -> Open {
    let machines: Vec<Machine> = server.list();
    let sets: Vec<MachineSet> = server.list();
    let nodes: Vec<Node> = server.list();
    let mut open = Vec::new();
    for cluster in server.list::<Cluster>() {
        if is_deleting(&cluster.metadata) {
            let words = format!("Cluster {} is being deleted", name(&cluster.metadata));
            open.push(("L2", String::new(), words));
        }
    }
    for machine in &machines {
        let subject = name(&machine.metadata).to_owned();
        if let Some((id, words)) = unsettled_machine(machine, &nodes) {
            open.push((id, subject, words));
        }
    }
    for set in &sets {
        open.extend(unsettled_set(set, &machines));
    }
    for deployment in server.list::<MachineDeployment>() {
        open.extend(unsettled_deployment(&deployment, &sets));
    }
    open.extend(left_over(server, &machines, &nodes));
    open
}

fn unsettled_machine(machine: &Machine, nodes: &[Node]) -> Option<(&'static str, String)> {
    if is_deleting(&machine.metadata) {
        let is_held = has_hook(machine, annotation::PRE_DRAIN_HOOK_PREFIX)
            || has_hook(machine, annotation::PRE_TERMINATE_HOOK_PREFIX);
        return (!is_held).then(|| ("L2", "is being deleted".to_owned()));
    }
    let status = machine.status.clone().unwrap_or_default();
    if status.phase.as_deref() != Some(machine_phase::RUNNING) {
        return Some(("L1", format!("is in phase {:?}", status.phase)));
    }
    let linked = status.node_ref.map(|node| node.name).unwrap_or_default();
    let node = nodes.iter().find(|node| name(&node.metadata) == linked);
    let id = node.and_then(|node| node.spec.as_ref()?.provider_id.as_deref());
    if id.is_none() || id != machine.spec.provider_id.as_deref() {
        return Some(("L1", format!("is linked to node {linked:?}, which has providerID {id:?}")));
    }
    None
}

fn unsettled_set(set: &MachineSet, machines: &[Machine]) -> Open {
    let own = name(&set.metadata);
    let mut open = Vec::new();
    let mut say = |id, words| open.push((id, String::new(), words));
    if is_deleting(&set.metadata) {
        say("L2", format!("set {own} is being deleted"));
        return open;
    }
    let members: Vec<&Machine> = machines
        .iter()
        .filter(|one| controller(&one.metadata) == Some(uid(&set.metadata)))
        .filter(|one| !is_deleting(&one.metadata))
        .collect();
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or_default();
    if members.len() != wanted {
        say("L1", format!("set {own} has {} of {wanted}", members.len()));
    }
    let status = set.status.clone().unwrap_or_default();
    let count = |type_: &str| members.iter().filter(|one| is_true(one, type_)).count();
    let figures = [
        ("replicas", status.replicas, members.len()),
        ("readyReplicas", status.ready_replicas, count(condition_type::READY)),
        ("availableReplicas", status.available_replicas, count(condition_type::AVAILABLE)),
    ];
    for (what, said, is) in figures {
        if said.and_then(|said| usize::try_from(said).ok()) != Some(is) {
            say("T1", format!("set {own} says {what} {said:?}, and it is {is}"));
        }
    }
    if status.observed_generation != set.metadata.generation {
        say("T1", format!("set {own} has not seen its last change"));
    }
    open
}

fn unsettled_deployment(deployment: &MachineDeployment, sets: &[MachineSet]) -> Open {
    let own = name(&deployment.metadata);
    let mut open = Vec::new();
    let mut say = |id, words| open.push((id, String::new(), words));
    if is_deleting(&deployment.metadata) {
        say("L2", format!("deployment {own} is being deleted"));
        return open;
    }
    let replicas = |set: &&MachineSet| set.spec.replicas.unwrap_or_default();
    let of_it: Vec<&MachineSet> = sets
        .iter()
        .filter(|set| controller(&set.metadata) == Some(uid(&deployment.metadata)))
        .collect();
    let wanted = deployment.spec.replicas.unwrap_or_default();
    let sizes: Vec<i32> = of_it.iter().map(replicas).filter(|size| *size > 0).collect();
    if sizes.iter().sum::<i32>() != wanted || sizes.len() > 1 {
        say(
            "L1",
            format!("deployment {own} wants {wanted} in one set, and its sets are {sizes:?}"),
        );
    }
    let status = deployment.status.clone().unwrap_or_default();
    for (what, said) in
        [("replicas", status.replicas), ("upToDateReplicas", status.up_to_date_replicas)]
    {
        if said != Some(wanted) {
            say("T1", format!("deployment {own} says {what} {said:?}, and it is {wanted}"));
        }
    }
    open
}

/// L3: objects of providers and Nodes that belong to no Machine.
fn left_over(server: &ApiServer, machines: &[Machine], nodes: &[Node]) -> Open {
    let mut open = Vec::new();
    for (group, plural) in [(INFRASTRUCTURE, "simmachines"), (BOOTSTRAP, "simconfigs")] {
        let Some(kind) = KindRef::find(group, plural) else { continue };
        for object in server.objects(kind) {
            let is_named = machines.iter().any(|machine| {
                let config = machine.spec.bootstrap.config_ref.as_ref();
                let mut all = config.into_iter().chain([&machine.spec.infrastructure_ref]);
                all.any(|one| one.kind == kind.kind.kind && one.name == object.name())
            });
            if !is_named {
                let words = format!("{plural} {} is nobody's", object.name());
                open.push(("L3", String::new(), words));
            }
        }
    }
    let clusters: Vec<Cluster> = server.list();
    // The Nodes of a Cluster that is gone went with it, wherever that was.
    let is_gone = |node: &Node| {
        let annotations = node.metadata.annotations.as_ref();
        let of = annotations.and_then(|all| all.get(annotation::NODE_CLUSTER_NAME));
        of.is_some_and(|of| clusters.iter().all(|cluster| name(&cluster.metadata) != of))
    };
    for node in nodes.iter().filter(|node| !is_gone(node)) {
        let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        let Some(id) = id.filter(|id| id.starts_with(SCHEME)) else { continue };
        if !machines.iter().any(|machine| machine.spec.provider_id.as_deref() == Some(id)) {
            let words = format!("node {} is left, and its Machine is gone", name(&node.metadata));
            open.push(("L3", String::new(), words));
        }
    }
    open
}
