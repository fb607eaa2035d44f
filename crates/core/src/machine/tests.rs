//! Tables over one Machine's life. Each test names the behaviour that it holds.

mod deletion;
mod drifting;
mod launch;
mod living;
mod properties;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{Condition, Machine, MachineAddress, MachineStatus, condition};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Action, CloudKnowledge, HealthKnowledge, MachineDecision, Observed, Policy, decide,
    decide::wants_launch,
    observed::{client_token, may_have_instance},
    outcome,
};
use crate::{
    cloud::{
        CloudFailure, ErrorClass, Instance, InstanceId, InstanceState, RebootMigration, RootDevice,
        StateReason,
    },
    nodelink::{NodeMatch, node_of},
};

const UID: &str = "uid-1";

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn seconds_ago(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() - seconds).unwrap()
}

/// A Machine as the API server would store it, with overrides merged in.
fn machine(overrides: Value) -> Machine {
    let mut base = json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "metadata": {
            "name": "worker-1", "namespace": "ns", "uid": UID, "resourceVersion": "7",
            "generation": 1, "finalizers": ["machine.machine.openshift.io"],
            "labels": {"machine.openshift.io/cluster-api-cluster": "demo"},
            "creationTimestamp": "2026-01-01T11:00:00Z",
        },
        "spec": {"providerSpec": {"value": {"kind": "AWSMachineProviderConfig"}}},
    });
    merge(&mut base, overrides);
    serde_json::from_value(base).unwrap()
}

fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    target.remove(&key);
                } else {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (target, patch) => *target = patch,
    }
}

fn instance(state: InstanceState) -> Instance {
    Instance {
        id: InstanceId("i-1".into()),
        provider_id: "aws:///us-east-1a/i-1".into(),
        state,
        state_reason: StateReason::default(),
        host_id: None,
        root_device: RootDevice::default(),
        reboot_migration: RebootMigration::default(),
        region: "us-east-1".into(),
        zone: "us-east-1a".into(),
        instance_type: "m5.large".into(),
        launched_at: None,
        client_token: Some(client_token(UID, 1)),
        interruptible: false,
        tags: BTreeMap::from([
            ("machinist.dev/machine-uid".into(), UID.into()),
            ("kubernetes.io/cluster/demo".into(), "owned".into()),
        ]),
        addresses: vec![MachineAddress { address: "10.0.0.1".into(), type_: "InternalIP".into() }],
    }
}

fn observed(machine: &Machine, cloud: CloudKnowledge) -> Observed<'_> {
    Observed {
        machine,
        cloud,
        node: NodeMatch::None,
        health: HealthKnowledge::Loading,
        cloud_shows_nothing: false,
        wanted_tags: BTreeMap::new(),
        pool: None,
        owner_is_deleting: false,
        drift_defaults: crate::drift::policy::DriftDefaults::default(),
        launch_check: Some(Ok(Value::Null)),
    }
}

fn decided(machine: &Machine, instances: Vec<Instance>) -> MachineDecision {
    decide(&observed(machine, CloudKnowledge::Known(instances)), &Policy::default(), now())
}

fn names(decision: &MachineDecision) -> Vec<&'static str> {
    decision.actions.iter().map(Action::name).collect()
}

fn condition_of<'a>(status: &'a MachineStatus, type_: &str) -> (&'a str, &'a str, &'a str) {
    let found = condition::find(&status.conditions, type_).expect("condition is set");
    (
        found.status.as_str(),
        found.reason.as_deref().unwrap_or_default(),
        found.message.as_deref().unwrap_or_default(),
    )
}

fn failure(class: ErrorClass) -> CloudFailure {
    CloudFailure { class, message: "the cloud's words".into() }
}

fn intent(attempt: u32, since: Timestamp) -> Value {
    json!({"attempt": attempt, "clientToken": client_token(UID, attempt), "since": since.to_string()})
}

fn recorded(state: &str) -> Value {
    json!({
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
        "status": {
            "phase": "Running",
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "providerStatus": {
                "instanceId": "i-1", "instanceState": state, "launch": intent(1, seconds_ago(3600)),
            },
        },
    })
}

fn deleting(mut overrides: Value) -> Machine {
    merge(
        &mut overrides,
        json!({
            "metadata": {"deletionTimestamp": seconds_ago(1).to_string()},
            "status": {
                "phase": "Deleting",
                "conditions": [{
                    "type": "Drained", "status": "True",
                    "lastTransitionTime": "2026-01-01T11:59:00Z",
                }],
            },
        }),
    );
    machine(overrides)
}
