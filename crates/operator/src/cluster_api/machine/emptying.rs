//! What is watched of a Node only while it is being emptied?
//!
//! Its pods, and for all Nodes of its cluster together the disruption budgets and the attachments of volumes. The watches begin
//! with the first look and end with the Machine, or with the connection to its cluster.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use k8s_openapi::api::{
    core::v1::{Pod, PodSpec, PodStatus},
    policy::v1::PodDisruptionBudget,
    storage::v1::VolumeAttachment,
};
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::{
    engine::{
        env::Env,
        store::{ObjectKey, Store},
        supervisor::Spawner,
        watch::{Watch, Watched},
    },
    metrics::Metrics,
};

/// Whom to tell that something changed for a Machine.
pub type Wake = Arc<dyn Fn(ObjectKey) + Send + Sync>;

/// What a watch needs.
pub struct Tools<'a> {
    pub client: &'a Client,
    pub env: &'a Env,
    pub metrics: &'a Metrics,
    pub spawner: &'a Spawner,
    pub wake: &'a Wake,
}

/// The Nodes that are being emptied, by the Machine.
#[derive(Default)]
pub struct Emptying {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    nodes: BTreeMap<ObjectKey, Arc<View>>,
    clusters: BTreeMap<ObjectKey, Weak<ClusterView>>,
}

/// What is on one Node.
pub struct View {
    pub node: String,
    pub pods: Store<Pod>,
    pub cluster: Arc<ClusterView>,
    /// The labels of namespaces, where a rule asked for them.
    pub namespaces: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
    cluster_key: ObjectKey,
    stop: CancellationToken,
}

/// What is asked of the whole cluster.
pub struct ClusterView {
    pub budgets: Store<PodDisruptionBudget>,
    pub attachments: Store<VolumeAttachment>,
    /// Who is waked by a change.
    machines: Arc<Mutex<Vec<ObjectKey>>>,
    stop: CancellationToken,
}

impl Drop for View {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Drop for ClusterView {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Emptying {
    /// The view of a Machine's Node, which begins now unless it is there.
    pub fn view(
        &self,
        machine: &ObjectKey,
        cluster: &ObjectKey,
        node: &str,
        tools: &Tools<'_>,
    ) -> Arc<View> {
        let mut known = self.lock();
        if let Some(view) = known.nodes.get(machine).filter(|view| view.node == node) {
            return Arc::clone(view);
        }
        let shared = known.clusters.get(cluster).and_then(Weak::upgrade);
        let shared = shared.unwrap_or_else(|| {
            let begun = Arc::new(ClusterView::begin(cluster, tools));
            known.clusters.insert(cluster.clone(), Arc::downgrade(&begun));
            begun
        });
        shared.machines.lock().unwrap_or_else(PoisonError::into_inner).push(machine.clone());
        let view = Arc::new(View::begin(machine, cluster, node, shared, tools));
        known.nodes.insert(machine.clone(), Arc::clone(&view));
        view
    }

    pub fn forget(&self, machine: &ObjectKey) {
        let view = self.lock().nodes.remove(machine);
        if let Some(view) = view {
            let mut machines = view.cluster.machines.lock().unwrap_or_else(PoisonError::into_inner);
            machines.retain(|one| one != machine);
        }
    }

    /// The connection is another: watches begin anew with the next look.
    pub fn forget_cluster(&self, cluster: &ObjectKey) {
        let mut known = self.lock();
        known.clusters.remove(cluster);
        let dropped: Vec<_> = known
            .nodes
            .iter()
            .filter(|(_, view)| view.cluster_key == *cluster)
            .map(|(key, _)| key.clone())
            .collect();
        for key in dropped {
            known.nodes.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View {
    fn begin(
        machine: &ObjectKey,
        cluster_key: &ObjectKey,
        node: &str,
        cluster: Arc<ClusterView>,
        tools: &Tools<'_>,
    ) -> Self {
        let pods = Store::<Pod>::builder().prune(prune_pod).build();
        let (wake, key) = (Arc::clone(tools.wake), machine.clone());
        pods.on_change(move |_| wake(key.clone()));
        let stop = CancellationToken::new();
        let watch = Watch::cluster_wide(tools.client, tools.metrics, &pods)
            .fields(&format!("spec.nodeName={node}"));
        run(tools, format!("watch of pods on {node}"), watch, &stop);
        Self {
            node: node.to_owned(),
            pods,
            cluster,
            namespaces: Mutex::default(),
            cluster_key: cluster_key.clone(),
            stop,
        }
    }
}

impl ClusterView {
    fn begin(key: &ObjectKey, tools: &Tools<'_>) -> Self {
        let machines = Arc::<Mutex<Vec<ObjectKey>>>::default();
        let (wake, of) = (Arc::clone(tools.wake), Arc::downgrade(&machines));
        let wake_all = move || {
            let machines = of.upgrade();
            let machines =
                machines.map(|all| all.lock().unwrap_or_else(PoisonError::into_inner).clone());
            for key in machines.into_iter().flatten() {
                wake(key);
            }
        };
        let budgets = Store::<PodDisruptionBudget>::builder().build();
        let again = wake_all.clone();
        budgets.on_change(move |_| again());
        let attachments = Store::<VolumeAttachment>::builder().build();
        attachments.on_change(move |_| wake_all());
        let stop = CancellationToken::new();
        let watch = Watch::cluster_wide(tools.client, tools.metrics, &budgets).optional();
        run(tools, format!("watch of disruption budgets in {key}"), watch, &stop);
        let watch = Watch::cluster_wide(tools.client, tools.metrics, &attachments).optional();
        run(tools, format!("watch of volume attachments in {key}"), watch, &stop);
        Self { budgets, attachments, machines, stop }
    }
}

fn run<K: Watched>(tools: &Tools<'_>, name: String, watch: Watch<K>, stop: &CancellationToken) {
    let (env, stopped) = (tools.env.clone(), stop.clone());
    tools.spawner.spawn(name, async move {
        tokio::select! {
            biased;
            () = stopped.cancelled() => Ok(()),
            ended = watch.run(env) => ended,
        }
    });
}

/// What decides about a pod: whose it is, whether it ends, what it holds.
fn prune_pod(pod: &mut Pod) {
    if let Some(spec) = pod.spec.take() {
        let mut volumes = spec.volumes.unwrap_or_default();
        volumes.retain(|one| one.persistent_volume_claim.is_some() || one.ephemeral.is_some());
        pod.spec = Some(PodSpec {
            node_name: spec.node_name,
            volumes: Some(volumes),
            ..Default::default()
        });
    }
    if let Some(status) = pod.status.take() {
        let mut conditions = status.conditions.unwrap_or_default();
        conditions.retain(|one| one.type_ == "Ready");
        pod.status = Some(PodStatus {
            phase: status.phase,
            conditions: Some(conditions),
            ..Default::default()
        });
    }
    if let Some(annotations) = &mut pod.metadata.annotations {
        annotations.retain(|key, _| key == "kubernetes.io/config.mirror");
    }
}
