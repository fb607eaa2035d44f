use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use super::{
    Contract, GroupKind, Served, cloning,
    discovery::{Unresolved, resolve},
    ownership, reading,
};

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_newest_contract_wins_and_of_its_versions_the_greatest() {
    let kind = GroupKind::new("infrastructure.cluster.x-k8s.io", "FooMachine");
    let cases = [
        (vec![("cluster.x-k8s.io/v1beta1", "v1alpha3_v1beta1")], Contract::V1Beta1, "v1beta1"),
        (
            vec![
                ("cluster.x-k8s.io/v1beta1", "v1"),
                ("cluster.x-k8s.io/v1beta2", "v1beta1_v1beta10_v1beta9"),
            ],
            Contract::V1Beta2,
            "v1beta10",
        ),
        (vec![("cluster.x-k8s.io/v1beta2", "v2alpha1_v1_v2beta1")], Contract::V1Beta2, "v1"),
        (
            vec![("cluster.x-k8s.io/v1beta2", ""), ("cluster.x-k8s.io/v1beta1", "v1_v2")],
            Contract::V1Beta1,
            "v2",
        ),
    ];
    for (pairs, contract, version) in cases {
        let served = Served { contract, version: version.to_owned() };
        assert_eq!(resolve(&kind, Some(&labels(&pairs))), Ok(served), "{pairs:?}");
    }
}

#[test]
fn a_kind_without_a_contract_label_is_refused_by_its_name() {
    let kind = GroupKind::new("example.com", "Proxy");
    for known in [None, Some(labels(&[("cluster.x-k8s.io/v1alpha4", "v1")]))] {
        let error = resolve(&kind, known.as_ref()).unwrap_err();
        assert_eq!(error, Unresolved::NoContract("proxies.example.com".to_owned()));
        assert!(
            error.to_string().starts_with("cannot find any versions matching contract versions")
        );
    }
}

#[test]
fn the_name_of_a_definition_is_computed() {
    let cases = [
        ("DevMachine", "devmachines"),
        ("KubeadmConfig", "kubeadmconfigs"),
        ("FooPolicy", "foopolicies"),
        ("FooGateway", "foogateways"),
        ("Box", "boxes"),
        ("Switch", "switches"),
    ];
    for (kind, plural) in cases {
        assert_eq!(GroupKind::new("x", kind).plural(), plural);
    }
}

#[test]
fn each_contract_has_its_own_field_for_what_is_there() {
    let new = json!({ "status": {
        "initialization": { "provisioned": true, "dataSecretCreated": true, "controlPlaneInitialized": true },
    } });
    let old = json!({ "status": { "ready": true, "initialized": true } });
    for (object, contract, expected) in [
        (&new, Contract::V1Beta2, true),
        (&new, Contract::V1Beta1, false),
        (&old, Contract::V1Beta2, false),
        (&old, Contract::V1Beta1, true),
    ] {
        assert_eq!(reading::is_provisioned(object, contract), expected);
        assert_eq!(reading::is_data_secret_created(object, contract), expected);
        assert_eq!(reading::is_control_plane_initialized(object, contract), expected);
    }
}

#[test]
fn what_a_provider_says_with_empty_words_is_left_out_for_readers_of_the_version_before() {
    let object = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T11:00:00Z", "observedGeneration": 2,
    }] } });
    let told = reading::v1beta1_ready_condition(&object).unwrap();
    assert_eq!((told.reason.as_deref(), told.message), (Some("Ready"), None));
}

#[test]
fn what_no_contract_names_is_not_kept_and_the_rest_reads_the_same() {
    let whole = json!({
        "apiVersion": "x/v1", "kind": "FooMachine",
        "spec": { "providerID": "foo://1", "userData": "big", "failureDomain": "a" },
        "status": {
            "ready": true, "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }, { "type": 3 }],
            "failureDomain": "b", "interruptible": true, "failureReason": "Broken", "huge": [1, 2, 3],
            "conditions": [{ "type": "Other", "status": "True" }, { "type": "Ready", "status": "True" }],
        },
    });
    let mut kept = whole.clone();
    reading::keep_contract(&mut kept);
    assert!(kept.pointer("/spec/userData").is_none() && kept.pointer("/status/huge").is_none());
    for object in [&whole, &kept] {
        assert_eq!(reading::provider_id(object), Some("foo://1"));
        assert_eq!(reading::addresses(object), [("InternalIP", "10.0.0.1")]);
        assert_eq!(reading::failure_domain(object), Some("b"));
        assert_eq!(reading::legacy_failure_domain(object), Some("a"));
        assert_eq!(reading::terminal_failure(object), (Some("Broken"), None));
        assert!(reading::is_interruptible(object));
        assert!(reading::ready_condition(object).unwrap().is_some());
    }
    let mut twice = kept.clone();
    reading::keep_contract(&mut twice);
    assert_eq!(kept, twice);
}

#[test]
fn a_ready_condition_is_read_wherever_it_is_and_whatever_it_lacks() {
    let read = |status: Value| reading::ready_condition(&json!({ "status": status }));
    assert_eq!(read(json!({})), Ok(None));
    let of = |condition: Value| read(json!({ "conditions": [condition] })).unwrap().unwrap();
    assert_eq!(of(json!({ "type": "Ready", "status": "True" })).reason, "Ready");
    assert_eq!(of(json!({ "type": "Ready", "status": "False" })).reason, "NoReasonReported");
    assert_eq!(of(json!({ "type": "Ready", "status": "False", "reason": "Slow" })).reason, "Slow");
    let both = json!({
        "conditions": [{ "type": "Ready", "status": "True" }],
        "v1beta2": { "conditions": [{ "type": "Ready", "status": "False", "reason": "New" }] },
    });
    assert_eq!(read(both).unwrap().unwrap().reason, "New");
    assert!(read(json!({ "conditions": [{ "type": "Ready", "status": "Maybe" }] })).is_err());
}

fn owner(kind: &str, name: &str, controller: bool) -> OwnerReference {
    OwnerReference {
        api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        controller: Some(controller),
        block_owner_deletion: Some(true),
    }
}

fn object(owners: Vec<OwnerReference>) -> ObjectMeta {
    ObjectMeta {
        owner_references: Some(owners),
        labels: Some(labels(&[("cluster.x-k8s.io/cluster-name", "c")])),
        ..Default::default()
    }
}

#[test]
fn a_machine_takes_its_object_over_from_the_set_that_made_it() {
    let machine = owner("Machine", "m", true);
    let patch = |owners: Vec<OwnerReference>| {
        ownership::hand_over(
            &object(owners),
            &machine,
            "c",
            Some(&GroupKind::new("cp.example", "Foo")),
        )
    };
    let owners_of = |patch: Value| -> Vec<String> {
        let owners = patch["metadata"]["ownerReferences"].as_array().unwrap().clone();
        owners.iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
    };
    let from_set = patch(vec![owner("MachineSet", "s", false)]).unwrap().unwrap();
    assert_eq!(owners_of(from_set), ["Machine"]);
    let mut control_plane = owner("Foo", "cp", false);
    control_plane.api_version = "cp.example/v1".to_owned();
    let others = patch(vec![control_plane, owner("Cluster", "c", false)]).unwrap().unwrap();
    assert_eq!(owners_of(others), ["Cluster", "Machine"]);
    let mut old = machine.clone();
    old.api_version = "cluster.x-k8s.io/v1beta1".to_owned();
    assert_eq!(owners_of(patch(vec![old]).unwrap().unwrap()), ["Machine"]);
    assert_eq!(patch(vec![machine.clone()]), Ok(None), "a fixpoint writes nothing");
}

#[test]
fn what_another_controls_is_not_taken() {
    let error = ownership::hand_over(
        &object(vec![owner("Machine", "other", true)]),
        &owner("Machine", "m", true),
        "c",
        None,
    );
    assert_eq!(error.unwrap_err().to_string(), "it is controlled by Machine other already");
}

#[test]
fn a_clone_says_what_it_was_made_of() {
    let source = GroupKind::new("infrastructure.cluster.x-k8s.io", "FooMachineTemplate");
    let template = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "FooMachineTemplate",
        "metadata": { "name": "t", "uid": "u" },
        "spec": { "template": {
            "metadata": { "labels": { "a": "1" }, "annotations": { "b": "2" }, "uid": "x", "finalizers": ["f"] },
            "spec": { "size": 3 },
        } },
    });
    let (more, none) = (labels(&[("c", "3")]), BTreeMap::new());
    let set = owner("MachineSet", "s", false);
    let wanted = cloning::Clone {
        name: "m-1",
        namespace: "ns",
        cluster: "c1",
        owner: Some(&set),
        labels: &more,
        annotations: &none,
    };
    assert_eq!(
        cloning::clone_from(&template, &source, &wanted),
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "FooMachine",
            "metadata": {
                "name": "m-1", "namespace": "ns",
                "labels": { "a": "1", "c": "3", "cluster.x-k8s.io/cluster-name": "c1" },
                "annotations": {
                    "b": "2", "cluster.x-k8s.io/cloned-from-name": "t",
                    "cluster.x-k8s.io/cloned-from-groupkind": "FooMachineTemplate.infrastructure.cluster.x-k8s.io",
                },
                "ownerReferences": [set],
            },
            "spec": { "size": 3 },
        })
    );
    let empty = cloning::clone_from(&json!({ "apiVersion": "g/v1" }), &source, &wanted);
    assert_eq!((&empty["kind"], &empty["spec"]), (&json!("FooMachine"), &Value::Null));
}
