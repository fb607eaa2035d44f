//! What follows when a step of a maintenance does not work, or what it is about is lost?

use machinist_api::{
    Condition, ConditionSeverity, Machine, MaintenanceAction, MaintenancePhase,
    MaintenanceReasonState,
    names::{annotation, condition_type, maintenance_reason as reason},
};

use super::{
    executing::finished,
    world::{TARGET, World, failure},
    *,
};
use crate::cloud::ErrorClass;

#[test]
fn start_without_capacity_gives_way_to_a_replacement() {
    let mut world = World::new(json!({}), "instance-stop", 3);
    world.refuses.insert("Start", failure(ErrorClass::InsufficientCapacity));
    finished(&mut world, MaintenancePhase::Succeeded);
    assert_eq!(world.status().work.unwrap().action, Some(MaintenanceAction::Replace));
    assert!(!world.machines.contains_key(TARGET));
    assert_eq!(world.replicas(), 3);
}

#[test]
fn machine_that_we_stopped_is_started_again_when_its_replacement_is_given_up() {
    let mut world = World::new(json!({ "surge": { "timeout": "20m" } }), "instance-stop", 3);
    world.refuses.insert("Start", failure(ErrorClass::InsufficientCapacity));
    world.boots = false;
    world.run_to(MaintenancePhase::Undoing);
    world.refuses.clear();
    world.run_to(MaintenancePhase::Failed);
    finished(&mut world, MaintenancePhase::Failed);
    assert_eq!(world.instances[TARGET].state, crate::cloud::InstanceState::Running);
    assert_eq!(world.replicas(), 3);
}

#[test]
fn reboot_that_does_not_happen_escalates_and_says_so() {
    let mut world = World::new(json!({}), "instance-reboot", 3);
    world.reboots = false;
    finished(&mut world, MaintenancePhase::Succeeded);
    assert!(world.did("Reboot") > 1);
    assert_eq!(world.status().work.unwrap().action, Some(MaintenanceAction::StopStart));
    let timeline = world.status().timeline;
    assert!(
        timeline.iter().any(|entry| entry.message.contains("StopStart is tried instead")),
        "{timeline:?}"
    );
}

#[test]
fn event_that_stays_after_the_work_escalates() {
    let mut world = World::new(json!({}), "instance-reboot", 3);
    world.clears = false;
    finished(&mut world, MaintenancePhase::Succeeded);
    assert_eq!((world.did("Reboot"), world.did("Stop")), (1, 1));
    assert!(!world.machines.contains_key(TARGET), "in the end it is replaced");
}

#[test]
fn drain_that_does_not_end_follows_policy() {
    let world = |after: &str| {
        let spec = json!({ "drain": { "deadline": "10m", "afterDeadline": after } });
        let mut world = World::new(spec, "instance-retirement", 3);
        world.stuck_pods = vec!["web-0".to_owned()];
        world
    };
    let mut forced = world("Force");
    finished(&mut forced, MaintenancePhase::Succeeded);
    assert_eq!(forced.did("DeletePod"), 1);

    let mut abandoned = world("Abandon");
    abandoned.run_to(MaintenancePhase::Failed);
    finished(&mut abandoned, MaintenancePhase::Failed);
    assert_eq!(abandoned.did("Uncordon"), 1);
    assert_eq!(abandoned.replicas(), 3);
    let status = abandoned.status();
    assert_eq!(status.attempts, 1);
    assert!(status.next_attempt.is_some());
    abandoned.stuck_pods.clear();
    abandoned.run_to(MaintenancePhase::Succeeded);
    assert_eq!(abandoned.status().history.len(), 1, "the failed attempt is remembered");

    let mut waiting = world("Wait");
    assert!(!waiting.run(hours(3)));
    assert_eq!(waiting.phase(), MaintenancePhase::Draining);
    assert_eq!(waiting.status().plan.unwrap().waits_on[0].reason, reason::DRAIN_BLOCKED);
}

/// Stormy 8001920: since when it was not shown was noted nowhere, so it was in doubt for ever.
#[test]
fn event_that_vanishes_after_a_failed_attempt_is_not_waited_for() {
    let spec = json!({ "drain": { "deadline": "10m", "afterDeadline": "Abandon" } });
    let mut world = World::new(spec, "instance-retirement", 3);
    world.stuck_pods = vec!["web-0".to_owned()];
    world.run_to(MaintenancePhase::Failed);
    world.event = None;
    for _ in 0..30 {
        world.pass();
        world.tick(SignedDuration::from_secs(20));
    }
    let status = world.status();
    assert_eq!(status.phase, Some(MaintenancePhase::Failed));
    assert_eq!(status.reasons[0].state, MaintenanceReasonState::Vanished);
}

/// Stormy 8002420: nobody tells of the events of an instance that is not there, and meanwhile the machine was held.
#[test]
fn machine_that_loses_its_instance_is_let_go() {
    let mut world = World::new(json!({}), "instance-retirement", 3);
    world.stuck_pods = vec!["web-0".to_owned()];
    world.run_to(MaintenancePhase::Draining);
    world.pass();
    let status = world.machines.get_mut(TARGET).unwrap().status.get_or_insert_default();
    status.phase = Some("Failed".to_owned());
    let missing = Condition::fails(
        condition_type::INSTANCE_EXISTS,
        ConditionSeverity::Warning,
        "InstanceMissing",
        "",
        now(),
    );
    status.conditions.push(missing);
    finished(&mut world, MaintenancePhase::Cancelled);
    assert_eq!(world.replicas(), 3);
}

#[test]
fn surplus_machine_that_never_gets_ready_follows_policy() {
    let world = |after: &str| {
        let spec = json!({ "surge": { "timeout": "20m", "afterTimeout": after } });
        let mut world = World::new(spec, "instance-retirement", 3);
        world.boots = false;
        world
    };
    let mut abandoned = world("Abandon");
    abandoned.run_to(MaintenancePhase::Failed);
    finished(&mut abandoned, MaintenancePhase::Failed);
    assert_eq!((abandoned.replicas(), abandoned.did("Cordon")), (3, 0));

    let mut proceeding = world("Proceed");
    proceeding.run_to(MaintenancePhase::Verifying);
    assert!(!proceeding.machines.contains_key(TARGET));

    let mut waiting = world("Wait");
    assert!(!waiting.run(hours(3)));
    assert_eq!(waiting.status().plan.unwrap().waits_on[0].reason, reason::SURGE_NOT_READY);
}

#[test]
fn autoscalers_limit_is_respected() {
    let mut world = World::new(json!({ "surge": { "timeout": "20m" } }), "instance-retirement", 3);
    let set = world.set.as_mut().unwrap();
    set.metadata
        .annotations
        .get_or_insert_default()
        .insert(annotation::AUTOSCALER_MAX_SIZE.to_owned(), "3".to_owned());
    world.run_to(MaintenancePhase::Surging);
    world.pass();
    assert_eq!(world.status().plan.unwrap().waits_on[0].reason, reason::SURGE_NOT_ALLOWED);
    world.run_to(MaintenancePhase::Failed);
    assert_eq!(world.did("ResizePool"), 0);
}

/// The surplus machine was to go, and then a person deleted the one that it had been made for: it stays.
#[test]
fn surplus_machine_that_stays_after_all_is_not_the_next_to_go() {
    let spec = json!({ "surge": { "machines": 1 }, "drain": { "afterDeadline": "Abandon" } });
    let mut world = World::new(spec, "instance-retirement", 2);
    let is_marked = |world: &World| {
        let marks = |machine: &Machine| {
            let all = machine.metadata.annotations.as_ref();
            machine.metadata.name.as_deref() != Some(TARGET)
                && all.is_some_and(|all| all.contains_key(annotation::DELETE_MACHINE))
        };
        world.machines.values().any(marks)
    };
    world.run_to(MaintenancePhase::Draining);
    world.cancel_event();
    for _ in 0..100 {
        if is_marked(&world) {
            break;
        }
        world.pass();
        world.tick(SignedDuration::from_secs(20));
    }
    assert!(is_marked(&world), "{:?}", world.log);
    world.delete_machine(TARGET);
    finished(&mut world, MaintenancePhase::Cancelled);
    assert_eq!(world.replicas(), 2);
}
