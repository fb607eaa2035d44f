//! What does one of the two servers say, and what has it said before?

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{AsyncBufReadExt, StreamExt, TryStreamExt};
use http::Request;
use kube::Client;
use kube::client::Body as HttpBody;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::step::{Body, Part, Step};

/// Generous: the cores may be busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);
const ABSENT_UID: &str = "00000000-0000-4000-8000-000000000000";

/// One server and what it told in this sequence.
pub struct Side {
    pub name: &'static str,
    client: Client,
    pub namespace: String,
    seen: BTreeMap<String, Seen>,
}

#[derive(Default)]
struct Seen {
    object: Value,
    versions: Vec<String>,
    uids: Vec<String>,
}

/// An answer as it came.
#[derive(Clone, Debug)]
pub struct Answer {
    pub code: u16,
    pub retry_after: Option<String>,
    pub body: Value,
}

/// An open watch.
pub struct Watch {
    lines: futures::stream::BoxStream<'static, std::io::Result<String>>,
}

impl Side {
    pub fn new(name: &'static str, client: Client, namespace: &str) -> Self {
        Self { name, client, namespace: namespace.to_owned(), seen: BTreeMap::new() }
    }

    /// Sends a step; a paged list gives one answer for each page.
    pub async fn send(&mut self, step: &Step) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut token = String::new();
        loop {
            let answer = self.send_once(step, &token).await;
            self.note(step.part, &answer.body);
            let next = answer.body.pointer("/metadata/continue").and_then(Value::as_str);
            token = next.filter(|_| step.pages).unwrap_or_default().to_owned();
            answers.push(answer);
            if token.is_empty() || answers.len() > 50 {
                return answers;
            }
        }
    }

    async fn send_once(&self, step: &Step, token: &str) -> Answer {
        let mut uri =
            format!("{}{}", step.part.collection(&self.namespace), self.resolve(&step.tail));
        if !token.is_empty() {
            uri.push_str(&format!("&continue={token}"));
        }
        let body = match &step.body {
            Body::None => Vec::new(),
            Body::Text(text) => text.as_bytes().to_vec(),
            Body::Json(value) => self.resolved(value).to_string().into_bytes(),
            Body::Seen { name, edit } => {
                let mut object = self
                    .seen
                    .get(&format!("{}/{name}", step.part.plural))
                    .map(|seen| seen.object.clone())
                    .unwrap_or_else(|| {
                        json!({
                            "apiVersion": step.part.api_version,
                            "kind": step.part.kind,
                            "metadata": { "name": name },
                        })
                    });
                json_patch::merge(&mut object, &self.resolved(edit));
                object.to_string().into_bytes()
            }
        };
        let request = Request::builder()
            .method(step.method)
            .uri(&uri)
            .header("content-type", step.content_type)
            .header("accept", "application/json")
            .body(HttpBody::from(body))
            .unwrap();
        let response = timeout(PATIENCE, self.client.send(request))
            .await
            .unwrap_or_else(|_| panic!("{}: no answer to {step}", self.name))
            .unwrap_or_else(|error| panic!("{}: {step}: {error}", self.name));
        let code = response.status().as_u16();
        let retry_after = response.headers().get("retry-after");
        let retry_after = retry_after.map(|value| value.to_str().unwrap().to_owned());
        let bytes = response.into_body().collect_bytes().await.unwrap();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        Answer { code, retry_after, body }
    }

    /// Remembers versions and uids, so that later steps can name them.
    fn note(&mut self, part: Part, body: &Value) {
        if body.get("kind") != Some(&json!(part.kind)) {
            return;
        }
        let text = |pointer: &str| {
            body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let key = format!("{}/{}", part.plural, text("/metadata/name"));
        let seen = self.seen.entry(key).or_default();
        let mut object = body.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        seen.object = object;
        let version = text("/metadata/resourceVersion");
        if seen.versions.last() != Some(&version) {
            seen.versions.push(version);
        }
        let uid = text("/metadata/uid");
        if seen.uids.last() != Some(&uid) {
            seen.uids.push(uid);
        }
    }

    fn resolved(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.resolve(text)),
            Value::Array(items) => items.iter().map(|item| self.resolved(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), self.resolved(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Writes what this server told in the place of a reference at the end of a text.
    fn resolve(&self, text: &str) -> String {
        let Some(start) = text.find('$') else { return text.to_owned() };
        let (before, reference) = text.split_at(start);
        let Some((what, key)) = reference.split_once(':') else { return text.to_owned() };
        let nothing = Seen::default();
        let seen = self.seen.get(key).unwrap_or(&nothing);
        // Of what was never told: a version from the beginning of the sequence.
        let beginning = || {
            let namespace = self.seen.get(&format!("namespaces/{}", self.namespace));
            namespace.and_then(|seen| seen.versions.first().cloned()).unwrap_or_default()
        };
        let previous = |list: &Vec<String>| list.iter().rev().nth(1).cloned();
        let told = match what {
            "$rv" => seen.versions.last().cloned().unwrap_or_else(beginning),
            "$old-rv" => previous(&seen.versions).unwrap_or_else(beginning),
            "$uid" => seen.uids.last().cloned().unwrap_or_else(|| ABSENT_UID.to_owned()),
            "$old-uid" => previous(&seen.uids).unwrap_or_else(|| ABSENT_UID.to_owned()),
            "$namespace" => self.namespace.clone(),
            _ => return text.to_owned(),
        };
        format!("{before}{told}")
    }

    /// Opens a watch from the state of now.
    pub async fn watch(&self, part: Part, query: &str) -> Watch {
        let list = Step::new("GET", part, "?limit=1");
        let answer = self.send_once(&list, "").await;
        let version = answer.body.pointer("/metadata/resourceVersion").unwrap().as_str().unwrap();
        let uri = format!(
            "{}?watch=true&timeoutSeconds=300&resourceVersion={version}{query}",
            part.collection(&self.namespace)
        );
        let open = async {
            loop {
                let request = Request::get(&uri).body(Vec::new()).unwrap();
                match self.client.request_stream(request).await {
                    // The store of a kind that was just defined is being made.
                    Err(kube::Error::Api(status)) if status.code == 429 => {
                        sleep(Duration::from_millis(100)).await;
                    }
                    other => return other.unwrap(),
                }
            }
        };
        let reader = timeout(PATIENCE, open).await.unwrap();
        Watch { lines: Box::pin(reader).lines().boxed() }
    }
}

impl Watch {
    /// The events up to the one that creates the object of this name.
    pub async fn until(mut self, name: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let line = timeout(PATIENCE, self.lines.try_next())
                .await
                .unwrap_or_else(|_| panic!("waited in vain for {name}; got {events:#?}"))
                .unwrap()
                .unwrap_or_else(|| panic!("the watch ended before {name}"));
            let event: Value = serde_json::from_str(&line).unwrap();
            if event.pointer("/object/metadata/name") == Some(&json!(name)) {
                return events;
            }
            events.push(event);
        }
    }
}
