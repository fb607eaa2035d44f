//! Is a machine's Node emptied before the machine goes? The workload cluster is the testbed's own API server,
//! which knows evictions; the test plays the infrastructure.

use std::time::Duration;

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, PersistentVolume, Pod, Secret, ServiceAccount},
    policy::v1::PodDisruptionBudget,
    storage::v1::VolumeAttachment,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use machinist_testbed::{
    api_access::ADMINISTRATORS,
    cluster_api::objects::{self, GROUP, INFRASTRUCTURE, VERSION},
    kubelet::POWERED_LABEL,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use super::{
    compare::Outcome,
    on_both_sides,
    stage::{Stage, condition, text},
};

const BUDGET: &str = "disruption budget";
const FINALIZER: &str = "played.machinist.dev/instance";

pub async fn a_node_is_drained_by_rules_and_its_volumes_detach_before_the_machine_goes() {
    on_both_sides("drain", async |stage| {
        let mut outcome = Outcome::default();
        let place = Place::new(stage).await;
        let worker = place.node("worker");
        drain_rules(stage).await;
        // A budget that allows nothing, a Pod to be left alone, one to wait for, and one to come last.
        place.pod("web", json!({ "app": "web" })).await;
        place.pod("agent", json!({ "app": "agent", "cluster.x-k8s.io/drain": "skip" })).await;
        place.pod("job", json!({ "app": "job" })).await;
        place.pod("last", json!({ "app": "last" })).await;
        place
            .create::<PodDisruptionBudget>(json!({
                "metadata": { "name": "web" },
                "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } },
            }))
            .await;
        place.attach_volume().await;

        stage.delete("Machine", "worker").await;
        let blocked = place.wait_stage("DrainingNode", |words| words.contains(BUDGET)).await;
        let node = place.nodes().get(&worker).await.unwrap();
        assert_eq!(node.spec.unwrap().unschedulable, Some(true));
        assert_eq!(place.live_pods().await, ["agent", "job", "last", "web"]);
        outcome.note_each("blocked", &stage.name, vec![("Machine", blocked)]);

        let budgets: Api<PodDisruptionBudget> = place.api();
        budgets.delete("web", &DeleteParams::default()).await.unwrap();
        place.wait_pods(&["agent", "job", "last"]).await;
        let waiting = place
            .wait_stage("DrainingNode", |words| {
                words.contains("waiting for completion") && !words.contains("web")
            })
            .await;
        assert_eq!(place.live_pods().await, ["agent", "job", "last"]);
        outcome.note_each("waiting for completion", &stage.name, vec![("Machine", waiting)]);

        place.api::<Pod>().delete("job", &DeleteParams::default()).await.unwrap();
        let attached = place.wait_stage("WaitingForVolumeDetach", |_| true).await;
        assert_eq!(place.live_pods().await, ["agent"]);
        outcome.note_each("attached", &stage.name, vec![("Machine", attached)]);

        let attachments: Api<VolumeAttachment> = Api::all(stage.client().clone());
        attachments.delete(&place.node("volume"), &DeleteParams::default()).await.unwrap();
        let deleting = place.wait_stage("WaitingForInfrastructureDeletion", |_| true).await;
        assert!(place.nodes().get_opt(&worker).await.unwrap().is_some(), "the Node outlives it");
        outcome.note_each("infrastructure", &stage.name, vec![("Machine", deleting)]);

        let released = json!({ "metadata": { "finalizers": null } });
        stage.patch("PlayedMachine", "worker", released).await;
        stage
            .eventually("the machine and its Node are gone", async || {
                let machine = stage.get("Machine", "worker").await;
                let node = place.nodes().get_opt(&worker).await.unwrap();
                (machine.is_none() && node.is_none()).then_some(())
            })
            .await;
        outcome
    })
    .await;
}

async fn drain_rules(stage: &Stage) {
    let rules = [
        ("last", json!({ "behavior": "Drain", "order": 10 })),
        ("job", json!({ "behavior": "WaitCompleted" })),
    ];
    for (name, drain) in rules {
        stage
            .create(json!({
                "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": "MachineDrainRule",
                "metadata": { "name": name, "namespace": stage.name },
                "spec": {
                    "drain": drain,
                    "machines": [{ "selector": { "matchLabels": { "pool": "drained" } } }],
                    "pods": [{ "selector": { "matchLabels": { "app": name } } }],
                },
            }))
            .await;
    }
}

/// A Cluster whose workload cluster is the one that everything runs on, with two machines.
struct Place<'a> {
    stage: &'a Stage,
    kubelets: JoinSet<()>,
}

impl<'a> Place<'a> {
    async fn new(stage: &'a Stage) -> Self {
        let mut place = Self { stage, kubelets: JoinSet::new() };
        place.make_cluster().await;
        for (name, is_control_plane) in [("control", true), ("worker", false)] {
            place.boot(name).await;
            place.make_machine(name, is_control_plane).await;
        }
        stage
            .eventually("both machines run", async || {
                let machines = stage.list("Machine").await;
                let is_running = |machine: &Value| {
                    let healthy = condition(machine, "NodeHealthy");
                    machine["status"]["phase"] == "Running"
                        && healthy.is_some_and(|one| one["status"] == "True")
                };
                (machines.len() == 2 && machines.iter().all(is_running)).then_some(())
            })
            .await;
        place
    }

    async fn make_cluster(&self) {
        let stage = self.stage;
        let file = tempfile::NamedTempFile::new().unwrap();
        stage.access().write_kubeconfig(file.path(), "workload", Some(ADMINISTRATORS)).unwrap();
        let kubeconfig = std::fs::read_to_string(file.path()).unwrap();
        self.create::<Secret>(json!({
            "metadata": {
                "name": format!("{}-kubeconfig", stage.name), "labels": objects::labels(&stage.name),
            },
            "type": "cluster.x-k8s.io/secret",
            "stringData": { "value": kubeconfig },
        }))
        .await;
        let server = stage.access().server().trim_start_matches("https://").to_owned();
        let (host, port) = server.split_once(':').unwrap();
        stage
            .create(json!({
                "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": "Cluster",
                "metadata": {
                    "name": stage.name,
                    "namespace": stage.name,
                    "labels": objects::labels(&stage.name),
                },
                "spec": {
                    "clusterNetwork": { "pods": { "cidrBlocks": ["192.168.0.0/16"] } },
                    "controlPlaneEndpoint": { "host": host, "port": port.parse::<u16>().unwrap() },
                },
            }))
            .await;
    }

    /// Names of what is one for the whole cluster begin with the stage's.
    fn node(&self, name: &str) -> String {
        format!("{}-{name}", self.stage.name)
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.stage.client().clone())
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.stage.client().clone(), &self.stage.name)
    }

    async fn create<K>(&self, object: Value)
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap();
    }

    /// A Node with a kubelet that says it is well; its Pods are played by kwok.
    async fn boot(&mut self, name: &str) {
        let name = self.node(name);
        let node: Node = serde_json::from_value(json!({
            "metadata": { "name": name, "labels": { POWERED_LABEL: "on" } },
            "spec": { "providerID": format!("played://{name}") },
        }))
        .unwrap();
        self.nodes().create(&PostParams::default(), &node).await.unwrap();
        let mut conditions =
            vec![json!({ "type": "Ready", "status": "True", "reason": "KubeletReady" })];
        for pressure in ["MemoryPressure", "DiskPressure", "PIDPressure"] {
            conditions.push(json!({ "type": pressure, "status": "False", "reason": "Enough" }));
        }
        let status = Patch::Merge(json!({ "status": { "conditions": conditions } }));
        self.nodes().patch_status(&name, &PatchParams::default(), &status).await.unwrap();
        self.kubelets.spawn(heartbeat(self.stage.client().clone(), name));
    }

    async fn make_machine(&self, name: &str, is_control_plane: bool) {
        let stage = self.stage;
        stage
            .create(json!({
                "apiVersion": format!("{INFRASTRUCTURE}/{VERSION}"),
                "kind": "PlayedMachine",
                "metadata": {
                    "name": name,
                    "namespace": stage.name,
                    "labels": objects::labels(&stage.name),
                    "finalizers": [FINALIZER],
                },
                "spec": { "providerID": format!("played://{}", self.node(name)) },
                "status": { "initialization": { "provisioned": true } },
            }))
            .await;
        let mut labels = objects::labels(&stage.name);
        labels["pool"] = json!("drained");
        if is_control_plane {
            labels["cluster.x-k8s.io/control-plane"] = json!("");
        }
        let mut spec = objects::machine_spec(&stage.name, "PlayedMachine", name);
        spec["deletion"] = json!({ "nodeDeletionTimeoutSeconds": 10 });
        stage
            .create(json!({
                "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": "Machine",
                "metadata": { "name": name, "namespace": stage.name, "labels": labels },
                "spec": spec,
            }))
            .await;
    }

    /// A Pod on the worker, which runs.
    async fn pod(&self, name: &str, labels: Value) {
        let accounts: Api<ServiceAccount> = self.api();
        self.stage
            .eventually("Pods can be made", async || accounts.get_opt("default").await.unwrap())
            .await;
        self.create::<Pod>(json!({
            "metadata": { "name": name, "labels": labels },
            "spec": {
                "nodeName": self.node("worker"),
                "terminationGracePeriodSeconds": 1,
                "containers": [{ "name": "main", "image": "example.invalid/main:1" }],
            },
        }))
        .await;
        let pods: Api<Pod> = self.api();
        self.stage
            .eventually(&format!("pod {name} runs"), async || {
                let phase = pods.get(name).await.unwrap().status?.phase?;
                (phase == "Running").then_some(())
            })
            .await;
    }

    async fn live_pods(&self) -> Vec<String> {
        let pods = self.api::<Pod>().list(&Default::default()).await.unwrap().items;
        let live = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let mut names: Vec<_> = live.filter_map(|pod| pod.metadata.name).collect();
        names.sort();
        names
    }

    async fn attach_volume(&self) {
        let client = self.stage.client();
        let name = self.node("volume");
        let volume: PersistentVolume = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": {
                "capacity": { "storage": "1Gi" },
                "accessModes": ["ReadWriteOnce"],
                "csi": { "driver": "played.machinist.dev", "volumeHandle": name },
            },
        }))
        .unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &volume).await.unwrap();
        let attachment: VolumeAttachment = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": {
                "attacher": "played.machinist.dev",
                "nodeName": self.node("worker"),
                "source": { "persistentVolumeName": name },
            },
        }))
        .unwrap();
        let attachments: Api<VolumeAttachment> = Api::all(client.clone());
        attachments.create(&PostParams::default(), &attachment).await.unwrap();
        let status = Patch::Merge(json!({ "status": { "attached": true } }));
        attachments.patch_status(&name, &PatchParams::default(), &status).await.unwrap();
    }

    /// Waits until the worker's deletion is there, and says so with these words.
    async fn wait_pods(&self, names: &[&str]) {
        self.stage
            .eventually(&format!("what is left are {names:?}"), async || {
                (self.live_pods().await == names).then_some(())
            })
            .await;
    }

    /// Waits until the deletion has come to `reason` and says what is wanted.
    async fn wait_stage(&self, reason: &str, says: impl Fn(&str) -> bool) -> Value {
        self.stage
            .eventually(&format!("the deletion is at {reason}"), async || {
                let machine = self.stage.get("Machine", "worker").await?;
                let deleting = condition(&machine, "Deleting")?;
                // The original writes the phase after the condition.
                let is_there = deleting["reason"] == reason
                    && says(text(&deleting["message"]))
                    && machine["status"]["phase"] == "Deleting";
                is_there.then(|| machine.clone())
            })
            .await
    }
}

/// Renews a Node's lease for as long as it is run.
async fn heartbeat(client: Client, node: String) {
    let leases: Api<Lease> = Api::namespaced(client, "kube-node-lease");
    loop {
        let now = jiff::Timestamp::now();
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": node },
            "spec": {
                "holderIdentity": node,
                "leaseDurationSeconds": 40,
                "renewTime": format!("{now:.6}"),
            },
        });
        let parameters = PatchParams::apply("played-kubelet").force();
        leases.patch(&node, &parameters, &Patch::Apply(&lease)).await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
}
