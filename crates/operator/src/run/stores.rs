//! What is kept of the cluster: one store of each kind, how it is searched, and when it is whole.

use machinist_core::approval::Policy as ApprovalPolicy;

use crate::{
    approval,
    args::Args,
    context::Stores,
    engine::store::Store,
    health,
    hold::Hold,
    index,
    maintenance::{self, MaintenanceStores},
    openshift::OpenShift,
};

pub(super) fn new(args: &Args, approval: &ApprovalPolicy) -> Stores {
    let infrastructures = Store::builder().build();
    let release = &args.upkeep.release_version;
    let openshift = OpenShift::new(&args.namespace, release, &infrastructures);
    let hold = Hold::new(&args.namespace);
    let (by_node, by_state, pruned) = (approval.clone(), approval.clone(), approval.clone());
    Stores {
        machines: Store::builder()
            .index(index::MACHINE_BY_INTERNAL_IP, index::internal_ips_of_machine)
            .index(index::MACHINE_BY_INTERNAL_DNS, index::internal_dns_of_machine)
            .index(index::MACHINE_BY_UID, index::uid_of_machine)
            .index(index::MACHINE_BY_INSTANCE, index::instance_of_machine)
            .index(index::MACHINE_BY_NODE, index::node_of_machine)
            .index(index::MACHINE_BY_OWNER, index::owner_of_machine)
            .build(),
        machine_sets: Store::builder().build(),
        nodes: Store::builder()
            .prune(index::prune_node)
            .index(index::NODE_BY_INSTANCE, index::instance_of_node)
            .index(index::NODE_BY_INTERNAL_IP, index::internal_ips_of_node)
            .build(),
        pods: Store::builder()
            .prune(index::prune_pod)
            .index(index::POD_BY_NODE, index::node_of_pod)
            .build(),
        budgets: Store::builder().build(),
        infrastructures,
        openshift,
        hold,
        maintenance: MaintenanceStores::new(&args.namespace),
        cluster_api: crate::cluster_api::maintained::Handle::default(),
        health_checks: Store::builder().build(),
        requests: Store::builder()
            .prune(move |request| index::prune_request(request, &pruned))
            .index(index::REQUEST_BY_NODE, move |one| index::node_of_request(one, &by_node))
            .index(index::REQUEST_BY_STATE, move |one| index::state_of_request(one, &by_state))
            .build(),
    }
}

pub(super) type SyncCheck = Box<dyn Fn() -> bool + Send + Sync>;

pub(super) fn sync_checks(stores: &Stores) -> Vec<(&'static str, SyncCheck)> {
    let Stores { machines, machine_sets, nodes, pods, budgets, infrastructures, .. } =
        Stores::clone(stores);
    vec![
        ("machines are listed", Box::new(move || machines.is_synced())),
        ("machinesets are listed", Box::new(move || machine_sets.is_synced())),
        ("nodes are listed", Box::new(move || nodes.is_synced())),
        ("pods are listed", Box::new(move || pods.is_synced())),
        ("disruption budgets are listed", Box::new(move || budgets.is_synced())),
        ("infrastructures are listed", Box::new(move || infrastructures.is_synced())),
    ]
}

/// Waits for what every controller reads, and for the kinds that one alone reads.
pub(super) async fn all_synced(stores: &Stores, controller: &str) {
    let Stores { machines, machine_sets, nodes, pods, budgets, infrastructures, .. } = stores;
    machines.synced().await;
    machine_sets.synced().await;
    nodes.synced().await;
    pods.synced().await;
    budgets.synced().await;
    infrastructures.synced().await;
    stores.openshift.synced().await;
    stores.hold.synced().await;
    match controller {
        health::NAME => stores.health_checks.synced().await,
        approval::NAME => stores.requests.synced().await,
        maintenance::NAME | maintenance::planning::NAME => stores.maintenance.synced().await,
        _ => {}
    }
}
