use jiff::Timestamp;
use kube::core::DynamicObject;
use machinist_api::{
    RawObject,
    cluster_api::{Cluster, condition},
};
use serde_json::{Value, json};

use super::{Action, ClusterDecision, Descendant, Observed, Part, Remote, decide, say_failure};
use crate::cluster_api::{contract::Contract, machine::Reference};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

struct World {
    cluster: Cluster,
    infrastructure: Option<DynamicObject>,
    contract: Contract,
    has_control_plane_node: bool,
    remote: Remote,
    descendants: Vec<Descendant>,
    machine_pools: Result<Vec<String>, String>,
}

impl World {
    fn new() -> Self {
        Self {
            cluster: serde_json::from_value(json!({
                "metadata": {
                    "name": "c", "namespace": "ns", "uid": "uid-c", "generation": 1,
                    "finalizers": ["cluster.cluster.x-k8s.io"],
                },
                "spec": { "infrastructureRef": { "apiGroup": "i", "kind": "FooCluster", "name": "c" } },
            }))
            .unwrap(),
            infrastructure: Some(infrastructure(json!({}), json!({}))),
            contract: Contract::V1Beta2,
            has_control_plane_node: false,
            remote: Remote { is_up: false, last_success: None, failures: 0 },
            descendants: Vec::new(),
            machine_pools: Ok(Vec::new()),
        }
    }

    fn decide(&self) -> ClusterDecision {
        let infrastructure = match &self.infrastructure {
            Some(object) => Reference::Found { object, contract: self.contract },
            None => Reference::Missing,
        };
        let observed = Observed {
            cluster: &self.cluster,
            infrastructure,
            control_plane: Reference::NotDefined,
            has_control_plane_node: self.has_control_plane_node,
            remote: self.remote,
            descendants: self.descendants.clone(),
            machine_pools: self.machine_pools.clone(),
        };
        decide(&observed, now())
    }
}

fn infrastructure(spec: Value, status: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "i/v1", "kind": "FooCluster",
        "metadata": {
            "name": "c", "labels": { "cluster.x-k8s.io/cluster-name": "c" },
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "uid-c",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": spec, "status": status,
    }))
    .unwrap()
}

fn descendant(kind: &'static str, is_control_plane: bool) -> Descendant {
    Descendant {
        kind,
        name: "x".to_owned(),
        uid: "u".to_owned(),
        is_deleting: false,
        is_control_plane,
    }
}

#[test]
fn infrastructure_is_reported_once_and_its_endpoint_copied() {
    let mut world = World::new();
    let decision = world.decide();
    assert_eq!(decision.actions, []);
    assert_eq!(decision.status.initialization.infrastructure_provisioned, None);
    assert_eq!(decision.status.phase.as_deref(), Some("Provisioning"));

    world.infrastructure = Some(infrastructure(
        json!({ "controlPlaneEndpoint": { "host": "10.0.0.1", "port": 6443 } }),
        json!({ "initialization": { "provisioned": true } }),
    ));
    let decision = world.decide();
    assert_eq!(
        decision.actions,
        [
            Action::PatchCluster(json!({
                "spec": { "controlPlaneEndpoint": { "host": "10.0.0.1", "port": 6443 } }
            })),
            Action::EnsureKubeconfig { server: "https://10.0.0.1:6443".to_owned() },
        ]
    );
    assert_eq!(decision.status.phase.as_deref(), Some("Provisioned"));
    world.cluster.status = Some(decision.status);
    world.infrastructure = None;
    let decision = world.decide();
    assert_eq!(decision.status.initialization.infrastructure_provisioned, Some(true));
}

#[test]
fn the_control_plane_came_up_with_its_first_node_and_stays_so() {
    let mut world = World::new();
    world.has_control_plane_node = true;
    let decision = world.decide();
    assert!(condition::is_true(&decision.status.conditions, "ControlPlaneInitialized"));
    world.cluster.status = Some(decision.status);
    world.has_control_plane_node = false;
    let decision = world.decide();
    assert!(condition::is_true(&decision.status.conditions, "ControlPlaneInitialized"));
    assert_eq!(Some(decision.status), world.cluster.status, "a fixpoint");
}

#[test]
fn a_cluster_goes_workers_first() {
    let mut world = World::new();
    world.cluster.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    world.descendants = vec![descendant("MachineDeployment", false), descendant("Machine", true)];
    let decision = world.decide();
    assert!(matches!(
        decision.actions[..],
        [Action::DeleteDescendant { kind: "MachineDeployment", .. }]
    ));
    world.descendants.remove(0);
    let decision = world.decide();
    assert!(matches!(decision.actions[..], [Action::DeleteDescendant { kind: "Machine", .. }]));
    world.descendants.clear();
    assert_eq!(world.decide().actions, [Action::DeleteExternal(Part::Infrastructure)]);
    world.infrastructure = None;
    assert_eq!(world.decide().actions, [Action::RemoveFinalizer]);
}

#[test]
fn failure_domains_are_copied_in_the_order_of_their_names_whatever_the_contract() {
    let a = json!({ "name": "a", "controlPlane": true, "attributes": { "rack": "1" } });
    let b = json!({ "name": "b", "controlPlane": false });
    let cases = [
        (
            Contract::V1Beta2,
            json!({ "initialization": { "provisioned": true }, "failureDomains": [b, a] }),
        ),
        (
            Contract::V1Beta1,
            json!({
                "ready": true,
                "failureDomains": {
                    "b": {}, "a": { "controlPlane": true, "attributes": { "rack": "1" } },
                },
            }),
        ),
    ];
    for (contract, status) in cases {
        let mut world = World::new();
        world.contract = contract;
        world.infrastructure = Some(infrastructure(json!({}), status));
        let decision = world.decide();
        let copied = serde_json::to_value(&decision.status.failure_domains).unwrap();
        assert_eq!(copied, json!([a, b]), "{contract:?}");
        world.cluster.status = Some(decision.status.clone());
        assert_eq!(world.decide().status, decision.status, "a fixpoint");
        // Those of an infrastructure that is not there yet are nobody's.
        world.infrastructure = None;
        assert_eq!(world.decide().status.failure_domains, decision.status.failure_domains);
    }
}

#[test]
fn what_another_controls_is_neither_believed_nor_deleted() {
    let mut world = World::new();
    let mut object =
        infrastructure(json!({}), json!({ "initialization": { "provisioned": true } }));
    let owners = object.metadata.owner_references.as_mut().unwrap();
    owners[0].name = "other".to_owned();
    world.infrastructure = Some(object);
    let decision = world.decide();
    let ready = condition::find(&decision.status.conditions, "InfrastructureReady").unwrap();
    let words = "FooCluster c is not this Cluster's: it is controlled by Cluster other already";
    assert_eq!((ready.status.as_str(), ready.message.as_str()), ("Unknown", words));
    assert_eq!(decision.status.initialization.infrastructure_provisioned, None);

    world.cluster.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    let decision = world.decide();
    assert_eq!(decision.actions, [Action::RemoveFinalizer]);
    assert_eq!(decision.announcements[0].message, format!("{words}; it stays"));
}

#[test]
fn what_could_not_be_done_is_said_and_a_missing_kubeconfig_where_the_connection_is() {
    let kubeconfig = Action::EnsureKubeconfig { server: "https://a".to_owned() };
    let patch = Action::PatchExternal { part: Part::Infrastructure, patch: json!({}) };
    let not_yet = "Remote connection not established yet";
    let cases = [
        (
            &kubeconfig,
            "failed to make its kubeconfig: no key",
            format!("{not_yet}: failed to make its kubeconfig: no key"),
        ),
        (
            &patch,
            "failed to take over the object of its infrastructure: no key",
            not_yet.to_owned(),
        ),
    ];
    for (action, words, of_connection) in cases {
        let world = World::new();
        let mut decision = world.decide();
        say_failure(&mut decision, &world.cluster, action, "no key", now());
        let probe = condition::find(&decision.status.conditions, "RemoteConnectionProbe").unwrap();
        assert_eq!(probe.message, of_connection);
        assert_eq!(decision.announcements[0].message, words);
        assert_eq!(decision.waiting.last().unwrap().message, words);
    }
}

#[test]
fn that_a_topology_is_not_carried_out_is_said_once_and_everything_else_goes_on() {
    let mut world = World::new();
    world.infrastructure = Some(infrastructure(
        json!({ "controlPlaneEndpoint": { "host": "10.0.0.1", "port": 6443 } }),
        json!({ "initialization": { "provisioned": true } }),
    ));
    let without = world.decide();
    let topology = json!({ "classRef": { "name": "class" }, "version": "v1.34.0" });
    world.cluster.spec.topology = Some(RawObject::from_value(&topology).unwrap());
    let decision = world.decide();
    assert_eq!(decision.actions, without.actions);
    let told = condition::find(&decision.status.conditions, "TopologyReconciled").unwrap();
    assert_eq!((told.status.as_str(), told.reason.as_str()), ("False", "NotCarriedOut"));
    assert_eq!(decision.announcements.len(), 1);
    world.cluster.status = Some(decision.status);
    assert_eq!(world.decide().announcements, []);
    world.cluster.spec.topology = None;
    let decision = world.decide();
    assert!(condition::find(&decision.status.conditions, "TopologyReconciled").is_none());
}

#[test]
fn machine_pools_are_waited_for_after_the_other_workers_and_deleted_by_nobody() {
    let mut world = World::new();
    world.cluster.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    for (pools, words) in [
        (Ok(vec!["a".to_owned(), "b".to_owned()]), "Waiting for MachinePool a, b to be deleted"),
        (Err("failed to list MachinePools".to_owned()), "failed to list MachinePools"),
    ] {
        world.machine_pools = pools;
        let decision = world.decide();
        assert_eq!(decision.actions, []);
        let deleting = condition::find(&decision.status.conditions, "Deleting").unwrap();
        assert!(deleting.message.starts_with(words), "{}", deleting.message);
        assert!(decision.recheck.is_some());
        world.descendants = vec![descendant("MachineDeployment", false)];
        assert!(matches!(world.decide().actions[..], [Action::DeleteDescendant { .. }]));
        world.descendants.clear();
    }
}
