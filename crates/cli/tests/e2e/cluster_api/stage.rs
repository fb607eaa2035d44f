//! Where does a script play? In a namespace with a controller of its own: Cluster API's or Machinist.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::{
    Api, Client, Config,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::GroupVersionKind,
};
use machinist_testbed::{
    cluster_api::{
        ClusterApi,
        objects::{self, BOOTSTRAP, GROUP, INFRASTRUCTURE, VERSION, WORKERS},
    },
    manifests::{apply, apply_yaml},
    operator_process::OperatorProcess,
    permissions::grant_cluster_api,
    programs::Progress,
};
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex, MutexGuard, OnceCell},
    time::{Instant, sleep},
};

use super::Side;
use crate::arena::{Arena, BARE, cluster};

/// Cluster API's manager looks at some things every 20 seconds only, and the cores may be busy.
const PATIENCE: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(250);

/// Shorter lines of a Secret may be anything: an address, the frame of a key.
const SECRET_LINE_MIN: usize = 48;

/// Kinds of providers that the tests play themselves.
const PLAYED_KINDS: &str = include_str!("played-kinds.yaml");

struct World {
    programs: ClusterApi,
    /// One for all: it listens on a fixed port. One stage at a time has it.
    provider: Mutex<OperatorProcess>,
}

static WORLD: OnceCell<World> = OnceCell::const_new();

async fn world() -> &'static World {
    WORLD
        .get_or_init(|| async {
            let cluster = cluster().await;
            let programs = ClusterApi::install(cluster, Progress::Lines).await.unwrap();
            apply_yaml(cluster.admin(), PLAYED_KINDS).await.unwrap();
            let provider = Mutex::new(programs.start_provider(cluster).await.unwrap());
            World { programs, provider }
        })
        .await
}

pub struct Stage {
    /// The namespace; also the name of the Cluster in it.
    pub name: String,
    side: Side,
    arena: Arena,
    controller: OperatorProcess,
    provider: MutexGuard<'static, OperatorProcess>,
}

impl Stage {
    /// Alone with the provider, which it may restart.
    pub async fn new(side: Side, name: &str) -> Self {
        let provider = world().await.provider.lock().await;
        let arena = Arena::new(&format!("capi-{name}-{}", side.name())).await;
        let name = arena.name.clone();
        let controller = match side {
            Side::Core => {
                let world = world().await;
                world.programs.start_core(arena.cluster, &name).await.unwrap()
            }
            Side::Machinist => {
                grant_cluster_api(&arena.client, &name, &name).await.unwrap();
                // A lease of its own: other tests have theirs.
                let here = [
                    ("--cluster-api", BARE),
                    ("--cluster-api-namespace", &name),
                    ("--cluster-api-lease-namespace", &name),
                    ("--log-level", "trace"),
                ];
                arena.start_operator_with(&here).await
            }
        };
        Self { name, side, arena, controller, provider }
    }

    /// A Cluster of in-memory machines whose control plane runs, and a MachineDeployment without machines.
    pub async fn with_workers(&self) {
        for object in objects::cluster(&self.name, &self.name).unwrap() {
            self.create(object).await;
        }
        for object in objects::control_plane(&self.name, &self.name) {
            self.create(object).await;
        }
        self.create(objects::template(&self.name, &self.name, "small")).await;
        self.create(objects::workers(&self.name, &self.name, "small", 0)).await;
        self.eventually("the control plane is initialised", async || {
            let cluster = self.get("Cluster", &self.name).await?;
            (condition(&cluster, "ControlPlaneInitialized")?["status"] == "True").then_some(())
        })
        .await;
        self.wait_running(0).await;
    }

    pub fn client(&self) -> &Client {
        &self.arena.client
    }

    pub fn access(&self) -> &machinist_testbed::api_access::ApiAccess {
        self.arena.cluster.access()
    }

    /// No line of a private key or of a kubeconfig is in our log, at its most talkative, as it is or in base64.
    pub async fn check_log(&self) {
        if self.side == Side::Core {
            return;
        }
        let secrets: Api<Secret> = Api::namespaced(self.client().clone(), &self.name);
        let secrets = secrets.list(&ListParams::default()).await.unwrap().items;
        let values = secrets.into_iter().filter_map(|secret| secret.data).flatten();
        let lines: Vec<String> = values
            .filter(|(key, _)| ["tls.key", "value"].contains(&key.as_str()))
            .flat_map(|(_, value)| {
                let text = String::from_utf8_lossy(&value.0).into_owned();
                let lines = text.lines().map(str::trim).map(str::to_owned).collect::<Vec<_>>();
                lines.into_iter().chain([STANDARD.encode(&value.0)])
            })
            .filter(|line| line.len() >= SECRET_LINE_MIN)
            .collect();
        assert!(!lines.is_empty(), "there is no secret to look for");
        let words = std::fs::read(self.controller.process().log()).unwrap();
        let words = String::from_utf8_lossy(&words).into_owned();
        assert!(words.contains(r#""level":"DEBUG""#), "the log is not at its most talkative");
        for line in lines {
            assert!(!words.contains(&line[4..SECRET_LINE_MIN]), "a secret is in the log: {line}");
        }
    }

    pub async fn kill_controller(&self) {
        self.controller.kill().await;
    }

    pub async fn restart_controller(&mut self) {
        self.controller.restart().await.unwrap();
    }

    pub async fn kill_provider(&self) {
        self.provider.kill().await;
    }

    pub async fn restart_provider(&mut self) {
        self.provider.restart().await.unwrap();
    }

    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        let group = match kind {
            "Cluster" => GROUP,
            kind if kind.starts_with("Machine") => GROUP,
            kind if kind.ends_with("Config") => BOOTSTRAP,
            _ => INFRASTRUCTURE,
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, VERSION, kind));
        Api::namespaced_with(self.client().clone(), &self.name, &resource)
    }

    pub async fn create(&self, object: Value) {
        apply(self.client(), object).await.unwrap();
    }

    pub async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let found = self.api(kind).get_opt(name).await.unwrap()?;
        Some(serde_json::to_value(found).unwrap())
    }

    pub async fn list(&self, kind: &str) -> Vec<Value> {
        let found = self.api(kind).list(&ListParams::default()).await.unwrap();
        found.items.into_iter().map(|one| serde_json::to_value(one).unwrap()).collect()
    }

    pub async fn patch(&self, kind: &str, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.api(kind).patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn patch_status(&self, kind: &str, name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.api(kind).patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn delete(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn scale(&self, replicas: usize) {
        let scale = json!({ "spec": { "replicas": replicas } });
        self.patch("MachineDeployment", WORKERS, scale).await;
    }

    /// The Machines of the MachineDeployment.
    pub async fn workers(&self) -> Vec<Value> {
        let mut machines = self.list("Machine").await;
        machines.retain(|machine| {
            machine["metadata"]["labels"]["cluster.x-k8s.io/deployment-name"] == WORKERS
        });
        machines
    }

    /// The provider's objects. A pass of Cluster API's manager ends after a minute, in the middle of a creation
    /// if need be; an object that was made then belongs to its MachineSet and to no Machine, another one is
    /// made for the Machine, and the first is taken away whenever the set is looked at again. Such are
    /// not counted against it; Machinist may leave none.
    pub async fn provided(&self) -> Vec<Value> {
        let mut objects = self.list("DevMachine").await;
        objects.retain(|object| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            let is_of_set =
                owners.is_some_and(|all| all.iter().all(|one| one["kind"] == "MachineSet"));
            self.side == Side::Machinist || !is_of_set
        });
        objects
    }

    /// Waits until the MachineDeployment has exactly so many Machines, all Running and counted, and until
    /// it and all its sets are quiet.
    pub async fn wait_running(&self, count: usize) -> Vec<Value> {
        self.eventually(&format!("{count} workers run and are counted"), async || {
            let deployment = self.get("MachineDeployment", WORKERS).await?;
            let status = &deployment["status"];
            let is_counted = ["replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"]
                .iter()
                .all(|field| status[*field] == count);
            // It counts Nodes for these, which come anew when the provider was restarted.
            let before = &status["deprecated"]["v1beta1"]["readyReplicas"];
            let is_counted_before = before.as_u64().unwrap_or_default() == count as u64;
            let told = status["deprecated"]["v1beta1"]["conditions"].as_array();
            let is_told_before =
                told.is_some_and(|all| all.iter().all(|one| one["status"] == "True"));
            let is_seen = status["observedGeneration"] == deployment["metadata"]["generation"];
            let quiet = [
                ("ScalingUp", "False"),
                ("ScalingDown", "False"),
                ("RollingOut", "False"),
                ("MachinesReady", "True"),
                ("MachinesUpToDate", "True"),
                ("Available", "True"),
            ];
            let is_quiet = quiet.iter().all(|(type_, status)| {
                condition(&deployment, type_).is_some_and(|one| one["status"] == *status)
            });
            let machines = self.workers().await;
            let is_running = |machine: &Value| {
                let is_available = condition(machine, "Available");
                machine["status"]["phase"] == "Running"
                    && is_available.is_some_and(|one| one["status"] == "True")
            };
            let is_complete = machines.len() == count && machines.iter().all(is_running);
            let is_whole = is_counted && is_seen && is_quiet && is_complete;
            (is_whole && is_counted_before && is_told_before).then_some(machines)
        })
        .await
    }

    /// A client of the workload cluster, by the kubeconfig that every controller finds it with.
    pub async fn workload(&self) -> Client {
        let secrets: Api<Secret> = Api::namespaced(self.client().clone(), &self.name);
        let secret = secrets.get(&format!("{}-kubeconfig", self.name)).await.unwrap();
        let text = String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap();
        let parsed = Kubeconfig::from_yaml(&text).unwrap();
        let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await;
        Client::try_from(config.unwrap()).unwrap()
    }

    /// A provider that was restarted serves the workload cluster some time later.
    pub async fn nodes(&self) -> Vec<Value> {
        let found = self.eventually("the workload cluster answers", async || {
            let nodes: Api<Node> = Api::all(self.workload().await);
            nodes.list(&ListParams::default()).await.ok()
        });
        let nodes = found.await.items.into_iter();
        nodes.map(|one| serde_json::to_value(one).unwrap()).collect()
    }

    /// Repeats `look` until it finds something.
    pub async fn eventually<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            if Instant::now() > deadline {
                let mut seen = Vec::new();
                for kind in ["Cluster", "MachineDeployment", "MachineSet", "Machine", "DevMachine"]
                {
                    for object in self.list(kind).await {
                        let name = text(&object["metadata"]["name"]);
                        seen.push(format!("{kind} {name}: {}", object["status"]));
                    }
                }
                panic!("{}: waited in vain: {what}\n{}", self.name, seen.join("\n"));
            }
            sleep(POLL).await;
        }
    }
}

pub fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == type_)
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
