//! The cases of the original's acceptance suite about Machines and MachineSets, by their numbers.
//! Those about health checks, admission, spot and the operator itself are in files of their own.

use k8s_openapi::api::{
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{Node, Pod, ReplicationController},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use machinist_api::{ConditionStatus, Machine, MachineSet};
use serde_json::{Value, json};

use crate::{
    arena::{Arena, name_of, run},
    seen::Subject,
};

#[test]
fn m_1_the_scale_subresource_publishes_the_selector_for_autoscalers() {
    run(async {
        let (arena, _operator) = Arena::with_operator("m-1").await;
        arena.create_set("pool", 0, json!({})).await;
        let expected = format!(
            "machine.openshift.io/cluster-api-cluster={},\
             machine.openshift.io/cluster-api-machineset=pool",
            arena.name
        );
        arena
            .eventually("the selector is in the scale", async || {
                let scale = arena.api::<MachineSet>().get_scale("pool").await.unwrap();
                let selector = scale.status.and_then(|status| status.selector);
                (selector.as_deref() == Some(expected.as_str())).then_some(())
            })
            .await;
        arena.scale("pool", 1).await;
        arena.wait_running(1).await;
        arena
            .create::<HorizontalPodAutoscaler>(json!({
                "metadata": {"name": "scaler"},
                "spec": {
                    "scaleTargetRef": {
                        "apiVersion": "machine.openshift.io/v1beta1",
                        "kind": "MachineSet",
                        "name": "pool",
                    },
                    "minReplicas": 1,
                    "maxReplicas": 2,
                    "metrics": [{
                        "type": "Resource",
                        "resource": {
                            "name": "cpu",
                            "target": {"type": "Utilization", "averageUtilization": 50},
                        },
                    }],
                },
            }))
            .await;
        let conditions = arena
            .eventually("the autoscaler is able to scale", async || {
                let found = arena.api::<HorizontalPodAutoscaler>().get("scaler").await.unwrap();
                let conditions = found.status?.conditions?;
                let able =
                    conditions.iter().any(|one| one.type_ == "AbleToScale" && one.status == "True");
                able.then_some(conditions)
            })
            .await;
        let reasons: Vec<_> = conditions.iter().filter_map(|one| one.reason.as_deref()).collect();
        assert!(!reasons.contains(&"InvalidSelector"), "{reasons:?}");
    });
}

#[test]
fn m_2_taints_are_added_and_those_of_others_stay() {
    run(async {
        let (arena, _operator) = Arena::with_operator("m-2").await;
        arena.create_machine("tainted", json!({})).await;
        let machines = arena.wait_running(1).await;
        let node = Subject::of(&machines[0]).node;
        let nodes: Api<Node> = Api::all(arena.client.clone());
        let taints = async || {
            let found = nodes.get(&node).await.unwrap();
            let taints = found.spec.and_then(|spec| spec.taints).unwrap_or_default();
            taints.into_iter().map(|taint| taint.key).collect::<Vec<_>>()
        };
        let foreign = json!({"key": "not-from-machine", "value": "true", "effect": "NoSchedule"});
        let patch = Patch::Strategic(json!({"spec": {"taints": [foreign]}}));
        nodes.patch(&node, &PatchParams::default(), &patch).await.unwrap();
        let own = json!({"key": "from-machine", "value": "true", "effect": "NoSchedule"});
        arena.patch::<Machine>("tainted", json!({"spec": {"taints": [own]}})).await;
        arena
            .eventually("the Machine's taint is on the Node", async || {
                taints().await.contains(&"from-machine".to_owned()).then_some(())
            })
            .await;
        assert!(taints().await.contains(&"not-from-machine".to_owned()));
    });
}

#[test]
fn m_3_deleted_machines_come_back_and_m_4_two_pools_change_at_once() {
    run(async {
        let (arena, _operator) = Arena::with_operator("m-3").await;
        arena.create_set("pool", 2, json!({})).await;
        let before = arena.wait_running(2).await;
        for machine in &before {
            arena.delete_machine(&name_of(machine)).await;
        }
        for machine in &before {
            arena.wait_gone(&name_of(machine)).await;
        }
        arena.wait_running(2).await;
        arena.wait_set_columns("pool", "2 2 2 2").await;

        arena.create_set("other", 0, json!({})).await;
        arena.scale("pool", 0).await;
        arena.scale("other", 1).await;
        arena.wait_set_columns("other", "1 1 1 1").await;
        arena
            .eventually("the first pool is empty", async || {
                (arena.set_columns("pool").await.starts_with("0 0 ")).then_some(())
            })
            .await;
        arena.wait_running(1).await;
        arena.check_ledger().await;
    });
}

#[test]
fn m_5_a_node_is_drained_within_its_budget_before_its_machine_goes() {
    run(async {
        let (arena, _operator) = Arena::with_operator("m-5").await;
        arena.create_set("pool", 2, json!({})).await;
        let machines = arena.wait_running(2).await;
        let labels = json!({"app": "drained"});
        arena
            .create::<ReplicationController>(json!({
                "metadata": {"name": "drained"},
                "spec": {
                    "replicas": 20,
                    "selector": labels,
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {
                            "nodeSelector": {"pool": format!("{}-pool", arena.name)},
                            "containers": [{"name": "main", "image": "example.invalid/main:1"}],
                        },
                    },
                },
            }))
            .await;
        arena
            .create::<PodDisruptionBudget>(json!({
                "metadata": {"name": "drained"},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
            }))
            .await;
        let ready = async || {
            let found = arena.api::<ReplicationController>().get("drained").await.unwrap();
            found.status.and_then(|status| status.ready_replicas).unwrap_or_default()
        };
        arena
            .eventually("twenty pods are ready", async || (ready().await == 20).then_some(()))
            .await;
        arena
            .eventually("the budget is counted", async || {
                let found = arena.api::<PodDisruptionBudget>().get("drained").await.unwrap();
                (found.status?.disruptions_allowed == 1).then_some(())
            })
            .await;
        let subject = Subject::of(&machines[0]);
        let pods_on = async |node: &str| {
            let parameters = ListParams::default().fields(&format!("spec.nodeName={node}"));
            let pods = arena.api::<Pod>().list(&parameters).await.unwrap().items;
            pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count()
        };
        assert!(pods_on(&subject.node).await > 2);
        arena.delete_machine(&subject.machine).await;
        arena
            .eventually("the node is cordoned, drained, and gone with its machine", async || {
                assert!(ready().await >= 19, "never more than one pod is missing");
                let node = arena.node(&subject.node).await;
                if let Some(node) = &node
                    && pods_on(&subject.node).await <= 2
                {
                    assert_eq!(node.spec.as_ref().unwrap().unschedulable, Some(true));
                }
                let machine = arena.api::<Machine>().get_opt(&subject.machine).await.unwrap();
                (machine.is_none() && node.is_none()).then_some(())
            })
            .await;
        arena.check_ledger().await;
    });
}

#[test]
fn l_1_hooks_hold_the_drain_and_then_the_termination_of_a_pool_scaled_to_zero() {
    run(async {
        let (arena, _operator) = Arena::with_operator("l-1").await;
        let hooks = json!({
            "preDrain": [{"name": "hold-drain", "owner": "test"}],
            "preTerminate": [{"name": "hold-terminate", "owner": "test"}],
        });
        let overrides = json!({"spec": {"template": {"spec": {"lifecycleHooks": hooks}}}});
        arena.create_set("pool", 1, overrides).await;
        let machine = name_of(&arena.wait_running(1).await[0]);
        arena.deploy("web", 1, "pool", json!(0)).await;
        arena.scale("pool", 0).await;
        let is_false = |one: &machinist_api::Condition| one.status == ConditionStatus::False;
        arena.wait_condition(&machine, "Drainable", is_false).await;
        let pods = async || {
            let pods = arena.api::<Pod>().list(&ListParams::default().labels("app=web")).await;
            let placed = pods.unwrap().items.into_iter().filter(|pod| {
                pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
                    && pod.metadata.deletion_timestamp.is_none()
            });
            placed.count()
        };
        assert_eq!(pods().await, 1, "still running");
        let without = |hook: &str| -> Value { json!({"spec": {"lifecycleHooks": {hook: null}}}) };
        arena.patch::<Machine>(&machine, without("preDrain")).await;
        arena.eventually("the pod is evicted", async || (pods().await == 0).then_some(())).await;
        arena.wait_condition(&machine, "Terminable", is_false).await;
        let phase = arena.machine(&machine).await.status.unwrap().phase;
        assert_eq!(phase.as_deref(), Some("Deleting"));
        arena.patch::<Machine>(&machine, without("preTerminate")).await;
        arena.wait_gone(&machine).await;
        arena.check_ledger().await;
    });
}
