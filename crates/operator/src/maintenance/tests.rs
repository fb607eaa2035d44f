//! A retirement from its first sight to the end, whatever happens in between; and bad objects that harm
//! nobody.

mod bench;
mod notifying;
mod sources;
mod waking;

use machinist_api::{MaintenanceAction, MaintenancePolicy, condition};
use serde_json::{Value, json};

use self::bench::{Bench, OBJECTS, PODS, POLICIES, TARGET};
use super::*;
use crate::testing::read;

const RETIREMENT: &str = "instance-retirement";

fn policy(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "machinist.dev/v1alpha1", "kind": "MaintenancePolicy",
        "metadata": { "name": name, "generation": 1 }, "spec": spec,
    })
}

/// Every day at that hour, for three hours.
fn window(hour: u32) -> Value {
    json!({ "windows": [{
        "name": "daily", "cron": format!("0 {hour} * * *"), "duration": "3h", "timeZone": "UTC",
    }] })
}

fn policy_condition(bench: &Bench, name: &str) -> (String, String) {
    let state = bench.world.server.lock();
    let known = state.objects[&(POLICIES.to_owned(), name.to_owned())].clone();
    let policy: MaintenancePolicy = read(known);
    let status = policy.status.unwrap_or_default();
    let valid = condition::find(&status.conditions, "Valid").unwrap().clone();
    (format!("{:?}", valid.status), valid.message.unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_retirement_waits_for_its_window_and_then_the_machine_is_replaced() {
    use MaintenancePhase::{Acting, Draining, Scheduled, Succeeded, Surging, Verifying};
    let mut bench = Bench::new().await;
    bench.put(POLICIES, policy("daily", window(14)));
    bench.announce(RETIREMENT, 48, "The instance is running on degraded hardware");
    bench.until("the object", |bench| bench.object().is_some()).await;
    bench.until_phase(Scheduled).await;
    let object = bench.object().unwrap();
    assert_eq!(object.spec.machinelink, TARGET);
    assert_eq!(object.spec.eventcode.as_deref(), Some(RETIREMENT));
    assert_eq!(object.spec.machineid, "i-m-0");
    assert!(!object.spec.maintenancescheduled);
    let plan = bench.status().plan.unwrap();
    assert_eq!(plan.action, Some(MaintenanceAction::Replace));
    assert_eq!(plan.window.as_deref(), Some("daily"));
    assert_eq!(plan.start.unwrap().0.to_string(), "2026-01-01T14:00:00Z");
    assert_eq!(plan.waits_on[0].reason, "OutsideWindow");

    bench.until_phase(Surging).await;
    assert!(bench.now().to_string().starts_with("2026-01-01T14:0"), "{}", bench.now());
    bench.until_phase(Succeeded).await;
    bench.rounds(2).await;
    assert_eq!(bench.phases, [Scheduled, Surging, Draining, Acting, Verifying, Succeeded]);
    assert!(bench.object().unwrap().spec.maintenancescheduled);
    assert!(bench.fewest_ready >= 3, "the pool had {} ready machines", bench.fewest_ready);
    let names: Vec<_> =
        bench.machines().into_iter().map(|one| one.metadata.name.unwrap()).collect();
    assert_eq!(names, ["m-1", "m-2", "new-3"], "exactly the machine meant is gone");
    assert_eq!(bench.object().unwrap().metadata.finalizers.unwrap_or_default(), [""; 0]);
    bench.assert_nothing_left();
    let text = bench.world.context.metrics.encode().unwrap();
    let took =
        "machinist_maintenance_duration_seconds_count{action=\"Replace\",outcome=\"Succeeded\"} 1";
    assert!(text.contains(took), "{text}");
    assert!(bench.world.into_event_count().await > 0);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_cancelled_mid_surge_leaves_everything_as_it_was() {
    let mut bench = Bench::new().await;
    bench.announce(RETIREMENT, 48, "hardware");
    bench.until_phase(MaintenancePhase::Surging).await;
    bench.until("a machine more", |bench| bench.set()["spec"]["replicas"] == 4).await;
    bench.announce(RETIREMENT, 48, "[Canceled] hardware");
    bench.until_phase(MaintenancePhase::Cancelled).await;
    bench.rounds(5).await;
    bench.assert_nothing_left();
    let names: Vec<_> =
        bench.machines().into_iter().map(|one| one.metadata.name.unwrap()).collect();
    assert_eq!(names, ["m-0", "m-1", "m-2"]);
    assert!(bench.world.server.lock().objects.contains_key(&(PODS.to_owned(), "web-0".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_between_any_two_writes_of_a_replacement_changes_nothing_about_its_end()
{
    let mut write = 1;
    loop {
        let mut bench = Bench::new().await;
        bench.announce(RETIREMENT, 48, "hardware");
        bench.die_before(write);
        bench.until_phase(MaintenancePhase::Succeeded).await;
        bench.rounds(2).await;
        bench.assert_nothing_left();
        assert!(bench.fewest_ready >= 3, "before write {write}: {}", bench.fewest_ready);
        let machines = bench.machines();
        assert_eq!(machines.len(), 3, "before write {write}");
        assert!(machines.iter().all(|one| one.metadata.name.as_deref() != Some(TARGET)));
        if bench.deaths == 0 {
            break;
        }
        write += 1;
    }
    assert!(write > 12, "a replacement has more than {write} writes");
}

#[tokio::test(start_paused = true)]
async fn a_stop_event_is_settled_by_a_stop_and_a_start() {
    let mut bench = Bench::new().await;
    *bench.clouds.cloud.catalog.lock().unwrap() = Some(vec![machinist_providers::InstanceSize {
        name: String::new(),
        vcpus: 1,
        memory_mib: 1,
        gpus: 0,
        architecture: "amd64".to_owned(),
        has_instance_store: false,
    }]);
    bench.announce("instance-stop", 48, "hardware");
    bench.until_phase(MaintenancePhase::Verifying).await;
    bench.report(Vec::new());
    bench.until_phase(MaintenancePhase::Succeeded).await;
    bench.rounds(2).await;
    assert_eq!(bench.clouds.cloud.effects(), ["stop i-m-0", "start i-m-0"]);
    bench.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn a_reboot_event_is_settled_by_one_reboot() {
    let mut bench = Bench::new().await;
    *bench.clouds.cloud.catalog.lock().unwrap() = Some(vec![machinist_providers::InstanceSize {
        name: String::new(),
        vcpus: 1,
        memory_mib: 1,
        gpus: 0,
        architecture: "amd64".to_owned(),
        has_instance_store: true,
    }]);
    bench.announce("instance-reboot", 48, "software");
    bench.until("the reboot", |bench| !bench.clouds.cloud.effects().is_empty()).await;
    bench.rounds(3).await;
    assert_eq!(bench.node(TARGET)["spec"]["unschedulable"], true);
    bench.reboot(TARGET);
    bench.announce("instance-reboot", 48, "[Completed] software");
    bench.until_phase(MaintenancePhase::Succeeded).await;
    bench.rounds(2).await;
    assert_eq!(bench.clouds.cloud.effects(), ["reboot i-m-0"]);
    bench.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stopped_while_it_is_not_known_which_disks_it_would_lose() {
    let mut bench = Bench::new().await;
    bench.announce("instance-stop", 48, "hardware");
    bench.until("the object", |bench| bench.status().plan.is_some()).await;
    bench.rounds(20).await;
    assert_eq!(bench.clouds.cloud.effects(), [""; 0]);
    assert!(!bench.status().phase.unwrap().is_under_way());
    let before = bench.writes();
    bench.rounds(20).await;
    assert_eq!(bench.writes()[before.len()..], [""; 0], "it is due, and nothing is new");
    let context = &bench.world.context;
    bench.maintenance.queue = Queue::new(NAME, &context.env, &context.metrics);
    context.env.sleep(std::time::Duration::from_secs(1)).await;
    planning::plan_anew(context, &bench.maintenance).await;
    assert_eq!(bench.maintenance.queue.depth(), 0, "a pass that plans does not wake itself");
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_cannot_be_used_says_so_and_others_go_on() {
    let mut bench = Bench::new().await;
    let mut bad = window(14);
    bad["windows"][0]["timeZone"] = json!("Mars/Olympus");
    bad["selector"] = json!({ "pools": ["elsewhere"] });
    bench.put(POLICIES, policy("bad", bad));
    bench.put(POLICIES, policy("good", json!({})));
    bench.announce(RETIREMENT, 48, "hardware");
    bench.until_phase(MaintenancePhase::Succeeded).await;
    let (status, message) = policy_condition(&bench, "bad");
    assert_eq!(status, "False");
    assert!(message.contains("timeZone") && message.contains("Mars"), "{message}");
    assert_eq!(policy_condition(&bench, "good").0, "True");
}

#[tokio::test(start_paused = true)]
async fn the_machines_of_a_policy_that_cannot_be_used_wait() {
    let mut bench = Bench::new().await;
    let mut bad = window(14);
    bad["windows"][0]["duration"] = json!("0s");
    bench.put(POLICIES, policy("bad", bad));
    bench.announce(RETIREMENT, 48, "hardware");
    bench.until("a plan", |bench| bench.status().plan.is_some()).await;
    bench.rounds(10).await;
    assert_eq!(bench.status().plan.unwrap().waits_on[0].reason, "PolicyInvalid");
    assert_eq!(bench.set()["spec"]["replicas"], 3);
}

#[tokio::test(start_paused = true)]
async fn an_object_about_a_machine_that_there_is_not_says_so_and_harms_nobody() {
    let mut bench = Bench::new().await;
    for (name, machine) in [("mm-ghost", "ghost"), ("again", TARGET)] {
        bench.put(
            OBJECTS,
            json!({
                "apiVersion": "machinemaintenance.managed.openshift.io/v1alpha1",
                "kind": "MachineMaintenance",
                "metadata": {
                    "name": name, "namespace": "ns", "generation": 1,
                    "finalizers": ["machinist.dev/maintenance"],
                },
                "spec": { "machinelink": machine },
            }),
        );
    }
    bench.put(
        OBJECTS,
        json!({
            "apiVersion": "machinemaintenance.managed.openshift.io/v1alpha1",
            "kind": "MachineMaintenance",
            "metadata": {
                "name": "mm-m-0", "namespace": "ns", "generation": 1,
                "annotations": { "machinist.dev/created-for-event": "true" },
            },
            "spec": { "machinelink": TARGET },
        }),
    );
    bench.announce(RETIREMENT, 48, "hardware");
    bench.until_phase(MaintenancePhase::Succeeded).await;
    let valid = |name: &str| {
        let state = bench.world.server.lock();
        let known = state.objects[&(OBJECTS.to_owned(), name.to_owned())].clone();
        let status = read::<MachineMaintenance>(known).status.unwrap();
        condition::find(&status.conditions, "Valid").unwrap().clone()
    };
    assert_eq!(valid("mm-ghost").reason.as_deref(), Some("MachineNotFound"));
    let again = valid("again").message.unwrap();
    assert!(again.contains("mm-m-0 is about machine m-0 too"), "{again}");
    let state = bench.world.server.lock();
    let again = &state.objects[&(OBJECTS.to_owned(), "again".to_owned())];
    assert_eq!(again["metadata"]["finalizers"], json!([]), "nothing holds it");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_the_kind_is_left_in_peace() {
    let mut bench = Bench::new().await;
    bench.announce(RETIREMENT, 48, "hardware");
    bench.world.context.stores.maintenance.mark_absent();
    let before = bench.writes().len();
    for _ in 0..20 {
        let outcome = planning::reconcile(&bench.world.context, &bench.maintenance).await;
        assert!(matches!(outcome, Outcome::RecheckAfter(after) if after.as_secs() >= 60));
    }
    bench.rounds(3).await;
    assert_eq!(bench.writes().len(), before);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_nothing_changes() {
    let mut bench = Bench::new().await;
    bench.put(POLICIES, policy("daily", window(18)));
    bench.announce(RETIREMENT, 48, "hardware");
    bench.until_phase(MaintenancePhase::Scheduled).await;
    bench.rounds(3).await;
    let before = bench.writes();
    bench.rounds(20).await;
    assert_eq!(bench.writes()[before.len()..], [""; 0]);
    // And again when it is over.
    let mut bench = Bench::new().await;
    bench.announce(RETIREMENT, 48, "hardware");
    bench.until_phase(MaintenancePhase::Succeeded).await;
    bench.rounds(5).await;
    let before = bench.writes();
    bench.rounds(20).await;
    assert_eq!(bench.writes()[before.len()..], [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_record_of_what_is_over_is_removed_after_a_while() {
    let mut bench = Bench::new().await;
    bench.put(POLICIES, policy("short", json!({ "retention": "1h" })));
    bench.announce(RETIREMENT, 48, "hardware");
    bench.until_phase(MaintenancePhase::Succeeded).await;
    bench.until("its removal", |bench| bench.object().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_is_said_on_the_object_and_tried_again() {
    let mut bench = Bench::new().await;
    bench.announce(RETIREMENT, 48, "hardware");
    bench.until_phase(MaintenancePhase::Surging).await;
    bench.world.server.fail(|method, path| match *method {
        http::Method::PATCH if path.ends_with("/machinesets/pool") => {
            crate::engine::testing::Fault::Code(403)
        }
        _ => crate::engine::testing::Fault::None,
    });
    bench
        .until("the failure", |bench| {
            let plan = bench.status().plan.unwrap_or_default();
            plan.waits_on.iter().any(|wait| wait.reason == "StepFailed")
        })
        .await;
    bench.world.server.fail(|_, _| crate::engine::testing::Fault::None);
    bench.until_phase(MaintenancePhase::Succeeded).await;
    bench.assert_nothing_left();
}
