//! Does an object of the OpenShift installer come out of our types as it went in?

use machinist_api::{
    Machine, MachineHealthCheck, MachineMaintenance, MachineSet, MaintenancePhase,
    MaintenancePolicy,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Spelt as no serialiser would: keys out of order, a space, a number with its zero, one that no
/// machine integer holds, a field that nobody knows.
const PROVIDER_SPEC: &str = r#"{"kind":"AWSMachineProviderConfig","apiVersion":"machine.openshift.io/v1beta1","instanceType":"m6i.xlarge","ami":{"id":"ami-0a1b"},"blockDevices":[{"ebs":{"volumeSize":120,"iops":0,"encrypted":true,"volumeType":"gp3"}}],"placement":{"region":"eu-west-1","availabilityZone":"eu-west-1a"},"subnet":{"filters":[{"name":"tag:Name","values":["c1-private-a"]}]},"credentialsSecret":{"name":"aws-cloud-credentials"},"userDataSecret":{"name":"worker-user-data"},"deviceIndex":0, "fromTheFuture":{"ratio":1.0,"big":123456789012345678901234567890,"none":null}}"#;

const PROVIDER_STATUS: &str = r#"{"kind":"AWSMachineProviderStatus","instanceState":"running","instanceId":"i-0aa","zeta": 1}"#;

fn with_raw(text: &str) -> String {
    text.replace("PROVIDER_SPEC", PROVIDER_SPEC).replace("PROVIDER_STATUS", PROVIDER_STATUS)
}

/// Reads `text` as `T`, writes it again and holds the two against each other.
fn round_trip<T: DeserializeOwned + Serialize>(text: &str) -> String {
    let object: T = serde_json::from_str(text).unwrap();
    let written = serde_json::to_string(&object).unwrap();
    let before: Value = serde_json::from_str(text).unwrap();
    let after: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(before, after);
    written
}

#[test]
fn machine_of_an_openshift_cluster_survives_with_its_raw_bytes() {
    let text = with_raw(
        r#"{
          "apiVersion": "machine.openshift.io/v1beta1",
          "kind": "Machine",
          "metadata": {
            "name": "c1-worker-a-x7k2p",
            "namespace": "openshift-machine-api",
            "uid": "6f1b3a52-0d64-4c0e-9d0a-6a1f0f4e8a11",
            "annotations": { "machine.openshift.io/instance-state": "running" },
            "labels": {
              "machine.openshift.io/cluster-api-cluster": "c1",
              "machine.openshift.io/instance-type": "m6i.xlarge"
            },
            "finalizers": ["machine.machine.openshift.io"]
          },
          "spec": {
            "lifecycleHooks": {
              "preDrain": [{ "name": "EtcdQuorumOperator", "owner": "clusteroperator/etcd" }]
            },
            "metadata": { "labels": { "node-role.kubernetes.io/infra": "" } },
            "providerID": "aws:///eu-west-1a/i-0aa",
            "providerSpec": { "value": PROVIDER_SPEC },
            "taints": [{ "key": "dedicated", "value": "infra", "effect": "NoSchedule" }]
          },
          "status": {
            "addresses": [{ "address": "10.0.1.7", "type": "InternalIP" }],
            "conditions": [
              {
                "lastTransitionTime": "2026-11-01T10:00:00Z",
                "message": "Drain operation currently blocked by: [{Name:EtcdQuorumOperator Owner:clusteroperator/etcd}]",
                "reason": "HookPresent",
                "severity": "Warning",
                "status": "False",
                "type": "Drainable"
              },
              {
                "lastTransitionTime": "2026-11-01T10:00:00Z",
                "status": "True",
                "type": "InstanceExists"
              }
            ],
            "lastUpdated": "2026-11-01T10:02:00Z",
            "nodeRef": {
              "kind": "Node",
              "name": "ip-10-0-1-7.eu-west-1.compute.internal",
              "uid": "0c9e86cf-32c3-4c5c-8f3e-0d1c8a3f3f11"
            },
            "phase": "Running",
            "providerStatus": PROVIDER_STATUS
          }
        }"#,
    );
    let written = round_trip::<Machine>(&text);
    assert!(written.contains(PROVIDER_SPEC), "{written}");
    assert!(written.contains(PROVIDER_STATUS), "{written}");
}

#[test]
fn machineset_of_an_openshift_cluster_gives_its_machines_the_same_bytes() {
    let text = with_raw(
        r#"{
          "apiVersion": "machine.openshift.io/v1beta1",
          "kind": "MachineSet",
          "metadata": {
            "name": "c1-worker-a",
            "namespace": "openshift-machine-api",
            "annotations": { "machine.openshift.io/vCPU": "4" },
            "labels": { "machine.openshift.io/cluster-api-cluster": "c1" }
          },
          "spec": {
            "deletePolicy": "Oldest",
            "minReadySeconds": 10,
            "replicas": 3,
            "selector": {
              "matchLabels": { "machine.openshift.io/cluster-api-machineset": "c1-worker-a" }
            },
            "template": {
              "metadata": {
                "labels": { "machine.openshift.io/cluster-api-machineset": "c1-worker-a" }
              },
              "spec": { "providerSpec": { "value": PROVIDER_SPEC } }
            }
          },
          "status": {
            "availableReplicas": 3,
            "fullyLabeledReplicas": 3,
            "labelSelector": "machine.openshift.io/cluster-api-machineset=c1-worker-a",
            "observedGeneration": 2,
            "readyReplicas": 3,
            "replicas": 3
          }
        }"#,
    );
    let written = round_trip::<MachineSet>(&text);
    assert!(written.contains(PROVIDER_SPEC), "{written}");

    let set: MachineSet = serde_json::from_str(&text).unwrap();
    let machine = Machine::new("c1-worker-a-1", set.spec.template.spec);
    assert!(serde_json::to_string(&machine).unwrap().contains(PROVIDER_SPEC));
}

#[test]
fn machine_health_check_survives_whatever_its_shares_and_durations_are() {
    for max_unhealthy in [json!("40%"), json!(3), json!("nonsense")] {
        let check = json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "MachineHealthCheck",
            "metadata": { "name": "workers", "namespace": "openshift-machine-api" },
            "spec": {
                "maxUnhealthy": max_unhealthy,
                "nodeStartupTimeout": "10m",
                "remediationTemplate": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "Metal3RemediationTemplate",
                    "name": "reboot"
                },
                "selector": { "matchLabels": { "machine.openshift.io/cluster-api-machine-role": "worker" } },
                "unhealthyConditions": [
                    { "type": "Ready", "status": "Unknown", "timeout": "300s" },
                    { "type": "Ready", "status": "False" }
                ]
            },
            "status": {
                "conditions": [{
                    "lastTransitionTime": "2026-11-01T10:00:00Z",
                    "status": "True",
                    "type": "RemediationAllowed"
                }],
                "currentHealthy": 2,
                "expectedMachines": 3,
                "remediationsAllowed": 0
            }
        });
        round_trip::<MachineHealthCheck>(&check.to_string());
    }
}

/// The example of the original's README, and what the original made of it.
#[test]
fn machine_maintenance_of_the_original_survives() {
    for scheduled in [false, true] {
        let object = json!({
            "apiVersion": "machinemaintenance.managed.openshift.io/v1alpha1",
            "kind": "MachineMaintenance",
            "metadata": {
                "name": "mm-dofinn-20201705-blz22-worker-ap-southeast-2a-984h4",
                "namespace": "machine-maintenance-operator"
            },
            "spec": {
                "maintenancescheduled": scheduled,
                "eventcode": "instance-stop",
                "eventid": "instance-event-01d0903276a5d038c",
                "machineid": "i-04fdc4494938e5c4a",
                "machinelink": "dofinn-20201705-blz22-worker-ap-southeast-2a-984h4"
            }
        });
        round_trip::<MachineMaintenance>(&object.to_string());
    }
}

#[test]
fn request_of_a_person_needs_only_the_machine() {
    let request: MachineMaintenance = serde_json::from_value(json!({
        "metadata": { "name": "mm-a" },
        "spec": { "machinelink": "a" }
    }))
    .unwrap();
    assert_eq!(request.spec.machineid, "");
    assert!(!request.spec.maintenancescheduled);
}

#[test]
fn machine_maintenance_under_way_survives() {
    let object = json!({
        "apiVersion": "machinemaintenance.managed.openshift.io/v1alpha1",
        "kind": "MachineMaintenance",
        "metadata": { "name": "mm-a", "namespace": "openshift-machine-api" },
        "spec": {
            "action": "Replace",
            "eventcode": "instance-retirement",
            "machineid": "i-1",
            "machinelink": "a",
            "maintenancescheduled": true,
            "notbefore": "2026-11-09T10:00:00Z"
        },
        "status": {
            "attempts": 1,
            "history": [{
                "action": "Reboot",
                "codes": ["instance-reboot"],
                "eventIds": ["instance-event-0"],
                "finishedAt": "2026-10-01T10:00:00Z",
                "machineUid": "u-1",
                "outcome": "Succeeded",
                "startedAt": "2026-10-01T09:50:00Z"
            }],
            "machineUid": "u-1",
            "maintenance": "in-progress",
            "phase": "Surging",
            "plan": {
                "action": "Replace",
                "deadline": "2026-11-09T10:00:00Z",
                "expectedSeconds": 1200,
                "latestSafeStart": "2026-11-09T09:10:00Z",
                "start": "2026-11-01T10:00:00Z",
                "waitsOn": [{ "message": "the new machine is not ready", "reason": "SurgeNotReady" }],
                "window": "saturdays"
            },
            "reasons": [{
                "code": "instance-retirement",
                "id": "instance-event-1",
                "kind": "Event",
                "notBefore": "2026-11-09T10:00:00Z",
                "since": "2026-10-30T10:00:00Z",
                "sources": ["API", "Queue"],
                "state": "Active"
            }],
            "timeline": [{
                "message": "pool c1-worker-a grows to 4",
                "phase": "Surging",
                "time": "2026-11-01T10:00:00Z"
            }],
            "work": {
                "action": "Replace",
                "bootID": "b-1",
                "machineUID": "u-1",
                "startedAt": "2026-11-01T10:00:00Z",
                "surge": {
                    "before": ["u-1"],
                    "poolUID": "p-1",
                    "since": "2026-11-01T10:00:00Z"
                }
            }
        }
    });
    round_trip::<MachineMaintenance>(&object.to_string());
}

#[test]
fn every_phase_is_spelt_as_its_name() {
    for phase in MaintenancePhase::ALL {
        assert_eq!(serde_json::to_value(phase).unwrap(), json!(phase.as_str()));
    }
}

#[test]
fn maintenance_policy_survives() {
    let policy = json!({
        "apiVersion": "machinist.dev/v1alpha1",
        "kind": "MaintenancePolicy",
        "metadata": { "name": "workers" },
        "spec": {
            "approval": "Manual",
            "budgets": { "cluster": "5%", "coolDown": "10m", "pool": 1, "zone": 1 },
            "drain": { "afterDeadline": "Force", "deadline": "45m" },
            "drift": { "onStopped": "Start", "onTerminated": "Report" },
            "events": [{
                "action": "StopStart",
                "code": "instance-retirement",
                "escalation": ["Replace"],
                "leadTime": "72h"
            }],
            "freezes": [
                { "from": "2026-12-20", "name": "holidays", "to": "2027-01-06" },
                { "name": "sale", "yearly": {
                    "from": { "dayOfWeek": "Thursday", "month": "November", "weekOfMonth": 4 },
                    "to": { "dayOfMonth": 2, "month": "December", "time": "12:00" }
                } }
            ],
            "selector": { "machines": { "matchLabels": { "a": "b" } }, "roles": ["worker"] },
            "surge": { "machines": 1, "timeout": "30m" },
            "whenNoWindow": "MoveEvent",
            "windows": [
                { "cron": "0 2 * * 6", "duration": "4h", "name": "saturdays", "timeZone": "Europe/Berlin" },
                { "duration": "2h", "name": "patch", "rrule": "FREQ=MONTHLY;BYDAY=2TU", "start": "2026-01-01T22:00" }
            ]
        }
    });
    round_trip::<MaintenancePolicy>(&policy.to_string());
}

#[test]
fn empty_severity_reads_as_none() {
    let mut condition = json!({
        "type": "Drained",
        "status": "True",
        "severity": "",
        "lastTransitionTime": "2026-11-01T10:00:00Z"
    });
    let read: machinist_api::Condition = serde_json::from_value(condition.clone()).unwrap();
    assert_eq!(read.severity, None);

    condition["severity"] = json!("Dire");
    let error = serde_json::from_value::<machinist_api::Condition>(condition).unwrap_err();
    assert!(error.to_string().contains("Dire"), "{error}");
}
