//! Where a test plays: the shared cluster, and in it a namespace with an operator of its own.

use std::{
    fmt::Debug,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::Duration,
};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Event, Namespace, Node, Secret},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use machinist_api::{Machine, MachineSet, condition, names::DEFAULT_NAMESPACE};
use machinist_testbed::{
    Cluster, ClusterConfig,
    cloud::model::ChangedBy,
    cluster::folder_of_this_process,
    deployment::shipped_container,
    guard::Guard,
    operator_process::{OperatorConfig, OperatorProcess},
    programs::Progress,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    runtime::Runtime,
    sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::{Instant, sleep},
};

/// Generous: the cores may be busy with something else.
const PATIENCE: Duration = Duration::from_secs(180);

/// Flags of an operator that waits for the leases of one that was killed, as another Pod would.
pub const TAKEOVER: [(&str, &str); 2] =
    [("--identity", ""), ("--leader-elect-lease-duration", "6s")];

/// The value of a flag that has none.
pub const BARE: &str = "(bare)";

const LOG_LEVEL: &str =
    "debug,hyper=info,h2=info,tower=info,rustls=info,kube_client=warn,kube_runtime=error";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();

/// Tests run side by side, but for those that change the cloud for everybody.
static CLOUD_FOR_ALL: RwLock<()> = RwLock::const_new(());

pub fn run(test: impl Future<Output = ()>) {
    RUNTIME.block_on(test);
}

/// The cluster is never dropped; its programs end with this process.
pub async fn cluster() -> &'static Cluster {
    CLUSTER
        .get_or_init(|| async {
            let crds = machinist_api::crd::all();
            let config = ClusterConfig {
                guard: Guard::at(PathBuf::from(env!("CARGO_BIN_EXE_machinist"))),
                progress: Progress::Lines,
                // Machinist removes Nodes itself; tests that want the cloud's controller turn it on.
                cloud_controller: false,
                audit: true,
                machine_crds: crds.iter().map(|crd| serde_json::to_string(crd).unwrap()).collect(),
                folder: Some(
                    folder_of_this_process(Path::new(env!("CARGO_TARGET_TMPDIR")), "e2e-").unwrap(),
                ),
                ..ClusterConfig::fast()
            };
            Cluster::start(config).await.unwrap()
        })
        .await
}

/// One test's part of the cluster. Dropping it takes its instances away: their kubelets would go on
/// to the end of the run.
pub struct Arena {
    pub cluster: &'static Cluster,
    pub client: Client,
    /// Namespace and cluster id.
    pub name: String,
    #[expect(dead_code, reason = "held for its Drop, which lets others in")]
    place: Place,
}

#[expect(dead_code, reason = "held for their Drop")]
enum Place {
    AmongOthers(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

impl Arena {
    pub async fn new(name: &str) -> Self {
        Self::at(name, Place::AmongOthers(CLOUD_FOR_ALL.read().await)).await
    }

    /// While no other test runs: for what the cloud does to every caller.
    pub async fn alone(name: &str) -> Self {
        Self::at(name, Place::Alone(CLOUD_FOR_ALL.write().await)).await
    }

    async fn at(name: &str, place: Place) -> Self {
        let cluster = cluster().await;
        let client = cluster.admin().clone();
        let arena = Self { cluster, client, name: format!("e2e-{name}"), place };
        let namespace: Namespace =
            serde_json::from_value(json!({"metadata": {"name": arena.name}})).unwrap();
        Api::all(arena.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        arena.copy_secret("worker-user-data", json!({})).await;
        // A key of its own: the ledger tells the tests apart by it, and so do faults.
        let key = json!({"aws_access_key_id": arena.access_key()});
        arena.copy_secret("aws-cloud-credentials", key).await;
        arena
    }

    /// The access key of this test's operator.
    pub fn access_key(&self) -> String {
        format!("AKIA{}", self.name.replace('-', "").to_uppercase())
    }

    /// A namespace with a running operator.
    pub async fn with_operator(name: &str) -> (Self, OperatorProcess) {
        let arena = Self::new(name).await;
        let operator = arena.start_operator().await;
        (arena, operator)
    }

    pub async fn start_operator(&self) -> OperatorProcess {
        self.start_operator_with(&[]).await
    }

    /// An operator with other flags than usual; an empty value leaves a flag out.
    pub async fn start_operator_with(&self, flags: &[(&str, &str)]) -> OperatorProcess {
        let kubeconfig = self.cluster.operator_kubeconfig(&self.name, &self.name).await.unwrap();
        let shipped = shipped_container(&self.name, &self.name).unwrap();
        let (mut all, address_file) = (shipped.flags, self.address_file());
        let policies = format!("machinist.dev/e2e={}", self.name);
        // What a process on this machine must have otherwise than a Pod.
        let here = [
            ("--kubeconfig", kubeconfig.to_str().unwrap()),
            ("--http-address", "127.0.0.1:0"),
            ("--http-address-file", address_file.to_str().unwrap()),
            ("--http-metrics", "true"),
            ("--metrics-tls-address", "127.0.0.1:0"),
            ("--webhook-address", "127.0.0.1:0"),
            // They are the whole cluster's: one test at a time may have them.
            ("--keep-webhooks", "off"),
            // So are MaintenancePolicies: each test has its own.
            ("--maintenance-policies", &policies),
            ("--cloud-list-period", "1s"),
            ("--cloud-first-look", "200ms"),
            ("--cloud-report-period", "1s"),
            ("--launch-visibility", "5s"),
            // Whoever is started after a kill takes the leases over at once, and nobody loses them
            // because the cores are busy. `TAKEOVER` is for the tests of that.
            ("--identity", &self.name),
            ("--leader-elect-lease-duration", "60s"),
            ("--log-level", LOG_LEVEL),
        ];
        for (flag, value) in here.iter().chain(flags) {
            all.insert((*flag).to_owned(), (*value).to_owned());
        }
        all.retain(|_, value| !value.is_empty());
        let arguments = all.into_iter().map(|(flag, value)| match value.as_str() {
            BARE => flag,
            value => format!("{flag}={value}"),
        });
        let mut config = OperatorConfig::find(arguments.map(Into::into).collect()).unwrap();
        let environment = shipped.environment.into_iter();
        config.environment = environment.map(|(name, value)| (name, value.into())).collect();
        config.name = format!("operator-{}", self.name);
        self.cluster.start_operator(config).await.unwrap()
    }

    /// Where the operator writes the address of its metrics.
    pub fn address_file(&self) -> PathBuf {
        self.cluster.folder().join(format!("{}.address", self.name))
    }

    /// Copies a secret of the cluster, with other values for some keys.
    async fn copy_secret(&self, name: &str, values: Value) {
        let from = Api::<Secret>::namespaced(self.client.clone(), DEFAULT_NAMESPACE);
        let source = from.get(name).await.unwrap();
        let copy = Secret {
            metadata: serde_json::from_value(json!({"name": name})).unwrap(),
            string_data: serde_json::from_value(values).unwrap(),
            ..source
        };
        self.api::<Secret>().create(&PostParams::default(), &copy).await.unwrap();
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// A providerSpec that works, with overrides merged in.
    pub fn provider_spec(&self, overrides: Value) -> Value {
        let world = self.cluster.cloud().world();
        let zone = &world.availability_zones[0];
        let mut spec = json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "AWSMachineProviderConfig",
            "ami": {"id": world.images["x86_64"]},
            "instanceType": "m5.large",
            "placement": {"region": world.region, "availabilityZone": zone},
            "subnet": {"id": world.private_subnets[zone]},
            "securityGroups": [{"id": world.worker_security_group}],
            "credentialsSecret": {"name": "aws-cloud-credentials"},
            "userDataSecret": {"name": "worker-user-data"},
        });
        merge(&mut spec, overrides);
        spec
    }

    pub fn labels(&self, pool: &str) -> Value {
        json!({
            "machine.openshift.io/cluster-api-cluster": self.name,
            "machine.openshift.io/cluster-api-machineset": pool,
        })
    }

    pub async fn create_set(&self, name: &str, replicas: i32, overrides: Value) -> MachineSet {
        let mut set = json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "MachineSet",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": self.labels(name)},
                "template": {
                    "metadata": {"labels": self.labels(name)},
                    "spec": {
                        "metadata": {"labels": {"pool": format!("{}-{name}", self.name)}},
                        "providerSpec": {"value": self.provider_spec(json!({}))},
                    },
                },
            },
        });
        merge(&mut set, overrides);
        self.create(set).await
    }

    pub async fn create_machine(&self, name: &str, overrides: Value) -> Machine {
        let mut machine = json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "metadata": {"name": name, "labels": self.labels("none")},
            "spec": {"providerSpec": {"value": self.provider_spec(json!({}))}},
        });
        merge(&mut machine, overrides);
        self.create(machine).await
    }

    pub async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    pub async fn patch<K>(&self, name: &str, patch: Value)
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let api: Api<K> = self.api();
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn scale(&self, set: &str, replicas: i32) {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.api::<MachineSet>().patch_scale(set, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn machines(&self) -> Vec<Machine> {
        self.api::<Machine>().list(&ListParams::default()).await.unwrap().items
    }

    pub async fn delete_machine(&self, name: &str) {
        self.api::<Machine>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until exactly so many Machines exist, all Running with a Ready Node.
    pub async fn wait_running(&self, count: usize) -> Vec<Machine> {
        let nodes = Api::<Node>::all(self.client.clone());
        self.eventually(&format!("{count} machines are Running on Ready nodes"), async || {
            let machines = self.machines().await;
            let mut ready = 0;
            for machine in &machines {
                let status = machine.status.clone().unwrap_or_default();
                let name = status.node_ref.and_then(|node| node.name);
                if status.phase.as_deref() == Some("Running")
                    && let Some(name) = name
                    && let Ok(Some(node)) = nodes.get_opt(&name).await
                    && is_ready(&node)
                {
                    ready += 1;
                }
            }
            (machines.len() == count && ready == count).then_some(machines)
        })
        .await
    }

    /// Waits for a Machine's condition whose message or reason satisfies the test.
    pub async fn wait_condition(
        &self,
        machine: &str,
        type_: &str,
        is_it: impl Fn(&machinist_api::Condition) -> bool,
    ) -> machinist_api::Condition {
        self.eventually(&format!("condition {type_} of machine {machine}"), async || {
            let found = self.api::<Machine>().get_opt(machine).await.unwrap()?;
            let status = found.status.unwrap_or_default();
            condition::find(&status.conditions, type_).filter(|one| is_it(one)).cloned()
        })
        .await
    }

    /// Waits for an event on an object of this namespace.
    pub async fn wait_event(&self, object: &str, reason: &str, words: &str) -> Event {
        self.eventually(&format!("event {reason} on {object} that says {words:?}"), async || {
            let events = self.api::<Event>().list(&ListParams::default()).await.unwrap();
            events.items.into_iter().find(|event| {
                event.involved_object.name.as_deref() == Some(object)
                    && event.reason.as_deref() == Some(reason)
                    && event.message.as_deref().unwrap_or_default().contains(words)
            })
        })
        .await
    }

    /// A Deployment whose pods run on this test's pool only, and a budget over it.
    pub async fn deploy(&self, name: &str, replicas: i32, pool: &str, min_available: Value) {
        let labels = json!({"app": name});
        self.create::<Deployment>(json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "nodeSelector": {"pool": format!("{}-{pool}", self.name)},
                        "containers": [{"name": "main", "image": "example.invalid/main:1"}],
                    },
                },
            },
        }))
        .await;
        self.create::<PodDisruptionBudget>(json!({
            "metadata": {"name": format!("{name}-budget")},
            "spec": {"minAvailable": min_available, "selector": {"matchLabels": labels}},
        }))
        .await;
        self.eventually(&format!("deployment {name} is available"), async || {
            let found = self.api::<Deployment>().get(name).await.unwrap();
            let available = found.status.and_then(|status| status.available_replicas);
            (available == Some(replicas)).then_some(())
        })
        .await;
        // The budget's own controller has counted the pods.
        self.eventually(&format!("budget of {name} is counted"), async || {
            let budget = format!("{name}-budget");
            let found = self.api::<PodDisruptionBudget>().get(&budget).await.unwrap();
            let status = found.status?;
            (status.expected_pods == replicas && status.current_healthy == replicas).then_some(())
        })
        .await;
    }

    /// Repeats `look` until it finds something.
    pub async fn eventually<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            if Instant::now() > deadline {
                let machines: Vec<_> = self
                    .machines()
                    .await
                    .iter()
                    .map(|machine| {
                        format!(
                            "{}: {}",
                            machine.metadata.name.as_deref().unwrap_or_default(),
                            serde_json::to_string(&machine.status).unwrap()
                        )
                    })
                    .collect();
                panic!("{}: waited in vain: {what}\n{}", self.name, machines.join("\n"));
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for instance in self.live() {
            // One that is going already is as good.
            self.cluster.cloud().terminate(&instance.id, ChangedBy::Provider).ok();
        }
    }
}

pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

pub fn name_of(machine: &Machine) -> String {
    machine.metadata.name.clone().unwrap()
}

pub fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    target.remove(&key);
                } else {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (target, patch) => *target = patch,
    }
}
