//! A cluster around the controllers: a deployment that is kept at its size by Cluster API's own controllers, machines that
//! boot, and Nodes in a cluster of their own. Each process of the operator is a new one on the same API server.

mod cloud;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use machinist_api::{MachineMaintenance, MachineMaintenanceStatus, MaintenancePhase};
use machinist_core::{
    cloud::{InstanceId, InstanceReport, InstanceState, ScheduledEvent},
    providerspec::ProviderKind,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    cloud::{CloudSettings, connect::Connect, testing::ScriptedClouds},
    cluster_api::{
        clouds::WatchedCloud,
        context::{NodeLook, Nodes},
        deployment, machineset,
        maintained::Maintained,
        testing::{DEPLOYMENTS, Fleet, MACHINES, SETS, deployment as deployment_of, machine},
    },
    context::Context,
    engine::{
        env::Env,
        leadership::Leadership,
        queue::{Outcome, Queue},
        store::{ObjectKey, Store},
        testing::{FakeServer, Fault},
    },
    maintenance::{self, Maintenance, Memory, Notifier, planning},
    testing::{World, env, put_credentials, read},
};

const OBJECTS: &str =
    "/apis/machinemaintenance.managed.openshift.io/v1alpha1/namespaces/ns/machinemaintenances";
const NODES: &str = "/api/v1/nodes";

/// The cloud that is looked at.
pub(super) const WATCHED: &str = "region=r,secret=ns/cloud,tag=demo";

/// How long a tick is, and how many of them a machine takes to boot.
const TICK: Duration = Duration::from_secs(20);
const BOOT: u32 = 3;

/// The Nodes of the workload cluster, which has an API server of its own.
#[derive(Clone)]
struct Workload {
    server: FakeServer,
    store: Store<Node>,
}

impl Nodes for Workload {
    fn look(&self, _: &ObjectKey, name: &str) -> NodeLook {
        match self.store.get(&ObjectKey::cluster_wide(name)) {
            Some(node) => NodeLook::Present(node),
            None => NodeLook::Gone,
        }
    }

    fn doubt(&self, _: &ObjectKey) -> Option<String> {
        None
    }

    fn reached(&self, _: &ObjectKey) -> Option<(Client, Store<Node>)> {
        Some((self.server.client(), self.store.clone()))
    }
}

pub(super) struct Bench {
    fleet: Fleet,
    clouds: Arc<ScriptedClouds>,
    server: FakeServer,
    workload: Workload,
    maintenance: Maintenance,
    deployments: deployment::Memory,
    sets: machineset::Memory,
    booting: BTreeMap<String, u32>,
    /// The machine that a test is about.
    about: Mutex<Option<String>>,
    dies: Arc<Notify>,
    pub(super) deaths: usize,
    /// The fewest workers that were ready at the end of any tick, and the most that there were.
    pub(super) fewest_ready: usize,
    pub(super) most: usize,
    /// Every phase that was seen, once in a row.
    pub(super) phases: Vec<MaintenancePhase>,
}

impl Bench {
    /// A deployment of three machines that all run, and a machine of the control plane.
    pub(super) async fn new(rolling: Value) -> Self {
        let server = FakeServer::new();
        server.lock().checks_patches = true;
        let workload = Workload { server: FakeServer::new(), store: Store::builder().build() };
        let mut deployment = deployment_of(3);
        deployment["spec"]["rollout"] = json!({ "strategy": { "rollingUpdate": rolling } });
        server.put(DEPLOYMENTS, deployment);
        let mut control_plane = machine("cp");
        control_plane["metadata"]["labels"] = json!({
            "cluster.x-k8s.io/cluster-name": "c1", "cluster.x-k8s.io/control-plane": "",
        });
        control_plane["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "name": "kcp", "uid": "uid-kcp", "controller": true,
        }]);
        server.put(MACHINES, control_plane);
        let clouds = Arc::new(ScriptedClouds::default());
        let held = Leadership::always_held();
        let (fleet, maintenance) = process(&server, &workload, &clouds, env(), held);
        let mut bench = Self {
            fleet,
            clouds,
            server,
            workload,
            maintenance,
            deployments: deployment::Memory::default(),
            sets: machineset::Memory::default(),
            booting: BTreeMap::new(),
            about: Mutex::default(),
            dies: Arc::default(),
            deaths: 0,
            fewest_ready: usize::MAX,
            most: 0,
            phases: Vec::new(),
        };
        bench.load();
        bench.boot("cp");
        bench.until("three machines", |bench| bench.ready() == 3).await;
        (bench.fewest_ready, bench.most) = (usize::MAX, 0);
        bench
    }

    fn base(&self) -> &Context {
        &self.fleet.context.base
    }

    /// One of the machines, and the others.
    pub(super) fn target(&self) -> (String, Vec<String>) {
        let mut machines = self.machines();
        // Neither the first nor the last by name: nobody chooses it by chance.
        let target = machines.remove(1);
        *self.about.lock().unwrap() = Some(target.clone());
        (target, machines)
    }

    pub(super) fn request(&self, machine: &str, wish: &str) {
        self.annotate(machine, json!({ "machinist.dev/maintenance-requested": wish }));
    }

    pub(super) fn withdraw(&self, machine: &str) {
        self.annotate(machine, json!({}));
    }

    fn annotate(&self, machine: &str, annotations: Value) {
        let mut object = self.stored(MACHINES, machine).unwrap();
        object["metadata"]["annotations"] = annotations;
        self.server.put(MACHINES, object);
        self.load();
    }

    /// The machine's own metadata tells of a retirement, on its Node.
    pub(super) fn announce(&self, machine: &str) {
        let mut node = self.node(machine);
        let events = json!({ format!("event-{machine}"): {
            "code": "instance-retirement", "description": "hardware", "state": "active",
            "notBefore": "2026-01-03T12:00:00Z",
        } });
        node["metadata"]["annotations"] =
            json!({ "machinist.dev/scheduled-events": events.to_string() });
        self.put_node(node);
    }

    /// Puts something into the workload cluster.
    pub(super) fn put_there(&self, collection: &str, object: Value) {
        self.workload.server.put(collection, object);
    }

    pub(super) fn remove_there(&self, collection: &str, name: &str) {
        self.workload.server.delete(collection, name);
    }

    /// What the workload cluster was asked for.
    pub(super) fn asked_there(&self) -> Vec<String> {
        self.workload.server.lock().log.clone()
    }

    pub(super) fn pause(&self, is_paused: bool) {
        let clusters = &self.fleet.context.stores.clusters;
        let known = clusters.get(&ObjectKey::new("ns", "c1")).unwrap();
        let mut cluster = serde_json::to_value(&*known).unwrap();
        let version: u64 =
            cluster["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        cluster["metadata"]["resourceVersion"] = json!((version + 1).to_string());
        cluster["spec"] = json!({ "paused": is_paused });
        clusters.apply_written(read(cluster));
    }

    /// Cluster API's core manager has its lease again.
    pub(super) fn lose_lease(&mut self) {
        self.restart(Leadership::never_held());
    }

    /// A new process on the same API server and the same cloud.
    fn restart(&mut self, lease: Leadership) {
        let env = self.base().env.clone();
        (self.fleet, self.maintenance) =
            process(&self.server, &self.workload, &self.clouds, env, lease);
        (self.deployments, self.sets) =
            (deployment::Memory::default(), machineset::Memory::default());
        self.load();
    }

    /// Begins to look at the cloud, which tells of a retirement.
    pub(super) async fn watch_cloud(&self, machine: &str) {
        put_credentials(&self.server, "b2xk");
        let cloud = &self.clouds.cloud;
        for name in self.fleet.names(MACHINES) {
            cloud.put(&format!("i-{name}"), "", InstanceState::Running);
        }
        let instance = InstanceId(format!("i-{machine}"));
        let event = ScheduledEvent {
            id: "event-1".to_owned(),
            instance: instance.clone(),
            code: "instance-retirement".to_owned(),
            description: "hardware".to_owned(),
            not_before: Some("2026-01-03T12:00:00Z".parse().unwrap()),
            not_after: None,
            not_before_deadline: None,
        };
        let report = InstanceReport { instance, impairments: Vec::new(), events: vec![event] };
        cloud.report(Ok(vec![report]));
        let watched: WatchedCloud = WATCHED.parse().unwrap();
        self.base().clouds.watch(watched.key(), ProviderKind::Aws).await.unwrap();
        assert_eq!(self.base().clouds.all().len(), 0, "nothing is swept there");
        for (_, access) in self.base().clouds.watched() {
            access.view.fresh_within(Duration::from_secs(3600)).await.unwrap();
            let patience = Duration::from_secs(60);
            assert!(access.view.reports_within(Duration::from_secs(3600), patience).await);
        }
    }

    /// What holds at this moment for the machine that the test is about.
    pub(super) fn status(&self) -> MachineMaintenanceStatus {
        self.object().and_then(|object| object.status).unwrap_or_default()
    }

    pub(super) fn object(&self) -> Option<MachineMaintenance> {
        let about = self.about.lock().unwrap().clone()?;
        self.object_of(&about)
    }

    pub(super) fn object_of(&self, machine: &str) -> Option<MachineMaintenance> {
        self.stored(OBJECTS, &format!("mm-ns.{machine}")).map(read)
    }

    fn stored(&self, collection: &str, name: &str) -> Option<Value> {
        self.server.lock().objects.get(&(collection.to_owned(), name.to_owned())).cloned()
    }

    /// The machines of the deployment.
    pub(super) fn machines(&self) -> Vec<String> {
        self.fleet.names(MACHINES).into_iter().filter(|name| name != "cp").collect()
    }

    pub(super) fn is_there(&self, machine: &str) -> bool {
        self.stored(MACHINES, machine).is_some()
    }

    /// One round of everything that the operator does, and a tick of time.
    async fn round(&mut self) {
        let has_died = tokio::select! {
            biased;
            () = self.dies.notified() => true,
            () = self.passes() => false,
        };
        if has_died {
            self.deaths += 1;
            self.server.fail(|_, _| Fault::None);
            self.restart(Leadership::always_held());
        }
        let phase = self.status().phase.unwrap_or_default();
        if self.object().is_some() && self.phases.last() != Some(&phase) {
            self.phases.push(phase);
        }
        self.tick().await;
    }

    async fn passes(&self) {
        planning::reconcile(self.base(), &self.maintenance).await;
        for object in self.base().stores.maintenance.list() {
            let key = ObjectKey::of(&*object);
            for _ in 0..10 {
                match maintenance::reconcile(self.base(), &self.maintenance, key.clone()).await {
                    Outcome::RecheckAfter(soon) if soon < Duration::from_secs(1) => {
                        self.base().env.sleep(soon).await;
                    }
                    Outcome::Failed(error) => tracing::debug!("{error:#}"),
                    _ => break,
                }
            }
        }
        let key = ObjectKey::new("ns", "md");
        deployment::reconcile(&self.fleet.context, &self.deployments, key).await;
        for set in self.fleet.names(SETS) {
            let key = ObjectKey::new("ns", set);
            machineset::reconcile(&self.fleet.context, &self.sets, key).await;
        }
    }

    pub(super) async fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            self.round().await;
        }
    }

    /// Rounds until it holds; a generous number of them.
    pub(super) async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..500 {
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
        self.server.fail(move |method, path| {
            let is_write = matches!(*method, Method::POST | Method::PATCH | Method::DELETE);
            if !is_write || path.contains("/events") {
                return Fault::None;
            }
            if writes.fetch_add(1, Ordering::Relaxed) + 1 < write {
                return Fault::None;
            }
            dies.notify_one();
            Fault::Silence
        });
    }

    /// Time passes, and everybody else does their work.
    async fn tick(&mut self) {
        self.base().env.sleep(TICK).await;
        for machine in self.machines() {
            let stored = self.stored(MACHINES, &machine).unwrap();
            if !stored["status"]["nodeRef"].is_null() {
                continue;
            }
            let left = self.booting.entry(machine.clone()).or_insert(BOOT);
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.boot(&machine);
            }
        }
        // The Node of a machine that is gone goes with it.
        let known: Vec<String> = {
            let state = self.workload.server.lock();
            let nodes = state.objects.keys().filter(|(collection, _)| collection == NODES);
            nodes.map(|(_, name)| name.clone()).collect()
        };
        for node in known.into_iter().filter(|node| !self.is_there(node)) {
            self.workload.server.delete(NODES, &node);
            self.workload.server.lock().objects.retain(|_, one| one["spec"]["nodeName"] != node);
            let key = ObjectKey::cluster_wide(node.as_str());
            self.workload.store.forget_written(&key, &format!("uid-node-{node}"));
        }
        self.load();
        self.fewest_ready = self.fewest_ready.min(self.ready());
        self.most = self.most.max(self.machines().len());
    }

    fn boot(&self, machine: &str) {
        self.put_node(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": machine, "uid": format!("uid-node-{machine}") },
            "spec": { "providerID": format!("aws:///z/i-{machine}") },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }));
        let mut object = self.stored(MACHINES, machine).unwrap();
        object["spec"]["providerID"] = json!(format!("aws:///z/i-{machine}"));
        object["status"]["phase"] = json!("Running");
        object["status"]["nodeRef"] = json!({ "name": machine });
        if object["metadata"]["creationTimestamp"].is_null() {
            object["metadata"]["creationTimestamp"] =
                json!(machinist_api::condition::to_seconds(self.base().env.now()));
        }
        self.server.put(MACHINES, object);
        self.load();
    }

    fn put_node(&self, node: Value) {
        let name = node["metadata"]["name"].as_str().unwrap().to_owned();
        self.workload.server.put(NODES, node);
        self.workload.store.apply_written(read(self.node(&name)));
    }

    fn node(&self, name: &str) -> Value {
        self.workload.server.lock().objects[&(NODES.to_owned(), name.to_owned())].clone()
    }

    /// How many workers have a Node that is ready.
    fn ready(&self) -> usize {
        let nodes = self.workload.server.lock();
        self.machines()
            .iter()
            .filter(|name| nodes.objects.contains_key(&(NODES.to_owned(), (*name).clone())))
            .count()
    }

    /// Shows the stores what the API server has, as the watches would.
    fn load(&self) {
        let (stores, base) = (&self.fleet.context.stores, &self.base().stores);
        let objects: Vec<((String, String), Value)> = {
            let state = self.server.lock();
            state.objects.iter().map(|(key, object)| (key.clone(), object.clone())).collect()
        };
        for ((collection, _), object) in objects {
            match collection.as_str() {
                MACHINES => stores.machines.apply_written(read(object)),
                SETS => stores.machine_sets.apply_written(read(object)),
                DEPLOYMENTS => stores.deployments.apply_written(read(object)),
                OBJECTS => base.maintenance.apply_written(read(object)),
                _ => {}
            }
        }
        stores.machines.mark_synced();
    }

    /// What the operator has written so far, but for events.
    pub(super) fn writes(&self) -> Vec<String> {
        let log = self.server.lock().log.clone();
        let is_write = |line: &String| {
            ["POST", "PATCH", "DELETE", "PUT"].iter().any(|method| line.starts_with(method))
                && !line.contains("/events")
        };
        log.into_iter().filter(is_write).collect()
    }

    /// What the cloud was asked for.
    pub(super) fn effects(&self) -> Vec<String> {
        let mut effects = self.clouds.cloud.effects();
        effects.extend(self.clouds.cloud.terminated.lock().unwrap().iter().cloned());
        effects
    }

    /// Nothing of ours is left anywhere.
    pub(super) fn assert_nothing_left(&self) {
        let deployment = self.stored(DEPLOYMENTS, "md").unwrap();
        assert_eq!(deployment["spec"]["replicas"], 3);
        assert_eq!(deployment["metadata"]["annotations"]["machinist.dev/surge"], Value::Null);
        for machine in self.machines() {
            let annotations = &self.stored(MACHINES, &machine).unwrap()["metadata"]["annotations"];
            assert_eq!(annotations["cluster.x-k8s.io/delete-machine"], Value::Null, "{machine}");
            let node = self.node(&machine);
            let annotations = &node["metadata"]["annotations"];
            assert_eq!(annotations["machinist.dev/protected-for"], Value::Null, "{machine}");
        }
        for set in self.fleet.names(SETS) {
            let set = self.stored(SETS, &set).unwrap();
            assert_eq!(set["metadata"]["annotations"]["machinist.dev/surge"], Value::Null);
        }
    }
}

/// A process of the operator on this API server.
fn process(
    server: &FakeServer,
    workload: &Workload,
    clouds: &Arc<ScriptedClouds>,
    env: Env,
    lease: Leadership,
) -> (Fleet, Maintenance) {
    let connect = Arc::clone(clouds) as Arc<dyn Connect>;
    let world = World::with_server(server.clone(), env, connect, CloudSettings::default());
    let mut fleet = Fleet::of(world);
    fleet.context.nodes = Arc::new(workload.clone());
    let context = &fleet.context;
    context.base.stores.cluster_api.put(Maintained {
        stores: Arc::clone(&context.stores),
        nodes: Arc::clone(&context.nodes),
        leadership: lease,
    });
    let base = &context.base;
    let (notifier, messenger) = Notifier::new(None, base);
    fleet.spawner().spawn("notifications", messenger.run());
    let queue = Queue::new(maintenance::NAME, &base.env, &base.metrics);
    let maintenance = Maintenance { memory: Memory::default(), queue, notifier };
    (fleet, maintenance)
}
