//! Does the server serve the real client, also when things go wrong?

mod faults;
mod serving;

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use http::Request;
use jiff::{SignedDuration, Timestamp};
use kube::{Api, Client, api::DynamicObject, core::ApiResource};
use rand_chacha::{
    ChaCha12Rng,
    rand_core::{Rng, SeedableRng},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{ApiRequest, ApiServer, Config, KindRef, Subresource, Verb};

const NAMESPACE: &str = "default";

/// A server whose clock follows tokio's.
fn server_with(config: &Config) -> ApiServer {
    let origin = Instant::now();
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let clock = Arc::new(move || {
        start.checked_add(SignedDuration::try_from(origin.elapsed()).unwrap()).unwrap()
    });
    let mut random = ChaCha12Rng::seed_from_u64(7);
    ApiServer::new(config, clock, Box::new(move || random.next_u64()))
}

fn server() -> ApiServer {
    server_with(&Config::default())
}

fn machine_kind() -> KindRef {
    KindRef::find("machine.openshift.io", "machines").unwrap()
}

/// Writes a Machine as an actor does.
fn put_machine(server: &ApiServer, name: &str, label: &str) {
    let kind = machine_kind();
    let metadata = json!({ "name": name, "labels": { "l": label } });
    let request = if server.get_object(kind, NAMESPACE, name).is_some() {
        let patch = json!({ "metadata": metadata });
        ApiRequest::new(Verb::MergePatch, kind, NAMESPACE, name).with_body(patch)
    } else {
        let body = json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "metadata": metadata,
            "spec": {},
        });
        ApiRequest::new(Verb::Create, kind, NAMESPACE, "").with_body(body)
    };
    server.request("actor", &request.at(Subresource::None)).unwrap();
}

fn delete_machine(server: &ApiServer, name: &str) {
    let request = ApiRequest::new(Verb::Delete, machine_kind(), NAMESPACE, name);
    server.request("actor", &request).unwrap();
}

fn machines(client: &Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "machine.openshift.io".to_owned(),
        version: "v1beta1".to_owned(),
        api_version: "machine.openshift.io/v1beta1".to_owned(),
        kind: "Machine".to_owned(),
        plural: "machines".to_owned(),
    };
    Api::namespaced_with(client.clone(), NAMESPACE, &resource)
}

/// A raw watch of Machines from a version on.
async fn watch(client: &Client, query: &str) -> BoxStream<'static, Value> {
    use futures::AsyncBufReadExt;
    let uri = format!(
        "/apis/machine.openshift.io/v1beta1/namespaces/{NAMESPACE}/machines?watch=true{query}"
    );
    let request = Request::get(uri).body(Vec::new()).unwrap();
    let reader = client.request_stream(request).await.unwrap();
    let lines = Box::pin(reader).lines();
    lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).boxed()
}

/// "ADDED a x": the type, the name and the label of an event.
fn brief(event: &Value) -> String {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let parts = [text("/type"), text("/object/metadata/name"), text("/object/metadata/labels/l")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

async fn rest_of(stream: BoxStream<'static, Value>) -> Vec<String> {
    stream.map(|event| brief(&event)).collect().await
}

/// The next events of a stream.
async fn next_of(stream: &mut BoxStream<'static, Value>, count: usize) -> Vec<String> {
    let events: Vec<Value> = stream.by_ref().take(count).collect().await;
    events.iter().map(brief).collect()
}

/// All of a stream of results.
async fn all<T, E: std::fmt::Debug>(
    stream: impl futures::Stream<Item = Result<T, E>>,
    count: usize,
) -> Vec<T> {
    stream.take(count).try_collect().await.unwrap()
}
