//! Tables of what the metadata service may answer, and what its Node says then.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use machinist_api::names::annotation::SCHEDULED_EVENTS;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{reading::*, *};

const ANNOUNCED: &str = r#"[
    {"NotBefore": "21 Jan 2026 09:00:43 GMT", "Code": "system-reboot", "Description": "scheduled reboot",
     "EventId": "instance-event-2", "NotAfter": "21 Jan 2026 09:17:23 GMT", "State": "active"},
    {"NotBefore": "1 Feb 2026 00:00:00 GMT", "Code": "instance-stop", "EventId": "instance-event-1",
     "Description": "[Canceled] The instance is running on degraded hardware"}
]"#;

fn now() -> Timestamp {
    "2026-01-01T00:00:10Z".parse().unwrap()
}

fn node(conditions: Value, annotation: Option<&str>) -> Node {
    let mut node = json!({
        "metadata": {"name": "a", "uid": "u"},
        "status": {"conditions": conditions},
    });
    if let Some(text) = annotation {
        node["metadata"]["annotations"] = json!({ SCHEDULED_EVENTS: text });
    }
    serde_json::from_value(node).unwrap()
}

fn bare() -> Node {
    node(json!([{"type": "Ready", "status": "True"}]), None)
}

/// The Node after the patch, as the API server merges it.
fn applied(mut node: Node, change: &Change) -> Node {
    let conditions = node.status.get_or_insert_default().conditions.get_or_insert_default();
    for new in &change.conditions {
        conditions.retain(|old| old.type_ != new.type_);
        conditions.push(new.clone());
    }
    let annotations = node.metadata.annotations.get_or_insert_default();
    match &change.scheduled_events {
        Annotation::Keep => {}
        Annotation::Set(text) => {
            annotations.insert(SCHEDULED_EVENTS.to_owned(), text.clone());
        }
        Annotation::Remove => {
            annotations.remove(SCHEDULED_EVENTS);
        }
    }
    node
}

fn only(change: &Change) -> (&str, &str, &str, &str) {
    let [NodeCondition { type_, status, reason, message, .. }] = change.conditions.as_slice()
    else {
        panic!("{change:?}");
    };
    (type_, status, reason.as_deref().unwrap(), message.as_deref().unwrap())
}

fn terminating() -> Observed {
    Observed { termination: Answer::Announced(None), ..Observed::default() }
}

fn acting(action: Action) -> Observed {
    let at = Some("2026-01-01T00:02:00Z".parse().unwrap());
    Observed { action: Answer::Announced(InstanceAction { action, at }), ..Observed::default() }
}

fn nothing() -> Observed {
    Observed {
        termination: Answer::Nothing,
        action: Answer::Nothing,
        rebalance: Answer::Nothing,
        events: Answer::Nothing,
    }
}

#[test]
fn texts_of_the_service_are_read() {
    let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
    for (text, expected) in [
        ("2026-01-05T18:02:00Z", Some(at("2026-01-05T18:02:00Z"))),
        ("2026-01-05T18:02:00Z\n", Some(at("2026-01-05T18:02:00Z"))),
        ("", Some(None)),
        ("\n", Some(None)),
        ("marked", None),
        ("<html>404</html>", None),
    ] {
        assert_eq!(termination_time(text).ok(), expected, "{text}");
    }
    for (text, expected) in [
        (r#"{"action":"terminate","time":"2026-01-01T00:02:00Z"}"#, Some(Action::Terminate)),
        (r#"{"action": "stop", "time": "soon"}"#, Some(Action::Stop)),
        (r#"{"action": "hibernate"}"#, Some(Action::Hibernate)),
        (r#"{"action": "dance"}"#, None),
        (r#"{"time": "2026-01-01T00:02:00Z"}"#, None),
        (r#"["terminate"]"#, None),
        ("", None),
        ("terminate", None),
    ] {
        assert_eq!(instance_action(text).ok().map(|notice| notice.action), expected, "{text}");
    }
    let notice = r#"{"noticeTime": "2026-01-01T00:00:00Z"}"#;
    assert_eq!(rebalance(notice), Ok(at("2026-01-01T00:00:00Z")));
    assert_eq!(rebalance(r#"{"noticeTime": "now"}"#), Ok(None));
    for text in ["", "{}", "null", "[]", "yes"] {
        rebalance(text).unwrap_err();
    }
}

#[test]
fn scheduled_events_are_read_and_what_cannot_be_read_is_noted() {
    let events = scheduled_events(ANNOUNCED).unwrap();
    assert!(!events.is_partial);
    let reboot = &events.by_id["instance-event-2"];
    assert_eq!((reboot.code.as_str(), reboot.state), ("system-reboot", EventState::Active));
    assert_eq!(reboot.not_before, Some("2026-01-21T09:00:43Z".parse().unwrap()));
    assert_eq!(reboot.not_after, Some("2026-01-21T09:17:23Z".parse().unwrap()));
    assert_eq!(events.by_id["instance-event-1"].state, EventState::Canceled);
    assert!(scheduled_events("[]").unwrap().by_id.is_empty());
    for (text, found) in [
        (r#"[{"EventId": "e"}]"#, 0),
        (r#"[{"Code": "instance-stop"}, 5, null]"#, 0),
        (r#"[{"EventId": "e", "Code": "c"}, {"EventId": " ", "Code": "c"}]"#, 1),
    ] {
        let events = scheduled_events(text).unwrap();
        assert!(events.is_partial, "{text}");
        assert_eq!(events.by_id.len(), found, "{text}");
    }
    for text in ["", "{}", "null", "[", "none"] {
        scheduled_events(text).unwrap_err();
    }
}

#[test]
fn a_termination_is_told_with_the_words_that_others_match_on_and_once() {
    let both = Observed { termination: Answer::Announced(None), ..acting(Action::Terminate) };
    for observed in [terminating(), acting(Action::Terminate), both] {
        let change = decide(&observed, &bare(), now()).unwrap();
        let expected = (
            "Terminating",
            "True",
            "TerminationRequested",
            "The cloud provider has marked this instance for termination",
        );
        assert_eq!(only(&change), expected);
        assert_eq!(change.conditions[0].last_transition_time.as_ref().unwrap().0, now());
        let told = applied(bare(), &change);
        assert_eq!(decide(&observed, &told, now()), None, "it is said");
        assert_eq!(decide(&nothing(), &told, now()), None, "it is not taken back");
        assert!(told.status.unwrap().conditions.unwrap().iter().any(|one| one.type_ == "Ready"));
    }
    let by_another = node(json!([{"type": "Terminating", "status": "True", "reason": "X"}]), None);
    assert_eq!(decide(&terminating(), &by_another, now()), None);
    let denied = node(json!([{"type": "Terminating", "status": "False"}]), None);
    assert_eq!(only(&decide(&terminating(), &denied, now()).unwrap()).1, "True");
}

#[test]
fn a_stop_is_no_termination_and_is_over_when_no_longer_shown() {
    for (action, reason, verb) in [
        (Action::Stop, "StopRequested", "will stop this instance at 2026-01-01T00:02:00Z"),
        (Action::Hibernate, "HibernationRequested", "will hibernate this instance at 2026"),
    ] {
        let change = decide(&acting(action), &bare(), now()).unwrap();
        let (type_, status, told, message) = only(&change);
        assert_eq!((type_, status, told), ("machinist.dev/Stopping", "True", reason));
        assert!(message.contains(verb), "{message}");
        let stopping = applied(bare(), &change);
        assert_eq!(decide(&acting(action), &stopping, now()), None);
        assert_eq!(decide(&Observed::default(), &stopping, now()), None, "unknown clears nothing");
        let change = decide(&nothing(), &stopping, now()).unwrap();
        assert_eq!(only(&change).1, "False");
        assert_eq!(decide(&nothing(), &applied(stopping, &change), now()), None);
    }
}

#[test]
fn a_rebalance_recommendation_comes_and_goes_and_keeps_its_beginning() {
    let first = Observed { rebalance: Answer::Announced(None), ..nothing() };
    let change = decide(&first, &bare(), now()).unwrap();
    assert_eq!(only(&change).0, "machinist.dev/RebalanceRecommended");
    let recommended = applied(bare(), &change);
    assert_eq!(decide(&first, &recommended, now()), None);

    let later: Timestamp = "2026-01-01T00:05:00Z".parse().unwrap();
    let again = Observed { rebalance: Answer::Announced(Some(later)), ..nothing() };
    let change = decide(&again, &recommended, later).unwrap();
    assert!(only(&change).3.contains("since 2026-01-01T00:05:00Z"), "{change:?}");
    assert_eq!(change.conditions[0].last_transition_time.as_ref().unwrap().0, now());

    let change = decide(&nothing(), &recommended, later).unwrap();
    assert_eq!((only(&change).1, only(&change).2), ("False", "NotRecommended"));
    assert_eq!(change.conditions[0].last_transition_time.as_ref().unwrap().0, later);
}

#[test]
fn scheduled_events_stand_on_the_node_while_they_are_shown() {
    let shown = |text: &str| Observed {
        events: Answer::Announced(scheduled_events(text).unwrap()),
        ..Observed::default()
    };
    let change = decide(&shown(ANNOUNCED), &bare(), now()).unwrap();
    assert!(change.conditions.is_empty());
    let told = applied(bare(), &change);
    let read = on_node(&told);
    assert_eq!(read, scheduled_events(ANNOUNCED).unwrap().by_id);
    assert!(!told.metadata.annotations.as_ref().unwrap()[SCHEDULED_EVENTS].contains('\n'));
    assert_eq!(decide(&shown(ANNOUNCED), &told, now()), None);
    assert_eq!(decide(&Observed::default(), &told, now()), None, "unknown clears nothing");

    // One that cannot be read may be one that is there: it stays.
    let partial = shown(r#"[{"EventId": "instance-event-3", "Code": "c"}, {"EventId": 1}]"#);
    let change = decide(&partial, &told, now()).unwrap();
    let ids: Vec<String> = on_node(&applied(told.clone(), &change)).into_keys().collect();
    assert_eq!(ids, ["instance-event-1", "instance-event-2", "instance-event-3"]);

    for observed in [shown("[]"), nothing()] {
        let change = decide(&observed, &told, now()).unwrap();
        assert_eq!(change.scheduled_events, Annotation::Remove);
        assert_eq!(decide(&observed, &applied(told.clone(), &change), now()), None);
    }
    let broken = node(json!([]), Some("{nonsense"));
    assert!(on_node(&broken).is_empty());
    let change = decide(&nothing(), &broken, now()).unwrap();
    assert_eq!(change.scheduled_events, Annotation::Remove);
}

#[test]
fn the_patch_names_the_node_and_nothing_that_is_not_ours() {
    let both = Observed { events: Answer::Nothing, ..terminating() };
    let annotated = node(json!([{"type": "Ready", "status": "True"}]), Some("{}"));
    let patch = decide(&both, &annotated, now()).unwrap().patch("u");
    assert_eq!(patch["metadata"], json!({"uid": "u", "annotations": {SCHEDULED_EVENTS: null}}));
    assert_eq!(patch["status"]["conditions"].as_array().unwrap().len(), 1);
    let patch = decide(&terminating(), &bare(), now()).unwrap().patch("u");
    assert_eq!(patch["metadata"], json!({"uid": "u"}));
    let events = Observed { events: Answer::Nothing, ..Observed::default() };
    assert!(decide(&events, &annotated, now()).unwrap().patch("u").get("status").is_none());
}

#[test]
fn a_failed_question_keeps_what_was_known() {
    let known = Observed::default().after(nothing());
    assert_eq!(known, nothing());
    let known = terminating().after(nothing());
    assert!(known.is_terminating() && known.rebalance == Answer::Nothing);
    assert!(Observed::default().is_unknown() && !nothing().is_unknown());
}

fn answers() -> impl Strategy<Value = Observed> {
    let at = || proptest::option::of(0_i64..2_000_000_000);
    let time = |seconds: Option<i64>| seconds.and_then(|it| Timestamp::from_second(it).ok());
    let optional = move || {
        prop_oneof![
            Just(Answer::Unknown),
            Just(Answer::Nothing),
            at().prop_map(move |seconds| Answer::Announced(time(seconds))),
        ]
    };
    let action = prop_oneof![Just(Action::Terminate), Just(Action::Stop), Just(Action::Hibernate)];
    let action = prop_oneof![
        Just(Answer::Unknown),
        Just(Answer::Nothing),
        (action, at()).prop_map(move |(action, at)| Answer::Announced(InstanceAction {
            action,
            at: time(at)
        })),
    ];
    let events = prop_oneof![
        Just(Answer::Unknown),
        Just(Answer::Nothing),
        proptest::collection::vec(("[a-d]", "[a-z]{0,3}"), 0..4).prop_map(|entries| {
            let entries =
                entries.into_iter().map(|(id, code)| json!({"EventId": id, "Code": code}));
            let text = Value::from_iter(entries).to_string();
            Answer::Announced(scheduled_events(&text).unwrap())
        }),
    ];
    (optional(), action, optional(), events).prop_map(|(termination, action, rebalance, events)| {
        Observed { termination, action, rebalance, events }
    })
}

proptest! {
    #[test]
    fn whatever_is_seen_one_write_is_enough(looks in proptest::collection::vec(answers(), 1..6)) {
        let mut node = bare();
        for observed in looks {
            if let Some(change) = decide(&observed, &node, now()) {
                node = applied(node, &change);
            }
            prop_assert_eq!(decide(&observed, &node, now()), None);
            prop_assert_eq!(decide(&Observed::default(), &node, now()), None);
            let conditions = node.status.as_ref().unwrap().conditions.as_ref().unwrap();
            prop_assert!(conditions.iter().any(|one| one.type_ == "Ready"));
        }
    }

    #[test]
    fn no_text_can_break_the_reader(text in any::<String>(), bytes in any::<Vec<u8>>()) {
        for text in [text.as_str(), &String::from_utf8_lossy(&bytes)] {
            termination_time(text).ok();
            instance_action(text).ok();
            rebalance(text).ok();
            scheduled_events(text).ok();
        }
    }
}
