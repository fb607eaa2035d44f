//! Is the fleet shown to those who may see it, and changed by those who may change it, whatever is tried?

mod of_cluster_api;
mod refusing;
mod streaming;
mod writing;

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
};
use clap::Parser;
use http::{HeaderMap, Method, Request, Response};
use serde_json::{Value, json};
use tower::Service;

use super::{audience::Audience, *};
use crate::{
    args::Args,
    client,
    engine::supervisor::Supervisor,
    metrics::Metrics,
    testing::{World, machine, pool, read},
};

/// What must never be shown.
const CANARY: &str = "canary-5e2c";

/// What is asked with GET, and with POST and this content.
const READS: [&str; 12] = [
    "/api/v1/me",
    "/api/v1/openapi.json",
    "/api/v1/fleet",
    "/api/v1/pools",
    "/api/v1/map",
    "/api/v1/machines",
    "/api/v1/machines/a",
    "/api/v1/machines/a/timeline",
    "/api/v1/plan",
    "/api/v1/calendar",
    "/api/v1/policies",
    "/api/v1/drift",
];
const WRITES: [(&str, &str); 4] = [
    ("/api/v1/machines/b/approve", "{}"),
    ("/api/v1/machines/b/postpone", r#"{"until":"2026-01-02T00:00:00Z"}"#),
    ("/api/v1/pause", r#"{"place":"pool","name":"pool","reason":"why"}"#),
    ("/api/v1/resume", r#"{"place":"machine","name":"c"}"#),
];
const TRIAL: &str = "/api/v1/what-if";
const STREAM: &str = "/api/v1/events";

/// What was asked of the API server with a user's token: the token, method, path and content.
type Log = Arc<Mutex<Vec<(String, String, String, Value)>>>;

struct Site {
    router: Router,
    page: Arc<Page>,
    log: Log,
    /// Who has lost everything meanwhile.
    lost: Arc<Mutex<Vec<String>>>,
    _supervisor: Supervisor,
}

impl Site {
    fn new(writes: bool) -> Self {
        Self::with(writes, |_| ())
    }

    /// With more in the stores.
    fn with(writes: bool, more: impl FnOnce(&Context)) -> Self {
        let World { context, supervisor, .. } = World::new();
        let context = Arc::new(context);
        fill(&context);
        more(&context);
        let (log, lost) = (Log::default(), Arc::default());
        let reviewer = reviewer(&lost);
        let sent = Arc::clone(&log);
        let boards = Arc::new(Boards::new(&context, "ns"));
        boards.listen();
        let page = Arc::new(Page {
            access: Access::new(&reviewer, "ns", &context.env),
            boards,
            as_user: Arc::new(move |token| Ok(users_api_server(token, &sent))),
            writes,
            origins: vec!["https://proxy.example".to_owned()],
            namespace: "ns".to_owned(),
            stopping: supervisor.spawner().stopping(),
            context,
        });
        Self { router: router(Arc::clone(&page)), page, log, lost, _supervisor: supervisor }
    }

    /// What is shown to those who see no machine of Cluster API.
    fn board(&self) -> Arc<Board> {
        self.page.boards.of(&Audience::default())
    }

    async fn ask(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().call(request).await.unwrap()
    }

    async fn get(&self, path: &str, token: &str) -> (u16, HeaderMap, String) {
        told(self.ask(request(Method::GET, path, token, "", &[])).await).await
    }

    async fn post(&self, path: &str, token: &str, content: &str) -> (u16, Value) {
        let headers = [("content-type", "application/json")];
        let response = self.ask(request(Method::POST, path, token, content, &headers)).await;
        let (status, _, text) = told(response).await;
        (status, serde_json::from_str(&text).unwrap())
    }
}

fn request(
    method: Method,
    path: &str,
    token: &str,
    content: &str,
    headers: &[(&str, &str)],
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path).header("host", "page.example");
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(content.to_owned())).unwrap()
}

async fn told(response: Response<Body>) -> (u16, HeaderMap, String) {
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    (parts.status.as_u16(), parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
}

/// An API server that knows `reader`, `writer`, `nobody`, who has no rights, and `team-a`, who reads what a reader does,
/// but of Cluster API only what is in a namespace of that name.
fn reviewer(lost: &Arc<Mutex<Vec<String>>>) -> Client {
    let lost = Arc::clone(lost);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let lost = lost.lock().unwrap().clone();
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect_bytes().await.unwrap();
            let mut review: Value = serde_json::from_slice(&body).unwrap();
            let spec = review["spec"].clone();
            let status = if path.ends_with("/tokenreviews") {
                let token = spec["token"].as_str().unwrap().to_owned();
                if token == "broken" {
                    let broken = Response::builder().status(500).body(Body::from("{}")).unwrap();
                    return Ok::<_, Infallible>(broken);
                }
                let is_known = ["reader", "writer", "nobody", "team-a"].contains(&token.as_str());
                let is_known = is_known && !lost.contains(&token);
                json!({ "authenticated": is_known, "user": { "username": token, "groups": ["g"] } })
            } else {
                let verb = spec["resourceAttributes"]["verb"].as_str().unwrap();
                let may_read = ["list", "get"].contains(&verb);
                let of = &spec["resourceAttributes"];
                let is_theirs = of["group"] != "cluster.x-k8s.io" || of["namespace"] == "team-a";
                json!({ "allowed": match spec["user"].as_str().unwrap() {
                    "reader" => may_read,
                    "writer" => true,
                    "team-a" => may_read && is_theirs,
                    _ => false,
                } })
            };
            review["status"] = status;
            Ok(Response::new(Body::from(review.to_string())))
        }
    });
    client::with_service(service, "ns", &Metrics::new())
}

/// The same API server, as somebody sees it who shows their own token: only the writer may patch.
fn users_api_server(token: &str, log: &Log) -> Client {
    let (token, log) = (token.to_owned(), Arc::clone(log));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (token, log) = (token.clone(), Arc::clone(&log));
        async move {
            let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
            let body = request.into_body().collect_bytes().await.unwrap();
            let content = serde_json::from_slice(&body).unwrap_or_default();
            log.lock().unwrap().push((token.clone(), method.clone(), path.clone(), content));
            let (status, answer) = if method == "GET" {
                (
                    200,
                    json!({ "kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": [] }),
                )
            } else if token == "writer" {
                let kind = if path.contains("/machinemaintenances/") { "b" } else { "x" };
                (
                    200,
                    json!({ "metadata": { "name": kind }, "spec": {
                    "machinelink": kind, "selector": {}, "template": {},
                } }),
                )
            } else {
                (
                    403,
                    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                    "reason": "Forbidden", "message": format!("{token} cannot patch this") }),
                )
            };
            let answer = Response::builder().status(status).body(Body::from(answer.to_string()));
            Ok::<_, Infallible>(answer.unwrap())
        }
    });
    client::with_service(service, "ns", &Metrics::new())
}

/// Three machines: one is well, one waits for an approval, one is stopped.
fn fill(context: &Context) {
    let stores = &context.stores;
    for (name, instance) in [("a", "running"), ("b", "running"), ("c", "stopped")] {
        stores.machines.apply_written(read(one(name, instance)));
        stores.nodes.apply_written(read(json!({
            "metadata": { "name": format!("node-{name}"), "uid": format!("uid-node-{name}"), "resourceVersion": "1" },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        })));
    }
    let mut set = pool(3);
    set["spec"]["template"]["spec"]["providerSpec"]["value"] = json!({ "password": CANARY });
    stores.machine_sets.apply_written(read(set));
    let maintenance = &stores.maintenance;
    maintenance.apply_written(read(json!({
        "metadata": { "name": "mm-b", "namespace": "ns", "uid": "uid-mm-b", "resourceVersion": "5",
            "annotations": { "machinist.dev/created-for-event": "" } },
        "spec": { "machinelink": "b" },
        "status": { "phase": "Pending", "machineUid": "uid-b", "reasons": [{
            "id": "event-1", "code": "instance-reboot", "kind": "Event", "state": "Active",
            "since": "2026-01-01T00:00:00Z", "notBefore": "2026-01-09T00:00:00Z",
        }] },
    })));
    maintenance.policies.apply_written(read(json!({
        "metadata": { "name": "nights", "uid": "uid-nights", "resourceVersion": "1" },
        "spec": { "approval": "Manual", "notifications": {
            "webhook": { "url": format!("https://hooks.example/{CANARY}") },
        } },
    })));
    stores.machines.mark_synced();
    stores.machine_sets.mark_synced();
    stores.nodes.mark_synced();
    stores.pods.mark_synced();
    stores.budgets.mark_synced();
}

fn one(name: &str, instance: &str) -> Value {
    let mut object = machine(name, json!({}));
    object["spec"]["providerID"] = json!(format!("aws:///z/i-{name}"));
    object["spec"]["providerSpec"]["value"] =
        json!({ "userDataSecret": { "name": CANARY }, "tags": [CANARY] });
    object["status"] = json!({
        "phase": "Running",
        "nodeRef": { "kind": "Node", "name": format!("node-{name}"), "uid": format!("uid-node-{name}") },
        "providerStatus": { "instanceId": format!("i-{name}"), "instanceState": instance, "secret": CANARY },
        "conditions": [{
            "type": "InstanceRunning", "status": if instance == "running" { "True" } else { "False" },
            "reason": "StoppedByUser", "message": format!("instance i-{name} is {instance}"),
            "lastTransitionTime": "2026-01-01T11:00:00Z",
        }],
    });
    object
}

#[tokio::test(start_paused = true)]
async fn every_path_asks_for_a_token_and_for_the_right_to_it() {
    let site = Site::new(true);
    let mut paths: Vec<&str> = READS.to_vec();
    paths.push(STREAM);
    for path in paths {
        assert_eq!(site.get(path, "").await.0, 401, "{path} without a token");
        assert_eq!(site.get(path, "stranger").await.0, 401, "{path} with anybody's token");
        assert_eq!(site.get(path, "broken").await.0, 503, "{path} when nobody can be asked");
        let without =
            if ["/api/v1/me", "/api/v1/openapi.json"].contains(&path) { 200 } else { 403 };
        assert_eq!(site.get(path, "nobody").await.0, without, "{path} without rights");
    }
    for path in READS {
        assert_eq!(site.get(path, "reader").await.0, 200, "{path} with rights");
    }
    for (path, content) in WRITES.into_iter().chain([(TRIAL, "{}")]) {
        assert_eq!(site.post(path, "", content).await.0, 401, "{path} without a token");
        assert_eq!(site.post(path, "stranger", content).await.0, 401, "{path}");
        assert_eq!(site.post(path, "nobody", content).await.0, 403, "{path} without rights");
    }
    assert!(
        site.log.lock().unwrap().iter().all(|(token, ..)| token == "reader"),
        "nothing was asked for in the name of somebody who may not"
    );
    for (path, content) in WRITES {
        assert_eq!(site.post(path, "writer", content).await.0, 200, "{path} with rights");
    }
    assert_eq!(site.post(TRIAL, "reader", "{}").await.0, 200, "a trial changes nothing");
}

#[tokio::test(start_paused = true)]
async fn nothing_secret_is_in_any_answer() {
    let site = Site::new(true);
    let mut shown = String::new();
    for path in READS.into_iter().chain(["/api/v1/machines/b", "/api/v1/machines/c"]) {
        shown.push_str(&site.get(path, "writer").await.2);
    }
    let (_, answer) = site.post(TRIAL, "writer", "{}").await;
    shown.push_str(&answer.to_string());
    assert!(shown.contains("i-c is stopped") && shown.contains("nights"), "something is shown");
    assert!(!shown.contains(CANARY), "{shown}");
    assert!(!shown.contains("Bearer"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn who_asks_learns_what_they_may() {
    let site = Site::new(true);
    let of = async |site: &Site, token: &str| -> Value {
        serde_json::from_str(&site.get("/api/v1/me", token).await.2).unwrap()
    };
    let reader = of(&site, "reader").await;
    assert_eq!((&reader["user"], &reader["may"]["read"]), (&json!("reader"), &json!(true)));
    assert_eq!(reader["may"]["approve"], false);
    assert!(reader["why"].as_str().unwrap().starts_with("you may not patch machinemaintenances"));
    let writer = of(&site, "writer").await;
    assert_eq!((&writer["may"]["approve"], &writer["why"]), (&json!(true), &Value::Null));
    let writer = of(&Site::new(false), "writer").await;
    assert_eq!((&writer["may"]["approve"], &writer["writes"]), (&json!(false), &json!(false)));
}

#[tokio::test(start_paused = true)]
async fn machines_are_filtered_and_paged_on_this_side() {
    let site = Site::new(false);
    let list: Value =
        serde_json::from_str(&site.get("/api/v1/machines?limit=2&sort=state", "reader").await.2)
            .unwrap();
    assert_eq!((&list["total"], &list["machines"][0]["name"]), (&json!(3), &json!("c")));
    let next = list["next"].as_str().unwrap();
    let path = format!("/api/v1/machines?limit=2&sort=state&cursor={next}");
    let list: Value = serde_json::from_str(&site.get(&path, "reader").await.2).unwrap();
    assert_eq!((list["machines"].as_array().unwrap().len(), &list["next"]), (1, &Value::Null));
    assert_eq!(site.get("/api/v1/machines?limit=0", "reader").await.0, 400);
    assert_eq!(site.get("/api/v1/calendar?from=soon", "reader").await.0, 400);
    assert_eq!(site.get("/api/v1/machines/x", "reader").await.0, 404);
}

#[test]
fn the_document_is_the_one_in_the_repository() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/page/openapi.json");
    let text = serde_json::to_string_pretty(super::document::document()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
        std::fs::write(path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(stored, text, "the API is another; UPDATE=1 rewrites the document");
}

#[test]
fn tokens_never_travel_in_the_open() {
    let check = |flags: &[&str]| Args::parse_from([&["x"], flags].concat()).page.check();
    check(&[]).unwrap();
    check(&["--page-address=0.0.0.0:0"]).unwrap();
    check(&["--page-address=127.0.0.1:0", "--page-plain-http"]).unwrap();
    check(&["--page-address=[::1]:0", "--page-plain-http"]).unwrap();
    check(&["--page-address=0.0.0.0:0", "--page-plain-http"]).unwrap_err();
    check(&["--page-address=10.0.0.1:0", "--page-plain-http"]).unwrap_err();
}
