//! Does the store know our own writes, never go back, and lose nothing that exists?

use std::sync::Mutex;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::*;

fn map(namespace: &str, name: &str, uid: &str, version: u64, value: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "metadata": {
            "namespace": namespace, "name": name, "uid": uid, "resourceVersion": version.to_string(),
            "managedFields": [{ "manager": "somebody" }],
        },
        "data": { "value": value, "color": value.chars().next().unwrap_or('-').to_string() },
    }))
    .unwrap()
}

fn value(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["value"]
}

/// A store, and the changes it announced in the form `key: before -> after`.
fn store() -> (Store<ConfigMap>, Arc<Mutex<Vec<String>>>) {
    let store: Store<ConfigMap> = Store::builder()
        .index("color", |map: &ConfigMap| {
            map.data.iter().filter_map(|data| data.get("color").cloned()).collect()
        })
        .prune(|map| map.binary_data = None)
        .build();
    let changes = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&changes);
    let reader = store.clone();
    store.on_change(move |change| {
        let text =
            |map: &Option<Arc<ConfigMap>>| map.as_ref().map_or("-", |map| value(map)).to_owned();
        // A listener may read the store, and sees the change.
        assert_eq!(reader.get(&change.key).is_some(), change.after.is_some());
        let line = format!("{}: {} -> {}", change.key, text(&change.before), text(&change.after));
        seen.lock().unwrap().push(line);
    });
    (store, changes)
}

fn taken(changes: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut changes.lock().unwrap())
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

fn keys(names: &[&str]) -> BTreeSet<ObjectKey> {
    names.iter().map(|name| key(name)).collect()
}

fn values(maps: &[Arc<ConfigMap>]) -> Vec<&str> {
    maps.iter().map(|map| value(map)).collect()
}

#[test]
fn lists_are_ordered_and_indexes_follow_every_change() {
    let (store, _) = store();
    store.apply_watched(map("ns", "b", "1", 5, "red-b"));
    store.apply_watched(map("other", "a", "2", 6, "red-other"));
    store.apply_watched(map("ns", "a", "3", 4, "blue-a"));
    assert_eq!(values(&store.list()), ["blue-a", "red-b", "red-other"]);
    assert_eq!(values(&store.list_in("ns")), ["blue-a", "red-b"]);
    assert_eq!(values(&store.list_in("n")), Vec::<&str>::new());
    assert_eq!(values(&store.by_index("color", "r")), ["red-b", "red-other"]);
    store.apply_watched(map("ns", "b", "1", 7, "blue-b"));
    assert_eq!(values(&store.by_index("color", "r")), ["red-other"]);
    assert_eq!(values(&store.by_index("color", "b")), ["blue-a", "blue-b"]);
    store.forget_written(&key("a"), "3");
    assert_eq!(values(&store.by_index("color", "b")), ["blue-b"]);
    assert_eq!(values(&store.by_index("shape", "b")), Vec::<&str>::new());
    let stored = store.get(&key("b")).unwrap();
    assert!(stored.metadata.managed_fields.is_none());
}

#[test]
fn our_own_write_is_seen_at_once_and_older_events_are_ignored() {
    let (store, changes) = store();
    store.apply_watched(map("ns", "a", "1", 5, "v5"));
    store.apply_written(map("ns", "a", "1", 8, "v8"));
    assert_eq!(taken(&changes), ["ns/a: - -> v5", "ns/a: v5 -> v8"]);
    // The watch lags behind, repeats itself, and reaches our write: nothing of it is news.
    for version in [5, 6, 7, 6, 8] {
        store.apply_watched(map("ns", "a", "1", version, &format!("v{version}")));
    }
    assert_eq!(taken(&changes), Vec::<String>::new());
    // A late answer to an older write does not overwrite what the watch brought.
    store.apply_watched(map("ns", "a", "1", 12, "v12"));
    store.apply_written(map("ns", "a", "1", 10, "v10"));
    assert_eq!(taken(&changes), ["ns/a: v8 -> v12"]);
}

#[test]
fn versions_are_compared_as_numbers() {
    let (store, _) = store();
    store.apply_watched(map("ns", "a", "1", 9, "v9"));
    store.apply_watched(map("ns", "a", "1", 10, "v10"));
    assert_eq!(value(&store.get(&key("a")).unwrap()), "v10");
}

#[test]
fn an_object_deleted_before_the_answer_to_its_creation_arrives_stays_gone() {
    let (store, changes) = store();
    store.apply_watched(map("ns", "a", "1", 5, "v5"));
    store.apply_watched_deletion(&map("ns", "a", "1", 6, "v5").metadata);
    store.apply_written(map("ns", "a", "1", 5, "v5"));
    assert_eq!(taken(&changes), ["ns/a: - -> v5", "ns/a: v5 -> -"]);
    assert!(store.read().doubtful.is_empty());
}

#[test]
fn a_write_that_the_watch_has_passed_without_showing_it_is_kept_and_questioned() {
    let (store, _) = store();
    store.apply_watched(map("ns", "other", "1", 50, "v50"));
    store.apply_written(map("ns", "a", "2", 40, "v40"));
    assert!(store.get(&key("a")).is_some());
    let doubt = store.read().next_doubt().unwrap();
    store.settle_doubt_as_gone(&doubt);
    assert!(store.get(&key("a")).is_none());
    // One that is ahead of the watch is not in question.
    store.apply_written(map("ns", "b", "3", 60, "v60"));
    assert!(store.read().next_doubt().is_none());
}

#[test]
fn an_answer_about_an_older_object_does_not_remove_its_successor() {
    let (store, _) = store();
    store.apply_watched(map("ns", "other", "1", 50, "v50"));
    store.apply_written(map("ns", "a", "2", 40, "v40"));
    let doubt = store.read().next_doubt().unwrap();
    store.apply_written(map("ns", "a", "3", 60, "v60"));
    store.settle_doubt_as_gone(&doubt);
    assert_eq!(value(&store.get(&key("a")).unwrap()), "v60");
}

#[test]
fn what_we_deleted_does_not_come_back_with_late_events_but_a_new_object_may_take_its_name() {
    let (store, changes) = store();
    store.apply_watched(map("ns", "a", "1", 5, "v5"));
    store.forget_written(&key("a"), "1");
    store.apply_watched(map("ns", "a", "1", 6, "late"));
    assert!(store.get(&key("a")).is_none());
    store.apply_watched(map("ns", "a", "2", 9, "new"));
    // The deletion of the old one arrives after its successor.
    store.apply_watched_deletion(&map("ns", "a", "1", 8, "v5").metadata);
    assert_eq!(taken(&changes), ["ns/a: - -> v5", "ns/a: v5 -> -", "ns/a: - -> new"]);
    // A stale list brings the old one once more.
    store.apply_watched(map("ns", "a", "1", 6, "late"));
    assert_eq!(value(&store.get(&key("a")).unwrap()), "new");
}

#[test]
fn removing_the_last_finalizer_of_a_deleted_object_removes_it() {
    let (store, _) = store();
    let mut deleted = map("ns", "a", "1", 5, "v5");
    deleted.metadata.finalizers = Some(vec!["hold".into()]);
    deleted.metadata.deletion_grace_period_seconds = Some(0);
    deleted.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    store.apply_deleted(&key("a"), "1", Some(deleted.clone()));
    assert!(store.get(&key("a")).is_some());
    deleted.metadata.finalizers = Some(vec![]);
    deleted.metadata.resource_version = Some("6".into());
    store.apply_written(deleted);
    assert!(store.get(&key("a")).is_none());
    store.apply_watched(map("ns", "a", "1", 5, "v5"));
    assert!(store.get(&key("a")).is_none());
}

#[test]
fn an_object_that_left_the_selection_may_come_back() {
    let (store, _) = store();
    store.apply_watched(map("ns", "a", "1", 5, "v5"));
    store.apply_watched_deletion(&map("ns", "a", "1", 6, "v6").metadata);
    store.apply_watched(map("ns", "a", "1", 7, "v7"));
    assert_eq!(value(&store.get(&key("a")).unwrap()), "v7");
}

#[test]
fn a_list_removes_what_it_lacks_and_says_so() {
    let (store, changes) = store();
    for (name, version) in [("a", 5), ("b", 6), ("c", 7)] {
        store.apply_watched(map("ns", name, name, version, name));
    }
    assert!(!store.is_synced());
    store.apply_watched(map("ns", "d", "d", 20, "d"));
    taken(&changes);
    store.finish_list(&keys(&["b", "d"]), Some(20));
    assert!(store.is_synced());
    assert_eq!(taken(&changes), ["ns/a: a -> -", "ns/c: c -> -"]);
    // The removed ones do not come back with a late answer to an old write.
    store.apply_written(map("ns", "a", "a", 6, "a"));
    assert!(store.get(&key("a")).is_none());
}

#[test]
fn a_list_that_may_be_older_than_what_we_know_removes_nothing_unasked() {
    let (store, changes) = store();
    store.apply_watched(map("ns", "a", "1", 5, "a"));
    store.apply_written(map("ns", "mine", "2", 30, "mine"));
    taken(&changes);
    // The list was made before our write.
    store.finish_list(&keys(&["a"]), Some(5));
    assert_eq!(taken(&changes), Vec::<String>::new());
    assert!(store.get(&key("mine")).is_some());
    let doubt = store.read().next_doubt().unwrap();
    assert_eq!(doubt.key, key("mine"));
    // The watch brings it: no question left.
    store.apply_watched(map("ns", "mine", "2", 30, "mine"));
    assert!(store.read().next_doubt().is_none());
    // An empty list destroys nothing by itself.
    store.finish_list(&BTreeSet::new(), None);
    assert_eq!(store.len(), 2);
    assert_eq!(store.read().doubtful.len(), 2);
}

#[test]
fn an_unreadable_object_is_kept_apart_and_returns_when_it_is_repaired() {
    let (store, changes) = store();
    store.apply_watched(map("ns", "a", "1", 5, "v5"));
    let broken = map("ns", "a", "1", 6, "").metadata;
    assert!(store.apply_invalid(broken.clone(), "data: not a map".into()));
    assert!(!store.apply_invalid(broken, "data: not a map".into()), "told once for each version");
    assert_eq!(store.invalid().len(), 1);
    assert!(store.get(&key("a")).is_none());
    store.apply_watched(map("ns", "a", "1", 5, "v5"));
    assert!(store.get(&key("a")).is_none(), "the older readable version is history");
    store.apply_watched(map("ns", "a", "1", 7, "v7"));
    assert!(store.invalid().is_empty());
    assert_eq!(taken(&changes), ["ns/a: - -> v5", "ns/a: v5 -> -", "ns/a: - -> v7"]);
}

#[test]
fn what_becomes_of_an_unreadable_object_is_told_with_its_metadata() {
    let (store, changes) = store();
    let versions = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&versions);
    store.on_change(move |change| {
        let version = |object: &Arc<InvalidObject>| object.metadata.resource_version.clone();
        seen.lock().unwrap().push(change.unreadable.iter().filter_map(version).collect::<Vec<_>>());
    });
    let broken = |name: &str, version| map("ns", name, name, version, "").metadata;
    let taken_versions = || std::mem::take(&mut *versions.lock().unwrap());
    store.apply_invalid(broken("a", 5), "bad".into());
    // As when it gets a deletion timestamp.
    store.apply_invalid(broken("a", 6), "bad".into());
    store.apply_watched_deletion(&broken("a", 7));
    assert_eq!(taken(&changes), ["ns/a: - -> -"; 2]);
    assert_eq!(taken_versions(), [vec!["5", "6"], vec!["6"]]);

    store.apply_invalid(broken("b", 8), "bad".into());
    store.apply_watched(map("ns", "b", "b", 9, "v9"));
    assert_eq!(taken(&changes), ["ns/b: - -> v9"]);
    assert_eq!(taken_versions(), [["8"]]);

    store.apply_invalid(broken("c", 10), "bad".into());
    store.finish_list(&keys(&["b"]), Some(10));
    assert_eq!(taken(&changes), ["ns/c: - -> -"]);
    assert!(store.invalid().is_empty());
}

#[test]
fn remembered_deletions_are_bounded() {
    let (store, _) = store();
    for number in 0..10_000_u64 {
        let metadata = map("ns", "a", &format!("uid-{number}"), number + 1, "v").metadata;
        store.apply_watched_deletion(&metadata);
    }
    assert!(store.read().tombstone_count() <= 4096);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_first_list_ends_with_it() {
    let (store, _) = store();
    let waiting = store.clone();
    let (synced, ()) = futures::join!(
        async move {
            waiting.synced().await;
            waiting.is_synced()
        },
        async { store.finish_list(&BTreeSet::new(), None) }
    );
    assert!(synced);
}
