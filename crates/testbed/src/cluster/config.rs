//! What can be chosen about a cluster before it starts?

use std::path::PathBuf;
use std::time::Duration;

use crate::cloud::CloudConfig;
use crate::control_plane::NodeMonitor;
use crate::guard::Guard;
use crate::kubelet::KubeletConfig;
use crate::programs::Progress;
use crate::termination_handlers::TerminationHandlerConfig;

/// From here on heartbeats every two seconds cost more than they show.
const MANY_MACHINES: usize = 100;

#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Holds data, credentials and logs; none makes a temporary folder that goes with the cluster.
    pub folder: Option<PathBuf>,
    /// The program that becomes the children. By default the current one, whose `main` must begin
    /// with [`crate::guard::run_if_asked`].
    pub guard: Guard,
    /// How a build of the Kubernetes programs is shown.
    pub progress: Progress,
    pub cloud: CloudConfig,
    /// What the simulated cloud draws its identifiers from.
    pub cloud_seed: u64,
    pub kubelet: KubeletConfig,
    pub node_monitor: NodeMonitor,
    /// Writes the API server's audit log, at Metadata level.
    pub audit: bool,
    /// Whether the testbed approves the kubelets' certificates: where no operator runs that does.
    pub approve_kubelets: bool,
    /// Whether the testbed plays the cloud controller manager.
    pub cloud_controller: bool,
    /// Time between two looks of that controller at all nodes.
    pub cloud_controller_period: Duration,
    /// How the spot machines' termination handlers run; none runs none. By default they do where
    /// the operator's program is known.
    pub termination_handlers: Option<TerminationHandlerConfig>,
    /// How many control-plane machines are to be members of etcd, which the testbed plays for them; none
    /// plays none.
    pub etcd_members: usize,
    /// CustomResourceDefinitions to install, as YAML; a text may hold several documents.
    pub machine_crds: Vec<String>,
}

impl Default for ClusterConfig {
    /// Delays as in life.
    fn default() -> Self {
        Self {
            folder: None,
            guard: Guard::current_exe(),
            progress: Progress::detect(),
            cloud: CloudConfig::default(),
            cloud_seed: 0,
            kubelet: KubeletConfig::default(),
            node_monitor: NodeMonitor::default(),
            audit: false,
            approve_kubelets: false,
            cloud_controller: true,
            cloud_controller_period: Duration::from_secs(5),
            etcd_members: 0,
            termination_handlers: TerminationHandlerConfig::find(),
            machine_crds: Vec::new(),
        }
    }
}

impl ClusterConfig {
    /// Short delays, for tests and for people in a hurry.
    #[must_use]
    pub fn fast() -> Self {
        Self {
            cloud: CloudConfig::fast(),
            kubelet: KubeletConfig {
                boot_delay: Duration::from_millis(400),
                heartbeat: Duration::from_secs(2),
                status_report: Duration::from_secs(60),
            },
            node_monitor: NodeMonitor {
                period: Duration::from_secs(1),
                grace_period: Duration::from_secs(8),
            },
            cloud_controller_period: Duration::from_secs(1),
            termination_handlers: TerminationHandlerConfig::find().map(|found| {
                TerminationHandlerConfig { poll_interval: Duration::from_secs(1), ..found }
            }),
            ..Self::default()
        }
    }

    /// Short delays, but heartbeats that so many machines can afford.
    #[must_use]
    pub fn fast_for(machines: usize) -> Self {
        let mut config = Self::fast();
        if machines >= MANY_MACHINES {
            config.kubelet.heartbeat = Duration::from_secs(10);
            config.kubelet.status_report = Duration::from_secs(300);
            config.node_monitor.grace_period = Duration::from_secs(40);
        }
        config
    }
}
