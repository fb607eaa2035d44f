//! Are events readable, counted instead of repeated, bounded, and harmless when they cannot be written?

use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::*;
use crate::engine::{
    supervisor::Supervisor,
    testing::{FakeServer, Fault},
};

struct World {
    server: FakeServer,
    env: Env,
    metrics: Metrics,
    recorder: EventRecorder,
    stopping: CancellationToken,
    _supervisor: Supervisor,
}

impl World {
    fn new() -> Self {
        let server = FakeServer::new();
        let env = Env::simulated("2026-01-01T00:00:00Z".parse().unwrap(), 1);
        let metrics = Metrics::new();
        let (recorder, writer) =
            EventRecorder::new(&server.client(), &env, &metrics, "machine-controller");
        let supervisor = Supervisor::new();
        let stopping = CancellationToken::new();
        supervisor.spawner().spawn("events", writer.run(stopping.clone()));
        Self { server, env, metrics, recorder, stopping, _supervisor: supervisor }
    }

    fn record(&self, message: &str) {
        self.recorder.record(&machine(), EventType::Warning, "FailedCreate", "Create", message);
    }

    async fn pass(&self, seconds: u64) {
        self.env.sleep(Duration::from_secs(seconds)).await;
    }

    fn events(&self) -> Vec<Value> {
        self.server.lock().objects.values().cloned().collect()
    }

    fn writes(&self) -> usize {
        self.server.lock().log.len()
    }
}

fn machine() -> EventTarget {
    EventTarget {
        api_version: "machine.openshift.io/v1beta1".into(),
        kind: "Machine".into(),
        namespace: "ns".into(),
        name: "worker-0".into(),
        uid: "uid-1".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_reads_as_core_v1_with_object_reason_and_source() {
    let world = World::new();
    world.record("no capacity");
    world.pass(1).await;
    let [event] = &world.events()[..] else { panic!("one event") };
    assert_eq!(event["involvedObject"]["kind"], "Machine");
    assert_eq!(event["involvedObject"]["uid"], "uid-1");
    assert_eq!(event["involvedObject"]["namespace"], "ns");
    assert_eq!((&event["reason"], &event["type"]), (&json!("FailedCreate"), &json!("Warning")));
    assert_eq!(event["source"]["component"], "machine-controller");
    assert_eq!(event["reportingComponent"], "machine-controller");
    assert_eq!((&event["count"], &event["action"]), (&json!(1), &json!("Create")));
    assert_eq!(event["firstTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(event["metadata"]["name"], "worker-0.18867251edfa0000");
}

#[tokio::test(start_paused = true)]
async fn the_same_event_is_counted_with_at_most_one_write_a_minute() {
    let world = World::new();
    for _ in 0..300 {
        world.record("no capacity");
        world.pass(1).await;
    }
    world.pass(120).await;
    let [event] = &world.events()[..] else { panic!("one event") };
    assert_eq!(event["count"], 300);
    assert_eq!(event["lastTimestamp"], "2026-01-01T00:04:59Z");
    assert!(world.writes() <= 7, "{} writes", world.writes());
    // Another message is another event, and so is the same one after the window.
    world.record("no subnet");
    world.pass(600).await;
    world.record("no capacity");
    world.pass(1).await;
    assert_eq!(world.events().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn names_are_unique_while_the_clock_stands_still_and_replay() {
    let names = async || {
        let world = World::new();
        for number in 0..50 {
            world.record(&format!("message {number}"));
        }
        world.pass(1).await;
        let names: Vec<String> =
            world.events().iter().map(|event| event["metadata"]["name"].to_string()).collect();
        names
    };
    let first = names().await;
    assert_eq!(first.len(), 50);
    assert_eq!(first, names().await);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_wide_object_gets_its_events_in_default() {
    let world = World::new();
    let node = Node {
        metadata: ObjectMeta {
            name: Some("n1".into()),
            uid: Some("u".into()),
            ..ObjectMeta::default()
        },
        ..Node::default()
    };
    world.recorder.for_component("nodelink").record(
        &EventTarget::of(&node),
        EventType::Normal,
        "Linked",
        "Link",
        "ok",
    );
    world.pass(1).await;
    let [event] = &world.events()[..] else { panic!("one event") };
    assert_eq!(event["metadata"]["namespace"], "default");
    assert_eq!(event["involvedObject"]["apiVersion"], "v1");
    assert!(event["involvedObject"]["namespace"].is_null());
    assert_eq!(event["source"]["component"], "nodelink");
}

#[tokio::test(start_paused = true)]
async fn long_messages_are_cut_between_characters() {
    let world = World::new();
    world.record(&"ä".repeat(1000));
    world.record(&format!("x{}", "ä".repeat(1000)));
    world.pass(1).await;
    let lengths: Vec<usize> =
        world.events().iter().map(|event| event["message"].as_str().unwrap().len()).collect();
    assert_eq!(lengths, [1024, 1023]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_costs_events_and_nothing_else() {
    let world = World::new();
    world.server.fail(|_, _| Fault::Code(500));
    for number in 0..QUEUE_LENGTH + 100 {
        world.record(&format!("message {number}"));
    }
    let text = world.metrics.encode().unwrap();
    assert!(text.contains("machinist_events_dropped_total 100\n"), "{text}");
    world.pass(3600).await;
    world.server.fail(|_, _| Fault::None);
    world.pass(3600 * 24).await;
    world.record("back");
    world.pass(10).await;
    assert!(world.events().iter().any(|event| event["message"] == "back"));
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_is_retried_and_a_forgotten_event_is_written_anew() {
    let world = World::new();
    world.server.fail(|_, _| Fault::Code(503));
    world.record("no capacity");
    world.pass(1).await;
    world.server.fail(|_, _| Fault::None);
    world.pass(10).await;
    assert_eq!(world.events().len(), 1);
    // The API server's own expiry removes it.
    world.server.lock().objects.clear();
    world.record("no capacity");
    world.pass(90).await;
    world.record("no capacity");
    world.pass(1).await;
    assert_eq!(world.events().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_at_the_end_is_written() {
    let world = World::new();
    for _ in 0..3 {
        world.record("no capacity");
        world.pass(1).await;
    }
    world.record("last words");
    world.stopping.cancel();
    world.pass(1).await;
    let counts: Vec<Value> = world.events().iter().map(|event| event["count"].clone()).collect();
    assert_eq!(counts, [3, 1]);
}
