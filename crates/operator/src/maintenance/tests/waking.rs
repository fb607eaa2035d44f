//! Who is woken by which change?

use machinist_api::MachineMaintenance;
use serde_json::{Value, json};

use crate::testing::{connected, machine, pool, read, stores};

fn object(version: &str, status: Value) -> MachineMaintenance {
    read(json!({
        "apiVersion": "machinemaintenance.managed.openshift.io/v1alpha1",
        "kind": "MachineMaintenance",
        "metadata": { "name": "mm-a", "namespace": "ns", "uid": "mm", "resourceVersion": version },
        "spec": { "machinelink": "a" },
        "status": status,
    }))
}

#[tokio::test(start_paused = true)]
async fn a_status_of_our_own_wakes_nobody_and_a_person_does() {
    let stores = stores();
    stores.maintenance.apply_written(object("1", json!({ "phase": "Pending" })));
    let queues = connected(&stores);
    stores.maintenance.apply_written(object("2", json!({ "phase": "Pending", "message": "m" })));
    assert_eq!(queues.maintenances.depth(), 0);
    let mut approved = object("3", json!({ "phase": "Pending" }));
    let approval = ("machinist.dev/maintenance-approved".to_owned(), "true".to_owned());
    approved.metadata.annotations = Some([approval].into());
    stores.maintenance.apply_written(approved);
    assert_eq!(queues.maintenances.depth(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_woken_by_its_machine_its_pool_and_its_pods() {
    let stores = stores();
    stores.machine_sets.apply_written(read(pool(3)));
    let status = json!({ "phase": "Draining", "work": { "pool": "pool", "node": "n-a" } });
    stores.maintenance.apply_written(object("1", status));
    let linked = |name: &str, version: &str| {
        let mut linked = machine(name, json!({ "resourceVersion": version }));
        linked["status"] = json!({ "nodeRef": { "name": format!("n-{name}") } });
        linked
    };
    for name in ["a", "b"] {
        stores.machines.apply_written(read(linked(name, "1")));
    }
    let node = |name: &str, version: &str, cordoned: bool| -> Value {
        json!({
            "metadata": { "name": name, "uid": name, "resourceVersion": version },
            "spec": { "unschedulable": cordoned },
        })
    };
    stores.nodes.apply_written(read(node("n-a", "1", false)));
    stores.nodes.apply_written(read(node("other", "1", false)));
    let pod = |name: &str, node: &str| -> Value {
        json!({
            "metadata": { "name": name, "namespace": "app", "uid": name, "resourceVersion": "1" },
            "spec": { "nodeName": node, "containers": [] },
        })
    };
    let woken = |change: &dyn Fn()| {
        let queues = connected(&stores);
        change();
        queues.maintenances.depth()
    };
    assert_eq!(woken(&|| stores.machines.apply_written(read(linked("a", "2")))), 1);
    assert_eq!(woken(&|| stores.machines.apply_written(read(linked("b", "2")))), 1, "its pool");
    let mut stranger = linked("c", "3");
    stranger["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(woken(&|| stores.machines.apply_written(read(stranger.clone()))), 0);
    let mut larger = pool(4);
    larger["metadata"]["resourceVersion"] = json!("10");
    assert_eq!(woken(&|| stores.machine_sets.apply_written(read(larger.clone()))), 1);
    assert_eq!(woken(&|| stores.nodes.apply_written(read(node("n-a", "2", true)))), 1);
    assert_eq!(
        woken(&|| stores.nodes.apply_written(read(node("n-a", "3", true)))),
        0,
        "a heartbeat"
    );
    assert_eq!(woken(&|| stores.nodes.apply_written(read(node("other", "2", true)))), 0);
    assert_eq!(woken(&|| stores.pods.apply_written(read(pod("one", "n-a")))), 1);
    assert_eq!(woken(&|| stores.pods.apply_written(read(pod("two", "other")))), 0);
}
