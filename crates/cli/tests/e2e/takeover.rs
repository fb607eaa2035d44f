//! A fleet of thirty in the peer's exact shape is taken over: nothing is launched, terminated or
//! drained, and when the operator is stopped again the peer could go on.

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use machinist_api::Machine;
use serde_json::{Value, json};

use crate::{
    adoption::{Launched, launch_as_the_peer},
    arena::{Arena, is_ready, name_of, run},
    seen::record_of,
};

const FLEET: usize = 30;

/// A Machine as the peer's controllers leave it once its Node has joined.
async fn create_as_the_peer(arena: &Arena, launched: &Launched, set_uid: &str, node: &Node) {
    let overrides = json!({
        "metadata": {
            "labels": {
                "machine.openshift.io/cluster-api-cluster": arena.name,
                "machine.openshift.io/cluster-api-machineset": "pool",
                "machine.openshift.io/instance-type": "m5.large",
                "machine.openshift.io/region": arena.cluster.cloud().world().region,
                "machine.openshift.io/zone": launched.zone,
            },
            "annotations": {"machine.openshift.io/instance-state": "running"},
            "finalizers": ["machine.machine.openshift.io"],
            "ownerReferences": [{
                "apiVersion": "machine.openshift.io/v1beta1",
                "kind": "MachineSet",
                "name": "pool",
                "uid": set_uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "providerID": launched.provider_id(),
            "lifecycleHooks": {},
            "metadata": {"labels": {"pool": format!("{}-pool", arena.name)}},
        },
    });
    arena.create_machine(&launched.name, overrides).await;
    let now = jiff::Timestamp::now().to_string();
    let status = json!({"status": {
        "phase": "Running",
        "lastUpdated": now,
        "addresses": [
            {"type": "InternalIP", "address": launched.address},
            {"type": "InternalDNS", "address": launched.dns},
            {"type": "Hostname", "address": launched.dns},
        ],
        "nodeRef": {
            "kind": "Node",
            "name": node.metadata.name,
            "uid": node.metadata.uid,
        },
        "conditions": [
            {"type": "Drainable", "status": "True", "lastTransitionTime": now},
            {"type": "InstanceExists", "status": "True", "lastTransitionTime": now},
            {"type": "Terminable", "status": "True", "lastTransitionTime": now},
        ],
        "providerStatus": {
            "instanceId": launched.id,
            "instanceState": "running",
            "conditions": [{
                "type": "MachineCreation",
                "status": "True",
                "reason": "MachineCreationSucceeded",
                "message": "Machine successfully created",
                "lastTransitionTime": now,
            }],
        },
    }});
    let api = arena.api::<Machine>();
    api.patch_status(&launched.name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

/// What must not change: what the peer would read when it goes on.
fn kept(machine: &Machine) -> Value {
    let status = machine.status.clone().unwrap_or_default();
    let record = record_of(machine);
    json!({
        "spec": machine.spec,
        "uid": machine.metadata.uid,
        "finalizers": machine.metadata.finalizers,
        "ownerReferences": machine.metadata.owner_references,
        "labels": machine.metadata.labels,
        "instanceState": machine.metadata.annotations.as_ref()
            .and_then(|all| all.get("machine.openshift.io/instance-state")),
        "phase": status.phase,
        "nodeRef": status.node_ref,
        "errorReason": status.error_reason,
        "instanceId": record.instance_id,
        "instanceStateOfProvider": record.instance_state,
    })
}

#[test]
fn thirty_machines_of_the_peer_are_taken_over_and_can_be_given_back() {
    run(async {
        let arena = Arena::alone("takeover").await;
        let set = arena.create_set("pool", i32::try_from(FLEET).unwrap(), json!({})).await;
        let names: Vec<String> = (1..=FLEET).map(|number| format!("pool-{number:02}")).collect();
        let launched = launch_as_the_peer(&arena, &names).await;
        // The cluster's own approver runs, as it does beside the peer.
        arena.cluster.set_kubelet_approval(true);
        let nodes: Api<Node> = Api::all(arena.client.clone());
        let joined = arena
            .eventually("the nodes have joined", async || {
                let all = nodes.list(&ListParams::default()).await.unwrap().items;
                let of = |one: &Launched| {
                    let provider_id = Some(one.provider_id());
                    let found = all.iter().find(|node| {
                        node.spec.as_ref().and_then(|spec| spec.provider_id.clone()) == provider_id
                    });
                    found.filter(|node| is_ready(node)).cloned()
                };
                launched.iter().map(of).collect::<Option<Vec<_>>>()
            })
            .await;
        arena.cluster.set_kubelet_approval(false);
        for (one, node) in launched.iter().zip(&joined) {
            create_as_the_peer(&arena, one, set.metadata.uid.as_deref().unwrap(), node).await;
        }
        let before: Vec<Value> = arena.machines().await.iter().map(kept).collect();

        let page = arena.page_of_the_books();
        let begun = jiff::Timestamp::now();
        let operator = arena.start_operator().await;
        arena.wait_set_columns("pool", "30 30 30 30").await;
        arena
            .eventually("each instance carries its machine's uid", async || {
                let live = arena.live();
                let tagged =
                    live.iter().filter(|one| one.tags.contains_key("machinist.dev/machine-uid"));
                (tagged.count() == FLEET).then_some(())
            })
            .await;
        arena.let_it_look(10).await;
        operator.stop().await;

        assert_eq!(arena.launched().len(), FLEET, "nothing was launched");
        for call in arena.calls_since(page, "*") {
            let is_harmless = call.action.contains("Describe") || call.action == "CreateTags";
            assert!(is_harmless, "{} on {:?}", call.action, call.instance_ids);
        }
        for asked in arena.asked_since(begun) {
            let destroys = asked.verb == "delete" || asked.resource == "pods/eviction";
            assert!(!destroys, "{asked:?}");
            let creates = asked.verb == "create" && asked.resource == "machines";
            assert!(!creates, "{asked:?}");
        }
        let machines = arena.machines().await;
        let after: Vec<Value> = machines.iter().map(kept).collect();
        assert_eq!(before, after, "what the peer would read when it goes on");
        for (machine, node) in machines.iter().zip(&joined) {
            let node = arena.node(node.metadata.name.as_deref().unwrap()).await.unwrap();
            assert!(is_ready(&node), "the node of {}", name_of(machine));
            assert_ne!(node.spec.unwrap().unschedulable, Some(true), "nobody cordoned it");
        }
    });
}
