//! of the original's acceptance suite: pools with tags, an EFA network interface, a placement
//! group, two block devices and a KMS key become ready. The original looks at the Machine only; here the
//! launch itself is looked at, in the cloud's books.

use machinist_testbed::cloud::model::LedgerQuery;
use serde_json::{Value, json};

use crate::{
    arena::{Arena, run},
    seen::Subject,
};

/// The request with which the one machine of a pool was launched.
async fn launch_of(arena: &Arena, pool: &str, provider_spec: Value) -> Value {
    let template = json!({"spec": {"providerSpec": {"value": provider_spec}}});
    arena.create_set(pool, 1, json!({"spec": {"template": template}})).await;
    arena.wait_set_columns(pool, "1 1 1 1").await;
    let machines = arena.machines().await;
    let is_of_pool = |name: &str| name.starts_with(&format!("{pool}-"));
    let machine = machines.iter().find(|one| is_of_pool(one.metadata.name.as_deref().unwrap()));
    let machine = machine.unwrap();
    let kept = json!(machine.spec.provider_spec);
    for (field, value) in provider_spec.as_object().unwrap() {
        assert_eq!(&kept["value"][field], value, "kept in the Machine");
    }
    let instance = Subject::of(machine).instance;
    let query = LedgerQuery { action: Some("RunInstances".to_owned()), after: None };
    let calls = arena.cluster.cloud().ledger(&query).calls;
    let call = calls.iter().find(|call| call.instance_ids.contains(&instance)).unwrap();
    json!(call.parameters)
}

/// Whether a value is somewhere in another, at any depth.
fn holds(all: &Value, wanted: &Value) -> bool {
    match (all, wanted) {
        (Value::Object(all), Value::Object(wanted))
            if wanted
                .iter()
                .all(|(key, value)| all.get(key).is_some_and(|one| holds(one, value))) =>
        {
            true
        }
        _ if all == wanted => true,
        (Value::Object(all), _) => all.values().any(|one| holds(one, wanted)),
        (Value::Array(all), _) => all.iter().any(|one| holds(one, wanted)),
        _ => false,
    }
}

#[test]
fn a_6_to_a_10_tags_efa_placement_groups_devices_and_keys_reach_the_launch() {
    run(async {
        let (arena, _operator) = Arena::with_operator("aws-fields").await;
        let key = "arn:aws:kms:us-east-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";
        let cases = [
            (
                "a-6-tags",
                json!({"tags": [{"name": "team", "value": "blue"}]}),
                vec![json!({"Key": "team", "Value": "blue"})],
            ),
            (
                "a-7-efa",
                json!({"instanceType": "c5n.18xlarge", "networkInterfaceType": "EFA"}),
                vec![json!({"InterfaceType": "efa"}), json!({"InstanceType": "c5n.18xlarge"})],
            ),
            (
                "a-8-group",
                json!({"placementGroupName": "together"}),
                vec![json!({"GroupName": "together"})],
            ),
            (
                "a-9-devices",
                json!({"blockDevices": [
                    {"deviceName": "/dev/xvda", "ebs": {
                        "volumeSize": 120, "volumeType": "gp3", "iops": 5000, "encrypted": true,
                    }},
                    {"deviceName": "/dev/sdf", "ebs": {"volumeSize": 120, "volumeType": "gp2"}},
                ]}),
                vec![
                    json!({"DeviceName": "/dev/xvda", "Ebs": {
                        "VolumeType": "gp3", "Iops": 5000, "Encrypted": true,
                    }}),
                    json!({"DeviceName": "/dev/sdf", "Ebs": {"VolumeType": "gp2"}}),
                ],
            ),
            (
                "a-10-key",
                json!({"blockDevices": [{"ebs": {
                    "volumeSize": 120, "volumeType": "io1", "iops": 2000, "encrypted": true,
                    "kmsKey": {"arn": key},
                }}]}),
                vec![json!({"VolumeType": "io1", "KmsKeyId": key, "Encrypted": true})],
            ),
        ];
        for (pool, provider_spec, expected) in cases {
            let launch = launch_of(&arena, pool, provider_spec).await;
            for wanted in expected {
                assert!(holds(&launch, &wanted), "{pool}: {wanted} is not in {launch:#}");
            }
        }
        arena.check_ledger().await;
    });
}
