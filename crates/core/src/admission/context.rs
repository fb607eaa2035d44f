//! What the rules must know of the cluster. On OpenShift it is read from `Infrastructure`; on plain
//! Kubernetes it comes from flags, or is absent, and then nothing is filled in from it.

use machinist_api::openshift_config::InfrastructureStatus;

/// What the rules must know of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The cloud that the whole cluster is on. Where nobody says (plain Kubernetes), the kind of
    /// each providerSpec decides.
    pub platform: Option<Platform>,
    /// The value of the cluster label on Machines that have none.
    pub cluster_id: Option<String>,
    /// The region of providerSpecs that have none.
    pub region: Option<String>,
    /// Decides the default instance type.
    pub architecture: Architecture,
}

/// A cloud, as far as there are rules for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    Aws,
    /// One without rules: its providerSpecs are admitted as they are.
    Other,
}

/// What the control plane runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Architecture {
    #[default]
    Amd64,
    Arm64,
}

impl Architecture {
    /// Reads a name of Rust's, Go's or the kernel's. One without defaults of its own reads as
    /// amd64, as it always did.
    pub fn of_name(name: &str) -> Self {
        match name {
            "aarch64" | "arm64" => Self::Arm64,
            _ => Self::Amd64,
        }
    }
}

impl Context {
    /// What OpenShift's `Infrastructure` says. The peer reads it once at start; read it anew for
    /// each change of the object.
    pub fn of_infrastructure(status: &InfrastructureStatus, architecture: Architecture) -> Self {
        let platform = status.platform_status.as_ref();
        let region = platform.and_then(|platform| platform.aws.as_ref()).map(|aws| &aws.region);
        Self {
            platform: platform.and_then(|platform| platform.type_.as_deref()).map(
                |name| match name {
                    "AWS" => Platform::Aws,
                    _ => Platform::Other,
                },
            ),
            cluster_id: non_empty(Some(&status.infrastructure_name)),
            region: non_empty(region),
            architecture,
        }
    }
}

fn non_empty(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

/// A Secret that a rule wants to know about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName {
    pub namespace: String,
    pub name: String,
}

/// What is known of the Secret that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SecretKnowledge {
    /// Nobody looked, so nothing is said of it.
    #[default]
    NotAsked,
    Found,
    Missing,
    /// The look failed; the text says why.
    Unreadable(String),
}
