//! Is nothing made beyond a ceiling or faster than the rate, and nothing ever deleted for one?

use std::time::Duration;

use super::{
    super::{CreationRate, ceiling::allow},
    *,
};

fn bounded(set: &MachineSet, machines: &[Machine], bounds: Bounds) -> MachineSetDecision {
    let fresh: Vec<String> = (0..200).map(|index| format!("pool-new{index}")).collect();
    let observed = Observed {
        set,
        machines: machines.iter().map(|machine| Member { machine, node: None }).collect(),
        unreadable: 0,
        fresh_names: &fresh,
        bounds,
        status_written_at: None,
        last_failure: None,
    };
    decide(&observed, now())
}

fn scaling(decision: &MachineSetDecision) -> (Option<&str>, Option<&str>) {
    let found = condition::find(&decision.status.conditions, "Scaling");
    found.map_or((None, None), |found| (found.reason.as_deref(), found.message.as_deref()))
}

#[test]
fn a_hundred_thousand_are_refused_by_field_and_told_once() {
    let mut set = set(json!({"replicas": 100_000}));
    let machines = [plain("one"), plain("two")];
    let decision = bounded(&set, &machines, FREE);
    assert_eq!(decision.actions, []);
    assert_eq!(decision.status.replicas, Some(2));
    let (reason, message) = scaling(&decision);
    assert_eq!(reason, Some("TooManyMachines"));
    assert!(message.unwrap().starts_with("spec.replicas: Invalid value: 100000: "), "{message:?}");
    assert_eq!(decision.status.error_reason.as_deref(), Some("InvalidConfiguration"));
    assert_eq!(decision.announcements.len(), 1);
    assert_eq!(decision.announcements[0].reason, "ReconcileError");
    assert_eq!(decision.waiting[0].reason, "TooManyMachines");

    set.status = Some(decision.status);
    let again = bounded(&set, &machines, FREE);
    assert_eq!(again.announcements, []);
    assert_eq!(Some(&again.status), set.status.as_ref(), "nothing is written again");
    // Wanting less is all it takes.
    set.spec.replicas = Some(2);
    let healed = bounded(&set, &machines, FREE).status;
    assert!(condition::is_true(&healed.conditions, "Scaling"));
    assert_eq!(healed.error_message, None);
}

#[test]
fn a_ceiling_below_what_is_there_deletes_nothing() {
    let machines: Vec<_> = (0..5).map(|index| plain(&format!("m{index}"))).collect();
    let ceilings = Ceilings { of_one_set: 2, of_all: 3 };
    let bounds = Bounds { ceilings, machines_in_all: 5, ..FREE };
    let decision = bounded(&set(json!({"replicas": 5})), &machines, bounds);
    assert_eq!((decision.actions.len(), scaling(&decision).0), (0, None));
    let decision = bounded(&set(json!({"replicas": 6})), &machines, bounds);
    assert_eq!((decision.actions.len(), scaling(&decision).0), (0, Some("TooManyMachines")));
    // Who wants fewer gets fewer, whatever the ceiling is.
    let decision = bounded(&set(json!({"replicas": 4})), &machines, bounds);
    assert_eq!(deleted(&decision).len(), 1);
}

#[test]
fn all_pools_together_stop_at_their_ceiling_and_look_again() {
    let bounds = Bounds { machines_in_all: 98, ..FREE };
    let decision = bounded(&set(json!({"replicas": 5})), &[], bounds);
    assert_eq!(decision.actions.len(), 2);
    let (reason, message) = scaling(&decision);
    assert_eq!(reason, Some("CeilingReached"));
    assert!(message.unwrap().starts_with("spec.replicas: Forbidden: 3 machines cannot"));
    assert_eq!(decision.recheck, Some("2026-01-01T12:00:30Z".parse().unwrap()));
}

/// B20: Machines whose labels were changed leave the count of the selector. They stay instances.
#[test]
fn what_is_owned_fills_a_place_whatever_its_labels_and_while_it_goes() {
    let strays = (0..60)
        .map(|index| machine(&format!("s{index:02}"), json!({"labels": {"pool": "b"}}), json!({})));
    let going = (0..38).map(|index| {
        let deleted = json!({"deletionTimestamp": "2026-01-01T11:59:00Z"});
        machine(&format!("g{index:02}"), deleted, json!({}))
    });
    let machines: Vec<_> = strays.chain(going).collect();
    let decision = bounded(&set(json!({"replicas": 50})), &machines, FREE);
    let made = decision.actions.iter().filter(|one| matches!(one, Action::Create(_))).count();
    assert_eq!(made, 2, "98 of 100 places are taken");
    assert_eq!(scaling(&decision).0, Some("CeilingReached"));
}

#[test]
fn the_rate_makes_bursts_and_is_no_failure() {
    let set = set(json!({"replicas": 90}));
    for (permitted, made) in [(100, 90), (60, 60), (20, 20), (19, 0), (0, 0)] {
        let bounds = Bounds { permitted, burst_after: SignedDuration::from_secs(1), ..FREE };
        let decision = bounded(&set, &[], bounds);
        assert_eq!(decision.actions.len(), made, "{permitted}");
        assert_eq!(decision.status.conditions, []);
        let is_all = made == 90;
        let later = Some("2026-01-01T12:00:01Z".parse().unwrap()).filter(|_| !is_all);
        assert_eq!(decision.recheck, later);
    }
    // One that is missing needs no burst.
    let bounds = Bounds { permitted: 1, ..FREE };
    assert_eq!(allow(1, 1, 0, &bounds).count, 1);
}

#[test]
fn the_rate_lets_a_reserve_through_and_then_a_steady_number() {
    let mut rate = CreationRate::default();
    let at = Duration::from_secs;
    assert_eq!(rate.take(10_000, at(0)), 500);
    assert_eq!(rate.take(1, at(0)), 0);
    assert_eq!(rate.burst_after(at(0)), at(1));
    assert_eq!(rate.take(10_000, at(10)), 200);
    assert_eq!(rate.permitted(at(5)), 0, "a clock that went back gives nothing");
    assert_eq!(rate.permitted(at(100_000)), 500);
    assert_eq!(rate.burst_after(at(100_000)), Duration::ZERO);
}

proptest! {
    /// However often it is asked, no more than the reserve and the rate's share of the time pass.
    #[test]
    fn the_rate_holds(asks in prop::collection::vec((0..50_u64, 0..600_usize), 1..60)) {
        let (mut rate, mut now, mut taken) = (CreationRate::default(), Duration::ZERO, 0);
        for (pause, wanted) in asks {
            now += Duration::from_millis(pause * 100);
            let permitted = rate.permitted(now);
            let got = rate.take(wanted, now);
            prop_assert_eq!(got, wanted.min(permitted));
            taken += got;
            prop_assert!(taken as f64 <= 500.0 + 20.0 * now.as_secs_f64());
        }
    }

    /// S17: whatever is asked for and whatever is there, no ceiling is passed and nothing is deleted
    /// that the pool wants.
    #[test]
    fn no_ceiling_is_passed(
        replicas in 0..40_i32, existing in 0..40_usize, others in 0..40_usize,
        of_one_set in 0..40_usize, of_all in 0..80_usize, permitted in 0..40_usize,
    ) {
        let machines: Vec<_> = (0..existing).map(|index| plain(&format!("m{index}"))).collect();
        let ceilings = Ceilings { of_one_set, of_all };
        let bounds = Bounds { ceilings, machines_in_all: existing + others, permitted, ..FREE };
        let decision = bounded(&set(json!({"replicas": replicas})), &machines, bounds);
        let wanted = usize::try_from(replicas).unwrap();
        let made = decision.actions.iter().filter(|one| matches!(one, Action::Create(_))).count();
        prop_assert!(made == 0 || existing + made <= of_one_set);
        prop_assert!(made == 0 || existing + others + made <= of_all);
        prop_assert!(made <= permitted && made <= wanted.saturating_sub(existing));
        prop_assert_eq!(deleted(&decision).len(), existing.saturating_sub(wanted));
        // Whoever is stopped is told why, or comes back.
        let is_short = existing + made < wanted;
        prop_assert!(!is_short || decision.recheck.is_some() || scaling(&decision).0.is_some());
    }
}
