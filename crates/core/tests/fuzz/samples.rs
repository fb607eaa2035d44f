//! Inputs that nothing is wrong with, to begin from.

use serde_json::{Value, json};
use x509_parser::pem::parse_x509_pem;

use crate::Chance;

#[expect(dead_code, reason = "the tables of the crate's own tests use more of it")]
#[path = "../../src/approval/tests/drafts.rs"]
mod drafts;

pub use drafts::pem;
use drafts::{BY_GO, CERTIFICATE_BY_OPENSSL, CLIENT_BY_OPENSSL, Draft, SERVING_BY_OPENSSL};

const NODE: &str = "ip-10-0-1-7.ec2.internal";

pub fn request(chance: &mut Chance) -> String {
    let by_hand = || Draft::of_node(NODE).dns(NODE).ip("10.0.1.7").ip("fd00::7").pem();
    match chance.below(4) {
        0 => BY_GO.to_owned(),
        1 => CLIENT_BY_OPENSSL.to_owned(),
        2 => SERVING_BY_OPENSSL.to_owned(),
        _ => by_hand(),
    }
}

pub fn certificate() -> Vec<u8> {
    let (_, block) = parse_x509_pem(CERTIFICATE_BY_OPENSSL.as_bytes()).expect("it is right");
    block.contents
}

/// Every field that has a rule, of three kinds of machines.
pub fn provider_spec(chance: &mut Chance) -> Value {
    let mut spec = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig",
        "ami": {"id": "ami-1"}, "instanceType": "m6i.large",
        "placement": {"region": "us-east-1", "availabilityZone": "us-east-1a", "tenancy": "default"},
        "subnet": {"filters": [{"name": "tag:Name", "values": ["a"]}]},
        "iamInstanceProfile": {"id": "worker"}, "securityGroups": [{"id": "sg-1"}],
        "userDataSecret": {"name": "worker-user-data"},
        "credentialsSecret": {"name": "aws-cloud-credentials"},
        "blockDevices": [{"ebs": {"volumeType": "gp3", "volumeSize": 120, "throughputMib": 200}}],
        "tags": [{"name": "a", "value": "b"}], "loadBalancers": [{"name": "lb", "type": "network"}],
        "metadataServiceOptions": {"authentication": "Required"},
        "placementGroupName": "g", "placementGroupPartition": 7,
    });
    match chance.below(3) {
        0 => spec["spotMarketOptions"] = json!({"maxPrice": "0.1"}),
        1 => {
            spec["placement"]["tenancy"] = json!("host");
            spec["placement"]["host"] = json!({
                "affinity": "DedicatedHost", "dedicatedHost": {
                    "allocationStrategy": "Dynamic",
                    "dynamicHostAllocation": {"tags": [{"name": "a", "value": "b"}]},
                },
            });
        }
        _ => {
            spec["marketType"] = json!("CapacityBlock");
            spec["capacityReservationId"] = json!("cr-0123456789abcdef0");
            spec["cpuOptions"] =
                json!({"confidentialCompute": "AMDEncryptedVirtualizationNestedPaging"});
        }
    }
    spec
}

fn machine(chance: &mut Chance) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {
            "name": "worker-0", "namespace": "openshift-machine-api", "uid": "u",
            "labels": {"machine.openshift.io/cluster-api-cluster": "c", "set": "worker"},
            "finalizers": ["machine.machine.openshift.io"],
        },
        "spec": {
            "providerSpec": {"value": provider_spec(chance)},
            "lifecycleHooks": {"preDrain": [{"name": "a", "owner": "b"}]},
            "taints": [{"key": "a", "effect": "NoSchedule"}],
        },
    })
}

pub fn machine_set(chance: &mut Chance) -> Value {
    let template = machine(chance);
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": "worker", "namespace": "openshift-machine-api", "uid": "s"},
        "spec": {
            "replicas": 3, "minReadySeconds": 5, "deletePolicy": "Oldest",
            "selector": {
                "matchLabels": {"set": "worker"},
                "matchExpressions": [{"key": "set", "operator": "In", "values": ["worker", "x"]}],
            },
            "template": {
                "metadata": {"labels": template["metadata"]["labels"]}, "spec": template["spec"],
            },
        },
        "status": {"replicas": 2, "conditions": [
            {"type": "Scaling", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]},
    })
}

pub fn review(chance: &mut Chance) -> Value {
    let (object, resource) = match chance.below(2) {
        0 => (machine(chance), "machines"),
        _ => (machine_set(chance), "machinesets"),
    };
    let operation = *chance.pick(&["CREATE", "UPDATE", "DELETE"]);
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": operation, "namespace": "openshift-machine-api",
            "kind": {"group": "machine.openshift.io", "version": "v1beta1", "kind": object["kind"]},
            "resource": {
                "group": "machine.openshift.io", "version": "v1beta1", "resource": resource,
            },
            "object": object, "oldObject": object,
        },
    })
}
