//! Scripts that are wrong are refused with a place; scripts that are broken say where.

use super::*;

const SMALL: &str = "
title: one machine
world:
  pools: [{name: workers, replicas: 1}]
steps:
  - until: {all: [{machines: {count: 1, phase: Running}}]}
  - settle
";

fn broken(text: &str) -> String {
    parse(text, "a.yaml").expect_err("it is wrong").to_string()
}

#[test]
fn a_script_that_is_wrong_is_refused_with_file_and_line() {
    let unknown_step = broken("title: x\nsteps:\n  - wait: 30s\n  - jump: 3\n");
    assert!(unknown_step.contains("a.yaml") && unknown_step.contains("line 4"), "{unknown_step}");
    let unknown_field = broken("title: x\nwolrd: {}\nsteps: []\n");
    assert!(unknown_field.contains("wolrd") && unknown_field.contains("line 2"), "{unknown_field}");
    let duration = broken("title: x\nsteps:\n  - wait: soon\n");
    assert!(duration.contains("soon") && duration.contains("30s"), "{duration}");
    let count = broken("title: x\nsteps:\n  - expect: [{nodes: {count: some}}]\n");
    assert!(count.contains("at most 3"), "{count}");
}

#[test]
fn the_same_script_plays_the_same_twice() {
    let script = parse(SMALL, "small").expect("it is right");
    let (first, second) = (run(&script, false), run(&script, false));
    assert_eq!(first.violation, None);
    assert_eq!(first.fingerprint, second.fingerprint);
    assert!(first.effects > 0);
}

#[test]
fn what_is_not_as_expected_ends_it_and_names_the_line() {
    let text = format!("{SMALL}  - expect: [{{launches: {{count: 2}}}}]\n");
    let report = run(&parse(&text, "small").expect("it is right"), false);
    let violation = report.violation.expect("there is one instance");
    assert_eq!(violation.id, "EXPECT");
    assert!(violation.words.contains("line 8"), "{}", violation.words);
    assert!(violation.words.contains("launched instances: 1, expected 2"), "{}", violation.words);
    assert!(report.timeline.contains("VIOLATION EXPECT"));
}

#[test]
fn interference_from_outside_lasts_beyond_the_calm() {
    #[derive(Debug, Default)]
    struct CrashAtEach(u64);
    impl Interference for CrashAtEach {
        fn on_effect(&mut self, effect: &crate::effects::Effect) -> crate::effects::EffectFate {
            self.0 += 1;
            if effect.number <= 3 {
                crate::effects::EffectFate::CrashAfter
            } else {
                crate::effects::EffectFate::Pass
            }
        }
    }
    let text = "
title: only the end
world:
  pools: [{name: workers, replicas: 1}]
steps:
  - settle
  - expect: [{starts: {count: 4}}, {launches: {count: 1}}]
";
    let report = run_disturbed(&parse(text, "end").expect("right"), CrashAtEach::default(), false);
    assert_eq!(report.violation, None);
}

/// So many of the catalogue's bugs must be kept away at least.
const REGRESSIONS_MIN: usize = 40;

/// They are played by `machinist-sim check`.
#[test]
fn every_regression_can_be_read_and_says_which_bug_it_keeps_away() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/regressions");
    let paths = crate::exhaustive::scripts_in(&folder).expect("a folder");
    assert!(paths.len() >= REGRESSIONS_MIN, "only {} regressions", paths.len());
    for path in paths {
        let script = load(&path).unwrap_or_else(|error| panic!("{error}"));
        let is_told = |text: &str| !text.trim().is_empty();
        assert!(is_told(&script.reference) && is_told(&script.why), "{}", path.display());
    }
}
