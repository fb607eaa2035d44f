//! What becomes of the pods on a Node? Its kubelet starts and ends them; what is bound to no Node, or to
//! one that fell silent, is given up by the cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    super::{Scene, earliest, later, text},
    KUBELET, Kubelets,
    node::{ready, ready_since},
};
use crate::{
    api_server::{Subresource, value_at},
    faults::FaultKind,
};

/// Pods of an unknown Node are evicted by its taint after this long.
const TAINT_EVICTION: Duration = Duration::from_secs(300);

impl Kubelets {
    /// Starts, ends and gives up pods.
    pub(super) fn mind_pods(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp> {
        let mut next = None;
        let nodes = scene.objects("", "nodes");
        let states: BTreeMap<&str, (&str, Option<Timestamp>)> =
            nodes.iter().map(|node| (node.name(), (ready(node), ready_since(node)))).collect();
        let stubborn = scene.hub.weather().disturbance.as_ref().map_or(0.0, |storm| storm.stubborn);
        let mut seen = BTreeSet::new();
        for pod in scene.objects("", "pods") {
            let value = pod.value();
            let node = text(value, "/spec/nodeName");
            if node.is_empty() {
                continue;
            }
            seen.insert(pod.uid().to_owned());
            let at = (pod.namespace(), pod.name());
            let kind = ("", "pods");
            let now_gone = json!({ "gracePeriodSeconds": 0 });
            let Some((is_ready, since)) = states.get(node) else {
                // The pod garbage collector removes what is bound to no Node.
                scene.delete("pod-gc", kind, at, now_gone);
                continue;
            };
            if pod.is_being_deleted() {
                if *is_ready == "Unknown" {
                    continue;
                }
                let given = value_at(value, "/metadata/deletionGracePeriodSeconds");
                let given = given.and_then(Value::as_u64).unwrap_or(30);
                let chance = &mut self.chance;
                let key = format!("end {}", pod.uid());
                seen.insert(key.clone());
                let due = *self.pods.entry(key).or_insert_with(|| {
                    let is_stubborn = chance.hits(stubborn);
                    if is_stubborn {
                        scene.hub.count_fault(FaultKind::F25, None);
                    }
                    let most = given.max(1);
                    let take = if is_stubborn { most } else { chance.between(1, most.min(5)) };
                    later(now, Duration::from_secs(take))
                });
                if due <= now {
                    scene.delete(KUBELET, kind, at, now_gone);
                } else {
                    earliest(&mut next, due);
                }
                continue;
            }
            if *is_ready == "Unknown" {
                let evicted_at = later(since.unwrap_or(now), TAINT_EVICTION);
                if evicted_at <= now {
                    scene.delete("taint-eviction", kind, at, Value::Null);
                } else {
                    earliest(&mut next, evicted_at);
                }
                continue;
            }
            if text(value, "/status/phase") != "Running" {
                let chance = &mut self.chance;
                let due = *self
                    .pods
                    .entry(pod.uid().to_owned())
                    .or_insert_with(|| later(now, chance.seconds(1, 4)));
                if due <= now {
                    let status = json!({ "status": {
                        "phase": "Running",
                        "conditions": [{ "type": "Ready", "status": "True" }],
                    } });
                    scene.patch(KUBELET, Subresource::Status, kind, at, status);
                } else {
                    earliest(&mut next, due);
                }
            }
        }
        self.pods.retain(|uid, _| seen.contains(uid));
        next
    }
}
