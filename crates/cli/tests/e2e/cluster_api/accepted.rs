//! Which differences to Cluster API's own manager are meant? docs/compatibility.md lists those that a user sees.

/// A place at which the two may differ.
pub struct Accepted {
    /// The kind, or `*` for every one.
    pub kind: &'static str,
    pub path: Path,
    /// Why.
    #[expect(dead_code, reason = "for those who read the table")]
    pub reason: &'static str,
}

/// Which paths of an object are meant.
pub enum Path {
    Is(&'static str),
    StartsWith(&'static str),
    EndsWith(&'static str),
}

impl Path {
    pub fn is_match(&self, path: &str) -> bool {
        match self {
            Self::Is(whole) => path == *whole,
            Self::StartsWith(beginning) => path.starts_with(beginning),
            Self::EndsWith(end) => path.ends_with(end),
        }
    }
}

const SUMS: &str = "nothing of a Machine reads what sums up a Cluster's workers and control plane";
const DEPRECATED: &str = "the deprecated status of Clusters is left as it is";
const ERRORS: &str = "the error itself, where the original names its log";
const TWINS: &str = "the first of two Machines with one providerID has the Node; the other says so";

const COUNTED: &str = "what a MachineDeployment has is counted also while its template is missing, and the message names the template";

const REMEMBERED: &str = "what was handed down to Machines is remembered here, so that what is taken out of a template is taken off them; the original asks who manages each field";
const LEFT_BEHIND: &str =
    "the original leaves it behind where its last pass changed the Machine itself";
const OF_THE_PROVIDER: &str = "the provider writes it, when it next looks at its own object";

const fn accepted(kind: &'static str, path: Path, reason: &'static str) -> Accepted {
    Accepted { kind, path, reason }
}

pub const ACCEPTED: &[Accepted] = &[
    accepted("Cluster", Path::StartsWith(".status.conditions[Available]"), SUMS),
    accepted("Cluster", Path::StartsWith(".status.conditions[ControlPlaneAvailable]"), SUMS),
    accepted("Cluster", Path::StartsWith(".status.conditions[WorkersAvailable]"), SUMS),
    accepted("Cluster", Path::StartsWith(".status.conditions[RollingOut]"), SUMS),
    accepted("Cluster", Path::StartsWith(".status.conditions[Remediating]"), SUMS),
    accepted("Cluster", Path::StartsWith(".status.conditions[ScalingDown]"), SUMS),
    accepted("Cluster", Path::StartsWith(".status.conditions[ScalingUp]"), SUMS),
    accepted("Cluster", Path::StartsWith(".status.conditions[ControlPlaneMachinesReady]"), SUMS),
    accepted("Cluster", Path::StartsWith(".status.conditions[WorkerMachinesReady]"), SUMS),
    accepted("Cluster", Path::StartsWith(".status.conditions[ControlPlaneMachinesUpToDate]"), SUMS),
    accepted("Cluster", Path::StartsWith(".status.conditions[WorkerMachinesUpToDate]"), SUMS),
    accepted("Cluster", Path::StartsWith(".status.controlPlane."), SUMS),
    accepted("Cluster", Path::StartsWith(".status.workers."), SUMS),
    accepted("Cluster", Path::StartsWith(".status.deprecated."), DEPRECATED),
    accepted(
        "Machine unlabelled",
        Path::Is(".status.conditions[InfrastructureReady].message"),
        ERRORS,
    ),
    accepted("Machine unlabelled", Path::Is(".status.conditions[Ready].message"), ERRORS),
    accepted("MachineDeployment no-template", Path::StartsWith(".status."), COUNTED),
    accepted("MachineSet", Path::Is(".metadata.annotations.machinist.dev/propagated"), REMEMBERED),
    accepted("Machine", Path::Is(".status.observedGeneration"), LEFT_BEHIND),
    accepted("DevMachine", Path::EndsWith(".observedGeneration"), OF_THE_PROVIDER),
    accepted("Machine twin-b", Path::StartsWith(".status."), TWINS),
];
