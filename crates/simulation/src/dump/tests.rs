//! Does a dump come to life, and does what had happened go on?

use std::{path::PathBuf, time::Duration};

use super::*;

fn dump(name: &str) -> Dump {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
    Dump::load(&path).unwrap()
}

/// A worker was stopped, another is to be retired on Saturday, one is on hold; a budget is tight.
#[test]
fn a_fleet_goes_on_where_it_was_and_every_promise_is_kept() {
    let dump = dump("fleet-dump.yaml");
    let how = Replay { seed: 1, lasting: Duration::from_secs(14 * 3600), to_rest: true };
    let report = dump.replay(&how, true);
    assert!(report.violation.is_none(), "{:?}\n{}", report.violation, report.timeline);
    for words in [
        "was stopped by a user",
        "instance-retirement for",
        // The stopped one is started again after its grace period.
        "StartInstances",
        // The other is replaced in its window, and the pool keeps its size.
        "TerminateInstances",
    ] {
        assert!(report.timeline.contains(words), "{words}: {}", report.timeline);
    }
    assert_eq!(dump.replay(&how, true).fingerprint, report.fingerprint, "the same each time");
}

#[test]
fn what_is_no_dump_is_named() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let nothing = Dump::load(&folder.join("testdata/nothing.yaml")).unwrap_err();
    assert!(nothing.to_string().starts_with("cannot read"), "{nothing}");
    let other = Dump::load(&folder.join("Cargo.toml")).unwrap_err();
    assert!(other.to_string().contains("is no dump of `machinist dump`"), "{other}");
}

#[test]
fn budgets_let_as_many_go_as_the_disruption_controller() {
    for (spec, pods, expected) in [
        (serde_json::json!({ "maxUnavailable": 1 }), 3, 1),
        (serde_json::json!({ "maxUnavailable": "30%" }), 4, 2),
        (serde_json::json!({ "minAvailable": 3 }), 3, 0),
        (serde_json::json!({ "minAvailable": "50%" }), 3, 1),
        (serde_json::json!({ "minAvailable": 5 }), 3, 0),
    ] {
        let budget = serde_json::json!({ "spec": spec });
        assert_eq!(most_away(&budget, pods), expected, "{budget}");
    }
}
