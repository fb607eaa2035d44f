//! Does the story of a machine say what a person at night needs to know?

use serde_json::json;

use super::*;
use crate::testing::{berlin, fleet, golden, longest_line, now};

fn told(what: &str, snapshot: &Snapshot, width: usize) -> String {
    let target = Target::read(&[what.to_owned()]).unwrap();
    let zone = berlin();
    let layout = render::Layout { zone: &zone, width, now: now() };
    with_plan(snapshot, &[], now(), |picture| match target.kind {
        Kind::Machine => {
            render::machine(&machine(&target.name, snapshot, picture).unwrap(), &layout)
        }
        Kind::Node => {
            let name = machine_of_node(&target.name, snapshot, picture).unwrap();
            render::machine(&machine(&name, snapshot, picture).unwrap(), &layout)
        }
        Kind::Pool => {
            let set =
                snapshot.sets.iter().find(|one| one.metadata.name.as_ref() == Some(&target.name));
            render::pool(&pool::story(set.unwrap(), picture), &layout)
        }
    })
}

#[tokio::test]
async fn one_that_is_under_way_one_that_waits_for_a_person_and_one_that_cannot_be_drained() {
    let snapshot = fleet().await;
    golden("explain-under-way.txt", &told("machine/worker-b-2", &snapshot, 80));
    golden("explain-blocked.txt", &told("worker-a-2", &snapshot, 80));
    golden("explain-drain.txt", &told("node/node-worker-b-3", &snapshot, 80));
    golden("explain-pool.txt", &told("machineset/worker-b", &snapshot, 80));
}

#[tokio::test]
async fn a_member_of_the_control_plane_says_what_is_wrong_with_it() {
    let mut snapshot = fleet().await;
    golden("explain-control-plane.txt", &told("machine/master-0", &snapshot, 80));
    let text = told("machine/master-2", &snapshot, 80);
    assert!(text.contains("node node-master-2 of the control plane is not ready"), "{text}");
    snapshot.nodes.iter_mut().for_each(|node| {
        let conditions = node.status.as_mut().and_then(|status| status.conditions.as_mut());
        conditions.unwrap()[0].status = "True".to_owned();
    });
    let text = told("machine/master-2", &snapshot, 80);
    assert!(text.contains("etcd on node node-master-2 is not ready"), "{text}");
    snapshot.pods.retain(|pod| pod.metadata.name.as_deref() != Some("etcd-node-master-2"));
    let text = told("machine/master-2", &snapshot, 80);
    assert!(text.contains("node node-master-2 is no member of etcd"), "{text}");
    snapshot.nodes.retain(|node| node.metadata.name.as_deref() != Some("node-master-2"));
    let text = told("machine/master-2", &snapshot, 80);
    assert!(text.contains("machine master-2 of the control plane has no node"), "{text}");
}

#[tokio::test]
async fn drift_hold_pause_hooks_and_conditions_are_told() {
    let mut snapshot = fleet().await;
    let machine = snapshot
        .machines
        .iter_mut()
        .find(|one| one.metadata.name.as_deref() == Some("worker-a-1"))
        .unwrap();
    let mut object = serde_json::to_value(&*machine).unwrap();
    object["metadata"]["annotations"] = json!({
        "machinist.dev/hold": "being debugged",
        "machinist.dev/maintenance-paused": "batch job (by anna at 2026-11-01T09:00:00Z)",
    });
    object["spec"]["lifecycleHooks"] = json!({ "preDrain": [{ "name": "Backup", "owner": "me" }] });
    object["status"]["providerStatus"]["drift"] = json!({
        "class": "StoppedByUser", "since": "2026-11-02T09:50:00Z",
        "response": "it is started at 2026-11-02T09:55:00Z", "attempts": 1, "failure": "no capacity",
    });
    object["status"]["conditions"] = json!([{
        "type": "InstanceRunning", "status": "False", "reason": "DisruptionHeld",
        "message": "2 of 3 machines of pool worker-a are out of work",
        "lastTransitionTime": "2026-11-02T09:50:00Z",
    }]);
    *machine = serde_json::from_value(object).unwrap();
    let text = told("worker-a-1", &snapshot, 80);
    golden("explain-drift.txt", &text);
    let text = told("worker-a-1", &snapshot, 400);
    for words in [
        "machinist approve machine/worker-a-1, once it is clear that the pool bears it",
        "machinist maintenance resume --machine worker-a-1",
        "kubectl annotate machine worker-a-1 -n openshift-machine-api",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[tokio::test]
async fn the_story_of_a_well_machine_is_short() {
    let mut snapshot = fleet().await;
    snapshot.maintenances.clear();
    let text = told("worker-a-1", &snapshot, 80);
    assert!(text.contains("Maintenance: none is needed"), "{text}");
    assert!(!text.contains("What would help"), "{text}");
}

#[tokio::test]
async fn programs_get_the_same_story() {
    let snapshot = fleet().await;
    let zone = berlin();
    let target = Target::read(&["worker-a-2".to_owned()]).unwrap();
    let json = with_plan(&snapshot, &[], now(), |picture| {
        text(&target, &snapshot, picture, Document::Json, &zone).unwrap()
    });
    let story: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(story["phase"], "Running");
    assert_eq!(story["maintenance"]["waits"][1]["reason"], "ApprovalMissing");
    assert_eq!(story["maintenance"]["plan"]["isLate"], true);
    assert_eq!(story["help"][1], "machinist approve machine/worker-a-2");
}

#[tokio::test]
async fn who_is_not_there_is_named() {
    let snapshot = fleet().await;
    let zone = berlin();
    for (what, message) in [
        ("machine/x", "there is no machine x in namespace openshift-machine-api"),
        ("machineset/x", "there is no machineset x in namespace openshift-machine-api"),
        ("node/x", "there is no node x"),
    ] {
        let target = Target::read(&[what.to_owned()]).unwrap();
        let error = with_plan(&snapshot, &[], now(), |picture| {
            text(&target, &snapshot, picture, Document::Text, &zone).unwrap_err()
        });
        assert_eq!(error.to_string(), message);
    }
}

#[tokio::test]
async fn no_line_is_longer_than_the_terminal() {
    let snapshot = fleet().await;
    for width in 40..100 {
        for what in ["worker-b-2", "worker-a-2", "master-2", "machineset/worker-b"] {
            let (length, line) = longest_line(&told(what, &snapshot, width));
            assert!(length <= width, "{width}: {line}");
        }
    }
}
