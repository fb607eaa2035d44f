//! What holds of every plan, whatever the fleet and the policies.

use machinist_api::{MaintenanceAction, MaintenancePhase, maintenance_policy::WhenNoWindow};
use proptest::prelude::*;

use super::*;
use crate::maintenance::plan::{Standing, UnderWay};

const POOLS: [(&str, &str); 3] = [("a", "z1"), ("b", "z2"), ("c", "z2")];
const CODES: [&str; 5] =
    ["instance-retirement", "instance-stop", "instance-reboot", "system-reboot", "unknown-code"];

/// A machine of the fleet, by what may be the matter with it.
#[derive(Clone, Debug)]
struct Member {
    pool: usize,
    matter: Matter,
}

#[derive(Clone, Debug)]
enum Matter {
    Nothing,
    Broken,
    Event { code: usize, in_hours: i64, movable_hours: Option<i64>, is_broken: bool },
    Request,
    UnderWay { minutes: i64 },
    Held,
}

fn member() -> impl Strategy<Value = Member> {
    let event = (0..CODES.len(), 1..400_i64, proptest::option::of(1..400_i64), any::<bool>())
        .prop_map(|(code, in_hours, movable_hours, is_broken)| Matter::Event {
            code,
            in_hours,
            movable_hours,
            is_broken: is_broken && in_hours % 4 == 0,
        });
    let matter = prop_oneof![
        4 => Just(Matter::Nothing),
        1 => Just(Matter::Broken),
        8 => event,
        2 => Just(Matter::Request),
        1 => (0..60_i64).prop_map(|minutes| Matter::UnderWay { minutes }),
        1 => Just(Matter::Held),
    ];
    (0..POOLS.len(), matter).prop_map(|(pool, matter)| Member { pool, matter })
}

#[derive(Clone, Debug)]
struct Rules {
    spec: Value,
    pool: usize,
    zone: Option<usize>,
    cluster: Option<usize>,
    when_no_window: WhenNoWindow,
}

fn rules() -> impl Strategy<Value = Rules> {
    let windows = prop_oneof![
        Just(json!([])),
        Just(json!([{ "name": "n", "cron": "0 22 * * *", "duration": "3h" }])),
        Just(
            json!([{ "name": "s", "cron": "30 1 * * 6", "duration": "5h", "timeZone": "Europe/Berlin" }])
        ),
        Just(json!([
            { "name": "m", "rrule": "FREQ=MONTHLY;BYDAY=2TU", "start": "2026-01-01T20:00", "duration": "4h" },
            { "name": "t", "cron": "0 3 * * 2,4", "duration": "25m" },
        ])),
    ];
    let freezes = prop_oneof![
        Just(json!([])),
        Just(json!([{ "name": "f", "from": "2026-11-04", "to": "2026-11-09" }])),
    ];
    let when = prop_oneof![
        Just(WhenNoWindow::ActAnyway),
        Just(WhenNoWindow::Ask),
        Just(WhenNoWindow::MoveEvent),
        Just(WhenNoWindow::LetProviderAct),
    ];
    let limit = || proptest::option::of(1..3_usize);
    (windows, freezes, when, 0..3_usize, limit(), limit(), 0..40_i64).prop_map(
        |(windows, freezes, when_no_window, pool, zone, cluster, cool_down)| Rules {
            spec: json!({
                "windows": windows,
                "freezes": freezes,
                "whenNoWindow": when_no_window,
                "budgets": { "pool": pool, "zone": zone, "cluster": cluster,
                    "coolDown": format!("{cool_down}m") },
            }),
            pool,
            zone,
            cluster,
            when_no_window,
        },
    )
}

fn scene_of(rules: &Rules, members: &[Member]) -> Scene {
    let mut spec = rules.spec.clone();
    spec["budgets"].as_object_mut().unwrap().retain(|_, value| !value.is_null());
    let mut scene = Scene::new(spec);
    for (pool, zone) in POOLS {
        let size = members.iter().filter(|member| POOLS[member.pool].0 == pool).count();
        scene = scene.pool(pool, zone, size);
    }
    let mut next = [0; POOLS.len()];
    for member in members {
        let name = format!("{}-{}", POOLS[member.pool].0, next[member.pool]);
        next[member.pool] += 1;
        scene = match &member.matter {
            Matter::Nothing => scene,
            Matter::Broken => scene.change(&name, |machine| machine.is_available = false),
            Matter::Event { code, in_hours, movable_hours, is_broken } => {
                let due = after(hours(*in_hours));
                let mut reason = event(CODES[*code], &format!("e-{name}"), Some(due));
                reason.not_before_deadline = movable_hours.map(|more| {
                    machinist_api::condition::to_seconds(due.checked_add(hours(more)).unwrap())
                });
                scene
                    .needs(&name, &[reason])
                    .change(&name, |machine| machine.is_available = !is_broken)
            }
            Matter::Request => scene.needs(&name, &[request("r")]),
            Matter::UnderWay { minutes: ago } => scene.change(&name, |machine| {
                machine.under_way = Some(UnderWay {
                    phase: MaintenancePhase::Draining,
                    action: MaintenanceAction::Replace,
                    since: after(-minutes(*ago)),
                });
            }),
            Matter::Held => scene
                .needs(&name, &[request("r")])
                .change(&name, |machine| machine.hold = Some("held")),
        };
    }
    scene
}

/// How many of these are worked on at an instant, by the plan.
fn busy<'a>(
    entries: impl Iterator<Item = &'a crate::maintenance::PlanEntry>,
    at: Timestamp,
) -> usize {
    entries
        .filter(|entry| {
            entry.start.zip(entry.end).is_some_and(|(start, end)| start <= at && at < end)
        })
        .count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn budgets_are_never_exceeded(
        rules in rules(),
        members in proptest::collection::vec(member(), 1..30),
    ) {
        let plan = scene_of(&rules, &members).plan();
        let chosen: Vec<_> = plan
            .entries
            .iter()
            .filter(|entry| !matches!(entry.standing, Standing::UnderWay { .. }))
            .collect();
        for entry in &chosen {
            let Some(start) = entry.start else { continue };
            let in_pool = busy(plan.entries.iter().filter(|other| other.pool == entry.pool), start);
            prop_assert!(in_pool <= rules.pool, "{in_pool} of {:?} at {start}", entry.pool);
            if let Some(limit) = rules.zone {
                let in_zone = busy(plan.entries.iter().filter(|other| other.zone == entry.zone), start);
                prop_assert!(in_zone <= limit, "{in_zone} of {:?} at {start}", entry.zone);
            }
            if let Some(limit) = rules.cluster {
                prop_assert!(busy(plan.entries.iter(), start) <= limit, "at {start}");
            }
        }
        // What is broken through any other path counts now.
        for (index, (pool, _)) in POOLS.iter().enumerate() {
            let broken = members
                .iter()
                .filter(|member| member.pool == index && matches!(member.matter, Matter::Broken))
                .count();
            let due = chosen
                .iter()
                .filter(|entry| entry.pool.as_deref() == Some(pool) && entry.is_due())
                .count();
            let under_way = members
                .iter()
                .filter(|member| {
                    member.pool == index && matches!(member.matter, Matter::UnderWay { .. })
                })
                .count();
            prop_assert!(due == 0 || due + broken + under_way <= rules.pool, "{pool}");
        }
    }

    #[test]
    fn nothing_starts_against_the_calendar_unless_policy_says_so(
        rules in rules(),
        members in proptest::collection::vec(member(), 1..30),
    ) {
        let scene = scene_of(&rules, &members);
        let calendar = scene.policies.get(Some("workers")).unwrap().calendar.clone();
        let plan = scene.plan();
        for entry in &plan.entries {
            let Some(start) = entry.start else { continue };
            if matches!(entry.standing, Standing::UnderWay { .. }) {
                continue;
            }
            prop_assert!(start >= now());
            prop_assert!(entry.action != MaintenanceAction::Nothing);
            let is_allowed = calendar.fits(start, entry.expected) == crate::calendar::Fit::Fits;
            let acts_anyway = rules.when_no_window == WhenNoWindow::ActAnyway && entry.is_late;
            prop_assert!(is_allowed || acts_anyway, "{}", entry.sentence());
        }
    }

    #[test]
    fn shuffled_fleet_has_the_same_plan(
        rules in rules(),
        members in proptest::collection::vec(member(), 1..30),
        order in proptest::collection::vec(any::<usize>(), 30),
    ) {
        let mut scene = scene_of(&rules, &members);
        let plan = scene.plan();
        let length = scene.machines.len();
        for (index, with) in order.iter().enumerate().take(length) {
            scene.machines.swap(index, with % length);
        }
        prop_assert_eq!(scene.plan(), plan);
    }

    #[test]
    fn every_need_has_one_entry_with_a_time_or_a_reason(
        rules in rules(),
        members in proptest::collection::vec(member(), 1..30),
    ) {
        let scene = scene_of(&rules, &members);
        let plan = scene.plan();
        let wanted = scene
            .machines
            .iter()
            .filter(|machine| machine.need.is_some() || machine.under_way.is_some())
            .count();
        prop_assert_eq!(plan.entries.len(), wanted);
        for entry in &plan.entries {
            let has_time = entry.start.is_some();
            prop_assert!(has_time || !entry.waits_on.is_empty(), "{}", entry.sentence());
            prop_assert!(!entry.is_due() || entry.waits_on.is_empty(), "{}", entry.sentence());
            if let (Standing::Planned, Some(latest), false) =
                (&entry.standing, entry.latest_safe_start, entry.is_late)
            {
                prop_assert!(entry.start.unwrap() <= latest, "{}", entry.sentence());
            }
        }
    }
}
