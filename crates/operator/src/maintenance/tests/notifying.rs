//! Is a change of phase told to the webhook, again after a failure, and without holding anybody up?

use std::sync::{Arc, Mutex};

use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify};

use crate::{
    maintenance::notify::{Notifier, testing},
    testing::World,
};

#[derive(Clone, Default)]
struct Heard {
    bodies: Arc<Mutex<Vec<Value>>>,
    told: Arc<Notify>,
}

/// Refuses the first, and takes the rest.
async fn take(State(heard): State<Heard>, body: Bytes) -> StatusCode {
    let mut bodies = heard.bodies.lock().unwrap();
    bodies.push(serde_json::from_slice(&body).unwrap());
    heard.told.notify_one();
    if bodies.len() == 1 { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }
}

#[tokio::test]
async fn a_notification_that_was_refused_is_sent_again() {
    let world = World::new();
    let heard = Heard::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?a=b", listener.local_addr().unwrap());
    let router = Router::new().route("/hook", post(take)).with_state(heard.clone());
    let spawner = world.supervisor.spawner();
    spawner.spawn("webhook", async move { Ok(axum::serve(listener, router).await?) });
    let (notifier, messenger) = Notifier::new(None, &world.context);
    spawner.spawn("notifications", messenger.run());
    testing::send(&notifier, &url, json!({ "phase": "Draining" }));
    testing::send(&notifier, &url, json!({ "phase": "Acting" }));
    while heard.bodies.lock().unwrap().len() < 3 {
        heard.told.notified().await;
    }
    let phases: Vec<Value> =
        heard.bodies.lock().unwrap().iter().map(|body| body["phase"].clone()).collect();
    assert_eq!(phases, ["Draining", "Draining", "Acting"]);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_takes_is_dropped_and_counted() {
    let world = World::new();
    let (notifier, _messenger) = Notifier::new(None, &world.context);
    for number in 0..300 {
        testing::send(&notifier, "http://127.0.0.1:1/", json!({ "number": number }));
    }
    let text = world.context.metrics.encode().unwrap();
    let dropped = r#"machinist_maintenance_notifications_total{result="dropped"} 44"#;
    assert!(text.contains(dropped), "{text}");
}
