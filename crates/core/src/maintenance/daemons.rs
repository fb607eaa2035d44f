//! Which DaemonSets belong on a Node and do not run there? A new machine takes the place of another only
//! with its network, its storage and its logs.

use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Taint, Toleration},
};

use super::control_plane::is_ready;
use crate::node;

/// The taints that the DaemonSet controller has its pods tolerate.
const ALWAYS_TOLERATED: [&str; 7] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/network-unavailable",
];

/// The DaemonSets that belong on a Node and have no ready pod there, by namespace and name. `pods` are
/// those on the Node.
pub fn missing(node: &Node, daemon_sets: &[DaemonSet], pods: &[Pod]) -> Vec<String> {
    let mut missing: Vec<String> = daemon_sets
        .iter()
        .filter(|set| set.metadata.deletion_timestamp.is_none() && belongs(set, node))
        .filter(|set| !pods.iter().any(|pod| is_of(pod, set) && is_ready(pod)))
        .map(|set| {
            format!(
                "{}/{}",
                set.metadata.namespace.as_deref().unwrap_or_default(),
                set.metadata.name.as_deref().unwrap_or_default()
            )
        })
        .collect();
    missing.sort();
    missing
}

fn is_of(pod: &Pod, set: &DaemonSet) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    let is_owned = controllers.any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref());
    is_owned && pod.metadata.deletion_timestamp.is_none()
}

fn belongs(set: &DaemonSet, node: &Node) -> bool {
    let template = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let Some(pod) = template else { return false };
    is_selected(pod, node) && is_tolerated(pod, node)
}

fn is_selected(pod: &PodSpec, node: &Node) -> bool {
    let has = |(key, value): (&String, &String)| label(node, key) == Some(value.as_str());
    if !pod.node_selector.iter().flatten().all(has) {
        return false;
    }
    let affinity = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    required.is_none_or(|required| {
        required.node_selector_terms.iter().any(|term| matches_term(term, node))
    })
}

/// A term without any requirement matches nothing.
fn matches_term(term: &NodeSelectorTerm, node: &Node) -> bool {
    let (expressions, fields) = (term.match_expressions.as_deref(), term.match_fields.as_deref());
    let (expressions, fields) = (expressions.unwrap_or_default(), fields.unwrap_or_default());
    let of_field = |key: &str| (key == "metadata.name").then(|| node::name(node));
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|one| matches(one, label(node, &one.key)))
        && fields.iter().all(|one| matches(one, of_field(&one.key)))
}

fn matches(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let is_among = || value.is_some_and(|value| values.iter().any(|one| one == value));
    let compared = || {
        let wanted = values.first()?.parse::<i64>().ok()?;
        Some(value?.parse::<i64>().ok()?.cmp(&wanted))
    };
    match requirement.operator.as_str() {
        "In" => is_among(),
        "NotIn" => !is_among(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(std::cmp::Ordering::is_gt),
        "Lt" => compared().is_some_and(std::cmp::Ordering::is_lt),
        _ => false,
    }
}

fn is_tolerated(pod: &PodSpec, node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let tolerations = pod.tolerations.as_deref().unwrap_or_default();
    taints
        .into_iter()
        .flatten()
        .filter(|taint| taint.effect != "PreferNoSchedule")
        .filter(|taint| !ALWAYS_TOLERATED.contains(&taint.key.as_str()))
        .all(|taint| tolerations.iter().any(|one| tolerates(one, taint)))
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let of_key = match toleration.key.as_deref() {
        None | Some("") => toleration.operator.as_deref() == Some("Exists"),
        Some(key) => key == taint.key,
    };
    let of_effect = toleration
        .effect
        .as_deref()
        .is_none_or(|effect| effect.is_empty() || effect == taint.effect);
    let of_value = toleration.operator.as_deref() == Some("Exists")
        || toleration.value.as_deref().unwrap_or_default()
            == taint.value.as_deref().unwrap_or_default();
    of_key && of_effect && of_value
}

fn label<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(name: &str, pod: Value) -> DaemonSet {
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "system", "uid": format!("uid-{name}") },
            "spec": { "selector": {}, "template": { "spec": pod } },
        }))
        .unwrap()
    }

    fn pod(set: &str, ready: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": { "name": set, "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "DaemonSet", "name": set, "uid": format!("uid-{set}"),
                "controller": true,
            }] },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }))
        .unwrap()
    }

    fn node(taints: Value) -> Node {
        serde_json::from_value(json!({
            "metadata": { "name": "n", "labels": { "os": "linux", "cores": "8" } },
            "spec": { "taints": taints },
        }))
        .unwrap()
    }

    fn affinity(expressions: Value) -> Value {
        json!({ "containers": [], "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchExpressions": expressions }],
            },
        } } })
    }

    #[test]
    fn only_a_ready_pod_of_the_set_itself_counts() {
        let sets = [set("log", json!({ "containers": [] }))];
        let node = node(json!([]));
        assert_eq!(missing(&node, &sets, &[]), ["system/log"]);
        assert_eq!(missing(&node, &sets, &[pod("log", "False")]), ["system/log"]);
        assert_eq!(missing(&node, &sets, &[pod("other", "True")]), ["system/log"]);
        assert_eq!(missing(&node, &sets, &[pod("log", "True")]), [""; 0]);
    }

    #[test]
    fn what_does_not_belong_on_the_node_is_not_missed() {
        let is = |operator: &str, key: &str, values: Value| {
            affinity(json!([{ "key": key, "operator": operator, "values": values }]))
        };
        let gpu = json!([{ "key": "gpu", "value": "yes", "effect": "NoSchedule" }]);
        let tolerant = |toleration: Value| json!({ "containers": [], "tolerations": [toleration] });
        let plain = json!({ "containers": [] });
        let none = json!([]);
        let table = [
            (plain.clone(), none.clone(), true),
            (json!({ "containers": [], "nodeSelector": { "os": "linux" } }), none.clone(), true),
            (json!({ "containers": [], "nodeSelector": { "os": "windows" } }), none.clone(), false),
            (is("In", "os", json!(["linux", "bsd"])), none.clone(), true),
            (is("NotIn", "os", json!(["linux"])), none.clone(), false),
            (is("Exists", "gpu", json!([])), none.clone(), false),
            (is("DoesNotExist", "gpu", json!([])), none.clone(), true),
            (is("Gt", "cores", json!(["4"])), none.clone(), true),
            (is("Lt", "cores", json!(["4"])), none.clone(), false),
            (affinity(json!([])), none, false),
            (plain.clone(), gpu.clone(), false),
            (tolerant(json!({ "operator": "Exists" })), gpu.clone(), true),
            (tolerant(json!({ "key": "gpu", "value": "yes" })), gpu.clone(), true),
            (tolerant(json!({ "key": "gpu", "value": "no" })), gpu.clone(), false),
            (
                tolerant(json!({ "key": "gpu", "operator": "Exists", "effect": "NoExecute" })),
                gpu,
                false,
            ),
            (
                plain,
                json!([{ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }]),
                true,
            ),
        ];
        for (pod, taints, belongs) in table {
            let sets = [set("log", pod.clone())];
            let missed = missing(&node(taints.clone()), &sets, &[]);
            assert_eq!(!missed.is_empty(), belongs, "{pod} {taints}");
        }
    }
}
