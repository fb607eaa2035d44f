//! What holds whatever the machines look like.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::health::duration::parse;

#[derive(Clone, Copy, Debug)]
enum State {
    Healthy,
    Bad,
    Turning,
    Starting,
    Late,
    Failed,
    Deleting,
    NodeGone,
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        4 => Just(State::Healthy),
        2 => Just(State::Bad),
        1 => Just(State::Turning),
        1 => Just(State::Starting),
        1 => Just(State::Late),
        1 => Just(State::Failed),
        1 => Just(State::Deleting),
        1 => Just(State::NodeGone),
    ]
}

fn scene_of(states: &[State], max: Value, order: &[usize]) -> Scene {
    let mut scene = Scene::new(check(json!({ "maxUnhealthy": max })));
    for (index, state) in states.iter().enumerate() {
        let name = format!("m-{index:03}");
        let (changes, node) = match state {
            State::Healthy => (json!({}), Some(node(&name, "True", 900))),
            State::Bad => (json!({}), Some(node(&name, "False", 900))),
            State::Turning => (json!({}), Some(node(&name, "Unknown", 9))),
            State::Starting => (
                json!({"metadata": {"creationTimestamp": ago(9)}, "status": {"nodeRef": null}}),
                None,
            ),
            State::Late => (json!({"status": {"nodeRef": null}}), None),
            State::Failed => (json!({"status": {"phase": "Failed"}}), None),
            State::Deleting => (
                json!({"metadata": {"deletionTimestamp": ago(9), "finalizers": ["f"]}}),
                Some(node(&name, "False", 900)),
            ),
            State::NodeGone => (json!({}), None),
        };
        scene = scene.with(machine_with(&name, &changes), node);
    }
    let mut shuffled: Vec<_> = scene.machines.drain(..).collect();
    for (index, with) in order.iter().enumerate().take(shuffled.len()) {
        let length = shuffled.len();
        shuffled.swap(index, with % length);
    }
    scene.machines = shuffled;
    scene
}

fn maximum() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..30_i32).prop_map(|number| json!(number)),
        (0..=100_u32).prop_map(|percent| json!(format!("{percent}%"))),
    ]
}

proptest! {
    #[test]
    fn remediation_never_exceeds_what_is_allowed_and_touches_only_the_broken(
        states in proptest::collection::vec(state(), 0..30),
        max in maximum(),
        order in proptest::collection::vec(any::<usize>(), 30),
    ) {
        let scene = scene_of(&states, max.clone(), &order);
        let answer = scene.decide();
        let counted = states.iter().filter(|state| !matches!(state, State::Starting)).count();
        let healthy = states.iter().filter(|state| matches!(state, State::Healthy)).count();
        let most = match &max {
            Value::String(text) => {
                text.trim_end_matches('%').parse::<usize>().unwrap() * counted / 100
            }
            number => usize::try_from(number.as_i64().unwrap()).unwrap(),
        };
        let gone = deleted(&answer);
        if counted - healthy > most {
            prop_assert!(gone.is_empty());
        }
        prop_assert!(gone.len() <= most);
        for name in gone {
            let index: usize = name.trim_start_matches("m-").parse().unwrap();
            prop_assert!(matches!(states[index], State::Bad | State::Late | State::Failed), "{name}");
        }
        prop_assert!(answer.decision.recheck.is_none_or(|at| at > now()), "no hot loop");
    }

    #[test]
    fn the_order_of_the_machines_does_not_matter_and_a_second_look_says_nothing_new(
        states in proptest::collection::vec(state(), 0..20),
        max in maximum(),
        order in proptest::collection::vec(any::<usize>(), 20),
    ) {
        let mut scene = scene_of(&states, max.clone(), &[]);
        let answer = scene.decide();
        prop_assert_eq!(&scene_of(&states, max, &order).decide(), &answer);
        let actions = answer.decision.actions.clone();
        scene.publish(answer);
        let again = scene.decide();
        prop_assert_eq!(Some(&again.decision.status), scene.check.status.as_ref());
        prop_assert!(again.decision.announcements.is_empty());
        prop_assert!(again.machine_events.is_empty());
        prop_assert_eq!(again.decision.actions, actions, "what was not done is still to be done");
    }

    #[test]
    fn no_duration_panics(text in "[0-9.nuµmsh -]{0,40}", any in ".{0,20}") {
        for text in [text, any] {
            if let Some(duration) = parse(&text) {
                prop_assert!(!duration.is_negative());
            }
        }
    }
}
