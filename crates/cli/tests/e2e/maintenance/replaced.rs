//! A worker is to be retired: it waits for its window, another machine comes first, and then it goes.

use k8s_openapi::api::apps::v1::DaemonSet;
use kube::api::ListParams;
use machinist_api::{MachineMaintenance, MaintenancePhase};
use machinist_testbed::cloud::model::{EventCode, EventPatch, EventState};
use serde_json::json;

use super::*;
use crate::arena::{Arena, run};

const PODS: i32 = 6;
pub const BUDGET: usize = 5;

/// A pool of three with a protected workload and a DaemonSet; the first of its machines.
pub async fn pool_of_three(arena: &Arena) -> Subject {
    arena.create_set("pool", 3, json!({})).await;
    let labels = json!({"app": "agent"});
    arena
        .create::<DaemonSet>(json!({
            "metadata": {"name": "agent"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "nodeSelector": {"pool": format!("{}-pool", arena.name)},
                        "containers": [{"name": "main", "image": "example.invalid/agent:1"}],
                    },
                },
            },
        }))
        .await;
    let machines = arena.wait_running(3).await;
    arena.deploy("web", PODS, "pool", json!(BUDGET)).await;
    Subject::of(&machines[0])
}

/// The pool is as it was, but for the one machine.
pub async fn assert_replaced(arena: &Arena, subject: &Subject) {
    let machines = arena.wait_running(3).await;
    assert!(machines.iter().all(|machine| machine.metadata.uid.as_ref() != Some(&subject.uid)));
    arena.wait_set_columns("pool", "3 3 3 3").await;
    let terminated = [subject.instance.clone()];
    assert_eq!(arena.calls_on("TerminateInstances", &terminated), 1, "it went once");
    assert_eq!(arena.launched().len(), 4, "one machine came");
    arena.check_ledger().await;
}

/// Nothing that was put up for the work is left on anything.
pub async fn assert_nothing_left(arena: &Arena) {
    let set = arena.api::<machinist_api::MachineSet>().get("pool").await.unwrap();
    let annotations = set.metadata.annotations.unwrap_or_default();
    assert!(!annotations.contains_key("machinist.dev/surge"), "{annotations:?}");
    for machine in arena.machines().await {
        let annotations = machine.metadata.annotations.clone().unwrap_or_default();
        for key in ["machinist.dev/hold", "machine.openshift.io/delete-machine"] {
            assert!(!annotations.contains_key(key), "{annotations:?}");
        }
        let node = arena.node(&Subject::of(&machine).node).await.unwrap();
        assert_ne!(node.spec.and_then(|spec| spec.unschedulable), Some(true));
        let annotations = node.metadata.annotations.unwrap_or_default();
        for key in [
            "machinist.dev/cordoned-for",
            "machinist.dev/protected-for",
            "cluster-autoscaler.kubernetes.io/scale-down-disabled",
        ] {
            assert!(!annotations.contains_key(key), "{annotations:?}");
        }
    }
    arena
        .eventually("the record is let go", async || {
            let all = arena.api::<MachineMaintenance>().list(&ListParams::default()).await.unwrap();
            let is_free = |one: &MachineMaintenance| {
                one.metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
            };
            all.items.iter().all(is_free).then_some(())
        })
        .await;
}

#[test]
fn a_retired_worker_waits_for_its_window_and_goes_when_another_has_come() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-retired").await;
        arena.create_policy("nights", json!({"windows": [closed_window()]})).await;
        let subject = pool_of_three(&arena).await;
        let page = arena.page_of_the_books();
        arena.announce(&subject, EventCode::InstanceRetirement, from_now(MUCH_LATER));

        // It waits for its window.
        let status = arena.wait_phase(&subject.machine, MaintenancePhase::Scheduled).await;
        assert_eq!(waits(&status), ["OutsideWindow"]);
        let planned = arena.planned(&subject.machine).await;
        assert_eq!(planned["standing"]["is"], "planned", "{planned:#}");
        assert_eq!(planned["window"], "closed");
        assert_eq!(planned["action"], "Replace");
        let stored = status.plan.unwrap();
        assert_eq!(stored.start.unwrap().0, time_of(&planned["start"]));
        arena.let_it_look(3).await;
        assert_eq!(arena.changes_since(page), 0, "nothing is begun before the window opens");

        // The window opens by itself, after more than a minute: time enough to look at the plan.
        let opens = from_now(SignedDuration::from_secs(135));
        arena.change_policy("nights", json!({"windows": [window("night", opens, "2h")]})).await;
        arena
            .wait_maintenance(&subject.machine, "has another window", |status| {
                let plan = status.plan.as_ref();
                plan.is_some_and(|plan| plan.window.as_deref() == Some("night"))
            })
            .await;
        let planned = arena.planned(&subject.machine).await;
        println!("{}", arena.machinist(&["plan"]).await);
        assert_eq!(planned["standing"]["is"], "planned", "{planned:#}");
        let (nodes, pods) = (arena.watch_nodes("pool").await, arena.watch_pods("web").await);

        let status = arena.wait_over(&subject.machine, MaintenancePhase::Succeeded).await;
        assert_as_planned(&planned, &status, &REPLACED);
        nodes.assert_at_least(3);
        pods.assert_at_least(BUDGET);
        assert_replaced(&arena, &subject).await;
        assert_nothing_left(&arena).await;
        let object = arena.maintenance(&subject.machine).await.unwrap();
        assert!(object.spec.maintenancescheduled);
        assert_eq!(object.spec.machineid, subject.instance);
        let name = format!("mm-{}", subject.machine);
        arena.wait_event(&name, "MaintenanceSucceeded", "Replace is done").await;
        arena
            .eventually("nothing is written any more", async || {
                // What OpenShift is told is the whole cluster's: other tests' operators tell it too.
                let writes = arena.writes_during(5).await;
                writes.iter().all(|one| one.resource == "clusteroperators/status").then_some(())
            })
            .await;
    });
}

#[test]
fn an_event_that_is_cancelled_while_the_pool_grows_leaves_everything_as_it_was() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-cancelled").await;
        arena.create_policy("nights", json!({"windows": [closed_window()]})).await;
        let subject = pool_of_three(&arena).await;
        // No new machine is whole before this runs on it.
        slow_daemons(&arena).await;
        let event = arena.announce(&subject, EventCode::InstanceRetirement, from_now(MUCH_LATER));
        arena.wait_phase(&subject.machine, MaintenancePhase::Scheduled).await;
        let open = json!({"windows": [open_window()]});
        let planned = arena.planned_under(&subject.machine, "nights", open.clone()).await;
        assert_eq!(planned["standing"]["is"], "due", "{planned:#}");
        let (nodes, pods) = (arena.watch_nodes("pool").await, arena.watch_pods("web").await);
        arena.change_policy("nights", open).await;
        arena
            .wait_maintenance(&subject.machine, "waits for the DaemonSets", |status| {
                let plan = status.plan.as_ref();
                plan.is_some_and(|plan| {
                    plan.waits_on.iter().any(|wait| wait.message.contains("not all DaemonSets"))
                })
            })
            .await;
        assert_eq!(arena.live().len(), 4, "there is a machine more");

        let cancelled = EventPatch { state: Some(EventState::Canceled), ..EventPatch::default() };
        arena.cluster.cloud().patch_event(&event.event_id, cancelled).unwrap();
        let status = arena.wait_over(&subject.machine, MaintenancePhase::Cancelled).await;
        let steps =
            [MaintenancePhase::Surging, MaintenancePhase::Undoing, MaintenancePhase::Cancelled];
        assert_eq!(phases(&status), steps);
        assert_eq!(status.work.unwrap().action.unwrap().as_str(), planned["action"]);
        let machines = arena.wait_running(3).await;
        assert!(machines.iter().any(|one| one.metadata.uid.as_ref() == Some(&subject.uid)));
        arena.wait_set_columns("pool", "3 3 3 3").await;
        assert_eq!(
            arena.calls_on("TerminateInstances", std::slice::from_ref(&subject.instance)),
            0
        );
        nodes.assert_at_least(3);
        pods.assert_at_least(usize::try_from(PODS).unwrap());
        assert_nothing_left(&arena).await;
        let plan = arena.plan(&[]).await;
        assert_eq!(plan["entries"], json!([]), "nothing is left to be done");
        arena.check_ledger().await;
    });
}

/// A DaemonSet whose pods take longer to come up than any test.
async fn slow_daemons(arena: &Arena) {
    let labels = json!({"app": "slow"});
    arena
        .create::<DaemonSet>(json!({
            "metadata": {"name": "slow"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {
                        "labels": labels,
                        "annotations": {"pod-ready.stage.kwok.x-k8s.io/delay": "1h"},
                    },
                    "spec": {
                        "nodeSelector": {"pool": format!("{}-pool", arena.name)},
                        "containers": [{"name": "main", "image": "example.invalid/slow:1"}],
                    },
                },
            },
        }))
        .await;
}

#[test]
fn an_event_that_the_provider_moves_is_planned_anew_each_time() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-moved").await;
        arena.create_policy("nights", json!({"windows": [closed_window()]})).await;
        arena.create_set("pool", 1, json!({})).await;
        let subject = Subject::of(&arena.wait_running(1).await[0]);
        let event = arena.announce(&subject, EventCode::InstanceRetirement, from_now(MUCH_LATER));
        let first = arena.wait_phase(&subject.machine, MaintenancePhase::Scheduled).await;
        let before = arena.planned(&subject.machine).await;
        assert_eq!(time_of(&before["start"]), first.plan.unwrap().start.unwrap().0);

        // To before the window: now nothing fits.
        let moved = |to: Timestamp| {
            let patch = EventPatch { not_before: Some(to), ..EventPatch::default() };
            arena.cluster.cloud().patch_event(&event.event_id, patch).unwrap();
            to
        };
        moved(from_now(SignedDuration::from_hours(3)));
        let status = arena.wait_waiting(&subject.machine, "NoWindowInTime").await;
        assert_eq!(status.phase, Some(MaintenancePhase::Pending));
        let planned = arena.planned(&subject.machine).await;
        assert_eq!(
            (&planned["standing"]["is"], &planned["isLate"]),
            (&json!("blocked"), &json!(true))
        );

        // To after it: as at first, with another deadline.
        let to = moved(from_now(MUCH_LATER * 2));
        let status = arena.wait_phase(&subject.machine, MaintenancePhase::Scheduled).await;
        let planned = arena.planned(&subject.machine).await;
        assert_eq!(planned["start"], before["start"]);
        assert_eq!(status.plan.unwrap().deadline.unwrap().0, time_of(&planned["deadline"]));
        let told = to.duration_since(time_of(&planned["deadline"])).abs();
        assert!(told < SignedDuration::from_secs(1), "{told}");

        // And it is done, for the event as it is now.
        let open = json!({"windows": [open_window()]});
        let planned = arena.planned_under(&subject.machine, "nights", open.clone()).await;
        arena.change_policy("nights", open).await;
        let status = arena.wait_over(&subject.machine, MaintenancePhase::Succeeded).await;
        assert_as_planned(&planned, &status, &REPLACED);
        let told = status.timeline.iter().filter(|one| one.message.contains("the provider moved"));
        assert_eq!(told.count(), 2, "{:?}", status.timeline);
        arena.wait_running(1).await;
        arena.check_ledger().await;
    });
}
