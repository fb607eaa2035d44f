//! Is a pool the one that controls the machine, and not another of its name?

use std::sync::Arc;

use serde_json::json;

use crate::{
    cluster_api::{
        maintained::Maintained,
        testing::{Fleet, deployment, machine, set},
    },
    engine::leadership::Leadership,
    testing::read,
};

#[tokio::test(start_paused = true)]
async fn a_set_that_stands_alone_is_counted_by_itself_though_a_deployment_has_its_name() {
    let fleet = Fleet::new();
    let stores = &fleet.context.stores;
    let mut namesake = deployment(7);
    namesake["metadata"]["name"] = json!("ms");
    stores.deployments.apply_written(read(namesake));
    stores.machine_sets.apply_written(read(set(3)));
    for name in ["a", "b", "c"] {
        stores.machines.apply_written(read(machine(name)));
    }
    let maintained = Maintained {
        stores: Arc::clone(stores),
        nodes: Arc::clone(&fleet.context.nodes),
        leadership: Leadership::always_held(),
    };
    let seen = maintained.machine("ns/a").unwrap();
    assert_eq!(maintained.counted(&seen).unwrap().desired, 3);
}
