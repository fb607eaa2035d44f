use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use machinist_api::cluster_api::MachineDrainRule;

use super::*;
use crate::{
    cluster_api::machine::draining::{Progress, drain},
    drain::{self, Attempts},
};

fn pod(name: &str, more: Value) -> Pod {
    let mut pod = json!({
        "metadata": { "name": name, "namespace": "app", "uid": name }, "spec": { "containers": [] },
    });
    for (key, value) in more.as_object().unwrap() {
        pod["metadata"][key] = value.clone();
    }
    read(pod)
}

fn rule(name: &str, spec: Value) -> MachineDrainRule {
    read(json!({ "metadata": { "name": name, "namespace": "ns" }, "spec": spec }))
}

struct Scene {
    world: World,
    pods: Vec<Pod>,
    rules: Vec<MachineDrainRule>,
    attempts: Attempts,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
}

impl Scene {
    fn new(pods: Vec<Pod>, rules: Vec<MachineDrainRule>) -> Self {
        let mut world = World::running();
        world.node.as_mut().unwrap().spec.as_mut().unwrap().unschedulable = Some(true);
        let namespaces = BTreeMap::from([("app".to_owned(), BTreeMap::new())]);
        Self { world, pods, rules, attempts: Attempts::default(), namespaces }
    }

    fn try_drain(&self) -> Result<Progress, String> {
        let draining = Draining {
            node: self.world.node.as_ref().unwrap(),
            pods: self.pods.iter().collect(),
            missing_daemon_sets: BTreeSet::new(),
            budgets: Vec::new(),
            attempts: &self.attempts,
            rules: self.rules.iter().collect(),
            namespaces: &self.namespaces,
        };
        drain(&self.world.machine, &self.world.cluster, &draining, at("11:58:00"), now())
    }

    fn drain(&self) -> (Vec<String>, Option<String>) {
        let progress = self.try_drain().unwrap();
        let evicted = progress.actions.into_iter().filter_map(|action| match action {
            drain::Action::Evict { pod, .. } => Some(pod),
            drain::Action::Cordon { .. } => None,
        });
        (evicted.collect(), progress.message)
    }

    /// Makes the kubelet silent since this time.
    fn silence(&mut self, since: &str) {
        let node = self.world.node.as_mut().unwrap();
        let conditions = node.status.as_mut().unwrap().conditions.as_mut().unwrap();
        conditions[0] = read(json!({
            "type": "Ready", "status": "Unknown", "lastTransitionTime": format!("2026-01-01T{since}Z"),
        }));
    }
}

#[test]
fn lower_orders_leave_first_and_ending_pods_hold_the_others_back() {
    let first = rule(
        "b",
        json!({
            "drain": { "behavior": "Drain", "order": -5 },
            "pods": [{ "selector": { "matchLabels": { "app": "db" } } }],
        }),
    );
    let db = json!({ "labels": { "app": "db" } });
    let scene = Scene::new(vec![pod("web", json!({})), pod("db", db.clone())], vec![first.clone()]);
    let (evicted, message) = scene.drain();
    assert_eq!(evicted, ["db"]);
    assert_eq!(
        message.unwrap(),
        "Drain not completed yet (started at 2026-01-01T11:58:00Z):\n\
         After above Pods have been removed from the Node, the following Pods will be evicted: app/web"
    );
    let ending = json!({
        "labels": { "app": "db" }, "deletionTimestamp": "2026-01-01T12:00:30Z",
    });
    let scene = Scene::new(vec![pod("web", json!({})), pod("db", ending)], vec![first]);
    let (evicted, message) = scene.drain();
    assert_eq!(evicted, [""; 0]);
    assert!(
        message
            .unwrap()
            .contains("* Pod app/db: deletionTimestamp set, but still not removed from the Node")
    );
}

#[test]
fn the_first_rule_by_name_decides_and_the_label_of_a_pod_before_it() {
    let skip = rule(
        "a",
        json!({ "drain": { "behavior": "Skip" },
        "pods": [{ "selector": { "matchLabels": { "kind": "x" } } }] }),
    );
    let wait = rule("b", json!({ "drain": { "behavior": "WaitCompleted" } }));
    let labels = |pairs: Value| json!({ "labels": pairs });
    let scene = Scene::new(
        vec![
            pod("skipped", labels(json!({ "kind": "x" }))),
            pod("awaited", labels(json!({}))),
            pod("own", labels(json!({ "cluster.x-k8s.io/drain": "Skip" }))),
        ],
        vec![wait, skip],
    );
    let (evicted, message) = scene.drain();
    assert_eq!(evicted, [""; 0]);
    assert!(message.unwrap().ends_with("* Pod app/awaited: waiting for completion"));
}

#[test]
fn rules_are_about_machines_and_clusters_and_namespaces() {
    let others = rule(
        "a",
        json!({ "drain": { "behavior": "Skip" },
        "machines": [{ "selector": { "matchLabels": { "pool": "other" } } },
                     { "clusterSelector": { "matchLabels": { "tier": "x" } } }] }),
    );
    let elsewhere = rule(
        "b",
        json!({ "drain": { "behavior": "Skip" },
        "pods": [{ "namespaceSelector": { "matchLabels": { "team": "y" } } }] }),
    );
    let mut scene = Scene::new(vec![pod("web", json!({}))], vec![others, elsewhere]);
    assert_eq!(scene.drain().0, ["web"]);
    scene.world.cluster.metadata.labels = Some([("tier".to_owned(), "x".to_owned())].into());
    assert_eq!(scene.drain(), (Vec::new(), None));
    scene.world.cluster.metadata.labels = None;
    scene.namespaces.get_mut("app").unwrap().insert("team".to_owned(), "y".to_owned());
    assert_eq!(scene.drain(), (Vec::new(), None));
    scene.namespaces.clear();
    assert_eq!(scene.try_drain().unwrap_err(), "Namespace app was not found");
}

#[test]
fn an_unreadable_rule_stops_the_drain_by_its_name() {
    let bad = rule(
        "bad",
        json!({ "drain": { "behavior": "Skip" }, "machines": [{ "selector": {
        "matchExpressions": [{ "key": "a", "operator": "Like", "values": ["b"] }] } }] }),
    );
    let error = Scene::new(Vec::new(), vec![bad]).try_drain().unwrap_err();
    assert!(error.starts_with("MachineDrainRule bad has an invalid selector"), "{error}");
}

#[test]
fn refusals_are_told_in_words_that_tools_parse() {
    let mut scene = Scene::new(vec![pod("a", json!({})), pod("b", json!({}))], Vec::new());
    let budget = "Cannot evict pod as it would violate the pod's disruption budget. x needs 1";
    scene.attempts.refuse("a", budget, "", now());
    scene.attempts.refuse("b", "admission webhook denied", "", now());
    let (evicted, message) = scene.drain();
    assert_eq!(evicted, [""; 0]);
    let message = message.unwrap();
    assert!(message.contains(
        "* Pod app/a: cannot evict pod as it would violate the pod's disruption budget. x needs 1"
    ));
    assert!(message.contains("* Pod app/b: failed to evict Pod, admission webhook denied"));
}

#[test]
fn a_lost_node_with_a_budget_does_not_hang_for_ever() {
    let mut scene = Scene::new(vec![pod("a", json!({}))], Vec::new());
    scene.attempts.refuse("a", "Cannot evict pod as it would violate", "", at("11:59:59"));
    scene.silence("11:56:00");
    let progress = scene.try_drain().unwrap();
    assert!(progress.message.is_some());
    assert_eq!(progress.recheck, Some(at("12:00:09")));
    scene.silence("11:55:00");
    assert_eq!(scene.drain(), (Vec::new(), None));
    // One that still counts as Ready is protected.
    scene.pods[0].status =
        Some(read(json!({ "conditions": [{ "type": "Ready", "status": "True" }] })));
    assert!(scene.drain().1.is_some());
}

#[test]
fn pods_of_daemon_sets_and_mirrors_stay() {
    let owner = json!({ "ownerReferences": [{
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true,
    }] });
    let mirror = json!({ "annotations": { "kubernetes.io/config.mirror": "x" } });
    let scene = Scene::new(vec![pod("daemon", owner), pod("static", mirror)], Vec::new());
    assert_eq!(scene.drain(), (Vec::new(), None));
}
