//! Does a page learn what changes, once, in order, and after an interruption too?

use axum::body::{BodyDataStream, Bytes};
use futures::StreamExt;

use super::*;

struct Listener {
    body: BodyDataStream,
    rest: String,
}

impl Listener {
    async fn new(site: &Site, token: &str, last: Option<&str>) -> Self {
        let headers: Vec<(&str, &str)> =
            last.into_iter().map(|last| ("last-event-id", last)).collect();
        let answer = site.ask(request(Method::GET, STREAM, token, "", &headers)).await;
        assert_eq!(answer.status(), 200);
        Self { body: answer.into_body().into_data_stream(), rest: String::new() }
    }

    /// The next event: its name, its id, and what it says. `None` where the stream ends.
    async fn next(&mut self) -> Option<(String, String, Value)> {
        while !self.rest.contains("\n\n") {
            let bytes: Bytes = self.body.next().await?.unwrap();
            self.rest.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        let (event, rest) = self.rest.split_once("\n\n").unwrap();
        let of = |name: &str| {
            let lines = event.lines().filter_map(|line| line.strip_prefix(name));
            lines.map(str::to_owned).next().unwrap_or_default()
        };
        let told = (of("event: "), of("id: "), serde_json::from_str(&of("data: ")).unwrap());
        self.rest = rest.to_owned();
        Some(told)
    }
}

/// Changes a machine, and lets the board look.
async fn stop(site: &Site, name: &str, version: &str) {
    let mut object = one(name, "stopped");
    object["metadata"]["resourceVersion"] = json!(version);
    site.page.context.stores.machines.apply_written(read(object));
    site.page.context.env.sleep(std::time::Duration::from_secs(2)).await;
    site.board().current().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_changes_is_told_and_what_was_missed_is_told_again() {
    let site = Site::new(false);
    let fleet: Value = serde_json::from_str(&site.get("/api/v1/fleet", "reader").await.2).unwrap();
    let first = fleet["version"].as_str().unwrap().to_owned();
    let mut listener = Listener::new(&site, "reader", Some(&first)).await;
    let (name, _, hello) = listener.next().await.unwrap();
    assert_eq!((name.as_str(), hello["version"].as_str()), ("hello", Some(first.as_str())));
    stop(&site, "a", "11").await;
    let (name, id, change) = listener.next().await.unwrap();
    assert_eq!(name, "change");
    assert_eq!(change["version"], id);
    assert_eq!(change["machines"]["changed"][0]["name"], "a");
    assert_eq!(change["machines"]["changed"][0]["state"], "down");
    assert_eq!(change["machines"]["changed"].as_array().unwrap().len(), 1, "only what changed");
    assert!(!change.to_string().contains(CANARY));
    drop(listener);

    stop(&site, "b", "12").await;
    let mut back = Listener::new(&site, "reader", Some(&id)).await;
    assert_eq!(back.next().await.unwrap().0, "hello");
    let (name, _, change) = back.next().await.unwrap();
    assert_eq!((name.as_str(), &change["machines"]["changed"][0]["name"]), ("change", &json!("b")));

    let mut both = Listener::new(&site, "reader", Some(&first)).await;
    assert_eq!(both.next().await.unwrap().0, "hello");
    for machine in ["a", "b"] {
        let (_, _, change) = both.next().await.unwrap();
        assert_eq!(change["machines"]["changed"][0]["name"], machine, "in order");
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_not_known_begins_anew() {
    let site = Site::new(false);
    for last in ["00000000-1", "nonsense", "-", "ffffffff-18446744073709551615"] {
        let mut listener = Listener::new(&site, "reader", Some(last)).await;
        assert_eq!(listener.next().await.unwrap().0, "hello", "{last}");
        let (name, _, reset) = listener.next().await.unwrap();
        assert_eq!(name, "reset", "{last}");
        assert_eq!(reset["version"], json!(site.board().newest().unwrap()));
    }
}

#[tokio::test(start_paused = true)]
async fn more_than_is_kept_is_said_to_be_too_much() {
    let site = Site::new(false);
    site.board().current().await.unwrap();
    let first = site.board().newest().unwrap();
    for number in 0..300 {
        let name = if number % 2 == 0 { "running" } else { "stopped" };
        let mut object = one("a", name);
        object["metadata"]["resourceVersion"] = json!((100 + number).to_string());
        site.page.context.stores.machines.apply_written(read(object));
        site.page.context.env.sleep(std::time::Duration::from_secs(2)).await;
        site.board().current().await.unwrap();
    }
    let mut listener = Listener::new(&site, "reader", Some(&first)).await;
    listener.next().await.unwrap();
    assert_eq!(listener.next().await.unwrap().0, "reset");
}

#[tokio::test(start_paused = true)]
async fn silence_is_broken_by_a_beat_and_lost_rights_end_the_stream() {
    let site = Site::new(false);
    let mut listener = Listener::new(&site, "reader", None).await;
    assert_eq!(listener.next().await.unwrap().0, "hello");
    assert_eq!(listener.next().await.unwrap().0, "beat");
    site.lost.lock().unwrap().push("reader".to_owned());
    loop {
        let (name, _, bye) = listener.next().await.unwrap();
        if name == "bye" {
            assert_eq!(bye["code"], "Unauthenticated");
            break;
        }
        assert_eq!(name, "beat");
    }
    assert!(listener.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn not_too_many_listen_at_once_and_who_leaves_makes_room() {
    let site = Site::new(false);
    let mut listeners = Vec::new();
    for _ in 0..256 {
        listeners.push(Listener::new(&site, "reader", None).await);
    }
    assert_eq!(site.get(STREAM, "reader").await.0, 429);
    listeners.pop();
    listeners.push(Listener::new(&site, "reader", None).await);
}
