//! Does an object come back from the other version as it was?

use proptest::prelude::*;

use super::*;

const OLDER: &str = "cluster.x-k8s.io/v1beta1";
const NEWER: &str = "cluster.x-k8s.io/v1beta2";

fn served(_: &GroupKind) -> Option<String> {
    Some("v1beta2".to_owned())
}

fn to(object: &Value, version: &str) -> Value {
    convert(object, version, &served).unwrap()
}

fn object(version: &str, kind: &str, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": version, "kind": kind, "metadata": { "name": "x", "namespace": "ns" },
        "spec": spec, "status": status,
    })
}

#[test]
fn fields_of_a_machine_find_their_places() {
    let older = object(
        OLDER,
        "Machine",
        json!({
            "clusterName": "c1", "nodeDrainTimeout": "1m30s", "nodeDeletionTimeout": "10s",
            "bootstrap": { "configRef": { "apiVersion": "b.example.com/v1", "kind": "Boot", "name": "b" } },
            "infrastructureRef": { "apiVersion": "i.example.com/v1beta1", "kind": "Foo", "name": "f", "namespace": "ns" },
        }),
        json!({
            "bootstrapReady": true, "infrastructureReady": true, "failureReason": "Broken",
            "nodeRef": { "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u" },
            "conditions": [{ "type": "Ready", "severity": "Info" }],
            "v1beta2": { "conditions": [{ "type": "Ready", "reason": "R" }] },
        }),
    );
    let newer = to(&older, NEWER);
    assert_eq!(newer["apiVersion"], NEWER);
    assert_eq!(
        newer["spec"],
        json!({
            "clusterName": "c1",
            "deletion": { "nodeDrainTimeoutSeconds": 90, "nodeDeletionTimeoutSeconds": 10 },
            "bootstrap": { "configRef": { "apiGroup": "b.example.com", "kind": "Boot", "name": "b" } },
            "infrastructureRef": { "apiGroup": "i.example.com", "kind": "Foo", "name": "f" },
        })
    );
    assert_eq!(
        newer["status"],
        json!({
            "initialization": { "bootstrapDataSecretCreated": true, "infrastructureProvisioned": true },
            "nodeRef": { "name": "n" },
            "conditions": [{ "type": "Ready", "reason": "R" }],
            "deprecated": { "v1beta1": {
                "conditions": [{ "type": "Ready", "severity": "Info" }], "failureReason": "Broken",
            } },
        })
    );
}

#[test]
fn fields_of_a_deployment_find_their_places() {
    let older = object(
        OLDER,
        "MachineDeployment",
        json!({
            "minReadySeconds": 5, "rolloutAfter": "2026-01-01T00:00:00Z",
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": 1, "maxUnavailable": "10%", "deletePolicy": "Oldest" },
                "remediation": { "maxInFlight": 2 },
            },
            "template": { "spec": {} },
        }),
        json!({ "updatedReplicas": 1, "readyReplicas": 2, "v1beta2": { "readyReplicas": 3 } }),
    );
    let newer = to(&older, NEWER);
    assert_eq!(
        newer["spec"],
        json!({
            "rollout": {
                "after": "2026-01-01T00:00:00Z",
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": { "maxSurge": 1, "maxUnavailable": "10%" },
                },
            },
            "deletion": { "order": "Oldest" }, "remediation": { "maxInFlight": 2 },
            "template": { "spec": { "minReadySeconds": 5 } },
        })
    );
    assert_eq!(newer["status"]["readyReplicas"], 3);
    assert_eq!(newer["status"]["deprecated"]["v1beta1"]["readyReplicas"], 2);
    assert_eq!(to(&newer, OLDER)["spec"]["strategy"], older["spec"]["strategy"]);
}

#[test]
fn fields_of_a_check_find_their_places() {
    let older = object(
        OLDER,
        "MachineHealthCheck",
        json!({
            "unhealthyConditions": [{ "type": "Ready", "status": "False", "timeout": "5m0s" }],
            "nodeStartupTimeout": "10m0s", "maxUnhealthy": "40%",
        }),
        json!({}),
    );
    let newer = to(&older, NEWER);
    assert_eq!(
        newer["spec"],
        json!({
            "checks": {
                "unhealthyNodeConditions": [{ "type": "Ready", "status": "False", "timeoutSeconds": 300 }],
                "nodeStartupTimeoutSeconds": 600,
            },
            "remediation": { "triggerIf": { "unhealthyLessThanOrEqualTo": "40%" } },
        })
    );
    assert_eq!(to(&newer, OLDER)["spec"], older["spec"]);
}

#[test]
fn fields_of_a_cluster_find_their_places() {
    let counts = json!({ "replicas": 3 });
    let newer = object(
        NEWER,
        "Cluster",
        json!({
            "controlPlaneRef": { "apiGroup": "c.example.com", "kind": "Plane", "name": "p" },
            "topology": { "classRef": { "name": "usual", "namespace": "classes" }, "version": "v1.34.0" },
        }),
        json!({
            "failureDomains": [
                { "name": "b", "controlPlane": true, "attributes": { "room": "2" } }, { "name": "a" },
            ],
            "controlPlane": counts, "workers": counts,
        }),
    );
    let mut older = to(&newer, OLDER);
    assert_eq!(
        older["spec"],
        json!({
            "controlPlaneRef": {
                "apiVersion": "c.example.com/v1beta2", "kind": "Plane", "name": "p", "namespace": "ns",
            },
            "topology": { "class": "usual", "classNamespace": "classes", "version": "v1.34.0" },
        })
    );
    assert_eq!(
        older["status"],
        json!({
            "failureDomains": { "a": {}, "b": { "controlPlane": true, "attributes": { "room": "2" } } },
            "v1beta2": { "controlPlane": counts, "workers": counts },
        })
    );
    // Told anew in the older version, they are a list that is sorted.
    older["status"]["failureDomains"]["c"] = json!({ "controlPlane": false });
    let names: Vec<Value> = to(&older, NEWER)["status"]["failureDomains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|domain| domain["name"].clone())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
}

/// The older version names the namespace of all that an object refers to: its own.
#[test]
fn references_of_the_older_version_name_the_namespace() {
    let reference = json!({ "apiGroup": "i.example.com", "kind": "Foo", "name": "f" });
    let spec = json!({ "infrastructureRef": reference, "bootstrap": { "configRef": reference } });
    let template = json!({ "apiVersion": "r.example.com/v1", "kind": "Repair", "name": "r" });
    let check = json!({ "remediation": { "templateRef": template } });
    for (kind, spec, paths) in [
        ("Machine", spec.clone(), vec!["/spec/infrastructureRef", "/spec/bootstrap/configRef"]),
        (
            "MachineSet",
            json!({ "template": { "spec": spec } }),
            vec![
                "/spec/template/spec/infrastructureRef",
                "/spec/template/spec/bootstrap/configRef",
            ],
        ),
        ("MachineHealthCheck", check, vec!["/spec/remediationTemplate"]),
    ] {
        let newer = object(NEWER, kind, spec, json!({}));
        let older = to(&newer, OLDER);
        for path in paths {
            assert_eq!(older.pointer(path).unwrap()["namespace"], "ns", "{kind} {path}");
        }
        assert_eq!(to(&older, NEWER), newer, "{kind}");
    }
}

/// What the older version cannot say is kept while what it can say is edited there.
#[test]
fn an_edit_in_the_older_version_loses_nothing_of_the_newer() {
    let newer = object(
        NEWER,
        "Machine",
        json!({
            "clusterName": "c1", "taints": [{ "key": "k" }], "later": { "field": 1 },
            "deletion": { "nodeDrainTimeoutSeconds": 60 },
        }),
        json!({}),
    );
    let mut older = to(&newer, OLDER);
    assert_eq!(older["spec"].get("taints"), None, "the older version has no such field");
    older["spec"]["nodeDrainTimeout"] = json!("2m0s");
    let back = to(&older, NEWER);
    assert_eq!(back["spec"]["taints"], newer["spec"]["taints"]);
    assert_eq!(back["spec"]["later"], newer["spec"]["later"]);
    assert_eq!(back["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 120);
    assert_eq!(back["metadata"].get("annotations"), None);
}

#[test]
fn what_is_not_known_is_refused() {
    let unknown = object(NEWER, "MachinePool", json!({}), json!({}));
    let error = convert(&unknown, OLDER, &served).unwrap_err();
    assert_eq!(error, ConversionError::UnknownKind("MachinePool".to_owned()));
    let machine = object(NEWER, "Machine", json!({}), json!({}));
    convert(&machine, "cluster.x-k8s.io/v1alpha4", &served).unwrap_err();
}

#[test]
fn durations_are_read_as_go_writes_them() {
    for (text, wanted) in
        [("0s", 0), ("10s", 10), ("1m30s", 90), ("1h0m1s", 3601), ("1500ms", 1), ("0", 0)]
    {
        assert_eq!(fields::seconds(text), Some(wanted), "{text}");
    }
    for bad in ["", "x", "10", "5d", "s"] {
        assert_eq!(fields::seconds(bad), None, "{bad}");
    }
    assert_eq!(fields::duration(90), "1m30s");
}

/// Any JSON of the depth that such objects have. Empty objects are left out: no version of the API can tell them from nothing.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..1_000_000i64).prop_map(Value::from),
        "[a-z0-9]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,5}", inner, 1..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_newer() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec![
        "Machine",
        "MachineSet",
        "MachineDeployment",
        "MachineHealthCheck",
        "MachineDrainRule",
        "Cluster",
    ]);
    let domains = prop::collection::btree_map("[a-z]{1,3}", any_value(), 0..4);
    (kinds, any_value(), any_value(), any::<[bool; 6]>(), 0..100_000i64, domains).prop_map(
        |(kind, own, more, has, number, domains)| {
            let mut spec = json!({ "clusterName": "c1", "own": own });
            let mut status = json!({ "more": more });
            let machine = if kind == "Machine" { vec![] } else { vec!["template", "spec"] };
            let at = |rest: &[&'static str]| [machine.clone(), rest.to_vec()].concat();
            if has[0] {
                put(&mut spec, &at(&["deletion", "nodeDrainTimeoutSeconds"]), json!(number));
            }
            if has[1] {
                let reference = json!({ "apiGroup": "i.example.com", "kind": "Foo", "name": "f" });
                put(&mut spec, &at(&["infrastructureRef"]), reference);
            }
            if has[2] {
                put(&mut status, &["conditions"], json!([{ "type": "Ready" }]));
                put(&mut status, &["readyReplicas"], json!(number));
            }
            if has[3] {
                put(&mut status, &["deprecated", "v1beta1", "readyReplicas"], json!(number));
                put(&mut spec, &["checks", "nodeStartupTimeoutSeconds"], json!(number));
            }
            if has[4] {
                let one = |(name, more)| json!({ "name": name, "attributes": more });
                let domains: Vec<Value> = domains.into_iter().rev().map(one).collect();
                put(&mut status, &["failureDomains"], json!(domains));
                put(&mut status, &["workers", "replicas"], json!(number));
            }
            if has[5] {
                put(&mut spec, &["topology", "classRef", "name"], json!("usual"));
                let template = json!({ "apiVersion": "r.example.com/v1", "name": "r" });
                put(&mut spec, &["remediation", "templateRef"], template);
            }
            object(NEWER, kind, spec, status)
        },
    )
}

proptest! {
    #[test]
    fn what_goes_to_the_older_version_comes_back_as_it_was(newer in any_newer()) {
        prop_assert_eq!(to(&to(&newer, OLDER), NEWER), newer);
    }
}
