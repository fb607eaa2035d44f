//! What is made of what OpenShift says, and of its silence?

use serde_json::{Value, json};

use super::*;
use crate::testing::read;

fn openshift() -> OpenShift {
    OpenShift::new("ns", "1", &Store::builder().build())
}

fn put_infrastructure(openshift: &OpenShift) {
    openshift.infrastructures.apply_written(read(json!({
        "metadata": { "name": "cluster", "uid": "i", "resourceVersion": "1" }, "spec": {},
    })));
}

fn put_approver(openshift: &OpenShift, version: u32, replicas: i32) {
    openshift.approvers.apply_written(read(json!({
        "metadata": {
            "name": "machine-approver", "namespace": "openshift-cluster-machine-approver",
            "uid": "a", "resourceVersion": version.to_string(),
        },
        "spec": {
            "replicas": replicas, "selector": {},
            "template": { "metadata": {}, "spec": { "containers": [] } },
        },
    })));
}

fn put_gate(openshift: &OpenShift, version: u32, enabled: &[&str], disabled: &[&str]) {
    let named = |names: &[&str]| -> Vec<Value> {
        names.iter().map(|name| json!({ "name": name })).collect()
    };
    openshift.feature_gates.apply_written(read(json!({
        "metadata": { "name": "cluster", "uid": "g", "resourceVersion": version.to_string() },
        "spec": {},
        "status": { "featureGates": [
            { "version": "1", "enabled": named(enabled), "disabled": named(disabled) },
        ] },
    })));
}

#[test]
fn plain_kubernetes_says_nothing() {
    let openshift = openshift();
    assert_eq!(openshift.proxy(), None);
    assert_eq!(openshift.trusted_ca(), None);
    assert_eq!(openshift.migration(), Migration::Honoured);
    assert!(!openshift.health_checks_are_anothers());
    assert_eq!(openshift.approval_standby(), None);
}

#[test]
fn we_stand_by_until_we_know_that_nobody_else_approves() {
    let openshift = openshift();
    put_infrastructure(&openshift);
    let is_standing_by = || openshift.approval_standby().is_some();
    assert!(is_standing_by(), "nobody has said yet");
    openshift.approvers.mark_synced();
    assert!(!is_standing_by(), "there is none");
    put_approver(&openshift, 2, 1);
    assert!(is_standing_by());
    put_approver(&openshift, 3, 0);
    assert!(!is_standing_by(), "it was switched off");
    put_approver(&openshift, 4, 2);
    assert!(is_standing_by(), "and on again");
}

#[test]
fn features_decide_about_the_migration_and_the_health_checks() {
    let openshift = openshift();
    put_gate(&openshift, 2, &[features::MACHINE_API_MIGRATION], &[features::NO_HEALTH_CHECKS]);
    assert_eq!(openshift.migration(), Migration::Honoured);
    assert!(!openshift.health_checks_are_anothers());
    put_gate(&openshift, 3, &[features::NO_HEALTH_CHECKS], &[features::MACHINE_API_MIGRATION]);
    assert_eq!(openshift.migration(), Migration::Off);
    assert!(openshift.health_checks_are_anothers());
}

#[tokio::test(start_paused = true)]
async fn the_first_object_is_waited_for() {
    let openshift = openshift();
    let waits = first_of(&openshift.infrastructures);
    let comes = async { put_infrastructure(&openshift) };
    tokio::join!(waits, comes);
    first_of(&openshift.infrastructures).await;
}
