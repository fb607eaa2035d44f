//! Is a reason taken from wherever it is told, and is the control plane kept whole?

use machinist_core::{
    cloud::{ErrorClass, InstanceId},
    maintenance::event::{HealthNotice, Sighting},
};
use machinist_providers::{InstanceSize, ProviderError};
use serde_json::json;

use super::{
    bench::{Bench, NODES, POLICIES, TARGET},
    *,
};
use crate::testing::{MACHINES, read};

const ORIGINAL: &str = "/apis/machinemaintenance.managed.openshift.io/v1alpha1/namespaces/\
                        machine-maintenance-operator/machinemaintenances";

#[tokio::test(start_paused = true)]
async fn a_person_asks_by_an_annotation_and_the_machine_is_replaced() {
    let mut bench = Bench::new().await;
    let known =
        bench.world.server.lock().objects[&(MACHINES.to_owned(), TARGET.to_owned())].clone();
    let mut machine = known;
    machine["metadata"]["annotations"] =
        json!({ "machinist.dev/maintenance-requested": "Replace: a noisy fan" });
    bench.put(MACHINES, machine);
    bench.until_phase(MaintenancePhase::Succeeded).await;
    bench.rounds(2).await;
    bench.assert_nothing_left();
    assert!(bench.machines().iter().all(|one| one.metadata.name.as_deref() != Some(TARGET)));
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_original_in_its_own_namespace_is_carried_out() {
    let mut bench = Bench::new().await;
    let object = json!({
        "apiVersion": "machinemaintenance.managed.openshift.io/v1alpha1",
        "kind": "MachineMaintenance",
        "metadata": {
            "name": "mm-m-0", "namespace": "machine-maintenance-operator", "generation": 1,
        },
        "spec": { "machinelink": TARGET, "machineid": "i-m-0", "maintenancescheduled": false },
    });
    bench.put(ORIGINAL, object);
    let status = |bench: &Bench| {
        let state = bench.world.server.lock();
        let known = state.objects[&(ORIGINAL.to_owned(), "mm-m-0".to_owned())].clone();
        read::<MachineMaintenance>(known)
    };
    bench
        .until("its end", |bench| {
            let phase = status(bench).status.and_then(|status| status.phase);
            phase == Some(MaintenancePhase::Succeeded)
        })
        .await;
    assert!(status(&bench).spec.maintenancescheduled);
    assert!(bench.object().is_none(), "no second one is made");
    bench.rounds(2).await;
    bench.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn a_notice_and_the_machines_own_metadata_are_reasons_too() {
    let mut bench = Bench::new().await;
    bench.put(POLICIES, policy("daily", window(14)));
    let at = bench.now() + jiff::SignedDuration::from_hours(48);
    let sighting = Sighting::noticed(&HealthNotice {
        arn: "arn:1",
        type_code: "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
        status: "upcoming",
        description: "",
        start: Some(at),
        end: None,
        instance: InstanceId(format!("i-{TARGET}")),
    });
    let (_, access) = bench.world.context.clouds.all().pop().unwrap();
    access.view.hear(sighting);
    bench.until("the object", |bench| !bench.status().reasons.is_empty()).await;
    assert_eq!(bench.status().reasons[0].sources, ["Queue"]);

    let mut node = bench.node(TARGET);
    let events = json!({ "instance-event-7": {
        "code": "instance-retirement", "state": "active", "notBefore": at,
    } });
    node["metadata"]["annotations"] =
        json!({ "machinist.dev/scheduled-events": events.to_string() });
    bench.put(NODES, node);
    bench.until("both", |bench| bench.status().reasons[0].sources.len() == 2).await;
    let reasons = bench.status().reasons;
    assert_eq!(reasons.len(), 1, "two tell of one event: {reasons:?}");
    assert_eq!(reasons[0].id, "instance-event-7");
}

#[tokio::test(start_paused = true)]
async fn what_the_cloud_refuses_is_said_and_tried_again() {
    let mut bench = Bench::new().await;
    *bench.clouds.cloud.catalog.lock().unwrap() = Some(vec![InstanceSize {
        name: String::new(),
        vcpus: 1,
        memory_mib: 1,
        gpus: 0,
        architecture: "amd64".to_owned(),
        has_instance_store: false,
    }]);
    let refusal = ProviderError::new(ErrorClass::Unauthorized, "you may not");
    *bench.clouds.cloud.effect_failure.lock().unwrap() = Some(refusal);
    bench.announce("instance-stop", 48, "hardware");
    bench
        .until("the refusal", |bench| {
            let effect = bench.status().work.and_then(|work| work.effect);
            effect.and_then(|effect| effect.failure).is_some_and(|words| words == "you may not")
        })
        .await;
    *bench.clouds.cloud.effect_failure.lock().unwrap() = None;
    bench.until_phase(MaintenancePhase::Verifying).await;
    bench.report(Vec::new());
    bench.until_phase(MaintenancePhase::Succeeded).await;
    let effects = bench.clouds.cloud.effects();
    assert_eq!(effects, ["stop i-m-0", "stop i-m-0", "start i-m-0"]);
    bench.rounds(2).await;
    bench.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn a_member_of_the_control_plane_is_replaced_by_a_copy_when_etcd_is_well() {
    let mut bench = Bench::control_plane().await;
    bench.put(POLICIES, policy("masters", json!({ "controlPlane": "OneAtATime" })));
    let etcd = (bench::ETCD.to_owned(), "etcd-m-2".to_owned());
    let set_ready = |bench: &Bench, ready: &str| {
        let mut pod = bench.world.server.lock().objects[&etcd].clone();
        pod["status"]["conditions"][0]["status"] = json!(ready);
        bench.world.server.put(bench::ETCD, pod);
    };
    set_ready(&bench, "False");
    bench.announce(RETIREMENT, 48, "hardware");
    bench.until("a plan", |bench| bench.status().plan.is_some()).await;
    bench.rounds(10).await;
    let plan = bench.status().plan.unwrap();
    assert_eq!(plan.waits_on[0].reason, "ControlPlaneNotReady", "{plan:?}");
    assert_eq!(bench.machines().len(), 3);
    set_ready(&bench, "True");
    bench.until_phase(MaintenancePhase::Succeeded).await;
    let names: Vec<_> =
        bench.machines().into_iter().map(|one| one.metadata.name.unwrap()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(!names.contains(&TARGET.to_owned()) && names[0].starts_with("m-0-"), "{names:?}");
    assert!(bench.fewest_ready >= 3, "{}", bench.fewest_ready);
}

#[tokio::test(start_paused = true)]
async fn the_control_plane_is_only_reported_on_without_a_policy() {
    let mut bench = Bench::control_plane().await;
    bench.announce(RETIREMENT, 48, "hardware");
    bench.until("a plan", |bench| bench.status().plan.is_some()).await;
    bench.rounds(10).await;
    let plan = bench.status().plan.unwrap();
    assert_eq!(plan.waits_on[0].reason, "ControlPlaneReportOnly", "{plan:?}");
    assert_eq!(bench.machines().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_pause_and_an_upgrade_hold_everything_back() {
    let mut bench = Bench::new().await;
    let stores = bench.world.context.stores.maintenance.clone();
    stores.namespaces.apply_written(read(json!({ "metadata": {
        "name": "ns", "uid": "uid-ns", "resourceVersion": "1",
        "annotations": { "machinist.dev/maintenance-paused": "an audit" },
    } })));
    stores.upgrades.apply_written(read(json!({
        "apiVersion": "upgrade.managed.openshift.io/v1alpha1", "kind": "UpgradeConfig",
        "metadata": { "name": "u", "namespace": "n", "uid": "uid-u", "resourceVersion": "1" },
        "spec": { "desired": { "version": "4.9.9" } },
        "status": { "history": [{ "version": "4.9.9", "phase": "Upgrading" }] },
    })));
    bench.announce(RETIREMENT, 48, "hardware");
    bench.until("a plan", |bench| bench.status().plan.is_some()).await;
    bench.rounds(5).await;
    let waits = bench.status().plan.unwrap().waits_on;
    let reasons: Vec<&str> = waits.iter().map(|wait| wait.reason.as_str()).collect();
    assert_eq!(reasons, ["Paused", "UpgradeUnderWay"]);
    stores.namespaces.forget_written(&ObjectKey::cluster_wide("ns"), "uid-ns");
    stores.upgrades.forget_written(&ObjectKey::new("n", "u"), "uid-u");
    bench.until_phase(MaintenancePhase::Succeeded).await;
}
