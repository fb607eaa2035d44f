//! Is everything as wanted, once nothing fails any more?

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{
    Machine, MachineSet, condition,
    names::{condition_type, label, phase, tag},
};
use machinist_core::{
    cloud::InstanceId,
    machine::observed::provider_status,
    node::{self, Readiness},
};
use machinist_testbed::cloud::model::{InstanceFacts, InstanceState, ScheduledEvent};

use super::{Counts, Judge, cluster_api};
use crate::{api_server::ApiServer, template::cluster_api::SCHEME};

/// What is not as wanted, with the promise that says so; empty once all is well.
#[must_use]
pub fn unsettled(
    server: &ApiServer,
    instances: &[InstanceFacts],
    events: &[ScheduledEvent],
    judge: &Judge,
    now: Timestamp,
) -> Vec<(&'static str, String, String)> {
    let machines: Vec<Machine> = server.list();
    let nodes: Vec<Node> = server.list();
    let by_id: BTreeMap<&str, &InstanceFacts> =
        instances.iter().map(|one| (one.id.as_str(), one)).collect();
    let mut open = Vec::new();
    for machine in &machines {
        let name = machine.metadata.name.clone().unwrap_or_default();
        if machine.metadata.deletion_timestamp.is_some() {
            if !is_blocked_with_reason(machine) {
                open.push(("L2", name, "is being deleted and does not say why".to_owned()));
            }
            continue;
        }
        if judge.certificate_is_taken(machine.metadata.uid.as_deref().unwrap_or_default()) {
            continue;
        }
        match settled_machine(machine, &nodes, &by_id) {
            Err(words) => open.push(("L1", name, words)),
            Ok(Some(instance)) if !judge.has_certificates(&instance) => {
                let words = format!("the kubelet of instance {instance} has no certificate");
                open.push(("S28", name, words));
            }
            Ok(_) => {}
        }
    }
    for set in server.list::<MachineSet>() {
        open.extend(unsettled_set(&set, &machines, &nodes));
    }
    for (machine, check) in judge.left_unremediated(now) {
        let words = format!("is not healthy, and check {check} does nothing about it");
        open.push(("L5", machine, words));
    }
    open.extend(judge.unsettled_maintenance(events, now));
    open.extend(left_over(&machines, &nodes, instances));
    open.extend(cluster_api::unsettled(server));
    open
}

/// L2: something outside keeps it, and a condition names it.
fn is_blocked_with_reason(machine: &Machine) -> bool {
    let Some(status) = &machine.status else { return false };
    let hooks = machine.spec.lifecycle_hooks.clone().unwrap_or_default();
    if !hooks.pre_drain.is_empty() || !hooks.pre_terminate.is_empty() {
        return true;
    }
    let drained = condition::find(&status.conditions, condition_type::DRAINED);
    drained.is_some_and(|drained| {
        drained.status == condition::ConditionStatus::False
            && drained.message.as_deref().is_some_and(|words| words.contains("disruption budget"))
    })
}

/// The instance whose guest must work; none where there is none to be.
fn settled_machine(
    machine: &Machine,
    nodes: &[Node],
    instances: &BTreeMap<&str, &InstanceFacts>,
) -> Result<Option<String>, String> {
    let status = machine.status.clone().unwrap_or_default();
    let record = provider_status(machine);
    let is_paused = status
        .authoritative_api
        .is_some_and(|api| api != machinist_api::AuthoritativeApi::MachineAPI);
    if is_paused {
        return Ok(None);
    }
    // What is left to people is settled, as long as it is said: what is only reported, and what the
    // breaker holds because too much of the pool is out of work already.
    if let Some(drift) = &record.drift
        && matches!(drift.response.as_str(), "Report" | "Held")
    {
        let running = condition::find(&status.conditions, condition_type::INSTANCE_RUNNING);
        let is_said =
            running.is_some_and(|it| it.message.as_deref().is_some_and(|it| !it.is_empty()));
        return if is_said { Ok(None) } else { Err("reports drift without words".to_owned()) };
    }
    if status.phase.as_deref() == Some(phase::FAILED) && status.error_message.is_some() {
        return Ok(None);
    }
    if let Some(field) = flaw_of(machine) {
        let uid = machine.metadata.uid.as_ref();
        if instances.values().any(|one| one.tags.get(tag::MACHINE_UID) == uid) {
            return Err(format!("was launched without a right {field}"));
        }
        let exists = condition::find(&status.conditions, condition_type::INSTANCE_EXISTS);
        let words = exists.and_then(|it| it.message.as_deref()).unwrap_or_default();
        return match words.contains(field) {
            true => Ok(None),
            false => Err(format!("has no right {field}, and says {words:?}")),
        };
    }
    if status.phase.as_deref() != Some(phase::RUNNING) {
        return Err(format!("is in phase {}", status.phase.as_deref().unwrap_or("none")));
    }
    let id = record.instance_id.clone().unwrap_or_default();
    let Some(instance) = instances.get(id.as_str()) else {
        return Err(format!("names instance {id:?}, which is not there"));
    };
    if instance.state != InstanceState::Running {
        return Err(format!("is Running, and instance {id} is {}", instance.state.name()));
    }
    if record.instance_state.as_deref() != Some("running") {
        return Err(format!("says that instance {id} is {:?}", record.instance_state));
    }
    let shown = status.addresses.iter().find(|one| one.type_ == "InternalIP");
    if shown.map(|one| one.address.clone()) != instance.private_ip.map(|it| it.to_string()) {
        return Err("shows another address than its instance has".to_owned());
    }
    let linked = status.node_ref.and_then(|node| node.name).unwrap_or_default();
    let node = nodes.iter().find(|node| node::name(node) == linked);
    let provider_id = node.and_then(|node| node.spec.as_ref()?.provider_id.clone());
    let of_node = provider_id.as_deref().and_then(InstanceId::from_provider_id);
    if of_node != Some(InstanceId(id.clone())) {
        return Err(format!("is linked to node {linked:?}, which is not of instance {id}"));
    }
    Ok(Some(id))
}

/// The field that keeps a Machine that never passed a webhook from being launched at all.
fn flaw_of(machine: &Machine) -> Option<&'static str> {
    let labels = machine.metadata.labels.as_ref();
    if labels.is_none_or(|labels| !labels.contains_key(label::CLUSTER)) {
        return Some(label::CLUSTER);
    }
    let spec = machine.spec.provider_spec.value.as_ref().and_then(|value| value.parse().ok());
    let spec: serde_json::Value = spec.unwrap_or_default();
    if spec.is_null() {
        return Some("spec.providerSpec.value");
    }
    if spec.get("kind").is_none_or(|kind| kind != "AWSMachineProviderConfig") {
        return Some("spec.providerSpec.value.kind");
    }
    match spec.get("placement") {
        Some(serde_json::Value::Object(placement)) if placement.contains_key("region") => None,
        _ => Some("spec.providerSpec.value.placement"),
    }
}

/// L1 and T1 of a pool.
fn unsettled_set(
    set: &MachineSet,
    machines: &[Machine],
    nodes: &[Node],
) -> Vec<(&'static str, String, String)> {
    let name = set.metadata.name.clone().unwrap_or_default();
    let mut open = Vec::new();
    let is_own = |machine: &&Machine| {
        let owners = machine.metadata.owner_references.iter().flatten();
        owners.into_iter().any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
    };
    if set.metadata.deletion_timestamp.is_some() {
        // It waits for its Machines, of which each says what it waits for itself.
        let mut left = machines.iter().filter(is_own).peekable();
        if left.peek().is_none() || !left.all(is_blocked_with_reason) {
            open.push(("L2", String::new(), format!("pool {name} is being deleted")));
        }
        return open;
    }
    let owned: Vec<&Machine> = machines
        .iter()
        .filter(is_own)
        .filter(|machine| machine.metadata.deletion_timestamp.is_none())
        .collect();
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or_default();
    if owned.len() != wanted {
        open.push(("L1", String::new(), format!("pool {name} has {} of {wanted}", owned.len())));
    }
    let status = set.status.clone().unwrap_or_default();
    let ready = owned.iter().filter(|machine| {
        let linked =
            machine.status.as_ref().and_then(|status| status.node_ref.as_ref()?.name.clone());
        let node = nodes.iter().find(|node| Some(node::name(node)) == linked.as_deref());
        let runs = machine.status.as_ref().is_none_or(|status| {
            condition::find(&status.conditions, condition_type::INSTANCE_RUNNING)
                .is_none_or(|it| it.status != condition::ConditionStatus::False)
        });
        runs && node.is_some_and(|node| node::readiness(node) == Readiness::Ready)
    });
    let ready = i32::try_from(ready.count()).unwrap_or(i32::MAX);
    let count = i32::try_from(owned.len()).unwrap_or(i32::MAX);
    let mut say = |what: &str, said: Option<i32>, is: i32| {
        if said.unwrap_or(0) != is {
            let words = format!("pool {name} says {what} {said:?}, and it is {is}");
            open.push(("T1", String::new(), words));
        }
    };
    say("replicas", status.replicas, count);
    say("readyReplicas", status.ready_replicas, ready);
    say("availableReplicas", status.available_replicas, ready);
    if status.observed_generation != set.metadata.generation {
        open.push(("T1", String::new(), format!("pool {name} has not seen its last change")));
    }
    open
}

/// L3: instances and Nodes that nobody needs.
fn left_over(
    machines: &[Machine],
    nodes: &[Node],
    instances: &[InstanceFacts],
) -> Vec<(&'static str, String, String)> {
    let mut open = Vec::new();
    for instance in instances {
        let uid = instance.tags.get(machinist_api::names::tag::MACHINE_UID);
        let is_live = instance.state != InstanceState::Terminated;
        let is_wanted =
            machines.iter().any(|machine| machine.metadata.uid.as_ref() == uid && uid.is_some());
        if is_live && !is_wanted {
            let words = format!("instance {} is live and nobody's", instance.id);
            open.push(("L3", String::new(), words));
        }
    }
    for node in nodes {
        let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        // Those of Cluster API are counted with its Machines.
        if provider_id.is_some_and(|id| id.starts_with(SCHEME)) {
            continue;
        }
        let id = provider_id.and_then(InstanceId::from_provider_id);
        let is_live = id.is_some_and(|id| {
            instances.iter().any(|one| one.id == id.0 && one.state != InstanceState::Terminated)
        });
        // A Machine whose instance is gone, and which is left to people, keeps its Node with it.
        let is_reported = provider_id.is_some()
            && machines.iter().any(|one| one.spec.provider_id.as_deref() == provider_id);
        if !is_live && !is_reported {
            let words = format!("node {} is left, and its instance is gone", node::name(node));
            open.push(("L3", String::new(), words));
        }
    }
    open
}

/// The counters at the beginning of the quiet time.
#[derive(Clone, Debug)]
pub struct QuietMark {
    counts: Counts,
}

impl QuietMark {
    #[must_use]
    pub fn now(judge: &Judge) -> Self {
        Self { counts: judge.counts().clone() }
    }

    /// R1, R2 and the second half of L1: what happened since though nothing was to be done.
    #[must_use]
    pub fn stirred(
        &self,
        judge: &Judge,
        minutes: u64,
        processes: u64,
    ) -> Vec<(&'static str, String)> {
        let now = judge.counts();
        let mut open = Vec::new();
        if now.cloud_changes != self.counts.cloud_changes {
            open.push(("L1", format!("the cloud was still changed: {}", now.last_change)));
        }
        if now.writes != self.counts.writes {
            let count = now.writes - self.counts.writes;
            open.push(("R2", format!("{count} writes at rest, the last: {}", now.last_write)));
        }
        // Two lists a minute, and two questions about what is missing and held.
        let rest = [("DescribeInstances", 4), ("DescribeInstanceStatus", 2)];
        for (action, per_minute) in rest {
            let count = |of: &Counts| of.cloud_reads.get(action).copied().unwrap_or_default();
            let asked = count(now) - count(&self.counts);
            let most = (minutes + 1) * per_minute * processes;
            if asked > most {
                open.push(("R1", format!("{asked} {action} in {minutes} min, at most {most}")));
            }
        }
        open
    }
}
