//! Does the real termination handler watch over spot machines, with nothing but a kubelet's rights?

use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, ResourceExt};
use machinist_api::names::{annotation, condition_type, label};
use machinist_testbed::Cluster;
use machinist_testbed::cloud::model::{
    ChangedBy, EventCode, Faults, NewEvent, RebalanceRequest, SpotNoticeRequest,
};
use machinist_testbed::kubelet::kubeconfig_of;
use serde_json::json;

use crate::support::{
    cluster, eventually, launch, launch_spot, node_of, node_with_ready, ready, run,
};

/// Long enough that no instance of these tests ends by itself.
const FAR: SpotNoticeRequest =
    SpotNoticeRequest { after: Some(jiff::SignedDuration::from_hours(1)) };

/// A spot instance whose Node has joined and is labelled, with its handler running.
async fn watched(cluster: &Cluster, name: &str) -> (String, Node) {
    let id = launch_spot(cluster, name).await;
    let node = node_with_ready(cluster, &id, "True").await;
    assert!(handlers(&id).is_empty(), "nobody runs where the label is missing");
    let labels = json!({"metadata": {"labels": {label::INTERRUPTIBLE: ""}}});
    let nodes: Api<Node> = Api::all(cluster.admin().clone());
    nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
    eventually("its handler runs", || async { (handlers(&id).len() == 1).then_some(()) }).await;
    (id, node)
}

/// The processes that watch an instance, by their ids.
fn handlers(instance: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        // Before it is the program, a child is the guard, with the program among its arguments.
        let is_handler = words.get(1).is_some_and(|word| word == "termination-handler");
        if is_handler && words.iter().any(|word| word.ends_with(&format!("/_imds/{instance}"))) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

fn log_of(cluster: &Cluster, instance: &str) -> String {
    let file = cluster.log_folder().join(format!("termination-handler-{instance}.log"));
    std::fs::read_to_string(file).unwrap_or_default()
}

async fn condition(cluster: &Cluster, instance: &str, type_: &str) -> Option<NodeCondition> {
    let conditions = node_of(cluster, instance).await?.status?.conditions?;
    conditions.into_iter().find(|condition| condition.type_ == type_)
}

async fn condition_is(
    cluster: &Cluster,
    instance: &str,
    type_: &str,
    wanted: &str,
) -> NodeCondition {
    eventually(&format!("{type_} of the node of {instance} is {wanted}"), || async {
        condition(cluster, instance, type_).await.filter(|found| found.status == wanted)
    })
    .await
}

#[test]
fn a_spot_notice_becomes_the_condition_of_its_node_through_failures_and_of_no_other() {
    run(async {
        let cluster = cluster().await;
        let (id, node) = watched(cluster, "spot-noticed").await;
        let (other, _) = watched(cluster, "spot-steady").await;
        let name = node.name_any();

        // The service fails in every way for a while.
        let faults = json!({"metadata": [
            {"kind": "silence", "instanceId": id, "count": 2},
            {"kind": "error", "status": 401, "instanceId": id, "count": 2},
            {"kind": "garbage", "instanceId": id, "path": "/latest/meta-data/*", "count": 4},
            {"kind": "error", "instanceId": id, "count": 1},
        ]});
        cluster.cloud().add_faults(serde_json::from_value::<Faults>(faults).unwrap()).unwrap();
        eventually("the handler says so", || async {
            log_of(cluster, &id).contains("the metadata service cannot be asked").then_some(())
        })
        .await;
        assert!(condition(cluster, &id, condition_type::NODE_TERMINATING).await.is_none());

        // Others write to the Node's status all the time.
        cluster.cloud().spot_notice(&id, &FAR).unwrap();
        let nodes: Api<Node> = Api::all(cluster.admin().clone());
        let beats = AtomicU32::new(0);
        let told = eventually("the node says that it ends", || async {
            let beat = json!({"status": {"conditions": [{
                "type": "SomebodyElse",
                "status": "True",
                "message": beats.fetch_add(1, Ordering::Relaxed).to_string(),
            }]}});
            let parameters = PatchParams::default();
            nodes.patch_status(&name, &parameters, &Patch::Strategic(beat)).await.unwrap();
            condition(cluster, &id, condition_type::NODE_TERMINATING).await
        })
        .await;
        assert_eq!(told.status, "True");
        assert_eq!(told.reason.as_deref(), Some("TerminationRequested"));
        assert_eq!(
            told.message.as_deref(),
            Some("The cloud provider has marked this instance for termination")
        );
        let now = node_of(cluster, &id).await.unwrap();
        assert_eq!(ready(&now), "True", "the kubelet's own words stand");
        assert!(condition(cluster, &id, "SomebodyElse").await.is_some());
        assert_eq!(now.uid(), node.uid());
        let log = log_of(cluster, &id);
        assert_eq!(log.matches("the metadata service cannot be asked").count(), 1, "{log}");
        assert_eq!(log.matches("the metadata service answers again").count(), 1, "{log}");
        assert_eq!(handlers(&id).len(), 1, "it goes on");
        assert_eq!(condition(cluster, &other, condition_type::NODE_TERMINATING).await, None);

        // It was written once, by the node itself. Requests of later rounds have been made by now.
        let audit = std::fs::read_to_string(cluster.audit_log().unwrap()).unwrap();
        let writes = audit.lines().filter(|line| {
            line.contains(&format!(r#""username":"system:node:{name}""#))
                && line.contains(r#""userAgent":"machinist-operator/"#)
                && line.contains(r#""verb":"patch""#)
                && line.contains(r#""stage":"ResponseComplete""#)
        });
        assert_eq!(writes.count(), 1);

        // With the instance its handler goes, and the other's stays.
        cluster.cloud().terminate(&id, ChangedBy::Provider).unwrap();
        eventually("its handler is gone", || async { handlers(&id).is_empty().then_some(()) })
            .await;
        assert_eq!(handlers(&other).len(), 1);
    });
}

#[test]
fn recommendations_and_scheduled_events_come_and_go_on_the_node() {
    run(async {
        let cluster = cluster().await;
        let (id, _) = watched(cluster, "spot-recommended").await;
        let cloud = cluster.cloud();
        let events = || async {
            let node = node_of(cluster, &id).await.unwrap();
            node.annotations().get(annotation::SCHEDULED_EVENTS).cloned()
        };
        cloud.rebalance(&id, &RebalanceRequest::default()).unwrap();
        let event = cloud
            .schedule_event(NewEvent {
                instance_id: id.clone(),
                code: EventCode::SystemReboot,
                description: None,
                not_before: "2099-01-01T00:00:00Z".parse().unwrap(),
                not_after: None,
                not_before_deadline: None,
            })
            .unwrap();
        let type_ = condition_type::NODE_REBALANCE_RECOMMENDED;
        condition_is(cluster, &id, type_, "True").await;
        let text = eventually("the event stands on the node", events).await;
        let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(shown[&event.event_id]["code"], "system-reboot");
        assert_eq!(shown[&event.event_id]["state"], "active");

        cloud.rebalance(&id, &RebalanceRequest { recommended: false }).unwrap();
        cloud.delete_event(&event.event_id).unwrap();
        condition_is(cluster, &id, type_, "False").await;
        eventually("the event is gone", || async { events().await.is_none().then_some(()) }).await;
        assert!(condition(cluster, &id, condition_type::NODE_TERMINATING).await.is_none());
    });
}

#[test]
fn a_handler_is_where_the_label_is_and_comes_back_after_a_reboot() {
    run(async {
        let cluster = cluster().await;
        let (id, node) = watched(cluster, "spot-rebooted").await;
        let first = handlers(&id);
        cluster.cloud().reboot(&id, ChangedBy::User).unwrap();
        eventually("it went down with its machine, and another runs", || async {
            let now = handlers(&id);
            (now.len() == 1 && now != first).then_some(())
        })
        .await;
        let labels = json!({"metadata": {"labels": {label::INTERRUPTIBLE: null}}});
        let nodes: Api<Node> = Api::all(cluster.admin().clone());
        let parameters = PatchParams::default();
        nodes.patch(&node.name_any(), &parameters, &Patch::Merge(labels)).await.unwrap();
        eventually("it is gone", || async { handlers(&id).is_empty().then_some(()) }).await;
    });
}

#[test]
fn a_kubelets_credentials_change_its_own_node_and_no_other() {
    run(async {
        let cluster = cluster().await;
        let own = launch(cluster, "own").await;
        let own = node_with_ready(cluster, &own, "True").await.name_any();
        let other = launch(cluster, "others").await;
        let other = node_with_ready(cluster, &other, "True").await.name_any();
        let file = kubeconfig_of(&cluster.folder().join("kubelets"), &own);
        let kubeconfig = Kubeconfig::read_from(file).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let nodes: Api<Node> = Api::all(kube::Client::try_from(config).unwrap());
        let patch = Patch::Strategic(json!({
            "metadata": {"annotations": {annotation::SCHEDULED_EVENTS: "{}"}},
            "status": {"conditions": [{"type": "Terminating", "status": "False"}]},
        }));
        let parameters = PatchParams::default();
        let written = nodes.patch_status(&own, &parameters, &patch).await.unwrap();
        assert_eq!(written.annotations()[annotation::SCHEDULED_EVENTS], "{}");
        let refused = nodes.patch_status(&other, &parameters, &patch).await.unwrap_err();
        assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    });
}
