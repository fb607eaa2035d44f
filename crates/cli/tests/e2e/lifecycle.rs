//! Machines come and go with their pool.

use k8s_openapi::api::{autoscaling::v1::Scale, core::v1::Node};
use kube::{Api, api::DeleteParams};
use machinist_api::{Machine, MachineSet};
use serde_json::json;

use crate::arena::{Arena, is_ready, name_of, run};

#[test]
fn a_pool_becomes_nodes_and_scales_up_and_down() {
    run(async {
        let (arena, _operator) = Arena::with_operator("scale").await;
        arena.create_set("pool", 3, json!({})).await;
        let machines = arena.wait_running(3).await;
        let nodes = Api::<Node>::all(arena.client.clone());
        for machine in &machines {
            let status = machine.status.as_ref().unwrap();
            let reference = status.node_ref.as_ref().unwrap();
            let node = nodes.get(reference.name.as_deref().unwrap()).await.unwrap();
            assert_eq!(reference.uid, node.metadata.uid);
            assert_eq!(machine.spec.provider_id, node.spec.as_ref().unwrap().provider_id);
            let labels = machine.metadata.labels.as_ref().unwrap();
            assert_eq!(labels["machine.openshift.io/instance-type"], "m5.large");
            assert_eq!(labels["machine.openshift.io/zone"], "us-east-1a");
            assert!(status.addresses.iter().any(|address| address.type_ == "InternalDNS"));
            let path = format!("{}/{}", arena.name, name_of(machine));
            arena
                .eventually("the node carries its machine's name and labels", async || {
                    let node = nodes.get(reference.name.as_deref().unwrap()).await.unwrap();
                    let annotations = node.metadata.annotations.unwrap_or_default();
                    let labels = node.metadata.labels.unwrap_or_default();
                    (annotations.get("machine.openshift.io/machine") == Some(&path)
                        && labels.get("pool") == Some(&format!("{}-pool", arena.name)))
                    .then_some(())
                })
                .await;
        }
        arena.scale("pool", 6).await;
        arena.wait_running(6).await;
        arena.scale("pool", 2).await;
        arena.wait_running(2).await;
        arena
            .eventually("the pool's status is 2/2/2", async || {
                let set = arena.api::<MachineSet>().get("pool").await.unwrap();
                let status = set.status?;
                (status.replicas == Some(2)
                    && status.ready_replicas == Some(2)
                    && status.available_replicas == Some(2)
                    && status.observed_generation == set.metadata.generation)
                    .then_some(())
            })
            .await;
        let scale: Scale = arena
            .api::<MachineSet>()
            .get_scale("pool")
            .await
            .map(|scale| serde_json::from_value(serde_json::to_value(scale).unwrap()).unwrap())
            .unwrap();
        assert!(scale.status.unwrap().selector.unwrap().contains("cluster-api-machineset=pool"));
        arena.check_ledger().await;
        assert_eq!(arena.launched().len(), 6, "three, then three more, and never another");

        // The set goes, and everything of it.
        arena.api::<MachineSet>().delete("pool", &DeleteParams::default()).await.unwrap();
        arena
            .eventually("all machines and instances are gone", async || {
                (arena.machines().await.is_empty() && arena.live().is_empty()).then_some(())
            })
            .await;
        let left = nodes.list(&Default::default()).await.unwrap();
        let ours = |node: &&Node| {
            let annotations = node.metadata.annotations.clone().unwrap_or_default();
            annotations
                .get("machine.openshift.io/machine")
                .is_some_and(|path| path.starts_with(&format!("{}/", arena.name)))
        };
        assert_eq!(left.items.iter().filter(ours).count(), 0, "nodes go with their instances");
    });
}

#[test]
fn a_deleted_machine_is_replaced_and_a_relabelled_one_is_released() {
    run(async {
        let (arena, _operator) = Arena::with_operator("replace").await;
        // Here the cloud's own controller removes Nodes as well.
        arena.cluster.set_cloud_controller(true);
        arena.create_set("pool", 2, json!({})).await;
        let machines = arena.wait_running(2).await;
        arena.delete_machine(&name_of(&machines[0])).await;
        arena
            .eventually("the deleted machine is gone", async || {
                let found = arena.api::<Machine>().get_opt(&name_of(&machines[0])).await.unwrap();
                found.is_none().then_some(())
            })
            .await;
        let machines = arena.wait_running(2).await;
        arena.cluster.set_cloud_controller(false);

        // D18: what no longer matches is let go, and survives the set.
        let released = name_of(&machines[0]);
        let relabel = json!({"metadata": {"labels": {
            "machine.openshift.io/cluster-api-machineset": "elsewhere",
        }}});
        arena.patch::<Machine>(&released, relabel).await;
        arena.wait_running(3).await;
        arena
            .eventually("the relabelled machine has no owner", async || {
                let machine = arena.api::<Machine>().get(&released).await.unwrap();
                machine.metadata.owner_references.unwrap_or_default().is_empty().then_some(())
            })
            .await;
        arena.api::<MachineSet>().delete("pool", &DeleteParams::default()).await.unwrap();
        arena.wait_running(1).await;
        arena.check_ledger().await;
        arena.delete_machine(&released).await;
        arena
            .eventually("nothing is left", async || {
                (arena.machines().await.is_empty() && arena.live().is_empty()).then_some(())
            })
            .await;
    });
}

#[test]
fn node_reference_follows_a_recreated_node() {
    run(async {
        let (arena, _operator) = Arena::with_operator("relink").await;
        arena.create_machine("single", json!({})).await;
        let machines = arena.wait_running(1).await;
        let reference = machines[0].status.as_ref().unwrap().node_ref.clone().unwrap();
        let nodes = Api::<Node>::all(arena.client.clone());
        let name = reference.name.clone().unwrap();
        nodes.delete(&name, &DeleteParams::default()).await.unwrap();
        // A reboot makes the kubelet register again, as it does in life.
        let id = arena.live()[0].id.clone();
        arena.cluster.cloud().reboot(&id, Default::default()).unwrap();
        arena
            .eventually("nodeRef has the new node's uid (D17)", async || {
                let node = nodes.get_opt(&name).await.unwrap().filter(is_ready)?;
                let machine = arena.api::<Machine>().get("single").await.unwrap();
                let linked = machine.status?.node_ref?.uid;
                (linked == node.metadata.uid && linked != reference.uid).then_some(())
            })
            .await;
        arena.delete_machine("single").await;
        arena.eventually("gone", async || arena.machines().await.is_empty().then_some(())).await;
        arena.check_ledger().await;
    });
}
