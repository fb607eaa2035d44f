//! Are the same things filled in and refused as by Cluster API's own webhooks?

use serde_json::{Value, json};

use super::{
    Kind,
    defaults::fill_in,
    review::{Purpose, answer, converted},
    rules::faults,
};

fn template() -> Value {
    json!({
        "metadata": { "labels": { "pool": "a" } },
        "spec": {
            "clusterName": "c1", "version": "v1.34.0", "bootstrap": { "dataSecretName": "d" },
            "infrastructureRef": { "apiGroup": "i.example.com", "kind": "FooTemplate", "name": "f" },
        },
    })
}

fn set() -> Value {
    json!({
        "metadata": { "name": "x", "namespace": "ns" },
        "spec": {
            "clusterName": "c1", "replicas": 1, "template": template(),
            "selector": { "matchLabels": { "pool": "a" } },
        },
    })
}

fn with(mut object: Value, path: &[&str], value: Value) -> Value {
    let mut place = &mut object;
    for step in path {
        place = &mut place[*step];
    }
    *place = value;
    object
}

#[test]
fn a_machine_gets_its_label_its_v_and_its_timeout() {
    let machine = json!({ "metadata": {}, "spec": { "clusterName": "c1", "version": "1.34.0" } });
    let filled = fill_in(Kind::Machine, &machine, None);
    assert_eq!(filled["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "c1");
    assert_eq!(filled["spec"]["version"], "v1.34.0");
    assert_eq!(filled["spec"]["deletion"]["nodeDeletionTimeoutSeconds"], 10);
    let chosen = with(machine, &["spec", "deletion", "nodeDeletionTimeoutSeconds"], json!(0));
    let kept = fill_in(Kind::Machine, &chosen, None);
    assert_eq!(kept["spec"]["deletion"]["nodeDeletionTimeoutSeconds"], 0);
}

#[test]
fn a_set_without_a_selector_selects_by_its_name() {
    let bare =
        json!({ "metadata": { "name": "x" }, "spec": { "clusterName": "c1", "template": {} } });
    for (kind, key) in [
        (Kind::MachineSet, "cluster.x-k8s.io/set-name"),
        (Kind::MachineDeployment, "cluster.x-k8s.io/deployment-name"),
    ] {
        let filled = fill_in(kind, &bare, None);
        assert_eq!(filled["spec"]["selector"]["matchLabels"][key], "x");
        assert_eq!(filled["spec"]["template"]["metadata"]["labels"][key], "x");
        assert_eq!(filled["spec"]["replicas"], 1);
        assert_eq!(fill_in(kind, &filled, None), filled, "once is enough");
    }
    let strategy = &fill_in(Kind::MachineDeployment, &bare, None)["spec"]["rollout"]["strategy"];
    assert_eq!(
        *strategy,
        json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } })
    );
}

#[test]
fn the_size_stays_within_the_bounds_of_the_autoscaler() {
    let bounded = json!({
        "metadata": { "name": "x", "annotations": {
            "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "2",
            "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "5",
        } },
        "spec": { "clusterName": "c1" },
    });
    let old = |size: i64| Some(json!({ "spec": { "replicas": size } }));
    for (old, wanted) in [(None, 2), (old(1), 2), (old(4), 4), (old(9), 5)] {
        let filled = fill_in(Kind::MachineSet, &bounded, old.as_ref());
        assert_eq!(filled["spec"]["replicas"], wanted, "{old:?}");
    }
}

#[test]
fn what_is_right_is_not_refused() {
    let machine = json!({ "metadata": { "name": "m" }, "spec": template()["spec"].clone() });
    let check = json!({
        "metadata": { "name": "h" },
        "spec": { "clusterName": "c1", "selector": { "matchLabels": { "pool": "a" } } },
    });
    let rule = json!({ "metadata": { "name": "r" }, "spec": { "drain": { "behavior": "Skip" } } });
    for (kind, object) in [
        (Kind::Machine, machine),
        (Kind::MachineSet, set()),
        (Kind::MachineDeployment, set()),
        (Kind::MachineHealthCheck, check),
        (Kind::MachineDrainRule, rule),
    ] {
        let filled = fill_in(kind, &object, None);
        assert_eq!(faults(kind, &filled, None), [], "{kind:?}");
    }
}

#[test]
fn what_is_wrong_is_refused_by_the_name_of_its_field() {
    let machine = |path: &[&str], value: Value| {
        let right = json!({ "metadata": { "name": "m" }, "spec": template()["spec"].clone() });
        (Kind::Machine, with(right, path, value))
    };
    let set_with = |path: &[&str], value: Value| (Kind::MachineSet, with(set(), path, value));
    let deployment =
        |path: &[&str], value: Value| (Kind::MachineDeployment, with(set(), path, value));
    let update = |surge: Value, unavailable: Value| {
        let update = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
        let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": update });
        deployment(&["spec", "rollout"], json!({ "strategy": strategy }))
    };
    let check = |labels: Value, checks: Value| {
        let spec =
            json!({ "clusterName": "c1", "selector": { "matchLabels": labels }, "checks": checks });
        (Kind::MachineHealthCheck, json!({ "metadata": { "name": "h" }, "spec": spec }))
    };
    let rule = json!({ "spec": { "drain": { "behavior": "Skip", "order": 1 } }, "metadata": {} });
    let taint = json!([{ "key": "k", "effect": "NoSchedule", "propagation": "Always" }]);
    let other = json!({ "cluster.x-k8s.io/cluster-name": "c2" });
    let long = "x".repeat(256 * 1024);
    let cases = [
        (machine(&["spec", "bootstrap"], json!({})), "spec.bootstrap.data: Required"),
        (machine(&["spec", "version"], json!("v1.34")), "spec.version: Invalid"),
        (machine(&["spec", "taints"], taint), "spec.taints: Forbidden"),
        (
            set_with(&["spec", "selector", "matchLabels", "pool"], json!("b")),
            "spec.template.metadata.labels: Invalid",
        ),
        (
            set_with(&["spec", "template", "spec", "clusterName"], json!("other")),
            "spec.template.spec.clusterName: Invalid",
        ),
        (
            set_with(&["spec", "machineNaming"], json!({ "template": "x" })),
            "spec.machineNaming.template: Invalid",
        ),
        (
            deployment(&["spec", "machineNaming"], json!({ "template": "M-{{ .random }}" })),
            "spec.machineNaming.template: Invalid value: a machine would be named \"M-bcdfg\"",
        ),
        (
            set_with(&["spec", "template", "metadata", "labels", "a b"], json!("x")),
            "spec.template.metadata.labels: Invalid value: \"a b\"",
        ),
        (
            deployment(&["spec", "template", "metadata", "labels", "a"], json!("x y")),
            "spec.template.metadata.labels: Invalid value: \"x y\"",
        ),
        (
            set_with(&["spec", "template", "metadata", "annotations"], json!({ "/a": "" })),
            "spec.template.metadata.annotations: Invalid value: \"/a\"",
        ),
        (
            set_with(&["spec", "template", "metadata", "annotations"], json!({ "a": long })),
            "spec.template.metadata.annotations: Too long",
        ),
        (
            update(json!(0), json!("0%")),
            "spec.rollout.strategy.rollingUpdate.maxUnavailable: Invalid",
        ),
        (update(json!("x"), json!(0)), "spec.rollout.strategy.rollingUpdate.maxSurge: Invalid"),
        (deployment(&["metadata", "name"], json!("m".repeat(64))), "metadata.name: Invalid"),
        (
            deployment(&["spec", "remediation"], json!({ "maxInFlight": "x" })),
            "spec.remediation.maxInFlight: Invalid",
        ),
        (
            check(json!({ "a": "b" }), json!({ "nodeStartupTimeoutSeconds": 10 })),
            "spec.checks.nodeStartupTimeoutSeconds: Invalid",
        ),
        (check(other, json!({})), "spec.selector.matchLabels: Invalid"),
        ((Kind::MachineDrainRule, rule), "spec.drain.order: Forbidden"),
    ];
    for ((kind, object), expected) in cases {
        let faults = faults(kind, &object, None);
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        assert!(first.starts_with(expected), "{kind:?}: {first}, not {expected}");
    }
    let moved = with(set(), &["spec", "clusterName"], json!("c2"));
    let moved = with(moved, &["spec", "template", "spec", "clusterName"], json!("c2"));
    let faults = faults(Kind::MachineSet, &moved, Some(&set()));
    assert_eq!(faults.len(), 1);
    assert!(faults[0].to_string().starts_with("spec.clusterName: Forbidden"));
}

#[test]
fn the_paths_are_those_of_cluster_api() {
    assert_eq!(Kind::MachineSet.mutate_path(), "/mutate-cluster-x-k8s-io-v1beta2-machineset");
    let validate = Kind::MachineDrainRule.validate_path();
    assert_eq!(validate, "/validate-cluster-x-k8s-io-v1beta2-machinedrainrule");
}

fn review(operation: &str, object: &Value, old: Option<&Value>) -> Vec<u8> {
    let request = json!({ "uid": "u", "operation": operation, "object": object, "oldObject": old });
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request,
    });
    review.to_string().into_bytes()
}

#[test]
fn a_review_is_answered_with_the_parts_that_were_filled_in() {
    let machine = json!({ "metadata": { "name": "m" }, "spec": { "clusterName": "c1" } });
    let answer =
        answer(Kind::Machine, Purpose::Default, &review("CREATE", &machine, None)).unwrap();
    let response = &answer["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("u"), &json!(true)));
    let patch: k8s_openapi::ByteString = serde_json::from_value(response["patch"].clone()).unwrap();
    let patch: Value = serde_json::from_slice(&patch.0).unwrap();
    let paths: Vec<_> = patch.as_array().unwrap().iter().map(|step| step["path"].clone()).collect();
    assert_eq!(paths, ["/metadata/labels", "/spec"]);
}

#[test]
fn a_review_is_refused_in_the_words_of_the_rules_unless_the_object_goes() {
    let mut wrong = json!({ "metadata": { "name": "m" }, "spec": { "clusterName": "c1" } });
    let refused =
        answer(Kind::Machine, Purpose::Validate, &review("CREATE", &wrong, None)).unwrap();
    assert_eq!(refused["response"]["allowed"], false);
    let message = refused["response"]["status"]["message"].as_str().unwrap();
    assert!(message.starts_with("spec.bootstrap.data: Required"), "{message}");
    wrong["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let going = review("UPDATE", &wrong, Some(&wrong));
    let let_go = answer(Kind::Machine, Purpose::Validate, &going).unwrap();
    assert_eq!(let_go["response"]["allowed"], true);
    answer(Kind::Machine, Purpose::Validate, b"{}").unwrap_err();
}

#[test]
fn objects_are_converted_all_or_none() {
    let ask = |kind: &str| {
        let object = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": kind, "metadata": { "name": "m" },
            "spec": { "clusterName": "c1", "nodeDrainTimeout": "1m0s" },
        });
        let request = json!({
            "uid": "u", "desiredAPIVersion": "cluster.x-k8s.io/v1beta2", "objects": [object],
        });
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request,
        });
        converted(review.to_string().as_bytes(), &|_| None).unwrap()["response"].clone()
    };
    let done = ask("Machine");
    assert_eq!(done["result"]["status"], "Success");
    let spec = &done["convertedObjects"][0]["spec"];
    assert_eq!(spec["deletion"]["nodeDrainTimeoutSeconds"], 60);
    assert_eq!(ask("MachinePool")["result"]["status"], "Failure");
}
