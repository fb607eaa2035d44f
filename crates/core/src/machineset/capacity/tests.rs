//! Tables over one pool's annotations.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn set(annotations: Value) -> MachineSet {
    changed(json!({ "metadata": { "annotations": annotations } }))
}

/// A pool of m5.large, changed by a merge patch.
fn changed(patch: Value) -> MachineSet {
    let mut set = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": { "name": "pool", "namespace": "ns" },
        "spec": { "template": { "spec": { "providerSpec": { "value": {
            "kind": "AWSMachineProviderConfig", "instanceType": "m5.large",
            "placement": { "region": "us-east-1" },
        } } } } },
    });
    merge(&mut set, patch);
    serde_json::from_value(set).unwrap()
}

fn merge(target: &mut Value, patch: Value) {
    match patch {
        Value::Object(patch) => {
            for (key, value) in patch {
                merge(&mut target[key], value);
            }
        }
        other => *target = other,
    }
}

fn capacity(architecture: &str) -> Answer {
    Answer::Known(Capacity {
        vcpus: 2,
        memory_mib: 8192,
        gpus: 0,
        architecture: architecture.to_owned(),
    })
}

fn decided(set: &MachineSet, answer: &Answer, told: Option<&Complaint>) -> CapacityDecision {
    decide(set, &question(set).unwrap(), answer, told)
}

fn failed(class: ErrorClass) -> Answer {
    Answer::Failed(CloudFailure { class, message: "the cloud says no".to_owned() })
}

#[test]
fn only_what_is_missing_or_different_is_written() {
    const LABELS: &str = "capacity.cluster-autoscaler.kubernetes.io/labels";
    let all = json!({
        "machine.openshift.io/vCPU": "2",
        "machine.openshift.io/memoryMb": "8192",
        "machine.openshift.io/GPU": "0",
        LABELS: "kubernetes.io/arch=amd64",
    });
    let with = |key: &str, value: &str| {
        let mut annotations = all.clone();
        annotations[key] = json!(value);
        annotations
    };
    let cases = [
        (json!({}), all.clone()),
        (json!({ "other": "kept" }), all.clone()),
        (all.clone(), json!({})),
        // A person's value is replaced by the type's, as the peer does.
        (with("machine.openshift.io/vCPU", "64"), json!({ "machine.openshift.io/vCPU": "2" })),
        (
            with("machine.openshift.io/memoryMb", ""),
            json!({ "machine.openshift.io/memoryMb": "8192" }),
        ),
        (with("machine.openshift.io/GPU", "0 "), json!({ "machine.openshift.io/GPU": "0" })),
        // Other labels are kept, and the result is sorted.
        (
            with(LABELS, "zone=b, rack=7"),
            json!({ LABELS: "kubernetes.io/arch=amd64,rack=7,zone=b" }),
        ),
        (
            with(LABELS, "zone=b,kubernetes.io/arch=arm64"),
            json!({ LABELS: "kubernetes.io/arch=amd64,zone=b" }),
        ),
        (with(LABELS, "zone,,a=b=c,"), json!({ LABELS: "a=b=c,kubernetes.io/arch=amd64,zone" })),
        // Whoever wrote another order would write it again.
        (with(LABELS, "zone=b,kubernetes.io/arch=amd64,a=1"), json!({})),
        // The last of two counts, as for the autoscaler.
        (
            with(LABELS, "kubernetes.io/arch=amd64,kubernetes.io/arch=arm64"),
            json!({ LABELS: "kubernetes.io/arch=amd64" }),
        ),
    ];
    for (present, expected) in cases {
        let decision = decided(&set(present.clone()), &capacity("amd64"), None);
        assert_eq!(json!(decision.annotations), expected, "{present}");
        assert_eq!(decision.complaint, None);
        assert!(decision.announcements.is_empty() && decision.waiting.is_empty());
    }
}

#[test]
fn figures_are_those_of_the_type() {
    let answer = Answer::Known(Capacity {
        vcpus: 96,
        memory_mib: 1_179_648,
        gpus: 8,
        architecture: "arm64".to_owned(),
    });
    let decision = decided(&set(json!({})), &answer, None);
    assert_eq!(
        json!(decision.annotations),
        json!({
            "machine.openshift.io/vCPU": "96",
            "machine.openshift.io/memoryMb": "1179648",
            "machine.openshift.io/GPU": "8",
            "capacity.cluster-autoscaler.kubernetes.io/labels": "kubernetes.io/arch=arm64",
        })
    );
}

#[test]
fn what_keeps_a_pool_from_its_annotations_is_told_once_and_touches_nothing() {
    let told = |instance_type: &str, cause| {
        Some(Complaint { instance_type: instance_type.to_owned(), cause })
    };
    let unknown = told("m5.large", Cause::UnknownType);
    let unauthorized = told("m5.large", Cause::Unauthorized);
    let of_another_type = told("m9.large", Cause::UnknownType);
    let no = Answer::UnknownType;
    let refused = failed(ErrorClass::Unauthorized);
    let busy = failed(ErrorClass::Throttled);
    let reset = failed(ErrorClass::Transient);
    let unknown_words = "Failed to set autoscaling from zero annotations, instance type unknown";
    let refused_words = "Failed to set autoscaling from zero annotations: the cloud says no";
    let cases = [
        (&no, None, Some(unknown_words), &unknown, "InvalidConfiguration"),
        (&no, unknown.as_ref(), None, &unknown, "InvalidConfiguration"),
        (&no, of_another_type.as_ref(), Some(unknown_words), &unknown, "InvalidConfiguration"),
        (&no, unauthorized.as_ref(), Some(unknown_words), &unknown, "InvalidConfiguration"),
        (&refused, None, Some(refused_words), &unauthorized, "Unauthorized"),
        (&refused, unauthorized.as_ref(), None, &unauthorized, "Unauthorized"),
        (&busy, None, None, &None, "Throttled"),
        (&busy, unknown.as_ref(), None, &unknown, "Throttled"),
        (&reset, unauthorized.as_ref(), None, &unauthorized, "ProviderError"),
    ];
    let set = set(json!({ "machine.openshift.io/vCPU": "64" }));
    for (answer, before, words, after, waits_on) in cases {
        let decision = decided(&set, answer, before);
        let expected: Vec<_> =
            words.map(|words| Announcement::warning("FailedUpdate", words)).into_iter().collect();
        assert_eq!(decision.announcements, expected, "{answer:?} after {before:?}");
        assert_eq!(decision.complaint, *after, "{answer:?} after {before:?}");
        assert_eq!(decision.waiting.first().map(|wait| wait.reason), Some(waits_on));
        assert!(decision.annotations.is_empty());
    }
    assert_eq!(decided(&set, &capacity("amd64"), unknown.as_ref()).complaint, None, "taken back");
}

#[test]
fn nothing_is_asked_for_a_pool_that_is_not_ours_or_cannot_be_read() {
    let provider_spec =
        |value: Value| json!({ "spec": { "template": { "spec": { "providerSpec": value } } } });
    let owned = |wanted: &str, status: Value| json!({ "spec": { "authoritativeAPI": wanted }, "status": status });
    let paused = |status: &str| json!([{ "type": "Paused", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let cases = [
        ("plain", json!({}), true),
        ("deleting", json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }), false),
        ("no value", provider_spec(json!({ "value": null })), false),
        ("no object", provider_spec(json!({ "value": [1] })), false),
        ("another kind", provider_spec(json!({ "value": { "kind": "FooSpec" } })), false),
        ("no type", provider_spec(json!({ "value": { "instanceType": null } })), false),
        ("an empty type", provider_spec(json!({ "value": { "instanceType": "" } })), false),
        ("a number", provider_spec(json!({ "value": { "instanceType": 5 } })), false),
        ("a bad region", provider_spec(json!({ "value": { "placement": 5 } })), false),
        ("not seen yet", owned("MachineAPI", json!({})), false),
        ("ours", owned("MachineAPI", json!({ "authoritativeAPI": "MachineAPI" })), true),
        (
            "ours, not paused",
            owned(
                "MachineAPI",
                json!({ "authoritativeAPI": "MachineAPI", "conditions": paused("False") }),
            ),
            true,
        ),
        (
            "ours, still paused",
            owned(
                "MachineAPI",
                json!({ "authoritativeAPI": "MachineAPI", "conditions": paused("True") }),
            ),
            false,
        ),
        // The status says who acts, whatever is wanted next.
        (
            "to be given away",
            owned("ClusterAPI", json!({ "authoritativeAPI": "MachineAPI" })),
            true,
        ),
        ("given away", owned("ClusterAPI", json!({ "authoritativeAPI": "ClusterAPI" })), false),
        ("on its way", owned("MachineAPI", json!({ "authoritativeAPI": "Migrating" })), false),
    ];
    for (name, patch, expected) in cases {
        let found = question(&changed(patch));
        assert_eq!(found.is_some(), expected, "{name}");
        if let Some(found) = found {
            assert_eq!(found.instance_type, "m5.large", "{name}");
            assert_eq!(found.facts.region.as_deref(), Some("us-east-1"), "{name}");
        }
    }
}

proptest! {
    /// Rule 11: what was written once is right, and no piece of a person's is lost.
    #[test]
    fn writing_once_is_enough(labels in "[a-c=, ]{0,12}", arm in any::<bool>()) {
        let architecture = if arm { "arm64" } else { "amd64" };
        let first = with_architecture(&labels, architecture);
        prop_assert_eq!(with_architecture(&first, architecture), first.clone());
        for piece in labels.split(',').map(str::trim).filter(|piece| !piece.is_empty()) {
            let key = piece.split('=').next().unwrap_or_default().trim();
            let is_kept = first.split(',').any(|kept| kept.split('=').next() == Some(key));
            prop_assert!(is_kept, "{} of {:?} is lost in {:?}", piece, labels, first);
        }
    }
}
