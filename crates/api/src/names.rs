//! Every name on the wire, in one place. They are a contract with existing manifests, alerts and
//! scripts: changing one is a breaking change.

/// The namespace that machine objects live in by default.
pub const DEFAULT_NAMESPACE: &str = "openshift-machine-api";

/// The namespace that the original kept its MachineMaintenance objects in.
pub const MAINTENANCE_NAMESPACE: &str = "machine-maintenance-operator";

/// The name of the MachineMaintenance of a Machine, as the original gave it.
pub fn maintenance_of(machine: &str) -> String {
    // A Machine of Cluster API is named with its namespace.
    format!("mm-{}", machine.replace('/', "."))
}

/// Finalizers.
pub mod finalizer {
    /// Held on a MachineMaintenance while something that it began is not finished or undone.
    pub const MAINTENANCE: &str = "machinist.dev/maintenance";
    /// Held on a Machine while anything of it may exist in the cloud.
    pub const MACHINE: &str = "machine.machine.openshift.io";
}

/// Labels.
pub mod label {
    /// The cluster id; required on every Machine.
    pub const CLUSTER: &str = "machine.openshift.io/cluster-api-cluster";
    /// The legacy cluster id, read where the other is absent.
    pub const CLUSTER_LEGACY: &str = "sigs.k8s.io/cluster-api-cluster";
    /// The role of a Machine, such as `worker` or `master`.
    pub const MACHINE_ROLE: &str = "machine.openshift.io/cluster-api-machine-role";
    /// The type of a Machine; mostly the same as its role.
    pub const MACHINE_TYPE: &str = "machine.openshift.io/cluster-api-machine-type";
    /// The MachineSet that a Machine belongs to.
    pub const MACHINE_SET: &str = "machine.openshift.io/cluster-api-machineset";
    /// The region of a Machine's instance.
    pub const REGION: &str = "machine.openshift.io/region";
    /// The zone of a Machine's instance.
    pub const ZONE: &str = "machine.openshift.io/zone";
    /// The type of a Machine's instance.
    pub const INSTANCE_TYPE: &str = "machine.openshift.io/instance-type";
    /// Present, with an empty value, on spot machines.
    pub const INTERRUPTIBLE: &str = "machine.openshift.io/interruptible-instance";
    /// On a Node of the control plane.
    pub const NODE_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
    /// The older spelling of the same.
    pub const NODE_MASTER: &str = "node-role.kubernetes.io/master";
    /// On a Node: `amd64` or `arm64`.
    pub const ARCHITECTURE: &str = "kubernetes.io/arch";
}

/// Annotations.
pub mod annotation {
    /// The cloud's own word for the instance's state; `Unknown` when the Machine is Failed.
    pub const INSTANCE_STATE: &str = "machine.openshift.io/instance-state";
    /// Presence skips the drain.
    pub const EXCLUDE_NODE_DRAINING: &str = "machine.openshift.io/exclude-node-draining";
    /// A value marks the Machine as first to go at scale-down.
    pub const DELETE_MACHINE: &str = "machine.openshift.io/delete-machine";
    /// The autoscaler's spelling of the same.
    pub const CLUSTER_API_DELETE_MACHINE: &str = "machine.openshift.io/cluster-api-delete-machine";
    /// On a Node: `<namespace>/<name>` of its Machine.
    pub const MACHINE: &str = "machine.openshift.io/machine";
    /// On a MachineSet: what one Machine of it has, so that an autoscaler can grow it from zero.
    pub const VCPU: &str = "machine.openshift.io/vCPU";
    /// The same, for the memory in MiB.
    pub const MEMORY_MB: &str = "machine.openshift.io/memoryMb";
    /// The same, for the number of GPUs.
    pub const GPU: &str = "machine.openshift.io/GPU";
    /// On a MachineSet: labels that its Nodes will have, `key=value` with commas between.
    pub const CAPACITY_LABELS: &str = "capacity.cluster-autoscaler.kubernetes.io/labels";
    /// On a Machine: exempts it from every action of our own choice; the value says why.
    pub const HOLD: &str = "machinist.dev/hold";
    /// On a Machine or its pool: what follows when its instance was stopped.
    pub const ON_STOPPED: &str = "machinist.dev/on-stopped";
    /// On a Machine or its pool: what follows when its instance was terminated.
    pub const ON_TERMINATED: &str = "machinist.dev/on-terminated";
    /// On a Machine or its pool: how long a stopped instance is left alone, such as `5m`.
    pub const STOPPED_GRACE_PERIOD: &str = "machinist.dev/stopped-grace-period";
    /// On a pool: how many of its machines may be out of work by our own choice at once, as a
    /// number or a share such as `40%`.
    pub const MAX_DISRUPTED: &str = "machinist.dev/max-disrupted";
    /// On a Machine or its pool: until this time our own choices need no permit of the gate.
    pub const APPROVED_UNTIL: &str = "machinist.dev/approved-until";
    /// On a Machine: a person asks for maintenance. The value is an action (`Reboot`,
    /// `RebootMigrate`, `StopStart`, `Replace`) or empty, and may go on with `: why`.
    pub const MAINTENANCE_REQUESTED: &str = "machinist.dev/maintenance-requested";
    /// On a MachineMaintenance: a person approves it. The value is `true`, or the id of a reason,
    /// and then holds only while that is one of its reasons.
    pub const MAINTENANCE_APPROVED: &str = "machinist.dev/maintenance-approved";
    /// On a MachineMaintenance: a person puts it off; the value is the time until which it does not
    /// begin.
    pub const MAINTENANCE_POSTPONED: &str = "machinist.dev/maintenance-postponed-until";
    /// On a Machine, a pool or the namespace of the Machines (which means the whole cluster):
    /// presence keeps maintenance from beginning; the value says why.
    pub const MAINTENANCE_PAUSED: &str = "machinist.dev/maintenance-paused";
    /// On a MachineMaintenance: we made it; without it a person did, who asks for it thereby.
    pub const MAINTENANCE_OURS: &str = "machinist.dev/created-for-event";
    /// On a MachineSet: for which maintenances it has a machine above its size, and which size we
    /// last gave it, as `size=4;for=<uid>,<uid>`. Written together with the size.
    pub const SURGE: &str = "machinist.dev/surge";
    /// On no object, but on a pool of Cluster API as it is planned: how many machines its own strategy allows above its
    /// size.
    pub const OWNER_SURGE: &str = "machinist.dev/owner-surge";
    /// On no object, but on a Machine of Cluster API as it is planned: why Cluster API lets nothing happen to it.
    pub const STANDSTILL: &str = "machinist.dev/standstill";
    /// On a Node that we cordoned for a maintenance: the uid of that. Written with the cordon.
    pub const CORDONED_FOR: &str = "machinist.dev/cordoned-for";
    /// On a Node that the autoscaler must leave alone for a maintenance: the uid of that. Written
    /// with `SCALE_DOWN_DISABLED`.
    pub const PROTECTED_FOR: &str = "machinist.dev/protected-for";
    /// On a Machine that is the copy of another: the uid of the maintenance it was made for.
    pub const REPLACES_FOR: &str = "machinist.dev/replaces-for";
    /// On a pod: `true` keeps maintenance from beginning on its Node, up to the latest safe start.
    pub const DO_NOT_DISRUPT: &str = "machinist.dev/do-not-disrupt";
    /// The same of another project, which means the same.
    pub const KARPENTER_DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
    /// On a Node: the autoscaler leaves it alone while this is `true`.
    pub const SCALE_DOWN_DISABLED: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
    /// On a MachineSet: the largest size that the autoscaler gives it.
    pub const AUTOSCALER_MAX_SIZE: &str =
        "machine.openshift.io/cluster-api-autoscaler-node-group-max-size";
    /// On a MachineHealthCheck: presence, with any value, stops it.
    pub const PAUSED: &str = "cluster.x-k8s.io/paused";
    /// On a MachineHealthCheck: who repairs its machines.
    pub const REMEDIATION_STRATEGY: &str = "machine.openshift.io/remediation-strategy";
    /// The one strategy there is: the machine is marked, and the bare-metal operator repairs it.
    pub const REMEDIATION_STRATEGY_EXTERNAL_BAREMETAL: &str = "external-baremetal";
    /// On a Machine: the bare-metal operator is to repair it.
    pub const EXTERNAL_REMEDIATION: &str = "host.metal3.io/external-remediation";
    /// On a request for remediation: which template it was made from.
    pub const CLONED_FROM_NAME: &str = "machine.openshift.io/cloned-from-name";
    /// On a request for remediation: the kind and group of that template.
    pub const CLONED_FROM_GROUP_KIND: &str = "machine.openshift.io/cloned-from-groupkind";
    /// On a Machine: the one signing request through which it may become a Node, and the key in it, as
    /// `machine-uid/request-uid/fingerprint`. Stored before that request is approved.
    pub const CLIENT_CERTIFICATE_REQUEST: &str = "machinist.dev/client-certificate-request";
    /// On the Deployment of the controllers before us: we scaled it to 0. Its value is the uid of the
    /// Deployment, so that no copy of it counts.
    pub const TAKEN_OVER: &str = "machinist.dev/taken-over";
    /// On a Secret: its certificate was made by us, and is ours to replace.
    pub const SELF_SIGNED: &str = "machinist.dev/self-signed";
    /// On a Node: the machine configuration that it runs, and the one that it is to run.
    pub const CURRENT_MACHINE_CONFIG: &str = "machineconfiguration.openshift.io/currentConfig";
    /// On a Node: the machine configuration that it is to run.
    pub const DESIRED_MACHINE_CONFIG: &str = "machineconfiguration.openshift.io/desiredConfig";
    /// On a Node: what the metadata service of its machine says of scheduled events, as JSON by the
    /// event's id. Absent when there are none.
    pub const SCHEDULED_EVENTS: &str = "machinist.dev/scheduled-events";
    /// On a workload that the operator keeps.
    pub const OWNED: &str = "machine.openshift.io/owned";
    /// Under which of OpenShift's security contexts pods run.
    pub const REQUIRED_SCC: &str = "openshift.io/required-scc";
}

/// Taints.
pub mod taint {
    /// On a Node whose machine is certainly off: its pods go at once, and their volumes with them.
    pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
    /// The value of that taint.
    pub const OUT_OF_SERVICE_VALUE: &str = "nodeshutdown";
}

/// Phases of a Machine.
pub mod phase {
    /// Its instance is being made.
    pub const PROVISIONING: &str = "Provisioning";
    /// Its instance runs; its Node has not joined yet.
    pub const PROVISIONED: &str = "Provisioned";
    /// It has its Node.
    pub const RUNNING: &str = "Running";
    /// It is being drained, then terminated.
    pub const DELETING: &str = "Deleting";
    /// It will not become anything without somebody: its spec is wrong, or its instance is gone.
    pub const FAILED: &str = "Failed";
}

/// Condition types.
pub mod condition_type {
    /// On a Machine: False while a hook keeps it from being drained.
    pub const DRAINABLE: &str = "Drainable";
    /// On a Machine that is being deleted: whether its Node is empty.
    pub const DRAINED: &str = "Drained";
    /// On a Machine: whether its instance exists.
    pub const INSTANCE_EXISTS: &str = "InstanceExists";
    /// Whether the provider's own checks of the instance pass.
    pub const INSTANCE_HEALTHY: &str = "InstanceHealthy";
    /// Whether the instance runs; False with the cause when it was stopped or terminated.
    pub const INSTANCE_RUNNING: &str = "InstanceRunning";
    /// Whether the instance is registered with the load balancers of its providerSpec.
    pub const LOAD_BALANCERS_ATTACHED: &str = "LoadBalancersAttached";
    /// On a Machine or MachineSet: True while another API owns it.
    pub const PAUSED: &str = "Paused";
    /// On a Machine: False while a hook keeps its instance from being terminated.
    pub const TERMINABLE: &str = "Terminable";
    /// On a MachineHealthCheck: False while nothing may be remediated.
    pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
    /// On a MachineHealthCheck: False while its template cannot be used.
    pub const EXTERNAL_TEMPLATE_AVAILABLE: &str = "ExternalRemediationTemplateAvailable";
    /// On a MachineHealthCheck: False while requests cannot be made from its template.
    pub const EXTERNAL_REQUEST_AVAILABLE: &str = "ExternalRemediationRequestAvailable";
    /// On a Node: True when the provider takes the instance back.
    pub const NODE_TERMINATING: &str = "Terminating";
    /// On a Node: True when the provider is about to stop or hibernate the spot instance, which
    /// comes back later as the same Node.
    pub const NODE_STOPPING: &str = "machinist.dev/Stopping";
    /// On a Node: True when the provider recommends to leave the spot instance.
    pub const NODE_REBALANCE_RECOMMENDED: &str = "machinist.dev/RebalanceRecommended";
    /// On a MachineSet: False with the reason when it cannot create or delete Machines (D24).
    pub const SCALING: &str = "Scaling";
    /// On a MachineMaintenance or MaintenancePolicy: False where it cannot be used; names the field.
    pub const VALID: &str = "Valid";
    /// On a MachineMaintenance: True with the time; False with what keeps it from having one.
    pub const SCHEDULED: &str = "Scheduled";
    /// On a MachineMaintenance: False when it will not be over before its deadline.
    pub const ON_TIME: &str = "OnTime";
    /// On a MachineMaintenance: False when the machine is not well afterwards.
    pub const VERIFIED: &str = "Verified";
    /// On a MaintenancePolicy: True where another policy of the same machines comes first.
    pub const OVERRULED: &str = "Overruled";
    /// Inside AWSMachineProviderStatus, in `meta/v1` shape.
    pub const MACHINE_CREATION: &str = "MachineCreation";
}

/// Condition reasons.
pub mod reason {
    /// The cloud could not be asked.
    pub const ERROR_CHECKING_PROVIDER: &str = "ErrorCheckingProvider";
    /// The cloud does not have the instance.
    pub const INSTANCE_MISSING: &str = "InstanceMissing";
    /// The instance has not been made yet.
    pub const INSTANCE_NOT_CREATED: &str = "InstanceNotCreated";
    /// A lifecycle hook is there.
    pub const HOOK_PRESENT: &str = "HookPresent";
    /// A pod may not be evicted.
    pub const DRAIN_ERROR: &str = "DrainError";
    /// The Node is being drained.
    pub const DRAINING: &str = "Draining";
    /// Another API owns the object.
    pub const AUTHORITATIVE_API_NOT_MACHINE_API: &str = "AuthoritativeAPINotMachineAPI";
    /// The Machine API owns the object.
    pub const AUTHORITATIVE_API_MACHINE_API: &str = "AuthoritativeAPIMachineAPI";
    /// The launch succeeded.
    pub const MACHINE_CREATION_SUCCEEDED: &str = "MachineCreationSucceeded";
    /// The launch failed.
    pub const MACHINE_CREATION_FAILED: &str = "MachineCreationFailed";
    /// Too many machines of a MachineHealthCheck are unhealthy to remediate any.
    pub const TOO_MANY_UNHEALTHY: &str = "TooManyUnhealthy";
    /// The template of a MachineHealthCheck does not exist or cannot be used.
    pub const EXTERNAL_TEMPLATE_NOT_FOUND: &str = "ExternalRemediationTemplateNotFound";
    /// A request could not be made from that template.
    pub const EXTERNAL_REQUEST_CREATION_FAILED: &str = "ExternalRemediationRequestCreationFailed";
    /// The object itself is wrong; the message names the field.
    pub const INVALID_CONFIGURATION: &str = "InvalidConfiguration";
    /// The cloud has no room for the instance now.
    pub const INSUFFICIENT_CAPACITY: &str = "InsufficientCapacity";
    /// The account may not have more.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// The credentials are wrong or lack a permission.
    pub const UNAUTHORIZED: &str = "Unauthorized";
    /// Calls come faster than the cloud takes them.
    pub const THROTTLED: &str = "Throttled";
    /// The cloud answered with another error.
    pub const PROVIDER_ERROR: &str = "ProviderError";
    /// The API server refused to make Machines.
    pub const CREATING_FAILED: &str = "CreatingMachinesFailed";
    /// The API server refused to delete Machines.
    pub const DELETING_FAILED: &str = "DeletingMachinesFailed";
    /// A MachineSet asks for more Machines than one may have.
    pub const TOO_MANY_MACHINES: &str = "TooManyMachines";
    /// There are as many Machines as there may be.
    pub const CEILING_REACHED: &str = "CeilingReached";
    /// All is as it should be.
    pub const AS_DESIRED: &str = "AsDesired";
    /// The instance was started and is not up yet.
    pub const INSTANCE_STARTING: &str = "InstanceStarting";
    /// The provider's checks could not be asked for.
    pub const HEALTH_UNKNOWN: &str = "HealthUnknown";
    /// The disruption gate holds an action of our own choice.
    pub const DISRUPTION_HELD: &str = "DisruptionHeld";
    /// The instance could not be registered with its load balancers.
    pub const ATTACHING_FAILED: &str = "AttachingFailed";
    /// The instance left its load balancers, to be terminated.
    pub const DETACHED: &str = "Detached";
    /// The provider refused to terminate the instance.
    pub const TERMINATION_FAILED: &str = "TerminationFailed";
    /// The host that was allocated for the Machine could not be given back.
    pub const HOST_NOT_RELEASED: &str = "HostNotReleased";
    /// OpenShift's own approver of certificates is at work.
    pub const ANOTHER_APPROVER: &str = "AnotherApproverRuns";
    /// We terminate the instance ourselves.
    pub const TERMINATING: &str = "Terminating";
    /// On a Node: the provider takes its spot instance back.
    pub const TERMINATION_REQUESTED: &str = "TerminationRequested";
    /// On a Node: the provider will stop its spot instance.
    pub const STOP_REQUESTED: &str = "StopRequested";
    /// On a Node: the provider will hibernate its spot instance.
    pub const HIBERNATION_REQUESTED: &str = "HibernationRequested";
    /// On a Node: the provider asks for nothing.
    pub const NOT_REQUESTED: &str = "NotRequested";
    /// On a Node: the provider recommends to leave its spot instance.
    pub const REBALANCE_RECOMMENDED: &str = "RebalanceRecommended";
    /// On a Node: the provider recommends nothing.
    pub const NOT_RECOMMENDED: &str = "NotRecommended";
}

/// What a maintenance waits on: reasons of its conditions, labels of its metrics, words of its plan.
pub mod maintenance_reason {
    /// The whole cluster, the policy, the pool or the machine is paused.
    pub const PAUSED: &str = "Paused";
    /// A person exempts the machine from every action of our own choice.
    pub const ON_HOLD: &str = "OnHold";
    /// The cluster is being upgraded.
    pub const UPGRADE_UNDER_WAY: &str = "UpgradeUnderWay";
    /// A person must approve it.
    pub const APPROVAL_MISSING: &str = "ApprovalMissing";
    /// The policy only reports on the control plane.
    pub const CONTROL_PLANE_REPORT_ONLY: &str = "ControlPlaneReportOnly";
    /// Another member of the control plane is not well.
    pub const CONTROL_PLANE_NOT_READY: &str = "ControlPlaneNotReady";
    /// No window is open.
    pub const OUTSIDE_WINDOW: &str = "OutsideWindow";
    /// A freeze forbids it.
    pub const FROZEN: &str = "Frozen";
    /// The work would not be over before the window closes.
    pub const WINDOW_TOO_SHORT: &str = "WindowTooShort";
    /// No window lies before the deadline.
    pub const NO_WINDOW_IN_TIME: &str = "NoWindowInTime";
    /// No window lies within the time that is looked at.
    pub const NO_WINDOW: &str = "NoWindow";
    /// As many machines are out of work as the budgets allow.
    pub const BUDGET_EXHAUSTED: &str = "BudgetExhausted";
    /// It is not to begin before a certain time.
    pub const NOT_YET: &str = "NotYet";
    /// Pods on the Node are not to be disrupted.
    pub const DO_NOT_DISRUPT: &str = "DoNotDisrupt";
    /// A disruption budget can never be met.
    pub const DRAIN_IMPOSSIBLE: &str = "DrainImpossible";
    /// Nothing would help, or the policy wants nothing.
    pub const NO_ACTION: &str = "NoAction";
    /// The policy leaves it to the provider.
    pub const LEFT_TO_PROVIDER: &str = "LeftToProvider";
    /// The provider is asked to move its event.
    pub const MOVING_EVENT: &str = "MovingEvent";
    /// The policy of the machine cannot be used.
    pub const POLICY_INVALID: &str = "PolicyInvalid";
    /// There is no such Machine.
    pub const MACHINE_NOT_FOUND: &str = "MachineNotFound";
    /// The provider does not show the reason now.
    pub const REASON_DOUBTFUL: &str = "ReasonDoubtful";
    /// The cloud could not be asked.
    pub const CLOUD_UNKNOWN: &str = "CloudUnknown";
    /// The additional machine, or another one, is not ready.
    pub const SURGE_NOT_READY: &str = "SurgeNotReady";
    /// The autoscaler's limit leaves no room for an additional machine.
    pub const SURGE_NOT_ALLOWED: &str = "SurgeNotAllowed";
    /// The Node is being drained.
    pub const DRAINING: &str = "Draining";
    /// A pod may not be evicted.
    pub const DRAIN_BLOCKED: &str = "DrainBlocked";
    /// The old machine is on its way out.
    pub const MACHINE_GOING: &str = "MachineGoing";
    /// The instance does not run, or not yet.
    pub const INSTANCE_NOT_RUNNING: &str = "InstanceNotRunning";
    /// The Node is not Ready.
    pub const NODE_NOT_READY: &str = "NodeNotReady";
    /// The Node shows no boot yet.
    pub const NODE_NOT_REBOOTED: &str = "NodeNotRebooted";
    /// The provider still announces its event.
    pub const EVENT_STILL_PRESENT: &str = "EventStillPresent";
    /// Workloads have fewer ready pods than they want.
    pub const WORKLOADS_NOT_BACK: &str = "WorkloadsNotBack";
    /// The last attempt failed.
    pub const RETRY_LATER: &str = "RetryLater";
    /// The disruption gate does not permit it.
    pub const GATE_HOLDS: &str = "DisruptionHeld";
    /// The API server or the cloud refused what was to be done.
    pub const STEP_FAILED: &str = "StepFailed";
}

/// `status.errorReason` values.
pub mod error_reason {
    /// The spec is wrong.
    pub const INVALID_CONFIGURATION: &str = "InvalidConfiguration";
    /// The instance could not be made.
    pub const CREATE_ERROR: &str = "CreateError";
    /// The instance is gone, or could not be changed.
    pub const UPDATE_ERROR: &str = "UpdateError";
    /// The instance could not be terminated.
    pub const DELETE_ERROR: &str = "DeleteError";
    /// The cloud has not enough.
    pub const INSUFFICIENT_RESOURCES: &str = "InsufficientResources";
    /// A change that cannot be made to what exists.
    pub const UNSUPPORTED_CHANGE: &str = "UnsupportedChange";
    /// Its Node did not join in time.
    pub const JOIN_CLUSTER_TIMEOUT: &str = "JoinClusterTimeoutError";
    /// An address that was claimed for it is not valid.
    pub const IP_ADDRESS_INVALID: &str = "IPAddressInvalid";
}

/// Event reasons.
pub mod event {
    /// On a Machine: its instance was launched.
    pub const CREATE: &str = "Create";
    /// On a Machine: its instance is up again, or there after all.
    pub const UPDATE: &str = "Update";
    /// On a Machine: it is gone, with its instance.
    pub const DELETE: &str = "Delete";
    /// On a Machine or MachineSet: a launch, or making a Machine, failed.
    pub const FAILED_CREATE: &str = "FailedCreate";
    /// On a Machine or MachineSet: its instance could not be looked at or changed.
    pub const FAILED_UPDATE: &str = "FailedUpdate";
    /// On a Machine or MachineSet: a termination, or deleting a Machine, failed.
    pub const FAILED_DELETE: &str = "FailedDelete";
    /// The object is wrong; the message names the field.
    pub const FAILED_VALIDATE: &str = "FailedValidate";
    /// On a Machine: its Node is not drained, and why.
    pub const DRAIN_SKIPPED: &str = "DrainSkipped";
    /// On a Machine: a hook keeps its Node from being drained.
    pub const DRAIN_BLOCKED: &str = "DrainBlocked";
    /// On a Machine: the drain of its Node goes on.
    pub const DRAIN_PROCEEDS: &str = "DrainProceeds";
    /// On a Machine: a pod may not be evicted now; it is tried again.
    pub const DRAIN_REQUEUED: &str = "DrainRequeued";
    /// On a Machine: its Node is empty.
    pub const DRAIN_SUCCEEDED: &str = "DrainSucceeded";
    /// On a Machine: its Node was drained, in the words that the Machine API always used.
    pub const DELETED: &str = "Deleted";
    /// On a MachineSet or MachineHealthCheck: it is wrong; the message names the field.
    pub const RECONCILE_ERROR: &str = "ReconcileError";
    /// On a MachineSet: it made a Machine.
    pub const SUCCESSFUL_CREATE: &str = "SuccessfulCreate";
    /// On a MachineSet: it deleted a Machine.
    pub const SUCCESSFUL_DELETE: &str = "SuccessfulDelete";
    /// A stopped instance is started again.
    pub const STARTING_INSTANCE: &str = "StartingInstance";
    /// A stopped instance could not be started.
    pub const FAILED_START: &str = "FailedStart";
    /// A Machine is deleted so that its pool makes another.
    pub const REPLACING: &str = "Replacing";
    /// The disruption gate holds an action of our own choice.
    pub const DISRUPTION_HELD: &str = "DisruptionHeld";
    /// On a Machine: the provider's checks of its instance pass again.
    pub const INSTANCE_HEALTHY: &str = "InstanceHealthy";
    /// On a Machine: its instance is registered with its load balancers.
    pub const ATTACHED: &str = "LoadBalancersAttached";
    /// On a Machine: its instance could not be registered with them.
    pub const FAILED_ATTACH: &str = "FailedAttach";
    /// On a Machine: a condition of its Node is bad and has not lasted long enough yet.
    pub const DETECTED_UNHEALTHY: &str = "DetectedUnhealthy";
    /// On a MachineHealthCheck: too many machines are unhealthy to remediate any.
    pub const REMEDIATION_RESTRICTED: &str = "RemediationRestricted";
    /// On a Machine: the bare-metal operator was asked to repair it.
    pub const EXTERNAL_ANNOTATION_ADDED: &str = "ExternalAnnotationAdded";
    /// On a Machine: that could not be asked.
    pub const EXTERNAL_ANNOTATION_FAILED: &str = "ExternalAnnotationFailed";
    /// On a Machine: it is unhealthy, but nothing would make another.
    pub const SKIPPED_NO_CONTROLLER: &str = "SkippedNoController";
    /// On a Machine: its MachineHealthCheck deleted it.
    pub const MACHINE_DELETED: &str = "MachineDeleted";
    /// On a Machine: its MachineHealthCheck could not delete it.
    pub const MACHINE_DELETION_FAILED: &str = "MachineDeletionFailed";
    /// On a signing request: it is not approved, and the message says why.
    pub const REQUEST_NOT_APPROVED: &str = "NodeCSRNotApproved";
    /// An object that the operator keeps was missing or changed, and is as it should be again.
    pub const RESTORED: &str = "Restored";
    /// The controllers before us were scaled to 0.
    pub const TAKEN_OVER: &str = "TakenOver";
    /// On a MachineMaintenance and its Machine: it has a time, or another one.
    pub const MAINTENANCE_SCHEDULED: &str = "MaintenanceScheduled";
    /// On the same: it will not be over before its deadline.
    pub const MAINTENANCE_LATE: &str = "MaintenanceLate";
    /// On the same: work has begun.
    pub const MAINTENANCE_STARTED: &str = "MaintenanceStarted";
    /// On the same: what is done next.
    pub const MAINTENANCE_STEP: &str = "MaintenanceStep";
    /// On the same: what was done did not help; what heals more is next.
    pub const MAINTENANCE_ESCALATED: &str = "MaintenanceEscalated";
    /// On the same: it is done, and everything is well.
    pub const MAINTENANCE_SUCCEEDED: &str = "MaintenanceSucceeded";
    /// On the same: it failed, and what was begun is undone.
    pub const MAINTENANCE_FAILED: &str = "MaintenanceFailed";
    /// On the same: it was called off.
    pub const MAINTENANCE_CANCELLED: &str = "MaintenanceCancelled";
    /// On the same: the provider is asked to move its event.
    pub const MAINTENANCE_EVENT_MOVED: &str = "MaintenanceEventMoved";
    /// The provider will take a spot instance back.
    pub const SPOT_NOTICE: &str = "SpotInterruptionNotice";
}

/// Node certificates.
pub mod certificate {
    pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
    pub const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";
    /// What a node is called as a user: this, then its name.
    pub const NODE_USER_PREFIX: &str = "system:node:";
    pub const NODES_GROUP: &str = "system:nodes";
    pub const AUTHENTICATED_GROUP: &str = "system:authenticated";
    /// The reason and the beginning of the message of an approval.
    pub const APPROVED_REASON: &str = "NodeCSRApprove";
    pub const APPROVED_MESSAGE: &str = "This CSR was approved by the Node CSR Approver";
}

/// Leader-election leases. One process holds them all, so that an old controller and ours never
/// run together.
pub mod lease {
    pub const OPERATOR: &str = "machine-api-operator";
    pub const MACHINE_SET: &str = "cluster-api-provider-machineset-leader";
    pub const NODE_LINK: &str = "cluster-api-provider-nodelink-leader";
    pub const HEALTH_CHECK: &str = "cluster-api-provider-healthcheck-leader";
    pub const AWS: &str = "cluster-api-provider-aws-leader";
    pub const ALL: [&str; 5] = [OPERATOR, MACHINE_SET, NODE_LINK, HEALTH_CHECK, AWS];
}

/// Tags on cloud instances.
pub mod tag {
    /// `kubernetes.io/cluster/<cluster id>` = `owned`.
    pub const CLUSTER_PREFIX: &str = "kubernetes.io/cluster/";
    /// The value of the cluster's tag.
    pub const OWNED: &str = "owned";
    /// The name of an instance: that of its Machine.
    pub const NAME: &str = "Name";
    /// The Machine's uid: what ties an instance to one Machine for ever.
    pub const MACHINE_UID: &str = "machinist.dev/machine-uid";

    pub fn cluster(cluster_id: &str) -> String {
        format!("{CLUSTER_PREFIX}{cluster_id}")
    }
}

/// Keys in secrets.
pub mod secret_key {
    pub const USER_DATA: &str = "userData";
    pub const AWS_ACCESS_KEY_ID: &str = "aws_access_key_id";
    pub const AWS_SECRET_ACCESS_KEY: &str = "aws_secret_access_key";
    /// A shared-config INI file.
    pub const AWS_CREDENTIALS: &str = "credentials";
}
