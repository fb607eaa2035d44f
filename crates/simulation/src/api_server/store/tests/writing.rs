//! Creations, updates and patches.

use serde_json::{Value, json};

use super::lab::{CONFIG_MAPS, Lab, MACHINES, PODS, refused};

#[test]
fn a_new_object_gets_what_the_server_decides() {
    let mut lab = Lab::new();
    let machine =
        lab.machine("a", json!({ "status": { "phase": "Running" }, "spec": { "junk": 1 } }));
    assert_eq!(machine["metadata"]["generation"], 1);
    assert_eq!(machine["metadata"]["namespace"], "n");
    assert_eq!(machine["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(machine["metadata"]["uid"].as_str().unwrap().len(), 36);
    assert_eq!((&machine["status"], &machine["spec"]), (&Value::Null, &json!({})));
    assert_eq!(lab.commits.len(), 1);

    let (_, again) = lab.get(&format!("{MACHINES}/a"));
    assert_eq!(again, machine);
}

#[test]
fn generated_names_follow_the_source_of_chance() {
    let generate = |lab: &mut Lab| {
        let body = json!({ "metadata": { "generateName": "x-" } });
        lab.post(CONFIG_MAPS, body).1["metadata"]["name"].as_str().unwrap().to_owned()
    };
    let (mut one, mut other) = (Lab::new(), Lab::new());
    let first = generate(&mut one);
    assert_eq!(first.len(), 7);
    assert_eq!(first, generate(&mut other));
    assert_ne!(first, generate(&mut one));
}

#[test]
fn creations_are_refused_as_by_the_real_server() {
    let mut lab = Lab::new();
    lab.machine("a", json!({}));
    lab.machine("going", json!({ "metadata": { "finalizers": ["x/y"] } }));
    lab.delete(&format!("{MACHINES}/going"), Value::Null);
    let machine = |edit: Value| {
        let mut body = json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "metadata": { "name": "b" },
            "spec": {},
        });
        json_patch::merge(&mut body, &edit);
        body
    };
    let table = [
        (machine(json!({ "metadata": { "name": "a" } })), (409, "AlreadyExists")),
        (machine(json!({ "metadata": { "name": "going" } })), (409, "AlreadyExists")),
        (machine(json!({ "metadata": { "name": null } })), (422, "Invalid")),
        (machine(json!({ "metadata": { "name": "B" } })), (422, "Invalid")),
        (machine(json!({ "metadata": { "namespace": "m" } })), (400, "BadRequest")),
        (machine(json!({ "metadata": { "resourceVersion": "7" } })), (500, "")),
        (machine(json!({ "metadata": { "labels": { "a": 1 } } })), (400, "BadRequest")),
        (machine(json!({ "kind": null })), (400, "BadRequest")),
        (machine(json!({ "spec": null })), (422, "Invalid")),
        (machine(json!({ "spec": { "providerID": 1 } })), (422, "Invalid")),
    ];
    for (body, expected) in table {
        let answer = lab.post(MACHINES, body.clone());
        assert_eq!(refused(&answer), expected, "{body}: {}", answer.1);
        assert!(lab.commits.is_empty());
    }
    let (_, going) = lab.post(MACHINES, machine(json!({ "metadata": { "name": "going" } })));
    assert!(going["message"].as_str().unwrap().starts_with("object is being deleted: "));
    let elsewhere = MACHINES.replace("/n/", "/absent/");
    assert_eq!(lab.post(&elsewhere, machine(json!({}))).0, 404);
}

#[test]
fn updates_need_the_version_and_the_uid_that_are_stored() {
    let mut lab = Lab::new();
    let machine = lab.machine("a", json!({}));
    let uri = format!("{MACHINES}/a");
    let edited = |edit: Value| {
        let mut body = machine.clone();
        json_patch::merge(&mut body, &edit);
        body
    };
    let same = lab.put(&uri, machine.clone());
    assert_eq!(same, (200, machine.clone()), "nothing changed, so nothing is written");

    let table = [
        (json!({ "metadata": { "resourceVersion": "1" } }), (409, "Conflict")),
        (json!({ "metadata": { "resourceVersion": null } }), (422, "Invalid")),
        (json!({ "metadata": { "uid": "other" } }), (409, "Conflict")),
        (json!({ "metadata": { "name": "b" } }), (400, "BadRequest")),
        (json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }), (422, "Invalid")),
    ];
    for (edit, expected) in table {
        assert_eq!(refused(&lab.put(&uri, edited(edit.clone()))), expected, "{edit}");
    }
    let (code, written) = lab.put(&uri, edited(json!({ "spec": { "providerID": "x" } })));
    assert_eq!((code, &written["metadata"]["generation"]), (200, &json!(2)));
    assert_eq!(
        lab.put(&format!("{MACHINES}/z"), edited(json!({ "metadata": { "name": "z" } }))).0,
        404
    );
}

#[test]
fn a_config_map_can_be_overwritten_and_a_lease_made_by_an_update() {
    let mut lab = Lab::new();
    let map = json!({ "metadata": { "name": "a" }, "data": { "k": "1" } });
    lab.post(CONFIG_MAPS, map.clone());
    assert_eq!(lab.put(&format!("{CONFIG_MAPS}/a"), map).0, 200);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l";
    assert_eq!(lab.put(leases, json!({ "metadata": { "name": "l" } })).0, 201);
    let with_uid = json!({ "metadata": { "name": "k", "uid": "gone" } });
    assert_eq!(lab.put(&leases.replace("/l", "/k").replace("/keases", "/leases"), with_uid).0, 409);
}

#[test]
fn spec_and_status_are_written_apart_and_only_the_spec_counts_generations() {
    let table = [
        ("", json!({ "spec": { "providerID": "x" } }), 2, ("x", "")),
        ("", json!({ "status": { "phase": "Running" } }), 1, ("", "")),
        ("", json!({ "metadata": { "labels": { "a": "b" } } }), 1, ("", "")),
        ("/status", json!({ "status": { "phase": "Running" } }), 1, ("", "Running")),
        ("/status", json!({ "spec": { "providerID": "x" } }), 1, ("", "")),
        (
            "/status",
            json!({ "metadata": { "labels": { "a": "b" } }, "status": { "phase": "X", "junk": 1 } }),
            1,
            ("", "X"),
        ),
    ];
    for (subresource, patch, generation, (provider_id, phase)) in table {
        let mut lab = Lab::new();
        lab.machine("a", json!({}));
        let (code, machine) = lab.merge(&format!("{MACHINES}/a{subresource}"), patch.clone());
        assert_eq!(code, 200, "{patch}: {machine}");
        assert_eq!(machine["metadata"]["generation"], generation, "{patch}");
        let text = |pointer| machine.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        assert_eq!(
            (text("/spec/providerID"), text("/status/phase")),
            (provider_id, phase),
            "{patch}"
        );
        let labelled = subresource.is_empty() && patch.pointer("/metadata/labels").is_some();
        assert_eq!(machine.pointer("/metadata/labels").is_some(), labelled, "{patch}");
    }
}

/// The real server takes the metadata of the stored object for a status of a custom resource, so a uid
/// in such a patch is no precondition. A JSON patch that tests it is.
#[test]
fn preconditions_in_patches_hold_as_far_as_the_real_server_holds_them() {
    let patch =
        |metadata: Value| json!({ "metadata": metadata, "status": { "phase": "X" }, "spec": {} });
    let wrong = json!({ "uid": "other" });
    let stale = json!({ "resourceVersion": "1" });
    let table = [
        ("", wrong.clone(), (422, "Invalid")),
        ("", stale.clone(), (409, "Conflict")),
        ("/status", wrong, (200, "")),
        ("/status", stale, (409, "Conflict")),
    ];
    for (subresource, metadata, expected) in table {
        let mut lab = Lab::new();
        lab.machine("a", json!({}));
        let answer = lab.merge(&format!("{MACHINES}/a{subresource}"), patch(metadata.clone()));
        assert_eq!(refused(&answer), expected, "{subresource} {metadata}");
    }
    let mut lab = Lab::new();
    let uid = lab.machine("a", json!({}))["metadata"]["uid"].clone();
    for (value, expected) in [(json!("other"), 422), (uid, 200)] {
        let operations = json!([
            { "op": "test", "path": "/metadata/uid", "value": value },
            { "op": "add", "path": "/status", "value": { "phase": "Y" } },
        ]);
        assert_eq!(lab.json_patch(&format!("{MACHINES}/a/status"), operations).0, expected);
    }
}

#[test]
fn patches_are_refused_as_by_the_real_server() {
    let mut lab = Lab::new();
    lab.machine("a", json!({}));
    let uri = format!("{MACHINES}/a");
    assert_eq!(lab.merge(&uri, json!([1])).0, 400);
    assert_eq!(lab.json_patch(&uri, json!([{ "op": "remove", "path": "/spec/absent" }])).0, 422);
    assert_eq!(lab.json_patch(&uri, json!([{ "op": "dance" }])).0, 400);
    assert_eq!(lab.send("PATCH", &uri, "application/apply-patch+yaml", &json!({})).0, 415);
    assert_eq!(lab.merge(&format!("{MACHINES}/z"), json!({})).0, 404);
}

#[test]
fn pods_change_only_in_a_few_fields_and_are_bound_once() {
    let mut lab = Lab::new();
    lab.pod("p", json!({ "spec": { "nodeName": null } }));
    let uri = format!("{PODS}/p");
    assert_eq!(lab.merge(&uri, json!({ "spec": { "nodeName": "one" } })).0, 422);
    let binding = json!({ "metadata": { "name": "p" }, "target": { "name": "one" } });
    assert_eq!(lab.post(&format!("{uri}/binding"), binding.clone()).0, 201);
    assert_eq!(lab.get(&uri).1["spec"]["nodeName"], "one");
    assert_eq!(lab.post(&format!("{uri}/binding"), binding).0, 409);
}

#[test]
fn replicas_are_scaled_through_the_scale() {
    let mut lab = Lab::new();
    let sets = MACHINES.replace("machines", "machinesets");
    let body = json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "metadata": { "name": "s" },
        "spec": {},
    });
    assert_eq!(lab.post(&sets, body).1["spec"]["replicas"], 1);
    let scale = format!("{sets}/s/scale");
    assert_eq!(lab.merge(&scale, json!({ "spec": { "replicas": 4 } })).1["spec"]["replicas"], 4);
    let set = lab.get(&format!("{sets}/s")).1;
    assert_eq!((&set["spec"]["replicas"], &set["metadata"]["generation"]), (&json!(4), &json!(2)));
    let stale = json!({ "metadata": { "resourceVersion": "1" }, "spec": { "replicas": 5 } });
    assert_eq!(lab.merge(&scale, stale).0, 409);
}

#[test]
fn secrets_are_encoded_and_events_have_two_names() {
    let mut lab = Lab::new();
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "x" } });
    let (_, secret) = lab.post("/api/v1/namespaces/n/secrets", secret);
    assert_eq!((&secret["data"]["a"], &secret["type"]), (&json!("eA=="), &json!("Opaque")));

    let event = json!({
        "metadata": { "name": "e" },
        "involvedObject": { "kind": "Machine", "name": "a", "namespace": "n" },
        "message": "text",
    });
    lab.post("/api/v1/namespaces/n/events", event);
    let shown = lab.get("/apis/events.k8s.io/v1/namespaces/n/events/e").1;
    assert_eq!((&shown["note"], &shown["regarding"]["name"]), (&json!("text"), &json!("a")));
    let (_, list) = lab.get("/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Da");
    assert_eq!(list["items"][0]["note"], "text");
}
