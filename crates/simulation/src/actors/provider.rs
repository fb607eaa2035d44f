//! What do the providers of Cluster API do? They wait until a Machine has taken over the object that was made for it, write its
//! bootstrap data, make the machine, say so, and let it join as a Node; and they take it down again when the object is deleted.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use machinist_api::cluster_api::names::{kind, label, secret};
use serde_json::{Value, json};

use super::{
    Actor, Scene, earliest,
    kubelet::{find_node, ready},
    later, text,
};
use crate::{
    api_server::{KindRef, Object, ObjectRef, Subresource, value_at},
    faults::FaultKind,
    template::cluster_api::{BOOTSTRAP, GROUP, INFRASTRUCTURE, SCHEME, VERSION},
};

const WHO: &str = "provider";
const MACHINES: (&str, &str) = (INFRASTRUCTURE, "simmachines");
const CONFIGS: (&str, &str) = (BOOTSTRAP, "simconfigs");
const NODES: (&str, &str) = ("", "nodes");
/// What keeps the provider's object until its machine is gone.
const FINALIZER: &str = "sim.infrastructure.cluster.x-k8s.io";

/// How long things take.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    pub provision: Duration,
    /// From when it is provisioned until it joins as a Node.
    pub boot: Duration,
    pub removal: Duration,
}

/// A machine that the provider has made.
#[derive(Clone, Debug)]
struct Made {
    provisioned_at: Timestamp,
    joins_at: Timestamp,
    has_joined: bool,
}

/// Infrastructure and bootstrap provider in one.
#[derive(Debug)]
pub struct Provider {
    settings: ProviderSettings,
    /// By providerID.
    made: BTreeMap<String, Made>,
    /// When the machine of an object that is deleted is gone, by uid.
    gone_at: BTreeMap<String, Timestamp>,
    /// What the Nodes of ill machines say of themselves, and until when, by providerID.
    ill: BTreeMap<String, (Timestamp, &'static str)>,
}

impl Provider {
    #[must_use]
    pub const fn new(settings: ProviderSettings) -> Self {
        Self { settings, made: BTreeMap::new(), gone_at: BTreeMap::new(), ill: BTreeMap::new() }
    }

    fn follow(
        &mut self,
        scene: &Scene,
        object: &ObjectRef,
        now: Timestamp,
        next: &mut Option<Timestamp>,
    ) {
        let at = (object.namespace(), object.name());
        let known = text(object.value(), "/spec/providerID");
        let id = match known {
            "" => format!("{SCHEME}/{}", object.uid()),
            known => known.to_owned(),
        };
        if object.is_being_deleted() {
            return self.take_down(scene, object, &id, now, next);
        }
        let Some(machine) = owner(scene, object) else { return };
        if text(machine.value(), "/spec/bootstrap/dataSecretName").is_empty() {
            return;
        }
        if !has_finalizer(object) {
            let body = json!({ "metadata": { "finalizers": [FINALIZER] } });
            scene.patch(WHO, Subresource::None, MACHINES, at, body);
        }
        let settings = &self.settings;
        let made = self.made.entry(id.clone()).or_insert_with(|| {
            scene.hub.note(machine.name(), format!("{WHO}: makes {id}"));
            let provisioned_at = later(now, settings.provision);
            let joins_at = later(provisioned_at, settings.boot);
            Made { provisioned_at, joins_at, has_joined: false }
        });
        if now < made.provisioned_at {
            return earliest(next, made.provisioned_at);
        }
        if known.is_empty() {
            let body = json!({ "spec": { "providerID": id } });
            scene.patch(WHO, Subresource::None, MACHINES, at, body);
        }
        let told = value_at(object.value(), "/status/initialization/provisioned");
        if told.and_then(Value::as_bool) != Some(true) {
            let body = json!({ "status": {
                "initialization": { "provisioned": true },
                "addresses": [{ "type": "InternalIP", "address": "10.0.0.7" }],
            } });
            scene.patch(WHO, Subresource::Status, MACHINES, at, body);
        }
        if made.has_joined {
            return self.mind_node(scene, object.name(), &id, now, next);
        }
        if now < made.joins_at {
            return earliest(next, made.joins_at);
        }
        let version = text(machine.value(), "/spec/version");
        made.has_joined = join(scene, object.name(), &id, version, now);
    }

    /// The kubelet of a machine says that it is well, unless it is ill.
    fn mind_node(
        &mut self,
        scene: &Scene,
        name: &str,
        id: &str,
        now: Timestamp,
        next: &mut Option<Timestamp>,
    ) {
        let (trouble, is_calm) = {
            let mut weather = scene.hub.weather();
            (weather.take_node_trouble(id), weather.disturbance.is_none())
        };
        if let Some((kind, lasting)) = trouble {
            // A kubelet that is dead is noticed at once here: how soon is the node lifecycle's affair.
            let says = if kind == FaultKind::F72 { "Unknown" } else { "False" };
            self.ill.insert(id.to_owned(), (later(now, lasting), says));
        }
        let says = match self.ill.get(id) {
            Some((until, says)) if now < *until && !is_calm => {
                earliest(next, *until);
                says
            }
            _ => "True",
        };
        let Some(node) = find_node(scene, name) else { return };
        let is_own = text(node.value(), "/spec/providerID") == id;
        if is_own && ready(&node) != says {
            let at = ("", name);
            scene.patch("kubelet", Subresource::Status, NODES, at, conditions(says, now));
            mark_pods(scene, name, says == "True");
        }
    }

    fn take_down(
        &mut self,
        scene: &Scene,
        object: &ObjectRef,
        id: &str,
        now: Timestamp,
        next: &mut Option<Timestamp>,
    ) {
        let removal = self.settings.removal;
        let due =
            *self.gone_at.entry(object.uid().to_owned()).or_insert_with(|| later(now, removal));
        if now < due {
            // Until it is gone it may still join.
            if let Some(made) = self.made.get_mut(id).filter(|made| !made.has_joined) {
                if made.joins_at <= now {
                    made.has_joined = join(scene, object.name(), id, VERSION, now);
                } else {
                    earliest(next, made.joins_at);
                }
            }
            return earliest(next, due);
        }
        let is_shared = scene.objects(MACHINES.0, MACHINES.1).iter().any(|other| {
            other.uid() != object.uid() && text(other.value(), "/spec/providerID") == id
        });
        if !is_shared && self.made.remove(id).is_some() {
            scene.hub.note(object.name(), format!("{WHO}: {id} is gone"));
        }
        let body = json!({ "metadata": { "finalizers": [] } });
        let at = (object.namespace(), object.name());
        scene.patch(WHO, Subresource::None, MACHINES, at, body);
    }
}

impl Actor for Provider {
    fn step(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp> {
        let away_until = scene.hub.weather().providers_away_until;
        if let Some(until) = away_until.filter(|until| now < *until) {
            return Some(until);
        }
        let mut next = None;
        for config in scene.objects(CONFIGS.0, CONFIGS.1) {
            if !config.is_being_deleted() {
                write_data(scene, &config);
            }
        }
        for object in scene.objects(MACHINES.0, MACHINES.1) {
            self.follow(scene, &object, now, &mut next);
        }
        next
    }
}

/// The Machine that controls an object of a provider.
fn owner(scene: &Scene, object: &Object) -> Option<ObjectRef> {
    let owners = value_at(object.value(), "/metadata/ownerReferences").and_then(Value::as_array)?;
    let owner = owners.iter().find(|owner| {
        owner.get("controller").and_then(Value::as_bool) == Some(true)
            && text(owner, "/kind") == kind::MACHINE
    })?;
    let machines = KindRef::find(GROUP, "machines")?;
    let found = scene.server.get_object(machines, object.namespace(), text(owner, "/name"))?;
    (found.uid() == text(owner, "/uid")).then_some(found)
}

fn has_finalizer(object: &Object) -> bool {
    let all = value_at(object.value(), "/metadata/finalizers").and_then(Value::as_array);
    all.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(FINALIZER)))
}

/// The bootstrap data of a Machine, under the name of its configuration.
fn write_data(scene: &Scene, config: &ObjectRef) {
    let is_told = !text(config.value(), "/status/dataSecretName").is_empty();
    if is_told || owner(scene, config).is_none() {
        return;
    }
    let (namespace, name) = (config.namespace(), config.name());
    let is_there = KindRef::find("", "secrets")
        .is_some_and(|secrets| scene.server.get_object(secrets, namespace, name).is_some());
    if !is_there {
        let cluster = value_at(config.value(), "/metadata/labels");
        let cluster = cluster.and_then(|all| all.get(label::CLUSTER_NAME)).cloned();
        let body = json!({
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": { label::CLUSTER_NAME: cluster },
                "ownerReferences": [{
                    "apiVersion": format!("{BOOTSTRAP}/v1beta2"), "kind": "SimConfig", "name": name,
                    "uid": config.uid(), "controller": true,
                }],
            },
            "type": secret::TYPE,
            "stringData": { secret::VALUE_KEY: "boot" },
        });
        scene.create(WHO, "", "secrets", body);
    }
    let body = json!({ "status": {
        "initialization": { "dataSecretCreated": true }, "dataSecretName": name,
    } });
    scene.patch(WHO, Subresource::Status, CONFIGS, (namespace, name), body);
}

/// The machine joins as a Node, as kubelet and cloud controller bring it.
fn join(scene: &Scene, name: &str, id: &str, version: &str, now: Timestamp) -> bool {
    let body = json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "spec": {
            "providerID": id,
            "taints": [{ "key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule" }],
        },
    });
    let is_made = scene.create("kubelet", NODES.0, NODES.1, body).is_some();
    let mut body = conditions("True", now);
    body["status"]["nodeInfo"] = json!({
        "architecture": "amd64", "bootID": id, "containerRuntimeVersion": "cri-o://1.36.0",
        "kernelVersion": "5.14.0", "kubeProxyVersion": "", "kubeletVersion": version,
        "machineID": id, "operatingSystem": "linux", "osImage": "simulation", "systemUUID": id,
    });
    scene.patch("kubelet", Subresource::Status, NODES, ("", name), body);
    is_made
}

/// As the node lifecycle does: what is on a Node that is not ready is not ready.
fn mark_pods(scene: &Scene, node: &str, is_ready: bool) {
    for pod in scene.objects("", "pods") {
        if text(pod.value(), "/spec/nodeName") == node {
            let status = if is_ready { "True" } else { "False" };
            let body =
                json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
            let at = (pod.namespace(), pod.name());
            scene.patch("node-lifecycle", Subresource::Status, ("", "pods"), at, body);
        }
    }
}

/// What a kubelet says of its Node.
fn conditions(is_ready: &str, now: Timestamp) -> Value {
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |type_: &str, status: &str| {
        json!({
            "type": type_, "status": status, "reason": "Simulated", "message": "",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    json!({ "status": { "conditions": [
        condition("Ready", is_ready),
        condition("MemoryPressure", "False"),
        condition("DiskPressure", "False"),
        condition("PIDPressure", "False"),
    ] } })
}
