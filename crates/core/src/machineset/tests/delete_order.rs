//! Which Machine goes first, by situation and policy.

use super::{super::delete_order::first_to_go, *};

/// From the first to go to the last: rows of the peer's table, youngest and oldest among equals.
#[test]
fn each_policy_has_its_order() {
    let marked = |name: &str, key: &str, value: &str| {
        machine(name, json!({"annotations": {key: value}}), json!({"nodeRef": {"name": name}}))
    };
    let aged = |name: &str, created: &str| {
        machine(name, json!({"creationTimestamp": created}), json!({"nodeRef": {"name": name}}))
    };
    let machines = [
        aged("a-old", "2025-01-01T00:00:00Z"),
        aged("b-new", "2026-01-01T11:59:00Z"),
        aged("c-future", "2026-01-01T13:00:00Z"),
        machine(
            "d-timeless",
            json!({"creationTimestamp": null}),
            json!({"nodeRef": {"name": "d"}}),
        ),
        machine("e-unlinked", json!({}), json!({})),
        marked("f-marked", "machine.openshift.io/delete-machine", "yes"),
        marked("g-marked", "machine.openshift.io/cluster-api-delete-machine", "no"),
        marked("h-unmarked", "machine.openshift.io/delete-machine", ""),
        machine(
            "i-failed",
            json!({}),
            json!({"nodeRef": {"name": "i"}, "errorReason": "CreateError"}),
        ),
        machine("j-failed", json!({}), json!({"nodeRef": {"name": "j"}, "errorMessage": ""})),
        machine("k-deleting", json!({"deletionTimestamp": "2026-01-01T11:59:00Z"}), json!({})),
    ];
    let all: Vec<&Machine> = machines.iter().collect();
    let order = |policy: Option<&str>| -> String {
        let ordered = first_to_go(&all, all.len(), policy, now());
        ordered.iter().filter_map(|one| one.metadata.name.as_deref()?.get(..1)).collect()
    };
    // Random: 100, then 50 (marked, failed), 40 (unlinked), 20; by name among equals.
    let random = "kfgijeabcdh";
    // Oldest: 100 for the deleting, marked and failed, and then by age; what has no age goes last.
    let oldest = "fgijkaehbcd";
    // Newest: the other way round, and what has no age first among the unmarked.
    let newest = "fgijdckbeha";
    for (policy, expected) in [
        (None, random),
        (Some(""), random),
        (Some("Random"), random),
        (Some("Oldest"), oldest),
        (Some("Newest"), newest),
    ] {
        assert_eq!(order(policy), expected, "{policy:?}");
    }
}

#[test]
fn a_surplus_goes_by_the_policy_of_the_set() {
    let old = machine("old", json!({"creationTimestamp": "2025-01-01T00:00:00Z"}), json!({}));
    let new = machine("new", json!({"creationTimestamp": "2026-01-01T11:59:00Z"}), json!({}));
    for (policy, expected) in [("Oldest", "old"), ("Newest", "new"), ("Random", "new")] {
        let set = set(json!({"replicas": 1, "deletePolicy": policy}));
        assert_eq!(deleted(&decided(&set, &[old.clone(), new.clone()])), [expected], "{policy}");
    }
    let set = set(json!({"replicas": 0, "deletePolicy": "Oldest"}));
    assert_eq!(deleted(&decided(&set, &[new, old])), ["old", "new"]);
}

/// After years the peer's formula gives the same number for every age.
#[test]
fn seconds_count_even_between_very_old_machines() {
    let second = |name: &str, at: &str| machine(name, json!({"creationTimestamp": at}), json!({}));
    let (first, later) = (second("z", "1990-01-01T00:00:00Z"), second("a", "1990-01-01T00:00:01Z"));
    let both = [&later, &first];
    let name = |policy| first_to_go(&both, 1, Some(policy), now())[0].metadata.name.clone();
    assert_eq!(name("Oldest").as_deref(), Some("z"));
    assert_eq!(name("Newest").as_deref(), Some("a"));
}

fn any_machine() -> impl Strategy<Value = Machine> {
    let created = prop::option::of(0_i64..4_000_000_000);
    (0..30_u8, created, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(name, created, is_marked, is_failed, is_linked)| {
            let created = created.map(|at| Timestamp::from_second(at).unwrap().to_string());
            let mark = if is_marked { "x" } else { "" };
            let node = is_linked.then(|| json!({"name": "n"}));
            machine(
                &format!("m{name}"),
                json!({
                    "creationTimestamp": created,
                    "annotations": {"machine.openshift.io/delete-machine": mark},
                }),
                json!({"nodeRef": node, "errorMessage": is_failed.then_some("bad")}),
            )
        },
    )
}

proptest! {
    /// Whatever order the Machines are listed in, the same ones go.
    #[test]
    fn the_order_of_the_list_does_not_matter(
        machines in prop::collection::vec(any_machine(), 0..12),
        policy in prop::sample::select(&["Random", "Oldest", "Newest"][..]),
        count in 0..12_usize,
    ) {
        let names = |listed: Vec<&Machine>| -> Vec<String> {
            let gone = first_to_go(&listed, count, Some(policy), now());
            // Two of one name cannot be told apart by it.
            gone.iter().map(|one| serde_json::to_string(one).unwrap()).collect()
        };
        let forward = names(machines.iter().collect());
        let backward = names(machines.iter().rev().collect());
        prop_assert_eq!(forward.len(), count.min(machines.len()));
        let unique: std::collections::BTreeSet<_> =
            machines.iter().map(|one| one.metadata.name.clone()).collect();
        if unique.len() == machines.len() {
            prop_assert_eq!(forward, backward);
        }
    }
}
