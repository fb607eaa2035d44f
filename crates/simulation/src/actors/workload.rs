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
    is_set_up: bool,
}

impl Workloads {
    #[must_use]
    pub const fn new(apps: Vec<App>) -> Self {
        Self { apps, made: 0, is_set_up: false }
    }

    fn set_up(&mut self, scene: &Scene) {
        for app in &self.apps {
            if let Some(most) = app.max_unavailable {
                let budget = json!({
                    "metadata": { "name": app.name, "namespace": NAMESPACE },
                    "spec": {
                        "maxUnavailable": most,
                        "selector": { "matchLabels": { "app": app.name } },
                    },
                });
                scene.create(WHO, "policy", "poddisruptionbudgets", budget);
            }
        }
        self.is_set_up = true;
    }

    fn keep_size(&mut self, scene: &Scene, pods: &[ObjectRef], nodes: usize) {
        for app in &self.apps {
            let wanted = if app.is_daemon { nodes } else { app.replicas };
            let there =
                pods.iter().filter(|pod| is_of(pod, app) && !pod.is_being_deleted()).count();
            for _ in there..wanted {
                self.made += 1;
                let owners = if app.is_daemon {
                    json!([{
                        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": app.name,
                        "uid": app.name, "controller": true,
                    }])
                } else {
                    json!([])
                };
                let pod = json!({
                    "metadata": {
                        "name": format!("{}-{}", app.name, self.made),
                        "namespace": NAMESPACE,
                        "labels": { "app": app.name },
                        "ownerReferences": owners,
                    },
                    "spec": {
                        "terminationGracePeriodSeconds": app.grace_seconds,
                        "containers": [{ "name": "main", "image": "simulated" }],
                    },
                });
                scene.create(WHO, "", "pods", pod);
            }
        }
    }
}

impl Actor for Workloads {
    fn step(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp> {
        if !self.is_set_up {
            self.set_up(scene);
        }
        let nodes = scene.objects("", "nodes");
        let places: Vec<&ObjectRef> = nodes.iter().filter(|node| takes_pods(node)).collect();
        let mut next = None;
        if !nodes.is_empty() {
            self.keep_size(scene, &scene.objects("", "pods"), places.len());
        }
        let pods = scene.objects("", "pods");
        let mut load: BTreeMap<&str, usize> = places.iter().map(|node| (node.name(), 0)).collect();
        for pod in &pods {
            if let Some(count) = load.get_mut(text(pod.value(), "/spec/nodeName")) {
                *count += 1;
            }
        }
        for pod in &pods {
            let is_bound = !text(pod.value(), "/spec/nodeName").is_empty();
            if is_bound || pod.is_being_deleted() {
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
        next
    }
}

/// Ready, and not cordoned.
fn takes_pods(node: &ObjectRef) -> bool {
    let is_ready =
        condition_of(node.value(), "Ready").is_some_and(|ready| text(ready, "/status") == "True");
    let cordoned = value_at(node.value(), "/spec/unschedulable").and_then(Value::as_bool);
    is_ready && cordoned != Some(true) && !node.is_being_deleted()
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
        let is_healthy = |pod: &&&ObjectRef| {
            let node = text(pod.value(), "/spec/nodeName");
            let on = nodes.iter().find(|one| one.name() == node);
            let reachable = on.is_some_and(|node| {
                condition_of(node.value(), "Ready")
                    .is_some_and(|ready| text(ready, "/status") == "True")
            });
            let is_ready = condition_of(pod.value(), "Ready")
                .is_some_and(|ready| text(ready, "/status") == "True");
            is_ready && reachable && !pod.is_being_deleted()
        };
        let healthy = i64::try_from(of_app.iter().filter(is_healthy).count()).unwrap_or(0);
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
