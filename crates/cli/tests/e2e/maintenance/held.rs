//! When work may not begin: a window that is too short, none before the deadline, a freeze, an upgrade.
//! What the plan says is what is said on the object, and nothing is done.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, ResourceExt};
use machinist_api::{MaintenancePhase, managed_upgrade::UpgradeConfig};
use machinist_testbed::cloud::model::{EventCode, EventPatch};
use serde_json::json;

use super::*;
use crate::arena::{Arena, run};

/// A replacement is expected to take 20 minutes, and the tests' policies have a margin of five.
const EXPECTED_AND_MARGIN: SignedDuration = SignedDuration::from_mins(25);

/// A machine in a pool of its own.
async fn lonely(arena: &Arena, pool: &str) -> Subject {
    arena.create_set(pool, 1, json!({})).await;
    let found = arena
        .eventually(&format!("the machine of {pool} runs"), async || {
            arena.machines().await.into_iter().find(|machine| {
                let is_of = machine.metadata.labels.as_ref().is_some_and(|labels| {
                    labels["machine.openshift.io/cluster-api-machineset"] == pool
                });
                let status = machine.status.as_ref();
                is_of && status.is_some_and(|status| status.phase.as_deref() == Some("Running"))
            })
        })
        .await;
    let name = found.metadata.name.clone().unwrap();
    arena.wait_true(&name, "InstanceRunning").await;
    Subject::of(&arena.machine(&name).await)
}

/// What is stored on the object says the same as the plan.
async fn assert_said(arena: &Arena, machine: &str, reasons: &[&str]) -> Value {
    let planned = arena
        .eventually(&format!("plan and object agree on {reasons:?}"), async || {
            let planned = find_entry(&arena.plan(&[]).await, machine)?;
            let told: Vec<String> = planned["waitsOn"]
                .as_array()
                .unwrap()
                .iter()
                .map(|wait| wait["reason"].as_str().unwrap().to_owned())
                .collect();
            let status = arena.maintenance_status(machine).await;
            (told == reasons && waits(&status) == reasons).then_some(planned)
        })
        .await;
    println!("{}: {}", arena.name, planned["sentence"]);
    planned
}

#[test]
fn a_window_that_is_too_short_is_not_begun_in() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-short").await;
        let short = window("short", from_now(-SignedDuration::from_mins(2)), "15m");
        arena.create_policy("nights", json!({"windows": [short]})).await;
        let subject = lonely(&arena, "pool").await;
        let page = arena.page_of_the_books();
        arena.announce(&subject, EventCode::InstanceRetirement, from_now(MUCH_LATER));
        let planned =
            assert_said(&arena, &subject.machine, &["NoWindowInTime", "ApprovalMissing"]).await;
        assert_eq!(planned["standing"]["is"], "blocked");
        assert_eq!(planned["isLate"], true);
        let why = planned["waitsOn"][0]["message"].as_str().unwrap();
        assert!(why.contains("no window is long enough"), "{why}");
        arena.let_it_look(3).await;
        assert_eq!(arena.changes_since(page), 0, "nothing is begun");

        // Long enough, it would be due at once; that it can be tried changes nothing.
        let long = json!({"windows": [open_window()]});
        let trial = arena.planned_under(&subject.machine, "nights", long).await;
        assert_eq!(trial["standing"]["is"], "due", "{trial:#}");
        let again = arena.planned(&subject.machine).await;
        assert_eq!(again["standing"]["is"], "blocked");
        arena.wait_event(&subject.machine, "MaintenanceLate", "no window is long enough").await;
    });
}

#[test]
fn no_window_before_the_deadline_is_answered_as_each_of_four_policies_says() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-late").await;
        let answers = ["ActAnyway", "Ask", "MoveEvent", "LetProviderAct"];
        let mut subjects = Vec::new();
        for answer in answers {
            let pool = answer.to_lowercase();
            let spec = json!({
                "selector": {"pools": [pool]},
                "windows": [closed_window()],
                "whenNoWindow": answer,
            });
            arena.create_policy(&pool, spec).await;
            subjects.push(lonely(&arena, &pool).await);
        }
        let [act, ask, moved, left] = <[Subject; 4]>::try_from(subjects).unwrap();
        let page = arena.page_of_the_books();
        // The latest safe start is in a minute.
        let not_before = from_now(EXPECTED_AND_MARGIN + SignedDuration::from_secs(60));
        let retirement = EventCode::InstanceRetirement;
        arena.announce(&act, retirement, not_before);
        arena.announce(&ask, retirement, not_before);
        let movable = Some(from_now(MUCH_LATER));
        let event = arena.announce_movable(&moved, retirement, not_before, movable);
        let of_left = arena.announce(&left, retirement, not_before);

        // Acted on at the last moment, against the calendar.
        arena.wait_maintenance(&act.machine, "is planned", |status| status.plan.is_some()).await;
        let planned_act = arena.planned(&act.machine).await;
        println!("{}: {}", arena.name, planned_act["sentence"]);
        assert_eq!(planned_act["isLate"], true, "{planned_act:#}");

        // Left to the provider.
        let late = ["NoWindowInTime", "LeftToProvider"];
        let planned = assert_said(&arena, &left.machine, &late).await;
        assert_eq!(planned["standing"]["is"], "leftAlone");

        // Moved into the window, and planned there.
        let status = arena
            .wait_maintenance(&moved.machine, "is planned in its window", |status| {
                let plan = status.plan.as_ref();
                status.phase == Some(MaintenancePhase::Scheduled)
                    && plan.is_some_and(|plan| plan.window.as_deref() == Some("closed"))
                    && waits(status) == ["OutsideWindow"]
            })
            .await;
        arena.print_timeline(&moved.machine, &status);
        let asked = status.event_move.unwrap();
        assert_eq!(asked.event_id, event.event_id);
        assert!(asked.failure.is_none(), "{asked:?}");
        assert_eq!(arena.calls_since(page, "ModifyInstanceEventStartTime").len(), 1);
        let planned = arena.planned(&moved.machine).await;
        assert_eq!(planned["standing"]["is"], "planned", "{planned:#}");
        assert_eq!(time_of(&planned["deadline"]), asked.to.0, "as the provider was asked");
        assert_eq!(status.reasons[0].not_before.as_ref().unwrap().0, asked.to.0);

        // A person decides.
        let planned =
            assert_said(&arena, &ask.machine, &["NoWindowInTime", "ApprovalMissing"]).await;
        assert_eq!(planned["standing"]["is"], "blocked");
        let machine = format!("machine/{}", ask.machine);
        let answer = arena.machinist(&["approve", &machine]).await;
        assert!(answer.contains("is approved"), "{answer}");
        let planned_ask = arena
            .eventually("it has a time once it is approved", async || {
                let planned = arena.planned(&ask.machine).await;
                planned["start"].is_string().then_some(planned)
            })
            .await;

        let status = arena.wait_over(&act.machine, MaintenancePhase::Succeeded).await;
        assert_as_planned(&planned_act, &status, &REPLACED);
        let status = arena.wait_over(&ask.machine, MaintenancePhase::Succeeded).await;
        assert_eq!(phases(&status), REPLACED);
        assert_eq!(planned_ask["action"], "Replace");

        // The provider acts on the one that was left to it; we did nothing.
        let changed = |subject: &Subject| {
            let ids = [subject.instance.clone()];
            ["TerminateInstances", "StopInstances", "RebootInstances"]
                .iter()
                .map(|action| arena.calls_on(action, &ids))
                .sum::<usize>()
        };
        assert_eq!((changed(&left), changed(&moved)), (0, 0));
        let now = EventPatch { not_before: Some(Timestamp::now()), ..EventPatch::default() };
        arena.cluster.cloud().patch_event(&of_left.event_id, now).unwrap();
        let status = arena.wait_over(&left.machine, MaintenancePhase::Cancelled).await;
        assert!(status.message.unwrap().contains("is completed"), "the provider has done it");
    });
}

#[test]
fn a_freeze_holds_in_an_open_window_and_work_begins_when_it_is_lifted() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-freeze").await;
        let end = from_now(SignedDuration::from_hours(3));
        let frozen = json!({"freezes": [{
            "name": "year-end",
            "from": from_now(-LATER).to_string(),
            "to": end.to_string(),
        }]});
        arena.create_policy("nights", frozen).await;
        let subject = lonely(&arena, "pool").await;
        let page = arena.page_of_the_books();
        arena.announce(&subject, EventCode::InstanceReboot, from_now(MUCH_LATER));
        let planned = assert_said(&arena, &subject.machine, &["Frozen"]).await;
        assert_eq!(planned["standing"]["is"], "planned");
        let begins = time_of(&planned["start"]);
        assert!(begins >= end, "{begins} is in the freeze that ends at {end}");
        arena.let_it_look(3).await;
        assert_eq!(arena.changes_since(page), 0, "nothing is begun");

        let lifted = json!({"freezes": []});
        let planned = arena.planned_under(&subject.machine, "nights", lifted.clone()).await;
        assert_eq!(planned["standing"]["is"], "due", "{planned:#}");
        arena.change_policy("nights", lifted).await;
        let status = arena.wait_over(&subject.machine, MaintenancePhase::Succeeded).await;
        assert_eq!(status.work.unwrap().action.unwrap().as_str(), planned["action"]);
        assert_eq!(arena.calls_since(page, "RebootInstances").len(), 1);
    });
}

#[test]
fn an_upgrade_under_way_and_a_pause_hold_maintenance_back() {
    run(async {
        // An upgrade is the whole cluster's.
        let arena = Arena::alone("mm-upgrade").await;
        let definitions = Api::<CustomResourceDefinition>::all(arena.client.clone());
        let definition = UpgradeConfig::crd();
        let name = definition.name_any();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let upgrade = json!({
            "apiVersion": "upgrade.managed.openshift.io/v1alpha1",
            "kind": "UpgradeConfig",
            "metadata": {"name": "upgrade"},
            "spec": {"desired": {"version": "4.20.1"}},
        });
        let upgrade: UpgradeConfig = serde_json::from_value(upgrade).unwrap();
        let upgrades = arena.api::<UpgradeConfig>();
        arena
            .eventually("an upgrade is wanted", async || {
                upgrades.create(&PostParams::default(), &upgrade).await.ok()
            })
            .await;
        let phase = async |phase: &str| {
            let status = json!({"status": {"history": [{"version": "4.20.1", "phase": phase}]}});
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(status));
            upgrades.patch_status("upgrade", &parameters, &patch).await.unwrap();
        };
        // Whatever comes of it, others must not be held up by it.
        let held = AssertUnwindSafe(held_by(&arena, &phase)).catch_unwind().await;
        upgrades.delete("upgrade", &DeleteParams::default()).await.unwrap();
        definitions.delete(&name, &DeleteParams::default()).await.unwrap();
        if let Err(panic) = held {
            resume_unwind(panic);
        }
    });
}

/// Maintenance waits for the end of the upgrade, whose phase is set so, and of a pause.
async fn held_by(arena: &Arena, phase: &impl AsyncFn(&str)) {
    phase("Upgrading").await;
    let _operator = arena.start_operator().await;
    arena.create_policy("nights", json!({})).await;
    let subject = lonely(arena, "pool").await;
    let page = arena.page_of_the_books();
    arena.announce(&subject, EventCode::InstanceReboot, from_now(MUCH_LATER));
    let planned = assert_said(arena, &subject.machine, &["UpgradeUnderWay"]).await;
    assert_eq!(planned["standing"]["is"], "blocked");
    arena.machinist(&["maintenance", "pause", "--reason", "release day"]).await;
    phase("Upgraded").await;
    let planned = assert_said(arena, &subject.machine, &["Paused"]).await;
    assert!(planned["sentence"].as_str().unwrap().contains("release day"), "{planned:#}");
    arena.let_it_look(3).await;
    assert_eq!(arena.changes_since(page), 0, "nothing is begun");

    arena.machinist(&["maintenance", "resume"]).await;
    let status = arena.wait_over(&subject.machine, MaintenancePhase::Succeeded).await;
    assert_eq!(status.work.unwrap().action.unwrap().as_str(), planned["action"]);
}
