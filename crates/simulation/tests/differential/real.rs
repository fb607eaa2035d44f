//! Where does the real API server come from? The testbed's control plane, without its controllers.

use std::path::Path;
use std::time::Duration;

use kube::Client;
use machinist_testbed::api_access::ADMINISTRATORS;
use machinist_testbed::cluster::folder_of_this_process;
use machinist_testbed::control_plane::{ControlPlane, ControlPlaneConfig, NodeMonitor};
use machinist_testbed::guard::Guard;
use machinist_testbed::manifests::apply_crds;
use machinist_testbed::programs::{self, Progress};

const MACHINES: &str = include_str!("../../../../deploy/crds/machine.openshift.io_machines.yaml");
const MACHINE_SETS: &str =
    include_str!("../../../../deploy/crds/machine.openshift.io_machinesets.yaml");
const HEALTH_CHECKS: &str =
    include_str!("../../../../deploy/crds/machine.openshift.io_machinehealthchecks.yaml");

/// A kube-apiserver and its etcd.
pub struct Real {
    control_plane: ControlPlane,
    pub client: Client,
}

impl Real {
    pub async fn start() -> anyhow::Result<Self> {
        let programs = programs::ensure(Progress::Lines).await?;
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder_of_this_process(parent, "differential-")?;
        std::fs::create_dir_all(&folder)?;
        let config =
            ControlPlaneConfig { folder, node_monitor: NodeMonitor::default(), audit: false };
        let control_plane = ControlPlane::start(&programs, &Guard::current_exe(), &config).await?;
        // Nobody but the test shall write: neither garbage collection, nor scheduling, nor taints.
        for process in control_plane.processes() {
            if matches!(process.name(), "kube-controller-manager" | "kube-scheduler") {
                process.stop(Duration::from_secs(2)).await;
            }
        }
        let client = control_plane
            .access()
            .client_without_retry("differential", Some(ADMINISTRATORS))
            .await?;
        for definitions in [MACHINES, MACHINE_SETS, HEALTH_CHECKS] {
            apply_crds(&client, definitions).await?;
        }
        Ok(Self { control_plane, client })
    }

    pub async fn stop(self) {
        drop(self.client);
        self.control_plane.stop().await;
    }
}
