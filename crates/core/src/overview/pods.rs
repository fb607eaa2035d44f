//! Which pods are on a machine's Node, and which budgets would block its drain?

use std::collections::BTreeMap;

use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};
use schemars::JsonSchema;
use serde::Serialize;

use super::picture::Sight;
use crate::{
    drain::decide::{blocked_by, covering, disruptions_allowed, must_go},
    maintenance::{gather::pods::is_impossible, observed::is_not_to_be_disrupted},
};

/// How many pods are shown.
const SHOWN_MAX: usize = 300;

/// The pods on a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PodsView {
    /// Why they may not be seen.
    pub hidden: Option<String>,
    pub total: usize,
    /// Those in the way first.
    pub pods: Vec<PodView>,
    pub budgets: Vec<BudgetView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PodView {
    pub namespace: String,
    pub name: String,
    /// None where it is not kept.
    pub phase: Option<String>,
    /// Kind and name of what keeps it.
    pub owner: Option<String>,
    pub drain: DrainWord,
    pub why: Option<String>,
}

/// What a drain would do with a pod. Earlier ones are in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DrainWord {
    /// A budget does not let it go now.
    Blocked,
    /// It is not to be disrupted.
    Refuses,
    Evicted,
    /// It belongs to its Node.
    Stays,
}

/// A disruption budget that covers pods on the Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetView {
    pub namespace: String,
    pub name: String,
    /// How many of its pods may be evicted now.
    pub allowed: i32,
    pub healthy: i32,
    pub desired: i32,
    pub expected: i32,
    /// The pods on this Node that it does not let go now.
    pub blocks: Vec<String>,
    /// Whether it would allow nothing even if all of its pods were healthy.
    pub is_impossible: bool,
    pub words: String,
}

/// Shows the pods on a machine's Node.
pub fn pods(
    sight: &Sight<'_>,
    budgets: &[&PodDisruptionBudget],
    no_pods: Option<&str>,
) -> PodsView {
    if let Some(why) = no_pods {
        return PodsView { hidden: Some(why.to_owned()), ..PodsView::default() };
    }
    let mut shown: Vec<PodView> = sight.pods.iter().map(|pod| pod_view(pod, budgets)).collect();
    shown.sort_by(|left, right| {
        (left.drain, &left.namespace, &left.name).cmp(&(right.drain, &right.namespace, &right.name))
    });
    let mut found: BTreeMap<(&str, &str), BudgetView> = BTreeMap::new();
    for pod in sight.pods.iter().filter(|pod| must_go(pod)) {
        for budget in covering(pod, budgets) {
            let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
            let name = budget.metadata.name.as_deref().unwrap_or_default();
            let view = found.entry((namespace, name)).or_insert_with(|| budget_view(budget));
            if view.allowed <= 0 {
                view.blocks.push(title(pod));
            }
        }
    }
    let mut budgets: Vec<BudgetView> = found.into_values().collect();
    budgets.sort_by_key(|budget| budget.allowed > 0);
    let total = shown.len();
    shown.truncate(SHOWN_MAX);
    PodsView { hidden: None, total, pods: shown, budgets }
}

fn title(pod: &Pod) -> String {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", pod.metadata.name.as_deref().unwrap_or_default())
}

fn pod_view(pod: &Pod, budgets: &[&PodDisruptionBudget]) -> PodView {
    let owners = pod.metadata.owner_references.iter().flatten();
    let owner = owners.into_iter().find(|owner| owner.controller == Some(true));
    let is_blocked = || covering(pod, budgets).any(|budget| disruptions_allowed(budget) <= 0);
    let (drain, why) = if !must_go(pod) {
        (DrainWord::Stays, Some("it belongs to its node, and goes with it".to_owned()))
    } else if is_blocked() {
        (DrainWord::Blocked, Some(blocked_by(pod, budgets, "")))
    } else if is_not_to_be_disrupted(pod) {
        let why = "its annotation asks that it is not disrupted".to_owned();
        (DrainWord::Refuses, Some(why))
    } else {
        (DrainWord::Evicted, None)
    };
    let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
    PodView {
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        name: pod.metadata.name.clone().unwrap_or_default(),
        phase,
        owner: owner.map(|owner| format!("{} {}", owner.kind, owner.name)),
        drain,
        why,
    }
}

fn budget_view(budget: &PodDisruptionBudget) -> BudgetView {
    let status = budget.status.clone().unwrap_or_default();
    let allowed = disruptions_allowed(budget);
    let is_impossible = is_impossible(budget);
    let healthy =
        format!("{} of {} pods are healthy", status.current_healthy, status.expected_pods);
    let words = if is_impossible {
        format!("it never lets a pod go: it wants all {} healthy", status.expected_pods)
    } else if allowed <= 0 {
        format!("it lets no pod go now: {healthy}, and {} must be", status.desired_healthy)
    } else {
        format!("it lets {allowed} go now: {healthy}, and {} must be", status.desired_healthy)
    };
    BudgetView {
        namespace: budget.metadata.namespace.clone().unwrap_or_default(),
        name: budget.metadata.name.clone().unwrap_or_default(),
        allowed,
        healthy: status.current_healthy,
        desired: status.desired_healthy,
        expected: status.expected_pods,
        blocks: Vec::new(),
        is_impossible,
        words,
    }
}
