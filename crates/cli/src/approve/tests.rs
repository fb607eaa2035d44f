//! Is what waits for a person approved, and nothing else?

use machinist_core::{maintenance::plan::Standing, overview::wish::Object};
use serde_json::json;

use super::*;
use crate::{
    args::Document,
    failure,
    snapshot::Snapshot,
    testing::{at, berlin, fleet, golden, now},
};

fn decided(what: &str, any_reason: bool, snapshot: &Snapshot) -> anyhow::Result<Change> {
    let target = Target::read(&[what.to_owned()]).unwrap();
    let how = How { any_reason, until: at("2026-11-02T11:00:00Z") };
    with_plan(snapshot, &[], now(), |picture| decide(&target, how, picture, &berlin()))
}

const APPROVED: &str = "machinist.dev/maintenance-approved";

fn value(write: &Write, key: &str) -> String {
    write.patch["metadata"]["annotations"][key].as_str().unwrap().to_owned()
}

fn set_condition(snapshot: &mut Snapshot, machine: &str, reason: &str) {
    let found = snapshot.machines.iter_mut().find(|one| name_of(one) == machine).unwrap();
    let mut object = serde_json::to_value(&*found).unwrap();
    object["status"]["conditions"] = json!([{
        "type": "InstanceRunning", "status": "False", "reason": reason,
        "lastTransitionTime": "2026-11-02T09:50:00Z",
    }]);
    *found = serde_json::from_value(object).unwrap();
}

#[tokio::test]
async fn a_maintenance_is_approved_for_the_reason_it_has() {
    let snapshot = fleet().await;
    for what in ["worker-a-2", "machine/worker-a-2", "node/node-worker-a-2"] {
        let approval = decided(what, false, &snapshot).unwrap();
        let write = approval.write.unwrap();
        assert_eq!(
            write,
            Write {
                on: Object::Maintenance,
                namespace: "openshift-machine-api".to_owned(),
                name: "mm-worker-a-2".to_owned(),
                patch: json!({ "metadata": {
                    "uid": "uid-mm-worker-a-2",
                    "annotations": { APPROVED: "instance-event-0a2" },
                } }),
            }
        );
        assert_eq!(
            approval.sentence,
            "machine/worker-a-2: its maintenance is approved for event instance-reboot \
             (instance-event-0a2)"
        );
    }
    let approval = decided("worker-a-2", true, &snapshot).unwrap();
    assert_eq!(value(&approval.write.unwrap(), APPROVED), "true");
}

#[tokio::test]
async fn what_is_written_is_what_core_takes_for_an_approval() {
    let mut snapshot = fleet().await;
    for any_reason in [false, true] {
        let write = decided("worker-a-2", any_reason, &snapshot).unwrap().write.unwrap();
        let found = snapshot
            .maintenances
            .iter_mut()
            .find(|one| one.metadata.name.as_ref() == Some(&write.name))
            .unwrap();
        let annotations = found.metadata.annotations.get_or_insert_default();
        annotations.insert(APPROVED.to_owned(), value(&write, APPROVED));
        with_plan(&snapshot, &[], now(), |picture| {
            let entry = picture.plan.entry("worker-a-2").unwrap();
            assert_eq!(entry.standing, Standing::Planned, "{entry:?}");
        });
        let again = decided("worker-a-2", false, &snapshot).unwrap();
        assert_eq!(again.write, None);
        assert!(again.sentence.contains("approved already"), "{}", again.sentence);
        let found = snapshot
            .maintenances
            .iter_mut()
            .find(|one| one.metadata.name.as_deref() == Some("mm-worker-a-2"))
            .unwrap();
        found.metadata.annotations.as_mut().unwrap().remove(APPROVED);
    }
}

#[tokio::test]
async fn where_nothing_waits_for_a_person_nothing_is_written() {
    let snapshot = fleet().await;
    for (what, message) in [
        ("worker-a-1", "machine worker-a-1 does not wait for an approval: "),
        ("worker-b-3", "machine worker-b-3 does not wait for an approval: "),
        ("master-1", "machine master-1 needs no maintenance, so there is nothing to approve"),
        ("nobody", "there is no machine nobody in namespace openshift-machine-api"),
        ("node/nobody", "no machine has the node nobody"),
        ("machineset/worker-a", "nothing of machineset worker-a is held by the disruption gate"),
        ("machineset/nobody", "there is no machineset nobody in namespace"),
    ] {
        let error = decided(what, false, &snapshot).unwrap_err().to_string();
        assert!(error.starts_with(message), "{what}: {error}");
    }
    let approval = decided("worker-b-2", false, &snapshot).unwrap();
    assert_eq!(approval.write, None);
    assert_eq!(
        approval.sentence,
        "machine/worker-b-2: its maintenance is under way already (Draining)"
    );
}

#[tokio::test]
async fn without_a_record_there_is_nothing_to_write_on() {
    let mut snapshot = fleet().await;
    snapshot.policies[0].spec.approval = Some(machinist_api::maintenance_policy::Approval::Manual);
    let error = decided("worker-b-1", false, &snapshot).unwrap_err();
    assert_eq!(
        error.to_string(),
        "machine worker-b-1 has no MachineMaintenance yet, on which it could be approved"
    );
}

#[tokio::test]
async fn what_the_gate_holds_is_approved_for_a_time() {
    let mut snapshot = fleet().await;
    set_condition(&mut snapshot, "worker-a-1", "DisruptionHeld");
    for (what, on, name) in [
        ("machine/worker-a-1", Object::Machine, "worker-a-1"),
        ("machineset/worker-a", Object::Pool, "worker-a"),
    ] {
        let write = decided(what, false, &snapshot).unwrap().write.unwrap();
        assert_eq!((write.on, write.name.as_str()), (on, name));
        assert_eq!(value(&write, "machinist.dev/approved-until"), "2026-11-02T11:00:00Z");
    }
    assert!(decided("machineset/worker-b", false, &snapshot).is_err());
}

#[test]
fn for_how_long_is_a_duration() {
    assert_eq!(until("90m", now()).unwrap(), at("2026-11-02T11:30:00Z"));
    for text in ["", "soon", "-1h", "0s"] {
        assert!(until(text, now()).is_err(), "{text}");
    }
}

/// What stands on the screen: the answer, or the refusal with its advice.
fn printed(
    what: &str,
    any_reason: bool,
    effect: Effect,
    output: Document,
    snapshot: &Snapshot,
) -> String {
    match decided(what, any_reason, snapshot) {
        Ok(change) => Done::of(&change, effect, Vec::new()).text(output, &berlin(), now()).unwrap(),
        Err(error) => failure::text(&error),
    }
}

#[tokio::test]
async fn approvals_read_as_they_always_did() {
    let mut snapshot = fleet().await;
    set_condition(&mut snapshot, "worker-a-1", "DisruptionHeld");
    let mut text = String::new();
    for (words, what, any_reason, effect) in [
        ("worker-a-2", "worker-a-2", false, Effect::Real),
        ("worker-a-2 --any-reason", "worker-a-2", true, Effect::Real),
        ("node/node-worker-a-2 --dry-run", "node/node-worker-a-2", false, Effect::DryRun),
        ("machineset/worker-a", "machineset/worker-a", false, Effect::Real),
        ("worker-b-2", "worker-b-2", false, Effect::Real),
        ("worker-b-3", "worker-b-3", false, Effect::Real),
        ("master-1", "master-1", false, Effect::Real),
        ("machineset/worker-b", "machineset/worker-b", false, Effect::Real),
        ("nobody", "nobody", false, Effect::Real),
        ("node/nobody", "node/nobody", false, Effect::Real),
    ] {
        let answer = printed(what, any_reason, effect, Document::Text, &snapshot);
        text.push_str(&format!("$ machinist approve {words}\n{answer}\n"));
    }
    for output in [Document::Json, Document::Yaml, Document::Name] {
        for what in ["worker-a-2", "worker-b-2"] {
            let answer = printed(what, false, Effect::Real, output, &snapshot);
            let word = format!("{output:?}").to_lowercase();
            text.push_str(&format!("$ machinist approve {what} -o {word}\n{answer}\n"));
        }
    }
    golden("../changes/approve.txt", &text);
}
