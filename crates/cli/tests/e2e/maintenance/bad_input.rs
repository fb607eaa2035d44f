//! What cannot be used is said on the object that it is in, and nobody else is concerned.

use kube::api::ListParams;
use machinist_api::{
    Condition, ConditionStatus, MachineMaintenance, MaintenancePhase, condition,
    names::condition_type,
};
use machinist_testbed::cloud::model::EventCode;
use serde_json::json;

use super::*;
use crate::arena::{Arena, name_of, run};

impl Arena {
    async fn wait_policy(
        &self,
        name: &str,
        type_: &str,
        is_it: impl Fn(&Condition) -> bool,
    ) -> Condition {
        let name = format!("{}-{name}", self.name);
        self.eventually(&format!("condition {type_} of policy {name}"), async || {
            let status = self.policies().get(&name).await.unwrap().status?;
            condition::find(&status.conditions, type_).filter(|one| is_it(one)).cloned()
        })
        .await
    }
}

#[test]
fn bad_policies_and_objects_say_so_and_hold_up_nobody_else() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-bad").await;
        // Some that cannot be used, and one that can.
        let impossible = [
            (
                "zone",
                json!({"name": "w", "cron": "0 2 * * *", "duration": "2h", "timeZone": "Europe/Nowhere"}),
                "spec.windows[0].timeZone",
            ),
            (
                "rule",
                // There is no 30th of February.
                json!({
                    "name": "w",
                    "rrule": "FREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=30",
                    "start": "2026-02-01T02:00",
                    "duration": "2h",
                }),
                "spec.windows[0].rrule",
            ),
            (
                "never",
                json!({"name": "w", "cron": "0 2 31 2 *", "duration": "2h"}),
                "spec.windows[0].cron",
            ),
            (
                "zero",
                json!({"name": "w", "cron": "0 2 * * *", "duration": "0s"}),
                "spec.windows[0].duration",
            ),
        ];
        for (name, window, _) in &impossible {
            let spec = json!({"selector": {"pools": [name]}, "windows": [window]});
            arena.create_policy(name, spec).await;
        }
        arena.create_policy("good", json!({"selector": {"pools": ["good"]}})).await;
        for (name, _, field) in &impossible {
            let valid = arena
                .wait_policy(name, condition_type::VALID, |one| {
                    one.status == ConditionStatus::False
                })
                .await;
            let message = valid.message.unwrap();
            assert!(message.contains(field), "{name}: {message}");
            let never = ["rule", "never"].contains(name);
            assert_eq!(message.contains("never fires"), never, "{message}");
            println!("{name}: {message}");
        }
        arena
            .wait_policy("good", condition_type::VALID, |one| one.status == ConditionStatus::True)
            .await;

        // A machine of one of them waits; that of the other is maintained.
        arena.create_set("zone", 1, json!({})).await;
        arena.create_set("good", 1, json!({})).await;
        let machines = arena.wait_running(2).await;
        let of = |pool: &str| {
            let found = machines.iter().find(|machine| name_of(machine).starts_with(pool));
            Subject::of(found.unwrap())
        };
        let (held, good) = (of("zone"), of("good"));

        // Overlapping policies: the first by priority and name holds, and the other says so.
        let other =
            json!({"selector": {"pools": ["good"]}, "windows": [closed_window()], "priority": -1});
        arena.create_policy("also-good", other).await;
        let overruled = arena
            .wait_policy("also-good", condition_type::OVERRULED, |one| {
                one.status == ConditionStatus::True
            })
            .await;
        let message = overruled.message.unwrap();
        assert!(
            message.contains(&format!("policy {}-good for 1 machines", arena.name)),
            "{message}"
        );

        // One that names no Machine, and one whose Machine comes later.
        let of_nobody = |name: &str| {
            json!({
                "apiVersion": "machinemaintenance.managed.openshift.io/v1alpha1",
                "kind": "MachineMaintenance",
                "metadata": {"name": format!("mm-{name}")},
                "spec": {"machinelink": name, "machineid": "", "maintenancescheduled": false},
            })
        };
        arena.create::<MachineMaintenance>(of_nobody("nobody")).await;
        let status = arena
            .wait_maintenance("nobody", "is not valid", |status| {
                condition::find(&status.conditions, condition_type::VALID)
                    .is_some_and(|one| one.status == ConditionStatus::False)
            })
            .await;
        let message = status.message.unwrap();
        assert!(message.contains("spec.machinelink") && message.contains("nobody"), "{message}");
        arena.wait_event("mm-nobody", "FailedValidate", "spec.machinelink").await;

        // An event for an instance that no Machine knows.
        let stranger = Subject { instance: stray_instance(&arena), ..good.clone() };
        arena.announce(&stranger, EventCode::InstanceReboot, from_now(MUCH_LATER));
        let page = arena.page_of_the_books();
        arena.announce(&held, EventCode::InstanceReboot, from_now(MUCH_LATER));
        arena.announce(&good, EventCode::InstanceReboot, from_now(MUCH_LATER));
        arena.wait_over(&good.machine, MaintenancePhase::Succeeded).await;
        let status = arena.wait_waiting(&held.machine, "PolicyInvalid").await;
        let message = status.message.unwrap();
        assert!(message.contains("spec.windows[0].timeZone"), "{message}");
        let planned = arena.planned(&held.machine).await;
        assert_eq!(planned["standing"]["is"], "blocked", "{planned:#}");
        assert_eq!(arena.calls_since(page, "RebootInstances").len(), 1, "that of the good pool");
        let objects = arena.api::<MachineMaintenance>().list(&ListParams::default()).await.unwrap();
        assert_eq!(objects.items.len(), 3, "none for the stranger: {objects:?}");
        for (name, _, _) in &impossible {
            arena.delete_policy(name).await;
        }
        // Without its policy the other machine is maintained as well.
        arena.wait_over(&held.machine, MaintenancePhase::Succeeded).await;
    });
}

/// An instance with the cluster's tag that nobody asked for.
fn stray_instance(arena: &Arena) -> String {
    use machinist_testbed::cloud::model::{Caller, Request, RunInstances, Tag, TagSpecification};
    let world = arena.cluster.cloud().world();
    let zone = &world.availability_zones[0];
    let tag =
        Tag { key: format!("kubernetes.io/cluster/{}", arena.name), value: "owned".to_owned() };
    let request = RunInstances {
        image_id: Some(world.images["x86_64"].clone()),
        instance_type: Some("m5.large".to_owned()),
        subnet_id: Some(world.private_subnets[zone].clone()),
        min_count: 1,
        max_count: 1,
        tag_specifications: vec![TagSpecification {
            resource_type: "instance".to_owned(),
            tags: vec![tag],
        }],
        ..RunInstances::default()
    };
    let outcome = arena
        .cluster
        .cloud()
        .call(&Caller::default(), Request::RunInstances(std::sync::Arc::new(request)));
    outcome.result.unwrap();
    let found = arena.launched().into_iter().find(|one| !one.tags.contains_key("Name"));
    found.unwrap().id
}
