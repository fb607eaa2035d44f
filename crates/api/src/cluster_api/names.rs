//! Every name of Cluster API that objects carry: finalizers, labels, annotations, taints, conditions,
//! reasons, phases, events.

pub mod finalizer {
    pub const CLUSTER: &str = "cluster.cluster.x-k8s.io";
    pub const MACHINE: &str = "machine.cluster.x-k8s.io";
    pub const MACHINE_SET: &str = "cluster.x-k8s.io/machineset";
    pub const MACHINE_DEPLOYMENT: &str = "cluster.x-k8s.io/machinedeployment";
}

pub mod kind {
    pub const CLUSTER: &str = "Cluster";
    pub const MACHINE: &str = "Machine";
    pub const MACHINE_SET: &str = "MachineSet";
    pub const MACHINE_DEPLOYMENT: &str = "MachineDeployment";
    pub const MACHINE_HEALTH_CHECK: &str = "MachineHealthCheck";
    pub const MACHINE_DRAIN_RULE: &str = "MachineDrainRule";
    pub const MACHINE_POOL: &str = "MachinePool";
    /// A template's kind ends in this, and its objects' kind is what is before it.
    pub const TEMPLATE_SUFFIX: &str = "Template";
    /// The template kind of the kubeadm bootstrap provider, which one preflight check is about.
    pub const KUBEADM_CONFIG_TEMPLATE: &str = "KubeadmConfigTemplate";
}

pub mod label {
    pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
    /// Presence, with an empty value, marks a control-plane machine.
    pub const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
    pub const CONTROL_PLANE_NAME: &str = "cluster.x-k8s.io/control-plane-name";
    pub const POOL_NAME: &str = "cluster.x-k8s.io/pool-name";
    pub const SET_NAME: &str = "cluster.x-k8s.io/set-name";
    pub const DEPLOYMENT_NAME: &str = "cluster.x-k8s.io/deployment-name";
    /// Tells the sets of one deployment apart.
    pub const TEMPLATE_HASH: &str = "machine-template-hash";
    /// On a Node of the workload cluster: its machine may be taken away.
    pub const INTERRUPTIBLE: &str = "cluster.x-k8s.io/interruptible";
    pub const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
    /// On a pod of the workload cluster: `skip` or `wait-completed`.
    pub const DRAIN: &str = "cluster.x-k8s.io/drain";
    pub const TOPOLOGY_OWNED: &str = "topology.cluster.x-k8s.io/owned";
    /// On a CRD: which of its versions keep to this contract, with `_` between.
    pub const CONTRACT_V1BETA1: &str = "cluster.x-k8s.io/v1beta1";
    pub const CONTRACT_V1BETA2: &str = "cluster.x-k8s.io/v1beta2";
    /// On a CRD: which provider installed it.
    pub const PROVIDER: &str = "cluster.x-k8s.io/provider";
}

pub mod annotation {
    /// Presence, with any value, stops everything for the object.
    pub const PAUSED: &str = "cluster.x-k8s.io/paused";
    pub const EXCLUDE_NODE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
    pub const EXCLUDE_VOLUME_DETACH: &str =
        "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";
    /// Any key that begins so is a hook.
    pub const PRE_DRAIN_HOOK_PREFIX: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
    pub const PRE_TERMINATE_HOOK_PREFIX: &str =
        "pre-terminate.delete.hook.machine.cluster.x-k8s.io";
    pub const CERTIFICATES_EXPIRY: &str = "machine.cluster.x-k8s.io/certificates-expiry";
    /// Presence makes the Machine the first to go at scale-down.
    pub const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";
    /// Presence keeps health checks away.
    pub const SKIP_REMEDIATION: &str = "cluster.x-k8s.io/skip-remediation";
    /// Presence makes health checks flag the Machine at once.
    pub const REMEDIATE_MACHINE: &str = "cluster.x-k8s.io/remediate-machine";
    /// On a MachineSet: `true` forbids new Machines.
    pub const DISABLE_MACHINE_CREATE: &str = "cluster.x-k8s.io/disable-machine-create";
    pub const SKIP_PREFLIGHT_CHECKS: &str = "machineset.cluster.x-k8s.io/skip-preflight-checks";
    pub const REVISION: &str = "machinedeployment.clusters.x-k8s.io/revision";
    pub const REVISION_HISTORY: &str = "machinedeployment.clusters.x-k8s.io/revision-history";
    pub const DESIRED_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/desired-replicas";
    pub const MAX_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/max-replicas";
    /// On an object made from a template: which one, and its `Kind.group`.
    pub const CLONED_FROM_NAME: &str = "cluster.x-k8s.io/cloned-from-name";
    pub const CLONED_FROM_GROUP_KIND: &str = "cluster.x-k8s.io/cloned-from-groupkind";
    pub const AUTOSCALER_MIN_SIZE: &str =
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
    pub const AUTOSCALER_MAX_SIZE: &str =
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
    /// On a Node of the workload cluster: whose it is.
    pub const NODE_CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
    pub const NODE_CLUSTER_NAMESPACE: &str = "cluster.x-k8s.io/cluster-namespace";
    pub const NODE_MACHINE: &str = "cluster.x-k8s.io/machine";
    pub const NODE_OWNER_KIND: &str = "cluster.x-k8s.io/owner-kind";
    pub const NODE_OWNER_NAME: &str = "cluster.x-k8s.io/owner-name";
    /// On a Node of the workload cluster: which keys came from its Machine.
    pub const LABELS_FROM_MACHINE: &str = "cluster.x-k8s.io/labels-from-machine";
    pub const ANNOTATIONS_FROM_MACHINE: &str = "cluster.x-k8s.io/annotations-from-machine";
    pub const TAINTS_FROM_MACHINE: &str = "cluster.x-k8s.io/taints-from-machine";
    /// What a conversion could not express in the older version.
    pub const CONVERSION_DATA: &str = "cluster.x-k8s.io/conversion-data";
    /// What kubectl remembers of the last apply; never copied.
    pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    /// On a Machine and its provider's objects: an extension changes them in place.
    pub const UPDATE_IN_PROGRESS: &str =
        "in-place-updates.internal.cluster.x-k8s.io/update-in-progress";
    /// On a Machine or set: which hooks of extensions are to be called.
    pub const PENDING_HOOKS: &str = "runtime.cluster.x-k8s.io/pending-hooks";
}

pub mod taint {
    /// Put on a new Node by the bootstrap provider, taken off at the first sync.
    pub const UNINITIALIZED: &str = "node.cluster.x-k8s.io/uninitialized";
    /// On a Node whose Machine is of an older revision.
    pub const OUTDATED_REVISION: &str = "node.cluster.x-k8s.io/outdated-revision";
}

/// The domains from which keys of a Machine reach its Node.
pub mod node_domain {
    pub const ROLE: &str = "node-role.kubernetes.io";
    pub const RESTRICTION: &str = "node-restriction.kubernetes.io";
    pub const MANAGED: &str = "node.cluster.x-k8s.io";
}

pub mod secret {
    /// `<cluster>-kubeconfig`.
    pub const KUBECONFIG_SUFFIX: &str = "-kubeconfig";
    /// `<cluster>-ca`.
    pub const CA_SUFFIX: &str = "-ca";
    /// The one key of a kubeconfig or bootstrap Secret.
    pub const VALUE_KEY: &str = "value";
    pub const TYPE: &str = "cluster.x-k8s.io/secret";
}

pub mod machine_phase {
    pub const PENDING: &str = "Pending";
    pub const PROVISIONING: &str = "Provisioning";
    pub const PROVISIONED: &str = "Provisioned";
    pub const RUNNING: &str = "Running";
    pub const UPDATING: &str = "Updating";
    pub const DELETING: &str = "Deleting";
    pub const FAILED: &str = "Failed";
}

pub mod cluster_phase {
    pub const PENDING: &str = "Pending";
    pub const PROVISIONING: &str = "Provisioning";
    pub const PROVISIONED: &str = "Provisioned";
    pub const DELETING: &str = "Deleting";
    pub const FAILED: &str = "Failed";
}

pub mod deployment_phase {
    pub const SCALING_UP: &str = "ScalingUp";
    pub const SCALING_DOWN: &str = "ScalingDown";
    pub const RUNNING: &str = "Running";
    pub const UNKNOWN: &str = "Unknown";
}

pub mod strategy {
    pub const ROLLING_UPDATE: &str = "RollingUpdate";
    pub const ON_DELETE: &str = "OnDelete";
}

pub mod deletion_order {
    pub const RANDOM: &str = "Random";
    pub const NEWEST: &str = "Newest";
    pub const OLDEST: &str = "Oldest";
}

pub mod preflight {
    pub const ALL: &str = "All";
    pub const KUBEADM_VERSION_SKEW: &str = "KubeadmVersionSkew";
    pub const KUBERNETES_VERSION_SKEW: &str = "KubernetesVersionSkew";
    pub const CONTROL_PLANE_IS_STABLE: &str = "ControlPlaneIsStable";
    pub const CONTROL_PLANE_VERSION_SKEW: &str = "ControlPlaneVersionSkew";
}

pub mod condition_type {
    pub const PAUSED: &str = "Paused";
    pub const AVAILABLE: &str = "Available";
    pub const READY: &str = "Ready";
    pub const UP_TO_DATE: &str = "UpToDate";
    pub const BOOTSTRAP_CONFIG_READY: &str = "BootstrapConfigReady";
    pub const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
    pub const NODE_READY: &str = "NodeReady";
    pub const NODE_HEALTHY: &str = "NodeHealthy";
    pub const UPDATING: &str = "Updating";
    pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
    pub const OWNER_REMEDIATED: &str = "OwnerRemediated";
    pub const EXTERNALLY_REMEDIATED: &str = "ExternallyRemediated";
    pub const DELETING: &str = "Deleting";
    pub const SCALING_UP: &str = "ScalingUp";
    pub const SCALING_DOWN: &str = "ScalingDown";
    pub const MACHINES_READY: &str = "MachinesReady";
    pub const MACHINES_UP_TO_DATE: &str = "MachinesUpToDate";
    pub const REMEDIATING: &str = "Remediating";
    pub const ROLLING_OUT: &str = "RollingOut";
    pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
    pub const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";
    pub const CONTROL_PLANE_AVAILABLE: &str = "ControlPlaneAvailable";
    pub const REMOTE_CONNECTION_PROBE: &str = "RemoteConnectionProbe";
    pub const TOPOLOGY_RECONCILED: &str = "TopologyReconciled";
    /// Conditions of the version before, in `status.deprecated.v1beta1`.
    pub const V1BETA1_BOOTSTRAP_READY: &str = "BootstrapReady";
    pub const V1BETA1_MACHINES_CREATED: &str = "MachinesCreated";
    pub const V1BETA1_MACHINE_SET_READY: &str = "MachineSetReady";
    pub const V1BETA1_RESIZED: &str = "Resized";
    pub const V1BETA1_DRAINING_SUCCEEDED: &str = "DrainingSucceeded";
    pub const V1BETA1_PRE_DRAIN_HOOK_SUCCEEDED: &str = "PreDrainDeleteHookSucceeded";
    pub const V1BETA1_VOLUME_DETACH_SUCCEEDED: &str = "VolumeDetachSucceeded";
    pub const V1BETA1_PRE_TERMINATE_HOOK_SUCCEEDED: &str = "PreTerminateDeleteHookSucceeded";
}

pub mod reason {
    pub const INTERNAL_ERROR: &str = "InternalError";
    pub const PAUSED: &str = "Paused";
    pub const NOT_PAUSED: &str = "NotPaused";
    pub const NOT_YET_REPORTED: &str = "NotYetReported";
    pub const NO_REASON_REPORTED: &str = "NoReasonReported";
    pub const INVALID_CONDITION_REPORTED: &str = "InvalidConditionReported";
    pub const OBJECT_DELETED: &str = "ObjectDeleted";
    pub const OBJECT_DOES_NOT_EXIST: &str = "ObjectDoesNotExist";
    pub const CONNECTION_DOWN: &str = "ConnectionDown";
    pub const INSPECTION_FAILED: &str = "InspectionFailed";

    pub const READY: &str = "Ready";
    pub const NOT_READY: &str = "NotReady";
    pub const READY_UNKNOWN: &str = "ReadyUnknown";
    pub const AVAILABLE: &str = "Available";
    pub const NOT_AVAILABLE: &str = "NotAvailable";
    pub const WAITING_FOR_MIN_READY_SECONDS: &str = "WaitingForMinReadySeconds";
    pub const UP_TO_DATE: &str = "UpToDate";
    pub const NOT_UP_TO_DATE: &str = "NotUpToDate";
    pub const UP_TO_DATE_UNKNOWN: &str = "UpToDateUnknown";
    pub const UPDATING: &str = "Updating";
    pub const NOT_UPDATING: &str = "NotUpdating";
    pub const IN_PLACE_UPDATING: &str = "InPlaceUpdating";

    pub const DATA_SECRET_PROVIDED: &str = "DataSecretProvided";
    pub const NODE_READY: &str = "NodeReady";
    pub const NODE_NOT_READY: &str = "NodeNotReady";
    pub const NODE_READY_UNKNOWN: &str = "NodeReadyUnknown";
    pub const NODE_HEALTHY: &str = "NodeHealthy";
    pub const NODE_NOT_HEALTHY: &str = "NodeNotHealthy";
    pub const NODE_HEALTH_UNKNOWN: &str = "NodeHealthyUnknown";
    pub const NODE_DELETED: &str = "NodeDeleted";
    pub const NODE_DOES_NOT_EXIST: &str = "NodeDoesNotExist";

    pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
    pub const UNHEALTHY_NODE: &str = "UnhealthyNode";
    pub const UNHEALTHY_MACHINE: &str = "UnhealthyMachine";
    pub const NODE_STARTUP_TIMEOUT: &str = "NodeStartupTimeout";
    pub const HAS_REMEDIATE_ANNOTATION: &str = "HasRemediateAnnotation";
    pub const WAITING_FOR_REMEDIATION: &str = "WaitingForRemediation";
    pub const REMEDIATION_TEMPLATE_NOT_FOUND: &str = "RemediationTemplateNotFound";
    pub const REMEDIATION_REQUEST_CREATION_FAILED: &str = "RemediationRequestCreationFailed";
    pub const CANNOT_BE_REMEDIATED: &str = "CannotBeRemediated";
    pub const REMEDIATION_DEFERRED: &str = "RemediationDeferred";
    pub const MACHINE_DELETING: &str = "MachineDeleting";
    pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
    pub const TOO_MANY_UNHEALTHY: &str = "TooManyUnhealthy";

    pub const NOT_DELETING: &str = "NotDeleting";
    pub const DELETING: &str = "Deleting";
    pub const WAITING_FOR_PRE_DRAIN_HOOK: &str = "WaitingForPreDrainHook";
    pub const DRAINING_NODE: &str = "DrainingNode";
    pub const WAITING_FOR_VOLUME_DETACH: &str = "WaitingForVolumeDetach";
    pub const WAITING_FOR_PRE_TERMINATE_HOOK: &str = "WaitingForPreTerminateHook";
    pub const WAITING_FOR_INFRASTRUCTURE_DELETION: &str = "WaitingForInfrastructureDeletion";
    pub const WAITING_FOR_BOOTSTRAP_DELETION: &str = "WaitingForBootstrapDeletion";
    pub const DELETING_NODE: &str = "DeletingNode";
    pub const DELETION_COMPLETED: &str = "DeletionCompleted";

    pub const SCALING_UP: &str = "ScalingUp";
    pub const NOT_SCALING_UP: &str = "NotScalingUp";
    pub const SCALING_DOWN: &str = "ScalingDown";
    pub const NOT_SCALING_DOWN: &str = "NotScalingDown";
    pub const WAITING_FOR_REPLICAS_SET: &str = "WaitingForReplicasSet";
    pub const WAITING_FOR_AVAILABLE_REPLICAS_SET: &str = "WaitingForAvailableReplicasSet";
    pub const NO_REPLICAS: &str = "NoReplicas";
    pub const REMEDIATING: &str = "Remediating";
    pub const NOT_REMEDIATING: &str = "NotRemediating";
    pub const ROLLING_OUT: &str = "RollingOut";
    pub const NOT_ROLLING_OUT: &str = "NotRollingOut";

    pub const PROBE_FAILED: &str = "ProbeFailed";
    pub const PROBE_SUCCEEDED: &str = "ProbeSucceeded";
    pub const INITIALIZED: &str = "Initialized";
    pub const NOT_INITIALIZED: &str = "NotInitialized";
    /// Ours: what somebody wants has no controller here.
    pub const NOT_CARRIED_OUT: &str = "NotCarriedOut";
}

pub mod event {
    pub const SUCCESSFUL_CREATE: &str = "SuccessfulCreate";
    pub const FAILED_CREATE: &str = "FailedCreate";
    pub const SUCCESSFUL_DELETE: &str = "SuccessfulDelete";
    pub const FAILED_DELETE: &str = "FailedDelete";
    pub const SUCCESSFUL_ADOPT: &str = "SuccessfulAdopt";
    pub const FAILED_ADOPT: &str = "FailedAdopt";
    pub const SUCCESSFUL_SCALE: &str = "SuccessfulScale";
    pub const FAILED_SCALE: &str = "FailedScale";
    pub const SUCCESSFUL_SET_NODE_REF: &str = "SuccessfulSetNodeRef";
    pub const SUCCESSFUL_DRAIN_NODE: &str = "SuccessfulDrainNode";
    pub const FAILED_DRAIN_NODE: &str = "FailedDrainNode";
    pub const NODE_VOLUMES_DETACHED: &str = "NodeVolumesDetached";
    pub const FAILED_WAIT_FOR_VOLUME_DETACH: &str = "FailedWaitForVolumeDetach";
    pub const FAILED_DELETE_NODE: &str = "FailedDeleteNode";
    pub const MACHINE_MARKED_UNHEALTHY: &str = "MachineMarkedUnhealthy";
    pub const REMEDIATION_RESTRICTED: &str = "RemediationRestricted";
}

pub mod lease {
    /// The lease of Cluster API's own core manager. While it is held, we do not act on this API.
    pub const CORE: &str = "controller-leader-election-capi";
    pub const CORE_NAMESPACE: &str = "capi-system";
}
