//! Is every bad field named, and does one bad policy leave the others alone?

use machinist_api::{
    condition,
    names::{condition_type, maintenance_reason as reason},
};

use super::*;
use crate::maintenance::{
    plan::Standing,
    policies::{Chosen, Subject},
    policy::{self, Limit},
    policy_status::{self, Coverage},
};

fn faults(spec: Value) -> Vec<String> {
    let faults = policy::read(&policy_named("workers", spec)).unwrap_err();
    faults.iter().map(ToString::to_string).collect()
}

#[test]
fn empty_policy_is_what_holds_without_one() {
    let read = read_policy(json!({}));
    let usual = Policy::default();
    assert_eq!(read.name.as_deref(), Some("workers"));
    assert_eq!(read.budgets, usual.budgets);
    assert_eq!(read.surge, usual.surge);
    assert_eq!(read.drain, usual.drain);
    assert!(read.calendar.is_open(now()));
}

#[test]
fn every_bad_field_is_named() {
    let window = |extra: Value| {
        let mut window = json!({ "name": "w", "cron": "0 1 * * *", "duration": "2h" });
        window.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({ "windows": [window] })
    };
    let cases = [
        (window(json!({ "timeZone": "Mars/Olympus" })), "spec.windows[0].timeZone: "),
        (window(json!({ "duration": "0s" })), "spec.windows[0].duration: "),
        (window(json!({ "duration": "soon" })), "spec.windows[0].duration: "),
        (window(json!({ "cron": "0 0 30 2 *" })), "spec.windows[0].cron: "),
        (window(json!({ "rrule": "FREQ=DAILY" })), "spec.windows[0]: "),
        (window(json!({ "start": "2026-01-01" })), "spec.windows[0]: "),
        (
            json!({ "windows": [{ "name": "w", "duration": "1h",
                "rrule": "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2", "start": "2026-01-01" }] }),
            "spec.windows[0].rrule: ",
        ),
        (json!({ "windows": [{ "name": "w", "duration": "1h" }] }), "spec.windows[0]: "),
        (
            json!({ "freezes": [{ "name": "f", "from": "2026-12-24", "to": "2026-12-20" }] }),
            "spec.freezes[0].to: ",
        ),
        (json!({ "freezes": [{ "name": "f", "from": "2026-12-24" }] }), "spec.freezes[0]: "),
        (
            json!({ "freezes": [{ "name": "f", "yearly": {
                "from": { "month": "Brumaire" }, "to": { "month": "May" } } }] }),
            "spec.freezes[0].yearly.from.month: ",
        ),
        (
            json!({ "freezes": [{ "name": "f", "yearly": {
                "from": { "month": "May", "dayOfMonth": 400 }, "to": { "month": "May" } } }] }),
            "spec.freezes[0].yearly.from.dayOfMonth: ",
        ),
        (json!({ "budgets": { "pool": "lots" } }), "spec.budgets.pool: "),
        (json!({ "budgets": { "zone": -1 } }), "spec.budgets.zone: "),
        (json!({ "budgets": { "cluster": "101%" } }), "spec.budgets.cluster: "),
        (json!({ "budgets": { "coolDown": "-5m" } }), "spec.budgets.coolDown: "),
        (json!({ "surge": { "machines": 2 } }), "spec.surge.machines: "),
        (json!({ "surge": { "timeout": "0s" } }), "spec.surge.timeout: "),
        (json!({ "drain": { "deadline": "ever" } }), "spec.drain.deadline: "),
        (json!({ "margin": "100000h" }), "spec.margin: "),
        (json!({ "retention": "x" }), "spec.retention: "),
        (json!({ "verificationTimeout": "0s" }), "spec.verificationTimeout: "),
        (json!({ "drift": { "stoppedGracePeriod": "x" } }), "spec.drift.stoppedGracePeriod: "),
        (json!({ "drift": { "impairedGracePeriod": "x" } }), "spec.drift.impairedGracePeriod: "),
        (json!({ "events": [{ "code": " ", "action": "Reboot" }] }), "spec.events[0].code: "),
        (
            json!({ "events": [{ "code": "instance-stop", "action": "Replace",
                "escalation": ["Reboot"] }] }),
            "spec.events[0].escalation[0]: ",
        ),
        (
            json!({ "events": [{ "code": "a", "action": "Reboot", "leadTime": "?" }] }),
            "spec.events[0].leadTime: ",
        ),
        (
            json!({ "selector": { "machines": { "matchExpressions": [
                { "key": "a", "operator": "Like" }] } } }),
            "spec.selector.machines: ",
        ),
        (
            json!({ "notifications": { "webhook": { "url": "ftp://secret@host" } } }),
            "spec.notifications.webhook.url: ",
        ),
    ];
    for (spec, expected) in cases {
        let faults = faults(spec.clone());
        assert_eq!(faults.len(), 1, "{spec}: {faults:?}");
        assert!(faults[0].starts_with(expected), "{spec}: {faults:?}");
        assert!(!faults[0].contains("secret"), "{faults:?}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let faults = faults(json!({
        "windows": [{ "name": "w", "cron": "x", "duration": "1h" }, { "name": "w", "cron": "0 1 * * *", "duration": "1h" }],
        "margin": "x",
        "budgets": { "pool": "x" },
    }));
    let fields: Vec<&str> = faults.iter().map(|fault| fault.split(": ").next().unwrap()).collect();
    assert_eq!(fields, ["spec.windows[1].name", "spec.budgets.pool", "spec.margin"]);
}

#[test]
fn share_of_a_small_pool_is_at_least_one() {
    for (limit, machines, expected) in [
        (Limit::Percent(10), 5, 1),
        (Limit::Percent(10), 40, 4),
        (Limit::Percent(0), 40, 1),
        (Limit::Number(0), 40, 0),
        (Limit::Number(3), 1, 3),
    ] {
        assert_eq!(limit.of(machines), expected, "{limit:?} of {machines}");
    }
}

fn chosen(set: &PolicySet, pool: Option<&str>, role: &str, labels: &[(&str, &str)]) -> String {
    let labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let resolution = set.resolve(&Subject { labels: Some(&labels), pool, role: Some(role) });
    let name = match resolution.policy {
        Chosen::Valid(policy) => policy.name.clone().unwrap_or_else(|| "none".to_owned()),
        Chosen::Invalid { name, .. } => format!("invalid {name}"),
    };
    if resolution.overruled.is_empty() {
        name
    } else {
        format!("{name} over {}", resolution.overruled.join(" and "))
    }
}

#[test]
fn of_overlapping_policies_the_highest_priority_holds_then_the_first_name() {
    let policies = [
        policy_named("b-all", json!({})),
        policy_named("a-all", json!({})),
        policy_named(
            "gpu",
            json!({ "priority": 5, "selector": { "machines": {
            "matchLabels": { "gpu": "true" } } } }),
        ),
        policy_named("infra", json!({ "priority": 1, "selector": { "roles": ["infra"] } })),
        policy_named(
            "masters",
            json!({ "priority": 1, "selector": { "roles": ["control-plane"] } }),
        ),
        policy_named("pool-c", json!({ "priority": 2, "selector": { "pools": ["c"] } })),
    ];
    let mut shuffled = policies.to_vec();
    shuffled.reverse();
    for policies in [&policies[..], &shuffled] {
        let set = PolicySet::read(policies, &Legacy::default());
        assert_eq!(chosen(&set, Some("a"), "worker", &[]), "a-all over b-all");
        assert_eq!(chosen(&set, Some("a"), "infra", &[]), "infra over a-all and b-all");
        assert_eq!(chosen(&set, None, "master", &[]), "masters over a-all and b-all");
        assert_eq!(
            chosen(&set, Some("c"), "infra", &[("gpu", "true")]),
            "gpu over pool-c and infra and a-all and b-all"
        );
    }
    let none = PolicySet::read(&policies[2..], &Legacy::default());
    assert_eq!(chosen(&none, Some("a"), "worker", &[]), "none");
}

#[test]
fn machines_of_a_policy_that_cannot_be_used_wait_and_others_do_not() {
    let scene = Scene::with_policies(&[
        policy_named(
            "bad",
            json!({ "selector": { "pools": ["a"] }, "windows": [
            { "name": "w", "cron": "0 1 * * *", "duration": "2h", "timeZone": "Mars/Olympus" }] }),
        ),
        policy_named("good", json!({ "selector": { "pools": ["b"] } })),
    ])
    .pool("a", "z1", 3)
    .pool("b", "z1", 3)
    .retires("a-0", "instance-stop", 48)
    .retires("b-0", "instance-stop", 48);
    let plan = scene.plan();
    let waiting = plan.entry("a-0").unwrap();
    assert_eq!(waiting.standing, Standing::Blocked);
    assert_eq!(waiting.waits_on[0].reason, reason::POLICY_INVALID);
    assert!(waiting.waits_on[0].message.contains("windows[0].timeZone"), "{waiting:?}");
    assert!(plan.entry("b-0").unwrap().is_due());
    assert!(plan.notes.iter().any(|note| note.about == "policy/bad"), "{:?}", plan.notes);
}

#[test]
fn overlap_is_told_once_for_each_pair() {
    let plan = Scene::with_policies(&[
        policy_named("first", json!({ "priority": 1 })),
        policy_named("second", json!({})),
    ])
    .pool("a", "z1", 3)
    .retires("a-0", "instance-stop", 48)
    .retires("a-1", "instance-stop", 48)
    .plan();
    let told: Vec<&str> = plan.notes.iter().map(|note| note.message.as_str()).collect();
    assert_eq!(
        told,
        [
            "policy second does not hold for 2 machines that need maintenance (a-0 first): policy first \
          comes before it"
        ]
    );
}

#[test]
fn policy_says_on_itself_what_it_is_worth() {
    let windows = json!([{ "name": "night", "cron": "0 22 * * *", "duration": "2h" }]);
    let policies = [
        policy_named("first", json!({ "priority": 1, "windows": windows })),
        policy_named("second", json!({ "margin": "x" })),
    ];
    let set = PolicySet::read(&policies, &Legacy::default());
    let subject = Subject { labels: None, pool: Some("a"), role: None };
    let coverage = Coverage::of(&set, [subject, subject]);
    let mut first = policies[0].clone();
    let told = policy_status::status(&first, &coverage, now());
    assert_eq!(told.machines, Some(2));
    assert_eq!(told.next_opening.as_ref().unwrap().0, at("2026-11-02T22:00:00Z"));
    assert!(condition::is_true(&told.conditions, condition_type::VALID));
    first.status = Some(told.clone());
    assert_eq!(policy_status::status(&first, &coverage, after(hours(1))), told);
    let open = policy_status::status(&first, &coverage, at("2026-11-02T22:30:00Z"));
    assert_eq!(open, told, "nothing is written while it is open");

    let told = policy_status::status(&policies[1], &coverage, now());
    assert_eq!((told.machines, told.next_opening), (Some(0), None));
    let valid = condition::find(&told.conditions, condition_type::VALID).unwrap();
    assert!(valid.message.as_ref().unwrap().contains("spec.margin: "), "{valid:?}");
    let overruled = condition::find(&told.conditions, condition_type::OVERRULED).unwrap();
    assert_eq!(
        overruled.message.as_deref(),
        Some("others come before it: policy first for 2 machines")
    );
}
