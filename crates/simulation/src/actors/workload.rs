//! Which pods are there? Applications kept at their size, placed on Nodes that take them, with budgets
//! that are counted as the disruption controller counts.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Actor, Scene, earliest, later, text};
use crate::api_server::value_at;
use crate::{
    api_server::{ObjectRef, Subresource},
    invariants::condition_of,
};

const WHO: &str = "workload";
const NAMESPACE: &str = "default";
/// Pods that find no place are looked at again.
const RETRY: Duration = Duration::from_secs(5);

/// One application.
#[derive(Clone, Debug)]
pub struct App {
    pub name: String,
    pub replicas: usize,
    /// How many may be away at once; none means without a budget.
    pub max_unavailable: Option<i64>,
    pub grace_seconds: u64,
    /// Whether its pods belong to a DaemonSet, so that no drain waits for them.
    pub is_daemon: bool,
}

/// The applications, the scheduler and the disruption controller.
#[derive(Debug)]
pub struct Workloads {
    apps: Vec<App>,
    made: u64,
    /// The uids of what owns the pods, by application; empty until they are made.
    owners: BTreeMap<String, String>,
}

impl Workloads {
    #[must_use]
    pub const fn new(apps: Vec<App>) -> Self {
        Self { apps, made: 0, owners: BTreeMap::new() }
    }

    fn set_up(&mut self, scene: &Scene) {
        for app in &self.apps {
            let selector = json!({ "matchLabels": { "app": app.name } });
            if let Some(most) = app.max_unavailable {
                let budget = json!({
                    "metadata": { "name": app.name, "namespace": NAMESPACE },
                    "spec": { "maxUnavailable": most, "selector": selector },
                });
                scene.create(WHO, "policy", "poddisruptionbudgets", budget);
            }
            let mut owner = json!({
                "metadata": { "name": app.name, "namespace": NAMESPACE },
                "spec": { "selector": selector, "template": {
                    "metadata": { "labels": { "app": app.name } },
                    "spec": { "containers": [{ "name": "main", "image": "simulated" }] },
                } },
            });
            if !app.is_daemon {
                owner["spec"]["replicas"] = json!(app.replicas);
            }
            let made = scene.create(WHO, "apps", owner_of(app).1, owner);
            let uid = made.map(|made| made.uid().to_owned()).unwrap_or_default();
            self.owners.insert(app.name.clone(), uid);
        }
    }

    /// As many as are wanted; of a DaemonSet one on each Node that is ready, cordoned or not.
    fn keep_size(&mut self, scene: &Scene, pods: &[ObjectRef], nodes: &[ObjectRef]) {
        for app in &self.apps {
            let of_app: Vec<&ObjectRef> =
                pods.iter().filter(|pod| is_of(pod, app) && !pod.is_being_deleted()).collect();
            if app.is_daemon {
                for node in nodes.iter().filter(|node| is_up(node)) {
                    let is_there = |pod: &&ObjectRef| on_node(pod) == node.name();
                    if !of_app.iter().any(is_there) {
                        let name = new_pod(scene, app, &self.owners, &mut self.made);
                        scene.bind("scheduler", NAMESPACE, &name, node.name());
                    }
                }
                continue;
            }
            for _ in of_app.len()..app.replicas {
                new_pod(scene, app, &self.owners, &mut self.made);
            }
        }
    }
}

/// Makes a pod, and returns its name.
fn new_pod(scene: &Scene, app: &App, owners: &BTreeMap<String, String>, made: &mut u64) -> String {
    *made += 1;
    let name = format!("{}-{made}", app.name);
    let pod = json!({
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": { "app": app.name },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": owner_of(app).0, "name": app.name,
                "uid": owners.get(&app.name), "controller": true,
            }],
        },
        "spec": {
            "terminationGracePeriodSeconds": app.grace_seconds,
            "containers": [{ "name": "main", "image": "simulated" }],
        },
    });
    scene.create(WHO, "", "pods", pod);
    name
}

/// The kind that owns the pods, and its plural.
const fn owner_of(app: &App) -> (&'static str, &'static str) {
    if app.is_daemon { ("DaemonSet", "daemonsets") } else { ("ReplicaSet", "replicasets") }
}

impl Actor for Workloads {
    fn step(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp> {
        if self.owners.is_empty() {
            self.set_up(scene);
        }
        let nodes = scene.objects("", "nodes");
        let places: Vec<&ObjectRef> = nodes.iter().filter(|node| takes_pods(node)).collect();
        let mut next = None;
        if !nodes.is_empty() {
            self.keep_size(scene, &scene.objects("", "pods"), &nodes);
        }
        let pods = scene.objects("", "pods");
        let mut load: BTreeMap<&str, usize> = places.iter().map(|node| (node.name(), 0)).collect();
        for pod in &pods {
            if let Some(count) = load.get_mut(on_node(pod)) {
                *count += 1;
            }
        }
        for pod in &pods {
            let is_bound = !on_node(pod).is_empty();
            if is_bound || pod.is_being_deleted() || pod.namespace() != NAMESPACE {
                continue;
            }
            let place = load.iter_mut().min_by_key(|(name, count)| (**count, **name));
            match place {
                Some((node, count)) => {
                    *count += 1;
                    scene.bind("scheduler", NAMESPACE, pod.name(), node);
                }
                None => earliest(&mut next, later(now, RETRY)),
            }
        }
        count_budgets(scene, &self.apps);
        count_replicas(scene, &self.apps);
        next
    }
}

/// Ready, and not cordoned.
fn takes_pods(node: &ObjectRef) -> bool {
    let cordoned = value_at(node.value(), "/spec/unschedulable").and_then(Value::as_bool);
    is_up(node) && cordoned != Some(true)
}

fn is_up(node: &ObjectRef) -> bool {
    let is_ready =
        condition_of(node.value(), "Ready").is_some_and(|ready| text(ready, "/status") == "True");
    is_ready && !node.is_being_deleted()
}

fn on_node(pod: &ObjectRef) -> &str {
    text(pod.value(), "/spec/nodeName")
}

fn is_of(pod: &ObjectRef, app: &App) -> bool {
    text(pod.value(), "/metadata/labels/app") == app.name
}

/// As the disruption controller: healthy is ready and not being deleted.
fn count_budgets(scene: &Scene, apps: &[App]) {
    let pods = scene.objects("", "pods");
    let nodes = scene.objects("", "nodes");
    for app in apps {
        if app.max_unavailable.is_none() {
            continue;
        }
        let at = (NAMESPACE, app.name.as_str());
        let kind = ("policy", "poddisruptionbudgets");
        let Some(stored) = crate::api_server::KindRef::find(kind.0, kind.1)
            .and_then(|kind| scene.server.get_object(kind, at.0, at.1))
        else {
            continue;
        };
        let most = value_at(stored.value(), "/spec/maxUnavailable").and_then(Value::as_i64);
        let most = most.unwrap_or_default();
        let of_app: Vec<&ObjectRef> = pods.iter().filter(|pod| is_of(pod, app)).collect();
        let healthy = of_app.iter().filter(|pod| is_healthy(pod, &nodes)).count();
        let healthy = i64::try_from(healthy).unwrap_or(0);
        let expected = i64::try_from(app.replicas).unwrap_or(0);
        let desired = (expected - most).max(0);
        let allowed = (healthy - desired).max(0);
        let number = |field: &str| {
            let pointer = format!("/status/{field}");
            value_at(stored.value(), &pointer).and_then(Value::as_i64)
        };
        let generation = value_at(stored.value(), "/metadata/generation").and_then(Value::as_i64);
        let is_same = number("currentHealthy") == Some(healthy)
            && number("disruptionsAllowed") == Some(allowed)
            && number("expectedPods") == Some(expected)
            && number("observedGeneration") == generation;
        let has_disrupted = stored
            .value()
            .pointer("/status/disruptedPods")
            .and_then(Value::as_object)
            .is_some_and(|pods| !pods.is_empty());
        if is_same && !has_disrupted {
            continue;
        }
        let status = json!({ "status": {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": generation,
            "disruptedPods": null,
        } });
        scene.patch("disruption", Subresource::Status, kind, at, status);
    }
}

/// Whether a pod serves: ready, on a Node that is ready, and not on its way out.
fn is_healthy(pod: &ObjectRef, nodes: &[ObjectRef]) -> bool {
    let is_ready = |object: &ObjectRef| {
        condition_of(object.value(), "Ready").is_some_and(|ready| text(ready, "/status") == "True")
    };
    let on = nodes.iter().find(|one| one.name() == on_node(pod));
    is_ready(pod) && on.is_some_and(is_ready) && !pod.is_being_deleted()
}

/// As the controller of ReplicaSets.
fn count_replicas(scene: &Scene, apps: &[App]) {
    let pods = scene.objects("", "pods");
    let nodes = scene.objects("", "nodes");
    for owner in scene.objects("apps", "replicasets") {
        let Some(app) = apps.iter().find(|app| app.name == owner.name()) else { continue };
        let ready = pods.iter().filter(|pod| is_of(pod, app) && is_healthy(pod, &nodes)).count();
        let known = value_at(owner.value(), "/status/readyReplicas").and_then(Value::as_u64);
        if known.unwrap_or(0) != u64::try_from(ready).unwrap_or(0) {
            let status = json!({ "status": { "replicas": app.replicas, "readyReplicas": ready } });
            let kind = ("apps", "replicasets");
            scene.patch(WHO, Subresource::Status, kind, (NAMESPACE, owner.name()), status);
        }
    }
}
