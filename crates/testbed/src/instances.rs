//! What do the machines' insides need to know about the instances around them?

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cloud::InstanceFacts;
use crate::cloud::model::InstanceState;

/// All instances that the cloud still shows, by instance id.
pub type Instances = Arc<BTreeMap<String, Instance>>;

/// One instance as its own kubelet and the cloud controller see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    pub id: String,
    pub power: Power,
    pub region: String,
    pub zone: String,
    pub instance_type: String,
    /// As Kubernetes names it: `amd64` or `arm64`.
    pub architecture: String,
    pub cpus: u32,
    pub memory_mebibytes: u64,
    pub private_address: String,
    /// Also the Node's name.
    pub private_name: String,
    pub role: Role,
}

/// Whether anything runs on the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// Not started yet.
    Pending,
    /// Running since its `boot`th start or reboot.
    On { boot: u64 },
    /// Going down to come up again in a moment.
    Rebooting,
    /// Running, but hung: the provider's status checks fail and nothing inside answers.
    Hung,
    /// Stopping or stopped.
    Off,
    /// Shutting down or terminated: it never comes back.
    Gone,
}

/// What the Node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    ControlPlane,
    Worker,
}

impl Instance {
    /// The Node's `spec.providerID`.
    #[must_use]
    pub fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.id)
    }
}

/// Reads what the cloud tells about its instances.
#[must_use]
pub fn from_facts(facts: Vec<InstanceFacts>) -> Instances {
    let instances = facts.into_iter().map(|facts| (facts.id.clone(), Instance::from(facts)));
    Arc::new(instances.collect())
}

impl From<InstanceFacts> for Instance {
    fn from(facts: InstanceFacts) -> Self {
        Self {
            power: Power::from(&facts),
            role: Role::from_tags(&facts.tags),
            architecture: match facts.architecture.as_str() {
                "x86_64" => "amd64".to_owned(),
                other => other.to_owned(),
            },
            private_address: facts.private_ip.map(|ip| ip.to_string()).unwrap_or_default(),
            private_name: facts.private_dns_name,
            id: facts.id,
            region: facts.region,
            zone: facts.zone,
            instance_type: facts.instance_type,
            cpus: facts.vcpus,
            memory_mebibytes: facts.memory_mib,
        }
    }
}

impl From<&InstanceFacts> for Power {
    fn from(facts: &InstanceFacts) -> Self {
        match facts.state {
            InstanceState::Pending => Self::Pending,
            InstanceState::Running if facts.impairment.is_some() => Self::Hung,
            InstanceState::Running if facts.rebooting => Self::Rebooting,
            InstanceState::Running => Self::On { boot: facts.boot_generation },
            InstanceState::Stopping | InstanceState::Stopped => Self::Off,
            InstanceState::ShuttingDown | InstanceState::Terminated => Self::Gone,
        }
    }
}

impl Role {
    /// Reads the role off the tags that installers give their machines: `<cluster>-master-0`.
    #[must_use]
    pub fn from_tags(tags: &BTreeMap<String, String>) -> Self {
        let named_master = tags.get("Name").is_some_and(|name| name.contains("-master-"));
        let tagged_master = tags.get(ROLE_TAG).is_some_and(|role| role == "master");
        if named_master || tagged_master { Self::ControlPlane } else { Self::Worker }
    }
}

/// A tag that says `master` where the instance's name does not.
pub const ROLE_TAG: &str = "machinist.dev/role";
