//! S-1: a spot machine whose instance is taken back is emptied in its last two minutes, and its
//! replacement is under way before it ends.

use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use machinist_api::{
    Machine, MachineHealthCheck,
    names::{condition_type, label},
};
use machinist_testbed::cloud::model::{Faults, LedgerInstance, LedgerQuery, SpotNoticeRequest};
use serde_json::json;

use crate::{
    arena::{Arena, run},
    seen::Subject,
};

/// The check that every cluster with spot machines has; the operator may have made it already.
async fn ensure_check(arena: &Arena) {
    let check: MachineHealthCheck = serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineHealthCheck",
        "metadata": {
            "name": "machine-api-termination-handler",
            "labels": {"api": "clusterapi", "k8s-app": "termination-handler"},
        },
        "spec": {
            "selector": {"matchLabels": {label::INTERRUPTIBLE: ""}},
            "maxUnhealthy": "100%",
            "nodeStartupTimeout": "0",
            "unhealthyConditions": [{"type": "Terminating", "status": "True", "timeout": "0s"}],
        },
    }))
    .unwrap();
    let created = arena.api::<MachineHealthCheck>().create(&PostParams::default(), &check).await;
    match created {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        other => drop(other.unwrap()),
    }
}

/// A pool of spot machines that are watched by their handlers.
async fn watched_pool(arena: &Arena, replicas: i32) -> Vec<Subject> {
    let spot = json!({
        "spotMarketOptions": {},
        "metadataServiceOptions": {"authentication": "Required"},
    });
    let overrides = json!({"spec": {"template": {"spec": {"providerSpec": {"value": spot}}}}});
    arena.create_set("pool", replicas, overrides).await;
    let machines = arena.wait_running(usize::try_from(replicas).unwrap()).await;
    let subjects: Vec<Subject> = machines.iter().map(Subject::of).collect();
    for subject in &subjects {
        let machine = arena.machine(&subject.machine).await;
        let labels = machine.spec.metadata.unwrap_or_default().labels;
        assert_eq!(labels.get(label::INTERRUPTIBLE).map(String::as_str), Some(""));
        arena
            .eventually("its termination handler runs", async || {
                let node = arena.node(&subject.node).await?;
                let labels = node.metadata.labels.unwrap_or_default();
                let is_watched = log_of(arena, subject).contains("watching for the end");
                (labels.contains_key(label::INTERRUPTIBLE) && is_watched).then_some(())
            })
            .await;
    }
    subjects
}

fn log_of(arena: &Arena, subject: &Subject) -> String {
    let name = format!("termination-handler-{}.log", subject.instance);
    std::fs::read_to_string(arena.cluster.log_folder().join(name)).unwrap_or_default()
}

fn terminating(node: &Node) -> Option<NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|one| one.type_ == condition_type::NODE_TERMINATING).cloned()
}

fn ledger_instance(arena: &Arena, is_it: impl Fn(&LedgerInstance) -> bool) -> LedgerInstance {
    let instances = arena.cluster.cloud().ledger(&LedgerQuery::default()).instances;
    instances.into_iter().find(is_it).unwrap()
}

#[test]
fn s_1_a_spot_notice_empties_the_machine_in_time_and_its_replacement_is_launched_before_the_end() {
    run(async {
        let (arena, _operator) = Arena::with_operator("spot").await;
        ensure_check(&arena).await;
        let pool = watched_pool(&arena, 2).await;
        arena.deploy("web", 4, "pool", json!(3)).await;
        let [subject, steady] = pool.as_slice() else { panic!("{pool:?}") };
        let page = arena.page_of_the_books();

        // The metadata service fails for a while: nothing comes of it.
        let faults = json!({"metadata": [
            {"kind": "error", "status": 500, "instanceId": subject.instance, "count": 8},
        ]});
        let faults: Faults = serde_json::from_value(faults).unwrap();
        arena.cluster.cloud().add_faults(faults).unwrap();
        arena
            .eventually("the handler has seen the service fail and answer again", async || {
                let log = log_of(&arena, subject);
                let is_over = log.contains("the metadata service cannot be asked")
                    && log.contains("the metadata service answers again");
                is_over.then_some(())
            })
            .await;
        assert_eq!(terminating(&arena.node(&subject.node).await.unwrap()), None);
        assert_eq!(arena.changes_since(page), 0, "nobody was touched");

        // The notice comes while somebody else keeps writing to the Node's status.
        let request = SpotNoticeRequest::default();
        let notice = arena.cluster.cloud().spot_notice(&subject.instance, &request).unwrap();
        let nodes = Api::<Node>::all(arena.client.clone());
        let beats = AtomicU32::new(0);
        let told = arena
            .eventually("the node says that it ends", async || {
                let beat = json!({"status": {"conditions": [{
                    "type": "SomebodyElse",
                    "status": "True",
                    "message": beats.fetch_add(1, Ordering::Relaxed).to_string(),
                }]}});
                let patch = Patch::Strategic(beat);
                let written =
                    nodes.patch_status(&subject.node, &PatchParams::default(), &patch).await;
                terminating(&written.unwrap())
            })
            .await;
        assert_eq!(told.status, "True");
        assert_eq!(told.reason.as_deref(), Some("TerminationRequested"));
        assert_eq!(
            told.message.as_deref(),
            Some("The cloud provider has marked this instance for termination")
        );

        arena.wait_event(&subject.machine, "MachineDeleted", "").await;
        arena.wait_event(&subject.machine, "DrainSucceeded", "").await;
        arena.wait_gone(&subject.machine).await;
        let machines = arena.wait_running(2).await;

        // Emptied and given back by us, before the cloud took it.
        let calls = arena.calls_since(page, "TerminateInstances");
        let [call] = calls.as_slice() else { panic!("{calls:?}") };
        assert_eq!(call.instance_ids.join(" "), subject.instance);
        assert!(call.time < notice.time, "{} is not before {}", call.time, notice.time);
        let ended = ledger_instance(&arena, |one| one.id == subject.instance);
        let reason = ended.state_reason.map(|reason| reason.code);
        assert_eq!(reason.as_deref(), Some("Client.UserInitiatedShutdown"));

        // Its replacement was launched before.
        assert_eq!(arena.calls_since(page, "RunInstances").len(), 1, "one launch");
        let is_new = |machine: &&Machine| {
            let uid = machine.metadata.uid.as_ref();
            uid != Some(&subject.uid) && uid != Some(&steady.uid)
        };
        let replacement = Subject::of(machines.iter().find(is_new).unwrap());
        let launched = ledger_instance(&arena, |one| one.id == replacement.instance).launch_time;
        assert!(ended.termination_time.is_some_and(|ended| launched < ended), "{launched}");

        // The other is as it was.
        let other = arena.machine(&steady.machine).await;
        assert_eq!(other.metadata.uid.as_ref(), Some(&steady.uid));
        assert_eq!(other.metadata.deletion_timestamp, None);
        assert_eq!(terminating(&arena.node(&steady.node).await.unwrap()), None);
        arena.wait_set_columns("pool", "2 2 2 2").await;
        arena.check_ledger().await;
    });
}
