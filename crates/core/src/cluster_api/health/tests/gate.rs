//! When does the disruption gate keep an unhealthy machine in its place?

use super::*;

const LONG_AGO: &str = "2026-01-01T11:00:00Z";

/// A set of so many machines, so many of them with a Node that is gone silent.
fn pool(total: usize, broken: usize, annotations: Value) -> World {
    let machines = (0..total).map(|number| {
        let mut machine = machine(&format!("m{number:02}"));
        machine["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "ms", "uid": "uid-ms",
            "controller": true,
        }]);
        machine["status"]["phase"] = json!("Running");
        let looks = if number < broken { Looks::BadSince(LONG_AGO) } else { Looks::Well };
        (machine, looks)
    });
    let mut world = World::new(machines.collect());
    world.sets = vec![json!({
        "metadata": { "name": "ms", "namespace": "ns", "uid": "uid-ms", "annotations": annotations },
        "spec": { "clusterName": "c1", "replicas": total, "selector": {}, "template": {} },
    })];
    world
}

fn trigger(mut world: World, most: Value) -> World {
    world.check["spec"]["remediation"] =
        json!({ "triggerIf": { "unhealthyLessThanOrEqualTo": most } });
    world
}

fn asked(decision: &HealthDecision) -> usize {
    marks(decision).iter().filter(|mark| mark.contains("OwnerRemediated")).count()
}

fn allowed(decision: &HealthDecision) -> (String, String, String) {
    let known = condition::find(&decision.status.conditions, "RemediationAllowed").unwrap();
    (known.status.clone(), known.reason.clone(), known.message.clone())
}

#[test]
fn without_a_chosen_share_the_gates_own_holds() {
    // (unhealthyLessThanOrEqualTo, machines, broken, owners asked)
    for (most, total, broken, expected) in [
        (json!("100%"), 20, 8, 8),
        (json!("100%"), 20, 9, 0),
        (json!("99%"), 20, 9, 9),
        (json!(9), 20, 9, 9),
        (json!("100%"), 1, 1, 1),
    ] {
        let decision = trigger(pool(total, broken, json!({})), most.clone()).decide();
        assert_eq!(asked(&decision), expected, "{most}: {broken} of {total}");
    }
}

#[test]
fn what_the_gate_holds_is_said_and_asked_again() {
    let decision = pool(20, 9, json!({})).decide();
    let (status, reason, message) = allowed(&decision);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "DisruptionHeld"));
    assert!(message.contains("9 of 20 machines of pool ns/ms"), "{message}");
    assert!(message.ends_with("; and 8 more"), "{message}");
    assert_eq!(decision.status.remediations_allowed, Some(0));
    assert_eq!(decision.waiting[0].reason, "DisruptionHeld");
    assert_eq!(decision.recheck, Some("2026-01-01T12:00:30Z".parse().unwrap()));
    let told = marks(&decision).iter().filter(|mark| mark.contains("Succeeded=False")).count();
    assert_eq!(told, 9, "how they are is said all the same");
}

#[test]
fn the_pools_own_share_and_a_persons_approval_decide() {
    for (annotations, expected) in [
        (json!({ "machinist.dev/max-disrupted": "2" }), 0),
        (json!({ "machinist.dev/max-disrupted": "3" }), 3),
        (json!({ "machinist.dev/max-disrupted": "some" }), 0),
        (
            json!({ "machinist.dev/max-disrupted": "2",
                    "machinist.dev/approved-until": "2026-01-01T12:30:00Z" }),
            3,
        ),
        (
            json!({ "machinist.dev/max-disrupted": "2",
                    "machinist.dev/approved-until": "2026-01-01T11:30:00Z" }),
            0,
        ),
    ] {
        let decision = trigger(pool(10, 3, annotations.clone()), json!("90%")).decide();
        assert_eq!(asked(&decision), expected, "{annotations}");
    }
}

/// Nodes that are ready, of machines that are bad by a condition: the gate would count them all as working.
#[test]
fn machines_that_still_work_are_counted_one_after_another() {
    let mut world = pool(10, 0, json!({}));
    for (machine, _) in world.machines.iter_mut().take(6) {
        machine["status"]["conditions"] =
            json!([reported("InfrastructureReady", "False", "2026-01-01T08:00:00Z")]);
    }
    assert_eq!(asked(&world.decide()), 4, "40% of ten");
    // Two of them are being replaced already: two more may be.
    for (machine, _) in world.machines.iter_mut().take(2) {
        let conditions = machine["status"]["conditions"].as_array_mut().unwrap();
        conditions.push(reported("OwnerRemediated", "False", LONG_AGO));
    }
    assert_eq!(asked(&world.decide()), 4);
}

#[test]
fn one_on_hold_stays_and_one_that_a_person_marks_goes() {
    let mut world = pool(10, 2, json!({}));
    world.machines[0].0["metadata"]["annotations"] = json!({ "machinist.dev/hold": "looked at" });
    let decision = world.decide();
    assert_eq!(asked(&decision), 1);
    assert!(allowed(&decision).2.contains("m00 is on hold: looked at"), "{decision:?}");
    let mut world = pool(10, 9, json!({}));
    world.machines[9].0["metadata"]["annotations"] =
        json!({ "cluster.x-k8s.io/remediate-machine": "" });
    let decision = world.decide();
    let marks = marks(&decision);
    let asked: Vec<_> = marks.iter().filter(|mark| mark.contains("OwnerRemediated")).collect();
    assert_eq!(asked, ["m09 OwnerRemediated=False WaitingForRemediation"]);
}
