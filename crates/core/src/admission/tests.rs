//! What is filled in, refused and warned about, message for message.

mod aws_defaults;
mod aws_rules;
mod aws_warnings;
mod common;
mod configurations;
mod platforms;
mod properties;
mod reviews;

use serde_json::{Value, json};

use super::*;

/// A cluster of OpenShift's on AWS.
fn openshift() -> Context {
    Context {
        platform: Some(Platform::Aws),
        cluster_id: Some("cluster-x7k2p".to_owned()),
        region: Some("us-east-1".to_owned()),
        architecture: Architecture::Amd64,
    }
}

/// A providerSpec that nothing is wrong with and nothing is missing from.
fn whole_spec() -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "AWSMachineProviderConfig",
        "ami": {"id": "ami-1"},
        "instanceType": "m6i.large",
        "placement": {"region": "us-east-1", "availabilityZone": "us-east-1a"},
        "subnet": {"id": "subnet-1"},
        "iamInstanceProfile": {"id": "worker"},
        "securityGroups": [{"id": "sg-1"}],
        "userDataSecret": {"name": "worker-user-data"},
        "credentialsSecret": {"name": "aws-cloud-credentials"},
    })
}

/// A Machine of this providerSpec.
fn machine(provider_spec: Value) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "metadata": {
            "name": "worker-0",
            "namespace": "openshift-machine-api",
            "labels": {"machine.openshift.io/cluster-api-cluster": "cluster-x7k2p"},
        },
        "spec": {"providerSpec": {"value": provider_spec}},
    })
}

/// A MachineSet whose template has this providerSpec.
fn machine_set(provider_spec: Value) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "metadata": {"name": "worker", "namespace": "openshift-machine-api"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"set": "worker"}},
            "template": {
                "metadata": {"labels": {"set": "worker"}},
                "spec": {"providerSpec": {"value": provider_spec}},
            },
        },
    })
}

/// Lays `overrides` over `base`: objects are merged, null removes, everything else replaces.
fn with(base: Value, overrides: &Value) -> Value {
    match (base, overrides) {
        (Value::Object(mut base), Value::Object(overrides)) => {
            for (key, value) in overrides {
                match base.remove(key) {
                    _ if value.is_null() => {}
                    Some(old) => {
                        base.insert(key.clone(), with(old, value));
                    }
                    None => {
                        base.insert(key.clone(), value.clone());
                    }
                }
            }
            Value::Object(base)
        }
        (_, overrides) => overrides.clone(),
    }
}

fn verdict(kind: Kind, object: &Value, old: Option<&Value>) -> Verdict {
    let change = Change { kind, object, old, namespace: "openshift-machine-api" };
    validate(&change, &openshift(), &SecretKnowledge::Found)
}

fn faults(verdict: &Verdict) -> Vec<String> {
    verdict.faults.iter().map(ToString::to_string).collect()
}

/// Carries a patch out as the API server does; only `add` to objects is ever wanted.
fn patched(mut object: Value, patch: &[PatchOperation]) -> Value {
    for operation in patch {
        assert_eq!(operation.op, "add");
        let (parent, leaf) = operation.path.rsplit_once('/').unwrap();
        let leaf = leaf.replace("~1", "/").replace("~0", "~");
        let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        parent.insert(leaf, operation.value.clone());
    }
    object
}
