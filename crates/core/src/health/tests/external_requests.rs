//! Is the work handed over to other controllers as the spec says, and taken back?

use machinist_api::condition;
use serde_json::json;

use super::*;

fn templated() -> MachineHealthCheck {
    check(json!({"remediationTemplate": {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "Metal3RemediationTemplate", "name": "reboot", "namespace": "elsewhere",
    }}))
}

fn template() -> Template {
    Template::Found(json!({
        "metadata": {"name": "reboot"},
        "spec": {"template": {
            "metadata": {"labels": {"l": "1"}, "annotations": {"a": "2"}, "finalizers": ["x"], "uid": "u"},
            "spec": {"strategy": {"type": "Reboot", "retryLimit": 1}},
        }},
    }))
}

fn request(owner: &str, is_deleting: bool) -> ExternalRequest {
    ExternalRequest {
        uid: "request".to_owned(),
        resource_version: "3".to_owned(),
        is_deleting,
        owner_uids: vec![owner.to_owned()],
    }
}

fn scene(broken: usize) -> Scene {
    let mut scene = Scene::pool(templated(), 5, broken, 400);
    scene.requests = Some(BTreeMap::new());
    scene
}

#[test]
fn a_request_is_made_from_the_template_and_the_machine_is_kept() {
    let mut scene = scene(1);
    let first = scene.decide();
    assert!(first.wants_template && first.decision.actions.is_empty());
    scene.template = template();
    let answer = scene.decide();
    let [Action::CreateRequest { machine, object, .. }] = answer.decision.actions.as_slice() else {
        panic!("{:?}", answer.decision.actions)
    };
    assert_eq!(machine, "m-000");
    assert_eq!(
        **object,
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "Metal3Remediation",
            "metadata": {
                "name": "m-000",
                "namespace": "ns",
                "labels": {"l": "1"},
                "annotations": {
                    "a": "2",
                    "machine.openshift.io/cloned-from-name": "reboot",
                    "machine.openshift.io/cloned-from-groupkind":
                        "Metal3RemediationTemplate.infrastructure.cluster.x-k8s.io",
                },
                "ownerReferences": [{
                    "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
                    "name": "m-000", "uid": "uid-m-000",
                }],
            },
            "spec": {"strategy": {"type": "Reboot", "retryLimit": 1}},
        })
    );
    assert!(!answer.wants_template);
    assert!(!answer.decision.actions[0].is_counted_remediation());
}

#[test]
fn a_request_that_exists_is_left_to_work_and_taken_back_when_the_machine_is_healthy() {
    let mut scene = scene(1);
    let requests = BTreeMap::from([
        ("m-000".to_owned(), request("uid-m-000", false)),
        ("m-001".to_owned(), request("uid-m-001", false)),
        ("m-002".to_owned(), request("uid-m-002", true)),
        ("m-003".to_owned(), request("uid-of-its-namesake", false)),
    ]);
    scene.requests = Some(requests);
    let answer = scene.decide();
    assert!(!answer.wants_template, "nothing is to be requested");
    let [Action::DeleteRequest { api_version, kind, name, uid, .. }] =
        answer.decision.actions.as_slice()
    else {
        panic!("{:?}", answer.decision.actions)
    };
    assert_eq!(api_version, "infrastructure.cluster.x-k8s.io/v1beta1");
    assert_eq!(
        (kind.as_str(), name.as_str(), uid.as_str()),
        ("Metal3Remediation", "m-001", "request")
    );
    assert_eq!(answer.decision.status.current_healthy, Some(4), "the one in work is not healthy");
}

#[test]
fn nothing_is_requested_or_taken_back_while_the_requests_are_not_known() {
    let mut scene = scene(1);
    scene.template = template();
    scene.requests = None;
    assert_eq!(scene.decide().decision.actions, []);
}

#[test]
fn a_missing_template_is_said_on_the_check_and_stays_said() {
    let mut scene = scene(1);
    for why in ["Metal3RemediationTemplate ns/reboot not found", "spec.template: Required value"] {
        scene.template = if why.starts_with("spec") {
            Template::Found(json!({"spec": {}}))
        } else {
            Template::NotFound(why.to_owned())
        };
        let answer = scene.decide();
        assert_eq!(answer.decision.actions, []);
        let conditions = &answer.decision.status.conditions;
        let found = condition::find(conditions, "ExternalRemediationTemplateAvailable").unwrap();
        assert_eq!(found.reason.as_deref(), Some("ExternalRemediationTemplateNotFound"));
        assert_eq!(found.status.as_str(), "False");
        assert!(found.message.as_ref().unwrap().contains(why), "{:?}", found.message);
        assert!(answer.decision.recheck.is_some(), "a template does not wake the check");
        scene.publish(answer);
        let again = scene.decide();
        assert_eq!(Some(&again.decision.status), scene.check.status.as_ref());
    }
    scene.template = template();
    let conditions = scene.decide().decision.status.conditions;
    assert!(condition::is_true(&conditions, "ExternalRemediationTemplateAvailable"));
    scene.template = Template::NotAsked;
    scene.nodes[0] = node("m-000", "True", 1);
    let conditions = scene.decide().decision.status.conditions;
    assert!(condition::find(&conditions, "ExternalRemediationTemplateAvailable").is_none());
}

#[test]
fn a_refused_request_is_said_on_the_check_and_taken_back() {
    let mut scene = scene(1);
    scene.template = template();
    scene.request_failure = Some("metal3remediations is forbidden");
    let answer = scene.decide();
    assert_eq!(answer.decision.actions.len(), 1, "tried again");
    let conditions = &answer.decision.status.conditions;
    let found = condition::find(conditions, "ExternalRemediationRequestAvailable").unwrap();
    assert_eq!(found.reason.as_deref(), Some("ExternalRemediationRequestCreationFailed"));
    assert_eq!(found.message.as_deref(), Some("metal3remediations is forbidden"));
    scene.publish(answer);
    scene.requests = Some(BTreeMap::from([("m-000".to_owned(), request("uid-m-000", false))]));
    let conditions = scene.decide().decision.status.conditions;
    assert!(condition::is_true(&conditions, "ExternalRemediationRequestAvailable"));
    // Without a template there is nothing to say of it.
    scene.check.spec.remediation_template = None;
    let conditions = scene.decide().decision.status.conditions;
    assert_eq!(conditions.len(), 1, "{conditions:?}");
}

#[test]
fn restriction_and_gate_hold_requests_too() {
    let mut restricted = scene(3);
    restricted.template = template();
    restricted.requests = Some(BTreeMap::from([("m-004".to_owned(), request("uid-m-004", false))]));
    let answer = restricted.decide();
    assert!(
        matches!(answer.decision.actions.as_slice(), [Action::DeleteRequest { .. }]),
        "taking back is no remediation: {:?}",
        answer.decision.actions
    );
    let mut held = scene(3);
    held.template = template();
    held.check.spec.max_unhealthy = None;
    let answer = held.decide();
    assert_eq!(answer.decision.actions, []);
    assert_eq!(allowed(&answer).reason.as_deref(), Some("DisruptionHeld"));
}

#[test]
fn the_bare_metal_operator_is_asked_by_an_annotation_once() {
    let strategy = json!({"annotations": {
        "machine.openshift.io/remediation-strategy": "external-baremetal",
    }});
    let mut scene = Scene::new(check_with(json!({"maxUnhealthy": 5}), strategy));
    // Not even a controller is needed: the machine is repaired, not replaced.
    let bare = json!({"metadata": {"ownerReferences": null}});
    let marked = json!({"metadata": {"annotations": {"host.metal3.io/external-remediation": ""}}});
    let failed = json!({"status": {"phase": "Failed"}});
    for (name, changes) in [("a", &bare), ("b", &marked), ("c", &failed)] {
        scene = scene.with(machine_with(name, changes), Some(node(name, "False", 400)));
    }
    let answer = scene.decide();
    let [mark @ Action::MarkForRepair { name, .. }, Action::DeleteMachine { name: other, .. }] =
        answer.decision.actions.as_slice()
    else {
        panic!("{:?}", answer.decision.actions)
    };
    assert_eq!((name.as_str(), other.as_str()), ("a", "c"));
    assert_eq!(mark.done().unwrap().reason, "ExternalAnnotationAdded");
    assert_eq!(mark.failed("no").unwrap().reason, "ExternalAnnotationFailed");
}
