//! `machinist-operator termination-handler`: a process on every spot machine that tells, on its own
//! Node, what the cloud announces about the instance.
//!
//! It never ends by itself, whatever the metadata service or the API server answer: a handler that
//! waits for its own restart may sleep through a notice of two minutes. It writes nothing while
//! nothing changes, and reads its Node only when there may be something to write.

pub mod args;
pub mod metadata;
#[cfg(test)]
mod tests;
mod trouble;

use std::{convert::Infallible, time::Duration};

use anyhow::Context as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use machinist_core::termination::{Annotation, Change, Observed, decide};
use tokio::time::Instant;

use self::{
    args::TerminationArgs,
    metadata::{Look, Metadata},
    trouble::{News, Trouble},
};
use crate::{client, engine::env::Env, metrics::Metrics};

/// How long to wait, at most, before something that failed is tried again. A notice lasts two
/// minutes, and whoever is to go needs most of them.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// The first pause after the API server failed.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The share of a pause that chance takes away, so that a thousand machines do not ask together.
const JITTER: f64 = 0.2;
/// How long reading and writing the Node may take.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(15);
/// How often a write is repeated at once when somebody else wrote in between.
const CONFLICTS_MAX: u32 = 8;
/// How often a Node that has nothing new to say is looked at all the same: somebody may have taken
/// away what we wrote.
const RECHECK: Duration = Duration::from_secs(300);

/// Makes a client. It is asked again after every failure, because the kubelet's certificate is
/// replaced every now and then, and a client keeps the one that it read.
type Connect = Box<dyn Fn() -> BoxFuture<'static, anyhow::Result<Client>> + Send + Sync>;

/// Runs until it is told to stop.
///
/// # Errors
/// Fails when the operating system gives no randomness, and for no other reason.
pub async fn run(args: TerminationArgs, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
    let env = Env::system()?;
    let poll = Duration::from_secs(args.poll_interval_seconds.into());
    tracing::info!(
        node = args.node_name,
        namespace = args.namespace,
        poll_seconds = poll.as_secs(),
        "watching for the end of this instance"
    );
    let metadata = Metadata::new(args.metadata_endpoint, env.clone());
    let metrics = Metrics::new();
    let connect: Connect = Box::new(move || {
        let (kubeconfig, metrics) = (args.kubeconfig.clone(), metrics.clone());
        Box::pin(async move { client::connect(kubeconfig.as_deref(), &metrics).await })
    });
    let mut handler = Handler::new(args.node_name, poll, env, metadata, connect);
    tokio::select! {
        biased;
        () = shutdown => Ok(()),
        never = handler.watch() => match never {},
    }
}

struct Handler {
    node: String,
    poll: Duration,
    env: Env,
    metadata: Metadata,
    metadata_trouble: Trouble,
    connect: Connect,
    client: Option<Client>,
    api_trouble: Trouble,
    /// What the Node was last made to say, and when that was looked at.
    published: Option<(Observed, Instant)>,
}

impl Handler {
    fn new(node: String, poll: Duration, env: Env, metadata: Metadata, connect: Connect) -> Self {
        Self {
            node,
            poll,
            env,
            metadata,
            metadata_trouble: Trouble::default(),
            connect,
            client: None,
            api_trouble: Trouble::default(),
            published: None,
        }
    }

    async fn watch(&mut self) -> Infallible {
        loop {
            let pause = self.round().await;
            self.env.sleep(self.env.jitter(pause, JITTER)).await;
        }
    }

    /// One look, and what follows from it. Returns how long to wait before the next.
    async fn round(&mut self) -> Duration {
        let look = self.metadata.look().await;
        self.note_metadata(&look);
        let is_blind = look.observed.is_unknown();
        if !is_blind && self.is_due(&look.observed) {
            match self.publish(&look.observed).await {
                Ok(()) => self.note_published(look.observed),
                Err(error) => self.note_api_failure(&error),
            }
        }
        let metadata_pause = self.metadata_trouble.pause(self.poll, LONGEST_PAUSE);
        // One question that fails does not make the others rarer.
        let metadata_pause = metadata_pause.filter(|_| is_blind);
        self.api_trouble.pause(FIRST_PAUSE, LONGEST_PAUSE).or(metadata_pause).unwrap_or(self.poll)
    }

    /// Whether the Node may have to say something else than it does.
    fn is_due(&self, observed: &Observed) -> bool {
        let Some((published, at)) = &self.published else { return true };
        // In its last two minutes nothing may take the condition away again.
        observed.is_terminating()
            || observed.clone().after(published.clone()) != *published
            || self.env.instant().duration_since(*at) >= RECHECK
    }

    async fn publish(&mut self, observed: &Observed) -> anyhow::Result<()> {
        let client = match &self.client {
            Some(client) => client.clone(),
            None => self.client.insert((self.connect)().await?).clone(),
        };
        let published = tokio::time::timeout(PUBLISH_TIMEOUT, self.write(client, observed)).await;
        published
            .with_context(|| format!("the API server did not answer within {PUBLISH_TIMEOUT:?}"))?
    }

    async fn write(&self, client: Client, observed: &Observed) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(client);
        for _ in 0..CONFLICTS_MAX {
            let node = nodes.get(&self.node).await.context("failed to read the Node")?;
            let Some(change) = decide(observed, &node, self.env.now()) else { return Ok(()) };
            let patch = Patch::Strategic(change.patch(&node.uid().unwrap_or_default()));
            match nodes.patch_status(&self.node, &PatchParams::default(), &patch).await {
                Ok(_) => {
                    tell(&self.node, &change);
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    tracing::debug!(node = self.node, "the Node was changed by somebody else");
                }
                Err(error) => return Err(error).context("failed to write the Node's status"),
            }
        }
        anyhow::bail!("somebody else changed the Node {CONFLICTS_MAX} times in a row")
    }

    fn note_metadata(&mut self, look: &Look) {
        let news = if look.troubles.is_empty() {
            self.metadata_trouble.succeeded()
        } else {
            self.metadata_trouble.failed()
        };
        match news {
            News::None => {}
            News::Began => {
                let errors: Vec<String> = look.troubles.iter().map(ToString::to_string).collect();
                let error = errors.join("; ");
                tracing::warn!(error, "the metadata service cannot be asked; trying again");
            }
            News::Ended { failures } => {
                tracing::info!(failures, "the metadata service answers again");
            }
        }
    }

    fn note_published(&mut self, observed: Observed) {
        let (earlier, _) = self.published.take().unzip();
        let known = observed.after(earlier.unwrap_or_default());
        self.published = Some((known, self.env.instant()));
        if let News::Ended { failures } = self.api_trouble.succeeded() {
            tracing::info!(node = self.node, failures, "the Node can be reached again");
        }
    }

    fn note_api_failure(&mut self, error: &anyhow::Error) {
        self.client = None;
        if self.api_trouble.failed() == News::Began {
            let error = format!("{error:#}");
            tracing::warn!(node = self.node, error, "the Node cannot be told; trying again");
        }
    }
}

fn tell(node: &str, change: &Change) {
    for condition in &change.conditions {
        tracing::info!(
            node,
            condition = condition.type_,
            status = condition.status,
            reason = condition.reason,
            message = condition.message,
            "told"
        );
    }
    match &change.scheduled_events {
        Annotation::Keep => {}
        Annotation::Set(events) => tracing::info!(node, events, "scheduled events told"),
        Annotation::Remove => tracing::info!(node, "no scheduled events any more"),
    }
}
