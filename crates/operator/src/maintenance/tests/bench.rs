//! A cluster around the controller: a pool that is kept at its size, machines that boot, nodes that are
//! drained, and a cloud with events. Each process of the operator is a new one on the same API server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use jiff::{SignedDuration, Timestamp};
use machinist_api::{Machine, MachineMaintenance, MachineMaintenanceStatus, MaintenancePhase};
use machinist_core::{
    cloud::{InstanceId, InstanceReport, InstanceState, ScheduledEvent},
    machineset::delete_order::first_to_go,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::super::*;
use crate::{
    cloud::{CloudSettings, connect::Connect, testing::ScriptedClouds},
    engine::testing::{FakeServer, Fault},
    testing::{MACHINES, World, env, machine_in_cloud, pool, put_credentials, read},
};

pub(super) const SETS: &str = "/apis/machine.openshift.io/v1beta1/namespaces/ns/machinesets";
pub(super) const NODES: &str = "/api/v1/nodes";
pub(super) const PODS: &str = "/api/v1/namespaces/app/pods";
pub(super) const ETCD: &str = "/api/v1/namespaces/openshift-etcd/pods";
pub(super) const OBJECTS: &str =
    "/apis/machinemaintenance.managed.openshift.io/v1alpha1/namespaces/ns/machinemaintenances";
pub(super) const POLICIES: &str = "/apis/machinist.dev/v1alpha1/maintenancepolicies";

/// The machine that events are about.
pub(super) const TARGET: &str = "m-0";

/// How long a tick is, and how many of them a machine takes to boot.
const TICK: Duration = Duration::from_secs(20);
const BOOT: u32 = 3;

pub(super) struct Bench {
    pub(super) world: World,
    pub(super) clouds: Arc<ScriptedClouds>,
    pub(super) maintenance: Maintenance,
    is_control_plane: bool,
    booting: Vec<(String, u32)>,
    made: usize,
    /// Told when the process dies.
    dies: Arc<Notify>,
    /// The fewest machines that took pods at the end of any tick.
    pub(super) fewest_ready: usize,
    /// Every phase that was seen, once in a row.
    pub(super) phases: Vec<MaintenancePhase>,
    /// How often a process died.
    pub(super) deaths: usize,
}

impl Bench {
    /// A pool of three machines, two pods on the first of them.
    pub(super) async fn new() -> Self {
        let clouds = Arc::new(ScriptedClouds::default());
        let connect = Arc::clone(&clouds) as Arc<dyn Connect>;
        let world = World::with_server(FakeServer::new(), env(), connect, CloudSettings::default());
        world.server.lock().checks_patches = true;
        put_credentials(&world.server, "b2xk");
        world.server.put(SETS, pool(3));
        let maintenance = maintenance(&world);
        let mut bench = Self {
            world,
            clouds,
            maintenance,
            is_control_plane: false,
            booting: Vec::new(),
            made: 0,
            dies: Arc::default(),
            fewest_ready: usize::MAX,
            phases: Vec::new(),
            deaths: 0,
        };
        for number in 0..3 {
            bench.make_machine(&format!("m-{number}"));
            bench.boot(&format!("m-{number}"));
        }
        for number in 0..2 {
            bench.put_pod(&format!("web-{number}"), TARGET);
        }
        bench.load();
        bench.connect().await;
        bench
    }

    /// Three machines of the control plane without an owner, each with its member of etcd.
    pub(super) async fn control_plane() -> Self {
        let mut bench = Self::new().await;
        bench.is_control_plane = true;
        for name in ["web-0", "web-1"] {
            bench.world.server.delete(PODS, name);
            let pods = &bench.world.context.stores.pods;
            pods.forget_written(&ObjectKey::new("app", name), &format!("uid-{name}"));
        }
        for number in 0..3 {
            let name = format!("m-{number}");
            let known = bench.world.server.lock().objects.get(&key(MACHINES, &name)).cloned();
            let mut machine = known.unwrap();
            machine["metadata"]["ownerReferences"] = Value::Null;
            machine["metadata"]["labels"]["machine.openshift.io/cluster-api-machine-role"] =
                json!("master");
            bench.put(MACHINES, machine);
            bench.put_etcd(&name);
        }
        bench
    }

    fn put_etcd(&self, node: &str) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("etcd-{node}"), "namespace": "openshift-etcd",
                "labels": { "app": "etcd" },
            },
            "spec": { "nodeName": node, "containers": [] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        self.world.server.put(ETCD, pod);
    }

    /// What holds at this moment for the machine with an event.
    pub(super) fn status(&self) -> MachineMaintenanceStatus {
        self.object().and_then(|object| object.status).unwrap_or_default()
    }

    pub(super) fn object(&self) -> Option<MachineMaintenance> {
        let known = self.world.server.lock().objects.get(&key(OBJECTS, "mm-m-0")).cloned();
        known.map(read)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.world.context.env.now()
    }

    /// An event of the first machine so many hours from now.
    pub(super) fn announce(&self, code: &str, hours: i64, description: &str) {
        let at = self.now() + SignedDuration::from_hours(hours);
        self.report(vec![ScheduledEvent {
            id: "instance-event-1".to_owned(),
            instance: InstanceId(format!("i-{TARGET}")),
            code: code.to_owned(),
            description: description.to_owned(),
            not_before: Some(at),
            not_after: None,
            not_before_deadline: Some(at + SignedDuration::from_hours(24 * 7)),
        }]);
    }

    pub(super) fn report(&self, events: Vec<ScheduledEvent>) {
        let instance = InstanceId(format!("i-{TARGET}"));
        let report = InstanceReport { instance, impairments: Vec::new(), events };
        self.clouds.cloud.report(Ok(vec![report]));
    }

    /// One round of everything that the operator does, and a tick of time.
    pub(super) async fn round(&mut self) {
        let mut keys: Vec<ObjectKey> = Vec::new();
        let passes = async {
            planning::reconcile(&self.world.context, &self.maintenance).await;
            keys.extend(
                self.world
                    .context
                    .stores
                    .maintenance
                    .list()
                    .iter()
                    .map(|one| ObjectKey::of(&**one)),
            );
            for key in keys {
                for _ in 0..10 {
                    let outcome =
                        reconcile(&self.world.context, &self.maintenance, key.clone()).await;
                    match outcome {
                        Outcome::RecheckAfter(soon) if soon < Duration::from_secs(1) => {
                            self.world.context.env.sleep(soon).await;
                        }
                        _ => break,
                    }
                }
            }
        };
        let has_died = tokio::select! {
            biased;
            () = self.dies.notified() => true,
            () = passes => false,
        };
        if has_died {
            self.restart().await;
        }
        let phase = self.status().phase.unwrap_or_default();
        if self.object().is_some() && self.phases.last() != Some(&phase) {
            self.phases.push(phase);
        }
        self.tick().await;
    }

    pub(super) async fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            self.round().await;
        }
    }

    /// Rounds until it holds; a generous number of them.
    pub(super) async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..2000 {
            if holds(self) {
                return;
            }
            self.round().await;
        }
        panic!("{what} did not come: {:#?}", self.status());
    }

    pub(super) async fn until_phase(&mut self, phase: MaintenancePhase) {
        self.until(phase.as_str(), |bench| bench.status().phase == Some(phase)).await;
    }

    /// The process dies in its n-th write from now, before that has any effect.
    pub(super) fn die_before(&self, write: usize) {
        let (writes, dies) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&self.dies));
        self.world.server.fail(move |method, path| {
            let is_write = matches!(*method, Method::POST | Method::PATCH | Method::DELETE);
            if !is_write || path.contains("/events") {
                return Fault::None;
            }
            let number = writes.fetch_add(1, Ordering::Relaxed) + 1;
            if number < write {
                return Fault::None;
            }
            dies.notify_one();
            Fault::Silence
        });
    }

    /// A new process on the same API server and the same cloud.
    async fn restart(&mut self) {
        self.deaths += 1;
        self.world.server.fail(|_, _| Fault::None);
        let connect = Arc::clone(&self.clouds) as Arc<dyn Connect>;
        let (server, env) = (self.world.server.clone(), self.world.context.env.clone());
        self.world = World::with_server(server, env, connect, CloudSettings::default());
        self.maintenance = maintenance(&self.world);
        self.load();
        self.connect().await;
    }

    async fn connect(&self) {
        let machine = self.machines().into_iter().next().unwrap();
        let access = self.world.context.clouds.of(&machine).await.unwrap();
        access.view.fresh_within(Duration::from_secs(3600)).await.unwrap();
        let patience = Duration::from_secs(60);
        assert!(access.view.reports_within(Duration::from_secs(3600), patience).await);
    }

    /// Time passes, and everybody else does their work.
    async fn tick(&mut self) {
        self.world.context.env.sleep(TICK).await;
        let booted: Vec<String> = {
            for (_, left) in &mut self.booting {
                *left = left.saturating_sub(1);
            }
            let (booted, rest) = self.booting.drain(..).partition(|(_, left)| *left == 0);
            self.booting = rest;
            let booted: Vec<(String, u32)> = booted;
            booted.into_iter().map(|(name, _)| name).collect()
        };
        for name in booted {
            self.boot(&name);
            if self.is_control_plane {
                self.put_etcd(&name);
            }
        }
        self.end_evicted();
        self.follow_cloud();
        if self.is_control_plane {
            self.follow_machines();
        } else {
            self.keep_size();
        }
        self.load();
        let ready = self.ready();
        self.fewest_ready = self.fewest_ready.min(ready);
    }

    /// Instances stop and start by themselves once they are told to, and a start is a boot.
    fn follow_cloud(&self) {
        let now = self.now();
        let mut started = Vec::new();
        for instance in self.clouds.cloud.instances.lock().unwrap().values_mut() {
            match instance.state {
                InstanceState::Stopping => instance.state = InstanceState::Stopped,
                InstanceState::Pending => {
                    instance.state = InstanceState::Running;
                    instance.launched_at = Some(now);
                    started.push(instance.id.0.clone());
                }
                _ => {}
            }
        }
        for id in started {
            self.reboot(id.trim_start_matches("i-"));
        }
    }

    /// The node of a machine shows another boot.
    pub(super) fn reboot(&self, machine: &str) {
        let known = self.world.server.lock().objects.get(&key(NODES, machine)).cloned();
        let Some(mut node) = known else { return };
        let boot = format!("{}+", node["status"]["nodeInfo"]["bootID"].as_str().unwrap());
        node["status"]["nodeInfo"]["bootID"] = json!(boot);
        self.put(NODES, node);
    }

    /// A Machine that somebody made boots; what is left of one that somebody deleted goes.
    fn follow_machines(&mut self) {
        let machines = self.machines();
        let name_of = |machine: &Machine| machine.metadata.name.clone().unwrap();
        let has_node = |machine: &Machine| {
            machine.status.as_ref().is_some_and(|status| status.node_ref.is_some())
        };
        for machine in machines.iter().filter(|machine| !has_node(machine)) {
            let name = name_of(machine);
            if !self.booting.iter().any(|(booting, _)| *booting == name) {
                self.booting.push((name, BOOT));
            }
        }
        let gone: Vec<String> = {
            let state = self.world.server.lock();
            let nodes = state.objects.keys().filter(|(parent, _)| parent == NODES);
            let names = nodes.map(|(_, name)| name.clone());
            names.filter(|name| !machines.iter().any(|one| name_of(one) == *name)).collect()
        };
        for name in gone {
            self.world.server.delete(NODES, &name);
            self.world.server.delete(ETCD, &format!("etcd-{name}"));
            let nodes = &self.world.context.stores.nodes;
            nodes.forget_written(&ObjectKey::cluster_wide(name.as_str()), &format!("uid-{name}"));
            self.clouds.cloud.instances.lock().unwrap().remove(&InstanceId(format!("i-{name}")));
        }
    }

    fn keep_size(&mut self) {
        let replicas = self.set()["spec"]["replicas"].as_u64().unwrap() as usize;
        let machines = self.machines();
        let alive: Vec<&Machine> = machines.iter().collect();
        let surplus = alive.len().saturating_sub(replicas);
        let gone: Vec<String> = first_to_go(&alive, surplus, None, self.now())
            .into_iter()
            .map(|machine| machine.metadata.name.clone().unwrap())
            .collect();
        for name in gone {
            self.remove_machine(&name);
        }
        for _ in machines.len()..replicas {
            let name = format!("new-{}", self.made);
            self.make_machine(&name);
            self.booting.push((name, BOOT));
        }
    }

    pub(super) fn remove_machine(&mut self, name: &str) {
        let server = &self.world.server;
        server.delete(MACHINES, name);
        self.booting.retain(|(booting, _)| booting != name);
        let has_node = server.lock().objects.contains_key(&key(NODES, name));
        if has_node {
            server.delete(NODES, name);
        }
        self.clouds.cloud.instances.lock().unwrap().remove(&InstanceId(format!("i-{name}")));
        let stores = &self.world.context.stores;
        let uid = format!("uid-{name}");
        stores.machines.forget_written(&ObjectKey::new("ns", name), &uid);
        stores.nodes.forget_written(&ObjectKey::cluster_wide(name), &uid);
    }

    fn make_machine(&mut self, name: &str) {
        self.made += 1;
        let mut machine = machine_in_cloud(name, "demo");
        machine["metadata"]["creationTimestamp"] = json!(self.now());
        machine["status"] = json!({ "phase": "Provisioning" });
        self.put(MACHINES, machine);
    }

    fn boot(&self, name: &str) {
        let uid = format!("uid-{name}");
        self.clouds.cloud.put(&format!("i-{name}"), &uid, InstanceState::Running);
        self.put(
            NODES,
            json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": { "name": name, "uid": uid },
                "spec": { "providerID": format!("aws:///z/i-{name}") },
                "status": {
                    "conditions": [{ "type": "Ready", "status": "True" }],
                    "nodeInfo": {
                        "architecture": "", "bootID": format!("boot-{name}"), "machineID": "",
                        "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
                        "kubeletVersion": "", "operatingSystem": "", "osImage": "",
                        "systemUUID": "",
                    },
                },
            }),
        );
        let known = self.world.server.lock().objects.get(&key(MACHINES, name)).cloned();
        let mut machine = known.unwrap();
        machine["spec"]["providerID"] = json!(format!("aws:///z/i-{name}"));
        machine["status"] = json!({
            "phase": "Running", "nodeRef": { "kind": "Node", "name": name, "uid": uid },
        });
        self.put(MACHINES, machine);
    }

    pub(super) fn put_pod(&self, name: &str, node: &str) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": "app", "uid": format!("uid-{name}") },
            "spec": { "nodeName": node, "containers": [] },
        });
        self.put(PODS, pod);
    }

    /// Pods that were evicted are gone; the API server keeps the eviction as an object.
    fn end_evicted(&self) {
        let evicted: Vec<(String, String)> = {
            let state = self.world.server.lock();
            let is_eviction = |(parent, _): &&(String, String)| parent.ends_with("/eviction");
            state.objects.keys().filter(is_eviction).cloned().collect()
        };
        for (parent, name) in evicted {
            self.world.server.delete(&parent, &name);
            if self.world.server.lock().objects.contains_key(&key(PODS, &name)) {
                self.world.server.delete(PODS, &name);
                let uid = format!("uid-{name}");
                let pods = &self.world.context.stores.pods;
                pods.forget_written(&ObjectKey::new("app", name.as_str()), &uid);
            }
        }
    }

    pub(super) fn put(&self, collection: &str, object: Value) {
        self.world.server.put(collection, object);
        self.load();
    }

    /// Shows the stores what the API server has, as the watches would.
    pub(super) fn load(&self) {
        let stores = &self.world.context.stores;
        let objects: Vec<((String, String), Value)> = {
            let state = self.world.server.lock();
            state.objects.iter().map(|(key, object)| (key.clone(), object.clone())).collect()
        };
        for ((collection, _), object) in objects {
            match collection.as_str() {
                MACHINES => stores.machines.apply_written(read(object)),
                SETS => stores.machine_sets.apply_written(read(object)),
                NODES => stores.nodes.apply_written(read(object)),
                PODS => stores.pods.apply_written(read(object)),
                POLICIES => stores.maintenance.policies.apply_written(read(object)),
                _ if collection.ends_with("/machinemaintenances") => {
                    stores.maintenance.apply_written(read(object));
                }
                _ => {}
            }
        }
        stores.machines.mark_synced();
        stores.nodes.mark_synced();
    }

    pub(super) fn set(&self) -> Value {
        self.world.server.lock().objects[&key(SETS, "pool")].clone()
    }

    pub(super) fn machines(&self) -> Vec<Machine> {
        let state = self.world.server.lock();
        let all = state.objects.iter().filter(|((parent, _), _)| parent == MACHINES);
        all.map(|(_, object)| read(object.clone())).collect()
    }

    pub(super) fn node(&self, name: &str) -> Value {
        self.world.server.lock().objects[&key(NODES, name)].clone()
    }

    /// How many nodes are ready and take pods.
    fn ready(&self) -> usize {
        let state = self.world.server.lock();
        let nodes = state.objects.iter().filter(|((parent, _), _)| parent == NODES);
        nodes.filter(|(_, node)| node["spec"]["unschedulable"] != true).count()
    }

    /// What the operator has written so far, but for events.
    pub(super) fn writes(&self) -> Vec<String> {
        let log = self.world.server.lock().log.clone();
        let is_write = |line: &String| {
            ["POST", "PATCH", "DELETE", "PUT"].iter().any(|method| line.starts_with(method))
                && !line.contains("/events")
        };
        log.into_iter().filter(is_write).collect()
    }

    /// Nothing of ours is left anywhere.
    pub(super) fn assert_nothing_left(&self) {
        let set = self.set();
        assert_eq!(set["spec"]["replicas"], 3);
        assert_eq!(set["metadata"]["annotations"]["machinist.dev/surge"], Value::Null);
        let state = self.world.server.lock();
        for ((parent, name), object) in &state.objects {
            if parent != NODES && parent != MACHINES {
                continue;
            }
            let annotations = &object["metadata"]["annotations"];
            for key in ["cordoned-for", "protected-for", "hold"] {
                assert_eq!(annotations[format!("machinist.dev/{key}")], Value::Null, "{name}");
            }
            let mark = &annotations["machine.openshift.io/delete-machine"];
            assert_eq!(*mark, Value::Null, "{name}");
            assert_ne!(object["spec"]["unschedulable"], true, "{name} is cordoned");
        }
    }
}

fn maintenance(world: &World) -> Maintenance {
    let context = &world.context;
    let (notifier, messenger) = Notifier::new(None, context);
    world.supervisor.spawner().spawn("notifications", messenger.run());
    Maintenance {
        memory: Memory::default(),
        queue: crate::engine::queue::Queue::new(NAME, &context.env, &context.metrics),
        notifier,
    }
}

fn key(collection: &str, name: &str) -> (String, String) {
    (collection.to_owned(), name.to_owned())
}
