//! Are unhealthy Machines replaced, as many as may be at once, and is it said where not?

use super::*;

fn unhealthy(name: &str) -> Value {
    let machine = with_condition(machine(name), "HealthCheckSucceeded", "False");
    with_condition(machine, "OwnerRemediated", "False")
}

fn marks(decision: &MachineSetDecision) -> Vec<(String, Option<String>)> {
    let actions = decision.actions.iter();
    actions
        .filter_map(|action| match action {
            Action::Mark { machine, status } => {
                let mark = condition::find(&status.conditions, "OwnerRemediated");
                Some((machine.name.clone(), mark.map(|mark| mark.reason.clone())))
            }
            _ => None,
        })
        .collect()
}

fn deployment(revision: &str, max_in_flight: Value) -> Value {
    json!({
        "metadata": {
            "name": "md", "namespace": "ns", "uid": "uid-md",
            "annotations": { "machinedeployment.clusters.x-k8s.io/revision": revision },
        },
        "spec": {
            "clusterName": "c1", "replicas": 10, "selector": {},
            "template": set(1)["spec"]["template"].clone(),
            "remediation": { "maxInFlight": max_in_flight },
        },
    })
}

#[test]
fn the_mark_is_written_before_the_machine_goes() {
    let decision = World::new(set(2), vec![machine("a"), unhealthy("b")]).decide();
    let [Action::Mark { .. }, Action::Delete(machine)] = decision.actions.as_slice() else {
        panic!("{decision:?}")
    };
    assert_eq!(machine.name, "b");
    assert_eq!(marks(&decision), [("b".to_owned(), Some("MachineDeleting".to_owned()))]);
    assert_eq!(said(&decision, "Remediating").0, "True");
}

#[test]
fn one_that_no_owner_is_to_repair_is_named_and_left_alone() {
    let watched = with_condition(machine("b"), "HealthCheckSucceeded", "False");
    let decision = World::new(set(1), vec![watched]).decide();
    assert_eq!(decision.actions, []);
    assert_eq!(
        said(&decision, "Remediating").2,
        "Machine b is not healthy (not to be remediated by MachineSet)"
    );
}

#[test]
fn the_mark_is_taken_off_one_that_recovered() {
    let machine = with_condition(machine("b"), "HealthCheckSucceeded", "True");
    let recovered = with_condition(machine, "OwnerRemediated", "False");
    let decision = World::new(set(1), vec![recovered]).decide();
    assert_eq!(marks(&decision), [("b".to_owned(), None)]);
    assert_eq!(deleted(&decision), [""; 0]);
}

#[test]
fn an_old_set_of_a_deployment_replaces_nothing() {
    let mut world = World::new(set(1), vec![unhealthy("a")]);
    world.set["metadata"]["annotations"]["machinedeployment.clusters.x-k8s.io/revision"] =
        json!("1");
    world.deployment = Some(deployment("2", json!(5)));
    let decision = world.decide();
    assert_eq!(deleted(&decision), [""; 0]);
    assert_eq!(marks(&decision), [("a".to_owned(), Some("CannotBeRemediated".to_owned()))]);
}

#[test]
fn no_more_at_once_than_the_deployment_says() {
    let mut asked_for = unhealthy("c");
    asked_for["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/remediate-machine": "" });
    let mut newer = unhealthy("b");
    newer["metadata"]["creationTimestamp"] = json!("2026-01-01T11:00:00Z");
    let mut world = World::new(set(4), vec![unhealthy("a"), newer, asked_for, machine("d")]);
    world.set["metadata"]["annotations"]["machinedeployment.clusters.x-k8s.io/revision"] =
        json!("2");
    for (limit, expected) in
        [(json!(1), vec!["c"]), (json!("20%"), vec!["c", "b"]), (json!(0), vec![])]
    {
        world.deployment = Some(deployment("2", limit.clone()));
        let decision = world.decide();
        assert_eq!(deleted(&decision), expected, "{limit}");
        assert_eq!(marks(&decision).len(), 3, "the others are told why they wait");
    }
    // One that is going on the word of a health check uses up the place.
    let mut under_way = going(unhealthy("z"));
    let conditions = under_way["status"]["conditions"].as_array_mut().unwrap();
    conditions.last_mut().unwrap()["reason"] = json!("MachineDeleting");
    world.machines.push(under_way);
    world.deployment = Some(deployment("2", json!(1)));
    assert_eq!(deleted(&world.decide()), [""; 0]);
}

#[test]
fn a_machine_that_could_not_be_made_again_is_kept() {
    let mut world = World::new(set(1), vec![unhealthy("a")]);
    world.control_plane = ControlPlane {
        what: Some("Plane ns/cp".to_owned()),
        version: Some("v1.34.0".to_owned()),
        ..ControlPlane::default()
    };
    let decision = world.decide();
    assert_eq!(deleted(&decision), [""; 0]);
    assert_eq!(marks(&decision), [("a".to_owned(), Some("RemediationDeferred".to_owned()))]);
    // The control plane wakes nobody: it is looked at again, and what is waited for is said.
    assert_eq!(decision.recheck, Some("2026-01-01T12:00:15Z".parse().unwrap()));
    assert_eq!(decision.waiting[0].reason, "RemediationDeferred");
    assert!(decision.waiting[0].message.contains("Plane ns/cp is provisioning"), "{decision:?}");
    // Nobody waits where nothing is to be remediated, or where it goes already.
    for machine in [machine("a"), going(unhealthy("a"))] {
        world.machines = vec![machine];
        let decision = world.decide();
        assert_ne!(decision.recheck, Some("2026-01-01T12:00:15Z".parse().unwrap()));
        assert_eq!(decision.waiting, []);
    }
}

/// A scale-down and a remediation at once delete no more than the scale-down alone needs.
#[test]
fn a_remediated_machine_counts_for_the_scale_down() {
    let decision = World::new(set(1), vec![machine("a"), unhealthy("b")]).decide();
    assert_eq!(deleted(&decision), ["b"]);
}
