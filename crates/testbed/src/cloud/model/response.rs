//! What does the cloud answer? One variant for each kind of answer, without any wire format.

use serde::Serialize;

use super::{
    catalog::InstanceType,
    elb::ElbResponse,
    elbv2::Elbv2Response,
    error::Ec2Error,
    events::ScheduledEvent,
    hosts::{HostDescription, UnreleasedHost},
    instance::{Instance, InstanceState},
    world::{DhcpOptions, Image, Region, SecurityGroup, Subnet, Vpc, Zone},
};
use jiff::{SignedDuration, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    /// RunInstances.
    Launched(Reservation),
    Instances(Paged<Reservation>),
    InstanceStatuses(Paged<InstanceStatus>),
    /// Terminate, Stop and Start.
    StateChanges(Vec<StateChange>),
    /// Reboot, CreateTags and DeleteTags, which answer no more than that they were done.
    Done,
    EventMoved(ScheduledEvent),
    Regions(Vec<Region>),
    AvailabilityZones(Vec<Zone>),
    Vpcs(Paged<Vpc>),
    DhcpOptions(Paged<DhcpOptions>),
    Subnets(Paged<Subnet>),
    SecurityGroups(Paged<SecurityGroup>),
    Images(Paged<Image>),
    InstanceTypes(Paged<InstanceType>),
    MaintenanceOptions {
        instance_id: String,
        auto_recovery: String,
        reboot_migration: String,
    },
    HostsAllocated(Vec<String>),
    Hosts(Paged<HostDescription>),
    HostsReleased {
        successful: Vec<String>,
        unsuccessful: Vec<UnreleasedHost>,
    },
    Elb(ElbResponse),
    Elbv2(Elbv2Response),
}

/// What becomes of one call: the answer, and whether and when it reaches the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub request_id: String,
    pub result: Result<Response, Ec2Error>,
    pub delivery: Delivery,
}

/// The network's part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    pub after: SignedDuration,
    /// The connection ends without an answer, though the call may have had its effect.
    pub lost: bool,
    /// The breakpoint that holds the connection open until it is removed.
    pub held: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paged<T> {
    pub items: Vec<T>,
    pub next_token: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    pub id: String,
    pub owner_id: String,
    pub instances: Vec<Instance>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateChange {
    pub instance_id: String,
    pub previous: InstanceState,
    pub current: InstanceState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceStatus {
    pub instance_id: String,
    pub availability_zone: String,
    pub availability_zone_id: String,
    pub state: InstanceState,
    pub instance_check: StatusCheck,
    pub system_check: StatusCheck,
    pub attached_ebs_check: StatusCheck,
    pub events: Vec<ScheduledEvent>,
}

/// One status check: its summary, and its reachability detail where the instance runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCheck {
    pub status: &'static str,
    pub reachability: Option<&'static str>,
    pub impaired_since: Option<Timestamp>,
}

impl Delivery {
    pub const AT_ONCE: Self = Self { after: SignedDuration::ZERO, lost: false, held: None };
}

impl Response {
    /// Returns the ids of the instances that the call launched or changed, for the ledger.
    pub fn changed_instance_ids(&self) -> Vec<String> {
        match self {
            Self::Launched(reservation) => {
                reservation.instances.iter().map(|instance| instance.id.clone()).collect()
            }
            Self::StateChanges(changes) => {
                changes.iter().map(|change| change.instance_id.clone()).collect()
            }
            Self::MaintenanceOptions { instance_id, .. } => vec![instance_id.clone()],
            Self::Elb(ElbResponse::Instances { changed, .. })
            | Self::Elbv2(Elbv2Response::Done { changed }) => changed.clone(),
            Self::Elb(_)
            | Self::Elbv2(_)
            | Self::HostsAllocated(_)
            | Self::Hosts(_)
            | Self::HostsReleased { .. }
            | Self::Instances(_)
            | Self::InstanceStatuses(_)
            | Self::Done
            | Self::EventMoved(_)
            | Self::Regions(_)
            | Self::AvailabilityZones(_)
            | Self::Vpcs(_)
            | Self::DhcpOptions(_)
            | Self::Subnets(_)
            | Self::SecurityGroups(_)
            | Self::Images(_)
            | Self::InstanceTypes(_) => Vec::new(),
        }
    }
}
