//! What OpenShift is told, and what it does not need.

use http::Method;
use machinist_api::{Machine, MachineSet};

use super::*;
use crate::{
    engine::testing::Fault,
    testing::{machine, pool},
};

fn words(status: &str, reason: &str, message: &str) -> (String, String, String) {
    (status.to_owned(), reason.to_owned(), message.to_owned())
}

#[tokio::test(start_paused = true)]
async fn it_is_made_annotated_and_available_and_then_nothing_is_written() {
    let lab = Lab::new(&KEEP_ALL).openshift("AWS");
    lab.settle().await;
    let available = "Cluster Machine API Operator is available at operator: 4.20";
    assert_eq!(lab.told("Available"), words("True", "AsExpected", available));
    assert_eq!(lab.told("Progressing"), words("False", "AsExpected", ""));
    assert_eq!(lab.told("Degraded"), words("False", "AsExpected", ""));
    assert_eq!(lab.told("Upgradeable"), words("True", "", ""));
    let operator = lab.operator();
    let annotations = operator.metadata.annotations.unwrap();
    assert_eq!(annotations["openshift.io/required-scc"], "restricted-v2");
    let status = operator.status.unwrap();
    assert_eq!(status.versions[0].version, "4.20");
    assert!(!status.related_objects.is_empty());
    let before = lab.writes();
    for _ in 0..20 {
        lab.pass().await;
    }
    assert_eq!(lab.writes(), before);
}

#[tokio::test(start_paused = true)]
async fn fields_that_we_do_not_know_survive() {
    let lab = Lab::new(&[]).openshift("AWS");
    lab.server().put(
        OPERATORS,
        json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
            "metadata": { "name": "machine-api" }, "spec": {},
            "status": {
                "extension": { "theirs": 1 },
                "conditions": [{
                    "type": "Theirs", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
            },
        }),
    );
    let stored = lab.object(OPERATORS, "machine-api");
    lab.upkeep.stores.cluster_operators.apply_written(read(stored));
    lab.settle().await;
    let after = lab.object(OPERATORS, "machine-api");
    assert_eq!(after["status"]["extension"], json!({ "theirs": 1 }));
    assert_eq!(lab.told("Theirs").0, "True");
    assert_eq!(lab.told("Available").0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_platform_without_machines_is_left_alone_and_said_to_be_well() {
    for platform in ["None", "External", "NeverHeardOf"] {
        let lab = Lab::new(&KEEP_ALL).openshift(platform);
        lab.put(
            DEPLOYMENTS,
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": { "name": "machine-api-controllers", "namespace": "ns", "uid": "old" },
                "spec": {
                    "replicas": 1, "selector": {},
                    "template": { "spec": { "containers": [{ "name": "machine-controller" }] } },
                },
            }),
        );
        lab.settle().await;
        let message = "Cluster Machine API Operator is in NoOp mode";
        assert_eq!(lab.told("Available"), words("True", "AsExpected", message), "{platform}");
        let writes = lab.writes();
        assert!(writes.iter().all(|line| line.contains("/clusteroperators")), "{writes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_degrades_and_heals() {
    let lab = Lab::new(&KEEP_ALL).openshift("AWS");
    lab.settle().await;
    lab.delete(VALIDATING, "machine-api");
    lab.server().fail(|method, path| {
        if method == Method::POST && path == VALIDATING { Fault::Code(500) } else { Fault::None }
    });
    assert!(matches!(lab.pass().await, Outcome::Failed(_)));
    let (status, reason, message) = lab.told("Degraded");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "SyncingFailed"));
    let expected = "Failed to resync for operator: 4.20 because failed to write \
                    ValidatingWebhookConfiguration machine-api";
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(lab.told("Available").0, "True");
    let writes = lab.writes().len();
    lab.pass().await;
    assert_eq!(lab.writes().len(), writes + 1, "one try, and no new words");
    lab.server().fail(|_, _| Fault::None);
    lab.settle().await;
    assert_eq!(lab.told("Degraded"), words("False", "AsExpected", ""));
}

#[tokio::test(start_paused = true)]
async fn handlers_that_do_not_roll_out_degrade_after_a_while() {
    let lab = Lab::new(&KEEP_ALL).openshift("AWS");
    lab.settle().await;
    let mut daemon_set = lab.object(DAEMON_SETS, HANDLER);
    daemon_set["status"] = json!({
        "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberUnavailable": 1,
        "currentNumberScheduled": 3, "numberMisscheduled": 0, "numberReady": 2,
    });
    lab.put(DAEMON_SETS, daemon_set.clone());
    let Outcome::RecheckAfter(wait) = lab.settle().await else { panic!() };
    assert_eq!(lab.told("Degraded").0, "False");
    lab.world.context.env.sleep(wait).await;
    lab.settle().await;
    let (status, _, message) = lab.told("Degraded");
    assert_eq!(status, "True");
    assert!(message.ends_with("is not rolled out: 1 of 3 pods are unavailable"), "{message}");
    daemon_set["status"]["numberUnavailable"] = json!(0);
    lab.put(DAEMON_SETS, daemon_set);
    lab.settle().await;
    assert_eq!(lab.told("Degraded").0, "False");
}

#[tokio::test(start_paused = true)]
async fn a_new_cluster_is_available_when_two_workers_run() {
    let lab = Lab::new(&[]).openshift("AWS");
    let stores = &lab.world.context.stores;
    stores.machine_sets.apply_written(read::<MachineSet>(pool(2)));
    let put = |name: &str, version: u32, phase: &str| {
        let mut object = machine(name, json!({ "resourceVersion": version.to_string() }));
        object["status"] = json!({ "phase": phase });
        stores.machines.apply_written(read::<Machine>(object));
    };
    put("a", 20, "Running");
    put("b", 21, "Provisioning");
    let Outcome::RecheckAfter(wait) = lab.settle().await else { panic!() };
    assert!(wait <= Duration::from_secs(5));
    assert_eq!(lab.told("Available").1, "Initializing");
    assert_eq!(lab.told("Degraded").0, "False", "not in the first 20 minutes");
    lab.world.context.env.sleep(Duration::from_secs(20 * 60)).await;
    lab.settle().await;
    let (status, _, message) = lab.told("Degraded");
    assert_eq!(status, "True");
    assert!(message.ends_with("current running replicas 1, waiting for [b]"), "{message}");
    put("b", 22, "Running");
    lab.settle().await;
    assert_eq!(lab.told("Available").0, "True");
    assert_eq!(lab.told("Degraded").0, "False");
    put("b", 23, "Failed");
    lab.settle().await;
    assert_eq!(lab.told("Available").0, "True", "asked once in a cluster's life");
}
