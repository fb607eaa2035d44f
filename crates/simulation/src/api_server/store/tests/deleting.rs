//! Deletions, finalizers, grace periods and the garbage collector.

use serde_json::{Value, json};

use super::lab::{CONFIG_MAPS, Lab, MACHINES, PODS, refused};
use crate::api_server::store::Origin;

#[test]
fn an_object_with_finalizers_stays_until_the_last_is_removed() {
    let mut lab = Lab::new();
    lab.machine("a", json!({ "metadata": { "finalizers": ["x/one", "x/two"] } }));
    let uri = format!("{MACHINES}/a");
    let (code, machine) = lab.delete(&uri, Value::Null);
    assert_eq!(
        (code, &machine["metadata"]["deletionTimestamp"]),
        (200, &json!("2026-01-01T00:00:00Z"))
    );
    assert_eq!(machine["metadata"]["generation"], 2);

    lab.pass(60);
    assert_eq!(lab.delete(&uri, Value::Null).1, machine, "a second deletion changes nothing");
    let more = json!({ "metadata": { "finalizers": ["x/one", "x/two", "x/three"] } });
    assert_eq!(refused(&lab.merge(&uri, more)), (422, "Invalid"));
    assert_eq!(lab.merge(&uri, json!({ "metadata": { "finalizers": ["x/one"] } })).0, 200);
    assert_eq!(lab.merge(&uri, json!({ "metadata": { "finalizers": null } })).0, 200);
    assert!(lab.commits[0].after.is_none());
    assert_eq!(lab.get(&uri).0, 404);
}

#[test]
fn preconditions_of_a_deletion_are_held() {
    let mut lab = Lab::new();
    let machine = lab.machine("a", json!({}));
    let uri = format!("{MACHINES}/a");
    let uid = &machine["metadata"]["uid"];
    let version = &machine["metadata"]["resourceVersion"];
    let table = [
        (json!({ "preconditions": { "uid": "other" } }), (409, "Conflict")),
        (json!({ "preconditions": { "resourceVersion": "1" } }), (409, "Conflict")),
        (json!({ "propagationPolicy": "Sideways" }), (422, "Invalid")),
        (json!({ "preconditions": { "uid": uid, "resourceVersion": version } }), (200, "")),
        (json!({}), (404, "NotFound")),
    ];
    for (options, expected) in table {
        assert_eq!(refused(&lab.delete(&uri, options.clone())), expected, "{options}");
    }
}

#[test]
fn pods_wait_for_their_kubelet() {
    // Additions to the pod, options of the deletion, seconds of grace (none where it goes at once).
    let table = [
        (json!({}), json!({}), Some(30)),
        (json!({}), json!({ "gracePeriodSeconds": 5 }), Some(5)),
        (json!({}), json!({ "gracePeriodSeconds": -3 }), Some(1)),
        (json!({}), json!({ "gracePeriodSeconds": 0 }), None),
        (json!({ "spec": { "nodeName": null } }), json!({}), None),
        (json!({ "spec": { "terminationGracePeriodSeconds": 0 } }), json!({}), None),
    ];
    for (additions, options, grace) in table {
        let mut lab = Lab::new();
        lab.pod("p", additions.clone());
        let (code, pod) = lab.delete(&format!("{PODS}/p"), options.clone());
        assert_eq!(code, 200);
        // It is marked even where it goes at once, so its end is two changes.
        assert_eq!(lab.commits.len(), if grace.is_some() { 1 } else { 2 }, "{additions} {options}");
        let stays = lab.get(&format!("{PODS}/p")).0 == 200;
        assert_eq!(
            stays.then(|| pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap()),
            grace
        );
    }
}

#[test]
fn a_grace_period_can_be_shortened_and_the_kubelet_ends_it() {
    let mut lab = Lab::new();
    lab.pod("p", json!({}));
    let uri = format!("{PODS}/p");
    lab.delete(&uri, Value::Null);
    lab.pass(2);
    assert_eq!(lab.delete(&uri, json!({ "gracePeriodSeconds": 60 })).0, 200);
    assert!(lab.commits.is_empty(), "a longer period changes nothing");
    let (_, pod) = lab.delete(&uri, json!({ "gracePeriodSeconds": 10 }));
    assert_eq!(pod["metadata"]["deletionTimestamp"], "2026-01-01T00:00:10Z");
    assert_eq!(lab.delete(&uri, json!({ "gracePeriodSeconds": 0 })).0, 200);
    assert_eq!(lab.get(&uri).0, 404);
}

#[test]
fn a_collection_is_deleted_by_its_labels() {
    let mut lab = Lab::new();
    for name in ["a", "b"] {
        lab.machine(name, json!({ "metadata": { "labels": { "name": name } } }));
    }
    assert_eq!(lab.delete(&format!("{MACHINES}?labelSelector=name%3Da"), Value::Null).0, 200);
    assert_eq!(
        (lab.get(&format!("{MACHINES}/a")).0, lab.get(&format!("{MACHINES}/b")).0),
        (404, 200)
    );
}

/// An owner and one dependent; returns the lab and the number of writes of the rounds until none is left.
fn collect(options: Value, blocking: bool) -> (Lab, Vec<usize>) {
    let mut lab = Lab::new();
    let owner = lab.machine("owner", json!({}));
    let reference = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "name": "owner",
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocking,
    });
    let body = json!({ "metadata": { "name": "own", "ownerReferences": [reference] } });
    assert_eq!(lab.post(CONFIG_MAPS, body).0, 201);
    assert_eq!(lab.store.collect_garbage(&Origin::tagged("gc"), lab.now).commits.len(), 0);
    assert_eq!(lab.delete(&format!("{MACHINES}/owner"), options).0, 200);
    let mut rounds = Vec::new();
    loop {
        let writes = lab.store.collect_garbage(&Origin::tagged("gc"), lab.now).commits.len();
        if writes == 0 {
            return (lab, rounds);
        }
        rounds.push(writes);
    }
}

#[test]
fn dependents_go_with_their_owners_as_the_policy_says() {
    let table = [
        (json!({}), false, 404, vec![1]),
        (json!({ "propagationPolicy": "Background" }), false, 404, vec![1]),
        (json!({ "propagationPolicy": "Foreground" }), true, 404, vec![2]),
        (json!({ "propagationPolicy": "Orphan" }), false, 200, vec![2]),
    ];
    for (options, blocking, dependent, expected) in table {
        let (mut lab, rounds) = collect(options.clone(), blocking);
        assert_eq!(lab.get(&format!("{MACHINES}/owner")).0, 404, "{options}");
        assert_eq!(lab.get(&format!("{CONFIG_MAPS}/own")).0, dependent, "{options}");
        assert_eq!(rounds, expected, "{options}");
    }
}

#[test]
fn an_owner_of_the_same_name_made_anew_is_another_owner() {
    let mut lab = Lab::new();
    lab.machine("owner", json!({}));
    let owner = |uid: &str| json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "name": "owner", "uid": uid });
    let unknown = json!({ "apiVersion": "batch/v1", "kind": "Job", "name": "r", "uid": "r" });
    for (name, owners) in
        [("gone", json!([owner("old")])), ("kept", json!([owner("old"), unknown]))]
    {
        lab.post(CONFIG_MAPS, json!({ "metadata": { "name": name, "ownerReferences": owners } }));
    }
    lab.store.collect_garbage(&Origin::tagged("gc"), lab.now);
    assert_eq!(lab.get(&format!("{CONFIG_MAPS}/gone")).0, 404);
    let kept = lab.get(&format!("{CONFIG_MAPS}/kept")).1;
    assert_eq!(kept["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
}
