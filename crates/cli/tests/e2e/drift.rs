//! Four experiments at the cloud's console, on a pool of four with pods: stop, start, reboot,
//! terminate. Each is told of within one poll, and what policy says is done, and nothing else.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use machinist_api::{ConditionStatus, Machine, MachineSet};
use machinist_testbed::cloud::model::{ChangedBy, Impair, LedgerCall};
use serde_json::{Value, json};

use crate::{
    arena::{Arena, is_ready, run},
    seen::{Subject, record_of},
};

const PODS: i32 = 8;
const ON_STOPPED: &str = "machinist.dev/on-stopped";
const ON_TERMINATED: &str = "machinist.dev/on-terminated";
const GRACE: &str = "machinist.dev/stopped-grace-period";

/// A pool of four, Running, with pods on it.
async fn pool_of_four(arena: &Arena, annotations: Value) -> Vec<Subject> {
    let overrides = json!({"metadata": {"annotations": annotations}});
    arena.create_set("pool", 4, overrides).await;
    let machines = arena.wait_running(4).await;
    arena.deploy("web", PODS, "pool", json!(0)).await;
    arena.wait_set_columns("pool", "4 4 4 4").await;
    for machine in &machines {
        arena.wait_true(machine.metadata.name.as_deref().unwrap(), "InstanceRunning").await;
        arena.wait_true(machine.metadata.name.as_deref().unwrap(), "InstanceHealthy").await;
    }
    let subjects: Vec<_> = machines.iter().map(Subject::of).collect();
    for subject in &subjects {
        arena.wait_machine_columns(&subject.machine, "Running running").await;
        arena.wait_node_status(&subject.node, "Ready").await;
    }
    subjects
}

async fn annotate(arena: &Arena, machine: &str, key: &str, value: &str) {
    arena.patch::<Machine>(machine, json!({"metadata": {"annotations": {key: value}}})).await;
}

async fn wait_pods(arena: &Arena) {
    arena
        .eventually("all pods are available", async || {
            let found = arena.api::<Deployment>().get("web").await.unwrap();
            let available = found.status.and_then(|status| status.available_replicas);
            (available == Some(PODS)).then_some(())
        })
        .await;
}

/// The pool is whole again, and this Machine is on the Node that it had.
async fn wait_same_node_ready(arena: &Arena, subject: &Subject) {
    arena.wait_true(&subject.machine, "InstanceRunning").await;
    arena.wait_machine_columns(&subject.machine, "Running running").await;
    arena
        .eventually("the same node is Ready, and its boot is recorded", async || {
            let node = arena.node(&subject.node).await.filter(is_ready)?;
            assert_eq!(node.metadata.uid.as_ref(), Some(&subject.node_uid), "the same Node");
            let record = record_of(&arena.machine(&subject.machine).await);
            let is_noted = record.boot_id == boot_id(&node) && !record.boot_pending;
            is_noted.then_some(())
        })
        .await;
    arena.wait_set_columns("pool", "4 4 4 4").await;
    wait_pods(arena).await;
    let machine = arena.machine(&subject.machine).await;
    assert_eq!(machine.metadata.uid.as_ref(), Some(&subject.uid), "the same Machine");
    assert!(record_of(&machine).drift.is_none(), "it is over");
}

fn boot_id(node: &Node) -> Option<String> {
    Some(node.status.as_ref()?.node_info.as_ref()?.boot_id.clone())
}

/// Whether a call lists the cluster's instances, rather than asking for some by id.
fn is_list(call: &&LedgerCall) -> bool {
    let parameters = serde_json::to_value(&call.parameters).unwrap();
    call.result == "ok" && parameters.get("InstanceIds").is_none()
}

#[test]
fn a_stopped_instance_is_told_of_within_one_poll_and_started_again() {
    run(async {
        let arena = Arena::new("drift-stop").await;
        // Long enough that a busy machine does not blur which poll it was.
        let _operator = arena.start_operator_with(&[("--cloud-list-period", "12s")]).await;
        let pool = pool_of_four(&arena, json!({})).await;
        let subject = &pool[0];

        let page = arena.page_of_the_books();
        arena.cluster.cloud().stop(&subject.instance, ChangedBy::User).unwrap();
        let told = arena
            .wait_condition(&subject.machine, "InstanceRunning", |condition| {
                condition.status == ConditionStatus::False
            })
            .await;
        let describes = arena.calls_since(page, "DescribeInstances");
        let lists: Vec<_> = describes.iter().filter(is_list).collect();
        if let Some(second) = lists.get(1) {
            assert!(told.last_transition_time.0 <= second.time, "told before the second poll");
        }
        assert_eq!(told.reason.as_deref(), Some("StoppedByUser"));
        let message = told.message.unwrap();
        for words in [
            &subject.instance,
            "was stopped by a user",
            "User initiated shutdown",
            "it is started again at",
        ] {
            assert!(message.contains(words), "{words:?} is not in {message:?}");
        }
        arena.wait_event(&subject.machine, "StoppedByUser", &subject.instance).await;
        arena.wait_machine_columns(&subject.machine, "Running stopped").await;
        arena.wait_set_columns("pool", "4 4 3 3").await;
        let machine = arena.machine(&subject.machine).await;
        let record = record_of(&machine);
        assert_eq!(record.instance_state.as_deref(), Some("stopped"));
        assert_eq!(record.drift.unwrap().class, "StoppedByUser");
        let exists = arena.condition(&subject.machine, "InstanceExists").await.unwrap();
        assert_eq!(exists.status, ConditionStatus::True, "it is stopped, not gone");
        arena.wait_node_status(&subject.node, "NotReady").await;
        assert_eq!(arena.changes_since(page), 0, "it is left alone for the grace period");

        // Minutes by default; here somebody is in a hurry.
        annotate(&arena, &subject.machine, GRACE, "1s").await;
        arena.wait_event(&subject.machine, "StartingInstance", &subject.instance).await;
        wait_same_node_ready(&arena, subject).await;
        arena.wait_event(&subject.machine, "Update", "runs again, as was decided").await;
        assert_eq!(arena.calls_since(page, "StartInstances").len(), 1);
        assert_eq!(arena.changes_since(page), 1, "nothing else was touched");
        assert_eq!(arena.drift("StoppedByUser").await, 1.0);
        assert_eq!(arena.drift("Started").await, 0.0, "what we do is no drift");
        assert_eq!(arena.drift("Rebooted").await, 0.0, "a start is no reboot");
        assert_eq!(arena.times_told(&subject.machine, "StoppedByUser").await, 1);
        arena.check_ledger().await;
    });
}

#[test]
fn under_report_a_stop_a_start_a_reboot_and_failing_checks_are_told_and_nothing_is_touched() {
    run(async {
        let (arena, _operator) = Arena::with_operator("drift-report").await;
        let annotations = json!({ON_STOPPED: "Report", GRACE: "1s"});
        let pool = pool_of_four(&arena, annotations).await;
        let page = arena.page_of_the_books();
        let cloud = arena.cluster.cloud();

        // Stopped from inside, then started by hand.
        let subject = &pool[0];
        cloud.stop(&subject.instance, ChangedBy::Guest).unwrap();
        let message = arena.wait_false(&subject.machine, "InstanceRunning", "StoppedByGuest").await;
        assert!(message.contains("was shut down from inside"), "{message}");
        assert!(message.contains("by policy nothing is done"), "{message}");
        arena.wait_event(&subject.machine, "StoppedByGuest", "by policy nothing is done").await;
        arena.wait_machine_columns(&subject.machine, "Running stopped").await;
        arena.wait_set_columns("pool", "4 4 3 3").await;
        cloud.start(&subject.instance).unwrap();
        arena.wait_event(&subject.machine, "Started", "was started without us").await;
        wait_same_node_ready(&arena, subject).await;
        assert_eq!(arena.drift("StoppedByGuest").await, 1.0);
        assert_eq!(arena.drift("Started").await, 1.0);

        // Rebooted.
        let subject = &pool[1];
        cloud.reboot(&subject.instance, ChangedBy::User).unwrap();
        arena.wait_event(&subject.machine, "Rebooted", "nothing is done").await;
        wait_same_node_ready(&arena, subject).await;
        assert_eq!(arena.times_told(&subject.machine, "Rebooted").await, 1);
        assert_eq!(arena.drift("Rebooted").await, 1.0);

        // Rebooted while cordoned: the cluster announced it.
        let before = arena.node(&subject.node).await.and_then(|node| boot_id(&node));
        let nodes = Api::<Node>::all(arena.client.clone());
        let cordon = |is_on: bool| Patch::Merge(json!({"spec": {"unschedulable": is_on}}));
        let parameters = PatchParams::default();
        nodes.patch(&subject.node, &parameters, &cordon(true)).await.unwrap();
        arena.wait_node_status(&subject.node, "Ready,SchedulingDisabled").await;
        cloud.reboot(&subject.instance, ChangedBy::User).unwrap();
        arena
            .eventually("the reboot of the cordoned node is noted", async || {
                let record = record_of(&arena.machine(&subject.machine).await);
                (record.boot_id.is_some() && record.boot_id != before).then_some(())
            })
            .await;
        nodes.patch(&subject.node, &parameters, &cordon(false)).await.unwrap();
        wait_same_node_ready(&arena, subject).await;
        assert_eq!(arena.times_told(&subject.machine, "Rebooted").await, 1, "it was expected");
        assert_eq!(arena.drift("Rebooted").await, 1.0, "expected reboots are not counted");

        // The provider's checks fail, and pass again.
        let subject = &pool[2];
        cloud.impair(&subject.instance, &Impair::default()).unwrap();
        let message = arena.wait_false(&subject.machine, "InstanceHealthy", "Impaired").await;
        assert!(message.contains("fails the provider's checks"), "{message}");
        arena.wait_event(&subject.machine, "Impaired", &subject.instance).await;
        arena.wait_machine_columns(&subject.machine, "Running running").await;
        let healthy = Impair { impaired: false, ..Impair::default() };
        cloud.impair(&subject.instance, &healthy).unwrap();
        arena.wait_true(&subject.machine, "InstanceHealthy").await;
        arena.wait_event(&subject.machine, "InstanceHealthy", "again").await;
        wait_same_node_ready(&arena, subject).await;
        assert_eq!(arena.drift("Impaired").await, 1.0);

        assert_eq!(arena.changes_since(page), 0, "nothing was touched through all of it");
        assert_eq!(arena.times_told(&pool[3].machine, "Rebooted").await, 0);
        arena.check_ledger().await;
    });
}

#[test]
fn a_terminated_instance_is_replaced_without_a_hand_or_only_told_of() {
    run(async {
        let (arena, _operator) = Arena::with_operator("drift-terminate").await;
        let pool = pool_of_four(&arena, json!({})).await;
        let page = arena.page_of_the_books();
        let cloud = arena.cluster.cloud();

        let subject = &pool[0];
        cloud.terminate(&subject.instance, ChangedBy::User).unwrap();
        arena.wait_event(&subject.machine, "TerminatedByUser", "User initiated shutdown").await;
        arena.wait_event(&subject.machine, "Replacing", "pool pool makes another").await;
        wait_replaced(&arena, subject).await;
        assert_eq!(arena.calls_since(page, "RunInstances").len(), 1, "one launch");
        assert_eq!(arena.calls_since(page, "TerminateInstances").len(), 0, "it was gone already");
        assert_eq!(arena.drift("TerminatedByUser").await, 1.0);
        arena.check_ledger().await;

        // Only told of.
        let report = json!({"metadata": {"annotations": {ON_TERMINATED: "Report"}}});
        arena.patch::<MachineSet>("pool", report).await;
        let page = arena.page_of_the_books();
        let subject = &pool[1];
        cloud.terminate(&subject.instance, ChangedBy::User).unwrap();
        let message =
            arena.wait_false(&subject.machine, "InstanceRunning", "TerminatedByUser").await;
        assert!(message.contains("was terminated by a user"), "{message}");
        assert!(message.contains("by policy nothing is done"), "{message}");
        let words = "by policy nothing is done";
        arena.wait_event(&subject.machine, "TerminatedByUser", words).await;
        arena.wait_machine_columns(&subject.machine, "Failed Unknown").await;
        arena.wait_set_columns("pool", "4 4 3 3").await;
        arena.wait_false(&subject.machine, "InstanceExists", "InstanceMissing").await;
        arena.wait_node_status(&subject.node, "NotReady").await;
        let machine = arena.machine(&subject.machine).await;
        assert!(machine.metadata.deletion_timestamp.is_none());
        let status = machine.status.unwrap();
        assert_eq!(status.error_message.as_deref(), Some("can't find created instance"));
        assert_eq!(arena.changes_since(page), 0, "nothing was touched");
        assert_eq!(arena.times_told(&subject.machine, "TerminatedByUser").await, 1);

        // A person decides.
        annotate(&arena, &subject.machine, ON_TERMINATED, "Replace").await;
        wait_replaced(&arena, subject).await;
        assert_eq!(arena.calls_since(page, "RunInstances").len(), 1, "one launch");
        arena.check_ledger().await;
    });
}

/// The Machine and its Node are gone, the pool is whole, and the pods have found other places.
async fn wait_replaced(arena: &Arena, subject: &Subject) {
    arena.wait_gone(&subject.machine).await;
    let machines = arena.wait_running(4).await;
    assert!(machines.iter().all(|machine| machine.metadata.uid.as_ref() != Some(&subject.uid)));
    arena.wait_set_columns("pool", "4 4 4 4").await;
    arena
        .eventually("the node went with its instance", async || {
            let node = arena.node(&subject.node).await;
            let is_same =
                node.is_some_and(|node| node.metadata.uid == Some(subject.node_uid.clone()));
            (!is_same).then_some(())
        })
        .await;
    wait_pods(arena).await;
}
