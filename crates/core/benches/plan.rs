//! How long does a plan of the whole fleet take? 5,000 machines with 500 events, under 100 ms.
//!
//! `cargo bench --package machinist-core --bench plan` prints the figures, one scenario a line.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark is not shipped, and measures real time"
)]

use std::{collections::BTreeMap, time::Instant};

use jiff::{SignedDuration, Timestamp};
use machinist_api::{MaintenancePolicy, MaintenanceReason, MaintenanceReasonKind};
use machinist_core::maintenance::{
    Durations, Fleet, FleetMachine, FleetPool, Need, Plan, PolicySet,
    action::{Replacement, Traits},
    managed_upgrade::Legacy,
    plan,
    plan::{ClusterState, Home},
    policy::Policy,
};
use serde_json::{Value, json};

const MACHINES: usize = 5_000;
const EVENTS: usize = 500;
const POOLS: usize = 50;
const ZONES: [&str; 3] = ["eu-west-1a", "eu-west-1b", "eu-west-1c"];
const CODES: [&str; 4] =
    ["instance-retirement", "instance-stop", "instance-reboot", "system-reboot"];
const RUNS: usize = 20;

fn main() {
    let names = Names::new();
    let one_of_a_pool = json!({ "windows": [nightly()], "budgets": { "pool": 1 } });
    let scenarios = [
        ("no policy", None),
        ("one of a pool, nightly windows", Some(one_of_a_pool)),
        (
            "one of a zone, monthly windows, freezes, move the event",
            Some(json!({
                "windows": [
                    { "name": "patch", "rrule": "FREQ=MONTHLY;BYDAY=2SA;BYHOUR=22;BYMINUTE=0",
                      "start": "2026-01-01T22:00", "duration": "6h", "timeZone": "America/New_York" },
                    nightly(),
                ],
                "freezes": [
                    { "name": "holidays", "yearly": {
                        "from": { "month": "December", "dayOfMonth": 20 },
                        "to": { "month": "January", "dayOfMonth": 6 } } },
                ],
                "budgets": { "pool": "10%", "zone": 1, "cluster": "5%", "coolDown": "10m" },
                "whenNoWindow": "MoveEvent",
            })),
        ),
        (
            "one of the whole cluster, act anyway",
            Some(json!({
                "windows": [nightly()],
                "budgets": { "cluster": 1 },
                "whenNoWindow": "ActAnyway",
            })),
        ),
        (
            "one of the whole cluster, no deadlines in reach",
            Some(json!({ "windows": [nightly()], "budgets": { "cluster": 1, "coolDown": "30m" } })),
        ),
    ];
    for (title, spec) in scenarios {
        let policies: Vec<MaintenancePolicy> = spec.into_iter().map(policy).collect();
        let set = PolicySet::read(policies.iter(), &Legacy::default());
        let fleet = names.fleet(&set);
        let (plan, fastest, slowest) = measure(&fleet);
        let planned = plan.entries.iter().filter(|entry| entry.start.is_some()).count();
        println!(
            "plan: {title}: {MACHINES} machines, {} entries, {planned} with a time, {} notes: \
             {fastest:.1} ms fastest, {slowest:.1} ms slowest of {RUNS}",
            plan.entries.len(),
            plan.notes.len(),
        );
    }
}

fn measure(fleet: &Fleet<'_>) -> (Plan, f64, f64) {
    let mut times = Vec::new();
    let mut last = Plan::default();
    for _ in 0..RUNS {
        let start = Instant::now();
        last = plan(fleet, now());
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    (last, *times.first().unwrap(), *times.last().unwrap())
}

fn now() -> Timestamp {
    "2026-11-02T10:00:00Z".parse().unwrap()
}

fn nightly() -> Value {
    json!({ "name": "night", "cron": "0 1 * * *", "duration": "4h", "timeZone": "Europe/Berlin" })
}

fn policy(spec: Value) -> MaintenancePolicy {
    serde_json::from_value(json!({ "metadata": { "name": "all" }, "spec": spec })).unwrap()
}

struct Names {
    machines: Vec<String>,
    pools: Vec<String>,
    labels: BTreeMap<String, String>,
    durations: Durations,
}

impl Names {
    fn new() -> Self {
        Self {
            machines: (0..MACHINES).map(|number| format!("worker-{number:04}")).collect(),
            pools: (0..POOLS).map(|number| format!("pool-{number:02}")).collect(),
            labels: BTreeMap::from([("role".to_owned(), "worker".to_owned())]),
            durations: Durations::default(),
        }
    }

    fn fleet<'a>(&'a self, policies: &'a PolicySet) -> Fleet<'a> {
        let usual = Policy::default();
        let machines = self.machines.iter().enumerate().map(|(number, name)| {
            let pool = number % POOLS;
            FleetMachine {
                name,
                uid: name,
                pool: self.pools.get(pool).map(String::as_str),
                maker: self.pools.get(pool).map(String::as_str),
                zone: ZONES.get(pool % ZONES.len()).copied(),
                role: Some("worker"),
                labels: Some(&self.labels),
                is_available: number % 97 != 0,
                need: (number % (MACHINES / EVENTS) == 3)
                    .then(|| Need::of(&[event(number)], &usual).unwrap()),
                traits: Traits { replacement: Replacement::Pool, ..Traits::default() },
                ..FleetMachine::default()
            }
        });
        let pool = |(number, name): (usize, &'a String)| {
            let pool = FleetPool {
                home: Home::Here,
                desired: MACHINES / POOLS,
                zone: ZONES.get(number % ZONES.len()).map(|zone| (*zone).to_owned()),
                gate: Some(40),
            };
            (name.as_str(), pool)
        };
        Fleet {
            machines: machines.collect(),
            pools: self.pools.iter().enumerate().map(pool).collect(),
            finished: Vec::new(),
            policies,
            durations: &self.durations,
            cluster: ClusterState::default(),
            notes: Vec::new(),
        }
    }
}

fn event(number: usize) -> MaintenanceReason {
    let hours = i64::try_from(24 + (number * 7_919) % (24 * 28)).unwrap();
    let not_before = now().checked_add(SignedDuration::from_hours(hours)).unwrap();
    let movable = not_before.checked_add(SignedDuration::from_hours(24 * 7)).unwrap();
    serde_json::from_value(json!({
        "kind": MaintenanceReasonKind::Event,
        "id": format!("instance-event-{number:017x}"),
        "code": CODES[number % CODES.len()],
        "notBefore": not_before,
        "notBeforeDeadline": movable,
        "since": now(),
        "state": "Active",
        "sources": ["API"],
    }))
    .unwrap()
}
