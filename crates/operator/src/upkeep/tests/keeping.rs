//! Objects that are made, restored, and left alone.

use http::Method;

use super::*;
use crate::engine::{queue::Queue, testing::Fault};

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_made_once_and_then_nothing_is_written() {
    let lab = Lab::new(&KEEP_ALL);
    lab.settle().await;
    assert_eq!(
        lab.writes(),
        [
            format!("POST {MUTATING}"),
            format!("POST {VALIDATING}"),
            format!("POST {DAEMON_SETS}"),
            format!("POST {CHECKS}"),
        ]
    );
    let daemon_set = lab.object(DAEMON_SETS, HANDLER);
    let container = &daemon_set["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "image-1");
    assert_eq!(lab.upkeep.facts.problems(), Some(vec![]));
    for _ in 0..20 {
        lab.pass().await;
    }
    assert_eq!(lab.writes().len(), 4, "nothing changed, nothing was written");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_kept_is_left_alone() {
    let lab = Lab::new(&[]);
    lab.settle().await;
    assert_eq!(lab.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_made_anew() {
    let lab = Lab::new(&KEEP_ALL);
    lab.settle().await;
    for (collection, name) in [
        (MUTATING, "machine-api"),
        (VALIDATING, "machine-api"),
        (DAEMON_SETS, HANDLER),
        (CHECKS, HANDLER),
    ] {
        let before = lab.object(collection, name);
        let uid = lab.delete(collection, name);
        lab.settle().await;
        let mut after = lab.object(collection, name);
        assert_ne!(after["metadata"]["uid"], uid.as_str(), "{collection}");
        after["metadata"] = before["metadata"].clone();
        assert_eq!(after, before, "{collection}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_webhook_is_restored_and_its_bundle_is_kept() {
    let lab = Lab::new(&KEEP_ALL);
    lab.settle().await;
    for collection in [MUTATING, VALIDATING] {
        let mut injected = lab.object(collection, "machine-api");
        injected["webhooks"][0]["clientConfig"]["caBundle"] = json!("b25l");
        injected["webhooks"][1]["clientConfig"]["caBundle"] = json!("dHdv");
        lab.put(collection, injected.clone());
        let writes = lab.writes().len();
        lab.settle().await;
        assert_eq!(lab.writes().len(), writes, "a bundle that is injected is no change");
        let mut changed = injected.clone();
        changed["webhooks"][0]["admissionReviewVersions"] = json!(["v1beta1"]);
        changed["webhooks"][1]["clientConfig"]["service"]["name"] = json!("elsewhere");
        changed["webhooks"][1]["objectSelector"] = json!({ "matchLabels": { "a": "b" } });
        changed["metadata"]["annotations"] = json!({ "theirs": "kept" });
        lab.put(collection, changed);
        lab.settle().await;
        let after = lab.object(collection, "machine-api");
        assert_eq!(after["webhooks"], injected["webhooks"], "{collection}");
        let annotations = &after["metadata"]["annotations"];
        assert_eq!(annotations["service.beta.openshift.io/inject-cabundle"], "true");
        assert_eq!(annotations["theirs"], "kept");
        assert_eq!(lab.writes().len(), writes + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn changed_handlers_and_their_check_are_restored() {
    let lab = Lab::new(&KEEP_ALL);
    lab.settle().await;
    let before = lab.object(DAEMON_SETS, HANDLER);
    let mut changed = before.clone();
    changed["spec"]["template"]["spec"]["nodeSelector"]["nowhere"] = json!("x");
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!("theirs");
    lab.put(DAEMON_SETS, changed);
    lab.settle().await;
    let typed = |object: Value| -> k8s_openapi::api::apps::v1::DaemonSet { read(object) };
    assert_eq!(typed(lab.object(DAEMON_SETS, HANDLER)).spec, typed(before).spec);

    let before = lab.object(CHECKS, HANDLER);
    let mut changed = before.clone();
    changed["spec"]["maxUnhealthy"] = json!(0);
    changed["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/paused": "" });
    lab.put(CHECKS, changed);
    lab.settle().await;
    let after = lab.object(CHECKS, HANDLER);
    assert_eq!(after["spec"], before["spec"]);
    let annotations = &after["metadata"]["annotations"];
    assert_eq!(annotations["cluster.x-k8s.io/paused"], "", "whoever pauses it may");
}

#[tokio::test(start_paused = true)]
async fn a_proxy_reaches_the_handlers_and_leaves_them() {
    let lab = Lab::new(&KEEP_ALL);
    lab.settle().await;
    let environment = || {
        let object = lab.object(DAEMON_SETS, HANDLER);
        let entries = object["spec"]["template"]["spec"]["containers"][0]["env"].clone();
        let name = |entry: &Value| entry["name"].as_str().unwrap().to_owned();
        entries.as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    let put = |version: u32, url: &str| {
        let proxies = &lab.world.context.stores.openshift.proxies;
        proxies.apply_written(read(json!({
            "metadata": { "name": "cluster", "uid": "p", "resourceVersion": version.to_string() },
            "spec": { "httpsProxy": url }, "status": { "httpsProxy": url },
        })));
    };
    put(5, "http://proxy");
    lab.settle().await;
    assert_eq!(environment(), ["KUBECONFIG", "NODE_NAME", "HTTPS_PROXY"]);
    put(6, "");
    lab.settle().await;
    assert_eq!(environment(), ["KUBECONFIG", "NODE_NAME"]);
}

#[tokio::test(start_paused = true)]
async fn the_bundle_of_our_own_server_is_set_and_followed() {
    let source = CaBundleSource::new();
    let flags = ["--keep-webhooks=url:https://127.0.0.1:9443"];
    let lab = Lab::with_bundle(&flags, source.bundle());
    lab.settle().await;
    assert_eq!(lab.writes(), [""; 0], "nobody would be believed yet");
    for (pem, base64) in [("one", "b25l"), ("two", "dHdv")] {
        source.tell(Authorities::Bundle(pem.as_bytes().into()));
        lab.settle().await;
        let config = &lab.object(VALIDATING, "machine-api")["webhooks"][1]["clientConfig"];
        assert_eq!(config["caBundle"], base64);
        assert_eq!(
            config["url"],
            "https://127.0.0.1:9443/validate-machine-openshift-io-v1beta1-machineset"
        );
    }
}

fn old_controllers(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "machine-api-controllers", "namespace": "ns", "uid": "old" },
        "spec": {
            "replicas": replicas, "selector": {},
            "template": {
                "metadata": {}, "spec": { "containers": [{ "name": "machine-controller" }] },
            },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn the_controllers_before_us_are_scaled_to_0_and_whoever_undoes_it_is_told_of() {
    let lab = Lab::new(&[]);
    lab.put(DEPLOYMENTS, old_controllers(1));
    lab.settle().await;
    let replicas =
        || lab.object(DEPLOYMENTS, "machine-api-controllers")["spec"]["replicas"].clone();
    assert_eq!(replicas(), 0);
    assert_eq!(lab.writes(), [format!("PATCH {DEPLOYMENTS}/machine-api-controllers")]);
    assert_eq!(lab.upkeep.facts.problems(), Some(vec![]));
    let scaled_by_hand = |replicas: i32| {
        let mut old = lab.object(DEPLOYMENTS, "machine-api-controllers");
        old["spec"]["replicas"] = json!(replicas);
        old
    };
    lab.put(DEPLOYMENTS, scaled_by_hand(1));
    *lab.upkeep.history() = machinist_core::upkeep::History::default();
    lab.settle().await;
    assert_eq!(replicas(), 1, "it is not fought, nor after a restart");
    let problems = lab.upkeep.facts.problems().unwrap();
    assert!(problems[0].contains("was scaled up again"), "{problems:?}");
    lab.put(DEPLOYMENTS, scaled_by_hand(0));
    lab.settle().await;
    assert_eq!(lab.upkeep.facts.problems(), Some(vec![]));
    let Lab { world, upkeep } = lab;
    drop(upkeep);
    assert!(world.into_event_count().await > 0, "it is told");
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_keeps_no_other_from_being_made_and_is_tried_for_ever() {
    let lab = Lab::new(&KEEP_ALL);
    lab.server().fail(|method, path| {
        if method == Method::POST && path == MUTATING { Fault::Code(500) } else { Fault::None }
    });
    for _ in 0..30 {
        assert!(matches!(lab.pass().await, Outcome::Failed(_)));
    }
    lab.object(VALIDATING, "machine-api");
    lab.object(DAEMON_SETS, HANDLER);
    let problems = lab.upkeep.facts.problems().unwrap();
    assert!(problems[0].contains("MutatingWebhookConfiguration machine-api"), "{problems:?}");
    lab.server().fail(|_, _| Fault::None);
    assert!(matches!(lab.settle().await, Outcome::RecheckAfter(_)));
    lab.object(MUTATING, "machine-api");
    assert_eq!(lab.upkeep.facts.problems(), Some(vec![]));
}

#[tokio::test(start_paused = true)]
async fn whoever_writes_first_is_not_written_over_unseen() {
    let lab = Lab::new(&KEEP_ALL);
    lab.settle().await;
    let mut changed = lab.object(CHECKS, HANDLER);
    changed["spec"]["maxUnhealthy"] = json!(0);
    lab.put(CHECKS, changed);
    // Somebody writes what our watch has not shown yet.
    let mut newer = lab.object(CHECKS, HANDLER);
    newer["metadata"]["annotations"] = json!({ "new": "here" });
    lab.server().put(CHECKS, newer);
    let outcome = lab.pass().await;
    assert!(matches!(outcome, Outcome::RecheckAfter(AFTER_CONFLICT)), "{outcome:?}");
    assert_eq!(lab.object(CHECKS, HANDLER)["spec"]["maxUnhealthy"], 0);
    lab.put(CHECKS, lab.object(CHECKS, HANDLER));
    lab.settle().await;
    assert_eq!(lab.object(CHECKS, HANDLER)["spec"]["maxUnhealthy"], "100%");
}

#[tokio::test(start_paused = true)]
async fn every_change_of_what_is_looked_at_wakes_a_pass() {
    let lab = Lab::new(&KEEP_ALL);
    let queue = Queue::new(NAME, &lab.world.context.env, &lab.world.context.metrics);
    let to = queue.clone();
    let shared = &lab.world.context.stores;
    lab.upkeep
        .stores
        .on_change(shared, move || to.add(ObjectKey::cluster_wide(to.depth().to_string())));
    let mut woken = 0;
    let mut check = |what: &str| {
        woken += 1;
        assert_eq!(queue.depth(), woken, "{what}");
    };
    lab.put(DEPLOYMENTS, old_controllers(1));
    check("the old controllers");
    let metadata = json!({ "name": "cluster", "uid": "u", "resourceVersion": "1" });
    let object = json!({ "metadata": metadata, "spec": {} });
    shared.infrastructures.apply_written(read(object.clone()));
    check("the infrastructure");
    shared.openshift.proxies.apply_written(read(object.clone()));
    check("the proxy");
    lab.upkeep.stores.cluster_operators.apply_written(read(object));
    check("the ClusterOperator");
    for (collection, object) in [
        (MUTATING, json!({ "metadata": { "name": "machine-api" } })),
        (VALIDATING, json!({ "metadata": { "name": "machine-api" } })),
        (DAEMON_SETS, json!({ "metadata": { "name": HANDLER, "namespace": "ns" } })),
        (CHECKS, json!({ "metadata": { "name": HANDLER, "namespace": "ns" }, "spec": {} })),
    ] {
        lab.put(collection, object);
        check(collection);
    }
    lab.put(CHECKS, json!({ "metadata": { "name": "other", "namespace": "ns" }, "spec": {} }));
    assert_eq!(queue.depth(), woken, "another's check is not ours");
}
