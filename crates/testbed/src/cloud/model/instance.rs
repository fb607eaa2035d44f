//! What is one instance? Its state, its parts, and the filters that find it.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    events::ScheduledEvent, filter::Filterable, launch::dashed, request::RunInstances, tags::Tags,
    time::wire_time,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    pub id: String,
    pub reservation_id: String,
    pub owner_id: String,
    pub public_domain: String,
    pub launch_index: i64,
    pub parameters: Arc<RunInstances>,
    pub image_id: String,
    pub instance_type: String,
    pub architecture: String,
    pub root_device_name: String,
    pub availability_zone: String,
    pub availability_zone_id: String,
    /// None once the instance is terminated, as in EC2.
    pub vpc_id: Option<String>,
    pub subnet_id: Option<String>,
    pub state: InstanceState,
    pub state_reason: Option<StateReason>,
    /// EC2's `reason`: a text with the time of the last change that a user asked for.
    pub transition_reason: String,
    /// When it was launched; `launch_time` moves at each start.
    pub created_at: Timestamp,
    pub launch_time: Timestamp,
    /// Since when the guest has been up; the status checks count from here.
    pub booted_at: Option<Timestamp>,
    pub terminated_at: Option<Timestamp>,
    /// From when Describe calls show it (later than the launch only under the visibility fault).
    pub visible_from: Timestamp,
    /// Counts boots: one more at the first boot, at every start and at every reboot.
    pub boot_generation: u64,
    pub tags: Tags,
    pub security_groups: Vec<GroupIdentifier>,
    pub interfaces: Vec<NetworkInterface>,
    pub volumes: Vec<Volume>,
    /// Empty once terminated, as in EC2.
    pub private_dns_name: String,
    pub spot: Option<Spot>,
    pub impairment: Option<Impairment>,
    pub events: BTreeMap<String, ScheduledEvent>,
    /// When the current transitional state ends; a timer that says otherwise is stale.
    /// The dedicated host that it is on, or was on last.
    pub host_id: Option<String>,
    pub auto_recovery: String,
    pub reboot_migration: String,
    pub(super) fate: Option<super::fates::Fate>,
    /// Until when an accepted termination is put off.
    pub(super) lingers_until: Option<Timestamp>,
    pub(super) transition_due: Option<Timestamp>,
    pub(super) rebooting_until: Option<Timestamp>,
    pub(super) token: Option<super::launch::TokenKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    Pending,
    Running,
    ShuttingDown,
    Terminated,
    Stopping,
    Stopped,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateReason {
    pub code: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupIdentifier {
    pub id: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkInterface {
    pub id: String,
    pub attachment_id: String,
    pub device_index: i64,
    pub network_card_index: i64,
    pub subnet_id: String,
    pub vpc_id: String,
    pub security_groups: Vec<GroupIdentifier>,
    pub mac_address: String,
    /// The primary address first.
    pub private_addresses: Vec<Ipv4Addr>,
    pub private_dns_name: String,
    /// Whether a public address is given at each start.
    pub wants_public_address: bool,
    pub public_address: Option<Ipv4Addr>,
    /// The address in the carrier's network, in a Wavelength Zone.
    pub carrier_address: Option<Ipv4Addr>,
    pub ipv6_addresses: Vec<Ipv6Addr>,
    pub primary_ipv6: bool,
    pub description: String,
    pub interface_type: String,
    pub delete_on_termination: bool,
    pub attach_time: Timestamp,
    pub tags: Tags,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    pub id: String,
    pub device_name: String,
    pub delete_on_termination: bool,
    pub size_gib: i64,
    pub volume_type: String,
    pub attach_time: Timestamp,
    pub tags: Tags,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    pub request_id: String,
    /// One-time requests end with their instance, which therefore cannot be stopped.
    pub persistent: bool,
    pub notice: Option<SpotNotice>,
    /// Since when the provider recommends to leave the instance.
    pub rebalance: Option<Timestamp>,
    pub tags: Tags,
}

/// What the instance metadata tells the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpotNotice {
    pub action: SpotAction,
    pub time: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpotAction {
    Terminate,
    Stop,
    Hibernate,
}

/// A status check that fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Impairment {
    pub check: ImpairedCheck,
    pub since: Timestamp,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImpairedCheck {
    /// The guest does not answer; a reboot helps.
    #[default]
    Instance,
    /// The host is broken; only a stop and start moves the instance away.
    System,
    /// A volume cannot be reached; the guest itself still answers.
    AttachedEbs,
}

impl InstanceState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }

    pub fn code(self) -> u16 {
        match self {
            Self::Pending => 0,
            Self::Running => 16,
            Self::ShuttingDown => 32,
            Self::Terminated => 48,
            Self::Stopping => 64,
            Self::Stopped => 80,
        }
    }

    /// Returns whether an instance in this state is on its way out or gone.
    pub fn is_ending(self) -> bool {
        matches!(self, Self::ShuttingDown | Self::Terminated)
    }
}

impl Instance {
    pub fn is_rebooting(&self) -> bool {
        self.rebooting_until.is_some()
    }

    pub fn primary_interface(&self) -> Option<&NetworkInterface> {
        self.interfaces
            .iter()
            .find(|interface| interface.device_index == 0)
            .or_else(|| self.interfaces.first())
    }

    pub fn private_address(&self) -> Option<Ipv4Addr> {
        self.primary_interface().and_then(|interface| interface.private_addresses.first().copied())
    }

    pub fn public_address(&self) -> Option<Ipv4Addr> {
        self.primary_interface().and_then(|interface| interface.public_address)
    }

    /// Returns the public name, which exists only while there is a public address.
    pub fn public_dns_name(&self) -> Option<String> {
        self.public_address()
            .map(|address| format!("ec2-{}.{}", dashed(address), self.public_domain))
    }

    /// Returns the tenancy that it was launched with.
    pub fn tenancy(&self) -> &str {
        self.parameters
            .placement
            .as_ref()
            .and_then(|placement| placement.tenancy.as_deref())
            .unwrap_or("default")
    }

    /// Returns whether a stop and start brings it back to the same host; none without a host.
    pub fn affinity(&self) -> Option<&str> {
        let placement = self.parameters.placement.as_ref().filter(|_| self.tenancy() == "host")?;
        Some(placement.affinity.as_deref().unwrap_or("default"))
    }

    pub fn is_spot(&self) -> bool {
        self.spot.is_some()
    }

    pub(super) fn part_tags(&self, id: &str) -> Option<&Tags> {
        self.volumes
            .iter()
            .find(|volume| volume.id == id)
            .map(|volume| &volume.tags)
            .or_else(|| {
                self.interfaces
                    .iter()
                    .find(|interface| interface.id == id)
                    .map(|interface| &interface.tags)
            })
            .or_else(|| {
                self.spot.as_ref().filter(|spot| spot.request_id == id).map(|spot| &spot.tags)
            })
    }

    pub(super) fn part_tags_mut(&mut self, id: &str) -> Option<&mut Tags> {
        if let Some(volume) = self.volumes.iter_mut().find(|volume| volume.id == id) {
            return Some(&mut volume.tags);
        }
        if let Some(interface) = self.interfaces.iter_mut().find(|interface| interface.id == id) {
            return Some(&mut interface.tags);
        }
        self.spot.as_mut().filter(|spot| spot.request_id == id).map(|spot| &mut spot.tags)
    }
}

impl Filterable for Instance {
    const FILTERS: &'static [&'static str] = &[
        "affinity",
        "architecture",
        "availability-zone",
        "availability-zone-id",
        "block-device-mapping.device-name",
        "block-device-mapping.volume-id",
        "client-token",
        "dns-name",
        "host-id",
        "image-id",
        "instance-id",
        "instance-lifecycle",
        "instance-state-code",
        "instance-state-name",
        "instance-type",
        "instance.group-id",
        "instance.group-name",
        "ip-address",
        "key-name",
        "launch-time",
        "network-interface.network-interface-id",
        "network-interface.private-dns-name",
        "network-interface.subnet-id",
        "network-interface.vpc-id",
        "owner-id",
        "maintenance-options.auto-recovery",
        "placement-group-name",
        "placement-partition-number",
        "private-dns-name",
        "private-ip-address",
        "reason",
        "reservation-id",
        "root-device-name",
        "root-device-type",
        "spot-instance-request-id",
        "state-reason-code",
        "state-reason-message",
        "subnet-id",
        "tenancy",
        "virtualization-type",
        "vpc-id",
    ];

    fn page_key(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }

    fn filter_values(&self, name: &str) -> Vec<String> {
        let placement = self.parameters.placement.as_ref();
        let optional = |value: Option<String>| value.into_iter().collect::<Vec<_>>();
        match name {
            "affinity" => optional(self.affinity().map(str::to_owned)),
            "architecture" => vec![self.architecture.clone()],
            "availability-zone" => vec![self.availability_zone.clone()],
            "availability-zone-id" => vec![self.availability_zone_id.clone()],
            "block-device-mapping.device-name" => {
                self.volumes.iter().map(|volume| volume.device_name.clone()).collect()
            }
            "block-device-mapping.volume-id" => {
                self.volumes.iter().map(|volume| volume.id.clone()).collect()
            }
            "client-token" => optional(self.parameters.client_token.clone()),
            "dns-name" => optional(self.public_dns_name()),
            "ip-address" => optional(self.public_address().map(|address| address.to_string())),
            "host-id" => optional(self.host_id.clone()),
            "image-id" => vec![self.image_id.clone()],
            "instance-id" => vec![self.id.clone()],
            "instance-lifecycle" => optional(
                self.parameters
                    .instance_market_options
                    .as_ref()
                    .and_then(|market| market.market_type.clone()),
            ),
            "instance-state-code" => vec![self.state.code().to_string()],
            "instance-state-name" => vec![self.state.name().into()],
            "instance-type" => vec![self.instance_type.clone()],
            "instance.group-id" => {
                self.security_groups.iter().map(|group| group.id.clone()).collect()
            }
            "instance.group-name" => {
                self.security_groups.iter().map(|group| group.name.clone()).collect()
            }
            "key-name" => optional(self.parameters.key_name.clone()),
            "launch-time" => vec![wire_time(self.launch_time)],
            "network-interface.network-interface-id" => {
                self.interfaces.iter().map(|interface| interface.id.clone()).collect()
            }
            "network-interface.private-dns-name" => {
                self.interfaces.iter().map(|interface| interface.private_dns_name.clone()).collect()
            }
            "network-interface.subnet-id" => {
                self.interfaces.iter().map(|interface| interface.subnet_id.clone()).collect()
            }
            "network-interface.vpc-id" => {
                self.interfaces.iter().map(|interface| interface.vpc_id.clone()).collect()
            }
            "owner-id" => vec![self.owner_id.clone()],
            "maintenance-options.auto-recovery" => vec![self.auto_recovery.clone()],
            "placement-partition-number" => optional(
                placement
                    .and_then(|placement| placement.partition_number)
                    .map(|number| number.to_string()),
            ),
            "placement-group-name" => {
                optional(placement.and_then(|placement| placement.group_name.clone()))
            }
            "private-dns-name" => vec![self.private_dns_name.clone()],
            "private-ip-address" => {
                optional(self.private_address().map(|address| address.to_string()))
            }
            "reason" => vec![self.transition_reason.clone()],
            "reservation-id" => vec![self.reservation_id.clone()],
            "root-device-name" => vec![self.root_device_name.clone()],
            "root-device-type" => vec!["ebs".into()],
            "spot-instance-request-id" => {
                optional(self.spot.as_ref().map(|spot| spot.request_id.clone()))
            }
            "state-reason-code" => {
                optional(self.state_reason.as_ref().map(|reason| reason.code.clone()))
            }
            "state-reason-message" => {
                optional(self.state_reason.as_ref().map(|reason| reason.message.clone()))
            }
            "subnet-id" => optional(self.subnet_id.clone()),
            "tenancy" => vec![self.tenancy().into()],
            "virtualization-type" => vec!["hvm".into()],
            "vpc-id" => optional(self.vpc_id.clone()),
            _ => Vec::new(),
        }
    }
}
