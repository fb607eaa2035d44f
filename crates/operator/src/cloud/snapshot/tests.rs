//! What a picture takes in and what it drops.

use machinist_core::cloud::InstanceState;

use super::*;
use crate::cloud::testing::{ScriptedCloud, id};

fn instance(name: &str, uid: &str, state: InstanceState) -> Instance {
    ScriptedCloud::default().put(name, uid, state)
}

fn ids(snapshot: &Snapshot, uid: &str) -> Vec<String> {
    snapshot.of_machine(uid).map(|one| one.id.0.clone()).collect()
}

const VISIBILITY: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn the_index_follows_every_change_of_a_tag() {
    let now = Instant::now();
    let mut snapshot = Snapshot::default();
    snapshot.update(vec![instance("i-1", "a", InstanceState::Running)], now);
    snapshot.update(vec![instance("i-2", "a", InstanceState::Running)], now);
    assert_eq!(ids(&snapshot, "a"), ["i-1", "i-2"]);
    let changed = snapshot.update(vec![instance("i-1", "b", InstanceState::Running)], now);
    assert_eq!(changed.uids, BTreeSet::from(["a".to_owned(), "b".to_owned()]), "both are told");
    assert_eq!(ids(&snapshot, "a"), ["i-2"]);
    assert_eq!(ids(&snapshot, "b"), ["i-1"]);
    let changed = snapshot.replace(vec![], now, VISIBILITY);
    assert_eq!(changed.ids, BTreeSet::from([id("i-1"), id("i-2")]));
    assert!(ids(&snapshot, "a").is_empty() && ids(&snapshot, "b").is_empty());
    assert!(snapshot.by_uid.sorted().is_empty(), "nothing is left behind");
}

#[tokio::test(start_paused = true)]
async fn the_same_again_is_no_change_and_older_pictures_stay() {
    let now = Instant::now();
    let running = || vec![instance("i-1", "a", InstanceState::Running)];
    let mut snapshot = Snapshot::default();
    assert!(!snapshot.replace(running(), now, VISIBILITY).is_empty());
    let before = snapshot.clone();
    assert!(snapshot.replace(running(), now, VISIBILITY).is_empty());
    assert!(snapshot.update(running(), now).is_empty());
    assert!(Arc::ptr_eq(before.get(&id("i-1")).unwrap(), snapshot.get(&id("i-1")).unwrap()));
    assert!(!snapshot.update(vec![instance("i-1", "a", InstanceState::Stopped)], now).is_empty());
    assert_eq!(before.get(&id("i-1")).unwrap().state, InstanceState::Running);
    assert_eq!(snapshot.get(&id("i-1")).unwrap().state, InstanceState::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_list_never_takes_back_what_was_learnt_after_it_began() {
    let begun_at = Instant::now();
    let later = begun_at + Duration::from_secs(1);
    let mut snapshot = Snapshot::default();
    snapshot.update(vec![instance("i-1", "a", InstanceState::Stopped)], later);
    snapshot.launched(instance("i-2", "b", InstanceState::Pending), later);
    let old = vec![instance("i-1", "a", InstanceState::Running)];
    assert!(snapshot.replace(old.clone(), begun_at, VISIBILITY).is_empty());
    assert_eq!(snapshot.get(&id("i-1")).unwrap().state, InstanceState::Stopped);
    snapshot.replace(old.clone(), later + VISIBILITY / 2, VISIBILITY);
    assert!(snapshot.get(&id("i-2")).is_some(), "a launch may be invisible for a while");
    snapshot.replace(old, later + VISIBILITY, VISIBILITY);
    assert!(snapshot.get(&id("i-2")).is_none());
}
