//! Is anything judged while what is seen may be the past?

use serde_json::Value;

use super::*;

fn silent() -> Option<Doubt> {
    Some(Doubt::Nodes("Cluster ns/c1 does not answer".to_owned()))
}

/// Machines that would be remediated at once, were they judged.
fn broken() -> Vec<(&'static str, Value, Looks)> {
    let mut nodeless = machine("a");
    nodeless["status"]["nodeRef"] = Value::Null;
    let mut cut_off = machine("a");
    cut_off["status"]["conditions"] =
        json!([reported("NodeReady", "Unknown", "2026-01-01T11:00:00Z")]);
    vec![
        ("its Node is not well", machine("a"), Looks::BadSince("2026-01-01T11:00:00Z")),
        ("its Node is gone", machine("a"), Looks::Gone),
        ("its Node did not come in time", nodeless, Looks::NotYet),
        ("what we say ourselves of its Node", cut_off, Looks::Silent),
    ]
}

fn world(machine: Value, looks: Looks) -> World {
    let mut world = World::new(vec![(machine, looks)]);
    world.check["spec"]["checks"]["unhealthyMachineConditions"] =
        json!([{ "type": "NodeReady", "status": "Unknown", "timeoutSeconds": 300 }]);
    world
}

#[test]
fn nothing_is_judged_while_the_observer_is_cut_off() {
    for doubt in [silent(), Some(Doubt::Machines)] {
        for (case, machine, looks) in broken() {
            let mut world = world(machine, looks);
            assert_ne!(marks(&world.decide()), [""; 0], "{case}: it is judged without the doubt");
            let told = world.decide().status;
            world.check["status"] = serde_json::to_value(&told).unwrap();
            world.doubt = doubt.clone();
            let decision = world.decide();
            assert_eq!(decision.actions, [], "{case}, {doubt:?}");
            assert_eq!(decision.status, told, "{case}: the numbers stay as they were told");
            assert_eq!(decision.waiting[0].reason, "ObservationDoubtful", "{case}");
            assert_eq!(decision.recheck, Some("2026-01-01T12:00:10Z".parse().unwrap()), "{case}");
        }
    }
}

/// A Node that joined meanwhile is seen, and its Machine does not name it yet.
#[test]
fn nothing_is_judged_before_machines_can_say_what_is_seen_again() {
    for (doubted_at, is_judged) in [("2026-01-01T11:59:01Z", false), ("2026-01-01T11:59:00Z", true)]
    {
        for (case, machine, looks) in broken() {
            let mut world = world(machine, looks);
            world.doubted_at = Some(doubted_at.parse().unwrap());
            let decision = world.decide();
            assert_eq!(!decision.actions.is_empty(), is_judged, "{case}, in doubt at {doubted_at}");
        }
    }
}

#[test]
fn what_a_person_asks_for_is_done_all_the_same() {
    for (case, mut machine, looks) in broken() {
        machine["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/remediate-machine": "" });
        let mut world = world(machine, looks);
        world.doubt = silent();
        let marks = marks(&world.decide());
        let asked = "a OwnerRemediated=False WaitingForRemediation".to_owned();
        assert!(marks.contains(&asked), "{case}: {marks:?}");
    }
}

/// The others count as they were last told, so that one command of many machines is within a share, and many are not.
#[test]
fn the_breaker_counts_commands_against_all_machines_in_doubt() {
    for (commands, is_done) in [(1, true), (2, false)] {
        let names = ["a", "b", "c", "d"];
        let mut world = World::new(names.map(|name| (machine(name), Looks::Silent)).into());
        for (machine, _) in world.machines.iter_mut().take(commands) {
            machine["metadata"]["annotations"] =
                json!({ "cluster.x-k8s.io/remediate-machine": "" });
        }
        world.check["spec"]["remediation"] =
            json!({ "triggerIf": { "unhealthyLessThanOrEqualTo": "40%" } });
        world.doubt = silent();
        let marks = marks(&world.decide());
        let asked = marks.iter().filter(|mark| mark.contains("OwnerRemediated")).count();
        assert_eq!(asked, if is_done { commands } else { 0 }, "{marks:?}");
    }
}

/// Nobody answers yet, so that nobody does says nothing of the first machines of a control plane.
#[test]
fn a_control_plane_that_does_not_come_up_is_judged_before_anything_answers() {
    let mut first = machine("a");
    first["status"]["nodeRef"] = Value::Null;
    first["metadata"]["labels"]["cluster.x-k8s.io/control-plane"] = json!("");
    let mut world = world(first, Looks::NotYet);
    let conditions = world.cluster["status"]["conditions"].as_array_mut().unwrap();
    conditions.retain(|known| known["type"] != "ControlPlaneInitialized");
    world.doubt = silent();
    let marks = marks(&world.decide());
    assert!(marks.contains(&"a HealthCheckSucceeded=False NodeStartupTimeout".to_owned()));
}
