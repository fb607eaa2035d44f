//! Clients, watches, observers and actors, with nothing going wrong.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Node, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams},
    runtime::watcher::{self, watcher},
};
use machinist_api::Machine;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Config, NAMESPACE, all, delete_machine, machines, next_of, put_machine, rest_of, server,
    server_with, watch,
};
use crate::api_server::{Subresource, Verb};

#[tokio::test(start_paused = true)]
async fn the_real_client_reads_and_writes_typed_objects() {
    let server = server();
    let client = server.client("operator");
    let nodes: Api<Node> = Api::all(client.clone());
    let node = serde_json::from_value(json!({ "metadata": { "name": "one" } })).unwrap();
    let node = nodes.create(&PostParams::default(), &node).await.unwrap();
    assert!(node.uid().is_some());

    let patch = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    nodes.patch_status("one", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(nodes.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let refused = nodes.get("absent").await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 404));

    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": { "nodeName": "one", "containers": [{ "name": "c", "image": "c" }] },
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    pods.evict("p", &EvictParams::default()).await.unwrap();
    assert!(pods.get("p").await.unwrap().metadata.deletion_timestamp.is_some());
    let at_once = DeleteParams::default().grace_period(0);
    pods.delete("p", &at_once).await.unwrap();
    assert_eq!(pods.get_opt("p").await.unwrap().map(|pod| pod.name_any()), None);

    let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
    let lease = serde_json::from_value(json!({
        "metadata": { "name": "l" },
        "spec": { "renewTime": "2026-01-01T00:00:00.123456789Z" },
    }))
    .unwrap();
    let mut lease = leases.create(&PostParams::default(), &lease).await.unwrap();
    lease.spec.as_mut().unwrap().holder_identity = Some("me".to_owned());
    leases.replace("l", &PostParams::default(), &lease).await.unwrap();
    let stale = leases.replace("l", &PostParams::default(), &lease).await.unwrap_err();
    assert!(matches!(stale, kube::Error::Api(status) if status.is_conflict()));
}

#[tokio::test(start_paused = true)]
async fn kubes_watcher_follows_the_server_through_the_ends_of_its_watches() {
    let server = server();
    put_machine(&server, "a", "1");
    let client = server.client("operator");
    let config = watcher::Config::default().timeout(30).page_size(1);
    let stream = watcher(machines(&client), config);
    let mut stream = std::pin::pin!(stream);
    let seen = all(&mut stream, 3).await;
    assert!(matches!(&seen[1], watcher::Event::InitApply(machine) if machine.name_any() == "a"));

    let actor = server.clone();
    let changes = async move {
        for round in 0..5 {
            tokio::time::sleep(Duration::from_secs(20)).await;
            put_machine(&actor, "a", &format!("later-{round}"));
        }
        delete_machine(&actor, "a");
    };
    let follow = async {
        let mut labels = Vec::new();
        loop {
            match all(&mut stream, 1).await.pop() {
                Some(watcher::Event::Apply(machine)) => labels.push(machine.labels()["l"].clone()),
                Some(watcher::Event::Delete(_)) => return labels,
                other => panic!("{other:?}"),
            }
        }
    };
    let (labels, ()) = tokio::join!(follow, changes);
    assert_eq!(labels, ["later-0", "later-1", "later-2", "later-3", "later-4"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_bookmarks_and_ends_at_its_time() {
    let begin = Instant::now();
    let server = server();
    let client = server.client("operator");
    let revision = server.revision();
    let query = format!("&resourceVersion={revision}&timeoutSeconds=150&allowWatchBookmarks=true");
    let bookmarks = rest_of(watch(&client, &query).await).await;
    assert_eq!(bookmarks, ["BOOKMARK"; 3]);
    assert_eq!(begin.elapsed().as_secs(), 150);
    assert!(server.watches().is_empty());

    let rare = server_with(&Config { bookmark_every: None, ..Config::default() });
    let silent = watch(&rare.client("x"), "&resourceVersion=3&timeoutSeconds=150").await;
    assert!(rest_of(silent).await.is_empty());
    let query = "&resourceVersion=3&timeoutSeconds=150&allowWatchBookmarks=true";
    assert_eq!(rest_of(watch(&rare.client("x"), query).await).await, ["BOOKMARK"]);
}

#[tokio::test(start_paused = true)]
async fn watches_end_when_the_server_ends_them_and_expire_when_it_forgets() {
    let server = server();
    let client = server.client("operator");
    let revision = server.revision();
    let query = format!("&resourceVersion={revision}");
    let mut stream = watch(&client, &query).await;
    put_machine(&server, "a", "1");
    assert_eq!(next_of(&mut stream, 1).await, ["ADDED a 1"]);
    let other = server.client("other");
    let other = watch(&other, &query).await;
    server.end_watches(|watch| &*watch.client == "operator");
    assert!(rest_of(stream).await.is_empty());
    assert_eq!(server.watches().len(), 1);
    drop(other);

    server.compact(server.revision());
    assert_eq!(rest_of(watch(&client, &query).await).await, ["ERROR"]);
}

#[tokio::test(start_paused = true)]
async fn observers_see_every_write_and_who_made_it() {
    let server = server();
    let log = Arc::new(Mutex::new(Vec::new()));
    let (own, looking) = (Arc::clone(&log), server.clone());
    server.observe(move |commit| {
        let seen = looking.get_object(commit.kind, NAMESPACE, commit.object().name());
        own.lock().unwrap().push(format!(
            "{} {:?} {} {}->{} {}",
            commit.origin.client,
            commit.verb,
            commit.object().name(),
            commit.before.is_some(),
            commit.after.is_some(),
            seen.is_some(),
        ));
    });
    let maps: Api<ConfigMap> = Api::namespaced(server.client("operator"), NAMESPACE);
    let map = serde_json::from_value(json!({ "metadata": { "name": "m" } })).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    maps.patch("m", &PatchParams::default(), &Patch::Merge(json!({ "data": { "a": "b" } })))
        .await
        .unwrap();
    maps.patch("m", &PatchParams::default(), &Patch::Merge(json!({ "data": { "a": "b" } })))
        .await
        .unwrap();
    server.delete::<ConfigMap>("person", NAMESPACE, "m", Value::Null).unwrap();
    let expected = [
        "operator Create m false->true true",
        "operator MergePatch m true->true true",
        "person Delete m true->false false",
    ];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn actors_read_and_write_the_truth() {
    let server = server();
    put_machine(&server, "a", "1");
    let mut machine: Machine = server.get(NAMESPACE, "a").unwrap();
    machine.spec.provider_id = Some("aws:///a/i-1".to_owned());
    let machine = server.update("actor", Subresource::None, &machine).unwrap();
    assert_eq!(machine.metadata.generation, Some(2));
    let patch = json!({ "status": { "phase": "Running" } });
    let patched =
        server.patch::<Machine>("actor", Subresource::Status, NAMESPACE, "a", patch).unwrap();
    assert_eq!(patched.value()["status"]["phase"], "Running");
    let stale = server.update("actor", Subresource::None, &machine).unwrap_err();
    assert_eq!((stale.code, stale.reason.as_str()), (409, "Conflict"));

    let map: ConfigMap =
        serde_json::from_value(json!({ "metadata": { "name": "m", "namespace": NAMESPACE } }))
            .unwrap();
    assert!(server.create("actor", &map).unwrap().uid().is_some());
    assert_eq!(server.list::<ConfigMap>().len(), 1);
    server.delete::<Machine>("actor", NAMESPACE, "a", Value::Null).unwrap();
    assert!(server.get::<Machine>(NAMESPACE, "a").is_none());
    assert_eq!(server.requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_same_requests_give_the_same_bytes() {
    async fn run() -> String {
        let server = server();
        let client = server.client("operator");
        let stream = watch(&client, "&timeoutSeconds=5&allowWatchBookmarks=true").await;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        for index in 0..20 {
            let map =
                json!({ "metadata": { "generateName": "g-" }, "data": { "i": index.to_string() } });
            maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap())
                .await
                .unwrap();
            put_machine(&server, &format!("m{}", index % 3), &index.to_string());
        }
        let events = rest_of(stream).await;
        let list = maps.list(&ListParams::default()).await.unwrap();
        format!("{events:?} {}", serde_json::to_string(&list).unwrap())
    }
    assert_eq!(run().await, run().await);
}

#[test]
fn verbs_know_whether_they_write() {
    assert!(!Verb::Watch.is_write());
    assert!(Verb::DeleteCollection.is_write());
}
