//! `kill -9` at each effect boundary: the cloud holds the operator's n-th call, before its effect or
//! after, the operator is killed right there, and another one goes on. Never two instances, never
//! one left over.

use std::{collections::BTreeMap, time::Duration};

use kube::api::DeleteParams;
use machinist_api::Machine;
use machinist_testbed::{
    cloud::model::{ChangedBy, HoldWhen, NewBreakpoint},
    operator_process::OperatorProcess,
};
use serde_json::json;
use tokio::time::timeout;

use crate::arena::{Arena, run};

/// Generous: the cores may be busy with something else.
const UNTIL_HIT: Duration = Duration::from_secs(120);

/// How many calls an operator makes from its start until a launch and a deletion are done, with some
/// more for the polls in between.
const CALLS: u64 = 10;

/// Every boundary at which the operator is killed.
fn boundaries(arena: &Arena) -> Vec<NewBreakpoint> {
    let at = |action: &str, nth: u64, when: HoldWhen| NewBreakpoint {
        action: action.to_owned(),
        nth,
        when,
        mutating_only: false,
        access_key: Some(arena.access_key()),
    };
    let mut boundaries = Vec::new();
    for when in [HoldWhen::Before, HoldWhen::After] {
        for nth in 1..=2 {
            boundaries.push(at("RunInstances", nth, when));
            boundaries.push(at("TerminateInstances", nth, when));
        }
        boundaries.extend((1..=CALLS).map(|nth| at("*", nth, when)));
    }
    boundaries
}

/// Two machines come and two go in each life of the operator.
struct Turnover<'a> {
    arena: &'a Arena,
    life: usize,
}

impl Turnover<'_> {
    fn names(life: usize) -> [String; 2] {
        [format!("life-{life}-a"), format!("life-{life}-b")]
    }

    async fn next(&mut self) {
        for name in Self::names(self.life) {
            self.arena.create_machine(&name, json!({})).await;
        }
        // Those of the life before last: some of them run, some were never launched.
        if let Some(before) = self.life.checked_sub(2) {
            for name in Self::names(before) {
                let api = self.arena.api::<Machine>();
                api.delete(&name, &DeleteParams::default()).await.unwrap();
            }
        }
        self.life += 1;
    }
}

/// Starts the operator, waits until the cloud holds the call, and kills the operator there.
async fn live_until(arena: &Arena, operator: &mut OperatorProcess, boundary: NewBreakpoint) {
    let what = format!("{boundary:?}");
    let breakpoint = arena.cluster.cloud().add_breakpoint(boundary).unwrap();
    operator.restart().await.unwrap();
    let hit = timeout(UNTIL_HIT, breakpoint.wait_until_hit()).await;
    let hit = hit.unwrap_or_else(|_| panic!("never came to {what}")).unwrap();
    operator.kill().await;
    breakpoint.remove().unwrap();
    println!("killed at call {}: {} ({})", hit.sequence, hit.action, hit.result);
}

/// No client token and no Machine ever had two instances, and no instance is without its Machine.
async fn check(arena: &Arena) {
    let mut by_token: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for instance in arena.launched() {
        let token = instance.client_token.clone().unwrap();
        by_token.entry(token).or_default().push(instance.id.clone());
    }
    for (token, instances) in &by_token {
        assert_eq!(instances.len(), 1, "token {token} has had {instances:?}");
    }
    arena.check_instances().await;
}

#[test]
fn a_kill_at_each_call_of_launches_and_deletions_doubles_and_loses_nothing() {
    run(async {
        let arena = Arena::new("crash").await;
        let mut operator = arena.start_operator().await;
        let mut turnover = Turnover { arena: &arena, life: 0 };
        turnover.next().await;
        turnover.next().await;
        arena.wait_running(4).await;
        operator.kill().await;

        for boundary in boundaries(&arena) {
            if boundary.action == "TerminateInstances" {
                // There must be something to terminate.
                operator.restart().await.unwrap();
                arena.wait_running(4).await;
                operator.kill().await;
            }
            turnover.next().await;
            live_until(&arena, &mut operator, boundary).await;
            check(&arena).await;
        }
        operator.restart().await.unwrap();
        arena.wait_running(4).await;
        check(&arena).await;
        assert_eq!(arena.live().len(), 4, "one live instance for each machine");
        for machine in arena.machines().await {
            arena.delete_machine(machine.metadata.name.as_deref().unwrap()).await;
        }
        wait_nothing_left(&arena).await;
    });
}

#[test]
fn a_kill_at_each_call_of_an_adoption_and_a_start_repeats_them_harmlessly() {
    run(async {
        let arena = Arena::new("crash-start").await;
        let mut operator = arena.start_operator().await;
        let grace = json!({"metadata": {"annotations": {
            "machinist.dev/stopped-grace-period": "0s",
        }}});
        arena.create_machine("single", grace).await;
        arena.wait_running(1).await;
        operator.kill().await;
        let id = arena.live()[0].id.clone();
        let uid = arena.machine("single").await.metadata.uid.unwrap();
        for when in [HoldWhen::Before, HoldWhen::After] {
            let at = |action: &str| NewBreakpoint {
                action: action.to_owned(),
                nth: 1,
                when,
                mutating_only: false,
                access_key: Some(arena.access_key()),
            };
            // Without its tag the instance looks as another controller's: it is bound by its id.
            untag(&arena, &id);
            live_until(&arena, &mut operator, at("CreateTags")).await;
            arena.cluster.cloud().stop(&id, ChangedBy::User).unwrap();
            live_until(&arena, &mut operator, at("StartInstances")).await;
            operator.restart().await.unwrap();
            arena.wait_true("single", "InstanceRunning").await;
            arena.wait_machine_columns("single", "Running running").await;
            arena
                .eventually("the instance carries the uid again", async || {
                    let live = arena.live();
                    (live[0].tags.get("machinist.dev/machine-uid") == Some(&uid)).then_some(())
                })
                .await;
            assert_eq!(arena.launched().len(), 1);
            operator.kill().await;
        }
        operator.restart().await.unwrap();
        arena.delete_machine("single").await;
        wait_nothing_left(&arena).await;
    });
}

fn untag(arena: &Arena, id: &str) {
    use machinist_testbed::cloud::model::{Caller, DeleteTags, Request, TagKey};
    let key = TagKey { key: "machinist.dev/machine-uid".to_owned(), value: None };
    let request = DeleteTags { resources: vec![id.to_owned()], tags: vec![key], dry_run: false };
    let outcome = arena.cluster.cloud().call(&Caller::default(), Request::DeleteTags(request));
    outcome.result.unwrap();
}

async fn wait_nothing_left(arena: &Arena) {
    arena
        .eventually("machines and instances are gone", async || {
            (arena.machines().await.is_empty() && arena.live().is_empty()).then_some(())
        })
        .await;
    check(arena).await;
}
