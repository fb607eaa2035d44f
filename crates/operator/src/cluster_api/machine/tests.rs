use serde_json::json;

use crate::cluster_api::lab::{FOO, Lab, MACHINES, NODES};

/// A Machine whose Node is there.
async fn running(lab: &Lab, name: &str) {
    lab.put_machine(name, "FooMachine", json!({}));
    lab.put_infrastructure(name, json!({}), json!({}));
    lab.settle(name).await;
    lab.put_provisioned(name);
    lab.put_node(name, &format!("foo://{name}"));
    lab.connect().await;
    let is_seen = || {
        let kinds = lab.context.externals.watched();
        kinds.iter().any(|kind| {
            let key = crate::engine::store::ObjectKey::new("ns", name);
            kind.store.get(&key).is_some_and(|one| one.data["spec"]["providerID"].is_string())
        })
    };
    lab.wait("the provider's word", is_seen).await;
    lab.settle(name).await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_comes_up_with_few_writes_and_then_rests() {
    let lab = Lab::new();
    running(&lab, "m").await;
    let machine = lab.machine("m").unwrap();
    let status = machine.status.as_ref().unwrap();
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert_eq!(status.node_ref.as_ref().unwrap().name, "m");
    assert_eq!(machine.spec.provider_id.as_deref(), Some("foo://m"));
    assert_eq!(lab.condition("m", "Ready"), "True Ready");
    let owners = lab.stored(FOO, "m").unwrap()["metadata"]["ownerReferences"].clone();
    assert_eq!((&owners[0]["kind"], &owners[0]["controller"]), (&json!("Machine"), &json!(true)));
    let node = lab.workload.lock().objects[&(NODES.to_owned(), "m".to_owned())].clone();
    assert_eq!(node["metadata"]["annotations"]["cluster.x-k8s.io/machine"], "m");
    // Owner of the object, status, spec, status.
    assert_eq!(lab.writes(), 4, "{:?}", lab.server.lock().log);

    let before = (lab.writes(), lab.workload.lock().log.len());
    lab.pass("m").await;
    let of_workload =
        lab.workload.lock().log.iter().filter(|line| line.starts_with("PATCH")).count();
    assert_eq!((lab.writes(), of_workload), (before.0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_machine_is_drained_and_goes_with_its_node() {
    let lab = Lab::new();
    running(&lab, "m").await;
    let mut going = lab.stored(MACHINES, "m").unwrap();
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    // Another control-plane machine, without which no Node is deleted.
    lab.put_machine(
        "cp",
        "FooMachine",
        json!({ "labels": {
        "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/control-plane": "",
    } }),
    );
    lab.server.put(MACHINES, going);
    let going = lab.stored(MACHINES, "m").unwrap();
    lab.context.stores.machines.apply_written(crate::testing::read(going));

    lab.settle("m").await;
    let node = lab.workload.lock().objects[&(NODES.to_owned(), "m".to_owned())].clone();
    assert_eq!(node["spec"]["unschedulable"], true);
    lab.settle("m").await;
    assert_eq!(lab.stored(FOO, "m"), None);
    lab.settle("m").await;
    let is_there = lab.workload.lock().objects.contains_key(&(NODES.to_owned(), "m".to_owned()));
    assert!(!is_there, "the Node goes with its machine");
    let finalizers = &lab.stored(MACHINES, "m").unwrap()["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!([]));
}

/// The provider writes to the Machine, and the watch does not show it yet.
#[tokio::test(start_paused = true)]
async fn one_foreign_write_costs_one_refusal() {
    let lab = Lab::new();
    lab.server.lock().checks_patches = true;
    lab.put_machine("m", "FooMachine", json!({}));
    let mut touched = lab.stored(MACHINES, "m").unwrap();
    touched["metadata"]["annotations"] = json!({ "theirs": "since" });
    lab.server.put(MACHINES, touched);
    lab.pass("m").await;
    lab.pass("m").await;
    let log = lab.server.lock().log.clone();
    let writes = log.iter().filter(|line| line.starts_with("PATCH") && line.contains(MACHINES));
    assert_eq!(writes.count(), 2, "one is refused, the next one is not: {log:?}");
    assert_eq!(lab.stored(MACHINES, "m").unwrap()["status"]["phase"], "Pending");
    assert_eq!(lab.condition("m", "InfrastructureReady"), "False ObjectDoesNotExist");
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_said_on_the_machine_and_others_go_on() {
    let lab = Lab::new();
    lab.define("BarMachine", None);
    lab.put_machine("unlabelled", "BarMachine", json!({}));
    lab.put_machine("undefined", "BazMachine", json!({}));
    lab.put_machine("alone", "FooMachine", json!({}));
    for name in ["unlabelled", "undefined", "alone"] {
        lab.settle(name).await;
    }
    assert_eq!(lab.condition("unlabelled", "InfrastructureReady"), "Unknown InternalError");
    assert_eq!(lab.condition("undefined", "InfrastructureReady"), "Unknown InternalError");
    assert_eq!(lab.condition("alone", "InfrastructureReady"), "False ObjectDoesNotExist");
    running(&lab, "good").await;
    assert_eq!(lab.condition("good", "Ready"), "True Ready");

    // The label comes later: it is noticed.
    lab.define("BarMachine", Some("v1"));
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    lab.settle("unlabelled").await;
    assert_ne!(lab.condition("unlabelled", "InfrastructureReady"), "Unknown InternalError");
}

#[tokio::test(start_paused = true)]
async fn of_two_machines_with_one_provider_id_one_has_the_node() {
    let lab = Lab::new();
    running(&lab, "a").await;
    lab.put_machine("b", "FooMachine", json!({}));
    let same = json!({ "providerID": "foo://a" });
    lab.put_infrastructure("b", same, json!({ "initialization": { "provisioned": true } }));
    lab.settle("b").await;
    lab.settle("a").await;
    assert_eq!(lab.machine("b").unwrap().status.as_ref().unwrap().node_ref, None);
    assert_eq!(lab.condition("b", "NodeHealthy"), "Unknown InspectionFailed");
    assert_eq!(lab.condition("a", "Ready"), "True Ready");
}
