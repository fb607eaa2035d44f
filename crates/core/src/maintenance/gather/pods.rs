//! What the pods on a Node mean for its maintenance, before it begins: who is never let go, and who is
//! not to be disrupted.

use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};

use crate::{drain::decide::must_go, maintenance::observed::is_not_to_be_disrupted, selector};

/// Budgets that no number of healthy pods would ever satisfy while one of these is evicted, in words.
pub(super) fn impossible_budgets(pods: &[&Pod], budgets: &[&PodDisruptionBudget]) -> Vec<String> {
    let mut told: Vec<String> = budgets
        .iter()
        .filter(|budget| is_impossible(budget))
        .filter_map(|budget| {
            let covers = |pod: &&&Pod| {
                let labels = pod.metadata.labels.clone().unwrap_or_default();
                must_go(pod)
                    && pod.metadata.namespace == budget.metadata.namespace
                    && selector::matches(
                        budget.spec.as_ref().and_then(|spec| spec.selector.as_ref()),
                        &labels,
                    )
            };
            let pod = pods.iter().filter(covers).min_by_key(|pod| pod.metadata.name.clone())?;
            let status = budget.status.as_ref();
            Some(format!(
                "disruption budget {}/{} never lets pod {} go (it wants {} of {} healthy)",
                budget.metadata.namespace.as_deref().unwrap_or_default(),
                budget.metadata.name.as_deref().unwrap_or_default(),
                pod.metadata.name.as_deref().unwrap_or_default(),
                status.map_or(0, |status| status.desired_healthy),
                status.map_or(0, |status| status.expected_pods),
            ))
        })
        .collect();
    told.sort();
    told
}

/// Whether it would allow nothing even if all of its pods were healthy.
pub fn is_impossible(budget: &PodDisruptionBudget) -> bool {
    budget.status.as_ref().is_some_and(|status| {
        status.expected_pods > 0 && status.desired_healthy >= status.expected_pods
    })
}

/// The pods that are not to be disrupted.
pub(super) fn do_not_disrupt(pods: &[&Pod]) -> Vec<String> {
    let mut told: Vec<String> = pods
        .iter()
        .filter(|pod| must_go(pod) && is_not_to_be_disrupted(pod))
        .map(|pod| {
            format!(
                "{}/{}",
                pod.metadata.namespace.as_deref().unwrap_or_default(),
                pod.metadata.name.as_deref().unwrap_or_default()
            )
        })
        .collect();
    told.sort();
    told
}
