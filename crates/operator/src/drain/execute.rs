//! Cordons, and evicts all pods of a pass side by side. A refused eviction is no failure, and
//! neither a refusal nor a failure keeps the other pods from being tried.

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, EvictParams, PostParams, Preconditions},
};
use machinist_core::{drain::Action, node};
use serde_json::json;

use super::memory::Memory;
use crate::{
    context::Context,
    engine::{
        env::Env,
        store::{ObjectKey, Store},
    },
    write::{self, Precondition},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Done,
    /// At least one eviction was refused.
    Refused,
}

/// How many evictions of one machine are under way at once.
const SIDE_BY_SIDE: usize = 20;

/// The cluster whose Node is emptied: this one, or a workload cluster.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub client: &'a Client,
    pub nodes: &'a Store<Node>,
    pub env: &'a Env,
}

impl<'a> Place<'a> {
    pub fn here(context: &'a Context) -> Self {
        Self { client: &context.client, nodes: &context.stores.nodes, env: &context.env }
    }
}

/// Carries out the cordons among the actions.
pub async fn cordon(place: Place<'_>, key: &ObjectKey, actions: &[Action]) -> anyhow::Result<()> {
    for action in actions {
        let Action::Cordon { node: name, uid } = action else { continue };
        let nodes = place.nodes;
        let Some(known) = nodes
            .get(&ObjectKey::cluster_wide(name.as_str()))
            .filter(|known| node::uid(known) == uid)
        else {
            continue;
        };
        let api = Api::<Node>::all(place.client.clone());
        let patch = json!({ "spec": { "unschedulable": true } });
        let written = write::object(&api, &*known, patch, Precondition::Observed).await?;
        tracing::info!(machine = %key, node = name, "cordoned");
        nodes.apply_written(written);
    }
    Ok(())
}

/// Carries out the evictions among the actions, and fails only after all were tried.
pub async fn evict(
    place: Place<'_>,
    memory: &Memory,
    key: &ObjectKey,
    actions: &[Action],
) -> anyhow::Result<Progress> {
    let evictions: Vec<_> =
        actions.iter().filter(|action| matches!(action, Action::Evict { .. })).collect();
    let mut progress = Progress::Done;
    let mut failures: Vec<anyhow::Error> = Vec::new();
    for batch in evictions.chunks(SIDE_BY_SIDE) {
        let results =
            join_all(batch.iter().map(|action| perform(place, memory, key, action))).await;
        for result in results {
            match result {
                Ok(Progress::Done) => {}
                Ok(Progress::Refused) => progress = Progress::Refused,
                Err(error) => failures.push(error),
            }
        }
    }
    let count = failures.len();
    match failures.into_iter().next() {
        None => Ok(progress),
        Some(first) => Err(first.context(format!("{count} evictions had no answer, the first"))),
    }
}

async fn perform(
    place: Place<'_>,
    memory: &Memory,
    key: &ObjectKey,
    action: &Action,
) -> anyhow::Result<Progress> {
    let Action::Evict { namespace, pod, uid, grace_period_seconds, budgets_seen } = action else {
        return Ok(Progress::Done);
    };
    let api = Api::<Pod>::namespaced(place.client.clone(), namespace);
    let grace = grace_period_seconds.and_then(|seconds| u32::try_from(seconds).ok());
    let parameters = EvictParams {
        delete_options: Some(DeleteParams {
            grace_period_seconds: grace,
            preconditions: Some(Preconditions { uid: Some(uid.clone()), resource_version: None }),
            ..Default::default()
        }),
        post_options: PostParams::default(),
    };
    match api.evict(pod, &parameters).await {
        Ok(_) => {
            tracing::info!(machine = %key, pod = format!("{namespace}/{pod}"), "evicted");
            Ok(Progress::Done)
        }
        // Gone, or already another pod of that name.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(Progress::Done),
        // A budget refuses with 429, two budgets for one pod with 500, a webhook or a namespace that
        // goes away with 403. Whatever it is, its words are for the one who waits for the drain.
        Err(kube::Error::Api(status)) => {
            let now = place.env.now();
            memory.change(key, |attempts| {
                attempts.refuse(uid, &words_of(&status), budgets_seen, now);
            });
            Ok(Progress::Refused)
        }
        Err(error) => {
            Err(anyhow::Error::new(error).context(format!("failed to evict pod {namespace}/{pod}")))
        }
    }
}

/// What the API server said, with the causes that it named: a budget and its numbers.
fn words_of(status: &kube::core::Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.map(|cause| cause.message.as_str()).filter(|words| !words.is_empty());
    std::iter::once(status.message.as_str()).chain(causes).collect::<Vec<_>>().join(" ")
}
