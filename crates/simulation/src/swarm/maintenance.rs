//! What is drawn for a seed about maintenance? Policies with their windows, freezes and budgets, a
//! control plane, and what people and the provider do.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::TimeZone};
use machinist_testbed::cloud::model::{EventCode, EventState};
use serde_json::{Value, json};

use super::Plan;
use crate::{
    actors::{Act, MaintenanceAct},
    chance::Chance,
    world::start_of_runs,
};

/// Of how many seeds maintenance is a part.
const SHARE: f64 = 0.6;
const CODES: [EventCode; 5] = [
    EventCode::InstanceStop,
    EventCode::InstanceRetirement,
    EventCode::InstanceReboot,
    EventCode::SystemReboot,
    EventCode::SystemMaintenance,
];
const ACTIONS: [Option<&str>; 5] =
    [None, Some("Reboot"), Some("RebootMigrate"), Some("StopStart"), Some("Replace")];
/// Zones with and without daylight saving, and one whose hours begin at our half hours.
const ZONES: [&str; 4] = ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"];

impl Plan {
    pub(super) fn draw_maintenance(&mut self) {
        // A stream of its own: what others draw stays as it is.
        let mut chance = Chance::stream(self.seed, "maintenance");
        if !chance.hits(SHARE) {
            return;
        }
        if chance.hits(0.15) {
            self.control_plane = 3;
            self.has_etcd = true;
            self.has_etcd_operator = chance.hits(0.5);
        }
        for number in 0..chance.below(3) {
            let policy = self.draw_policy(&mut chance, number);
            self.policies.push(policy);
        }
        self.draw_maintenance_acts(&mut chance);
    }

    fn draw_maintenance_acts(&mut self, chance: &mut Chance) {
        let seconds = self.storm.as_secs();
        let pools: Vec<String> = self.pools.iter().map(|pool| pool.name.clone()).collect();
        let policies: Vec<String> = self.policies.iter().map(name_of).collect();
        let mut acts = Vec::new();
        for _ in 0..chance.below(4) {
            acts.push(MaintenanceAct::Announce {
                code: *chance.pick(&CODES).unwrap_or(&EventCode::InstanceReboot),
                after: chance.seconds(5 * 60, 100 * 60),
                movable: chance.hits(0.5).then(|| chance.seconds(3600, 3 * 3600)),
            });
        }
        for _ in 0..chance.below(3) {
            let action = chance.pick(&ACTIONS).copied().flatten();
            acts.push(match chance.hits(0.6) {
                true => MaintenanceAct::Request { action },
                false => MaintenanceAct::RequestByObject { action },
            });
        }
        for _ in 0..chance.below(3) {
            let state = if chance.hits(0.7) { EventState::Canceled } else { EventState::Completed };
            acts.push(match chance.below(5) {
                0 => MaintenanceAct::Move { by: chance.seconds(600, 3600) },
                1 | 2 => MaintenanceAct::End { state },
                3 => MaintenanceAct::Forget,
                _ => MaintenanceAct::Withdraw,
            });
        }
        for _ in 0..chance.below(3) {
            acts.push(MaintenanceAct::Approve);
        }
        for _ in 0..chance.below(3) {
            let set = chance.pick(&pools).cloned().unwrap_or_default();
            let by = if chance.hits(0.5) { 1 } else { -1 };
            acts.push(MaintenanceAct::Autoscale { set, by });
        }
        for _ in 0..chance.below(3) {
            acts.push(MaintenanceAct::Cordon { is_cordoned: chance.hits(0.7) });
        }
        for act in acts {
            // The first minutes belong to launches.
            let at = Duration::from_secs(chance.between(120, seconds.max(121)));
            self.acts.push((at, Act::Maintain(act)));
        }
        if chance.hits(0.2) {
            let policy = chance.pick(&policies).cloned().filter(|_| chance.hits(0.5));
            let begins = Duration::from_secs(chance.between(60, seconds.max(61)));
            let ends = begins + chance.seconds(60, 600);
            for (at, is_paused) in [(begins, true), (ends, false)] {
                let policy = policy.clone();
                self.acts.push((at, Act::Maintain(MaintenanceAct::Pause { is_paused, policy })));
            }
        }
    }

    fn draw_policy(&self, chance: &mut Chance, number: u64) -> Value {
        let mut spec = json!({
            "priority": chance.below(3),
            "controlPlane": if chance.hits(0.7) { "OneAtATime" } else { "ReportOnly" },
            "margin": format!("{}m", chance.between(1, 10)),
            "verificationTimeout": format!("{}m", chance.between(5, 20)),
            "windows": draw_windows(chance),
            "surge": {
                "machines": i32::from(chance.hits(0.75)),
                "timeout": format!("{}m", chance.between(3, 15)),
            },
            "drain": { "deadline": format!("{}m", chance.between(1, 6)) },
            "budgets": {},
        });
        match chance.below(4) {
            0 => {
                let pool = chance.pick(&self.pools).map(|pool| pool.name.clone());
                spec["selector"] = json!({ "pools": pool.into_iter().collect::<Vec<_>>() });
            }
            1 => {
                let role = if chance.hits(0.5) { "worker" } else { "master" };
                spec["selector"] = json!({ "roles": [role] });
            }
            _ => {}
        }
        let mut choose = |at: [&str; 2], among: &[Value]| {
            if let Some(chosen) = chance.pick(among).filter(|chosen| !chosen.is_null()) {
                match at {
                    [field, ""] => spec[field] = chosen.clone(),
                    [part, field] => spec[part][field] = chosen.clone(),
                }
            }
        };
        let none = Value::Null;
        choose(["surge", "afterTimeout"], &[none.clone(), json!("Proceed"), json!("Wait")]);
        choose(
            ["drain", "afterDeadline"],
            &[none.clone(), json!("Force"), json!("Force"), json!("Wait")],
        );
        let shares = [none.clone(), json!(1), json!(2), json!("30%"), json!("50%"), json!(3)];
        choose(["budgets", "pool"], &shares);
        choose(["budgets", "zone"], &[none.clone(), none.clone(), json!(1), json!(2)]);
        choose(["budgets", "cluster"], &[none.clone(), none.clone(), json!(1), json!(2)]);
        choose(["budgets", "coolDown"], &[none.clone(), none.clone(), json!("2m"), json!("5m")]);
        choose(["approval", ""], &[none.clone(), none.clone(), none.clone(), json!("Manual")]);
        choose(["retention", ""], &[none.clone(), none.clone(), none.clone(), json!("5m")]);
        let answers = [none, json!("ActAnyway"), json!("MoveEvent"), json!("LetProviderAct")];
        choose(["whenNoWindow", ""], &answers);
        if spec["whenNoWindow"] == json!("LetProviderAct") {
            spec["approval"] = json!("Automatic");
        }
        if chance.hits(0.2) {
            let from = SignedDuration::from_mins(i64::try_from(chance.below(40)).unwrap_or(0));
            let length = i64::try_from(chance.between(5, 40)).unwrap_or(5);
            let from = start_of_runs().saturating_add(from).unwrap_or(Timestamp::MAX);
            let to = from.saturating_add(SignedDuration::from_mins(length));
            let to = to.unwrap_or(Timestamp::MAX);
            spec["freezes"] = json!([{
                "name": "fair", "from": from.to_string(), "to": to.to_string(),
            }]);
        }
        json!({ "metadata": { "name": format!("policy-{number}") }, "spec": spec })
    }
}

fn draw_windows(chance: &mut Chance) -> Vec<Value> {
    if chance.hits(0.4) {
        return Vec::new();
    }
    (0..chance.between(1, 2)).map(|number| draw_window(chance, number)).collect()
}

/// Mostly one that opens every hour, so that something happens while a run lasts.
fn draw_window(chance: &mut Chance, number: u64) -> Value {
    let zone = *chance.pick(&ZONES).unwrap_or(&"UTC");
    let minute = chance.below(60);
    let mut window = json!({ "name": format!("window-{number}"), "timeZone": zone });
    match chance.below(5) {
        // One in which only a reboot has time.
        0 => {
            window["cron"] = json!(format!("{minute} * * * *"));
            window["duration"] = json!("12m");
        }
        // Once a day, soon after the start.
        1 => {
            let after = SignedDuration::from_mins(i64::try_from(chance.below(90)).unwrap_or(0));
            let opens = start_of_runs().saturating_add(after).unwrap_or(Timestamp::MAX);
            let local = TimeZone::get(zone).map_or_else(
                |_| DateTime::constant(2026, 1, 5, 9, 0, 0, 0),
                |zone| opens.to_zoned(zone).datetime(),
            );
            let (hour, minute) = (local.hour(), local.minute());
            let rule = format!("FREQ=DAILY;BYHOUR={hour};BYMINUTE={minute}");
            window["rrule"] = json!(rule);
            window["duration"] = json!(format!("{}m", chance.between(30, 90)));
        }
        _ => {
            window["cron"] = json!(format!("{minute} * * * *"));
            window["duration"] = json!(format!("{}m", chance.between(25, 50)));
        }
    }
    window
}

fn name_of(policy: &Value) -> String {
    policy.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}
