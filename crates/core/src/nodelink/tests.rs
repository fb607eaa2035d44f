use k8s_openapi::api::core::v1::Node;
use machinist_api::Machine;
use serde_json::json;

use super::{Action, NodeMatch, Observed, decide, node_of};
use crate::cloud::Instance;

fn node(name: &str, provider_id: Option<&str>, ip: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {"providerID": provider_id},
        "status": {"addresses": [{"type": "InternalIP", "address": ip}]},
    }))
    .unwrap()
}

fn machine(provider_id: Option<&str>, ip: Option<&str>) -> Machine {
    let addresses: Vec<_> =
        ip.into_iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect();
    serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "metadata": {"name": "m", "namespace": "ns"},
        "spec": {"providerID": provider_id, "providerSpec": {}},
        "status": {"addresses": addresses},
    }))
    .unwrap()
}

fn observed<'a>(node: &'a Node, machines: Vec<&'a Machine>) -> Observed<'a> {
    Observed { node, machines, instance: None }
}

#[test]
fn provider_id_beats_address() {
    let nodes = [node("a", Some("aws:///z/i-1"), "10.0.0.1"), node("b", None, "10.0.0.2")];
    let found = node_of(&machine(Some("aws:///z/i-1"), Some("10.0.0.2")), &nodes);
    assert_eq!(found, NodeMatch::One(&nodes[0]));
}

#[test]
fn address_links_a_machine_that_has_no_provider_id() {
    let nodes = [node("b", None, "10.0.0.2")];
    let found = node_of(&machine(None, Some("10.0.0.2")), &nodes);
    assert_eq!(found, NodeMatch::One(&nodes[0]));
}

#[test]
fn a_node_without_id_is_not_linked_to_the_former_owner_of_its_address() {
    let nodes = [node("b", None, "10.0.0.2")];
    let found = node_of(&machine(Some("aws:///z/i-1"), Some("10.0.0.2")), &nodes);
    assert_eq!(found, NodeMatch::None);
}

#[test]
fn a_reused_address_does_not_link_another_instance() {
    let nodes = [node("b", Some("aws:///z/i-2"), "10.0.0.2")];
    let found = node_of(&machine(Some("aws:///z/i-1"), Some("10.0.0.2")), &nodes);
    assert_eq!(found, NodeMatch::None);
}

#[test]
fn two_nodes_with_the_same_id_link_nobody() {
    let nodes = [node("a", Some("aws:///z/i-1"), "1"), node("b", Some("aws:///z/i-1"), "2")];
    let found = node_of(&machine(Some("aws:///z/i-1"), None), &nodes);
    assert_eq!(found, NodeMatch::Ambiguous(vec!["a".into(), "b".into()]));
}

#[test]
fn labels_annotations_and_taints_are_added_once() {
    let mut machine = machine(Some("aws:///z/i-1"), None);
    machine.spec.metadata = Some(
        serde_json::from_value(json!({"labels": {"tier": "web"}, "annotations": {"a": "b"}}))
            .unwrap(),
    );
    machine.spec.taints = Some(
        serde_json::from_value(json!([{"key": "k", "effect": "NoSchedule", "value": "v"}]))
            .unwrap(),
    );
    let mut node = node("a", Some("aws:///z/i-1"), "1");
    node.spec.as_mut().unwrap().taints =
        Some(serde_json::from_value(json!([{"key": "foreign", "effect": "NoExecute"}])).unwrap());

    let decision = decide(&observed(&node, vec![&machine]));
    let [Action::Add(change)] = decision.actions.as_slice() else {
        panic!("one change: {decision:?}")
    };
    assert_eq!(change.labels["tier"], "web");
    assert_eq!(change.annotations["machine.openshift.io/machine"], "ns/m");
    assert_eq!(change.taints.as_ref().unwrap().len(), 2);

    node.metadata.labels = Some(change.labels.clone());
    node.metadata.annotations = Some(change.annotations.clone());
    node.spec.as_mut().unwrap().taints = change.taints.clone();
    assert!(decide(&observed(&node, vec![&machine])).actions.is_empty());
}

#[test]
fn a_taint_with_another_value_is_left_alone() {
    let mut machine = machine(Some("aws:///z/i-1"), None);
    machine.spec.taints = Some(
        serde_json::from_value(json!([{"key": "k", "effect": "NoSchedule", "value": "new"}]))
            .unwrap(),
    );
    let mut node = node("a", Some("aws:///z/i-1"), "1");
    node.spec.as_mut().unwrap().taints = Some(
        serde_json::from_value(json!([{"key": "k", "effect": "NoSchedule", "value": "old"}]))
            .unwrap(),
    );
    let decision = decide(&observed(&node, vec![&machine]));
    let [Action::Add(change)] = decision.actions.as_slice() else {
        panic!("one change: {decision:?}")
    };
    assert_eq!(change.taints, None);
}

#[test]
fn two_machines_for_one_node_are_reported() {
    let (one, two) = (machine(Some("aws:///z/i-1"), None), machine(Some("aws:///z/i-1"), None));
    let node = node("a", Some("aws:///z/i-1"), "1");
    let decision = decide(&observed(&node, vec![&one, &two]));
    assert!(decision.actions.is_empty());
    assert!(decision.waiting[0].message.contains("expected 1"), "{:?}", decision.waiting);
}

#[test]
fn a_node_goes_when_both_its_machine_and_its_instance_are_gone() {
    let node = node("a", Some("aws:///z/i-1"), "10.0.0.1");
    let of = |state: &str, tags: serde_json::Value| -> Instance {
        serde_json::from_value(json!({
            "id": "i-1", "provider_id": "aws:///z/i-1", "state": state, "region": "r", "zone": "z",
            "instance_type": "t", "interruptible": false, "tags": tags, "addresses": [],
            "state_reason": {"code": "", "message": ""},
        }))
        .unwrap()
    };
    let ours = json!({"machinist.dev/machine-uid": "uid"});
    let goes = |instance: Option<&Instance>, machines: Vec<&Machine>| {
        let observed = Observed { node: &node, machines, instance };
        decide(&observed).actions.contains(&Action::Delete)
    };
    assert!(goes(Some(&of("terminated", ours.clone())), vec![]));
    assert!(!goes(Some(&of("shutting-down", ours.clone())), vec![]), "not before it ended");
    assert!(!goes(Some(&of("terminated", json!({}))), vec![]), "never ours");
    assert!(!goes(None, vec![]), "the cloud shows nothing, which says nothing");
    let machine = machine(Some("aws:///z/i-1"), None);
    assert!(!goes(Some(&of("terminated", ours)), vec![&machine]), "its Machine sees to it");
}

#[test]
fn a_recorded_instance_links_before_the_provider_id_is_written() {
    let mut launched = machine(None, None);
    let record = json!({"providerStatus": {"instanceId": "i-1"}});
    launched.status = Some(serde_json::from_value(record).unwrap());
    let own = node("own", Some("aws:///us-east-1a/i-1"), "10.0.0.1");
    let other = node("other", Some("aws:///us-east-1a/i-2"), "10.0.0.2");
    assert_eq!(node_of(&launched, [&own, &other]), NodeMatch::One(&own));
    assert_eq!(node_of(&launched, [&other]), NodeMatch::None);
}
