//! Who plays etcd on the machines of the control plane, and the operator that looks after its members?
//!
//! As OpenShift's etcd operator does: every Machine of the control plane carries a hook that holds its
//! deletion before the drain. The member of a Machine that is to go is removed only when as many others
//! are healthy as there are to be; then the hook goes, and the deletion goes on. On each Node of a
//! member runs a static pod, and its health can be asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use machinist_api::{LifecycleHook, Machine, names::label};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::instances::{Instances, Power};

/// Where the static pods are, as on OpenShift.
const NAMESPACE: &str = "openshift-etcd";
const HOOK: &str = "EtcdQuorumOperator";
const OWNER: &str = "clusteroperator/etcd";

/// Between two looks at the machines.
const PERIOD: Duration = Duration::from_millis(300);

/// etcd of one control plane. Dropping it ends it; its pods stay.
pub struct Etcd {
    shared: Arc<Shared>,
    #[expect(dead_code, reason = "held for its Drop, which ends the tasks")]
    tasks: JoinSet<()>,
}

struct Shared {
    admin: Client,
    /// Of the Machines.
    namespace: String,
    /// How many members there are to be.
    wanted: usize,
    instances: watch::Receiver<Instances>,
    /// Where the members are asked for their health.
    health: SocketAddr,
    state: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Whether Nodes that are not members may not become such now.
    is_closed: bool,
    /// The Nodes whose members were removed: they do not come back.
    removed: BTreeSet<String>,
    /// The Nodes whose members know of no leader.
    leaderless: BTreeSet<String>,
    /// The Nodes of members, with whether they are healthy.
    members: BTreeMap<String, bool>,
}

impl Etcd {
    pub(crate) async fn start(
        admin: Client,
        namespace: &str,
        wanted: usize,
        instances: watch::Receiver<Instances>,
    ) -> anyhow::Result<Self> {
        let own: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
        let made = Api::all(admin.clone()).create(&PostParams::default(), &own).await;
        if let Err(error) = made
            && !matches!(&error, kube::Error::Api(status) if status.is_already_exists())
        {
            return Err(error).with_context(|| format!("cannot create namespace {NAMESPACE}"));
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let health = listener.local_addr()?;
        let shared = Arc::new(Shared {
            admin,
            namespace: namespace.to_owned(),
            wanted,
            instances,
            health,
            state: Mutex::default(),
        });
        let router = Router::new()
            .route("/members/{node}/health", get(tell_health))
            .with_state(Arc::clone(&shared));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::warn!("etcd's health cannot be served: {error}");
            }
        });
        let looked_after = Arc::clone(&shared);
        tasks.spawn(async move {
            loop {
                if let Err(error) = looked_after.look().await {
                    tracing::debug!("etcd: {error:#}");
                }
                tokio::time::sleep(PERIOD).await;
            }
        });
        Ok(Self { shared, tasks })
    }

    /// Whether the Nodes of new machines become members.
    pub fn admit(&self, does: bool) {
        self.shared.state().is_closed = !does;
    }

    /// The Nodes of the members that are healthy now.
    #[must_use]
    pub fn healthy(&self) -> BTreeSet<String> {
        let state = self.shared.state();
        state
            .members
            .iter()
            .filter(|(_, is_healthy)| **is_healthy)
            .map(|(node, _)| node.clone())
            .collect()
    }

    /// Whether the member of a Node has lost its leader, while its pod seems to be ready.
    pub fn lose_leader(&self, node: &str, has_lost: bool) {
        let mut state = self.shared.state();
        if has_lost {
            state.leaderless.insert(node.to_owned());
        } else {
            state.leaderless.remove(node);
        }
    }
}

/// As etcd answers.
async fn tell_health(
    State(shared): State<Arc<Shared>>,
    Path(node): Path<String>,
) -> (StatusCode, Json<Value>) {
    let state = shared.state();
    let is_healthy = |healthy: &bool| *healthy && !state.leaderless.contains(&node);
    match state.members.get(&node).map(is_healthy) {
        Some(true) => (StatusCode::OK, Json(json!({"health": "true", "reason": ""}))),
        Some(false) => {
            let body = json!({"health": "false", "reason": "RAFT NO LEADER"});
            (StatusCode::SERVICE_UNAVAILABLE, Json(body))
        }
        None => (StatusCode::NOT_FOUND, Json(json!({"health": "false", "reason": "no member"}))),
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, Known> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn machines(&self) -> Api<Machine> {
        Api::namespaced(self.admin.clone(), &self.namespace)
    }

    async fn look(&self) -> anyhow::Result<()> {
        let selector = format!("{}=master", label::MACHINE_ROLE);
        let machines = self.machines().list(&ListParams::default().labels(&selector)).await?.items;
        let pods: Api<Pod> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let ready: BTreeSet<String> = pods
            .list(&ListParams::default().labels("app=etcd"))
            .await?
            .items
            .into_iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none() && is_ready(pod))
            .filter_map(|pod| pod.spec?.node_name)
            .collect();
        self.note_members(&machines, &ready);
        for machine in &machines {
            if let Some(node) = node_of(machine) {
                self.keep_pod(&pods, node).await?;
            }
            match (machine.metadata.deletion_timestamp.is_some(), has_hook(machine)) {
                (false, false) => self.set_hooks(machine, true).await?,
                (true, true) if self.may_go(&machines, machine) => {
                    if let Some(node) = node_of(machine) {
                        self.state().removed.insert(node.to_owned());
                        self.keep_pod(&pods, node).await?;
                    }
                    self.set_hooks(machine, false).await?;
                }
                (false, true) | (true, true | false) => {}
            }
        }
        Ok(())
    }

    /// Who is a member, and who of them is healthy.
    fn note_members(&self, machines: &[Machine], ready: &BTreeSet<String>) {
        let instances = self.instances.borrow().clone();
        let is_on = |node: &str| {
            let found = instances.values().find(|instance| instance.private_name == node);
            found.is_some_and(|instance| matches!(instance.power, Power::On { .. }))
        };
        let mut state = self.state();
        let nodes = machines.iter().filter_map(node_of);
        let members: BTreeMap<String, bool> = nodes
            .filter(|node| !state.removed.contains(*node))
            .filter(|node| state.members.contains_key(*node) || ready.contains(*node))
            .map(|node| (node.to_owned(), ready.contains(node) && is_on(node)))
            .collect();
        state.members = members;
    }

    /// Whether enough others are healthy for the member of this Machine to be removed.
    fn may_go(&self, machines: &[Machine], leaving: &Machine) -> bool {
        let Some(node) = node_of(leaving) else { return true };
        let state = self.state();
        if !state.members.contains_key(node) {
            return true;
        }
        let stays = |machine: &&Machine| machine.metadata.deletion_timestamp.is_none();
        let healthy = machines.iter().filter(stays).filter_map(node_of);
        healthy.filter(|node| state.members.get(*node) == Some(&true)).count() >= self.wanted
    }

    /// Sees to it that the Node of a member has its static pod, and that of a removed one has none.
    async fn keep_pod(&self, pods: &Api<Pod>, node: &str) -> anyhow::Result<()> {
        let name = format!("etcd-{node}");
        let (is_removed, is_member, is_closed) = {
            let state = self.state();
            (state.removed.contains(node), state.members.contains_key(node), state.is_closed)
        };
        let is_there = pods.get_opt(&name).await?.is_some();
        if is_removed && is_there {
            pods.delete(&name, &DeleteParams::default().grace_period(0)).await?;
        }
        if is_removed || is_there || (is_closed && !is_member) {
            return Ok(());
        }
        let nodes: Api<Node> = Api::all(self.admin.clone());
        let Some(node) = nodes.get_opt(node).await? else { return Ok(()) };
        pods.create(&PostParams::default(), &static_pod(&name, &node, self.health)?).await?;
        Ok(())
    }

    async fn set_hooks(&self, machine: &Machine, is_on: bool) -> anyhow::Result<()> {
        let hooks = machine.spec.lifecycle_hooks.clone().unwrap_or_default();
        let mut wanted: Vec<LifecycleHook> = hooks.pre_drain;
        wanted.retain(|hook| hook.name != HOOK);
        if is_on {
            wanted.push(LifecycleHook { name: HOOK.to_owned(), owner: OWNER.to_owned() });
        }
        let patch = json!({
            "metadata": {"resourceVersion": machine.metadata.resource_version},
            "spec": {"lifecycleHooks": {"preDrain": wanted}},
        });
        let name = machine.name_any();
        self.machines().patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
}

/// The mirror of a static pod, as a kubelet makes it.
fn static_pod(name: &str, node: &Node, health: SocketAddr) -> anyhow::Result<Pod> {
    let pod = json!({
        "metadata": {
            "name": name,
            "labels": {"app": "etcd", "etcd": "true", "k8s-app": "etcd"},
            "annotations": {
                "kubernetes.io/config.mirror": "testbed",
                "kubernetes.io/config.source": "file",
            },
            "ownerReferences": [{
                "apiVersion": "v1",
                "kind": "Node",
                "name": node.name_any(),
                "uid": node.uid(),
                "controller": true,
            }],
        },
        "spec": {
            "nodeName": node.name_any(),
            "hostNetwork": true,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "containers": [{
                "name": "etcd",
                "image": "example.invalid/etcd:1",
                "readinessProbe": {"httpGet": {
                    "host": health.ip(),
                    "port": health.port(),
                    "path": format!("members/{}/health", node.name_any()),
                }},
            }],
        },
    });
    serde_json::from_value(pod).context("cannot write the pod of etcd")
}

fn node_of(machine: &Machine) -> Option<&str> {
    machine.status.as_ref()?.node_ref.as_ref()?.name.as_deref()
}

fn has_hook(machine: &Machine) -> bool {
    let hooks = machine.spec.lifecycle_hooks.as_ref();
    hooks.is_some_and(|hooks| hooks.pre_drain.iter().any(|hook| hook.name == HOOK))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}
