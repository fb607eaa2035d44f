//! Which changes of Cluster API's objects is maintenance told of?

use std::sync::Arc;

use machinist_api::MachineMaintenance;
use serde_json::json;

use crate::{
    cluster_api::{
        lab::Lab,
        maintained::{Maintained, wake},
    },
    engine::leadership::Leadership,
    testing::{connected, read},
};

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_woken_by_its_machine_its_node_and_its_cluster() {
    let lab = Lab::new();
    lab.put_machine("m", "FooMachine", json!({}));
    lab.put_node("m", "foo://m");
    lab.connect().await;
    let base = &lab.context.base;
    let object: MachineMaintenance = read(json!({
        "apiVersion": "machinemaintenance.managed.openshift.io/v1alpha1",
        "kind": "MachineMaintenance",
        "metadata": { "name": "mm-ns.m", "namespace": "ns", "uid": "mm", "resourceVersion": "1" },
        "spec": { "machinelink": "ns/m" },
        "status": { "phase": "Acting", "work": {} },
    }));
    base.stores.maintenance.apply_written(object);
    let queues = connected(&base.stores);
    let maintained = Maintained {
        stores: Arc::clone(&lab.context.stores),
        nodes: Arc::clone(&lab.context.nodes),
        leadership: Leadership::always_held(),
    };
    wake::connect(&base.stores, &maintained, &lab.parts.workloads, &queues);
    assert_eq!(queues.maintenances.depth(), 0);
    let mut machine = serde_json::to_value(&*lab.machine("m").unwrap()).unwrap();
    machine["status"] = json!({ "nodeRef": { "name": "m" } });
    machine["metadata"]["resourceVersion"] = json!("11");
    lab.context.stores.machines.apply_written(read(machine));
    assert_eq!(queues.maintenances.depth(), 1, "by its machine");

    let queues = connected(&base.stores);
    wake::connect(&base.stores, &maintained, &lab.parts.workloads, &queues);
    lab.put_node("other", "foo://other");
    lab.wait("another node", || {
        maintained
            .nodes
            .reached(&crate::cluster_api::lab::cluster())
            .is_some_and(|(_, nodes)| nodes.len() == 2)
    })
    .await;
    assert_eq!(queues.maintenances.depth(), 0, "a node of nobody's");
    lab.put_node("m", "foo://m-again");
    lab.wait("its node", || queues.maintenances.depth() == 1).await;

    let queues = connected(&base.stores);
    wake::connect(&base.stores, &maintained, &lab.parts.workloads, &queues);
    let clusters = &lab.context.stores.clusters;
    let known = clusters.get(&crate::cluster_api::lab::cluster()).unwrap();
    let mut paused = serde_json::to_value(&*known).unwrap();
    paused["metadata"]["resourceVersion"] = json!("11");
    paused["spec"] = json!({ "paused": true });
    clusters.apply_written(read(paused));
    assert_eq!(queues.maintenances.depth(), 1, "by its cluster");
}
