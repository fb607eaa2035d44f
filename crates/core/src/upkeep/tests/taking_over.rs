//! The controllers before us, and the rollout of what is ours.

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

use super::{
    super::{Action, History, Kept, Observed, UpkeepDecision, decide},
    common::{decided, minutes_ago, now, of, stored},
};

fn deployment(replicas: Value, container: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {
            "name": "machine-api-controllers", "namespace": "ns", "uid": "old", "resourceVersion": "5",
        },
        "spec": {
            "replicas": replicas, "selector": {},
            "template": { "spec": { "containers": [{ "name": "nodelink" }, { "name": container }] } },
        },
    }))
    .unwrap()
}

fn taken_over(old: &Deployment, history: &History) -> UpkeepDecision {
    let objects = Vec::new();
    decide(&Observed { objects, old_controllers: Some(old), history }, now())
}

#[test]
fn the_old_controllers_are_scaled_down_once() {
    let scale = Action::ScaleDown { uid: "old".to_owned(), resource_version: "5".to_owned() };
    let table = [
        (deployment(json!(1), "machine-controller"), vec![scale.clone()]),
        (deployment(json!(null), "machine-controller"), vec![scale]),
        (deployment(json!(0), "machine-controller"), vec![]),
        (deployment(json!(1), "something-else"), vec![]),
    ];
    for (old, expected) in table {
        let decision = taken_over(&old, &History::default());
        assert_eq!(decision.actions, expected, "{old:?}");
        assert_eq!(decision.problems, [""; 0]);
    }
    let done = taken_over(&deployment(json!(0), "machine-controller"), &History::default());
    assert_eq!(
        done.note.as_deref(),
        Some("Deployment ns/machine-api-controllers is scaled to 0: this operator does its work")
    );
}

#[test]
fn whoever_scales_them_up_again_is_not_fought_but_told_of() {
    let up_again = |uid: &str| {
        let mut old = deployment(json!(2), "machine-controller");
        old.metadata.uid = Some(uid.to_owned());
        let patch = super::super::scale_down_patch("old");
        assert_eq!(patch["spec"]["replicas"], 0);
        old.metadata.annotations =
            serde_json::from_value(patch["metadata"]["annotations"].clone()).unwrap();
        old
    };
    // Nothing but the object tells a process that starts later.
    let decision = taken_over(&up_again("old"), &History::default());
    assert_eq!(decision.actions, []);
    assert!(decision.problems[0].contains("was scaled up again"), "{:?}", decision.problems);
    let another = taken_over(&up_again("new"), &History::default());
    assert_eq!(
        another.actions.len(),
        1,
        "another one is another matter, with the same annotations"
    );
}

#[test]
fn a_rollout_may_take_a_while_and_then_it_is_bad_news() {
    let kept = Kept::TerminationHandler;
    let with = |generation: i64, status: Value| {
        let mut object = stored(kept);
        object["metadata"]["generation"] = generation.into();
        object["status"] = status;
        object
    };
    let finished = json!({
        "observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3,
        "numberAvailable": 3,
    });
    let table = [
        (with(2, finished.clone()), None),
        (with(2, json!({ "observedGeneration": 2 })), None),
        (with(3, finished), Some("its last change was not seen yet")),
        (with(1, json!({})), Some("its last change was not seen yet")),
        (
            with(
                2,
                json!({
                    "observedGeneration": 2, "desiredNumberScheduled": 3,
                    "updatedNumberScheduled": 1,
                }),
            ),
            Some("1 of 3 pods are of the last change"),
        ),
        (
            with(
                2,
                json!({
                    "observedGeneration": 2, "desiredNumberScheduled": 3,
                    "updatedNumberScheduled": 3, "numberUnavailable": 2,
                }),
            ),
            Some("2 of 3 pods are unavailable"),
        ),
    ];
    for (object, why) in table {
        let words = why.map(|why| {
            format!("DaemonSet machine-api-termination-handler is not rolled out: {why}")
        });
        let words: Vec<String> = words.into_iter().collect();
        let early = decided(vec![of(kept, Some(object.clone()))], &History::default());
        assert_eq!((&early.waiting, early.problems.len()), (&words, 0));
        assert_eq!(early.unfinished_since, why.map(|_| now()));
        let mut history = History::default();
        history.note_rollout(Some(minutes_ago(5)));
        let late = decided(vec![of(kept, Some(object))], &history);
        assert_eq!((&late.problems, late.waiting.len()), (&words, 0));
        assert_eq!(late.unfinished_since, why.map(|_| minutes_ago(5)));
    }
    let missing = decided(vec![of(kept, None)], &History::default());
    assert!(missing.waiting[0].ends_with("it does not exist"), "{:?}", missing.waiting);
}
