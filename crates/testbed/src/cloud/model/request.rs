//! What can be asked of the cloud? One struct for each action, without any wire format.
//!
//! Serialised, they have the names that boto3 and the AWS documentation use; the ledger shows them so.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

pub use super::{
    elb::{
        ClassicInstance, ClassicInstances, ClassicListener, ClassicName, CreateClassicLoadBalancer,
        DescribeClassicLoadBalancers, ElbRequest,
    },
    elbv2::{
        CreateListener, CreateLoadBalancer, CreateTargetGroup, DescribeLoadBalancers,
        DescribeTargetGroups, Elbv2Request, LoadBalancerArn, TargetDescription, TargetGroupArn,
        Targets,
    },
    launch_request::*,
};

/// One call of one action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Request {
    RunInstances(#[serde(serialize_with = "shared")] Arc<RunInstances>),
    DescribeInstances(DescribeInstances),
    DescribeInstanceStatus(DescribeInstanceStatus),
    TerminateInstances(InstanceIds),
    StopInstances(InstanceIds),
    StartInstances(InstanceIds),
    RebootInstances(InstanceIds),
    CreateTags(CreateTags),
    DeleteTags(DeleteTags),
    ModifyInstanceEventStartTime(ModifyInstanceEventStartTime),
    DescribeRegions(DescribeRegions),
    DescribeAvailabilityZones(DescribeAvailabilityZones),
    DescribeVpcs(DescribeResources),
    DescribeDhcpOptions(DescribeResources),
    DescribeSubnets(DescribeResources),
    DescribeSecurityGroups(DescribeResources),
    DescribeImages(DescribeResources),
    DescribeInstanceTypes(DescribeResources),
    ModifyInstanceMaintenanceOptions(ModifyInstanceMaintenanceOptions),
    AllocateHosts(AllocateHosts),
    DescribeHosts(DescribeHosts),
    ReleaseHosts(ReleaseHosts),
    Elb(ElbRequest),
    Elbv2(Elbv2Request),
}

/// The services that share the endpoint. Their actions carry a prefix where the names of EC2's do
/// not, since two of them have a CreateLoadBalancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Ec2,
    /// Classic load balancers.
    Elb,
    /// Network and application load balancers.
    Elbv2,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Filter {
    pub name: String,
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Tag {
    pub key: String,
    pub value: String,
}

/// Which part of a long answer is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Page {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_results: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_token: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeInstances {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instance_ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    #[serde(flatten)]
    pub page: Page,
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeInstanceStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instance_ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    #[serde(flatten)]
    pub page: Page,
    #[serde(skip_serializing_if = "is_false")]
    pub include_all_instances: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

/// The parameters of Terminate, Stop, Start and Reboot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct InstanceIds {
    pub instance_ids: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CreateTags {
    pub resources: Vec<String>,
    pub tags: Vec<Tag>,
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeleteTags {
    pub resources: Vec<String>,
    /// The tags to delete; a tag without a value is deleted whatever its value, an empty list
    /// deletes all.
    pub tags: Vec<TagKey>,
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct TagKey {
    pub key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ModifyInstanceEventStartTime {
    pub instance_id: String,
    pub instance_event_id: String,
    pub not_before: Timestamp,
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ModifyInstanceMaintenanceOptions {
    pub instance_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_recovery: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reboot_migration: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AllocateHosts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantity: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_family: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_placement: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_recovery: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_maintenance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_token: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tag_specifications: Vec<TagSpecification>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeHosts {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    #[serde(flatten)]
    pub page: Page,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ReleaseHosts {
    pub host_ids: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeRegions {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub region_names: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub all_regions: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeAvailabilityZones {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zone_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zone_ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

/// The parameters that the Describe calls for VPCs, subnets, images and the like share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeResources {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// `GroupName` of DescribeSecurityGroups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// `Owner` of DescribeImages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    #[serde(flatten)]
    pub page: Page,
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

impl Request {
    pub fn action(&self) -> &'static str {
        match self {
            Self::RunInstances(_) => "RunInstances",
            Self::DescribeInstances(_) => "DescribeInstances",
            Self::DescribeInstanceStatus(_) => "DescribeInstanceStatus",
            Self::TerminateInstances(_) => "TerminateInstances",
            Self::StopInstances(_) => "StopInstances",
            Self::StartInstances(_) => "StartInstances",
            Self::RebootInstances(_) => "RebootInstances",
            Self::CreateTags(_) => "CreateTags",
            Self::DeleteTags(_) => "DeleteTags",
            Self::ModifyInstanceEventStartTime(_) => "ModifyInstanceEventStartTime",
            Self::DescribeRegions(_) => "DescribeRegions",
            Self::DescribeAvailabilityZones(_) => "DescribeAvailabilityZones",
            Self::DescribeVpcs(_) => "DescribeVpcs",
            Self::DescribeDhcpOptions(_) => "DescribeDhcpOptions",
            Self::DescribeSubnets(_) => "DescribeSubnets",
            Self::DescribeSecurityGroups(_) => "DescribeSecurityGroups",
            Self::DescribeImages(_) => "DescribeImages",
            Self::DescribeInstanceTypes(_) => "DescribeInstanceTypes",
            Self::ModifyInstanceMaintenanceOptions(_) => "ModifyInstanceMaintenanceOptions",
            Self::AllocateHosts(_) => "AllocateHosts",
            Self::DescribeHosts(_) => "DescribeHosts",
            Self::ReleaseHosts(_) => "ReleaseHosts",
            Self::Elb(request) => request.action(),
            Self::Elbv2(request) => request.action(),
        }
    }

    pub fn service(&self) -> Service {
        match self {
            Self::Elb(_) => Service::Elb,
            Self::Elbv2(_) => Service::Elbv2,
            _ => Service::Ec2,
        }
    }

    /// Returns whether the call can change anything.
    pub fn is_mutating(&self) -> bool {
        !self.service().wire_action(self.action()).starts_with("Describe")
    }

    pub fn is_dry_run(&self) -> bool {
        match self {
            Self::AllocateHosts(_)
            | Self::DescribeHosts(_)
            | Self::ReleaseHosts(_)
            | Self::Elb(_)
            | Self::Elbv2(_) => false,
            Self::ModifyInstanceMaintenanceOptions(request) => request.dry_run,
            Self::RunInstances(request) => request.dry_run,
            Self::DescribeInstances(request) => request.dry_run,
            Self::DescribeInstanceStatus(request) => request.dry_run,
            Self::TerminateInstances(request)
            | Self::StopInstances(request)
            | Self::StartInstances(request)
            | Self::RebootInstances(request) => request.dry_run,
            Self::CreateTags(request) => request.dry_run,
            Self::DeleteTags(request) => request.dry_run,
            Self::ModifyInstanceEventStartTime(request) => request.dry_run,
            Self::DescribeRegions(request) => request.dry_run,
            Self::DescribeAvailabilityZones(request) => request.dry_run,
            Self::DescribeVpcs(request)
            | Self::DescribeDhcpOptions(request)
            | Self::DescribeSubnets(request)
            | Self::DescribeSecurityGroups(request)
            | Self::DescribeImages(request)
            | Self::DescribeInstanceTypes(request) => request.dry_run,
        }
    }
}

impl Service {
    /// Returns whose action it is, by the name that the ledger has.
    pub fn of_action(action: &str) -> Self {
        match action.split_once(':') {
            Some(("elb", _)) => Self::Elb,
            Some(("elbv2", _)) => Self::Elbv2,
            Some(_) | None => Self::Ec2,
        }
    }

    pub fn prefix(self) -> &'static str {
        match self {
            Self::Ec2 => "",
            Self::Elb => "elb:",
            Self::Elbv2 => "elbv2:",
        }
    }

    /// Returns an action's name as it stands on the wire.
    pub fn wire_action(self, action: &str) -> &str {
        action.strip_prefix(self.prefix()).unwrap_or(action)
    }
}

/// Serialises what an `Arc` holds; serde's own support is a feature that the workspace does not use.
pub(super) fn shared<T: Serialize + ?Sized, S: Serializer>(
    value: &Arc<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().serialize(serializer)
}

pub(super) fn is_false(value: &bool) -> bool {
    !value
}
