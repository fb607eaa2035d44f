//! An API server small enough for unit tests: objects in memory, resourceVersions, lists, watches and merge patches.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::body::Body as ResponseBody;
use futures::StreamExt;
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::{client, metrics::Metrics};

/// A shared, in-memory API server.
#[derive(Clone)]
pub(crate) struct FakeServer {
    state: Arc<Mutex<State>>,
}

pub(crate) struct State {
    /// Whether a patch must name the version that is there; tests that bring their own versions
    /// do without.
    pub(crate) checks_patches: bool,
    /// Objects by the path of their collection and their name. Cluster-wide collections see all namespaces.
    pub(crate) objects: BTreeMap<(String, String), Value>,
    pub(crate) version: u64,
    pub(crate) log: Vec<String>,
    /// How requests go wrong, by method and path.
    fault: FaultPlan,
    /// Events that watches do not get to see.
    pub(crate) hide_events: bool,
    events: broadcast::Sender<(String, Value)>,
}

type FaultPlan = Box<dyn Fn(&Method, &str) -> Fault + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// An answer with this code, and no effect.
    Code(u16),
    /// Neither answer nor effect.
    Silence,
}

impl FakeServer {
    pub(crate) fn new() -> Self {
        let state = State {
            checks_patches: false,
            objects: BTreeMap::new(),
            version: 100,
            log: Vec::new(),
            fault: Box::new(|_, _| Fault::None),
            hide_events: false,
            events: broadcast::Sender::new(1024),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        client::with_service(service, "default", &Metrics::new())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn fail(&self, fault: impl Fn(&Method, &str) -> Fault + Send + 'static) {
        self.lock().fault = Box::new(fault);
    }

    /// Ends all open watches; clients come back from where they were.
    pub(crate) fn cut_watches(&self) {
        self.lock().events = broadcast::Sender::new(1024);
    }

    /// Writes an object as somebody else would.
    pub(crate) fn put(&self, collection: &str, mut object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let mut state = self.lock();
        let key = (collection.to_owned(), name);
        if object["metadata"]["uid"].is_null() {
            let known = state.objects.get(&key).map(|known| known["metadata"]["uid"].clone());
            let fresh = json!(format!("uid-{}", state.version));
            object["metadata"]["uid"] = known.unwrap_or(fresh);
        }
        let kind = if state.objects.contains_key(&key) { "MODIFIED" } else { "ADDED" };
        state.store(key, object, kind);
    }

    /// Deletes an object as somebody else would.
    pub(crate) fn delete(&self, collection: &str, name: &str) {
        let mut state = self.lock();
        let mut object = state.objects.remove(&(collection.to_owned(), name.to_owned())).unwrap();
        state.version += 1;
        object["metadata"]["resourceVersion"] = json!(state.version.to_string());
        state.emit(collection, "DELETED", object);
    }

    async fn answer(&self, request: Request<Body>) -> Response<ResponseBody> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().to_owned();
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let fault = {
            let mut state = self.lock();
            state.log.push(format!("{} {path}", parts.method));
            (state.fault)(&parts.method, &path)
        };
        match fault {
            Fault::None => {}
            Fault::Code(code) => return failure(code, "injected"),
            Fault::Silence => std::future::pending().await,
        }
        let body = body.collect_bytes().await.unwrap();
        let body = || serde_json::from_slice::<Value>(&body).unwrap();
        let mut state = self.lock();
        // Either a collection or an object in one.
        let (parent, name) = path.rsplit_once('/').unwrap();
        let mut item = (parent.to_owned(), name.to_owned());
        // A status is written as a part of its object, unless a test has put it apart.
        if matches!(name, "status" | "approval") && !state.objects.contains_key(&item) {
            let (collection, name) = parent.rsplit_once('/').unwrap();
            item = (collection.to_owned(), name.to_owned());
        }
        match parts.method {
            Method::GET if query.contains("watch=true") => Response::new(state.watch(path, &query)),
            Method::GET => match state.objects.get(&item) {
                Some(object) => success(object),
                None if state.is_collection(&path) => success(&state.list(&path, &query)),
                None => not_found(&item.1),
            },
            Method::POST => {
                let mut object = body();
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                let key = (path, name);
                if state.objects.contains_key(&key) {
                    return failure(409, "AlreadyExists");
                }
                object["metadata"]["uid"] = json!(format!("uid-{}", state.version));
                success(&state.store(key, object, "ADDED"))
            }
            Method::PUT => {
                let object = body();
                let Some(known) = state.objects.get(&item) else { return failure(404, "NotFound") };
                let expected = &object["metadata"]["resourceVersion"];
                if !expected.is_null() && *expected != known["metadata"]["resourceVersion"] {
                    return failure(409, "Conflict");
                }
                success(&state.store(item, object, "MODIFIED"))
            }
            Method::PATCH => {
                let Some(known) = state.objects.get(&item) else { return failure(404, "NotFound") };
                let patch = body();
                let expected = &patch["metadata"]["resourceVersion"];
                let is_other = *expected != known["metadata"]["resourceVersion"];
                if state.checks_patches && !expected.is_null() && is_other {
                    return failure(409, "Conflict");
                }
                let mut object = known.clone();
                merge(&mut object, patch);
                success(&state.store(item, object, "MODIFIED"))
            }
            Method::DELETE => match state.objects.remove(&item) {
                Some(object) => {
                    state.version += 1;
                    state.emit(&item.0, "DELETED", object);
                    success(&json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }))
                }
                None => failure(404, "NotFound"),
            },
            _ => failure(405, "MethodNotAllowed"),
        }
    }
}

impl State {
    fn store(&mut self, key: (String, String), mut object: Value, kind: &str) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.emit(&key.0, kind, object.clone());
        self.objects.insert(key, object.clone());
        object
    }

    fn emit(&self, collection: &str, kind: &str, object: Value) {
        if !self.hide_events {
            let event = json!({ "kind": kind, "object": object });
            self.events.send((collection.to_owned(), event)).ok();
        }
    }

    fn is_collection(&self, path: &str) -> bool {
        matches!(
            path.rsplit('/').next(),
            Some(
                "clusters"
                    | "configmaps"
                    | "daemonsets"
                    | "deployments"
                    | "events"
                    | "fooconfigs"
                    | "foomachines"
                    | "leases"
                    | "machinedeployments"
                    | "machinemaintenances"
                    | "machinepools"
                    | "machines"
                    | "machinesets"
                    | "maintenancepolicies"
                    | "metal3remediations"
                    | "nodes"
                    | "poddisruptionbudgets"
                    | "pods"
                    | "replicasets"
                    | "statefulsets"
                    | "volumeattachments"
            )
        )
    }

    /// Of selectors it knows the one by the Node of a pod.
    fn list(&self, path: &str, query: &str) -> Value {
        let node = query
            .split('&')
            .find_map(|parameter| parameter.strip_prefix("fieldSelector=spec.nodeName%3D"));
        let (group, plural) = path.rsplit_once('/').unwrap();
        let is_in = |parent: &str| {
            let of_namespace = parent
                .strip_prefix(&format!("{group}/namespaces/"))
                .and_then(|rest| rest.split_once('/'));
            parent == path || of_namespace.is_some_and(|(_, rest)| rest == plural)
        };
        let items: Vec<&Value> = self
            .objects
            .iter()
            .filter(|((parent, _), object)| {
                is_in(parent) && node.is_none_or(|node| object["spec"]["nodeName"] == node)
            })
            .map(|(_, object)| object)
            .collect();
        json!({
            "kind": "List",
            "apiVersion": "v1",
            "metadata": { "resourceVersion": self.version.to_string() },
            "items": items,
        })
    }

    /// Streams what happens from now on. A client that is behind is told that its version is too old.
    fn watch(&self, path: String, query: &str) -> ResponseBody {
        let from: u64 = query
            .split('&')
            .find_map(|parameter| parameter.strip_prefix("resourceVersion="))
            .and_then(|version| version.parse().ok())
            .unwrap_or_default();
        if from < self.version {
            let gone = json!({
                "type": "ERROR",
                "object": { "status": "Failure", "code": 410, "reason": "Expired", "message": "too old" },
            });
            return ResponseBody::from(format!("{gone}\n"));
        }
        let events = self.events.subscribe();
        let stream = futures::stream::unfold(events, |mut events| async {
            Some((events.recv().await.ok()?, events))
        });
        let lines = stream.filter_map(move |(collection, event)| {
            // The type comes before the object, as from a real server.
            let line = (collection == path).then(|| {
                format!("{{\"type\":{},\"object\":{}}}\n", event["kind"], event["object"])
            });
            async { line.map(Ok::<_, Infallible>) }
        });
        ResponseBody::from_stream(lines)
    }
}

fn success(object: &Value) -> Response<ResponseBody> {
    Response::new(ResponseBody::from(object.to_string()))
}

/// As the API server says that an object is not there, and not the kind.
fn not_found(name: &str) -> Response<ResponseBody> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": 404, "reason": "NotFound", "message": "NotFound", "details": { "name": name },
    });
    Response::builder().status(404).body(ResponseBody::from(status.to_string())).unwrap()
}

fn failure(code: u16, reason: &str) -> Response<ResponseBody> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": reason,
    });
    Response::builder().status(code).body(ResponseBody::from(status.to_string())).unwrap()
}

fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if !value.is_null() {
            merge(&mut target[key], value);
        } else if let Some(target) = target.as_object_mut() {
            target.remove(&key);
        }
    }
}
