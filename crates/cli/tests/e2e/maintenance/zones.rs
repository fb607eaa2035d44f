//! Five events in three zones, under a budget of one machine for each zone.

use std::collections::BTreeMap;

use machinist_api::MaintenancePhase;
use machinist_testbed::cloud::model::EventCode;
use serde_json::json;

use super::*;
use crate::arena::{Arena, name_of, run};

#[test]
fn five_events_in_three_zones_are_worked_off_one_in_each_zone_at_a_time() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-zones").await;
        let spec = |window: Value| json!({"windows": [window], "budgets": {"pool": 2, "zone": 1}});
        arena.create_policy("nights", spec(closed_window())).await;
        let world = arena.cluster.cloud().world();
        let zones: Vec<String> = world.availability_zones.iter().take(3).cloned().collect();
        for (index, zone) in zones.iter().enumerate() {
            let place = json!({"spec": {"template": {"spec": {"providerSpec": {"value": {
                "placement": {"availabilityZone": zone},
                "subnet": {"id": world.private_subnets[zone]},
            }}}}}});
            arena.create_set(&format!("pool-{index}"), 2, place).await;
        }
        let machines = arena.wait_running(6).await;
        let mut by_zone: BTreeMap<String, Vec<Subject>> = BTreeMap::new();
        for machine in &machines {
            arena.wait_true(&name_of(machine), "InstanceHealthy").await;
            let machine = arena.machine(&name_of(machine)).await;
            let zone =
                machine.metadata.labels.as_ref().unwrap()["machine.openshift.io/zone"].clone();
            by_zone.entry(zone).or_default().push(Subject::of(&machine));
        }
        let concerned: Vec<Subject> = by_zone.values().flatten().take(5).cloned().collect();
        for (hours, subject) in (48..).zip(&concerned) {
            let at = from_now(SignedDuration::from_hours(hours));
            arena.announce(subject, EventCode::InstanceReboot, at);
        }
        for subject in &concerned {
            arena.wait_phase(&subject.machine, MaintenancePhase::Scheduled).await;
        }
        let open = spec(open_window());
        let file = arena.policy_file("nights", open.clone());
        let plan = arena.plan(&["--policy", file.to_str().unwrap()]).await;
        let standing = |subject: &Subject| {
            entry(&plan, &subject.machine)["standing"]["is"].as_str().unwrap().to_owned()
        };
        let standings: Vec<String> = concerned.iter().map(standing).collect();
        assert_eq!(standings, ["due", "planned", "due", "planned", "due"], "{plan:#}");

        let mut watches = Vec::new();
        for index in 0..zones.len() {
            watches.push(arena.watch_nodes(&format!("pool-{index}")).await);
        }
        arena.change_policy("nights", open).await;
        let mut spans: BTreeMap<&str, Vec<(Timestamp, Timestamp)>> = BTreeMap::new();
        for subject in &concerned {
            let status = arena.wait_over(&subject.machine, MaintenancePhase::Succeeded).await;
            let planned = entry(&plan, &subject.machine);
            let work = status.work.unwrap();
            assert_eq!(work.action.unwrap().as_str(), planned["action"]);
            let zone = planned["zone"].as_str().unwrap();
            assert_eq!(work.zone.as_deref(), Some(zone));
            let zone = zones.iter().find(|one| *one == zone).unwrap();
            let span = (work.started_at.unwrap().0, status.finished_at.unwrap().0);
            spans.entry(zone).or_default().push(span);
        }
        // In the order of the plan, and never two in a zone.
        for (zone, spans) in &spans {
            for pair in spans.windows(2) {
                assert!(pair[0].1 <= pair[1].0, "two at once in {zone}: {spans:?}");
            }
        }
        for watch in watches {
            watch.assert_at_least(1);
        }
        assert_eq!(arena.launched().len(), 6, "all are the machines that they were");
        arena.check_ledger().await;
    });
}
