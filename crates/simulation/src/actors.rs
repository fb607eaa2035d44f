//! Who else lives in the cluster? Kubelets, the node lifecycle, whoever signs certificates, a scheduler
//! with workloads, etcd and its operator, the garbage collector, the providers of Cluster API, and a user.
//!
//! Each is a plain machine that looks at the truth and writes past all faults, so that only the
//! operator's own path is disturbed. One task plays them all: it wakes on changes and at the time that
//! one of them asked for.

mod etcd;
mod garbage;
mod kubelet;
pub(crate) mod maintainer;
mod provider;
mod signer;
mod stranger;
mod user;
mod workload;

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

pub use self::{
    etcd::Etcd,
    garbage::GarbageCollector,
    kubelet::{Disturbance, KubeletSettings, Kubelets},
    maintainer::MaintenanceAct,
    provider::{Provider, ProviderSettings},
    signer::Signer,
    stranger::{Stranger, Strangers},
    user::{Act, ConsoleVerb, User},
    workload::{App, Workloads},
};
use crate::api_server::text_at;
use crate::{
    api_server::{Answer, ApiRequest, ApiServer, Failure, KindRef, ObjectRef, Subresource, Verb},
    cloud::SimulatedCloud,
    hub::Hub,
};

/// After a change the actors look this much later, as controllers behind a watch do.
const REACTION: Duration = Duration::from_millis(50);

/// What actors see and act on.
#[derive(Clone)]
pub struct Scene {
    pub hub: Arc<Hub>,
    pub server: ApiServer,
    pub cloud: SimulatedCloud,
}

/// Somebody who lives in the cluster.
pub trait Actor: Send {
    /// Does what is to be done now, and says when it wants to look again at the latest.
    fn step(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp>;
}

/// Plays all actors for as long as the world lasts.
///
/// # Errors
/// Never fails; it returns a result to fit the supervisor.
pub async fn play(scene: Scene, mut actors: Vec<Box<dyn Actor>>) -> anyhow::Result<()> {
    loop {
        let now = scene.hub.clock.now();
        let next = actors.iter_mut().filter_map(|actor| actor.step(&scene, now)).min();
        let changed = scene.hub.changed.notified();
        match next {
            Some(at) => {
                let at = scene.hub.clock.instant(at);
                tokio::select! {
                    biased;
                    () = changed => tokio::time::sleep(REACTION).await,
                    () = tokio::time::sleep_until(at) => {}
                }
            }
            None => changed.await,
        }
    }
}

impl Scene {
    /// The objects of a kind, as they are stored.
    #[must_use]
    pub fn objects(&self, group: &str, plural: &str) -> Vec<ObjectRef> {
        KindRef::find(group, plural).map(|kind| self.server.objects(kind)).unwrap_or_default()
    }

    /// Creates an object; what kind it is need not be said in it.
    pub fn create(
        &self,
        who: &str,
        group: &str,
        plural: &str,
        mut body: Value,
    ) -> Option<ObjectRef> {
        if let Some(kind) = KindRef::find(group, plural) {
            body["apiVersion"] = Value::from(kind.kind.api_version());
            body["kind"] = Value::from(kind.kind.kind);
        }
        let namespace = text(&body, "/metadata/namespace").to_owned();
        self.send(who, Verb::Create, Subresource::None, (group, plural), (&namespace, ""), body)
    }

    pub fn bind(&self, who: &str, namespace: &str, pod: &str, node: &str) {
        let body = serde_json::json!({
            "metadata": { "name": pod, "namespace": namespace },
            "target": { "kind": "Node", "name": node },
        });
        let at = (namespace, pod);
        self.send(who, Verb::Create, Subresource::Binding, ("", "pods"), at, body);
    }

    pub fn patch(
        &self,
        who: &str,
        subresource: Subresource,
        kind: (&str, &str),
        at: (&str, &str),
        body: Value,
    ) -> Option<ObjectRef> {
        self.send(who, Verb::MergePatch, subresource, kind, at, body)
    }

    pub fn delete(&self, who: &str, kind: (&str, &str), at: (&str, &str), options: Value) {
        self.send(who, Verb::Delete, Subresource::None, kind, at, options);
    }

    /// What the server refuses is told in the timeline; an actor goes on.
    fn send(
        &self,
        who: &str,
        verb: Verb,
        subresource: Subresource,
        (group, plural): (&str, &str),
        (namespace, name): (&str, &str),
        body: Value,
    ) -> Option<ObjectRef> {
        let answer = self.ask(who, verb, subresource, (group, plural), (namespace, name), body);
        match answer {
            Ok(Answer::Object { object, .. }) => Some(object),
            Ok(_) => None,
            Err(failure) => {
                self.hub.note("", format!("{who}: {verb:?} {plural}/{name} refused: {failure}"));
                None
            }
        }
    }

    fn ask(
        &self,
        who: &str,
        verb: Verb,
        subresource: Subresource,
        (group, plural): (&str, &str),
        (namespace, name): (&str, &str),
        body: Value,
    ) -> Result<Answer, Failure> {
        let kind = KindRef::find(group, plural).ok_or_else(Failure::no_such_path)?;
        let request = ApiRequest::new(verb, kind, namespace, name);
        self.server.request(who, &request.at(subresource).with_body(body))
    }
}

/// The text at a path, or nothing.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    text_at(value, pointer)
}

/// A time of an object.
pub(crate) fn time(value: &Value, pointer: &str) -> Option<Timestamp> {
    text(value, pointer).parse().ok()
}

pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// The earlier of two times, where there are any.
pub(crate) fn earliest(known: &mut Option<Timestamp>, new: Timestamp) {
    *known = Some(known.map_or(new, |known| known.min(new)));
}
