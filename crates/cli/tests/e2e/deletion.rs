//! A machine goes only when its pods may, and says why it waits.

use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use kube::{Api, api::ListParams};
use machinist_api::{ConditionStatus, Machine};
use machinist_testbed::cloud::model::InstanceState;
use serde_json::json;

use crate::arena::{Arena, TAKEOVER, name_of, run};

/// Where a pod of the Deployment runs.
async fn node_of_pod(arena: &Arena, app: &str) -> String {
    arena
        .eventually("the pod runs somewhere", async || {
            let pods = arena.api::<Pod>();
            let list = pods.list(&ListParams::default().labels(&format!("app={app}"))).await;
            list.unwrap().items.first()?.spec.as_ref()?.node_name.clone()
        })
        .await
}

async fn machine_on(arena: &Arena, node: &str) -> Machine {
    let machines = arena.machines().await;
    let is_there = |machine: &&Machine| {
        let reference = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
        reference.and_then(|reference| reference.name.as_deref()) == Some(node)
    };
    machines.iter().find(is_there).cloned().unwrap()
}

#[test]
fn a_budget_that_allows_nothing_is_named_and_respected() {
    run(async {
        let arena = Arena::new("budget").await;
        let mut operator = arena.start_operator_with(&TAKEOVER).await;
        arena.create_set("pool", 2, json!({})).await;
        arena.wait_running(2).await;
        arena.deploy("web", 1, "pool", json!(1)).await;
        let node = node_of_pod(&arena, "web").await;
        let machine = name_of(&machine_on(&arena, &node).await);
        arena.delete_machine(&machine).await;

        let drained = arena
            .wait_condition(&machine, "Drained", |condition| {
                condition.reason.as_deref() == Some("DrainError")
            })
            .await;
        let message = drained.message.unwrap();
        assert!(message.contains(&format!("{}/web-", arena.name)), "names the pod: {message}");
        assert!(message.contains("web-budget"), "names the budget: {message}");
        assert_eq!(drained.status, ConditionStatus::False);
        arena.wait_event(&machine, "DrainRequeued", "web-budget").await;
        let cordoned = Api::<Node>::all(arena.client.clone()).get(&node).await.unwrap();
        assert_eq!(cordoned.spec.unwrap().unschedulable, Some(true));

        // A crash in the middle of it changes nothing; another one takes over.
        operator.kill().await;
        operator.restart().await.unwrap();
        arena
            .wait_condition(&machine, "Drained", |condition| {
                condition.message.as_deref().unwrap_or_default().contains("web-budget")
            })
            .await;
        let uid = arena.api::<Machine>().get(&machine).await.unwrap().metadata.uid.unwrap();
        let instance = arena
            .live()
            .into_iter()
            .find(|one| one.tags.get("machinist.dev/machine-uid") == Some(&uid))
            .unwrap();
        assert_eq!(instance.state, InstanceState::Running, "not terminated while it is blocked");

        arena
            .patch::<PodDisruptionBudget>("web-budget", json!({"spec": {"minAvailable": 0}}))
            .await;
        arena.wait_gone(&machine).await;
        arena.wait_running(2).await;
        arena.check_ledger().await;
    });
}

#[test]
fn hooks_hold_the_drain_and_the_termination() {
    run(async {
        let (arena, _operator) = Arena::with_operator("hooks").await;
        let hooks = json!({"spec": {"lifecycleHooks": {
            "preDrain": [{"name": "wait-drain", "owner": "test"}],
            "preTerminate": [{"name": "wait-terminate", "owner": "test"}],
        }}});
        arena.create_machine("hooked", hooks).await;
        arena.wait_running(1).await;
        arena.delete_machine("hooked").await;
        arena.wait_event("hooked", "DrainBlocked", "pre-drain hook").await;
        let machine = arena.api::<Machine>().get("hooked").await.unwrap();
        let status = machine.status.unwrap();
        assert_eq!(status.phase.as_deref(), Some("Deleting"));
        assert!(machinist_api::condition::find(&status.conditions, "Drained").is_none());
        arena
            .patch::<Machine>("hooked", json!({"spec": {"lifecycleHooks": {"preDrain": null}}}))
            .await;
        arena
            .wait_condition("hooked", "Drained", |condition| {
                condition.status == ConditionStatus::True
            })
            .await;
        let terminable = arena
            .wait_condition("hooked", "Terminable", |condition| {
                condition.status == ConditionStatus::False
            })
            .await;
        assert!(terminable.message.unwrap().contains("{Name:wait-terminate Owner:test}"));
        assert_eq!(arena.live()[0].state, InstanceState::Running, "held by the hook");
        arena
            .patch::<Machine>("hooked", json!({"spec": {"lifecycleHooks": {"preTerminate": null}}}))
            .await;
        arena.wait_gone("hooked").await;
        arena.check_ledger().await;
    });
}

#[test]
fn a_machine_that_never_launched_goes_without_credentials() {
    run(async {
        let (arena, _operator) = Arena::with_operator("no-secret").await;
        let overrides = json!({"spec": {"providerSpec": {
            "value": {"credentialsSecret": {"name": "not-there"}},
        }}});
        arena.create_machine("lost", overrides).await;
        let exists = arena
            .wait_condition("lost", "InstanceExists", |condition| {
                condition.reason.as_deref() == Some("ErrorCheckingProvider")
            })
            .await;
        assert!(exists.message.unwrap().contains("not-there"));
        arena.delete_machine("lost").await;
        arena.wait_gone("lost").await;
        assert!(arena.launched().is_empty());
    });
}
