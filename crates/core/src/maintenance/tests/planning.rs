//! Does each machine get the right time, and does the plan say why?

use machinist_api::{MaintenanceAction, MaintenancePhase, names::maintenance_reason as reason};

use super::*;
use crate::maintenance::plan::{ControlPlaneProblem, PlanEntry, Standing, UnderWay};

fn nightly() -> Value {
    json!({ "name": "night", "cron": "0 22 * * *", "duration": "2h" })
}

fn reasons(entry: &PlanEntry) -> Vec<&str> {
    entry.waits_on.iter().map(|wait| wait.reason).collect()
}

fn start(plan: &Plan, machine: &str) -> Option<Timestamp> {
    plan.entry(machine).unwrap().start
}

#[test]
fn without_a_policy_work_starts_at_once() {
    let plan = Scene::with_policies(&[])
        .pool("a", "z1", 3)
        .retires("a-0", "instance-retirement", 24 * 14)
        .plan();
    let entry = plan.entry("a-0").unwrap();
    assert_eq!(entry.standing, Standing::Due);
    assert_eq!(entry.action, MaintenanceAction::Replace);
    assert_eq!(entry.start, Some(now()));
    assert_eq!(entry.policy, None);
    assert_eq!(entry.latest_safe_start, Some(after(hours(24 * 14) - minutes(50))));
    assert_eq!(
        entry.sentence(),
        "a-0 is replaced now because of event instance-retirement (instance-event-a-0), due \
         2026-11-16T10:00:00Z"
    );
}

#[test]
fn closed_window_is_waited_for() {
    let plan = Scene::new(json!({ "windows": [nightly()] }))
        .pool("a", "z1", 3)
        .retires("a-0", "instance-retirement", 48)
        .plan();
    let entry = plan.entry("a-0").unwrap();
    assert_eq!(entry.standing, Standing::Planned);
    assert_eq!(entry.start, Some(at("2026-11-02T22:00:00Z")));
    assert_eq!(entry.window.as_deref(), Some("night"));
    assert_eq!(reasons(entry), [reason::OUTSIDE_WINDOW]);
    assert_eq!(entry.why, "window night is open then");
    assert_eq!(plan.recheck(), Some(at("2026-11-02T22:00:00Z")));
    assert_eq!(plan.notes, []);
}

#[test]
fn open_window_that_closes_too_early_is_not_used() {
    let mut scene = Scene::new(json!({ "windows": [nightly()] })).pool("a", "z1", 3).retires(
        "a-0",
        "instance-retirement",
        48,
    );
    scene.now = at("2026-11-02T23:41:00Z");
    let plan = scene.plan();
    let entry = plan.entry("a-0").unwrap();
    assert_eq!(entry.start, Some(at("2026-11-03T22:00:00Z")));
    assert_eq!(reasons(entry), [reason::WINDOW_TOO_SHORT]);
    assert!(
        entry.waits_on[0].message.contains("in 19m, and the work is expected to take 20m"),
        "{entry:?}"
    );
    scene.now = at("2026-11-02T23:40:00Z");
    assert!(scene.plan().entry("a-0").unwrap().is_due());
}

#[test]
fn freeze_is_waited_out() {
    let spec = json!({ "freezes": [{ "name": "sale", "from": "2026-11-01", "to": "2026-11-03" }] });
    let plan = Scene::new(spec).pool("a", "z1", 3).retires("a-0", "instance-stop", 72).plan();
    let entry = plan.entry("a-0").unwrap();
    assert_eq!(entry.start, Some(at("2026-11-04T00:00:00Z")));
    assert_eq!(reasons(entry), [reason::FROZEN]);
    assert!(entry.waits_on[0].message.contains("freeze sale holds"), "{entry:?}");
}

#[test]
fn pool_is_worked_on_one_after_another_in_the_order_of_deadlines() {
    let plan = Scene::new(json!({ "budgets": { "coolDown": "10m" } }))
        .pool("a", "z1", 5)
        .retires("a-0", "instance-retirement", 72)
        .retires("a-1", "instance-retirement", 48)
        .retires("a-2", "instance-retirement", 60)
        .plan();
    assert_eq!(start(&plan, "a-1"), Some(now()));
    assert_eq!(start(&plan, "a-2"), Some(after(minutes(30))));
    assert_eq!(start(&plan, "a-0"), Some(after(minutes(60))));
    let entry = plan.entry("a-2").unwrap();
    assert_eq!(reasons(entry), [reason::BUDGET_EXHAUSTED]);
    assert_eq!(
        entry.waits_on[0].message,
        "1 of pool a are out of work (a-1), and 1 may be at once"
    );
    let order: Vec<&str> = plan.entries.iter().map(|entry| entry.machine.as_str()).collect();
    assert_eq!(order, ["a-1", "a-2", "a-0"]);
}

#[test]
fn of_equal_deadlines_the_riskier_comes_first_then_the_older() {
    let due = Some(after(hours(48)));
    let mut old = request("r-old");
    old.since = machinist_api::condition::to_seconds(at("2026-10-01T00:00:00Z"));
    let plan = Scene::new(json!({}))
        .pool("a", "z1", 6)
        .needs("a-0", &[request("r")])
        .needs("a-1", &[old])
        .needs("a-2", &[event("instance-reboot", "e2", due)])
        .needs("a-3", &[event("instance-stop", "e3", due)])
        .needs("a-4", &[event("instance-retirement", "e4", due)])
        .plan();
    let order: Vec<&str> = plan.entries.iter().map(|entry| entry.machine.as_str()).collect();
    assert_eq!(order, ["a-4", "a-3", "a-2", "a-1", "a-0"]);
}

#[test]
fn five_events_in_three_zones_under_one_for_each_zone() {
    let plan = Scene::new(json!({ "budgets": { "pool": 9, "zone": 1 } }))
        .pool("a", "z1", 4)
        .pool("b", "z2", 4)
        .pool("c", "z3", 4)
        .retires("a-0", "instance-retirement", 40)
        .retires("a-1", "instance-retirement", 41)
        .retires("b-0", "instance-retirement", 42)
        .retires("b-1", "instance-retirement", 43)
        .retires("c-0", "instance-retirement", 44)
        .plan();
    for (machine, expected) in [("a-0", 0), ("b-0", 0), ("c-0", 0), ("a-1", 20), ("b-1", 20)] {
        assert_eq!(start(&plan, machine), Some(after(minutes(expected))), "{machine}");
    }
    assert!(plan.entry("a-1").unwrap().waits_on[0].message.contains("zone z1"));
}

#[test]
fn budget_of_the_cluster_holds_over_pools_and_policies() {
    let plan = Scene::with_policies(&[
        policy_named("one", json!({ "selector": { "pools": ["a"] }, "budgets": { "cluster": 1 } })),
        policy_named(
            "many",
            json!({ "selector": { "pools": ["b"] }, "budgets": { "cluster": 5 } }),
        ),
    ])
    .pool("a", "z1", 4)
    .pool("b", "z2", 4)
    .retires("a-0", "instance-retirement", 40)
    .retires("b-0", "instance-retirement", 41)
    .plan();
    assert_eq!(start(&plan, "a-0"), Some(now()));
    assert_eq!(
        start(&plan, "b-0"),
        Some(after(minutes(20))),
        "the first tolerates nobody beside it"
    );
}

#[test]
fn what_is_broken_or_missing_counts() {
    let scene = || Scene::new(json!({})).pool("a", "z1", 3).retires("a-0", "instance-stop", 48);
    let broken = scene().change("a-1", |machine| machine.is_available = false);
    let entry = broken.plan().entry("a-0").unwrap().clone();
    assert_eq!(entry.start, Some(after(minutes(30))));
    assert_eq!(reasons(&entry), [reason::BUDGET_EXHAUSTED]);

    let mut missing = scene();
    missing.machines.retain(|machine| machine.name != "a-1");
    assert_eq!(missing.plan().entry("a-0").unwrap().start, Some(after(minutes(30))));

    let itself = scene().change("a-0", |machine| machine.is_available = false);
    assert!(itself.plan().entry("a-0").unwrap().is_due(), "it is out of work already");

    let elsewhere =
        scene().pool("b", "z1", 2).change("b-0", |machine| machine.is_available = false);
    assert!(elsewhere.plan().entry("a-0").unwrap().is_due());

    let mut gated = scene().change("a-1", |machine| machine.is_available = false);
    gated.policies = PolicySet::read(
        &[policy_named("workers", json!({ "budgets": { "pool": 3 } }))],
        &Legacy::default(),
    );
    assert!(gated.plan().entry("a-0").unwrap().is_due());
    gated.pools.get_mut("a").unwrap().gate = Some(1);
    assert!(!gated.plan().entry("a-0").unwrap().is_due(), "the gate's own limit holds as well");
}

#[test]
fn what_is_under_way_takes_its_place_and_is_shown() {
    let plan = Scene::new(json!({}))
        .pool("a", "z1", 3)
        .retires("a-0", "instance-retirement", 48)
        .change("a-1", |machine| {
            machine.under_way = Some(UnderWay {
                phase: MaintenancePhase::Draining,
                action: MaintenanceAction::Replace,
                since: after(-minutes(8)),
            });
        })
        .plan();
    assert_eq!(plan.entries[0].machine, "a-1");
    assert!(plan.entries[0].sentence().contains("(Draining)"));
    assert_eq!(start(&plan, "a-0"), Some(after(minutes(12))));
}

/// The new machine of a replacement does not work yet, and is missed by nobody.
#[test]
fn surplus_that_is_still_coming_does_not_get_the_place_of_what_it_comes_for() {
    let mut scene = Scene::new(json!({}))
        .pool("a", "z1", 2)
        .retires("a-1", "instance-reboot", 48)
        .change("a-1", |machine| machine.is_available = false)
        .change("a-0", |machine| {
            machine.under_way = Some(UnderWay {
                phase: MaintenancePhase::Surging,
                action: MaintenanceAction::Replace,
                since: after(-minutes(8)),
            });
        });
    scene.pools.get_mut("a").unwrap().desired = 1;
    let plan = scene.plan();
    assert_eq!(start(&plan, "a-1"), Some(after(minutes(12))));
    assert_eq!(reasons(plan.entry("a-1").unwrap()), [reason::BUDGET_EXHAUSTED]);
}

#[test]
fn finished_machine_keeps_its_place_for_the_cool_down() {
    let mut scene = Scene::new(json!({ "budgets": { "coolDown": "1h" } }))
        .pool("a", "z1", 3)
        .retires("a-0", "instance-retirement", 48);
    scene.finished.push(Finished {
        machine: "a-9",
        pool: Some("a"),
        home: Some(Home::Here),
        zone: None,
        is_control_plane: false,
        policy: Some("workers"),
        at: after(-minutes(15)),
    });
    assert_eq!(start(&scene.plan(), "a-0"), Some(after(minutes(45))));
}

/// Each workload cluster has its own zones, and its own work to lose.
#[test]
fn budgets_of_zone_and_cluster_count_each_workload_cluster_apart() {
    for (budgets, crowded) in [
        (json!({ "zone": 1 }), "1 of zone z1 of cluster team/c1 are out of work"),
        (json!({ "cluster": 1 }), "1 of cluster team/c1 are out of work"),
        (json!({ "cluster": "25%" }), "1 of cluster team/c1 are out of work"),
    ] {
        let scene = || {
            Scene::new(json!({ "budgets": budgets }))
                .pool("here", "z1", 2)
                .pool("a", "z1", 2)
                .pool("b", "z1", 2)
                .pool("other", "z1", 2)
                .in_cluster("a", "team/c1")
                .in_cluster("b", "team/c1")
                .in_cluster("other", "team/c2")
        };
        let mut all = scene();
        for name in ["here-0", "a-0", "b-0", "other-0"] {
            all = all.retires(name, "instance-retirement", 48);
        }
        let plan = all.plan();
        for (name, is_due) in [("here-0", true), ("a-0", true), ("b-0", false), ("other-0", true)] {
            assert_eq!(plan.entry(name).unwrap().is_due(), is_due, "{name} under {budgets}");
        }
        let wait = &plan.entry("b-0").unwrap().waits_on[0];
        assert!(wait.message.contains(crowded), "{budgets}: {}", wait.message);

        let broken = scene()
            .retires("here-0", "instance-retirement", 48)
            .retires("a-0", "instance-retirement", 48)
            .change("b-1", |machine| machine.is_available = false)
            .plan();
        assert!(broken.entry("here-0").unwrap().is_due(), "{budgets}");
        assert!(!broken.entry("a-0").unwrap().is_due(), "what is broken counts: {budgets}");
    }
}

#[test]
fn obstacles_are_all_told_and_nothing_is_begun() {
    let scene = || {
        Scene::new(json!({ "windows": [nightly()] })).pool("a", "z1", 3).retires(
            "a-0",
            "instance-stop",
            48,
        )
    };
    let told = |scene: Scene| {
        let plan = scene.plan();
        let entry = plan.entry("a-0").unwrap();
        assert_eq!((&entry.standing, entry.start), (&Standing::Blocked, None));
        reasons(entry).join(" ")
    };
    let mut paused = scene();
    paused.cluster.paused = Some("audit".to_owned());
    assert_eq!(told(paused), reason::PAUSED);
    let mut upgrading = scene();
    upgrading.cluster.upgrade = Some("the cluster is being upgraded".to_owned());
    assert_eq!(told(upgrading), reason::UPGRADE_UNDER_WAY);
    assert_eq!(told(scene().change("a-0", |machine| machine.hold = Some("mine"))), reason::ON_HOLD);
    assert_eq!(told(scene().change("a-0", |machine| machine.paused = Some(""))), reason::PAUSED);
    // It takes no place from others, however long it stays so.
    let launching = scene().change("a-0", |machine| machine.has_no_instance = true);
    assert_eq!(told(launching), reason::CLOUD_UNKNOWN);
    let missing = scene().change("a-0", |machine| machine.is_instance_missing = true);
    assert_eq!(told(missing), reason::CLOUD_UNKNOWN, "there is nothing to be stopped");
    let impossible = scene().change("a-0", |machine| {
        machine.impossible_budgets = vec!["budget app/web allows no disruption ever".to_owned()];
    });
    assert_eq!(told(impossible), reason::DRAIN_IMPOSSIBLE);
    let mut many = scene().change("a-0", |machine| machine.hold = Some("mine"));
    many.cluster.paused = Some(String::new());
    assert_eq!(told(many), format!("{} {}", reason::PAUSED, reason::ON_HOLD));
    let paused = Scene::new(json!({ "paused": true, "pauseReason": "audit" }))
        .pool("a", "z1", 3)
        .retires("a-0", "instance-stop", 48);
    assert_eq!(told(paused), reason::PAUSED);
}

#[test]
fn drain_that_can_be_forced_is_no_obstacle() {
    let plan = Scene::new(json!({ "drain": { "afterDeadline": "Force" } }))
        .pool("a", "z1", 3)
        .retires("a-0", "instance-stop", 48)
        .change("a-0", |machine| machine.impossible_budgets = vec!["x".to_owned()])
        .plan();
    assert!(plan.entry("a-0").unwrap().is_due());
}

#[test]
fn approval_is_waited_for_and_holds_only_for_its_reason() {
    let scene = |approval| {
        Scene::new(json!({ "approval": "Manual" }))
            .pool("a", "z1", 3)
            .retires("a-0", "instance-stop", 48)
            .change("a-0", |machine| machine.approval = approval)
            .plan()
    };
    let missing = scene(None);
    assert_eq!(reasons(missing.entry("a-0").unwrap()), [reason::APPROVAL_MISSING]);
    let other = scene(Some("instance-event-of-last-year"));
    let wait = &other.entry("a-0").unwrap().waits_on[0];
    assert!(wait.message.contains("instance-event-of-last-year"), "{wait:?}");
    assert!(scene(Some("true")).entry("a-0").unwrap().is_due());
    assert!(scene(Some("instance-event-a-0")).entry("a-0").unwrap().is_due());
}

#[test]
fn pods_that_are_not_to_be_disrupted_are_waited_for_until_the_latest_safe_start() {
    let scene = |reasons: &[MaintenanceReason]| {
        Scene::new(json!({})).pool("a", "z1", 3).needs("a-0", reasons).change("a-0", |machine| {
            machine.do_not_disrupt = vec!["batch/job-1".to_owned()];
        })
    };
    let due = Some(after(hours(10)));
    let plan = scene(&[event("instance-retirement", "e", due)]).plan();
    let entry = plan.entry("a-0").unwrap();
    assert_eq!(entry.start, Some(after(hours(10) - minutes(50))));
    assert_eq!(reasons(entry), [reason::DO_NOT_DISRUPT]);
    assert!(!entry.is_late);
    let for_ever = scene(&[request("r")]).plan();
    assert_eq!(for_ever.entry("a-0").unwrap().standing, Standing::Blocked);
}

#[test]
fn control_plane_is_reported_on_and_with_leave_done_one_at_a_time() {
    let scene = |spec: Value| {
        Scene::new(spec).control_plane(3).retires("master-0", "instance-retirement", 48).retires(
            "master-1",
            "instance-reboot",
            50,
        )
    };
    let reported = scene(json!({})).plan();
    for machine in ["master-0", "master-1"] {
        assert_eq!(reasons(reported.entry(machine).unwrap()), [reason::CONTROL_PLANE_REPORT_ONLY]);
    }
    let allowed = json!({ "controlPlane": "OneAtATime", "budgets": { "cluster": 9 } });
    let plan = scene(allowed.clone()).plan();
    assert_eq!(start(&plan, "master-0"), Some(now()));
    assert_eq!(start(&plan, "master-1"), Some(after(minutes(20))));

    let mut sick = scene(allowed.clone());
    sick.cluster.control_plane.problems.push(ControlPlaneProblem {
        machine: Some("master-0".to_owned()),
        message: "etcd member of master-0 is not healthy".to_owned(),
    });
    let plan = sick.plan();
    assert!(plan.entry("master-0").unwrap().is_due(), "the sick one may be replaced");
    assert_eq!(reasons(plan.entry("master-1").unwrap()), [reason::CONTROL_PLANE_NOT_READY]);

    let mut two = scene(allowed);
    two.machines.retain(|machine| machine.name != "master-2");
    two.cluster.control_plane.members = 2;
    let plan = two.plan();
    assert!(plan.entry("master-0").unwrap().is_due(), "another member joins first");
    assert_eq!(
        plan.entry("master-1").unwrap().waits_on[0].message,
        "the control plane has 2 members, and 2 must be there at any time"
    );
}

#[test]
fn lead_time_retry_and_request_put_work_off() {
    let lead = json!({ "events": [{ "code": "instance-stop", "action": "StopStart", "leadTime": "24h" }] });
    let plan = Scene::new(lead).pool("a", "z1", 3).retires("a-0", "instance-stop", 72).plan();
    assert_eq!(start(&plan, "a-0"), Some(after(hours(48))));
    assert_eq!(reasons(plan.entry("a-0").unwrap()), [reason::NOT_YET]);
    let retry = Scene::new(json!({}))
        .pool("a", "z1", 3)
        .retires("a-0", "instance-stop", 72)
        .change("a-0", |machine| machine.next_attempt = Some(after(hours(2))));
    assert_eq!(start(&retry.plan(), "a-0"), Some(after(hours(2))));
}

#[test]
fn nothing_to_be_done_is_said() {
    let plan =
        Scene::new(json!({})).pool("a", "z1", 3).retires("a-0", "volume-something", 48).plan();
    let entry = plan.entry("a-0").unwrap();
    assert_eq!(entry.standing, Standing::LeftAlone);
    assert_eq!(reasons(entry), [reason::NO_ACTION]);
}

#[test]
fn plan_can_be_shown_as_json() {
    let plan = Scene::new(json!({ "windows": [nightly()] }))
        .pool("a", "z1", 3)
        .retires("a-0", "instance-retirement", 48)
        .plan();
    let shown = serde_json::to_value(&plan).unwrap();
    let entry = &shown["entries"][0];
    assert_eq!(entry["machine"], "a-0");
    assert_eq!(entry["standing"], json!({ "is": "planned" }));
    assert_eq!(entry["start"], "2026-11-02T22:00:00Z");
    assert_eq!(entry["expectedSeconds"], 1200);
    assert_eq!(entry["waitsOn"][0]["reason"], "OutsideWindow");
}
