//! Do the series of objects go with the objects?

use machinist_core::health::decide::Gauges;
use serde_json::json;

use super::*;
use crate::{
    drain,
    engine::store::ObjectKey,
    fleet, health, machine as machines, machineset, nodelink,
    testing::{World, machine, pool, read},
};

fn series(metrics: &Metrics) -> usize {
    let text = metrics.encode().unwrap();
    text.lines().filter(|line| !line.starts_with('#')).count()
}

/// A thousand objects of every kind come, fail in every way, wait, and go.
#[tokio::test(start_paused = true)]
async fn many_objects_come_and_go_and_no_series_is_left() {
    let world = World::new();
    let (context, stores) = (&world.context, &world.context.stores);
    let metrics = &context.metrics;
    let memories = (
        machines::Memory::default(),
        machineset::Memory::default(),
        drain::Memory::default(),
        health::Memory::default(),
    );
    let of_fleet = std::sync::Arc::downgrade(stores);
    metrics.register_fleet(move || FleetSnapshot {
        machines: of_fleet.upgrade().map(|stores| fleet::machine_rows(&stores)),
        machine_sets: of_fleet.upgrade().map(|stores| fleet::machine_set_rows(&stores)),
    });
    let before = series(metrics);
    let names: Vec<String> = (0..1000).map(|index| format!("n{index}")).collect();
    for name in &names {
        let mut running = machine(name, json!({ "creationTimestamp": "2026-01-01T00:00:00Z" }));
        running["status"] = json!({ "phase": "Running" });
        stores.machines.apply_written(read(running));
        let mut set = pool(1);
        set["metadata"]["name"] = json!(name);
        set["metadata"]["uid"] = json!(format!("uid-{name}"));
        set["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        stores.machine_sets.apply_written(read(set));
        let operations =
            [InstanceOperation::Create, InstanceOperation::Update, InstanceOperation::Delete];
        for operation in operations {
            for reason in ["Throttled", "QuotaExceeded"] {
                metrics.count_instance_failure(operation, "ns", name, reason);
            }
        }
        metrics.set_health_check("ns", name, Gauges { nodes_covered: 1, short_circuit: true });
        metrics.count_remediation("ns", name);
        for controller in [machines::NAME, machineset::NAME, drain::NAME, health::NAME] {
            metrics.set_waiting(controller, &format!("ns/{name}"), Some("Waiting"));
        }
        metrics.set_waiting(nodelink::NAME, name, Some("Waiting"));
    }
    // One for a Machine, four for a set, three for a check, six for failures; five for all that wait.
    assert_eq!(series(metrics), before + 14 * names.len() + 5);

    for name in &names {
        let key = ObjectKey::new("ns", name);
        stores.machines.forget_written(&key, &format!("uid-{name}"));
        stores.machine_sets.forget_written(&key, &format!("uid-{name}"));
        // Every controller is woken by the end of its object.
        machines::reconcile(context, &memories.0, key.clone()).await;
        machineset::reconcile(context, &memories.1, key.clone()).await;
        drain::reconcile(context, &memories.2, key.clone()).await;
        health::reconcile(context, &memories.3, key).await;
        nodelink::reconcile(context, ObjectKey::cluster_wide(name)).await;
    }
    assert_eq!(series(metrics), before);
}

/// Whatever a cloud or the API server answers, labels come from short lists.
#[test]
fn no_label_takes_text_from_outside() {
    let metrics = Metrics::new();
    for index in 0..1000 {
        metrics.observe_phase_transition("Running", Duration::from_secs(index));
        metrics.count_cloud_call("aws", "RunInstances", "Unknown");
        metrics.set_waiting("machine", &format!("ns/{index}"), Some("Draining"));
    }
    // Fourteen buckets, sum and count; one of calls; one of waiting; and those of the process.
    let own = series(&metrics) - series(&Metrics::new());
    assert_eq!(own, 16 + 1 + 1);
}
