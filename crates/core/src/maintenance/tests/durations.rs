//! Is the expected duration learnt from what went well, with a floor under it?

use machinist_api::{MachineMaintenance, MaintenanceAction};

use super::*;

fn finished(outcome: &str, action: &str, pool: &str, took: i64) -> Value {
    json!({
        "action": action,
        "outcome": outcome,
        "pool": pool,
        "startedAt": "2026-10-01T10:00:00Z",
        "finishedAt": at("2026-10-01T10:00:00Z").checked_add(minutes(took)).unwrap(),
    })
}

fn learn(history: &[Value]) -> Durations {
    let maintenance: MachineMaintenance = serde_json::from_value(json!({
        "metadata": { "name": "mm-a" },
        "spec": { "machinelink": "a" },
        "status": { "history": history },
    }))
    .unwrap();
    Durations::learn([&maintenance])
}

#[test]
fn without_history_the_floor_holds() {
    let durations = Durations::default();
    assert_eq!(durations.expected(MaintenanceAction::Reboot, None), minutes(10));
    assert_eq!(durations.expected(MaintenanceAction::Replace, Some("a")), minutes(20));
}

#[test]
fn nine_of_ten_took_no_longer() {
    let took: Vec<Value> =
        (21..=30).map(|took| finished("Succeeded", "Replace", "a", took)).collect();
    let durations = learn(&took);
    assert_eq!(durations.expected(MaintenanceAction::Replace, Some("a")), minutes(29));
    assert_eq!(durations.expected(MaintenanceAction::Replace, Some("new")), minutes(29));
    assert_eq!(durations.expected(MaintenanceAction::Reboot, Some("a")), minutes(10));
}

#[test]
fn few_failed_short_and_endless_ones_teach_nothing() {
    let few = learn(&[
        finished("Succeeded", "Replace", "a", 90),
        finished("Succeeded", "Replace", "a", 90),
    ]);
    assert_eq!(few.expected(MaintenanceAction::Replace, None), minutes(20));
    let mut entries = vec![finished("Failed", "Replace", "a", 300); 3];
    entries.extend(vec![finished("Succeeded", "Replace", "a", 60 * 24); 3]);
    entries.extend(vec![finished("Succeeded", "Replace", "a", 2); 3]);
    assert_eq!(learn(&entries).expected(MaintenanceAction::Replace, None), minutes(20));
}
