//! Which workloads have fewer ready pods than they want because of a maintenance? Those that had a pod on
//! the Node, and whose new pods are not ready or not made. What is broken elsewhere is not held against
//! it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::Pod,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};

use super::control_plane::is_ready;
use crate::{drain::decide::must_go, selector};

/// A Deployment, a StatefulSet or a ReplicaSet: how many pods it wants and has.
#[derive(Clone, Debug)]
pub struct Workload<'a> {
    pub kind: &'static str,
    pub metadata: &'a ObjectMeta,
    /// Who makes its pods, as [`makers`] names them: itself, or the ReplicaSets of a Deployment.
    pub makers: Vec<String>,
    pub selector: Option<&'a LabelSelector>,
    pub wanted: i32,
    pub ready: i32,
}

/// How many are named; more would not make anything clearer.
const NAMED_MAX: usize = 5;
/// As the schema says.
pub const MAKERS_MAX: usize = 200;

/// How the maker of pods is named.
pub fn maker(namespace: &str, kind: &str, name: &str) -> String {
    format!("{namespace}/{kind}/{name}")
}

/// Who made the pods that have to leave a Node.
pub fn makers<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> BTreeSet<String> {
    let leaving = pods.into_iter().filter(|pod| must_go(pod));
    let made = leaving.filter_map(|pod| {
        let mut owners = pod.metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true))?;
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        Some(maker(namespace, &owner.kind, &owner.name))
    });
    made.collect()
}

/// The namespaces of makers.
pub fn namespaces(makers: &[String]) -> BTreeSet<&str> {
    makers.iter().filter_map(|maker| Some(maker.split_once('/')?.0)).collect()
}

/// The workloads that had a pod on the Node and are not back, in words.
pub fn missing(
    workloads: &[Workload<'_>],
    pods: &[&Pod],
    had_to_leave: &[String],
    since: Timestamp,
) -> Vec<String> {
    let mut missing: Vec<String> = workloads
        .iter()
        .filter(|one| one.makers.iter().any(|maker| had_to_leave.contains(maker)))
        .filter(|one| one.ready < one.wanted && one.metadata.deletion_timestamp.is_none())
        .filter(|one| is_short(one, pods, since))
        .map(|one| {
            format!(
                "{} {}/{} has {} of {} ready pods",
                one.kind,
                one.metadata.namespace.as_deref().unwrap_or_default(),
                one.metadata.name.as_deref().unwrap_or_default(),
                one.ready,
                one.wanted
            )
        })
        .collect();
    missing.sort();
    let hidden = missing.len().saturating_sub(NAMED_MAX);
    missing.truncate(NAMED_MAX);
    if hidden > 0 {
        missing.push(format!("{hidden} more"));
    }
    missing
}

/// Whether a pod is not made, or one that was made since then is not ready. One that was broken before
/// still is.
fn is_short(workload: &Workload<'_>, pods: &[&Pod], since: Timestamp) -> bool {
    let empty = std::collections::BTreeMap::new();
    let own: Vec<&&Pod> = pods
        .iter()
        .filter(|pod| pod.metadata.namespace == workload.metadata.namespace)
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .filter(|pod| {
            selector::matches(workload.selector, pod.metadata.labels.as_ref().unwrap_or(&empty))
        })
        .collect();
    let is_new = |pod: &Pod| {
        pod.metadata.creation_timestamp.as_ref().is_some_and(|created| created.0 >= since)
    };
    let made = i32::try_from(own.len()).unwrap_or(i32::MAX);
    made < workload.wanted || own.iter().any(|pod| is_new(pod) && !is_ready(pod))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BEFORE: &str = "2026-01-01T11:59:59Z";
    const AFTER: &str = "2026-01-01T12:00:01Z";

    fn pod(app: &str, namespace: &str, created: &str, ready: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": app, "namespace": namespace, "labels": { "app": app },
                "creationTimestamp": created,
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{app}-1"),
                    "uid": "u", "controller": true,
                }],
            },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }))
        .unwrap()
    }

    #[test]
    fn only_who_had_a_pod_on_the_node_and_lacks_one_since_is_not_back() {
        let since: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let selector: LabelSelector =
            serde_json::from_value(json!({ "matchLabels": { "app": "web" } })).unwrap();
        let metadata: ObjectMeta =
            serde_json::from_value(json!({ "name": "web", "namespace": "a" })).unwrap();
        let gone = pod("web", "a", BEFORE, "True");
        let had_to_leave: Vec<String> = makers([&gone]).into_iter().collect();
        assert_eq!(had_to_leave, ["a/ReplicaSet/web-1"]);
        assert_eq!(namespaces(&had_to_leave), BTreeSet::from(["a"]));
        let missed = |ready: i32, pods: &[Pod], had_to_leave: &[String]| {
            let workload = Workload {
                kind: "deployment",
                metadata: &metadata,
                makers: vec![maker("a", "ReplicaSet", "web-1")],
                selector: Some(&selector),
                wanted: 2,
                ready,
            };
            let pods: Vec<&Pod> = pods.iter().collect();
            missing(&[workload], &pods, had_to_leave, since)
        };
        let old = pod("web", "a", BEFORE, "True");
        let waits = pod("web", "a", AFTER, "False");
        let works = pod("web", "a", AFTER, "True");
        let was_broken = pod("web", "a", BEFORE, "False");
        let of_another = pod("web", "b", AFTER, "False");
        let not_back = ["deployment a/web has 1 of 2 ready pods"];
        assert_eq!(missed(1, &[old.clone(), waits.clone()], &had_to_leave), not_back);
        assert_eq!(
            missed(1, std::slice::from_ref(&old), &had_to_leave),
            not_back,
            "it is not made anew"
        );
        assert_eq!(missed(2, &[old.clone(), works.clone()], &had_to_leave), [""; 0]);
        assert_eq!(missed(1, &[was_broken, works, of_another], &had_to_leave), [""; 0]);
        assert_eq!(missed(1, &[old, waits], &["a/ReplicaSet/db-1".to_owned()]), [""; 0]);
    }

    #[test]
    fn pods_that_stay_on_a_node_are_nobodys_loss() {
        let mut daemon = pod("agent", "a", BEFORE, "True");
        daemon.metadata.owner_references.as_mut().unwrap()[0].kind = "DaemonSet".to_owned();
        let mut alone = pod("job", "a", BEFORE, "True");
        alone.metadata.owner_references = None;
        assert!(makers([&daemon, &alone]).is_empty());
    }
}
