//! Does a rollout reach its end within its bounds, whatever order things happen in?

use machinist_api::cluster_api::MachineSetStatus;
use proptest::prelude::*;

use super::*;

/// One step of the sets' own controllers: a set moves by one Machine towards its size, or one of its Machines begins to
/// work.
fn step(world: &mut World, which: usize) {
    let count = world.sets.len();
    if count == 0 {
        return;
    }
    let set = &mut world.sets[which % count];
    let generation = set.metadata.generation;
    let status = set.status.get_or_insert_with(MachineSetStatus::default);
    let (wanted, has) = (set.spec.replicas.unwrap_or(0), status.replicas.unwrap_or(0));
    let works = status.available_replicas.unwrap_or(0);
    if has < wanted {
        status.replicas = Some(has + 1);
    } else if has > wanted {
        status.replicas = Some(has - 1);
        // In the worst case one goes that works.
        status.available_replicas = Some(works.min(has - 1));
    } else if works < has {
        status.available_replicas = Some(works + 1);
    }
    status.observed_generation = generation;
}

fn totals(world: &World) -> (i32, i32) {
    let status = |set: &MachineSet| set.status.clone().unwrap_or_default();
    let has = world.sets.iter().map(|set| status(set).replicas.unwrap_or(0)).sum();
    let works = world.sets.iter().map(|set| status(set).available_replicas.unwrap_or(0)).sum();
    (has, works)
}

fn pass(world: &mut World) {
    let decision = world.decide();
    world.apply(&decision);
}

fn run(world: &mut World, order: &[usize], mut check: impl FnMut(&World)) {
    for turn in 0..900 {
        // Whatever the order is, everybody gets a turn.
        match turn % 3 {
            0 => pass(world),
            1 => step(world, order[turn % order.len()]),
            _ => step(world, turn / 3),
        }
        check(world);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_rollout_ends_and_never_leaves_its_bounds(
        replicas in 1..9i32, surge in 0..4i32, unavailable in 0..4i32,
        order in prop::collection::vec(0..97usize, 1..40),
    ) {
        let mut one = deployment(replicas);
        one["spec"]["rollout"] = json!({ "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable },
        } });
        let mut world = World::new(one);
        run(&mut world, &order, |_| {});
        assert_eq!(totals(&world), (replicas, replicas), "the first rollout");
        world.deployment["spec"]["template"]["spec"]["version"] = json!("v1.35.0");
        let missing = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        run(&mut world, &order, |world| {
            let (has, works) = totals(world);
            assert!(has <= replicas + surge, "{has} of {replicas} + {surge}");
            assert!(works >= replicas - missing, "{works} of {replicas} - {missing}");
        });
        assert_eq!(totals(&world), (replicas, replicas));
        assert_eq!(world.sets.len(), 1, "the old set is gone");
        assert_eq!(world.sets[0].spec.template.spec.version.as_deref(), Some("v1.35.0"));
    }
}
