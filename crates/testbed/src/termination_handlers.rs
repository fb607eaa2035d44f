//! Who watches for the end of a spot instance from inside it?
//!
//! In life a pod of a DaemonSet does, on every Node that is labelled interruptible; but the pods of
//! these machines run nothing. So the handler's real program runs beside the cluster, one for each
//! such Node, with that Node's kubelet credentials and its instance's metadata service, for as long
//! as the instance is up.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use machinist_api::names::{DEFAULT_NAMESPACE, label};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::guard::Guard;
use crate::instances::{Instances, Power};
use crate::kubelet::kubeconfig_of;
use crate::operator_process;
use crate::process::{Launch, Process};

/// How long a handler that ended by itself stays away, as a restarted container does.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct TerminationHandlerConfig {
    /// The operator's program, which is the handler's too.
    pub program: PathBuf,
    /// Between two looks at the metadata service; whole seconds.
    pub poll_interval: Duration,
}

impl TerminationHandlerConfig {
    /// With the operator's program, where it is known, and the interval of the real DaemonSet.
    #[must_use]
    pub fn find() -> Option<Self> {
        let program = operator_process::find_program().ok()?;
        Some(Self { program, poll_interval: Duration::from_secs(5) })
    }
}

/// What all handlers share.
#[derive(Clone)]
pub(crate) struct TerminationHandlers {
    pub config: TerminationHandlerConfig,
    pub guard: Guard,
    pub admin: Client,
    pub instances: watch::Receiver<Instances>,
    /// The URL of an instance's metadata service, but for its id.
    pub metadata: String,
    /// The kubelets' credentials.
    pub kubelets: PathBuf,
    pub home: PathBuf,
    pub log_folder: PathBuf,
}

/// A handler that runs, and for which boot of its instance: a reboot ends it with everything else.
struct Running {
    boot: u64,
    task: AbortHandle,
}

impl TerminationHandlers {
    /// Runs the handlers until dropped.
    pub(crate) async fn run(mut self) {
        let nodes: Api<Node> = Api::all(self.admin.clone());
        let interruptible = watcher::Config::default().labels(label::INTERRUPTIBLE);
        let mut events = pin!(watcher(nodes, interruptible).default_backoff());
        let mut joined = Joined::default();
        let mut running: BTreeMap<String, Running> = BTreeMap::new();
        // Owns the handlers: they end with this.
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                event = events.next() => match event {
                    Some(Ok(event)) => joined.apply(event),
                    Some(Err(error)) => tracing::debug!("watch of interruptible nodes: {error}"),
                    None => return,
                },
                changed = self.instances.changed() => if changed.is_err() { return },
            }
            let wanted = self.wanted(&joined.nodes);
            running.retain(|id, handler| {
                let stays = wanted.get(id).is_some_and(|(_, boot)| *boot == handler.boot);
                if !stays {
                    handler.task.abort();
                }
                stays
            });
            for (id, (node, boot)) in wanted {
                running.entry(id.clone()).or_insert_with(|| {
                    let task = tasks.spawn(self.clone().keep(id, node));
                    Running { boot, task }
                });
            }
            while tasks.try_join_next().is_some() {}
        }
    }

    /// The instances that are up and have joined as interruptible Nodes, with their Node and boot.
    fn wanted(&mut self, nodes: &BTreeMap<String, String>) -> BTreeMap<String, (String, u64)> {
        let instances = self.instances.borrow_and_update();
        let up = nodes.iter().filter_map(|(name, id)| match instances.get(id)?.power {
            Power::On { boot } => Some((id.clone(), (name.clone(), boot))),
            _ => None,
        });
        up.collect()
    }

    /// Keeps one handler running; dropping this kills it.
    async fn keep(self, instance: String, node: String) {
        loop {
            match Process::start(&self.guard, self.launch(&instance, &node)).await {
                Ok(process) => {
                    process.wait().await;
                    tracing::warn!(node, instance, "a termination handler ended by itself");
                }
                Err(error) => tracing::warn!(node, instance, "no termination handler: {error}"),
            }
            tokio::time::sleep(RESTART_PAUSE).await;
        }
    }

    /// What the DaemonSet's pod runs on that Node.
    fn launch(&self, instance: &str, node: &str) -> Launch {
        let arguments = [
            "termination-handler".to_owned(),
            "--logtostderr=true".to_owned(),
            "--v=3".to_owned(),
            format!("--node-name={node}"),
            format!("--namespace={DEFAULT_NAMESPACE}"),
            format!("--poll-interval-seconds={}", self.config.poll_interval.as_secs().max(1)),
            format!("--metadata-endpoint={}{instance}", self.metadata),
        ];
        let kubeconfig = kubeconfig_of(&self.kubelets, node);
        Launch {
            name: format!("termination-handler-{instance}"),
            program: self.config.program.clone(),
            arguments: arguments.into_iter().map(OsString::from).collect(),
            environment: vec![("KUBECONFIG".to_owned(), kubeconfig.into())],
            home: self.home.clone(),
            log_folder: self.log_folder.clone(),
        }
    }
}

/// The interruptible Nodes, with their instances' ids.
#[derive(Default)]
struct Joined {
    nodes: BTreeMap<String, String>,
    /// Those of a list that has not come to its end.
    listed: BTreeMap<String, String>,
}

impl Joined {
    fn apply(&mut self, event: watcher::Event<Node>) {
        match event {
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply(node) => {
                self.listed.extend(entry(&node));
            }
            watcher::Event::InitDone => self.nodes = std::mem::take(&mut self.listed),
            watcher::Event::Apply(node) => {
                self.nodes.extend(entry(&node));
            }
            watcher::Event::Delete(node) => {
                self.nodes.remove(&node.name_any());
            }
        }
    }
}

fn entry(node: &Node) -> Option<(String, String)> {
    let provider_id = node.spec.as_ref()?.provider_id.as_deref()?;
    let (_, instance) = provider_id.rsplit_once('/')?;
    Some((node.name_any(), instance.to_owned()))
}
