//! How large is each set, by the arithmetic alone?

use proptest::prelude::*;

use super::*;
use crate::cluster_api::deployment::{
    observed::Policy,
    paused::{self, Shared},
    rollout::{Plan, plan},
    sizes::Sizes,
};

fn policy(surge: Value, unavailable: Value) -> Policy {
    let mut one = deployment(3);
    one["spec"]["rollout"] = json!({ "strategy": {
        "type": "RollingUpdate",
        "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable },
    } });
    validate(&read(one)).unwrap()
}

fn on_delete() -> Policy {
    let mut one = deployment(3);
    one["spec"]["rollout"] = json!({ "strategy": { "type": "OnDelete" } });
    validate(&read(one)).unwrap()
}

fn sizes(spec: i32, status: i32, available: i32) -> Sizes {
    Sizes { spec, status, available, is_told: true }
}

#[test]
fn a_rolling_update_goes_step_by_step() {
    let one_more = policy(json!(1), json!(0));
    let one_less = policy(json!(0), json!(1));
    let neither = policy(json!(0), json!(0));
    let cases = [
        // A fresh deployment grows at once.
        (&one_more, sizes(0, 0, 0), vec![], (3, vec![])),
        // The first of the new, and none of the old before it works.
        (&one_more, sizes(0, 0, 0), vec![sizes(3, 3, 3)], (1, vec![3])),
        (&one_more, sizes(1, 1, 0), vec![sizes(3, 3, 3)], (1, vec![3])),
        (&one_more, sizes(1, 1, 1), vec![sizes(3, 3, 3)], (1, vec![2])),
        // The old one is still going: no room yet.
        (&one_more, sizes(1, 1, 1), vec![sizes(2, 3, 3)], (1, vec![2])),
        (&one_more, sizes(1, 1, 1), vec![sizes(2, 2, 2)], (2, vec![2])),
        (&one_more, sizes(3, 3, 3), vec![sizes(1, 1, 1)], (3, vec![0])),
        // Without a surplus an old one goes first.
        (&one_less, sizes(0, 0, 0), vec![sizes(3, 3, 3)], (0, vec![2])),
        (&one_less, sizes(0, 0, 0), vec![sizes(2, 2, 2)], (1, vec![2])),
        (&neither, sizes(0, 0, 0), vec![sizes(3, 3, 3)], (0, vec![2])),
        // A deployment that shrank.
        (&one_more, sizes(5, 5, 5), vec![], (3, vec![])),
    ];
    for (policy, new, old, (wanted_new, wanted_old)) in cases {
        let wanted = Plan { new: wanted_new, old: wanted_old };
        assert_eq!(plan(policy, 3, new, &old), wanted, "{new:?} {old:?}");
    }
}

/// A broken Machine of an old set would hold the rollout up for ever: nothing works less when it goes.
#[test]
fn what_does_not_work_in_an_old_set_makes_room() {
    let policy = policy(json!(1), json!(0));
    let plan = plan(&policy, 3, sizes(1, 1, 1), &[sizes(3, 3, 2)]);
    assert_eq!(plan, Plan { new: 1, old: vec![2] });
}

#[test]
fn on_delete_fills_what_a_person_took_away() {
    let policy = on_delete();
    let cases = [
        (sizes(0, 0, 0), vec![sizes(3, 3, 3)], (0, vec![3])),
        // One was deleted and is gone.
        (sizes(0, 0, 0), vec![sizes(3, 2, 2)], (0, vec![2])),
        (sizes(0, 0, 0), vec![sizes(2, 2, 2)], (1, vec![2])),
        // Scaled down: the old ones go first.
        (sizes(2, 2, 2), vec![sizes(3, 3, 3)], (2, vec![1])),
    ];
    for (new, old, (wanted_new, wanted_old)) in cases {
        let wanted = Plan { new: wanted_new, old: wanted_old };
        assert_eq!(plan(&policy, 3, new, &old), wanted, "{new:?} {old:?}");
    }
}

/// A set that was moved or restored says nothing at first. That nothing is said is no reason that anything goes.
#[test]
fn a_set_that_says_nothing_keeps_its_size() {
    let silent = |seen| Sizes { is_told: false, ..sizes(3, seen, 0) };
    for seen in [0, 2, 3] {
        let kept = Plan { new: 0, old: vec![3] };
        assert_eq!(plan(&on_delete(), 3, sizes(0, 0, 0), &[silent(seen)]), kept, "{seen}");
        // Nor is one whose Machines are not known to be broken taken for one that is stuck.
        let rolling = policy(json!(1), json!(0));
        let kept = Plan { new: 1, old: vec![3] };
        assert_eq!(plan(&rolling, 3, sizes(1, 1, 1), &[silent(seen)]), kept, "{seen}");
    }
    // A size that a person lowers is lowered all the same.
    let shrunk = plan(&on_delete(), 1, sizes(0, 0, 0), &[silent(3)]);
    assert_eq!(shrunk, Plan { new: 0, old: vec![1] });
}

#[test]
fn a_paused_deployment_shares_a_change_of_its_size() {
    let share = |spec| Shared { sizes: sizes(spec, spec, spec), most: Some(10) };
    let cases = [
        (10, vec![share(5), share(5)], vec![5, 5]),
        (20, vec![share(5), share(5)], vec![10, 10]),
        (5, vec![share(6), share(4)], vec![3, 2]),
        (11, vec![share(6), share(4)], vec![7, 4]),
        (0, vec![share(6), share(4)], vec![0, 0]),
        (7, vec![share(3)], vec![7]),
    ];
    for (replicas, sets, wanted) in cases {
        assert_eq!(paused::scale(replicas, 0, &sets, None), wanted, "{replicas}");
    }
    // The current one is complete: the others have nothing left to do.
    let complete = Shared { sizes: sizes(4, 4, 4), most: Some(4) };
    assert_eq!(paused::scale(4, 0, &[complete, share(2)], Some(0)), [4, 0]);
}

proptest! {
    /// Whatever the sizes are: never more than may be are told to be, and what works is never told away below what must
    /// work, unless nothing else could ever move.
    #[test]
    fn a_plan_keeps_its_bounds(
        replicas in 0..12i32, surge in 0..4i32, unavailable in 0..4i32,
        new in any_sizes(), old in prop::collection::vec(any_sizes(), 0..4),
    ) {
        let policy = policy(json!(surge), json!(unavailable));
        let made = plan(&policy, replicas, new, &old);
        prop_assert!(made.new <= replicas.max(new.spec));
        for (one, size) in old.iter().zip(&made.old) {
            prop_assert!((0..=one.spec).contains(size), "an old set never grows");
        }
        let before: i32 = old.iter().chain([&new]).map(|one| one.spec.max(one.status)).sum();
        if made.new > new.spec {
            let grown = before + made.new - new.spec;
            prop_assert!(grown <= replicas + policy.surge(replicas));
        }
        let least = replicas - policy.unavailable(replicas);
        let is_broken = old.iter().any(|one| one.available < one.spec);
        let cut: i32 = old.iter().zip(&made.old).map(|(one, size)| one.spec - size).sum();
        let works: i32 = old.iter().chain([&new]).map(|one| one.available).sum();
        prop_assert!(cut == 0 || works - cut >= least || is_broken, "{made:?}");
    }
}

/// What a set says: never more works than there is.
fn any_sizes() -> impl Strategy<Value = Sizes> {
    (0..8i32, 0..8i32).prop_flat_map(|(spec, status)| {
        (0..=status, any::<bool>()).prop_map(move |(available, is_told)| Sizes {
            spec,
            status,
            available,
            is_told,
        })
    })
}
