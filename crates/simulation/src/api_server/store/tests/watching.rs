//! Watches.

use serde_json::{Value, json};

use super::lab::{CONFIG_MAPS, Lab, MACHINES};

#[test]
fn a_watch_shows_what_happens_after_its_version() {
    let mut lab = Lab::new();
    lab.machine("a", json!({}));
    let version = lab.store.revision();
    let mut watcher = lab.watch(&format!("{MACHINES}?watch=true&resourceVersion={version}"));
    assert!(lab.events(&mut watcher).is_empty());
    lab.machine("b", json!({}));
    lab.merge(&format!("{MACHINES}/a"), json!({ "spec": { "providerID": "x" } }));
    lab.merge(&format!("{MACHINES}/a"), json!({}));
    lab.delete(&format!("{MACHINES}/b"), Value::Null);
    lab.post(CONFIG_MAPS, json!({ "metadata": { "name": "other" } }));
    assert_eq!(lab.events(&mut watcher), ["added b", "modified a", "deleted b"]);
}

#[test]
fn a_watch_without_version_begins_with_what_is_there() {
    let mut lab = Lab::new();
    lab.machine("a", json!({}));
    for query in ["", "&resourceVersion=0"] {
        let mut watcher = lab.watch(&format!("{MACHINES}?watch=true{query}"));
        assert_eq!(lab.events(&mut watcher), ["added a"], "{query}");
    }
    let streaming =
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watcher = lab.watch(&format!("{MACHINES}?watch=true{streaming}"));
    assert_eq!(lab.events(&mut watcher), ["added a", "BOOKMARK true"]);
}

#[test]
fn an_object_enters_and_leaves_the_view_of_a_selector() {
    let mut lab = Lab::new();
    let uri = format!("{MACHINES}/a");
    let mut labelled =
        lab.watch(&format!("{MACHINES}?watch=true&resourceVersion=3&labelSelector=app%3Dx"));
    let mut named = lab
        .watch(&format!("{MACHINES}?watch=true&resourceVersion=3&fieldSelector=metadata.name%3Db"));
    lab.machine("a", json!({}));
    lab.merge(&uri, json!({ "metadata": { "labels": { "app": "x" } } }));
    lab.merge(&uri, json!({ "spec": { "providerID": "y" } }));
    lab.merge(&uri, json!({ "metadata": { "labels": { "app": "z" } } }));
    lab.delete(&uri, Value::Null);
    assert_eq!(lab.events(&mut labelled), ["added a", "modified a", "deleted a"]);
    assert!(lab.events(&mut named).is_empty());
}

#[test]
fn a_version_that_is_forgotten_cannot_be_watched_from() {
    let mut lab = Lab::new();
    lab.machine("a", json!({}));
    let version = lab.store.revision();
    let uri = format!("{MACHINES}?watch=true&resourceVersion={version}");
    let mut open = lab.watch(&uri);
    assert!(lab.events(&mut open).is_empty());
    // Other kinds make the history long; a watch that is open does not mind.
    for index in 0..3000 {
        lab.post(CONFIG_MAPS, json!({ "metadata": { "name": format!("c{index}") } }));
    }
    assert!(lab.store.oldest_revision() > version);
    lab.machine("b", json!({}));
    assert_eq!(lab.events(&mut open), ["added b"]);
    assert_eq!(lab.events(&mut lab.watch(&uri)), ["ERROR 410"]);

    // Unless it missed something.
    lab.machine("c", json!({}));
    lab.machine("d", json!({}));
    lab.store.compact(lab.store.revision());
    assert_eq!(lab.events(&mut open), ["ERROR 410"]);
}
