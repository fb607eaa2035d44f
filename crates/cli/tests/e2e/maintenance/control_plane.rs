//! The control plane: one at a time, with etcd known to be well, and a machine more before one goes.

use machinist_api::{Machine, MaintenancePhase, names::annotation};
use machinist_testbed::{cloud::model::EventCode, etcd::Etcd};
use serde_json::json;

use super::*;
use crate::arena::{Arena, run};

const MEMBERS: usize = 3;
const HOOK: &str = "EtcdQuorumOperator";

/// Three machines without an owner, as an installer makes them, in three zones.
async fn three_masters(arena: &Arena) -> (Etcd, Vec<Subject>) {
    let etcd = arena.cluster.play_etcd(&arena.name, MEMBERS).await.unwrap();
    let world = arena.cluster.cloud().world();
    for (index, zone) in world.availability_zones.iter().take(MEMBERS).enumerate() {
        let machine = json!({
            "metadata": {"labels": {
                "machine.openshift.io/cluster-api-machineset": null,
                "machine.openshift.io/cluster-api-machine-role": "master",
                "machine.openshift.io/cluster-api-machine-type": "master",
            }},
            "spec": {
                "metadata": {"labels": {"pool": format!("{}-masters", arena.name)}},
                "providerSpec": {"value": {
                    "placement": {"availabilityZone": zone},
                    "subnet": {"id": world.private_subnets[zone]},
                }},
            },
        });
        arena.create_machine(&format!("{}-master-{index}", arena.name), machine).await;
    }
    let mut machines = arena.wait_running(MEMBERS).await;
    machines.sort_by_key(|machine| machine.metadata.name.clone());
    arena
        .eventually("all are members of etcd", async || {
            (etcd.healthy().len() == MEMBERS).then_some(())
        })
        .await;
    for machine in &machines {
        arena
            .eventually("the etcd operator's hook is on each machine", async || {
                let found = arena.machine(machine.metadata.name.as_deref().unwrap()).await;
                has_hook(&found).then_some(())
            })
            .await;
    }
    (etcd, machines.iter().map(Subject::of).collect())
}

fn has_hook(machine: &Machine) -> bool {
    let hooks = machine.spec.lifecycle_hooks.clone().unwrap_or_default();
    hooks.pre_drain.iter().any(|hook| hook.name == HOOK && hook.owner == "clusteroperator/etcd")
}

#[test]
fn a_retired_machine_of_the_control_plane_goes_when_its_copy_is_a_member_of_etcd() {
    run(async {
        let (arena, _operator) = Arena::with_operator("mm-masters").await;
        // By default the control plane is only reported on.
        arena.create_policy("nights", json!({})).await;
        let (etcd, subjects) = three_masters(&arena).await;
        let [first, second, third] = <[Subject; 3]>::try_from(subjects).unwrap();
        let page = arena.page_of_the_books();
        arena.announce(&first, EventCode::InstanceRetirement, from_now(MUCH_LATER));
        let later = from_now(MUCH_LATER + LATER);
        arena.announce(&second, EventCode::InstanceRetirement, later);
        arena.wait_waiting(&first.machine, "ControlPlaneReportOnly").await;
        arena.wait_waiting(&second.machine, "ControlPlaneReportOnly").await;
        let planned = arena.planned(&first.machine).await;
        assert_eq!(planned["standing"]["is"], "blocked", "{planned:#}");
        assert_eq!(arena.changes_since(page), 0, "nothing is begun");

        // One at a time is allowed; the new machine does not become a member at once.
        let one = json!({"controlPlane": "OneAtATime"});
        let planned = arena.planned_under(&first.machine, "nights", one.clone()).await;
        assert_eq!(planned["standing"]["is"], "due", "{planned:#}");
        let other = arena.planned_under(&second.machine, "nights", one.clone()).await;
        assert_ne!(other["standing"]["is"], "due", "one at a time: {other:#}");
        // A member that says that it is not healthy holds all of them back, however ready its pod is.
        etcd.lose_leader(&third.node, true);
        arena.change_policy("nights", one).await;
        arena
            .wait_maintenance(&first.machine, "waits for the third member of etcd", |status| {
                let waits = status.plan.iter().flat_map(|plan| &plan.waits_on);
                waits.into_iter().any(|wait| wait.message.contains("RAFT NO LEADER"))
            })
            .await;
        assert_eq!(arena.changes_since(page), 0, "nothing is begun");
        etcd.admit(false);
        etcd.lose_leader(&third.node, false);
        let nodes = arena.watch_nodes("masters").await;
        let status = arena
            .wait_maintenance(&first.machine, "waits for the new member of etcd", |status| {
                let plan = status.plan.as_ref();
                plan.is_some_and(|plan| {
                    plan.waits_on.iter().any(|wait| wait.message.contains("no member of etcd"))
                })
            })
            .await;
        assert_eq!(status.phase, Some(MaintenancePhase::Surging));
        let copy = status.work.unwrap().replacement.unwrap().name;
        let told = arena.machinist(&["explain", &format!("machine/{copy}")]).await;
        assert!(told.replace("\n", " ").contains("etcd"), "{told}");
        println!("{told}");
        assert_eq!(arena.calls_on("TerminateInstances", std::slice::from_ref(&first.instance)), 0);

        etcd.admit(true);
        let status = arena.wait_over(&first.machine, MaintenancePhase::Succeeded).await;
        let steps = [
            MaintenancePhase::Surging,
            MaintenancePhase::Acting,
            MaintenancePhase::Verifying,
            MaintenancePhase::Succeeded,
        ];
        assert_as_planned(&planned, &status, &steps);
        arena.wait_gone(&first.machine).await;

        // Then the other, and never both.
        let status = arena.wait_over(&second.machine, MaintenancePhase::Succeeded).await;
        assert_eq!(phases(&status), steps);
        let ended = arena.maintenance_status(&first.machine).await.finished_at.unwrap();
        let began = status.work.unwrap().started_at.unwrap();
        assert!(began.0 >= ended.0, "the second began at {began:?}, the first ended at {ended:?}");
        nodes.assert_at_least(MEMBERS);
        let machines = arena.wait_running(MEMBERS).await;
        let names: Vec<_> = machines.iter().map(|one| one.metadata.name.clone().unwrap()).collect();
        assert!(names.contains(&third.machine) && names.contains(&copy), "{names:?}");
        for machine in &machines {
            let annotations = machine.metadata.annotations.clone().unwrap_or_default();
            assert!(!annotations.contains_key(annotation::HOLD), "{annotations:?}");
        }
        assert_eq!(arena.launched().len(), MEMBERS + 2);
        assert_eq!(etcd.healthy().len(), MEMBERS);
        arena.check_ledger().await;
    });
}
