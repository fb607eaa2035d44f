//! Do scheduled events start, move, settle and fade as AWS documents?

use super::*;

fn schedule(bench: &mut Bench, id: &str, code: EventCode, hours: i64) -> String {
    let new = NewEvent {
        instance_id: id.into(),
        code,
        description: Some("degraded".into()),
        not_before: time::later(bench.now, SignedDuration::from_hours(hours)),
        not_after: Some(time::later(bench.now, SignedDuration::from_hours(hours + 2))),
        not_before_deadline: Some(time::later(bench.now, SignedDuration::from_hours(72))),
    };
    bench.cloud.schedule_event(bench.now, new).expect("an event").event_id
}

fn description(bench: &mut Bench, id: &str) -> Option<String> {
    bench.status(id).events.first().map(ScheduledEvent::wire_description)
}

#[test]
fn provider_does_at_the_start_what_it_announced() {
    for (code, state, generation) in [
        (EventCode::InstanceStop, InstanceState::Stopped, 1),
        (EventCode::InstanceRetirement, InstanceState::Stopped, 1),
        (EventCode::InstanceReboot, InstanceState::Running, 2),
        (EventCode::SystemReboot, InstanceState::Running, 2),
        (EventCode::SystemMaintenance, InstanceState::Running, 1),
    ] {
        let mut bench = Bench::new();
        let id = bench.launch_running();
        schedule(&mut bench, &id, code, 1);
        bench.seconds(3599);
        assert_eq!(bench.instance(&id).boot_generation, 1);
        assert_eq!(description(&mut bench, &id).as_deref(), Some("degraded"));
        bench.seconds(3);
        let instance = bench.instance(&id);
        assert_eq!((instance.state, instance.boot_generation), (state, generation), "{code:?}");
        assert_eq!(description(&mut bench, &id).as_deref(), Some("[Completed] degraded"));
        bench.seconds(8 * 24 * 3600);
        assert_eq!(description(&mut bench, &id), None);
    }
}

#[test]
fn own_work_settles_the_events_that_it_can() {
    for (code, settled_by_reboot) in [
        (EventCode::InstanceReboot, true),
        (EventCode::SystemReboot, false),
        (EventCode::InstanceStop, false),
        (EventCode::InstanceRetirement, false),
        (EventCode::SystemMaintenance, false),
    ] {
        let mut bench = Bench::new();
        let id = bench.launch_running();
        schedule(&mut bench, &id, code, 24);
        bench.call(Request::RebootInstances(ids(&[&id]))).result.expect("a reboot");
        bench.seconds(2);
        let settled = description(&mut bench, &id).expect("listed").starts_with("[Completed]");
        assert_eq!(settled, settled_by_reboot, "{code:?}");
        bench.call(Request::StopInstances(ids(&[&id]))).result.expect("a stop");
        bench.seconds(1);
        bench.call(Request::StartInstances(ids(&[&id]))).result.expect("a start");
        // The cloud needs a moment to notice, and must not act meanwhile.
        bench.seconds(2);
        assert_eq!(description(&mut bench, &id).as_deref(), Some("[Completed] degraded"));
        bench.seconds(25 * 3600);
        assert_eq!(bench.instance(&id).state, InstanceState::Running);
        assert_eq!(bench.instance(&id).boot_generation, 3);
    }
}

#[test]
fn a_reboot_settles_a_system_reboot_where_migration_is_allowed() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    schedule(&mut bench, &id, EventCode::SystemReboot, 24);
    let modify = |recovery: Option<&str>, migration: Option<&str>| {
        Request::ModifyInstanceMaintenanceOptions(ModifyInstanceMaintenanceOptions {
            instance_id: id.clone(),
            auto_recovery: recovery.map(str::to_owned),
            reboot_migration: migration.map(str::to_owned),
            dry_run: false,
        })
    };
    let refused = bench.call(modify(None, Some("sometimes"))).result;
    assert_eq!(code(refused), "InvalidParameterValue");
    bench.call(modify(Some("disabled"), None)).result.expect("modified");
    bench.call(modify(None, Some("default"))).result.expect("modified");
    let instance = bench.instance(&id);
    assert_eq!(instance.auto_recovery, "disabled");
    assert_eq!(instance.reboot_migration, "default");
    bench.call(Request::RebootInstances(ids(&[&id]))).result.expect("a reboot");
    bench.seconds(2);
    assert_eq!(description(&mut bench, &id).as_deref(), Some("[Completed] degraded"));
}

#[test]
fn an_event_moves_only_by_the_rules() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    let movable = schedule(&mut bench, &id, EventCode::SystemReboot, 24);
    let fixed = NewEvent {
        instance_id: id.clone(),
        code: EventCode::InstanceStop,
        description: None,
        not_before: time::later(bench.now, SignedDuration::from_hours(24)),
        not_after: None,
        not_before_deadline: None,
    };
    let fixed = bench.cloud.schedule_event(bench.now, fixed).expect("an event").event_id;
    let start = bench.now;
    let modify = |bench: &mut Bench, event: &str, minutes: i64| {
        let request = ModifyInstanceEventStartTime {
            instance_id: id.clone(),
            instance_event_id: event.into(),
            not_before: time::later(start, SignedDuration::from_mins(minutes)),
            dry_run: false,
        };
        bench.call(Request::ModifyInstanceEventStartTime(request)).result
    };
    let refused = "InvalidInstanceEventStartTime";
    assert_eq!(code(modify(&mut bench, &fixed, 48 * 60)), refused);
    assert_eq!(code(modify(&mut bench, &movable, 59)), refused);
    assert_eq!(code(modify(&mut bench, &movable, 72 * 60 + 1)), refused);
    assert_eq!(
        code(modify(&mut bench, "instance-event-00000000000000000", 60)),
        "InvalidInstanceEventIDNotFound"
    );
    let moved = modify(&mut bench, &movable, 61).expect("a move");
    let Response::EventMoved(event) = moved else { panic!("{moved:?}") };
    assert_eq!(event.not_before, time::later(start, SignedDuration::from_mins(61)));
    assert_eq!(event.not_after, Some(time::later(start, SignedDuration::from_mins(61 + 120))));
    bench.seconds(57 * 60);
    assert_eq!(code(modify(&mut bench, &movable, 48 * 60)), refused);
    bench.seconds(10 * 60);
    assert_eq!(code(modify(&mut bench, &movable, 48 * 60)), refused);
    assert_eq!(bench.instance(&id).boot_generation, 2);
}

#[test]
fn a_cancelled_event_does_not_happen_and_a_moved_one_happens_once() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    let cancelled = schedule(&mut bench, &id, EventCode::InstanceStop, 1);
    let moved = schedule(&mut bench, &id, EventCode::InstanceReboot, 1);
    let cancel = EventPatch { state: Some(EventState::Canceled), ..EventPatch::default() };
    bench.cloud.patch_event(bench.now, &cancelled, cancel).expect("a patch");
    let later = time::later(bench.now, SignedDuration::from_hours(3));
    let patch = EventPatch { not_before: Some(later), ..EventPatch::default() };
    bench.cloud.patch_event(bench.now, &moved, patch).expect("a patch");
    bench.seconds(2 * 3600);
    assert_eq!(bench.instance(&id).boot_generation, 1);
    bench.seconds(2 * 3600);
    let instance = bench.instance(&id);
    assert_eq!((instance.state, instance.boot_generation), (InstanceState::Running, 2));
    bench.cloud.delete_event(bench.now, &moved).expect("a deletion");
    assert!(matches!(bench.cloud.delete_event(bench.now, &moved), Err(ConsoleError::NotFound(_))));
}

#[test]
fn events_end_with_their_instance() {
    let mut bench = Bench::new();
    let id = bench.launch_running();
    schedule(&mut bench, &id, EventCode::InstanceStop, 1);
    bench.call(Request::TerminateInstances(ids(&[&id]))).result.expect("a termination");
    bench.seconds(1);
    assert!(bench.instance(&id).events.is_empty());
    bench.seconds(2 * 3600);
    assert_eq!(bench.cloud.next_transition(), None);
}
