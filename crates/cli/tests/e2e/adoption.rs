//! Taking over a running fleet disrupts nothing: instances that another controller made are bound
//! by id and tagged, and nothing else happens to them.

use std::{path::PathBuf, process::Stdio};

use kube::api::{Patch, PatchParams};
use machinist_api::Machine;
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;

use crate::arena::{Arena, run};

/// Launches with boto3 what the peer's provider would launch: its two tags and no client token.
const LAUNCH: &str = r#"
import boto3, json, sys
endpoint, cluster, names, image, subnet, group, region = sys.argv[1:]
ec2 = boto3.client("ec2", endpoint_url=endpoint, region_name=region,
                   aws_access_key_id="peer", aws_secret_access_key="peer")
for name in names.split(","):
    answer = ec2.run_instances(
        ImageId=image, InstanceType="m5.large", MinCount=1, MaxCount=1,
        NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group]}],
        TagSpecifications=[{"ResourceType": kind, "Tags": [
            {"Key": "kubernetes.io/cluster/" + cluster, "Value": "owned"},
            {"Key": "Name", "Value": name},
        ]} for kind in ("instance", "volume")],
    )
    instance = answer["Instances"][0]
    print(json.dumps({"name": name, "id": instance["InstanceId"],
                      "zone": instance["Placement"]["AvailabilityZone"],
                      "address": instance["PrivateIpAddress"],
                      "dns": instance["PrivateDnsName"]}))
"#;

/// An instance as the peer's provider makes it.
#[derive(Clone, Debug, Deserialize)]
pub struct Launched {
    pub name: String,
    pub id: String,
    pub zone: String,
    pub address: String,
    pub dns: String,
}

impl Launched {
    pub fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.id)
    }
}

pub async fn launch_as_the_peer(arena: &Arena, names: &[String]) -> Vec<Launched> {
    let venv = std::env::var_os("MACHINIST_VENV")
        .map(PathBuf::from)
        .expect("MACHINIST_VENV names the Python environment with boto3 that `make venv` makes");
    let world = arena.cluster.cloud().world();
    let zone = &world.availability_zones[0];
    let output = Command::new(venv.join("bin/python"))
        .args(["-c", LAUNCH, arena.cluster.ec2_endpoint(), &arena.name, &names.join(",")])
        .args([&world.images["x86_64"], &world.private_subnets[zone]])
        .args([&world.worker_security_group, &world.region])
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_running_fleet_is_taken_over_without_a_launch_or_a_loss() {
    run(async {
        let arena = Arena::new("adoption").await;
        let mut ids = Vec::new();
        for launched in launch_as_the_peer(&arena, &["old-1".into(), "old-2".into()]).await {
            let overrides = json!({
                "metadata": {"finalizers": ["machine.machine.openshift.io"]},
                "spec": {"providerID": launched.provider_id()},
            });
            arena.create_machine(&launched.name, overrides).await;
            let status = json!({"status": {
                "phase": "Running",
                "providerStatus": {"instanceId": launched.id, "instanceState": "running"},
            }});
            let api = arena.api::<Machine>();
            let patch = Patch::Merge(status);
            api.patch_status(&launched.name, &PatchParams::default(), &patch).await.unwrap();
            ids.push(launched.id);
        }
        let _operator = arena.start_operator().await;
        let machines = arena.wait_running(2).await;
        arena
            .eventually("both instances carry their machine's uid", async || {
                let live = arena.live();
                machines
                    .iter()
                    .all(|machine| {
                        live.iter().any(|one| {
                            one.tags.get("machinist.dev/machine-uid")
                                == machine.metadata.uid.as_ref()
                                && one.tags.get("Name") == machine.metadata.name.as_ref()
                        })
                    })
                    .then_some(())
            })
            .await;
        assert_eq!(arena.launched().len(), 2, "nothing was launched");
        for action in ["TerminateInstances", "StopInstances", "RebootInstances"] {
            assert_eq!(arena.calls_on(action, &ids), 0, "{action}");
        }
        for machine in &machines {
            let conditions = &machine.status.as_ref().unwrap().conditions;
            assert!(machinist_api::condition::find(conditions, "Drained").is_none());
        }
        // They are ours now: they go as any other.
        for name in ["old-1", "old-2"] {
            arena.delete_machine(name).await;
        }
        arena
            .eventually("both are gone, objects and instances", async || {
                (arena.machines().await.is_empty() && arena.live().is_empty()).then_some(())
            })
            .await;
    });
}
