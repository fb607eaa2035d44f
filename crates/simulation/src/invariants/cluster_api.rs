//! What must hold of Cluster API's objects when something is written? How many Machines there are, which of them may go,
//! what is beside each of them, and what is left when one lets go.
//!
//! `removal` is about the way of a Machine out; `quiet` about the end of a run.

mod quiet;
mod removal;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString};
use machinist_api::cluster_api::{
    Cluster, Machine, MachineDeployment, MachineSet, condition,
    names::{annotation, condition_type, finalizer, reason},
};

pub(super) use self::quiet::unsettled;
use super::{Judge, truth::SetTruth};
use crate::api_server::{Commit, ObjectRef, Subresource};

/// The kinds of the played providers of which each Machine has one.
const PROVIDED: [&str; 2] = ["simmachines", "simconfigs"];

/// What only history tells of Cluster API's objects.
#[derive(Debug, Default)]
pub(super) struct FleetTruth {
    /// What sets and deployments wanted, by uid.
    wanted: BTreeMap<String, SetTruth>,
    /// Since when a Cluster is paused, by name.
    paused_since: BTreeMap<String, Timestamp>,
}

/// Whether a commit is about Cluster API or one of its providers.
pub(super) fn is_about(commit: &Commit) -> bool {
    let kind = commit.kind.kind;
    kind.is_of_cluster_api() || PROVIDED.contains(&kind.plural)
}

fn uid(metadata: &ObjectMeta) -> &str {
    metadata.uid.as_deref().unwrap_or_default()
}

fn name(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

fn is_deleting(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

/// Who controls an object.
fn controller(metadata: &ObjectMeta) -> Option<&str> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
}

fn has_annotation(metadata: &ObjectMeta, key: &str) -> bool {
    metadata.annotations.as_ref().is_some_and(|all| all.contains_key(key))
}

fn count_of(metadata: &ObjectMeta, finalizer: &str) -> usize {
    metadata.finalizers.iter().flatten().filter(|one| *one == finalizer).count()
}

fn is_true(machine: &Machine, type_: &str) -> bool {
    machine.status.as_ref().is_some_and(|status| condition::is_true(&status.conditions, type_))
}

/// How many of so many, rounded up or down.
fn share(of: usize, limit: Option<&IntOrString>, usual: usize, up: bool) -> usize {
    match limit {
        None => usual,
        Some(IntOrString::Int(number)) => usize::try_from(*number).unwrap_or_default(),
        Some(IntOrString::String(text)) => {
            let percent: usize = text.trim_end_matches('%').parse().unwrap_or_default();
            let whole = of * percent;
            if up { whole.div_ceil(100) } else { whole / 100 }
        }
    }
}

impl Judge {
    pub(super) fn cluster_api_changed(&mut self, commit: &Commit, by_operator: bool) {
        if by_operator {
            self.check_transition_times(commit, "");
            self.check_unpaused(commit);
        }
        let uid = commit.object().uid().to_owned();
        let plural = commit.kind.kind.plural;
        match plural {
            "clusters" => self.note_pause(commit),
            "machinesets" | "machinedeployments" => {
                let truth = self.cluster_api.wanted.entry(uid).or_default();
                match &commit.after {
                    Some(object) => truth.update(object, commit.time),
                    None => {
                        truth.deleting_since.get_or_insert(commit.time);
                    }
                }
                if by_operator && plural == "machinesets" {
                    self.check_set(commit);
                }
                if by_operator && plural == "machinedeployments" {
                    self.check_deployment(commit);
                }
            }
            "machines" if by_operator => self.check_machine(commit),
            "simmachines" | "simconfigs" if by_operator => self.check_provided(commit),
            _ => {}
        }
    }

    /// All objects of a type.
    fn listed<K>(&self) -> Vec<K>
    where
        K: kube::Resource<DynamicType = ()> + serde::de::DeserializeOwned,
    {
        self.server.as_ref().map(|server| server.list::<K>()).unwrap_or_default()
    }

    fn cluster_named(&self, name: &str) -> Option<Cluster> {
        let all: Vec<Cluster> = self.listed();
        all.into_iter().find(|one| one.metadata.name.as_deref() == Some(name))
    }

    fn note_pause(&mut self, commit: &Commit) {
        let Ok(cluster) = commit.object().parse::<Cluster>() else { return };
        let paused = &mut self.cluster_api.paused_since;
        if commit.after.is_some() && cluster.spec.paused == Some(true) {
            paused.entry(name(&cluster.metadata).to_owned()).or_insert(commit.time);
        } else {
            paused.remove(name(&cluster.metadata));
        }
    }

    /// S23: what is paused is only spoken of.
    fn check_unpaused(&mut self, commit: &Commit) {
        if commit.subresource == Subresource::Status || !commit.kind.kind.is_of_cluster_api() {
            return;
        }
        let object = commit.object();
        let cluster = object.value().pointer("/spec/clusterName").and_then(|name| name.as_str());
        let cluster = cluster.unwrap_or_else(|| object.name());
        let since = self.cluster_api.paused_since.get(cluster).copied();
        if since.is_some_and(|since| self.must_be_seen(since, commit.time)) {
            let words = format!(
                "{} {} is changed while Cluster {cluster} is paused",
                commit.kind.kind.plural,
                object.name()
            );
            self.find("S23", "", commit.time, words);
        }
    }

    /// CA1, S4: one set for each template, which stays until its Machines are gone.
    fn check_set(&mut self, commit: &Commit) {
        let Ok(set) = commit.object().parse::<MachineSet>() else { return };
        if commit.before.is_none() {
            self.check_only_set(&set, commit.time);
        }
        if lets_go(commit, finalizer::MACHINE_SET) {
            let machines: Vec<Machine> = self.listed();
            let left: Vec<&str> = machines
                .iter()
                .filter(|one| controller(&one.metadata) == Some(uid(&set.metadata)))
                .map(|one| name(&one.metadata))
                .collect();
            self.check_nothing_left(commit, "set", &left);
        }
    }

    /// CA1: no second set of a deployment for the same template.
    fn check_only_set(&mut self, new: &MachineSet, now: Timestamp) {
        let Some(owner) = controller(&new.metadata) else { return };
        let deployments: Vec<MachineDeployment> = self.listed();
        let Some(deployment) = deployments.iter().find(|one| uid(&one.metadata) == owner) else {
            return;
        };
        // A rollout that is asked for by time makes another set of the same template, once.
        let after = deployment.spec.rollout.after.as_ref().map(|after| after.0);
        let is_before = |set: &MachineSet| {
            let created = set.metadata.creation_timestamp.as_ref().map(|at| at.0);
            after.is_some_and(|after| after <= now && created < Some(after))
        };
        let template = |set: &MachineSet| {
            let spec = set.spec.template.spec.clone();
            (spec.version, spec.bootstrap, spec.infrastructure_ref, spec.failure_domain)
        };
        let sets: Vec<MachineSet> = self.listed();
        let twin = sets.iter().find(|one| {
            uid(&one.metadata) != uid(&new.metadata)
                && controller(&one.metadata) == Some(owner)
                && !is_deleting(&one.metadata)
                && template(one) == template(new)
                && !is_before(one)
        });
        if let Some(twin) = twin {
            let words = format!(
                "set {} is made for the template that set {} is for",
                name(&new.metadata),
                name(&twin.metadata)
            );
            self.find("CA1", "", now, words);
        }
    }

    /// S4: a deployment stays until its sets are gone.
    fn check_deployment(&mut self, commit: &Commit) {
        if !lets_go(commit, finalizer::MACHINE_DEPLOYMENT) {
            return;
        }
        let sets: Vec<MachineSet> = self.listed();
        let own = commit.object().uid();
        let left: Vec<&str> = sets
            .iter()
            .filter(|one| controller(&one.metadata) == Some(own))
            .map(|one| name(&one.metadata))
            .collect();
        self.check_nothing_left(commit, "deployment", &left);
    }

    fn check_nothing_left(&mut self, commit: &Commit, what: &str, left: &[&str]) {
        if !left.is_empty() {
            let name = commit.object().name();
            let words = format!("the finalizer of {what} {name} goes before {}", left.join(", "));
            self.find("S4", "", commit.time, words);
        }
    }

    fn check_machine(&mut self, commit: &Commit) {
        let Ok(machine) = commit.object().parse::<Machine>() else { return };
        let now = commit.time;
        let before = commit.before.as_ref().and_then(|object| object.parse::<Machine>().ok());
        if before.is_none() {
            self.check_fleet_size(&machine, now);
        }
        if count_of(&machine.metadata, finalizer::MACHINE) > 1 {
            let words = "our finalizer is there more than once";
            self.find("S5", name(&machine.metadata), now, words);
        }
        let begins_to_go = before.as_ref().is_some_and(|before| !is_deleting(&before.metadata))
            && (commit.after.is_none() || is_deleting(&machine.metadata));
        if begins_to_go {
            self.check_may_go(&machine, now);
        }
        if lets_go(commit, finalizer::MACHINE) {
            self.check_machine_let_go(&machine, now);
        }
    }

    /// S17: no more Machines than the set wants, and than its deployment wants with its surge.
    fn check_fleet_size(&mut self, machine: &Machine, now: Timestamp) {
        let Some(owner) = controller(&machine.metadata).map(str::to_owned) else { return };
        let since = self.seen_since(now);
        let subject = name(&machine.metadata).to_owned();
        let machines: Vec<Machine> = self.listed();
        let of = |set: &str| {
            let is_of = |one: &&Machine| {
                controller(&one.metadata) == Some(set) && !is_deleting(&one.metadata)
            };
            machines.iter().filter(is_of).count()
        };
        let Some(truth) = self.cluster_api.wanted.get(&owner) else { return };
        if truth.deleting_since.is_some_and(|at| self.must_be_seen(at, now)) {
            let words = format!("made for set {}, which is being deleted", truth.name);
            return self.find("S17", &subject, now, words);
        }
        let is_cluster_going = self
            .cluster_named(&machine.spec.cluster_name)
            .and_then(|cluster| cluster.metadata.deletion_timestamp)
            .is_some_and(|at| self.must_be_seen(at.0, now));
        if is_cluster_going {
            let words = format!("made while Cluster {} is deleted", machine.spec.cluster_name);
            return self.find("S17", &subject, now, words);
        }
        let (_, most) = truth.wanted_since(since);
        let count = of(&owner);
        if count > most {
            let words = format!("made as number {count} of set {}, which wants {most}", truth.name);
            self.find("S17", &subject, now, words);
        }
        let sets: Vec<MachineSet> = self.listed();
        let Some(deployment) = self.deployment_of(&owner, &sets) else { return };
        let uid_of_deployment = uid(&deployment.metadata);
        let Some(truth) = self.cluster_api.wanted.get(uid_of_deployment) else { return };
        let (_, wanted) = truth.wanted_since(since);
        let surge = deployment.spec.rollout.strategy.rolling_update.max_surge.as_ref();
        let most = wanted + share(wanted, surge, 1, true);
        let own = sets.iter().filter(|set| controller(&set.metadata) == Some(uid_of_deployment));
        let count: usize = own.map(|set| of(uid(&set.metadata))).sum();
        if count > most {
            let words =
                format!("made as number {count} of deployment {}, of at most {most}", truth.name);
            self.find("S17", &subject, now, words);
        }
    }

    fn deployment_of(&self, set: &str, sets: &[MachineSet]) -> Option<MachineDeployment> {
        let set = sets.iter().find(|one| uid(&one.metadata) == set)?;
        let owner = controller(&set.metadata)?;
        let all: Vec<MachineDeployment> = self.listed();
        all.into_iter().find(|one| uid(&one.metadata) == owner)
    }

    /// S18, S19, S20: a Machine is deleted only where it is surplus or not well, and enough others work.
    fn check_may_go(&mut self, machine: &Machine, now: Timestamp) {
        let subject = name(&machine.metadata).to_owned();
        let cluster = self.cluster_named(&machine.spec.cluster_name);
        if cluster.is_none_or(|cluster| is_deleting(&cluster.metadata)) {
            return;
        }
        let Some(owner) = controller(&machine.metadata).map(str::to_owned) else {
            return self.find("S19", &subject, now, "deleted, and nobody asked for that");
        };
        let since = self.seen_since(now);
        let Some(truth) = self.cluster_api.wanted.get(&owner) else { return };
        if truth.deleting_since.is_some() {
            return;
        }
        let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice());
        let conditions = conditions.unwrap_or_default();
        let remediated = condition::find(conditions, condition_type::OWNER_REMEDIATED);
        if remediated.is_some_and(|it| it.reason == reason::MACHINE_DELETING) {
            if !condition::is_false(conditions, condition_type::HEALTH_CHECK_SUCCEEDED) {
                let words = "remediated, and no health check has failed";
                self.find("S20", &subject, now, words);
            }
            return;
        }
        let machines: Vec<Machine> = self.listed();
        let (least, _) = truth.wanted_since(since);
        let left = machines
            .iter()
            .filter(|one| controller(&one.metadata) == Some(owner.as_str()))
            .filter(|one| !is_deleting(&one.metadata) && one.metadata.uid != machine.metadata.uid)
            .count();
        if left < least {
            let words = format!("deleted, and set {} keeps {left} of {least}", truth.name);
            self.find("S19", &subject, now, words);
        }
        let sets: Vec<MachineSet> = self.listed();
        let Some(deployment) = self.deployment_of(&owner, &sets) else { return };
        if !is_true(machine, condition_type::AVAILABLE) || is_deleting(&deployment.metadata) {
            return;
        }
        let Some(truth) = self.cluster_api.wanted.get(uid(&deployment.metadata)) else { return };
        let (wanted, _) = truth.wanted_since(since);
        let away = deployment.spec.rollout.strategy.rolling_update.max_unavailable.as_ref();
        let least = wanted.saturating_sub(share(wanted, away, 0, false));
        let is_of = |one: &Machine| {
            let set = sets.iter().find(|set| controller(&one.metadata) == Some(uid(&set.metadata)));
            set.is_some_and(|set| controller(&set.metadata) == Some(uid(&deployment.metadata)))
        };
        let work = machines
            .iter()
            .filter(|one| is_of(one) && one.metadata.uid != machine.metadata.uid)
            .filter(|one| !is_deleting(&one.metadata) && is_true(one, condition_type::AVAILABLE))
            .count();
        if work < least {
            let words = format!(
                "deleted, and only {work} of deployment {} work, of at least {least}",
                truth.name
            );
            self.find("S18", &subject, now, words);
        }
    }
}

/// Whether a commit takes our finalizer away, or the object itself.
fn lets_go(commit: &Commit, finalizer: &str) -> bool {
    let count = |object: Option<&ObjectRef>| {
        let finalizers = object.and_then(|object| object.value().pointer("/metadata/finalizers"));
        let all = finalizers.and_then(|all| all.as_array()).into_iter().flatten();
        all.filter(|one| one.as_str() == Some(finalizer)).count()
    };
    count(commit.before.as_ref()) > 0
        && (commit.after.is_none() || count(commit.after.as_ref()) == 0)
}

/// The hooks of a Machine with this prefix.
fn has_hook(machine: &Machine, prefix: &str) -> bool {
    let annotations = machine.metadata.annotations.iter().flatten();
    annotations.into_iter().any(|(key, _)| key.starts_with(prefix))
}

/// Whether the drain of a Machine is left out or has an end.
fn may_leave_pods(machine: &Machine) -> bool {
    has_annotation(&machine.metadata, annotation::EXCLUDE_NODE_DRAINING)
        || machine.spec.deletion.node_drain_timeout_seconds.is_some_and(|seconds| seconds > 0)
}
