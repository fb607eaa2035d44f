//! What is planned where no window lies before the deadline, under each of the four policies?

use machinist_api::names::maintenance_reason as reason;

use super::*;
use crate::maintenance::plan::{PlanEntry, Standing};

/// A window that opens on Saturday at 22:00, after the event of Wednesday.
fn scene(when_no_window: &str, changes: Value) -> Scene {
    let mut spec = json!({
        "whenNoWindow": when_no_window,
        "windows": [{ "name": "saturday", "cron": "0 22 * * 6", "duration": "4h" }],
    });
    patch(&mut spec, &changes);
    Scene::new(spec).pool("a", "z1", 3)
}

fn stop(movable_until: Option<Timestamp>) -> MaintenanceReason {
    let mut reason = event("instance-retirement", "e", Some(after(hours(48))));
    reason.not_before_deadline = movable_until.map(machinist_api::condition::to_seconds);
    reason
}

fn entry(scene: Scene) -> PlanEntry {
    let plan = scene.plan();
    let entry = plan.entry("a-0").unwrap().clone();
    assert!(entry.is_late);
    assert!(
        plan.notes.iter().any(|note| {
            note.reason == reason::NO_WINDOW_IN_TIME && note.about == "machine/a-0"
        }),
        "what cannot be done in time is said at once: {:?}",
        plan.notes
    );
    entry
}

fn reasons(entry: &PlanEntry) -> Vec<&str> {
    entry.waits_on.iter().map(|wait| wait.reason).collect()
}

#[test]
fn act_anyway_begins_at_the_latest_safe_start() {
    let entry = entry(scene("ActAnyway", json!({})).needs("a-0", &[stop(None)]));
    assert_eq!(entry.standing, Standing::Planned);
    assert_eq!(entry.start, Some(after(hours(48) - minutes(50))));
    assert_eq!(entry.window, None);
    assert!(entry.why.contains("policy workers acts against the calendar"), "{}", entry.why);
}

#[test]
fn act_anyway_packs_backwards_under_the_budget_and_avoids_freezes() {
    let both = |freezes: Value| {
        let scene = scene("ActAnyway", json!({ "freezes": freezes }))
            .needs("a-0", &[stop(None)])
            .needs("a-1", &[stop(None)]);
        let plan = scene.plan();
        ["a-0", "a-1"].map(|machine| plan.entry(machine).unwrap().start.unwrap())
    };
    let latest = after(hours(48) - minutes(50));
    assert_eq!(both(json!([])), [latest, latest.checked_sub(minutes(20)).unwrap()]);
    let freeze = json!([{ "name": "f", "from": "2026-11-03T00:00", "to": "2026-11-10" }]);
    let before = at("2026-11-02T23:40:00Z");
    assert_eq!(both(freeze), [before, before.checked_sub(minutes(20)).unwrap()]);
    let all = json!([{ "name": "f", "from": "2026-11-01", "to": "2026-11-10" }]);
    assert_eq!(both(all)[0], latest, "a freeze is broken when nothing else is left");
}

#[test]
fn ask_waits_for_a_person_and_then_acts() {
    let waiting = entry(scene("Ask", json!({})).needs("a-0", &[stop(None)]));
    assert_eq!((&waiting.standing, waiting.start), (&Standing::Blocked, None));
    assert_eq!(reasons(&waiting), [reason::NO_WINDOW_IN_TIME, reason::APPROVAL_MISSING]);
    let approved = scene("Ask", json!({}))
        .needs("a-0", &[stop(None)])
        .change("a-0", |machine| machine.approval = Some("e"));
    assert_eq!(entry(approved).start, Some(after(hours(48) - minutes(50))));
}

#[test]
fn move_event_takes_the_last_time_in_a_window_that_the_provider_allows() {
    let until = at("2026-11-10T00:00:00Z");
    let moved = entry(scene("MoveEvent", json!({})).needs("a-0", &[stop(Some(until))]));
    let to = at("2026-11-08T02:00:00Z");
    assert_eq!(moved.standing, Standing::MovesEvent { event_id: "e".to_owned(), to });
    assert_eq!(moved.start, Some(at("2026-11-07T22:00:00Z")));
    assert_eq!(reasons(&moved), [reason::NO_WINDOW_IN_TIME, reason::MOVING_EVENT]);
    let inside = at("2026-11-07T23:00:00Z");
    let moved = entry(scene("MoveEvent", json!({})).needs("a-0", &[stop(Some(inside))]));
    assert_eq!(moved.standing, Standing::MovesEvent { event_id: "e".to_owned(), to: inside });
}

#[test]
fn event_that_cannot_be_moved_is_asked_about() {
    let cases = [
        (stop(None), "does not let the event be moved"),
        (stop(Some(at("2026-11-07T22:30:00Z"))), "to be moved"),
        (stop(Some(after(hours(49)))), "at the latest"),
    ];
    for (reason_, _) in &cases {
        let asked =
            entry(scene("MoveEvent", json!({})).needs("a-0", std::slice::from_ref(reason_)));
        assert_eq!(reasons(&asked), [reason::NO_WINDOW_IN_TIME, reason::APPROVAL_MISSING]);
    }
    let asked = entry(scene("MoveEvent", json!({})).needs("a-0", &[cases[0].0.clone()]));
    assert!(asked.waits_on[0].message.contains(cases[0].1), "{asked:?}");
    let soon = event("instance-stop", "e", Some(after(minutes(4))));
    let asked = entry(scene("MoveEvent", json!({})).needs(
        "a-0",
        &[MaintenanceReason {
            not_before_deadline: Some(machinist_api::condition::to_seconds(after(hours(500)))),
            ..soon
        }],
    ));
    assert!(asked.waits_on[0].message.contains("too soon"), "{asked:?}");
}

#[test]
fn let_the_provider_act_leaves_it_alone() {
    let left = entry(scene("LetProviderAct", json!({})).needs("a-0", &[stop(None)]));
    assert_eq!((&left.standing, left.start), (&Standing::LeftAlone, None));
    assert_eq!(reasons(&left), [reason::NO_WINDOW_IN_TIME, reason::LEFT_TO_PROVIDER]);
}

#[test]
fn window_that_is_always_too_short_is_said_so() {
    let short = json!({ "windows": [{ "name": "w", "cron": "0 22 * * *", "duration": "10m" }] });
    let late = entry(scene("Ask", short.clone()).needs("a-0", &[stop(None)]));
    assert!(
        late.waits_on[0].message.contains(
            "no window is long enough: the longest is open for 10m, and the work is expected to take 20m"
        ),
        "{late:?}"
    );
    let plan = scene("Ask", short).needs("a-0", &[request("r")]).plan();
    let entry = plan.entry("a-0").unwrap();
    assert_eq!(reasons(entry), [reason::WINDOW_TOO_SHORT]);
    assert_eq!(entry.standing, Standing::Blocked);
}

#[test]
fn budget_that_does_not_suffice_before_the_deadline_is_late_too() {
    let scene = Scene::new(json!({ "windows": [
        { "name": "w", "cron": "0 22 * * *", "duration": "30m" }] }))
    .pool("a", "z1", 4)
    .retires("a-0", "instance-retirement", 14)
    .retires("a-1", "instance-retirement", 14);
    let plan = scene.plan();
    assert_eq!(plan.entry("a-0").unwrap().start, Some(at("2026-11-02T22:00:00Z")));
    let late = plan.entry("a-1").unwrap();
    assert!(late.is_late);
    assert_eq!(reasons(late), [reason::NO_WINDOW_IN_TIME, reason::APPROVAL_MISSING]);
}

#[test]
fn deadline_that_is_too_near_is_acted_on_at_once_where_a_window_is_open() {
    let plan = Scene::new(json!({}))
        .pool("a", "z1", 3)
        .needs("a-0", &[event("instance-stop", "e", Some(after(minutes(20))))])
        .plan();
    let entry = plan.entry("a-0").unwrap();
    assert!(entry.is_due() && entry.is_late);
    assert_eq!(plan.notes.len(), 1);
}

#[test]
fn budget_of_nothing_blocks_and_says_so() {
    let plan = Scene::new(json!({ "budgets": { "pool": 0 } }))
        .pool("a", "z1", 3)
        .needs("a-0", &[request("r")])
        .plan();
    let entry = plan.entry("a-0").unwrap();
    assert_eq!(entry.standing, Standing::Blocked);
    assert_eq!(entry.waits_on[0].message, "the budget of pool a is 0");
}
