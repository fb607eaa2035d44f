//! What did a pool and a workload go through? Seen by watches, which show every state that was stored,
//! and not by looking now and then.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    pin::pin,
    sync::{Arc, Mutex},
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};

use crate::arena::Arena;

/// The fewest that there ever were since it began. Dropping it ends it.
pub struct Watched {
    fewest: Arc<Mutex<Option<usize>>>,
    story: Arc<Mutex<Vec<String>>>,
    synced: watch::Receiver<bool>,
    #[expect(dead_code, reason = "held for its Drop, which ends the task")]
    task: JoinSet<()>,
}

impl Watched {
    fn over<K>(api: Api<K>, labels: &str, counts: fn(&K) -> bool) -> Self
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let fewest: Arc<Mutex<Option<usize>>> = Arc::default();
        let story: Arc<Mutex<Vec<String>>> = Arc::default();
        let (has_synced, synced) = watch::channel(false);
        let config = watcher::Config::default().labels(labels);
        let (lowest, told) = (Arc::clone(&fewest), Arc::clone(&story));
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut stream = pin!(watcher(api, config).default_backoff());
            let mut known: BTreeMap<String, bool> = BTreeMap::new();
            let mut is_listed = false;
            while let Some(event) = stream.next().await {
                let news = match event {
                    Ok(watcher::Event::Init) => {
                        known.clear();
                        is_listed = false;
                        continue;
                    }
                    Ok(watcher::Event::InitDone) => {
                        is_listed = true;
                        "listed".to_owned()
                    }
                    Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                        let (name, works) = (object.name_any(), counts(&object));
                        if known.insert(name.clone(), works) == Some(works) {
                            continue;
                        }
                        format!("{name} {}", if works { "works" } else { "does not work" })
                    }
                    Ok(watcher::Event::Delete(object)) => {
                        known.remove(&object.name_any());
                        format!("{} is gone", object.name_any())
                    }
                    Err(error) => {
                        println!("watch: {error}");
                        continue;
                    }
                };
                if !is_listed {
                    continue;
                }
                let working = known.values().filter(|works| **works).count();
                told.lock().unwrap().push(format!("{working} work: {news}"));
                let mut lowest = lowest.lock().unwrap();
                *lowest = Some(lowest.map_or(working, |fewest| fewest.min(working)));
                has_synced.send_replace(true);
            }
        });
        Self { fewest, story, synced, task }
    }

    async fn synced(mut self) -> Self {
        self.synced.wait_for(|is_synced| *is_synced).await.unwrap();
        self
    }

    /// There were never fewer than this.
    pub fn assert_at_least(&self, least: usize) {
        let fewest = self.fewest.lock().unwrap().unwrap();
        let story = self.story.lock().unwrap().join("\n");
        assert!(fewest >= least, "there were {fewest}, and {least} were promised:\n{story}");
    }
}

impl Arena {
    /// Watches how many Nodes of a pool take pods.
    pub async fn watch_nodes(&self, pool: &str) -> Watched {
        let labels = format!("pool={}-{pool}", self.name);
        Watched::over(Api::<Node>::all(self.client.clone()), &labels, takes_pods).synced().await
    }

    /// Watches how many pods of a Deployment are ready.
    pub async fn watch_pods(&self, app: &str) -> Watched {
        Watched::over(self.api::<Pod>(), &format!("app={app}"), is_serving).synced().await
    }
}

/// Whether a Node is up and open for pods. One that was not heard of for a moment, because this machine
/// is busy, is up: one that is really down is said to be so by its kubelet, or is deleted.
fn takes_pods(node: &Node) -> bool {
    let is_cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_up = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status != "False");
    is_up && !is_cordoned && node.metadata.deletion_timestamp.is_none()
}

/// As a disruption budget counts: ready, and not on its way out.
fn is_serving(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    is_ready && pod.metadata.deletion_timestamp.is_none()
}
