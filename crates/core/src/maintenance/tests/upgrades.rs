//! Do the managed-upgrade-operator's objects hold maintenance back, and only while they should?

use machinist_api::managed_upgrade::{
    AdminFreezeWindow, CustomerFreezeWindow, PreferredUpgradeStartTime, UpgradeConfig,
};

use super::*;
use crate::{
    calendar::Standing,
    maintenance::{managed_upgrade::upgrade_under_way, policies::Chosen, policies::Subject},
};

fn config(phases: &[&str]) -> UpgradeConfig {
    let history: Vec<Value> =
        phases.iter().map(|phase| json!({ "version": "4.4.6", "phase": phase })).collect();
    serde_json::from_value(json!({
        "metadata": { "name": "managed-upgrade-config" },
        "spec": { "type": "OSD", "upgradeAt": "2020-01-01T00:00:00Z", "PDBForceDrainTimeout": 60,
            "desired": { "channel": "fast-4.4", "version": "4.4.6" } },
        "status": { "history": history },
    }))
    .unwrap()
}

#[test]
fn upgrade_holds_only_while_it_is_under_way() {
    for (phases, expected) in [
        (&[][..], None),
        (&["New"], None),
        (&["Pending"], None),
        (&["Upgraded"], None),
        (&["Failed"], None),
        (&["Upgraded", "Upgrading"], Some("the cluster is being upgraded to 4.4.6".to_owned())),
    ] {
        assert_eq!(upgrade_under_way(&[&config(phases)]), expected, "{phases:?}");
    }
}

fn usual_policy(legacy: &Legacy) -> Policy {
    let set = PolicySet::read([], legacy);
    let subject = Subject { labels: None, pool: None, role: None };
    match set.resolve(&subject).policy {
        Chosen::Valid(policy) => policy.clone(),
        Chosen::Invalid { .. } => panic!("there is no policy"),
    }
}

#[test]
fn freezes_and_preferred_start_of_2020_hold() {
    let admin: AdminFreezeWindow = serde_json::from_value(json!({
        "metadata": { "name": "year-end" },
        "spec": {
            "fromUtc": { "month": "December", "dayOfMonth": 20, "time": "00:00" },
            "toUtc": { "month": "January", "dayOfMonth": 2, "time": "12:00" },
        },
    }))
    .unwrap();
    let customer: CustomerFreezeWindow = serde_json::from_value(json!({
        "metadata": { "name": "sale" },
        "spec": {
            "fromUtc": { "month": "November", "weekOfMonth": 4, "dayOfWeek": "Thursday", "time": "00:00" },
            "toUtc": { "month": "November", "dayOfMonth": 30, "time": "23:59" },
        },
    }))
    .unwrap();
    let preferred: PreferredUpgradeStartTime = serde_json::from_value(json!({
        "metadata": { "name": "sundays" },
        "spec": { "dayOfWeek": "Sunday", "timeUtc": "03:00" },
    }))
    .unwrap();
    let legacy = Legacy::read(&[&admin], &[&customer], &[&preferred]);
    assert_eq!(legacy.notes, []);
    let calendar = usual_policy(&legacy).calendar;
    assert!(calendar.is_open(at("2026-11-08T04:00:00Z")), "a Sunday");
    assert_eq!(calendar.standing(at("2026-11-08T08:00:00Z")), Standing::OutsideWindows);
    assert_eq!(
        calendar.standing(at("2026-12-27T04:00:00Z")),
        Standing::Frozen(vec!["AdminFreezeWindow/year-end".to_owned()])
    );
    let own = json!({ "windows": [{ "name": "w", "cron": "0 8 * * *", "duration": "1h" }] });
    let set = PolicySet::read(&[policy_named("own", own)], &legacy);
    let own = &set.get(Some("own")).unwrap().calendar;
    assert!(own.is_open(at("2026-11-03T08:30:00Z")), "a policy's own windows come first");
    assert!(!own.is_open(at("2026-12-22T08:30:00Z")), "freezes hold for all");
}

#[test]
fn what_cannot_be_used_is_told_and_the_rest_holds() {
    let bad: AdminFreezeWindow = serde_json::from_value(json!({
        "metadata": { "name": "bad" },
        "spec": { "fromUtc": { "month": "Smarch", "time": "00:00" }, "toUtc": {} },
    }))
    .unwrap();
    let preferred: PreferredUpgradeStartTime = serde_json::from_value(json!({
        "metadata": { "name": "never" },
        "spec": { "dayOfWeek": "Doomsday", "timeUtc": "03:00" },
    }))
    .unwrap();
    let legacy = Legacy::read(&[&bad], &[], &[&preferred]);
    let about: Vec<&str> = legacy.notes.iter().map(|note| note.about.as_str()).collect();
    assert_eq!(about, ["AdminFreezeWindow/bad", "PreferredUpgradeStartTime/never"]);
    assert!(usual_policy(&legacy).calendar.is_open(now()));
}
