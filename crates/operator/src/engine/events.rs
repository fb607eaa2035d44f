//! How do people learn, on the object itself, what was done and why?
//!
//! Records Kubernetes Events (core/v1, which every tool reads). Recording never waits and never fails: it puts the
//! event on a bounded queue whose overflow is counted. The same event (object, reason, message) within ten minutes is
//! one Event whose count grows, written at most once a minute.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{backoff::Backoff, env::Env};
use crate::metrics::Metrics;

/// Events waiting to be written. A drain of hundreds of machines records a few for each.
const QUEUE_LENGTH: usize = 2048;

/// How long the same event is counted instead of written anew, as in client-go.
const AGGREGATION_WINDOW: Duration = Duration::from_secs(10 * 60);

/// The least time between two writes for the same event.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);

/// How many different events are remembered for counting. Beyond it the oldest are written anew.
const REMEMBERED: usize = 4096;

/// The API server refuses longer messages.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Room for the object's name in the name of an Event: 253, a dot and 16 digits less.
const NAME_BYTES_MAX: usize = 236;

const ATTEMPTS: u32 = 3;
const RETRY: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(10) };
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the last events may take when the process ends.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventTarget {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty for cluster-wide objects.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

impl EventTarget {
    /// Returns the target for an object.
    #[must_use]
    pub fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        let metadata = object.meta();
        Self {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
        }
    }
}

/// Whether an event is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// Something happened as it should.
    Normal,
    /// Something needs attention.
    Warning,
}

impl EventType {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Takes events from one component. Clones are cheap.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    queue: mpsc::Sender<Recorded>,
    component: String,
    metrics: Metrics,
}

/// What makes two events the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Recorded {
    target: EventTarget,
    component: String,
    event_type: EventType,
    reason: String,
    action: String,
    message: String,
}

impl EventRecorder {
    /// Makes a recorder and the task that writes what it records.
    #[must_use]
    pub fn new(
        client: &Client,
        env: &Env,
        metrics: &Metrics,
        component: &str,
    ) -> (Self, EventWriter) {
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        let writer = EventWriter {
            client: client.clone(),
            env: env.clone(),
            metrics: metrics.clone(),
            queue: receiver,
            known: BTreeMap::new(),
            order: VecDeque::new(),
            last_stamp: 0,
        };
        (Self { queue: sender, component: component.to_owned(), metrics: metrics.clone() }, writer)
    }

    /// Returns a recorder whose events come from another component.
    #[must_use]
    pub fn for_component(&self, component: &str) -> Self {
        Self { component: component.to_owned(), ..self.clone() }
    }

    /// Records an event. Never waits; when the queue is full the event is dropped and counted.
    pub fn record(
        &self,
        target: &EventTarget,
        event_type: EventType,
        reason: &str,
        action: &str,
        message: &str,
    ) {
        let recorded = Recorded {
            target: target.clone(),
            component: self.component.clone(),
            event_type,
            reason: reason.to_owned(),
            action: action.to_owned(),
            message: truncated(message, MESSAGE_BYTES_MAX).to_owned(),
        };
        if self.queue.try_send(recorded).is_err() {
            self.metrics.count_dropped_event();
        }
    }
}

/// Writes recorded events to the API server.
pub struct EventWriter {
    client: Client,
    env: Env,
    metrics: Metrics,
    queue: mpsc::Receiver<Recorded>,
    known: BTreeMap<Recorded, Known>,
    /// The known events by the time of their first occurrence, for forgetting the oldest.
    order: VecDeque<Recorded>,
    /// The last number used in a name; the next is larger even if the clock stands still.
    last_stamp: u128,
}

/// An event that was written and may be counted up.
struct Known {
    name: String,
    count: i32,
    written_count: i32,
    last_seen: Timestamp,
    first_seen_at: Instant,
    last_write: Instant,
}

impl EventWriter {
    /// Writes events until `stopping` is cancelled, then what is left, as far as a few seconds allow.
    ///
    /// # Errors
    /// Never fails; it returns a result to fit the supervisor.
    pub async fn run(mut self, stopping: CancellationToken) -> anyhow::Result<()> {
        loop {
            let next_write = self.next_write();
            tokio::select! {
                biased;
                recorded = self.queue.recv() => match recorded {
                    Some(recorded) => self.take(recorded).await,
                    // Every recorder is gone: nothing can come any more.
                    None => break,
                },
                () = stopping.cancelled() => break,
                () = sleep_until(next_write.unwrap_or_else(far_future)), if next_write.is_some() => {
                    self.write_due(next_write).await;
                }
            }
        }
        if timeout(FINISH_TIMEOUT, self.finish()).await.is_err() {
            tracing::warn!("the last events could not be written in time");
        }
        Ok(())
    }

    /// Writes what was recorded and what was counted, without waiting for its time.
    async fn finish(&mut self) {
        while let Ok(recorded) = self.queue.try_recv() {
            self.take(recorded).await;
        }
        while let Some(next_write) = self.next_write() {
            self.write_due(Some(next_write)).await;
        }
    }

    async fn take(&mut self, recorded: Recorded) {
        self.forget_old();
        if let Some(known) = self.known.get_mut(&recorded) {
            known.count = known.count.saturating_add(1);
            known.last_seen = self.env.now();
            return;
        }
        let now = self.env.now();
        let Some(name) = self.create(&recorded, now).await else {
            self.metrics.count_dropped_event();
            return;
        };
        let at = self.env.instant();
        let known = Known {
            name,
            count: 1,
            written_count: 1,
            last_seen: now,
            first_seen_at: at,
            last_write: at,
        };
        self.known.insert(recorded.clone(), known);
        self.order.push_back(recorded);
    }

    /// Writes the counts whose time has come.
    async fn write_due(&mut self, next_write: Option<Instant>) {
        let due = self.known.iter().filter(|(_, known)| known.next_write() <= next_write);
        let due: Vec<Recorded> = due
            .filter(|(_, known)| known.next_write().is_some())
            .map(|(key, _)| key.clone())
            .collect();
        for recorded in due {
            self.write_count(&recorded).await;
        }
    }

    async fn write_count(&mut self, recorded: &Recorded) {
        let Some(known) = self.known.get_mut(recorded) else { return };
        // Whatever comes of it, the next write is a minute away.
        known.last_write = self.env.instant();
        known.written_count = known.count;
        let (name, count) = (known.name.clone(), known.count);
        let patch = serde_json::json!({ "count": count, "lastTimestamp": Time(known.last_seen) });
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace_of(&recorded.target));
        let written = self.write(|| api.patch(&name, &parameters, &patch)).await;
        match written {
            Ok(_) => {}
            Err(WriteError::Api(404)) => {
                // The API server forgot the Event (they expire after an hour): the next one is a new one.
                self.known.remove(recorded);
                self.order.retain(|other| other != recorded);
            }
            Err(error) => {
                tracing::debug!(event = name, %error, "failed to update an event");
                self.metrics.count_dropped_event();
            }
        }
    }

    async fn create(&mut self, recorded: &Recorded, now: Timestamp) -> Option<String> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace_of(&recorded.target));
        let parameters = PostParams::default();
        // A second name, in case another process took the first one.
        for _ in 0..2 {
            let name = self.next_name(&recorded.target.name, now);
            let event = event_of(recorded, &name, now);
            match self.write(|| api.create(&parameters, &event)).await {
                Ok(_) => return Some(name),
                Err(WriteError::Api(409)) => {}
                Err(error) => {
                    let Recorded { target, reason, .. } = recorded;
                    tracing::debug!(kind = target.kind, name = target.name, reason, %error, "failed to write an event");
                    return None;
                }
            }
        }
        None
    }

    /// Writes with a few attempts, each with a deadline.
    async fn write<F, T>(&self, mut attempt: impl FnMut() -> F) -> Result<T, WriteError>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut failures = 0;
        loop {
            let error = match timeout(WRITE_TIMEOUT, attempt()).await {
                Ok(Ok(written)) => return Ok(written),
                Ok(Err(kube::Error::Api(status)))
                    if (400..500).contains(&status.code) && status.code != 429 =>
                {
                    return Err(WriteError::Api(status.code));
                }
                Ok(Err(error)) => WriteError::Other(error.to_string()),
                Err(_) => WriteError::Other("no answer in time".to_owned()),
            };
            failures += 1;
            if failures >= ATTEMPTS {
                return Err(error);
            }
            self.env.sleep(RETRY.delay(failures, &self.env)).await;
        }
    }

    fn next_name(&mut self, object: &str, now: Timestamp) -> String {
        let nanoseconds = u128::try_from(now.as_nanosecond()).unwrap_or_default();
        self.last_stamp = nanoseconds.max(self.last_stamp + 1);
        let object = truncated(object, NAME_BYTES_MAX).trim_end_matches(['.', '-']);
        format!("{object}.{:x}", self.last_stamp)
    }

    fn next_write(&self) -> Option<Instant> {
        self.known.values().filter_map(Known::next_write).min()
    }

    /// Forgets events whose window is over and that have nothing left to write, and the oldest when there are too many.
    fn forget_old(&mut self) {
        let now = self.env.instant();
        while let Some(oldest) = self.order.front() {
            let over = self.known.get(oldest).is_none_or(|known| {
                now.duration_since(known.first_seen_at) >= AGGREGATION_WINDOW
                    && known.count == known.written_count
            });
            if !over && self.order.len() < REMEMBERED {
                break;
            }
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }
}

impl Known {
    /// When the count may be written, if it must be.
    fn next_write(&self) -> Option<Instant> {
        (self.count > self.written_count).then(|| self.last_write + WRITE_INTERVAL)
    }
}

#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("refused with code {0}")]
    Api(u16),
    #[error("{0}")]
    Other(String),
}

/// Events about cluster-wide objects live in the namespace `default`, where every tool looks for them.
fn namespace_of(target: &EventTarget) -> &str {
    if target.namespace.is_empty() { "default" } else { &target.namespace }
}

fn event_of(recorded: &Recorded, name: &str, now: Timestamp) -> Event {
    let Recorded { target, component, event_type, reason, action, message } = recorded.clone();
    let time = Time(now);
    Event {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace_of(&target).to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(target.api_version),
            kind: Some(target.kind),
            namespace: Some(target.namespace).filter(|namespace| !namespace.is_empty()),
            name: Some(target.name),
            uid: Some(target.uid),
            ..ObjectReference::default()
        },
        type_: Some(event_type.as_str().to_owned()),
        reason: Some(reason),
        action: Some(action).filter(|action| !action.is_empty()),
        message: Some(message),
        count: Some(1),
        first_timestamp: Some(time.clone()),
        last_timestamp: Some(time),
        source: Some(EventSource { component: Some(component.clone()), host: None }),
        reporting_component: Some(component),
        ..Event::default()
    }
}

/// Cuts text to a number of bytes, between characters.
fn truncated(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

/// A time that never comes, for a timer that is switched off.
fn far_future() -> Instant {
    Instant::now() + Duration::from_secs(86_400 * 365)
}

#[cfg(test)]
mod tests;
