//! Is a maintenance carried out from its beginning to its end, and undone when it is called off?

use machinist_api::{
    ConditionStatus, InstanceTraits, MaintenanceAction, MaintenancePhase, MaintenanceReasonState,
    condition,
    names::{annotation, condition_type, maintenance_reason as reason},
};

use super::{
    world::{TARGET, World, pod},
    *,
};
use crate::{cloud::RebootMigration, disruption::Held};

const DAY: SignedDuration = SignedDuration::from_hours(24);

pub(super) fn finished(world: &mut World, outcome: MaintenancePhase) {
    assert!(world.run(DAY), "it does not end: {:?} {:?}", world.phase(), world.status().message);
    assert_eq!(world.phase(), outcome, "{:?}", world.status().timeline);
    world.assert_nothing_left();
    let settled = world.look().unwrap();
    if outcome != MaintenancePhase::Failed {
        assert_eq!(settled.actions, [], "nothing is left to be done");
        assert_eq!(settled.status, world.status(), "nothing is written when nothing changes");
    }
}

fn order(world: &World) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = world.log.iter().map(|(_, name)| *name).collect();
    names.dedup();
    names
}

#[test]
fn retirement_replaces_with_a_surplus_machine_and_never_has_fewer_ready() {
    let mut world = World::new(json!({}), "instance-retirement", 3);
    let end = world.now.checked_add(DAY).unwrap();
    while !world.phase().is_over() && world.now < end {
        world.pass();
        assert!(world.ready() >= 3, "{} at {:?}", world.ready(), world.phase());
        world.tick(SignedDuration::from_secs(20));
    }
    finished(&mut world, MaintenancePhase::Succeeded);
    assert_eq!(
        order(&world),
        [
            "SetSpec",
            "AddFinalizer",
            "MarkScheduled",
            "ResizePool",
            "ProtectNode",
            "Cordon",
            "Evict",
            "MarkForDeletion",
            "ResizePool",
            "UnprotectNode",
            "RemoveFinalizer"
        ]
    );
    assert_eq!(world.replicas(), 3);
    assert!(!world.machines.contains_key(TARGET));
    assert!(world.machines.contains_key("a-1") && world.machines.contains_key("a-2"));
    assert!(world.maintenance.as_ref().unwrap().spec.maintenancescheduled);
    let phases: Vec<MaintenancePhase> = {
        let mut phases: Vec<_> = world.status().timeline.iter().map(|entry| entry.phase).collect();
        phases.dedup();
        phases
    };
    assert_eq!(
        phases,
        [
            MaintenancePhase::Pending,
            MaintenancePhase::Scheduled,
            MaintenancePhase::Surging,
            MaintenancePhase::Draining,
            MaintenancePhase::Acting,
            MaintenancePhase::Verifying,
            MaintenancePhase::Succeeded,
        ]
    );
    assert!(condition::is_true(&world.status().conditions, condition_type::VERIFIED));
}

#[test]
fn closed_window_is_waited_for_and_the_plan_is_what_happens() {
    let spec = json!({ "windows": [{ "name": "night", "cron": "0 22 * * *", "duration": "2h" }] });
    let mut world = World::new(spec, "instance-retirement", 3);
    world.pass();
    assert_eq!(world.phase(), MaintenancePhase::Scheduled);
    let plan = world.status().plan.unwrap();
    assert_eq!(plan.start.unwrap().0, at("2026-11-02T22:00:00Z"));
    assert_eq!(plan.window.as_deref(), Some("night"));
    let traits = world.status().instance;
    assert_eq!(
        traits,
        Some(InstanceTraits::default()),
        "who cannot ask the provider reads it here"
    );
    assert_eq!(plan.waits_on[0].reason, reason::OUTSIDE_WINDOW);
    let stored = world.maintenance.clone();
    world.tick(hours(1));
    world.pass();
    assert_eq!(world.maintenance, stored, "nothing is written while nothing changes");
    finished(&mut world, MaintenancePhase::Succeeded);
    let began = world.log.iter().find(|(_, step)| *step == "ResizePool").unwrap().0;
    assert!(began >= at("2026-11-02T22:00:00Z") && began < at("2026-11-02T22:05:00Z"), "{began}");
}

#[test]
fn event_cancelled_while_surging_removes_the_surplus() {
    let mut world = World::new(json!({}), "instance-retirement", 3);
    world.run_to(MaintenancePhase::Surging);
    for _ in 0..6 {
        world.pass();
        world.tick(SignedDuration::from_secs(20));
    }
    assert_eq!(world.replicas(), 4);
    world.cancel_event();
    finished(&mut world, MaintenancePhase::Cancelled);
    assert_eq!(world.replicas(), 3);
    world.tick(minutes(10));
    assert!(world.machines.contains_key(TARGET));
    assert_eq!(world.machines.len(), 3);
    assert_eq!(world.did("Cordon"), 0);
}

#[test]
fn event_cancelled_while_draining_lifts_our_cordon_and_only_ours() {
    let mut ours = World::new(json!({}), "instance-retirement", 3);
    ours.stuck_pods = vec!["web-0".to_owned()];
    ours.run_to(MaintenancePhase::Draining);
    ours.run_to(MaintenancePhase::Draining);
    for _ in 0..5 {
        ours.pass();
        ours.tick(SignedDuration::from_secs(20));
    }
    assert_eq!(ours.did("Cordon"), 1);
    ours.cancel_event();
    finished(&mut ours, MaintenancePhase::Cancelled);
    assert_eq!(ours.did("Uncordon"), 1);
    assert_eq!(ours.replicas(), 3);

    let mut theirs = World::new(json!({}), "instance-retirement", 3);
    theirs.stuck_pods = vec!["web-0".to_owned()];
    theirs.set_cordon("node-a-0", true);
    theirs.run_to(MaintenancePhase::Draining);
    theirs.pass();
    theirs.cancel_event();
    finished(&mut theirs, MaintenancePhase::Cancelled);
    assert_eq!((theirs.did("Cordon"), theirs.did("Uncordon")), (0, 0));
    let node = &theirs.nodes["node-a-0"];
    assert_eq!(node.spec.as_ref().unwrap().unschedulable, Some(true), "another's cordon stays");
}

#[test]
fn reboot_is_done_in_place_and_verified_by_the_boot_id() {
    let mut world = World::new(json!({}), "instance-reboot", 3);
    finished(&mut world, MaintenancePhase::Succeeded);
    assert_eq!(
        order(&world),
        [
            "SetSpec",
            "AddFinalizer",
            "MarkScheduled",
            "Cordon",
            "Evict",
            "Hold",
            "Reboot",
            "Uncordon",
            "ReleaseHold",
            "RemoveFinalizer"
        ]
    );
    assert_eq!(world.did("Reboot"), 1);
    assert!(world.machines.contains_key(TARGET));
    assert_eq!(world.status().reasons[0].state, MaintenanceReasonState::Completed);
}

#[test]
fn stop_event_is_done_by_stop_and_start() {
    let mut world = World::new(json!({}), "instance-stop", 3);
    finished(&mut world, MaintenancePhase::Succeeded);
    assert_eq!((world.did("Stop"), world.did("Start")), (1, 1));
    assert_eq!(world.status().work.unwrap().action, Some(MaintenanceAction::StopStart));
}

#[test]
fn migration_is_switched_on_before_the_reboot() {
    let mut world = World::new(json!({}), "system-reboot", 3);
    world.traits.reboot_migration = RebootMigration::Available;
    finished(&mut world, MaintenancePhase::Succeeded);
    let steps = order(&world);
    let position = |name: &str| steps.iter().position(|step| *step == name).unwrap();
    assert!(position("EnableMigration") < position("Reboot"));
}

#[test]
fn without_surge_the_machine_is_drained_and_deleted() {
    let mut world = World::new(json!({ "surge": { "machines": 0 } }), "instance-retirement", 3);
    finished(&mut world, MaintenancePhase::Succeeded);
    assert_eq!((world.did("ResizePool"), world.did("DeleteMachine")), (0, 1));
    assert!(!world.machines.contains_key(TARGET));
}

#[test]
fn control_plane_is_replaced_by_a_copy_that_is_ready_before() {
    let spec = json!({ "controlPlane": "OneAtATime" });
    let mut world = World::control_plane(spec, "instance-retirement");
    world.run_to(MaintenancePhase::Acting);
    let copy = world.status().work.unwrap().replacement.unwrap().name;
    assert!(world.nodes.contains_key(&format!("node-{copy}")));
    assert!(world.machines.contains_key(TARGET));
    finished(&mut world, MaintenancePhase::Succeeded);
    assert_eq!((world.did("CreateMachine"), world.did("DeleteMachine")), (1, 1));
    assert!(!world.machines.contains_key(TARGET) && world.machines.contains_key(&copy));
    assert_eq!(world.did("Cordon"), 0, "its deletion drains it, when the hooks allow it");
}

#[test]
fn copy_goes_again_when_the_event_is_cancelled() {
    let spec = json!({ "controlPlane": "OneAtATime" });
    let mut world = World::control_plane(spec, "instance-retirement");
    world.run_to(MaintenancePhase::Surging);
    world.pass();
    world.tick(minutes(1));
    world.cancel_event();
    finished(&mut world, MaintenancePhase::Cancelled);
    world.tick(minutes(10));
    assert_eq!(world.machines.len(), 3);
    assert!(world.machines.contains_key(TARGET));
}

#[test]
fn sick_member_of_the_control_plane_holds_the_others() {
    let spec = json!({ "controlPlane": "OneAtATime" });
    let mut world = World::control_plane(spec, "instance-reboot");
    world.pods.push(pod("router", "node-a-0"));
    world.run_to(MaintenancePhase::Draining);
    world.control_plane.problems.push(crate::maintenance::plan::ControlPlaneProblem {
        machine: Some("a-1".to_owned()),
        message: "etcd member of a-1 is not healthy".to_owned(),
    });
    assert!(!world.run(hours(1)));
    assert_eq!(world.did("Cordon"), 0, "looked at again in the last moment");
    world.control_plane.problems.clear();
    finished(&mut world, MaintenancePhase::Succeeded);
}

#[test]
fn member_of_the_control_plane_is_not_rebooted_when_another_falls_ill_during_its_drain() {
    let spec = json!({ "controlPlane": "OneAtATime" });
    let mut world = World::control_plane(spec, "instance-reboot");
    world.run_to(MaintenancePhase::Acting);
    world.control_plane.problems.push(crate::maintenance::plan::ControlPlaneProblem {
        machine: Some("a-1".to_owned()),
        message: "node a-1 of the control plane is not ready".to_owned(),
    });
    assert!(!world.run(hours(1)));
    assert_eq!(world.did("Reboot"), 0, "looked at again in the last moment");
    world.control_plane.problems.clear();
    finished(&mut world, MaintenancePhase::Succeeded);
}

#[test]
fn person_who_lifts_the_cordon_is_heeded() {
    let mut world = World::new(json!({}), "instance-retirement", 3);
    world.stuck_pods = vec!["web-0".to_owned()];
    world.run_to(MaintenancePhase::Draining);
    for _ in 0..3 {
        world.pass();
        world.tick(SignedDuration::from_secs(20));
    }
    world.set_cordon("node-a-0", false);
    world.run_to(MaintenancePhase::Failed);
    finished(&mut world, MaintenancePhase::Failed);
    assert_eq!((world.did("Cordon"), world.did("DisownCordon")), (1, 1));
}

#[test]
fn deleting_the_object_undoes_what_it_began() {
    let mut world = World::new(json!({}), "instance-retirement", 3);
    world.run_to(MaintenancePhase::Surging);
    world.pass();
    world.tick(minutes(1));
    world.delete_maintenance();
    assert!(world.run(DAY));
    assert!(world.maintenance.is_none());
    world.assert_nothing_left();
    assert_eq!(world.replicas(), 3);
}

#[test]
fn machine_that_does_not_exist_is_said_on_the_object() {
    let mut world = World::new(json!({}), "instance-retirement", 3);
    world.own().metadata.annotations = None;
    world.own().spec.machinelink = "nobody".to_owned();
    world.machines.remove(TARGET);
    world.pass();
    let status = world.status();
    assert_eq!(status.phase, Some(MaintenancePhase::Pending));
    let valid = condition::find(&status.conditions, condition_type::VALID).unwrap();
    assert_eq!(valid.status, ConditionStatus::False);
    assert!(valid.message.as_ref().unwrap().contains("spec.machinelink"), "{valid:?}");
}

#[test]
fn what_the_original_did_is_left_alone() {
    let mut world = World::new(json!({}), "instance-retirement", 3);
    world.own().metadata.annotations = None;
    world.own().spec.maintenancescheduled = true;
    world.event = None;
    finished(&mut world, MaintenancePhase::Succeeded);
    assert_eq!(world.log, []);
}

#[test]
fn new_event_on_a_finished_one_starts_it_anew() {
    let mut world = World::new(json!({}), "instance-reboot", 3);
    finished(&mut world, MaintenancePhase::Succeeded);
    world
        .own()
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(annotation::MAINTENANCE_APPROVED.to_owned(), "true".to_owned());
    let mut event = world.event.clone().unwrap();
    event.id = "instance-event-2".to_owned();
    event.description = "degraded".to_owned();
    world.event = Some(event);
    world.pass();
    let status = world.status();
    assert_eq!(status.phase, Some(MaintenancePhase::Pending));
    assert_eq!(status.history[0].event_ids, ["instance-event-1"]);
    assert_eq!(status.history[0].machine_uid.as_deref(), Some("uid-a-0"));
    assert_eq!(world.did("ClearApproval"), 1, "an old approval is none for a new event");
    let spec = world.maintenance.as_ref().unwrap().spec.clone();
    assert_eq!(spec.eventid.as_deref(), Some("instance-event-2"));
    assert!(!spec.maintenancescheduled);
    finished(&mut world, MaintenancePhase::Succeeded);
    assert_eq!(world.did("Reboot"), 2);
}

#[test]
fn history_and_timeline_are_bounded() {
    let mut world = World::new(json!({}), "instance-reboot", 3);
    for number in 0..14 {
        finished(&mut world, MaintenancePhase::Succeeded);
        let event = world.event.as_mut().unwrap();
        event.id = format!("instance-event-more-{number}");
        event.description = "x".to_owned();
        world.pass();
    }
    let mut status = world.status();
    assert_eq!(status.history.len(), 10);
    for number in 0..90 {
        crate::maintenance::record::note(&mut status, format!("note {number}"), world.now);
    }
    assert_eq!(status.timeline.len(), 50);
    assert_eq!(status.timeline.last().unwrap().message, "note 89");
}

#[test]
fn what_keeps_a_due_maintenance_from_beginning_is_said_and_not_written_again() {
    let mut world = World::new(json!({}), "instance-reboot", 3);
    world.gate = Err(Held("2 of pool a are unhealthy already".to_owned()));
    world.run(minutes(2));
    let status = world.status();
    assert_eq!(world.phase(), MaintenancePhase::Pending);
    assert_eq!(status.plan.as_ref().unwrap().waits_on[0].reason, reason::GATE_HOLDS);
    assert!(status.message.unwrap().ends_with("; 2 of pool a are unhealthy already"));
    world.tick(minutes(30));
    let later = world.look().unwrap();
    assert_eq!((later.actions, later.status), (Vec::new(), world.status()), "nothing is written");

    world.gate = Ok(());
    finished(&mut world, MaintenancePhase::Succeeded);
}

#[test]
fn a_place_that_never_comes_free_is_not_promised_again_and_again() {
    let mut world = World::new(json!({}), "instance-reboot", 3);
    world.set_ready("a-1", "False");
    world.pass();
    assert_eq!(world.phase(), MaintenancePhase::Scheduled, "it is assumed to recover");
    let promised = world.status().plan.unwrap().start.unwrap().0;
    let mut written = Vec::new();
    for _ in 0..240 {
        world.tick(minutes(1));
        let before = world.status();
        world.pass();
        if world.status() != before {
            written.push((world.now, world.status().message.unwrap_or_default()));
        }
    }
    assert_eq!(written.len(), 1, "{written:#?}");
    assert!(written[0].0 >= promised, "kept until its time has come: {written:#?}");
    assert_eq!(world.phase(), MaintenancePhase::Pending);
    let plan = world.status().plan.unwrap();
    assert_eq!((plan.start, plan.waits_on[0].reason.as_str()), (None, reason::BUDGET_EXHAUSTED));

    world.set_ready("a-1", "True");
    finished(&mut world, MaintenancePhase::Succeeded);
}

#[test]
fn annotation_of_a_person_is_fulfilled_and_removed() {
    let mut world = World::new(json!({}), "instance-reboot", 3);
    world.event = None;
    let machine = world.machines.get_mut(TARGET).unwrap();
    machine
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(annotation::MAINTENANCE_REQUESTED.to_owned(), "Reboot: kernel".to_owned());
    world.run_to(MaintenancePhase::Succeeded);
    assert_eq!((world.did("Reboot"), world.did("ClearRequest")), (1, 1));
    assert!(world.run(minutes(5)));
    world.tick(hours(30));
    world.pass();
    assert_eq!(world.did("Reboot"), 1, "it is not done again");
}

#[test]
fn object_of_a_person_is_done_once_and_again_when_they_say_so() {
    let mut world = World::new(json!({}), "instance-reboot", 3);
    world.event = None;
    world.own().metadata.annotations = None;
    world.own().spec.action = Some(MaintenanceAction::Reboot);
    finished(&mut world, MaintenancePhase::Succeeded);
    world.tick(hours(30));
    world.pass();
    assert_eq!((world.phase(), world.did("Reboot")), (MaintenancePhase::Succeeded, 1));
    assert_eq!(world.status().reasons[0].state, MaintenanceReasonState::Completed);
    world.own().spec.maintenancescheduled = false;
    world.pass();
    finished(&mut world, MaintenancePhase::Succeeded);
    assert_eq!(world.did("Reboot"), 2);
}

#[test]
fn workloads_that_do_not_come_back_are_told() {
    let mut world = World::new(json!({ "verificationTimeout": "30m" }), "instance-retirement", 3);
    world.workloads_missing = vec!["deployment app/web has 1 of 2 pods".to_owned()];
    world.run_to(MaintenancePhase::Failed);
    let status = world.status();
    let verified = condition::find(&status.conditions, condition_type::VERIFIED).unwrap();
    assert_eq!(verified.reason.as_deref(), Some(reason::WORKLOADS_NOT_BACK));
    assert!(!world.machines.contains_key(TARGET));
}

#[test]
fn event_is_moved_where_the_plan_says_so() {
    let spec = json!({
        "whenNoWindow": "MoveEvent",
        "windows": [{ "name": "saturday", "cron": "0 22 * * 6", "duration": "4h" }],
    });
    let mut world = World::new(spec, "instance-retirement", 3);
    world.pass();
    assert_eq!(world.did("MoveEvent"), 1);
    world.tick(minutes(1));
    world.pass();
    assert_eq!(world.did("MoveEvent"), 1);
    assert_eq!(world.phase(), MaintenancePhase::Scheduled);
    let plan = world.status().plan.unwrap();
    assert_eq!(plan.start.unwrap().0, at("2026-11-07T22:00:00Z"));
    assert_eq!(plan.deadline.unwrap().0, at("2026-11-08T02:00:00Z"));
}

/// The process dies before each write in turn, and another goes on.
#[test]
fn whatever_write_is_lost_another_process_goes_on() {
    for code in ["instance-retirement", "instance-reboot", "instance-stop"] {
        for dies_before in 1..200 {
            let mut world = World::new(json!({}), code, 3);
            world.dies_before = Some(dies_before);
            finished(&mut world, MaintenancePhase::Succeeded);
            assert_eq!(world.replicas(), 3, "{code} {dies_before}");
            assert!(world.did("Reboot") <= 2, "{code} {dies_before}");
            if world.writes < dies_before {
                break;
            }
        }
    }
}
