//! Is a check read as the spec says, and is each bad field named?

use jiff::SignedDuration;
use machinist_api::ConditionSeverity;
use serde_json::json;

use super::*;
use crate::health::{Policy, duration::parse, policy::MaxUnhealthy};

#[test]
fn durations_are_gos() {
    let table = [
        ("0", Some(SignedDuration::ZERO)),
        ("0s", Some(SignedDuration::ZERO)),
        ("300s", Some(SignedDuration::from_secs(300))),
        ("10m", Some(SignedDuration::from_mins(10))),
        ("1.5h", Some(SignedDuration::from_mins(90))),
        ("2h45m", Some(SignedDuration::from_mins(165))),
        ("1.5h30m", Some(SignedDuration::from_mins(120))),
        ("300ms", Some(SignedDuration::from_millis(300))),
        ("5us", Some(SignedDuration::from_micros(5))),
        ("5µs", Some(SignedDuration::from_micros(5))),
        ("5μs", Some(SignedDuration::from_micros(5))),
        ("1.0000000000000000000001s", Some(SignedDuration::from_secs(1))),
        ("", None),
        ("10", None),
        ("m", None),
        ("-5m", None),
        ("1.m", None),
        (".5m", None),
        ("5 m", None),
        ("1d", None),
        ("0abc", None),
        ("99999999999999999999999999999999999999999h", None),
        ("9999999999h", None),
    ];
    for (text, expected) in table {
        assert_eq!(parse(text), expected, "{text:?}");
    }
}

#[test]
fn max_unhealthy_is_a_number_or_a_share_rounded_down() {
    let read = |value| Policy::read(&check(json!({"maxUnhealthy": value}))).unwrap().max_unhealthy;
    // (value, machines, at most)
    let table = [
        (json!(null), 7, 7),
        (json!(3), 7, 3),
        (json!("3"), 7, 3),
        (json!(0), 7, 0),
        (json!("0%"), 7, 0),
        (json!(-1), 7, 0),
        (json!("-1"), 7, 0),
        (json!("40%"), 5, 2),
        (json!("60%"), 7, 4),
        (json!("40%"), 50, 20),
        (json!("39%"), 50, 19),
        (json!("100%"), 7, 7),
        (json!("150%"), 7, 7),
    ];
    for (value, machines, expected) in table {
        assert_eq!(read(value.clone()).of(machines), expected, "{value}");
    }
    assert!(!MaxUnhealthy::Percent(100).is_explicit(), "the API server writes it unasked");
    assert!(MaxUnhealthy::Number(1).is_explicit() && MaxUnhealthy::Percent(99).is_explicit());
}

#[test]
fn a_bad_field_is_named_once_and_nothing_is_done() {
    let condition = |changes| {
        let base = json!({"type": "Ready", "status": "False", "timeout": "1s"});
        json!({"unhealthyConditions": [base, merged(base.clone(), &changes)]})
    };
    let template = |changes| {
        let base = json!({"apiVersion": "x.io/v1", "kind": "RepairTemplate", "name": "t"});
        json!({"remediationTemplate": merged(base, &changes)})
    };
    let table = [
        (json!({"maxUnhealthy": "half"}), "spec.maxUnhealthy"),
        (json!({"maxUnhealthy": ""}), "spec.maxUnhealthy"),
        (json!({"maxUnhealthy": "4.5"}), "spec.maxUnhealthy"),
        (json!({"maxUnhealthy": "%"}), "spec.maxUnhealthy"),
        (json!({"nodeStartupTimeout": "0abc"}), "spec.nodeStartupTimeout"),
        (json!({"nodeStartupTimeout": ""}), "spec.nodeStartupTimeout"),
        (condition(json!({"timeout": "soon"})), "spec.unhealthyConditions[1].timeout"),
        (condition(json!({"type": ""})), "spec.unhealthyConditions[1].type"),
        (condition(json!({"status": null})), "spec.unhealthyConditions[1].status"),
        (
            json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}),
            "spec.selector",
        ),
        (template(json!({"kind": null})), "spec.remediationTemplate.kind"),
        (template(json!({"kind": "Repair"})), "spec.remediationTemplate.kind"),
        (template(json!({"kind": "Template"})), "spec.remediationTemplate.kind"),
        (template(json!({"apiVersion": ""})), "spec.remediationTemplate.apiVersion"),
        (template(json!({"name": null})), "spec.remediationTemplate.name"),
    ];
    for (spec, field) in table {
        let mut scene = Scene::pool(check(spec), 5, 1, 400);
        let answer = scene.decide();
        assert_eq!(answer.decision.actions, [], "{field}");
        let condition = allowed(&answer);
        assert_eq!(condition.reason.as_deref(), Some("InvalidConfiguration"), "{field}");
        assert_eq!(condition.severity, Some(ConditionSeverity::Error));
        let words = condition.message.clone().unwrap();
        assert!(words.starts_with(&format!("{field}: ")), "{field}: {words}");
        let [told] = answer.decision.announcements.as_slice() else { panic!("{field}") };
        assert_eq!((told.reason, &told.message), ("ReconcileError", &words));
        assert_eq!(answer.decision.recheck, None, "an edit wakes it");

        scene.publish(answer);
        let again = scene.decide();
        assert_eq!(Some(&again.decision.status), scene.check.status.as_ref());
        assert_eq!(again.decision.announcements, [], "{field}: told once");
    }
}

#[test]
fn a_corrected_field_is_as_if_it_had_never_been_wrong() {
    let mut scene = Scene::pool(check(json!({"maxUnhealthy": "half"})), 5, 1, 400);
    let answer = scene.decide();
    scene.publish(answer);
    scene.check.spec = check(json!({})).spec;
    let answer = scene.decide();
    assert_eq!(deleted(&answer), ["m-000"]);
    assert_eq!(allowed(&answer).status.as_str(), "True");
}

#[test]
fn the_selector_chooses_and_an_empty_one_chooses_all() {
    let other = || machine_with("other", &json!({"metadata": {"labels": {"pool": "b"}}}));
    for (selector, expected) in [
        (json!({"matchLabels": {"pool": "a"}}), 1),
        (json!({"matchLabels": {"pool": "c", "never": "there"}}), 0),
        (json!({"matchLabels": null}), 2),
    ] {
        let mut check = check(json!({}));
        let base = serde_json::to_value(&check.spec.selector).unwrap();
        check.spec.selector = serde_json::from_value(merged(base, &selector)).unwrap();
        let scene = Scene::new(check).with(machine("m"), None).with(other(), None);
        let answer = scene.decide();
        assert_eq!(answer.decision.status.expected_machines, Some(expected), "{selector}");
        let covered = usize::try_from(expected).unwrap();
        assert_eq!(answer.gauges.unwrap().nodes_covered, covered);
    }
}
