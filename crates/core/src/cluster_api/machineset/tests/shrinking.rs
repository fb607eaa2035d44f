//! Do the right Machines go, and no more of them?

use super::*;

fn created_at(name: &str, at: &str) -> Value {
    let mut one = machine(name);
    one["metadata"]["creationTimestamp"] = json!(at);
    one
}

#[test]
fn those_that_are_going_already_are_counted() {
    let machines = vec![machine("a"), machine("b"), going(machine("z"))];
    let decision = World::new(set(2), machines).decide();
    assert_eq!(deleted(&decision), [""; 0]);
    let (status, _, message) = said(&decision, "ScalingDown");
    assert_eq!((status.as_str(), message.as_str()), ("True", "Scaling down from 3 to 2 replicas"));
}

#[test]
fn the_marked_go_before_the_unhealthy_and_these_before_the_rest() {
    let mut marked = machine("d");
    marked["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/delete-machine": "" });
    let mut nodeless = machine("c");
    nodeless["status"]["nodeRef"] = Value::Null;
    let machines = vec![
        machine("a"),
        with_condition(machine("b"), "HealthCheckSucceeded", "False"),
        nodeless,
        marked,
        with_condition(machine("e"), "NodeHealthy", "Unknown"),
    ];
    for (replicas, expected) in [
        (4, vec!["d"]),
        (3, vec!["d", "b"]),
        (2, vec!["d", "b", "c"]),
        (1, vec!["d", "b", "c", "a"]),
    ] {
        let decision = World::new(set(replicas), machines.clone()).decide();
        assert_eq!(deleted(&decision), expected, "{replicas}");
    }
}

#[test]
fn age_decides_where_the_order_asks_for_it() {
    let machines = vec![
        created_at("a", "2026-01-01T08:00:00Z"),
        created_at("b", "2026-01-01T06:00:00Z"),
        created_at("c", "2026-01-01T10:00:00Z"),
    ];
    for (order, expected) in [("Oldest", "b"), ("Newest", "c"), ("Random", "a")] {
        let mut ordered = set(2);
        ordered["spec"]["deletion"] = json!({ "order": order });
        assert_eq!(deleted(&World::new(ordered, machines.clone()).decide()), [expected], "{order}");
    }
}

#[test]
fn a_deletion_that_takes_long_is_named() {
    let mut slow = going(machine("z"));
    slow["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:00:00Z");
    let decision = World::new(set(1), vec![machine("a"), slow]).decide();
    let message = said(&decision, "ScalingDown").2;
    assert_eq!(
        message,
        "Scaling down from 2 to 1 replicas\n* Machine z is in deletion since more than 15m"
    );
}
