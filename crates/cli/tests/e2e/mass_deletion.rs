//! Fifty machines with pods and budgets are deleted at once: their drains run side by side, a blocked
//! pod is not hammered, and each machine that waits names what it waits for.

use std::collections::BTreeMap;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use machinist_api::{ConditionStatus, Machine, MachineSet, condition};
use serde_json::json;

use crate::arena::{Arena, name_of, run};

/// The most that may be asked for one blocked pod: one eviction in five seconds.
const PER_EVICTION: jiff::SignedDuration = jiff::SignedDuration::from_secs(5);

#[test]
fn fifty_machines_with_pods_and_budgets_are_deleted_at_once() {
    run(async {
        let arena = Arena::alone("mass-deletion").await;
        let _operator = arena.start_operator().await;
        arena.create_set("pool", 50, json!({})).await;
        let machines = arena.wait_running(50).await;
        // Free to go, and not.
        arena.deploy("free", 100, "pool", json!(0)).await;
        arena.deploy("kept", 50, "pool", json!(50)).await;

        let begun = jiff::Timestamp::now();
        arena.patch::<MachineSet>("pool", json!({"spec": {"replicas": 0}})).await;
        for machine in &machines {
            arena.api::<Machine>().delete(&name_of(machine), &Default::default()).await.ok();
        }
        // The pods that may go are gone from everywhere while the others still hold their machines.
        let waiting = arena
            .eventually("all drains wait for nothing but the pods that are kept", async || {
                let left = arena.machines().await;
                let said: Vec<String> = left
                    .iter()
                    .filter_map(|machine| {
                        let status = machine.status.as_ref()?;
                        let drained = condition::find(&status.conditions, "Drained")?;
                        let waits = drained.status == ConditionStatus::False
                            && drained.reason.as_deref() == Some("DrainError");
                        waits.then(|| drained.message.clone().unwrap_or_default())
                    })
                    .collect();
                let only_kept = said.iter().all(|words| !words.contains("/free-"));
                (!left.is_empty() && said.len() == left.len() && only_kept).then_some(said)
            })
            .await;
        for words in &waiting {
            assert!(words.contains("/kept-") && words.contains("kept-budget"), "{words}");
        }
        arena.let_it_look(20).await;
        let mut by_pod: BTreeMap<String, usize> = BTreeMap::new();
        for asked in arena.asked_since(begun) {
            if asked.resource == "pods/eviction" && asked.code == 429 {
                *by_pod.entry(asked.name).or_default() += 1;
            }
        }
        let spent = jiff::Timestamp::now().duration_since(begun);
        let most = 1 + usize::try_from(spent.as_secs() / PER_EVICTION.as_secs()).unwrap();
        let (pod, times) = by_pod.iter().max_by_key(|(_, times)| **times).unwrap();
        assert!(*times <= most, "{pod} was asked to go {times} times in {spent:?}");

        arena
            .patch::<PodDisruptionBudget>("kept-budget", json!({"spec": {"minAvailable": 0}}))
            .await;
        arena
            .eventually("all are gone, objects and instances", async || {
                (arena.machines().await.is_empty() && arena.live().is_empty()).then_some(())
            })
            .await;
        arena.check_ledger().await;
    });
}
