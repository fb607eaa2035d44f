//! Is one control-plane Node drained at a time, and is every pod tried?

use std::time::Duration;

use http::Method;
use machinist_api::condition;
use machinist_core::drain::{Action, Attempts};
use serde_json::{Value, json};

use super::*;
use crate::{
    engine::testing::Fault,
    testing::{MACHINES, World, machine, read},
};

const NODES: &str = "/api/v1/nodes";

/// A Machine that goes, and its Node of the same name.
fn add_going(world: &World, name: &str, labels: Value) {
    let mut going = machine(name, json!({ "deletionTimestamp": "2026-01-01T11:59:00Z" }));
    going["metadata"]["finalizers"] = json!(["machine.machine.openshift.io"]);
    let uid = format!("uid-{name}");
    going["status"] = json!({
        "phase": "Deleting", "nodeRef": { "kind": "Node", "name": name, "uid": uid },
    });
    let node = json!({
        "metadata": { "name": name, "uid": uid, "resourceVersion": "10", "labels": labels },
        "spec": {},
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    world.server.put(NODES, node.clone());
    world.context.stores.nodes.apply_written(read(node));
    // Where the server takes writes of its status.
    let status = (format!("{MACHINES}/{name}"), "status".to_owned());
    world.server.lock().objects.insert(status, going.clone());
    world.context.stores.machines.apply_written(read(going));
}

async fn drain_all(world: &World, memory: &Memory, names: &[&str]) -> Vec<Outcome> {
    let passes =
        names.iter().map(|name| reconcile(&world.context, memory, ObjectKey::new("ns", *name)));
    futures::future::join_all(passes).await
}

fn cordoned(world: &World) -> usize {
    let nodes = world.context.stores.nodes.list();
    nodes.iter().filter(|node| machinist_core::node::is_unschedulable(node)).count()
}

#[tokio::test(start_paused = true)]
async fn of_control_plane_nodes_that_go_together_one_is_cordoned() {
    let (world, memory) = (World::new(), Memory::default());
    let names = ["m-0", "m-1", "m-2"];
    for name in names {
        add_going(&world, name, json!({ "node-role.kubernetes.io/control-plane": "" }));
    }
    drain_all(&world, &memory, &names).await;
    assert_eq!(cordoned(&world), 1);
    drain_all(&world, &memory, &names).await;
    assert_eq!(cordoned(&world), 1);
}

#[tokio::test(start_paused = true)]
async fn workers_do_not_wait_for_the_turn_of_the_control_plane() {
    let (world, memory) = (World::new(), Memory::default());
    for name in ["w-0", "w-1"] {
        add_going(&world, name, json!({}));
    }
    let _turn = memory.control_plane_turn().await;
    drain_all(&world, &memory, &["w-0", "w-1"]).await;
    assert_eq!(cordoned(&world), 2);
}

/// As those of Cluster API's in-memory provider.
#[tokio::test(start_paused = true)]
async fn a_node_without_a_uid_is_cordoned_too() {
    let world = World::new();
    let node = json!({ "metadata": { "name": "w", "resourceVersion": "10" }, "spec": {} });
    world.server.lock().objects.insert((NODES.to_owned(), "w".to_owned()), node.clone());
    world.context.stores.nodes.apply_written(read(node));
    let cordon = Action::Cordon { node: "w".to_owned(), uid: String::new() };
    let place = execute::Place::here(&world.context);
    execute::cordon(place, &ObjectKey::new("ns", "w"), &[cordon]).await.unwrap();
    assert_eq!(cordoned(&world), 1);
}

#[tokio::test(start_paused = true)]
async fn every_pod_is_tried_whatever_becomes_of_the_others() {
    let (world, memory) = (World::new(), Memory::default());
    add_going(&world, "w", json!({}));
    for index in 0..45 {
        let name = format!("pod-{index:02}");
        world.context.stores.pods.apply_written(read(json!({
            "metadata": {
                "name": name, "namespace": "app", "uid": format!("uid-{name}"),
                "resourceVersion": "10",
            },
            "spec": { "nodeName": "w", "containers": [] },
        })));
    }
    world.server.fail(|method, path| match *method {
        Method::POST if path.contains("/pod-00/") => Fault::Silence,
        Method::POST if path.contains("/pod-01/") => Fault::Code(403),
        Method::POST if path.contains("/pod-02/") => Fault::Code(409),
        _ => Fault::None,
    });
    let outcomes = drain_all(&world, &memory, &["w"]).await;
    assert_eq!(world.requests("POST").len(), 45);
    let [Outcome::Failed(error)] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    let error = format!("{error:#}");
    assert!(error.contains("failed to evict pod app/pod-00"), "{error}");

    // With all answers there, the refused one is named on the Machine with what was said.
    world.server.fail(|method, path| match *method {
        Method::POST if path.contains("/pod-01/") => Fault::Code(403),
        _ => Fault::None,
    });
    let outcomes = drain_all(&world, &memory, &["w"]).await;
    assert!(matches!(outcomes[..], [Outcome::RecheckAfter(Duration::ZERO)]), "{outcomes:?}");
    drain_all(&world, &memory, &["w"]).await;
    let machine = world.context.stores.machines.get(&ObjectKey::new("ns", "w")).unwrap();
    let conditions = &machine.status.as_ref().unwrap().conditions;
    assert_eq!(
        condition::find(conditions, "Drained").unwrap().message.as_deref(),
        Some("could not drain machine: node w: pod app/pod-01 was not evicted: injected")
    );
}

#[tokio::test(start_paused = true)]
async fn at_the_end_it_is_asked_whether_the_sets_of_daemons_exist() {
    const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/app/daemonsets";
    let (world, memory) = (World::new(), Memory::default());
    add_going(&world, "w", json!({}));
    let add = |name: &str, owner: Option<&str>| {
        let owners = owner.map(|name| {
            json!([{
                "apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": name,
                "controller": true,
            }])
        });
        let pod = json!({
            "metadata": {
                "name": name, "namespace": "app", "uid": format!("uid-{name}"),
                "resourceVersion": "10", "ownerReferences": owners.unwrap_or_else(|| json!([])),
            },
            "spec": { "nodeName": "w", "containers": [] },
        });
        world.server.put("/api/v1/pods", pod.clone());
        world.context.stores.pods.apply_written(read(pod));
    };
    add("daemon", Some("kept"));
    add("orphan", Some("gone"));
    add("web", None);
    world.server.put(DAEMON_SETS, json!({ "metadata": { "name": "kept", "namespace": "app" } }));
    let asked = || {
        let all = world.requests("GET");
        all.into_iter().filter(|path| path.starts_with(DAEMON_SETS)).collect::<Vec<_>>()
    };
    drain_all(&world, &memory, &["w"]).await;
    drain_all(&world, &memory, &["w"]).await;
    let evicted: Vec<_> =
        world.requests("POST").into_iter().filter(|path| path.contains("/pods/orphan/")).collect();
    assert_eq!((asked().len(), evicted.len()), (0, 0), "something else is left");

    let key = ObjectKey::new("app", "web");
    world.server.delete("/api/v1/pods", "web");
    world.context.stores.pods.forget_written(&key, "uid-web");
    drain_all(&world, &memory, &["w"]).await;
    assert_eq!(asked(), [format!("{DAEMON_SETS}/gone"), format!("{DAEMON_SETS}/kept")]);
    let posted = world.requests("POST");
    assert!(posted.iter().any(|path| path.contains("/pods/orphan/eviction")), "{posted:?}");
    assert!(!posted.iter().any(|path| path.contains("/pods/daemon/")), "{posted:?}");

    // Whoever may not look leaves them alone, and the drain is not held up by it.
    world.server.fail(|method, path| match *method {
        Method::GET if path.starts_with(DAEMON_SETS) => Fault::Code(403),
        _ => Fault::None,
    });
    drain_all(&world, &memory, &["w"]).await;
    let machine = world.context.stores.machines.get(&ObjectKey::new("ns", "w")).unwrap();
    let conditions = &machine.status.as_ref().unwrap().conditions;
    assert!(condition::is_true(conditions, "Drained"), "{conditions:?}");
}

#[test]
fn it_is_known_which_machines_are_under_way() {
    let (memory, key) = (Memory::default(), ObjectKey::new("ns", "m"));
    assert!(!memory.contains(&key));
    memory.change(&key, |attempts| *attempts = Attempts::default());
    assert!(memory.contains(&key));
    memory.forget(&key);
    assert!(!memory.contains(&key));
}

#[tokio::test(start_paused = true)]
async fn a_cordon_that_somebody_lifted_is_made_again_before_the_drain_is_called_done() {
    let (world, memory) = (World::new(), Memory::default());
    add_going(&world, "w", json!({}));
    // The watch is behind: it shows the cordon of a person, who has lifted it since.
    let mut behind = serde_json::to_value(
        &*world.context.stores.nodes.get(&ObjectKey::cluster_wide("w")).unwrap(),
    )
    .unwrap();
    behind["metadata"]["resourceVersion"] = json!("11");
    behind["spec"]["unschedulable"] = json!(true);
    world.context.stores.nodes.apply_written(read(behind));
    let stored = || {
        let key = (NODES.to_owned(), "w".to_owned());
        world.server.lock().objects.get(&key).cloned().unwrap()
    };
    let mut lifted = stored();
    lifted["metadata"]["resourceVersion"] = json!("12");
    world.server.put(NODES, lifted);

    drain_all(&world, &memory, &["w"]).await;
    assert_eq!(stored()["spec"]["unschedulable"], true);
    let machine = world.context.stores.machines.get(&ObjectKey::new("ns", "w")).unwrap();
    let conditions = &machine.status.as_ref().unwrap().conditions;
    assert!(!condition::is_true(conditions, "Drained"), "{conditions:?}");

    drain_all(&world, &memory, &["w"]).await;
    let machine = world.context.stores.machines.get(&ObjectKey::new("ns", "w")).unwrap();
    assert!(condition::is_true(&machine.status.as_ref().unwrap().conditions, "Drained"));
}
