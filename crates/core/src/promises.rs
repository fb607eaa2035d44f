//! Which promises does a Machine break that can be seen from inside? The simulator checks all of them
//! against the truth; these few hold in production too, and are counted there.

use machinist_api::{
    Machine, condition,
    names::{condition_type, finalizer, phase},
};

use crate::{
    cloud::{Instance, InstanceId},
    machine::{CloudKnowledge, Identity, Observed},
    node,
};

/// The promises that are broken by what is observed, by their ids in the simulator.
pub fn broken(observed: &Observed<'_>) -> Vec<&'static str> {
    let mut broken = Vec::new();
    let machine = observed.machine;
    if live_instances(observed).count() > 1 {
        broken.push("S1");
    }
    let finalizers = machine.metadata.finalizers.iter().flatten();
    if finalizers.filter(|name| *name == finalizer::MACHINE).count() > 1 {
        broken.push("S5");
    }
    if is_linked_to_anothers_node(observed) {
        broken.push("S26");
    }
    if claims_to_run_without_an_instance(observed) {
        broken.push("T2");
    }
    broken
}

/// S1: at most one live instance for a Machine.
fn live_instances<'a>(observed: &'a Observed<'_>) -> impl Iterator<Item = &'a Instance> {
    let instances = match &observed.cloud {
        CloudKnowledge::Known(instances) => instances.as_slice(),
        CloudKnowledge::Loading | CloudKnowledge::Unknown(_) => &[],
    };
    let uid = observed.machine.metadata.uid.as_deref();
    instances.iter().filter(move |one| one.machine_uid() == uid && one.state.is_live())
}

/// S26: the linked Node is of the recorded instance.
fn is_linked_to_anothers_node(observed: &Observed<'_>) -> bool {
    let status = observed.machine.status.as_ref();
    let linked = status.and_then(|status| status.node_ref.as_ref());
    let (Some(linked), Some(node)) = (linked, observed.node.one()) else { return false };
    let recorded = Identity::of(observed.machine).instance_id;
    let of_node = node::provider_id(node).and_then(InstanceId::from_provider_id);
    linked.name.as_deref() == Some(node::name(node))
        && linked.uid == node.metadata.uid
        && recorded.is_some_and(|recorded| of_node.is_some_and(|of_node| of_node != recorded))
}

/// T2: nobody is told that a Machine runs whose instance was never recorded.
fn claims_to_run_without_an_instance(observed: &Observed<'_>) -> bool {
    let machine: &Machine = observed.machine;
    let Some(status) = &machine.status else { return false };
    status.phase.as_deref() == Some(phase::RUNNING)
        && condition::is_true(&status.conditions, condition_type::INSTANCE_RUNNING)
        && Identity::of(machine).instance_id.is_none()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Node;
    use serde_json::{Value, json};

    use super::*;
    use crate::{machine::HealthKnowledge, nodelink::NodeMatch};

    fn machine(status: Value, finalizers: &[&str]) -> Machine {
        serde_json::from_value(json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": {"name": "m", "namespace": "ns", "uid": "uid", "finalizers": finalizers},
            "spec": {"providerSpec": {}}, "status": status,
        }))
        .unwrap()
    }

    fn instance(id: &str, state: &str, uid: &str) -> Instance {
        serde_json::from_value(json!({
            "id": id, "provider_id": format!("aws:///z/{id}"), "state": state, "region": "r",
            "zone": "z", "instance_type": "t", "interruptible": false,
            "tags": {"machinist.dev/machine-uid": uid}, "addresses": [],
            "state_reason": {"code": "", "message": ""},
        }))
        .unwrap()
    }

    fn broken_by(
        machine: &Machine,
        instances: Vec<Instance>,
        node: Option<&Node>,
    ) -> Vec<&'static str> {
        broken(&Observed {
            machine,
            cloud: CloudKnowledge::Known(instances),
            node: node.map_or(NodeMatch::None, NodeMatch::One),
            health: HealthKnowledge::Loading,
            cloud_shows_nothing: false,
            wanted_tags: BTreeMap::new(),
            pool: None,
            owner_is_deleting: false,
            drift_defaults: crate::drift::policy::DriftDefaults::default(),
            launch_check: None,
        })
    }

    #[test]
    fn a_sound_machine_breaks_nothing() {
        let record = json!({
            "phase": "Running", "providerStatus": {"instanceId": "i-1"},
            "nodeRef": {"name": "n", "uid": "u"},
            "conditions": [{"type": "InstanceRunning", "status": "True",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        });
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n", "uid": "u"}, "spec": {"providerID": "aws:///z/i-1"},
        }))
        .unwrap();
        let machine = machine(record, &[finalizer::MACHINE]);
        let known = vec![instance("i-1", "running", "uid"), instance("i-0", "terminated", "uid")];
        assert!(broken_by(&machine, known, Some(&node)).is_empty());
    }

    #[test]
    fn each_broken_promise_is_named() {
        let plain = machine(json!({}), &[]);
        let twice = vec![instance("i-1", "running", "uid"), instance("i-2", "pending", "uid")];
        assert_eq!(broken_by(&plain, twice, None), ["S1"]);
        let others = vec![instance("i-1", "running", "uid"), instance("i-2", "running", "other")];
        assert!(broken_by(&plain, others, None).is_empty());

        let doubled = machine(json!({}), &[finalizer::MACHINE, finalizer::MACHINE]);
        assert_eq!(broken_by(&doubled, vec![], None), ["S5"]);

        let record = json!({
            "providerStatus": {"instanceId": "i-1"}, "nodeRef": {"name": "n", "uid": "u"},
        });
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n", "uid": "u"}, "spec": {"providerID": "aws:///z/i-2"},
        }))
        .unwrap();
        assert_eq!(broken_by(&machine(record, &[]), vec![], Some(&node)), ["S26"]);

        let claims = json!({
            "phase": "Running", "conditions": [{"type": "InstanceRunning", "status": "True",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        });
        assert_eq!(broken_by(&machine(claims, &[]), vec![], None), ["T2"]);
    }
}
