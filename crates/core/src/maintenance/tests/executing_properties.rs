//! What holds of every maintenance, whatever people, the cloud and the process itself do meanwhile.

use machinist_api::MaintenancePhase;
use proptest::prelude::*;

use super::{
    world::{TARGET, World, failure},
    *,
};
use crate::cloud::ErrorClass;

const CODES: [&str; 4] =
    ["instance-retirement", "instance-stop", "instance-reboot", "system-reboot"];

/// Something that happens meanwhile.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Nothing,
    CancelEvent,
    DeleteObject,
    Scale(i32),
    CordonByPerson,
    UncordonByPerson,
    DeleteTarget,
    BreakOther,
    HealOther,
    Refuse(&'static str, bool),
    Die,
}

fn meanwhile() -> impl Strategy<Value = Meanwhile> {
    prop_oneof![
        12 => Just(Meanwhile::Nothing),
        1 => Just(Meanwhile::CancelEvent),
        1 => Just(Meanwhile::DeleteObject),
        2 => (-1..2_i32).prop_map(Meanwhile::Scale),
        1 => Just(Meanwhile::CordonByPerson),
        1 => Just(Meanwhile::UncordonByPerson),
        1 => Just(Meanwhile::DeleteTarget),
        1 => Just(Meanwhile::BreakOther),
        2 => Just(Meanwhile::HealOther),
        1 => prop_oneof![Just("Reboot"), Just("Stop"), Just("Start")]
            .prop_flat_map(|step| any::<bool>().prop_map(move |on| Meanwhile::Refuse(step, on))),
        3 => Just(Meanwhile::Die),
    ]
}

fn spec() -> impl Strategy<Value = Value> {
    let surge = prop_oneof![Just("Abandon"), Just("Proceed"), Just("Wait")];
    let drain = prop_oneof![Just("Abandon"), Just("Force"), Just("Wait")];
    (surge, drain, 0..2_i32).prop_map(|(surge, drain, machines)| {
        json!({
            "surge": { "machines": machines, "timeout": "20m", "afterTimeout": surge },
            "drain": { "deadline": "10m", "afterDeadline": drain },
            "verificationTimeout": "30m",
        })
    })
}

fn happen(world: &mut World, meanwhile: Meanwhile) {
    match meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::CancelEvent => world.cancel_event(),
        Meanwhile::DeleteObject => {
            if world.maintenance.is_some() {
                world.delete_maintenance();
            }
        }
        Meanwhile::Scale(by) => world.scale(by),
        Meanwhile::CordonByPerson => world.set_cordon("node-a-1", true),
        Meanwhile::UncordonByPerson => world.set_cordon("node-a-0", false),
        Meanwhile::DeleteTarget => world.delete_machine(TARGET),
        Meanwhile::BreakOther => world.set_ready("a-1", "False"),
        Meanwhile::HealOther => {
            world.set_ready("a-1", "True");
            world.set_cordon("node-a-1", false);
        }
        Meanwhile::Refuse(step, true) => {
            world.refuses.insert(step, failure(ErrorClass::Throttled));
        }
        Meanwhile::Refuse(step, false) => {
            world.refuses.remove(step);
        }
        Meanwhile::Die => world.dies_before = Some(world.writes + 1),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// `World` itself refuses a pool that gets smaller than people want it, the lifting of another's
    /// cordon, and a second effect in one pass.
    #[test]
    fn it_always_ends_and_leaves_nothing_behind(
        spec in spec(),
        code in 0..CODES.len(),
        size in 2..5_usize,
        story in proptest::collection::vec((meanwhile(), 1..20_i64), 0..25),
    ) {
        let mut world = World::new(spec, CODES[code], size);
        for (meanwhile, passes) in story {
            happen(&mut world, meanwhile);
            for _ in 0..passes {
                world.pass();
                world.tick(SignedDuration::from_secs(20));
            }
        }
        // From here on the world cooperates.
        world.refuses.clear();
        world.dies_before = None;
        for machine in world.machines.keys().cloned().collect::<Vec<_>>() {
            world.set_cordon(&format!("node-{machine}"), false);
            if world.instances[&machine].state == crate::cloud::InstanceState::Running {
                world.set_ready(&machine, "True");
            }
        }
        let mut has_ended = world.run(hours(30));
        // What failed is tried again.
        for _ in 0..8 {
            if world.maintenance.is_none() || world.phase() != MaintenancePhase::Failed {
                break;
            }
            world.tick(hours(24));
            has_ended = world.run(hours(30));
        }
        prop_assert!(has_ended, "{:?} {:?} {:?}", world.phase(), world.status().message, world.log);
        world.assert_nothing_left();
        prop_assert!(world.replicas() >= world.wanted, "{} of {}", world.replicas(), world.wanted);
    }

    /// Without anybody else's doing there are never fewer ready machines than wanted, wherever the
    /// process dies and whenever the event is cancelled.
    #[test]
    fn replacing_never_costs_capacity(
        size in 1..5_usize,
        deaths in proptest::collection::vec(1..12_usize, 0..6),
        cancelled_after in proptest::option::of(0..120_usize),
    ) {
        let mut world = World::new(json!({}), "instance-retirement", size);
        let wanted = i32::try_from(size).unwrap();
        let mut deaths = deaths.into_iter();
        let mut has_begun = false;
        for pass in 0..2_000 {
            if cancelled_after == Some(pass) {
                world.cancel_event();
            }
            if world.dies_before.is_none_or(|before| before < world.writes) {
                world.dies_before = deaths.next().map(|more| world.writes + more);
            }
            world.pass();
            has_begun |= world.phase().is_under_way();
            prop_assert!(world.ready() >= wanted, "{} of {wanted}: {:?}", world.ready(), world.log);
            world.tick(SignedDuration::from_secs(20));
            if world.phase().is_over() {
                break;
            }
        }
        prop_assert!(world.phase().is_over(), "{:?}", world.status().message);
        prop_assert!(world.run(hours(1)));
        world.assert_nothing_left();
        prop_assert_eq!(world.replicas(), wanted);
        prop_assert!(has_begun || cancelled_after.is_some());
    }
}
