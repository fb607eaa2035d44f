//! Does a person see at a glance what happened, what was done, and what is theirs to decide?

use proptest::prelude::*;

use super::*;
use crate::testing::{berlin, golden, happened, longest_line, now};

fn shown(
    snapshot: &Snapshot,
    what: &[&str],
    open: bool,
    output: Output,
    width: Option<usize>,
) -> String {
    let zone = berlin();
    let layout = Layout { zone: &zone, width, is_wide: output == Output::Wide };
    let words: Vec<String> = what.iter().map(|word| (*word).to_owned()).collect();
    let target = (!words.is_empty()).then(|| Target::read(&words).unwrap());
    let report = report(snapshot, target.as_ref(), open, now()).unwrap();
    text(&report, output, Notation::Indented, &layout).unwrap()
}

#[tokio::test]
async fn a_terminal_shows_cause_deeds_and_what_follows_below_each() {
    let snapshot = happened().await;
    golden("../seeing/drift.txt", &shown(&snapshot, &[], false, Output::Table, Some(80)));
    golden("../seeing/drift-piped.txt", &shown(&snapshot, &[], false, Output::Table, None));
}

#[tokio::test]
async fn programs_get_names_that_never_change() {
    let snapshot = happened().await;
    let text = shown(&snapshot, &[], false, Output::Json, None);
    golden("../seeing/drift.json", &text);
    let yaml = shown(&snapshot, &[], false, Output::Yaml, None);
    let same: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(same, serde_json::from_str::<serde_json::Value>(&text).unwrap());
    let names = shown(&snapshot, &[], false, Output::Name, None);
    let expected: Vec<String> =
        (1..=5).map(|number| format!("machine.machine.openshift.io/worker-{number}")).collect();
    assert_eq!(names.lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn one_machine_one_pool_or_only_what_is_open() {
    let snapshot = happened().await;
    let one = shown(&snapshot, &["worker-2"], false, Output::Table, Some(80));
    assert!(one.contains("2 incidents: 2 over"), "{one}");
    let node = shown(&snapshot, &["node/node-1"], false, Output::Table, Some(80));
    assert!(node.contains("worker-1") && node.contains("1 incident: 1 open"), "{node}");
    let pool = shown(&snapshot, &["machineset", "workers"], true, Output::Table, Some(80));
    assert!(pool.contains("3 incidents: 1 for you to decide, 2 open"), "{pool}");
    for what in [["node/nobody"], ["machineset/nobody"]] {
        let words: Vec<String> = what.iter().map(|word| (*word).to_owned()).collect();
        let target = Target::read(&words).unwrap();
        assert!(report(&snapshot, Some(&target), false, now()).is_err(), "{what:?}");
    }
}

#[tokio::test]
async fn a_fleet_to_which_nothing_happened_says_so() {
    let mut snapshot = happened().await;
    snapshot.events.clear();
    let text = shown(&snapshot, &["worker-2"], false, Output::Table, Some(80));
    assert!(text.contains("Nothing happened that is not over and forgotten (1 machine"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn no_line_is_longer_than_the_terminal(width in 60usize..140, suffix in "[a-z0-9-]{0,40}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut snapshot = runtime.block_on(happened());
        for machine in &mut snapshot.machines {
            machine.metadata.name = machine.metadata.name.take().map(|name| name + &suffix);
        }
        let text = shown(&snapshot, &[], false, Output::Table, Some(width));
        let (length, line) = longest_line(&text);
        prop_assert!(length <= width, "{width}: {line:?}");
    }
}
