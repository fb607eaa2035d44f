//! In which order do the pods of a Node leave, and what is said meanwhile?
//!
//! Who is evicted, refused or ending is decided by `crate::drain`, as for the other API. What is different here: rules
//! (MachineDrainRule, and a label of the pod) say that pods are left alone, are waited for, or leave earlier than others, and
//! the words are those that Cluster API's tools parse.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        core::v1::{Node, Pod},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::core::{Selector, SelectorExt};
use machinist_api::{
    cluster_api::{Cluster, DrainBehavior, DrainRulePods, Machine, MachineDrainRule, names::label},
    condition::to_seconds,
};

use super::node::unreachable_since;
use crate::{
    drain::{
        self, Attempts, PodState,
        decide::{daemon_set_of, must_go},
        evictions,
    },
    node,
};

/// What is on the Node of a Machine that goes.
pub struct Draining<'a> {
    pub node: &'a Node,
    pub pods: Vec<&'a Pod>,
    /// As in `drain::Observed`: only asked for when nothing else is left.
    pub missing_daemon_sets: BTreeSet<(&'a str, &'a str)>,
    pub budgets: Vec<&'a PodDisruptionBudget>,
    pub attempts: &'a Attempts,
    /// The rules of the Machine's namespace, by name.
    pub rules: Vec<&'a MachineDrainRule>,
    /// The labels of the pods' namespaces, where a rule asks for them.
    pub namespaces: &'a BTreeMap<String, BTreeMap<String, String>>,
}

/// How far the Node is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub actions: Vec<drain::Action>,
    /// What is said while pods are left; `None` when the Node is empty.
    pub message: Option<String>,
    pub recheck: Option<Timestamp>,
}

/// What becomes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    Drain(i32),
    WaitCompleted,
    Skip,
}

/// A kubelet that does not answer for so long will not confirm the end of a pod, and its pods are not Ready. A budget that refuses
/// such a pod protects nothing any more: as Kubernetes does after the same time, it is not waited for.
pub const LOST_AFTER: SignedDuration = SignedDuration::from_mins(5);
/// How many pods of a kind are named.
const NAMED: usize = 3;
/// How many different refusals are told.
const TOLD: usize = 5;
const BUDGET: &str = "cannot evict pod as it would violate the pod's disruption budget.";

/// What is to be done for the Node now.
///
/// # Errors
/// Fails, in words, when a rule of the namespace cannot be read: then nobody knows which pods it is about.
pub fn drain(
    machine: &Machine,
    cluster: &Cluster,
    draining: &Draining<'_>,
    started: Timestamp,
    now: Timestamp,
) -> Result<Progress, String> {
    let rules = rules_for(machine, cluster, &draining.rules)?;
    let lost = unreachable_since(draining.node);
    let is_lost = lost.is_some_and(|since| now.duration_since(since) >= LOST_AFTER);
    let mut left: Vec<(&Pod, Behavior)> = Vec::new();
    let mut pods = draining.pods.clone();
    pods.sort_by_key(|pod| name_of(pod));
    for pod in pods {
        let is_past = pod.metadata.deletion_timestamp.as_ref().is_some_and(|at| at.0 < now);
        let is_given_up = is_lost && !is_ready(pod) && refusal(pod, draining.attempts).is_some();
        if (lost.is_some() && is_past) || is_given_up {
            continue;
        }
        match behavior(pod, draining, &rules)? {
            Behavior::Skip => {}
            behavior => left.push((pod, behavior)),
        }
    }
    let mut progress = Progress::default();
    if !node::is_unschedulable(draining.node) {
        progress.actions.push(drain::Action::Cordon {
            node: node::name(draining.node).to_owned(),
            uid: node::uid(draining.node).to_owned(),
        });
    }
    let Some(first) = left.iter().map(|(_, behavior)| order_of(*behavior)).min() else {
        if !progress.actions.is_empty() {
            progress.message = Some(begun(started));
        }
        return Ok(progress);
    };
    let mut told = Told::default();
    let mut now_leaving = Vec::new();
    for (pod, behavior) in &left {
        let is_now = order_of(*behavior) == first;
        match (behavior, pod.metadata.deletion_timestamp.is_some()) {
            (Behavior::Drain(_), true) => now_leaving.push(*pod),
            (Behavior::Drain(_), false) if is_now => now_leaving.push(*pod),
            (Behavior::Drain(_), false) => told.later.push(name_of(pod)),
            (Behavior::WaitCompleted | Behavior::Skip, _) if is_now => {
                told.awaited.push(name_of(pod))
            }
            (Behavior::WaitCompleted | Behavior::Skip, _) => told.awaited_later.push(name_of(pod)),
        }
    }
    let going = evictions(&now_leaving, &draining.budgets, draining.attempts, lost.is_some(), now);
    for (pod, state) in now_leaving.iter().zip(&going.states) {
        match state {
            PodState::Gone | PodState::Evicted => {}
            PodState::Leaving => told.leaving.push(name_of(pod)),
            PodState::Held => told.refuse(BUDGET, name_of(pod)),
            PodState::Refused(said) => told.refuse(said, name_of(pod)),
        }
    }
    progress.actions.extend(going.actions);
    progress.recheck = match (lost, going.recheck) {
        (Some(since), _) if !is_lost => {
            let given_up = since.checked_add(LOST_AFTER).unwrap_or(Timestamp::MAX);
            Some(going.recheck.map_or(given_up, |at| at.min(given_up)))
        }
        (_, recheck) => recheck,
    };
    progress.message = Some(told.message(started));
    Ok(progress)
}

/// The pods that are left on the Node and keep their volumes.
pub fn skipped<'a>(
    machine: &Machine,
    cluster: &Cluster,
    draining: &Draining<'a>,
) -> Result<Vec<&'a Pod>, String> {
    let rules = rules_for(machine, cluster, &draining.rules)?;
    let mut skipped = Vec::new();
    for pod in &draining.pods {
        if behavior(pod, draining, &rules)? == Behavior::Skip {
            skipped.push(*pod);
        }
    }
    Ok(skipped)
}

/// How the message begins.
pub fn begun(started: Timestamp) -> String {
    format!("Drain not completed yet (started at {}):", to_seconds(started).0)
}

#[derive(Default)]
struct Told {
    leaving: Vec<String>,
    refused: BTreeMap<String, Vec<String>>,
    awaited: Vec<String>,
    later: Vec<String>,
    awaited_later: Vec<String>,
}

impl Told {
    fn refuse(&mut self, said: &str, pod: String) {
        self.refused.entry(said.to_owned()).or_default().push(pod);
    }

    fn message(&self, started: Timestamp) -> String {
        let mut lines = vec![begun(started)];
        let about = |pods: &[String], what: &str| {
            let kind = if pods.len() == 1 { "Pod" } else { "Pods" };
            format!("* {kind} {}: {what}", listed(pods))
        };
        if !self.leaving.is_empty() {
            lines.push(about(
                &self.leaving,
                "deletionTimestamp set, but still not removed from the Node",
            ));
        }
        for (said, pods) in self.refused.iter().take(TOLD) {
            let said = said.replace("Cannot evict pod as it", "cannot evict pod as it");
            let what = match said.starts_with(BUDGET) {
                true => said,
                false => format!("failed to evict Pod, {said}"),
            };
            lines.push(about(pods, &what));
        }
        match self.refused.values().skip(TOLD).map(Vec::len).sum::<usize>() {
            0 => {}
            1 => lines.push("* 1 Pod with other issues".to_owned()),
            more => lines.push(format!("* {more} Pods with other issues")),
        }
        if !self.awaited.is_empty() {
            lines.push(about(&self.awaited, "waiting for completion"));
        }
        let after = "After above Pods have been removed from the Node,";
        if !self.later.is_empty() {
            lines.push(format!(
                "{after} the following Pods will be evicted: {}",
                listed(&self.later)
            ));
        }
        if !self.awaited_later.is_empty() {
            lines.push(format!(
                "{after} waiting for the following Pods to complete without eviction: {}",
                listed(&self.awaited_later)
            ));
        }
        lines.join("\n")
    }
}

fn listed(names: &[String]) -> String {
    first_of(names, NAMED)
}

/// The first few, and how many more.
pub(super) fn first_of(names: &[String], count: usize) -> String {
    let mut shown: Vec<_> = names.iter().take(count).cloned().collect();
    if names.len() > count {
        shown.push(format!("... ({} more)", names.len() - count));
    }
    shown.join(", ")
}

fn name_of(pod: &Pod) -> String {
    let metadata = &pod.metadata;
    format!(
        "{}/{}",
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default()
    )
}

fn order_of(behavior: Behavior) -> i32 {
    match behavior {
        Behavior::Drain(order) => order,
        Behavior::WaitCompleted | Behavior::Skip => 0,
    }
}

fn refusal<'a>(pod: &Pod, attempts: &'a Attempts) -> Option<&'a str> {
    attempts.said(pod.metadata.uid.as_deref().unwrap_or_default())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// What becomes of a pod: of the pod's own kind, then of its label, then of the first rule by name that is about it.
fn behavior(pod: &Pod, draining: &Draining<'_>, rules: &[Rule<'_>]) -> Result<Behavior, String> {
    let is_orphan =
        daemon_set_of(pod).is_some_and(|owner| draining.missing_daemon_sets.contains(&owner));
    let is_mirror = !must_go(pod) && daemon_set_of(pod).is_none();
    if is_mirror || (daemon_set_of(pod).is_some() && !is_orphan && !is_finished(pod)) {
        return Ok(Behavior::Skip);
    }
    let labels = pod.metadata.labels.clone().unwrap_or_default();
    let own = labels.get(label::DRAIN).map(|value| value.to_lowercase());
    let decided = match own.as_deref().map(|value| value.replacen('-', "", 1)).as_deref() {
        Some("skip") => Some(Behavior::Skip),
        Some("waitcompleted") => Some(Behavior::WaitCompleted),
        _ => None,
    };
    let decided = match decided {
        Some(decided) => decided,
        None => by_rules(pod, &labels, draining, rules)?,
    };
    Ok(match decided {
        // It has completed.
        Behavior::WaitCompleted if is_finished(pod) => Behavior::Skip,
        decided => decided,
    })
}

fn by_rules(
    pod: &Pod,
    labels: &BTreeMap<String, String>,
    draining: &Draining<'_>,
    rules: &[Rule<'_>],
) -> Result<Behavior, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    for rule in rules {
        for (pods, namespaces) in &rule.pods {
            let in_namespace = match namespaces {
                None => true,
                Some(selector) => {
                    let labels = draining.namespaces.get(namespace);
                    let labels =
                        labels.ok_or_else(|| format!("Namespace {namespace} was not found"))?;
                    selector.matches(labels)
                }
            };
            if in_namespace && pods.as_ref().is_none_or(|selector| selector.matches(labels)) {
                return Ok(rule.behavior);
            }
        }
        if rule.rule.spec.pods.is_empty() {
            return Ok(rule.behavior);
        }
    }
    Ok(Behavior::Drain(0))
}

/// A rule that is about the Machine, with its selectors read.
struct Rule<'a> {
    rule: &'a MachineDrainRule,
    behavior: Behavior,
    pods: Vec<(Option<Selector>, Option<Selector>)>,
}

/// Whether any rule asks for the labels of namespaces.
pub fn needs_namespaces(rules: &[&MachineDrainRule]) -> bool {
    let mut entries = rules.iter().flat_map(|rule| &rule.spec.pods);
    entries.any(|entry| entry.namespace_selector.is_some())
}

fn rules_for<'a>(
    machine: &Machine,
    cluster: &Cluster,
    rules: &[&'a MachineDrainRule],
) -> Result<Vec<Rule<'a>>, String> {
    let mut sorted = rules.to_vec();
    sorted.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    let of_machine = machine.metadata.labels.clone().unwrap_or_default();
    let of_cluster = cluster.metadata.labels.clone().unwrap_or_default();
    let mut all = Vec::new();
    for rule in sorted {
        let name = rule.metadata.name.as_deref().unwrap_or_default();
        let read = |selector: &Option<LabelSelector>| read(name, selector.as_ref());
        let mut is_meant = rule.spec.machines.is_empty();
        for entry in &rule.spec.machines {
            let (machines, clusters) = (read(&entry.selector)?, read(&entry.cluster_selector)?);
            is_meant |= machines.is_none_or(|selector| selector.matches(&of_machine))
                && clusters.is_none_or(|selector| selector.matches(&of_cluster));
        }
        let entry =
            |entry: &DrainRulePods| Ok((read(&entry.selector)?, read(&entry.namespace_selector)?));
        let pods = rule.spec.pods.iter().map(entry).collect::<Result<_, String>>()?;
        let behavior = match rule.spec.drain.behavior {
            DrainBehavior::Drain => Behavior::Drain(rule.spec.drain.order.unwrap_or_default()),
            DrainBehavior::Skip => Behavior::Skip,
            DrainBehavior::WaitCompleted => Behavior::WaitCompleted,
        };
        if is_meant {
            all.push(Rule { rule, behavior, pods });
        }
    }
    Ok(all)
}

fn read(rule: &str, selector: Option<&LabelSelector>) -> Result<Option<Selector>, String> {
    let Some(selector) = selector else { return Ok(None) };
    let read = Selector::try_from(selector.clone());
    read.map(Some)
        .map_err(|error| format!("MachineDrainRule {rule} has an invalid selector: {error}"))
}
