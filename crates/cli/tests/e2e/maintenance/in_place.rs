//! Machines that are healed where they are: rebooted, or stopped and started.

use k8s_openapi::api::apps::v1::Deployment;
use machinist_api::{MachineMaintenance, MaintenancePhase};
use machinist_testbed::cloud::model::EventCode;
use serde_json::{Value, json};

use super::*;
use crate::arena::{Arena, is_ready, run};

/// What is done to a machine that stays.
const IN_PLACE: [MaintenancePhase; 4] = [
    MaintenancePhase::Draining,
    MaintenancePhase::Acting,
    MaintenancePhase::Verifying,
    MaintenancePhase::Succeeded,
];

const PODS: i32 = 4;

async fn pool_of_two(arena: &Arena, policy: Value) -> Subject {
    let mut closed = policy;
    merge(&mut closed, json!({"windows": [closed_window()]}));
    arena.create_policy("nights", closed).await;
    arena.create_set("pool", 2, json!({})).await;
    let machines = arena.wait_running(2).await;
    arena.deploy("web", PODS, "pool", json!(PODS - 2)).await;
    for machine in &machines {
        arena.wait_true(machine.metadata.name.as_deref().unwrap(), "InstanceHealthy").await;
    }
    Subject::of(&machines[0])
}

async fn boot_of(arena: &Arena, subject: &Subject) -> String {
    let node = arena.node(&subject.node).await.unwrap();
    assert_eq!(node.metadata.uid.as_ref(), Some(&subject.node_uid), "the same Node");
    node.status.unwrap().node_info.unwrap().boot_id
}

/// The machine is the one that it was, in service, and its pods are back.
async fn assert_in_service(arena: &Arena, subject: &Subject) {
    let machine = arena.machine(&subject.machine).await;
    assert_eq!(machine.metadata.uid.as_ref(), Some(&subject.uid), "the same Machine");
    assert_eq!(Subject::of(&machine).instance, subject.instance, "the same instance");
    let annotations = machine.metadata.annotations.unwrap_or_default();
    assert!(!annotations.contains_key("machinist.dev/hold"), "{annotations:?}");
    let node = arena.node(&subject.node).await.unwrap();
    assert!(is_ready(&node));
    let spec = node.spec.unwrap();
    assert_ne!(spec.unschedulable, Some(true), "our cordon is lifted");
    let taints = spec.taints.unwrap_or_default();
    assert!(taints.iter().all(|taint| !taint.key.ends_with("out-of-service")), "{taints:?}");
    let web = arena.api::<Deployment>().get("web").await.unwrap();
    assert_eq!(web.status.unwrap().ready_replicas, Some(PODS));
    arena.wait_set_columns("pool", "2 2 2 2").await;
    assert_eq!(arena.launched().len(), 2, "no machine came");
    for class in ["Rebooted", "StoppedByUser", "Started"] {
        assert_eq!(arena.drift(class).await, 0.0, "what we do is no drift: {class}");
    }
    arena.check_ledger().await;
}

#[test]
fn a_reboot_is_done_in_place_and_its_record_goes_in_the_end() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-reboot").await;
        let subject = pool_of_two(&arena, json!({})).await;
        let boot = boot_of(&arena, &subject).await;
        let page = arena.page_of_the_books();
        arena.announce(&subject, EventCode::InstanceReboot, from_now(MUCH_LATER));
        arena.wait_phase(&subject.machine, MaintenancePhase::Scheduled).await;
        let open = json!({"windows": [open_window()]});
        let planned = arena.planned_under(&subject.machine, "nights", open.clone()).await;
        assert_eq!(
            (&planned["standing"]["is"], &planned["action"]),
            (&json!("due"), &json!("Reboot"))
        );
        let pods = arena.watch_pods("web").await;

        arena.change_policy("nights", open).await;
        let status = arena.wait_over(&subject.machine, MaintenancePhase::Succeeded).await;
        assert_as_planned(&planned, &status, &IN_PLACE);
        assert_ne!(boot_of(&arena, &subject).await, boot, "it was rebooted");
        assert_eq!(arena.calls_since(page, "RebootInstances").len(), 1, "once");
        assert_eq!(arena.changes_since(page), 1, "and nothing else was asked of the cloud");
        pods.assert_at_least(usize::try_from(PODS - 2).unwrap());
        assert_in_service(&arena, &subject).await;

        // The record is kept for a time, and then removed.
        arena.change_policy("nights", json!({"retention": "1s"})).await;
        arena
            .eventually("the record is removed", async || {
                arena.maintenance(&subject.machine).await.is_none().then_some(())
            })
            .await;
        arena.let_it_look(3).await;
        assert!(arena.maintenance(&subject.machine).await.is_none(), "and none is made anew");
    });
}

#[test]
fn a_stop_is_done_by_a_stop_and_a_start_though_a_budget_had_to_be_broken() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-stop").await;
        let drain = json!({"drain": {"deadline": "5s", "afterDeadline": "Force"}});
        let subject = pool_of_two(&arena, drain.clone()).await;
        arena.forbid_evictions("web").await;
        let boot = boot_of(&arena, &subject).await;
        let page = arena.page_of_the_books();
        arena.announce(&subject, EventCode::InstanceStop, from_now(MUCH_LATER));
        arena.wait_phase(&subject.machine, MaintenancePhase::Scheduled).await;
        let mut open = drain;
        merge(&mut open, json!({"windows": [open_window()]}));
        let planned = arena.planned_under(&subject.machine, "nights", open.clone()).await;
        assert_eq!(
            (&planned["standing"]["is"], &planned["action"]),
            (&json!("due"), &json!("StopStart")),
            "{planned:#}"
        );
        arena.change_policy("nights", open).await;

        let status = arena.wait_over(&subject.machine, MaintenancePhase::Succeeded).await;
        assert_as_planned(&planned, &status, &IN_PLACE);
        assert!(status.work.as_ref().unwrap().drain.as_ref().unwrap().forced, "the drain ended");
        assert_ne!(boot_of(&arena, &subject).await, boot);
        assert_eq!(arena.calls_since(page, "StopInstances").len(), 1);
        assert_eq!(arena.calls_since(page, "StartInstances").len(), 1);
        assert_eq!(arena.changes_since(page), 2, "nothing else was asked of the cloud");
        assert_in_service(&arena, &subject).await;
    });
}

#[test]
fn a_person_asks_by_an_annotation_or_an_object_and_gets_it_once() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-asked").await;
        let subject = pool_of_two(&arena, json!({})).await;
        let page = arena.page_of_the_books();
        let open = json!({"windows": [open_window()]});
        arena
            .create::<MachineMaintenance>(json!({
                "apiVersion": "machinemaintenance.managed.openshift.io/v1alpha1",
                "kind": "MachineMaintenance",
                "metadata": {"name": format!("mm-{}", subject.machine)},
                "spec": {
                    "machinelink": subject.machine,
                    "machineid": "",
                    "maintenancescheduled": false,
                    "action": "Reboot",
                    "reason": "the kernel is old",
                },
            }))
            .await;
        arena.wait_phase(&subject.machine, MaintenancePhase::Scheduled).await;
        let planned = arena.planned_under(&subject.machine, "nights", open.clone()).await;
        arena.change_policy("nights", open).await;
        let status = arena.wait_over(&subject.machine, MaintenancePhase::Succeeded).await;
        assert_as_planned(&planned, &status, &IN_PLACE);

        // The other way of asking; the old record becomes history.
        let asked = json!({"metadata": {"annotations": {
            "machinist.dev/maintenance-requested": "Reboot",
        }}});
        arena.patch::<machinist_api::Machine>(&subject.machine, asked).await;
        let status = arena
            .wait_maintenance(&subject.machine, "was done again", |status| {
                status.history.len() == 1 && status.phase == Some(MaintenancePhase::Succeeded)
            })
            .await;
        arena.print_timeline(&subject.machine, &status);
        assert_eq!(status.history[0].machine_uid.as_ref(), Some(&subject.uid));
        arena.let_it_look(3).await;
        assert_eq!(arena.calls_since(page, "RebootInstances").len(), 2, "once each");
        let machine = arena.machine(&subject.machine).await;
        let annotations = machine.metadata.annotations.unwrap_or_default();
        assert!(!annotations.contains_key("machinist.dev/maintenance-requested"));
        assert_in_service(&arena, &subject).await;
    });
}

#[test]
fn a_reboot_of_the_host_is_escaped_by_a_reboot_that_moves_the_machine() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-migrate").await;
        let subject = pool_of_two(&arena, json!({})).await;
        let page = arena.page_of_the_books();
        arena.announce(&subject, EventCode::SystemReboot, from_now(MUCH_LATER));
        arena.wait_phase(&subject.machine, MaintenancePhase::Scheduled).await;
        let open = json!({"windows": [open_window()]});
        let planned = arena.planned_under(&subject.machine, "nights", open.clone()).await;
        assert_eq!(planned["action"], "RebootMigrate", "{planned:#}");
        assert_eq!(planned["andThen"], json!(["StopStart", "Replace"]));
        arena.change_policy("nights", open).await;
        let status = arena.wait_over(&subject.machine, MaintenancePhase::Succeeded).await;
        assert_as_planned(&planned, &status, &IN_PLACE);
        assert_eq!(arena.calls_since(page, "ModifyInstanceMaintenanceOptions").len(), 1);
        assert_eq!(arena.calls_since(page, "RebootInstances").len(), 1);
        assert_eq!(arena.changes_since(page), 2, "nothing else was asked of the cloud");
        assert_in_service(&arena, &subject).await;
    });
}
