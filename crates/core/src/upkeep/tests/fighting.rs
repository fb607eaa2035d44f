//! Who resists, and how that ends.

use serde_json::json;

use super::{
    super::{History, Kept},
    common::{decided, minutes_ago, now, of, stored, wanted},
};

#[test]
fn defaults_that_we_do_not_know_are_not_fought() {
    let kept = Kept::TerminationHandler;
    let mut surprising = stored(kept);
    surprising["spec"]["newField"] = json!("of a newer API server");
    let mut history = History::default();
    assert_eq!(decided(vec![of(kept, Some(surprising.clone()))], &history).actions.len(), 1);
    history.note_written(kept, &wanted(kept), &surprising, now());
    assert_eq!(decided(vec![of(kept, Some(surprising.clone()))], &history).actions, []);
    surprising["spec"]["template"]["spec"]["hostNetwork"] = json!(false);
    let decision = decided(vec![of(kept, Some(surprising))], &history);
    assert_eq!(decision.actions.len(), 1, "another change is");
}

#[test]
fn whoever_undoes_it_again_and_again_is_told_of_and_answered_seldom() {
    let kept = Kept::TerminationCheck;
    let mut history = History::default();
    for minutes in (0..9).rev() {
        let decision = decided(vec![of(kept, None)], &history);
        assert_eq!((decision.actions.len(), decision.problems.len()), (1, 0));
        history.note_written(kept, &wanted(kept), &stored(kept), minutes_ago(minutes));
    }
    assert_eq!(decided(vec![of(kept, None)], &history).actions.len(), 1);
    history.note_written(kept, &wanted(kept), &stored(kept), now());
    let decision = decided(vec![of(kept, None)], &history);
    assert_eq!(decision.actions, []);
    let problem = &decision.problems[0];
    assert!(problem.contains("again and again"), "{problem}");
    // Ten minutes after the first of the last ten.
    assert_eq!(decision.recheck.unwrap(), minutes_ago(-2));
    let other = of(Kept::MutatingWebhooks, None);
    assert_eq!(decided(vec![other], &history).actions.len(), 1, "others are not concerned");
}
