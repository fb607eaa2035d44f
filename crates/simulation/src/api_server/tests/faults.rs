//! Each thing that can go wrong, once.

use std::time::Duration;

use jiff::SignedDuration;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{
    NAMESPACE, delete_machine, machine_kind, machines, next_of, put_machine, rest_of, server, watch,
};
use crate::api_server::{
    Age, ApiServer, EventContext, EventFate, EventType, Failure, Faults, Loss, RequestContext,
    RequestFate, RequestOutcome, Verb,
};

/// One fate for all requests of one verb.
struct OnVerb(Verb, RequestFate);

impl Faults for OnVerb {
    fn on_request(&mut self, context: &RequestContext<'_>) -> RequestFate {
        assert_eq!(context.client, "operator");
        assert!(context.oldest_revision <= context.revision);
        if context.request.verb == self.0 { self.1.clone() } else { RequestFate::default() }
    }
}

/// One fate for the events of one object with one label.
struct OnEvent(&'static str, EventFate);

impl Faults for OnEvent {
    fn on_event(&mut self, context: &EventContext<'_>) -> EventFate {
        let label = context.object.value().pointer("/metadata/labels/l");
        let hit = label == Some(&json!(self.0)) && context.event_type != EventType::Deleted;
        if hit { self.1 } else { EventFate::Deliver }
    }
}

fn label_of(server: &ApiServer) -> String {
    let machine = server.get_object(machine_kind(), NAMESPACE, "a").unwrap();
    machine.value()["metadata"]["labels"]["l"].as_str().unwrap().to_owned()
}

/// Patches a Machine under a fault; returns what the client saw, what is stored, and the seconds.
async fn patch_under(fate: RequestFate) -> (String, String, u64) {
    let server = server();
    put_machine(&server, "a", "old");
    server.set_faults(OnVerb(Verb::MergePatch, fate));
    let api = machines(&server.client("operator"));
    let begin = Instant::now();
    let patch = json!({ "metadata": { "labels": { "l": "new" } } });
    let parameters = PatchParams::default();
    let patch = Patch::Merge(&patch);
    let answer = timeout(Duration::from_secs(60), api.patch("a", &parameters, &patch)).await;
    let seen = match answer {
        Err(_) => "silence".to_owned(),
        Ok(Ok(_)) => "ok".to_owned(),
        Ok(Err(kube::Error::Api(status))) => status.code.to_string(),
        Ok(Err(_)) => "broken".to_owned(),
    };
    (seen, label_of(&server), begin.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn requests_meet_their_fates() {
    let unavailable = || Failure::new(503, "ServiceUnavailable", "injected");
    let seconds = Duration::from_secs;
    let table: [(RequestFate, (&str, &str, u64)); 9] = [
        (RequestFate::default(), ("ok", "new", 0)),
        (RequestOutcome::Refuse(unavailable()).into(), ("503", "old", 0)),
        (RequestOutcome::LoseRequest(Loss::Disconnect).into(), ("broken", "old", 0)),
        (RequestOutcome::LoseRequest(Loss::Silence).into(), ("silence", "old", 60)),
        (RequestOutcome::LoseAnswer(Loss::Disconnect).into(), ("broken", "new", 0)),
        (RequestOutcome::LoseAnswer(Loss::Silence).into(), ("silence", "new", 60)),
        (RequestOutcome::LoseAnswer(Loss::Status(unavailable())).into(), ("503", "new", 0)),
        (RequestFate { delay: seconds(5), ..RequestFate::default() }, ("ok", "new", 5)),
        (RequestFate { answer_delay: seconds(7), ..RequestFate::default() }, ("ok", "new", 7)),
    ];
    for (fate, (seen, stored, elapsed)) in table {
        let expected = (seen.to_owned(), stored.to_owned(), elapsed);
        assert_eq!(patch_under(fate.clone()).await, expected, "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_and_reads_can_be_of_an_earlier_time() {
    let server = server();
    put_machine(&server, "a", "old");
    let revision = server.revision();
    tokio::time::sleep(Duration::from_secs(60)).await;
    put_machine(&server, "a", "new");
    put_machine(&server, "b", "new");
    let api: Api<_> = machines(&server.client("operator"));
    for age in [Age::Revision(revision), Age::Time(SignedDuration::from_secs(30))] {
        server.set_faults(OnVerb(Verb::List, RequestOutcome::Stale(age).into()));
        let list = api.list(&ListParams::default()).await.unwrap();
        assert_eq!(list.items.len(), 1, "{age:?}");
        assert_eq!(list.metadata.resource_version, Some(revision.to_string()));
        server.set_faults(OnVerb(Verb::Get, RequestOutcome::Stale(age).into()));
        assert_eq!(api.get("a").await.unwrap().metadata.labels.unwrap()["l"], "old");
    }
    server.set_faults(OnVerb(
        Verb::List,
        RequestOutcome::Stale(Age::Time(SignedDuration::from_hours(9))).into(),
    ));
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
}

/// Makes the same changes under a fault and returns what a watch of two minutes shows of them.
async fn watch_under(fate: EventFate) -> (Vec<String>, u64) {
    let server = server();
    put_machine(&server, "a", "1");
    let revision = server.revision();
    server.set_faults(OnEvent("2", fate));
    let client = server.client("operator");
    let begin = Instant::now();
    let stream = watch(&client, &format!("&resourceVersion={revision}&timeoutSeconds=120")).await;
    put_machine(&server, "a", "2");
    put_machine(&server, "b", "x");
    put_machine(&server, "c", "y");
    put_machine(&server, "a", "3");
    delete_machine(&server, "c");
    let events = timeout(Duration::from_secs(1000), rest_of(stream)).await;
    (events.unwrap_or_else(|_| vec!["nothing".to_owned()]), begin.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn events_meet_their_fates() {
    let second = "MODIFIED a 2";
    let added = ["ADDED b x", "ADDED c y"];
    let rest = ["ADDED b x", "ADDED c y", "MODIFIED a 3", "DELETED c y"];
    let minute = Duration::from_secs(60);
    let with = |head: &[&'static str]| [head, &rest].concat();
    let table: [(EventFate, Vec<&str>, u64); 10] = [
        (EventFate::Deliver, with(&[second]), 120),
        (EventFate::Drop, with(&[]), 120),
        (EventFate::Duplicate, with(&[second, second]), 120),
        (EventFate::Regress, with(&[second, "MODIFIED a 1"]), 120),
        (EventFate::Lag(minute), with(&[second]), 120),
        (
            EventFate::Defer { events: 1, at_most: minute },
            vec![added[0], second, added[1], "MODIFIED a 3", "DELETED c y"],
            120,
        ),
        // Never behind a later event of the same object.
        (
            EventFate::Defer { events: 9, at_most: minute },
            vec![added[0], added[1], second, "MODIFIED a 3", "DELETED c y"],
            120,
        ),
        (EventFate::End, vec![], 0),
        (EventFate::Expire, vec!["ERROR"], 0),
        (EventFate::Freeze, vec!["nothing"], 1000),
    ];
    for (fate, expected, elapsed) in table {
        let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(watch_under(fate).await, (expected, elapsed), "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lag_holds_back_what_comes_after_it_and_a_deferred_event_comes_in_the_end() {
    let late = Duration::from_secs(40);
    let table = [
        (EventFate::Lag(late), ["ADDED a 2", "ADDED b x"], [40, 40]),
        (EventFate::Defer { events: 5, at_most: late }, ["ADDED b x", "ADDED a 2"], [0, 40]),
    ];
    for (fate, expected, elapsed) in table {
        let server = server();
        server.set_faults(OnEvent("2", fate));
        let client = server.client("operator");
        let mut stream = watch(&client, &format!("&resourceVersion={}", server.revision())).await;
        let begin = Instant::now();
        put_machine(&server, "a", "2");
        put_machine(&server, "b", "x");
        for (expected, elapsed) in expected.into_iter().zip(elapsed) {
            assert_eq!(next_of(&mut stream, 1).await, [expected], "{fate:?}");
            assert_eq!(begin.elapsed().as_secs(), elapsed, "{fate:?}");
        }
    }
}
