//! What do the tests share? A store, a clock that is set by hand, and requests as text.

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::{Answer, CommitRef, Origin, Store, View};
use crate::api_server::{
    request::ApiRequest,
    watcher::{EventType, Step, Watcher},
};

pub const MACHINES: &str = "/apis/machine.openshift.io/v1beta1/namespaces/n/machines";
pub const PODS: &str = "/api/v1/namespaces/n/pods";
pub const BUDGETS: &str = "/apis/policy/v1/namespaces/n/poddisruptionbudgets";
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/n/configmaps";

pub struct Lab {
    pub store: Store,
    pub now: Timestamp,
    pub commits: Vec<CommitRef>,
    pub view: View,
}

impl Lab {
    pub fn new() -> Self {
        let mut state = 0_u64;
        let chance = Box::new(move || {
            // A sequence that is good enough to be all different.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ (mixed >> 27)
        });
        let mut lab = Self {
            store: Store::new(1000, chance),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            commits: Vec::new(),
            view: View::Latest,
        };
        for name in ["n", "m"] {
            lab.post("/api/v1/namespaces", json!({ "metadata": { "name": name } }));
        }
        lab
    }

    pub fn pass(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    /// Sends a request and returns the code and the body.
    pub fn send(&mut self, method: &str, uri: &str, kind: &str, body: &Value) -> (u16, Value) {
        let request = self.read(method, uri, kind, body);
        match request.and_then(|request| {
            let outcome = self.store.apply(&request, &Origin::tagged("test"), self.now, self.view);
            self.commits = outcome.commits;
            outcome.answer
        }) {
            Err(failure) => (failure.code, failure.status()),
            Ok(Answer::Object { code, object }) => (code, object.value().clone()),
            Ok(Answer::Value { code, value }) => (code, value),
            Ok(Answer::List(text)) => (200, serde_json::from_slice(&text).unwrap()),
            Ok(Answer::Watch(_)) => panic!("{uri} is a watch"),
        }
    }

    fn read(
        &self,
        method: &str,
        uri: &str,
        kind: &str,
        body: &Value,
    ) -> Result<ApiRequest, crate::api_server::Failure> {
        let parts = http::Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", kind)
            .body(())
            .unwrap()
            .into_parts()
            .0;
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        ApiRequest::read(&parts, &body)
    }

    pub fn get(&mut self, uri: &str) -> (u16, Value) {
        self.send("GET", uri, "", &Value::Null)
    }

    pub fn post(&mut self, uri: &str, body: Value) -> (u16, Value) {
        self.send("POST", uri, "application/json", &body)
    }

    pub fn put(&mut self, uri: &str, body: Value) -> (u16, Value) {
        self.send("PUT", uri, "application/json", &body)
    }

    pub fn merge(&mut self, uri: &str, body: Value) -> (u16, Value) {
        self.send("PATCH", uri, "application/merge-patch+json", &body)
    }

    pub fn json_patch(&mut self, uri: &str, body: Value) -> (u16, Value) {
        self.send("PATCH", uri, "application/json-patch+json", &body)
    }

    pub fn delete(&mut self, uri: &str, body: Value) -> (u16, Value) {
        self.send("DELETE", uri, "application/json", &body)
    }

    /// Creates a Machine with these additions and returns it.
    pub fn machine(&mut self, name: &str, additions: Value) -> Value {
        let mut body = json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "metadata": { "name": name },
            "spec": {},
        });
        json_patch::merge(&mut body, &additions);
        let (code, object) = self.post(MACHINES, body);
        assert_eq!(code, 201, "{object}");
        object
    }

    /// Creates a pod with these additions and returns it.
    pub fn pod(&mut self, name: &str, additions: Value) -> Value {
        let mut body = json!({
            "metadata": { "name": name, "labels": { "app": "a" } },
            "spec": { "nodeName": "one", "containers": [{ "name": "main", "image": "main" }] },
        });
        json_patch::merge(&mut body, &additions);
        let (code, object) = self.post(PODS, body);
        assert_eq!(code, 201, "{object}");
        object
    }

    pub fn watch(&self, uri: &str) -> Watcher {
        let request = self.read("GET", uri, "", &Value::Null).unwrap();
        match self.store.watch(&request, self.view).unwrap() {
            Answer::Watch(watcher) => *watcher,
            other => panic!("{uri}: {other:?}"),
        }
    }

    /// What a watch has to say: types and names, or what else comes.
    pub fn events(&self, watcher: &mut Watcher) -> Vec<String> {
        let mut events = Vec::new();
        loop {
            match watcher.next(&self.store) {
                Step::Idle => return events,
                Step::Event(event) => {
                    let word = match event.event_type {
                        EventType::Added => "added",
                        EventType::Modified => "modified",
                        EventType::Deleted => "deleted",
                    };
                    events.push(format!("{word} {}", event.object.name()));
                }
                Step::InitialEnd(line) => {
                    let line: Value = serde_json::from_slice(&line).unwrap();
                    let marked = line.pointer("/object/metadata/annotations").is_some();
                    events.push(format!("{} {marked}", line["type"].as_str().unwrap()));
                }
                Step::Expired(line) => {
                    let line: Value = serde_json::from_slice(&line).unwrap();
                    events.push(format!(
                        "{} {}",
                        line["type"].as_str().unwrap(),
                        line["object"]["code"]
                    ));
                    return events;
                }
            }
        }
    }
}

/// The code and the reason of a refusal.
pub fn refused(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["reason"].as_str().unwrap_or_default())
}

pub fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}
