//! What does a new cluster hold? Machines as an installer makes them, and workloads to protect.

use anyhow::Context;
use machinist_api::names::{annotation, label};
use machinist_testbed::cloud::WorldIds;
use machinist_testbed::singletons::{
    CREDENTIALS_SECRET, MACHINE_NAMESPACE, MASTER_USER_DATA_SECRET, WORKER_USER_DATA_SECRET,
};
use serde_json::{Value, json};

/// Where the workloads are.
pub const WORKLOAD_NAMESPACE: &str = "demo";
/// The Deployment, and the disruption budget that protects it.
pub const WORKLOAD: &str = "web";
const WORKLOAD_REPLICAS: u8 = 3;

const API_VERSION: &str = "machine.openshift.io/v1beta1";

/// What a machine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Master,
    Worker,
}

/// The control-plane Machines, which no pool keeps, and the pool of workers.
pub fn machines(world: &WorldIds, control_plane: u16, workers: u16) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for index in 0..control_plane {
        objects.push(control_plane_machine(world, index)?);
    }
    objects.push(worker_pool(world, workers)?);
    Ok(objects)
}

/// The one pool of workers, in the first zone.
pub fn worker_pool(world: &WorldIds, replicas: u16) -> anyhow::Result<Value> {
    let zone = zone(world, 0)?;
    let name = worker_pool_name(world)?;
    let mut labels = labels(world, Role::Worker);
    labels[label::MACHINE_SET] = json!(name);
    let selector = json!({
        label::CLUSTER: world.infrastructure_name,
        label::MACHINE_SET: name,
    });
    Ok(json!({
        "apiVersion": API_VERSION,
        "kind": "MachineSet",
        "metadata": {
            "name": name,
            "namespace": MACHINE_NAMESPACE,
            "labels": { label::CLUSTER: world.infrastructure_name },
            // Somebody who tries it out does not want to wait the usual five minutes.
            "annotations": { annotation::STOPPED_GRACE_PERIOD: "30s" },
        },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": selector },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "providerSpec": { "value": provider_spec(world, Role::Worker, zone)? } },
            },
        },
    }))
}

pub fn worker_pool_name(world: &WorldIds) -> anyhow::Result<String> {
    Ok(format!("{}-worker-{}", world.infrastructure_name, zone(world, 0)?))
}

/// Control-plane machines go round the zones, as an installer spreads them.
fn control_plane_machine(world: &WorldIds, index: u16) -> anyhow::Result<Value> {
    let zone = zone(world, usize::from(index))?;
    Ok(json!({
        "apiVersion": API_VERSION,
        "kind": "Machine",
        "metadata": {
            "name": format!("{}-master-{index}", world.infrastructure_name),
            "namespace": MACHINE_NAMESPACE,
            "labels": labels(world, Role::Master),
        },
        "spec": { "providerSpec": { "value": provider_spec(world, Role::Master, zone)? } },
    }))
}

fn zone(world: &WorldIds, index: usize) -> anyhow::Result<&str> {
    let zones = &world.availability_zones;
    let zone = index.checked_rem(zones.len()).and_then(|index| zones.get(index));
    zone.map(String::as_str).context("the simulated cloud has no zones")
}

fn labels(world: &WorldIds, role: Role) -> Value {
    let role = match role {
        Role::Master => "master",
        Role::Worker => "worker",
    };
    json!({
        label::CLUSTER: world.infrastructure_name,
        label::MACHINE_ROLE: role,
        label::MACHINE_TYPE: role,
    })
}

/// In the shape that OpenShift's installer writes.
fn provider_spec(world: &WorldIds, role: Role, zone: &str) -> anyhow::Result<Value> {
    let image = world.images.get("x86_64").context("the simulated cloud has no x86_64 image")?;
    let subnet = world
        .private_subnets
        .get(zone)
        .with_context(|| format!("the simulated cloud has no private subnet in {zone}"))?;
    let (instance_type, profile, group, user_data) = match role {
        Role::Master => (
            "m6i.xlarge",
            &world.master_instance_profile,
            &world.master_security_group,
            MASTER_USER_DATA_SECRET,
        ),
        Role::Worker => (
            "m6i.large",
            &world.worker_instance_profile,
            &world.worker_security_group,
            WORKER_USER_DATA_SECRET,
        ),
    };
    Ok(json!({
        "apiVersion": API_VERSION,
        "kind": "AWSMachineProviderConfig",
        "ami": { "id": image },
        "instanceType": instance_type,
        "blockDevices": [{ "ebs": { "volumeSize": 120, "volumeType": "gp3", "encrypted": true } }],
        "iamInstanceProfile": { "id": profile },
        "placement": { "region": world.region, "availabilityZone": zone },
        "securityGroups": [{ "id": group }],
        "subnet": { "id": subnet },
        "metadataServiceOptions": { "authentication": "Required" },
        "userDataSecret": { "name": user_data },
        "credentialsSecret": { "name": CREDENTIALS_SECRET },
    }))
}

/// A Deployment whose budget lets one pod go at a time: a drain has something to respect.
pub fn workloads() -> Vec<Value> {
    let labels = json!({ "app": WORKLOAD });
    let metadata = json!({ "name": WORKLOAD, "namespace": WORKLOAD_NAMESPACE });
    // On different nodes where there are enough, on the same where there are not.
    let spread = json!([{
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": labels },
    }]);
    vec![
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": { "name": WORKLOAD_NAMESPACE },
        }),
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": { "maxUnavailable": 1, "selector": { "matchLabels": labels } },
        }),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": WORKLOAD_REPLICAS,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "topologySpreadConstraints": spread,
                        "containers": [{
                            "name": WORKLOAD,
                            "image": "registry.example/web:1",
                            "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } },
                        }],
                    },
                },
            },
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinist_api::{Machine, MachineSet};
    use machinist_testbed::cloud::{Cloud, CloudConfig};

    fn world() -> WorldIds {
        Cloud::new(CloudConfig::fast(), 7).world().ids().clone()
    }

    #[test]
    fn machines_are_what_the_api_says_and_go_round_the_zones() {
        let objects = machines(&world(), 4, 3).unwrap();
        assert_eq!(objects.len(), 5);
        let zones: Vec<String> = objects
            .iter()
            .take(4)
            .map(|object| {
                let machine: Machine = serde_json::from_value(object.clone()).unwrap();
                assert_eq!(machine.metadata.labels.unwrap()[label::CLUSTER], "machinist");
                let spec = machine.spec.provider_spec.value.unwrap().as_object().unwrap();
                spec["placement"]["availabilityZone"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(zones, ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1a"]);
    }

    #[test]
    fn the_pools_selector_matches_its_template() {
        let set: MachineSet = serde_json::from_value(worker_pool(&world(), 3).unwrap()).unwrap();
        assert_eq!(set.metadata.name.as_deref(), Some("machinist-worker-us-east-1a"));
        assert_eq!(set.spec.replicas, Some(3));
        let labels = &set.spec.template.metadata.labels;
        for (key, value) in set.spec.selector.match_labels.unwrap() {
            assert_eq!(labels.get(&key), Some(&value));
        }
    }
}
