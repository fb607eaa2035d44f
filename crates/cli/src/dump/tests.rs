//! Is everything in the dump that is judged by, and no secret?

use http::{Request, Response, StatusCode};
use kube::client::{Body, ClientBuilder};
use serde_json::{Value, json};
use tower::BoxError;

use super::*;
use crate::{
    reader::OnlyReads,
    testing::{from_files, now},
};

/// What must be in no dump.
const CANARY: &str = "hunter2-canary";

/// A cluster with a secret in every place where one could stand.
fn answer(path: &str) -> (u16, Value) {
    let annotations = json!({
        "kubectl.kubernetes.io/last-applied-configuration": CANARY,
        "example.com/note": CANARY,
        "machinist.dev/hold": "being looked at",
        "machine.openshift.io/instance-state": "running",
    });
    let machine = json!({
        "metadata": {
            "name": "a", "namespace": "home", "uid": "uid-a", "annotations": annotations,
            "managedFields": [{ "manager": CANARY }],
        },
        "spec": { "providerSpec": { "value": {
            "instanceType": "m6i.large", "userData": CANARY, "userDataSecret": { "name": "worker" },
            "credentialsSecret": { "name": "cloud" }, "sshKey": CANARY,
            "nested": [{ "password": CANARY, "user_data": CANARY }],
        } } },
        "status": { "providerStatus": {
            "instanceId": "i-1",
            "launch": { "attempt": 1, "clientToken": "uid-a-1", "since": "2026-11-01T00:00:00Z" },
        } },
    });
    let pod = json!({
        "metadata": { "name": "p", "namespace": "shop", "annotations": annotations,
            "labels": { "app": "shop" } },
        "spec": {
            "nodeName": "n",
            "containers": [{ "name": "web", "env": [{ "name": "X", "value": CANARY }],
                "args": [CANARY], "command": [CANARY] }],
            "volumes": [{ "name": "t", "emptyDir": { "medium": CANARY } },
                { "name": "s", "secret": { "secretName": CANARY } }],
        },
        "status": { "phase": "Running", "message": CANARY },
    });
    let node = json!({
        "metadata": { "name": "n", "annotations": annotations },
        "spec": { "providerID": "aws:///a/i-1" },
        "status": { "conditions": [], "images": [{ "names": [CANARY] }] },
    });
    let events = json!([
        { "metadata": { "name": "e" }, "involvedObject": { "kind": "Machine", "name": "a" },
          "reason": "Update" },
        { "metadata": { "name": "f" }, "involvedObject": { "kind": "Pod", "name": "p" },
          "message": CANARY },
    ]);
    let items = match path.rsplit('/').next() {
        Some("machines") => json!([machine]),
        Some("pods") => json!([pod]),
        Some("nodes") => json!([node]),
        Some("events") => events,
        Some("home") => {
            return (
                200,
                json!({ "apiVersion": "v1", "kind": "Namespace",
                "metadata": { "name": "home" } }),
            );
        }
        Some("poddisruptionbudgets") => return (403, failure(403)),
        Some("upgradeconfigs") => return (404, failure(404)),
        _ => json!([]),
    };
    (200, json!({ "kind": "List", "apiVersion": "v1", "metadata": {}, "items": items }))
}

fn failure(code: u16) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no",
        "reason": "no", "code": code })
}

async fn dump() -> Dump {
    let answering = tower::service_fn(|request: Request<Body>| {
        let path = request.uri().path().to_owned();
        assert!(!path.contains("secrets"), "{path}");
        let (code, body) = answer(&path);
        let mut response = Response::new(Body::from(body.to_string().into_bytes()));
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        std::future::ready(Ok::<_, BoxError>(response))
    });
    let client = ClientBuilder::new(answering, "default").with_layer(&OnlyReads).build();
    read(&Connection::to(client), "home", now()).await.unwrap()
}

#[tokio::test]
async fn no_secret_is_in_it() {
    let dump = dump().await;
    for output in [DumpOutput::Json, DumpOutput::Yaml] {
        let text = text(&dump, output).unwrap();
        assert!(!text.contains(CANARY), "{text}");
        assert!(text.contains("being looked at") && text.contains("clientToken"), "{text}");
        assert!(text.contains("userDataSecret") && text.contains("emptyDir"), "{text}");
    }
}

#[tokio::test]
async fn other_commands_read_it_and_what_was_refused_is_noted() {
    let dump = dump().await;
    assert_eq!(dump.machinist.notes.len(), 1, "{:?}", dump.machinist.notes);
    let kinds: Vec<&str> = dump.items.iter().filter_map(|item| item["kind"].as_str()).collect();
    for kind in ["Machine", "Namespace", "Node", "Pod", "Event"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let file = std::env::temp_dir().join(format!("machinist-dump-{}.yaml", std::process::id()));
    write(&file, &text(&dump, DumpOutput::Yaml).unwrap()).unwrap();
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o077, 0, "for its owner only");
    let snapshot = from_files(std::slice::from_ref(&file)).await;
    std::fs::remove_file(&file).unwrap();
    let snapshot = snapshot.unwrap();
    // Of another namespace than the usual one.
    assert_eq!(snapshot.other_namespaces.iter().collect::<Vec<_>>(), ["home"]);
    assert_eq!((snapshot.nodes.len(), snapshot.pods.len()), (1, 1));
    assert!(snapshot.notes.is_empty(), "{:?}", snapshot.notes);
}

#[test]
fn nothing_else_goes_further() {
    for kind in ["Secret", "ConfigMap"] {
        assert_eq!(kept::kept(json!({ "kind": kind, "data": { "x": CANARY } })), None);
    }
}
