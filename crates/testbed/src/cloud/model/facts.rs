//! What does the inside of a machine need to know about its instance? For the simulated kubelets.

use std::net::{Ipv4Addr, Ipv6Addr};

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Cloud,
    catalog::instance_type,
    instance::{ImpairedCheck, Impairment, Instance, InstanceState, SpotNotice},
    request::UserData,
    tags::Tags,
};

/// One instance as its guest sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceFacts {
    pub id: String,
    pub state: InstanceState,
    pub region: String,
    pub zone: String,
    pub instance_type: String,
    pub architecture: String,
    pub vcpus: u32,
    pub memory_mib: u64,
    pub gpus: u32,
    pub image_id: String,
    /// None once terminated.
    pub private_ip: Option<Ipv4Addr>,
    pub private_dns_name: String,
    pub ipv6_addresses: Vec<Ipv6Addr>,
    pub public_ip: Option<Ipv4Addr>,
    /// Grows at the first boot, at each start and at each reboot; the guest's boot id follows it.
    pub boot_generation: u64,
    pub booted_at: Option<Timestamp>,
    /// The guest is down between the reboot call and its next boot.
    pub rebooting: bool,
    pub impairment: Option<Impairment>,
    pub spot: bool,
    pub spot_notice: Option<SpotNotice>,
    /// Since when the provider recommends to leave the instance.
    pub rebalance_recommended: Option<Timestamp>,
    pub tags: Tags,
    pub user_data: Option<UserData>,
    pub launch_time: Timestamp,
}

impl InstanceFacts {
    /// Returns whether the guest is up: running, not in the middle of a reboot, and answering.
    pub fn is_up(&self) -> bool {
        let answers = self
            .impairment
            .as_ref()
            .is_none_or(|impairment| impairment.check == ImpairedCheck::AttachedEbs);
        self.state == InstanceState::Running && !self.rebooting && answers
    }
}

impl Cloud {
    /// Returns the facts of every instance that has not faded, in the order of their ids.
    pub fn snapshot(&self) -> Vec<InstanceFacts> {
        self.instances.values().map(|instance| self.facts_of(instance)).collect()
    }

    fn facts_of(&self, instance: &Instance) -> InstanceFacts {
        let kind = instance_type(&instance.instance_type);
        InstanceFacts {
            id: instance.id.clone(),
            state: instance.state,
            region: self.config.region.clone(),
            zone: instance.availability_zone.clone(),
            instance_type: instance.instance_type.clone(),
            architecture: instance.architecture.clone(),
            vcpus: kind.map_or(1, |kind| kind.vcpus),
            memory_mib: kind.map_or(1024, |kind| kind.memory_mib),
            gpus: kind.and_then(|kind| kind.gpu).map_or(0, |gpu| gpu.count),
            image_id: instance.image_id.clone(),
            private_ip: instance.private_address(),
            private_dns_name: instance.private_dns_name.clone(),
            ipv6_addresses: instance
                .interfaces
                .iter()
                .flat_map(|interface| interface.ipv6_addresses.iter().copied())
                .collect(),
            public_ip: instance.public_address(),
            boot_generation: instance.boot_generation,
            booted_at: instance.booted_at,
            rebooting: instance.is_rebooting(),
            impairment: instance.impairment.clone(),
            spot: instance.is_spot(),
            spot_notice: instance.spot.as_ref().and_then(|spot| spot.notice.clone()),
            rebalance_recommended: instance.spot.as_ref().and_then(|spot| spot.rebalance),
            tags: instance.tags.clone(),
            user_data: instance.parameters.user_data.clone(),
            launch_time: instance.launch_time,
        }
    }
}
