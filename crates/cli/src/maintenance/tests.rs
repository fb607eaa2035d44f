//! Is a pause written where core looks for it, and is it known who paused?

use machinist_core::{
    maintenance::plan::Standing,
    overview::wish::{Change, Refusal},
};
use serde_json::{Value, json};

use super::*;
use crate::{
    args::Document,
    failure,
    fleet::with_plan,
    testing::{berlin, fleet, golden, now},
};

fn signature() -> Signature {
    Signature { by: "anna".to_owned(), at: now() }
}

fn decide(
    wish: &Wish,
    place: &Place,
    snapshot: &Snapshot,
    signature: &Signature,
) -> Result<Change, Refusal> {
    pause::decide(wish, place, &snapshot.objects(), signature)
}

fn pause(reason: &str) -> Wish {
    Wish::Pause { reason: reason.to_owned() }
}

fn places() -> Vec<Place> {
    vec![
        Place::Cluster,
        Place::Machine("worker-a-1".to_owned()),
        Place::Pool("worker-a".to_owned()),
        Place::Policy("nights".to_owned()),
    ]
}

/// Does to an object what the API server does with a merge patch.
fn merge(object: &mut Value, patch: &Value) {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    object.remove(key);
                } else if value.is_object() {
                    merge(object.entry(key).or_insert_with(|| json!({})), value);
                } else {
                    object.insert(key.clone(), value.clone());
                }
            }
        }
        (object, patch) => *object = patch.clone(),
    }
}

fn patched<T: serde::Serialize + serde::de::DeserializeOwned>(object: &mut T, patch: &Value) {
    let mut value = serde_json::to_value(&*object).unwrap();
    merge(&mut value, patch);
    *object = serde_json::from_value(value).unwrap();
}

fn apply(snapshot: &mut Snapshot, place: &Place, patch: &Value) {
    let is = |name: &Option<String>, wanted: &String| name.as_ref() == Some(wanted);
    match place {
        Place::Cluster => patched(snapshot.home.as_mut().unwrap(), patch),
        Place::Machine(name) => {
            let mut machines = snapshot.machines.iter_mut();
            patched(machines.find(|one| is(&one.metadata.name, name)).unwrap(), patch);
        }
        Place::Pool(name) => {
            let mut sets = snapshot.sets.iter_mut();
            patched(sets.find(|one| is(&one.metadata.name, name)).unwrap(), patch);
        }
        Place::Policy(name) => {
            let mut policies = snapshot.policies.iter_mut();
            patched(policies.find(|one| is(&one.metadata.name, name)).unwrap(), patch);
        }
    }
}

#[tokio::test]
async fn a_pause_holds_and_its_end_ends_it() {
    for place in places() {
        let mut snapshot = fleet().await;
        let change = decide(&pause("release day"), &place, &snapshot, &signature()).unwrap();
        assert_eq!(
            change.sentence,
            format!(
                "maintenance of {} is paused: release day (by anna at 2026-11-02T10:00:00Z); what \
                 was begun is finished",
                place.title()
            )
        );
        apply(&mut snapshot, &place, &change.write.unwrap().patch);
        with_plan(&snapshot, &[], now(), |picture| {
            let entry = picture.plan.entry("worker-a-1").unwrap();
            assert_eq!(entry.standing, Standing::Blocked, "{place:?}");
            let message = &entry.waits_on[0].message;
            assert!(message.contains("release day (by anna at"), "{place:?}: {message}");
        });
        let again = decide(&pause(""), &place, &snapshot, &signature()).unwrap_err().to_string();
        assert!(again.contains("is paused already: release day (by anna"), "{again}");

        let change = decide(&Wish::Resume, &place, &snapshot, &signature()).unwrap();
        assert!(
            change
                .sentence
                .ends_with("it was paused: release day (by anna at 2026-11-02T10:00:00Z)")
        );
        apply(&mut snapshot, &place, &change.write.unwrap().patch);
        with_plan(&snapshot, &[], now(), |picture| {
            let entry = picture.plan.entry("worker-a-1").unwrap();
            assert_eq!(entry.standing, Standing::Planned, "{place:?}");
        });
        let change = decide(&Wish::Resume, &place, &snapshot, &signature()).unwrap();
        assert!(change.write.is_none());
        assert_eq!(change.sentence, format!("maintenance of {} is not paused", place.title()));
    }
}

#[tokio::test]
async fn pauses_that_stay_are_named() {
    let mut snapshot = fleet().await;
    let pool = Place::Pool("worker-b".to_owned());
    let change = decide(&pause(""), &pool, &snapshot, &signature()).unwrap();
    apply(&mut snapshot, &pool, &change.write.unwrap().patch);
    assert_eq!(
        others(&Place::Cluster, &snapshot),
        ["maintenance of pool worker-b is paused as well: by anna at 2026-11-02T10:00:00Z"]
    );
    assert!(others(&pool, &snapshot).is_empty());
}

#[tokio::test]
async fn what_is_not_there_cannot_be_paused() {
    let mut snapshot = fleet().await;
    snapshot.home = None;
    for (place, message) in [
        (Place::Cluster, "there is no namespace openshift-machine-api"),
        (
            Place::Machine("x".to_owned()),
            "there is no machine x in namespace openshift-machine-api",
        ),
        (
            Place::Pool("x".to_owned()),
            "there is no machineset x in namespace openshift-machine-api",
        ),
        (Place::Policy("x".to_owned()), "there is no maintenancepolicy x"),
    ] {
        let error = decide(&pause(""), &place, &snapshot, &signature()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[tokio::test]
async fn a_patch_is_for_the_object_that_was_looked_at() {
    let snapshot = fleet().await;
    for place in places() {
        let change = decide(&pause("x"), &place, &snapshot, &signature()).unwrap();
        let patch = change.write.unwrap().patch;
        assert!(patch["metadata"]["uid"].as_str().unwrap().starts_with("uid-"), "{patch}");
    }
}

#[tokio::test]
async fn a_reason_is_one_line_and_not_too_long() {
    let snapshot = fleet().await;
    let paused = |reason: &str| decide(&pause(reason), &Place::Cluster, &snapshot, &signature());
    let sentence = paused(" two\nlines ").unwrap().sentence;
    assert!(sentence.contains("two lines (by anna at 2026-11-02T10:00:00Z)"), "{sentence}");
    assert!(paused(&"x".repeat(2000)).is_err());
}

#[tokio::test]
async fn pauses_and_their_ends_read_as_they_always_did() {
    let mut snapshot = fleet().await;
    let mut text = String::new();
    let mut say = |words: &str, wish: &Wish, place: &Place, effect: Effect, output: Document| {
        let answer = match decide(wish, place, &snapshot, &signature()) {
            Ok(change) => {
                let done = Done::of(&change, effect, others(place, &snapshot));
                if let Some(write) = change.write.filter(|_| effect == Effect::Real) {
                    apply(&mut snapshot, place, &write.patch);
                }
                done.text(output, &berlin(), now()).unwrap()
            }
            Err(refusal) => failure::text(&Hinted::refused(refusal, &berlin(), now()).into()),
        };
        text.push_str(&format!("$ machinist maintenance {words}\n{answer}\n"));
    };
    let pool = Place::Pool("worker-b".to_owned());
    let machine = Place::Machine("worker-a-1".to_owned());
    let policy = Place::Policy("nights".to_owned());
    let nobody = Place::Machine("nobody".to_owned());
    let (real, dry) = (Effect::Real, Effect::DryRun);
    say("pause --pool worker-b", &pause(""), &pool, real, Document::Text);
    let why = "pause --reason 'release day'";
    say(&format!("{why} --dry-run"), &pause("release day"), &Place::Cluster, dry, Document::Text);
    say(why, &pause("release day"), &Place::Cluster, real, Document::Text);
    say(why, &pause("release day"), &Place::Cluster, real, Document::Text);
    say("pause --policy nights -o json", &pause(""), &policy, real, Document::Json);
    say("pause --machine worker-a-1 -o yaml", &pause(""), &machine, real, Document::Yaml);
    say("pause --machine nobody", &pause(""), &nobody, real, Document::Text);
    say("resume", &Wish::Resume, &Place::Cluster, real, Document::Text);
    say("resume", &Wish::Resume, &Place::Cluster, real, Document::Text);
    say("resume -o json", &Wish::Resume, &Place::Cluster, real, Document::Json);
    say("resume --pool worker-b -o name", &Wish::Resume, &pool, real, Document::Name);
    golden("../changes/maintenance.txt", &text);
}
