//! Does the handler tell what it is told, once, through every failure of both sides?

pub(crate) mod service;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use http::Method;
use serde_json::{Value, json};

use self::service::{Reply, Service};
use super::*;
use crate::engine::testing::{FakeServer, Fault};

const NODES: &str = "/api/v1/nodes";
const POLL: Duration = Duration::from_secs(5);

struct Bench {
    service: Service,
    server: FakeServer,
    handler: Handler,
    connections: Arc<AtomicU32>,
}

impl Bench {
    async fn new() -> Self {
        let (service, server) = (Service::start().await, FakeServer::new());
        let env = Env::simulated("2026-01-01T00:00:00Z".parse().unwrap(), 1);
        let metadata = Metadata::new(service.endpoint(), env.clone());
        let connections = Arc::new(AtomicU32::new(0));
        let (counted, connected) = (Arc::clone(&connections), server.clone());
        let connect: Connect = Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let client = connected.client();
            Box::pin(async move { Ok(client) })
        });
        let handler = Handler::new("a".to_owned(), POLL, env, metadata, connect);
        server.put(NODES, json!({"metadata": {"name": "a"}, "status": {"conditions": []}}));
        Self { service, server, handler, connections }
    }

    /// Lets the cloud announce the end.
    fn announce(&self) {
        self.service.set("spot/termination-time", Reply::ok("2026-01-01T00:02:00Z"));
    }

    fn node(&self) -> Value {
        self.server.lock().objects[&(NODES.to_owned(), "a".to_owned())].clone()
    }

    fn is_told(&self) -> bool {
        let node = self.node();
        let conditions = node["status"]["conditions"].as_array().unwrap();
        conditions.iter().any(|one| one["type"] == "Terminating" && one["status"] == "True")
    }

    /// How often the API server was asked, by method, since the last time.
    fn requests(&self) -> (usize, usize) {
        let log = std::mem::take(&mut self.server.lock().log);
        let count = |method: &str| log.iter().filter(|line| line.starts_with(method)).count();
        (count("GET "), count("PATCH "))
    }
}

#[tokio::test]
async fn a_notice_is_told_once_and_nothing_is_asked_of_the_api_while_there_is_none() {
    let mut bench = Bench::new().await;
    assert_eq!(bench.handler.round().await, POLL);
    assert_eq!(bench.requests(), (1, 0), "what an earlier process left is looked for");
    for _ in 0..3 {
        assert_eq!(bench.handler.round().await, POLL);
    }
    assert_eq!(bench.requests(), (0, 0));

    bench.announce();
    assert_eq!(bench.handler.round().await, POLL);
    let condition = &bench.node()["status"]["conditions"][0];
    assert_eq!(condition["type"], "Terminating");
    assert_eq!(condition["reason"], "TerminationRequested");
    assert_eq!(condition["message"], "The cloud provider has marked this instance for termination");
    assert_eq!(bench.requests(), (1, 1));
    for _ in 0..3 {
        assert_eq!(bench.handler.round().await, POLL);
    }
    assert_eq!(bench.requests(), (3, 0), "it is looked at and not written again");

    // Somebody takes it away while the notice stands.
    bench.server.put(NODES, json!({"metadata": {"name": "a"}, "status": {"conditions": []}}));
    bench.handler.round().await;
    assert!(bench.is_told());
}

#[tokio::test]
async fn whatever_the_metadata_service_does_nothing_is_told_and_then_the_notice_is() {
    let mut bench = Bench::new().await;
    let mut pauses = Vec::new();
    for reply in [Reply::status(500), Reply::Close, Reply::Silence, Reply::ok("garbage")] {
        bench.service.set_everything(Some(reply));
        pauses.push(bench.handler.round().await.as_secs());
    }
    assert_eq!(pauses, [5, 10, 20, 20]);
    assert_eq!(bench.requests(), (0, 0), "what is unknown is told to nobody");
    assert_eq!(bench.handler.metadata_trouble.failed(), News::None, "it is told of already");

    bench.service.set_everything(None);
    bench.announce();
    // One question that fails for ever keeps none of the others from being asked in time.
    bench.service.set("events/maintenance/scheduled", Reply::status(500));
    assert_eq!(bench.handler.round().await, POLL);
    assert!(bench.is_told());
}

#[tokio::test]
async fn conflicts_are_retried_at_once() {
    let mut bench = Bench::new().await;
    let conflicts = AtomicU32::new(0);
    bench.server.fail(move |method, _| {
        let is_conflict = *method == Method::PATCH && conflicts.fetch_add(1, Ordering::Relaxed) < 3;
        if is_conflict { Fault::Code(409) } else { Fault::None }
    });
    bench.announce();
    assert_eq!(bench.handler.round().await, POLL);
    assert!(bench.is_told());
    assert_eq!(bench.requests(), (4, 4), "each is decided anew on the Node as it is");
    assert_eq!(bench.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_api_server_that_fails_is_tried_again_with_a_new_client_until_it_is_told() {
    let mut bench = Bench::new().await;
    bench.announce();
    let mut pauses = Vec::new();
    for fault in [Fault::Code(500), Fault::Code(401), Fault::Code(409), Fault::Code(403)] {
        bench.server.fail(move |_, _| fault);
        pauses.push(bench.handler.round().await.as_secs());
    }
    bench.server.fail(|_, _| Fault::None);
    bench.server.delete(NODES, "a");
    pauses.push(bench.handler.round().await.as_secs());
    assert_eq!(pauses, [1, 2, 4, 8, 16]);
    assert_eq!(bench.connections.load(Ordering::Relaxed), 5);

    bench.server.put(NODES, json!({"metadata": {"name": "a"}, "status": {"conditions": []}}));
    assert_eq!(bench.handler.round().await, POLL);
    assert!(bench.is_told());
}

#[tokio::test]
async fn recommendations_and_events_come_and_go() {
    let mut bench = Bench::new().await;
    bench.handler.round().await;
    bench.service.set("events/recommendations/rebalance", Reply::ok(r#"{"noticeTime": "x"}"#));
    let events = r#"[{"EventId": "instance-event-1", "Code": "system-reboot", "State": "active"}]"#;
    bench.service.set("events/maintenance/scheduled", Reply::ok(events));
    bench.requests();
    bench.handler.round().await;
    bench.handler.round().await;
    assert_eq!(bench.requests(), (1, 1), "both in one write, and once");
    let node = bench.node();
    assert_eq!(node["status"]["conditions"][0]["type"], "machinist.dev/RebalanceRecommended");
    let annotation = node["metadata"]["annotations"]["machinist.dev/scheduled-events"].clone();
    let expected = r#"{"instance-event-1":{"code":"system-reboot","state":"active"}}"#;
    assert_eq!(annotation, expected);

    // While the questions fail, what was told stands.
    for item in ["events/recommendations/rebalance", "events/maintenance/scheduled"] {
        bench.service.set(item, Reply::status(500));
    }
    bench.handler.round().await;
    assert_eq!(bench.requests(), (0, 0));
    bench.service.set("events/recommendations/rebalance", Reply::status(404));
    bench.service.set("events/maintenance/scheduled", Reply::ok("[]"));
    bench.handler.round().await;
    let node = bench.node();
    assert_eq!(node["status"]["conditions"][0]["status"], "False");
    assert!(node["metadata"]["annotations"]["machinist.dev/scheduled-events"].is_null());
}

#[tokio::test]
async fn it_ends_when_it_is_told_to() {
    use clap::Parser;
    let given = ["machinist-operator", "termination-handler", "--node-name=a"];
    let endpoint = ["--metadata-endpoint=http://127.0.0.1:1", "--kubeconfig=/nonexistent"];
    let line = crate::args::CommandLine::parse_from([&given[..], &endpoint[..]].concat());
    let Some(crate::args::Command::TerminationHandler(args)) = line.command else { panic!() };
    let service = Service::start().await;
    let watched = TerminationArgs { metadata_endpoint: service.endpoint(), ..args };
    // Its API server cannot be reached, and it goes on; then it is stopped.
    let asked = async {
        while service.requests().len() < 10 {
            tokio::task::yield_now().await
        }
    };
    run(watched, asked).await.unwrap();
}
