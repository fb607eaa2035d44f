//! Is a launch request sound? Everything that EC2 refuses before it launches, and what it fills in.

mod network;
mod options;
mod volumes;

use std::{collections::BTreeMap, net::Ipv4Addr};

use network::plan_interfaces;
use options::{check_maintenance, check_market, check_options, check_placement};
use volumes::plan_volumes;

use super::{
    catalog::{InstanceType, instance_type},
    error::Ec2Error,
    instance::GroupIdentifier,
    random::is_resource_id,
    request::{NetworkInterfaceSpecification, RunInstances},
    tags::{Tags, checked_tags},
    world::{Image, World},
};

/// AWS's limit for user data before base64.
const USER_DATA_BYTES_MAX: usize = 16_384;
const CLIENT_TOKEN_CHARACTERS_MAX: usize = 64;
const COUNT_MAX: i64 = 1000;
const TAGGABLE: &[&str] = &["instance", "volume", "network-interface", "spot-instances-request"];

/// A launch with every reference resolved.
pub struct LaunchPlan {
    pub image: Image,
    pub instance_type: &'static InstanceType,
    pub zone: String,
    pub zone_id: String,
    pub interfaces: Vec<InterfacePlan>,
    pub volumes: Vec<VolumePlan>,
    /// Tags by resource type.
    pub tags: BTreeMap<String, Tags>,
}

pub struct InterfacePlan {
    pub specification: NetworkInterfaceSpecification,
    pub subnet_id: String,
    pub vpc_id: String,
    pub security_groups: Vec<GroupIdentifier>,
    pub address: Option<Ipv4Addr>,
    pub wants_public_address: bool,
}

pub struct VolumePlan {
    pub device_name: String,
    pub delete_on_termination: bool,
    pub size_gib: i64,
    pub volume_type: String,
}

pub fn plan_launch(world: &World, request: &RunInstances) -> Result<LaunchPlan, Ec2Error> {
    check_scalars(request)?;
    let image = find_image(world, request)?;
    let kind = find_type(request, image)?;
    let interfaces = plan_interfaces(world, request, kind)?;
    let subnet = interfaces
        .first()
        .and_then(|interface| world.subnets.get(&interface.subnet_id))
        .ok_or_else(|| Ec2Error::missing_parameter("SubnetId"))?;
    check_placement(world, request, subnet)?;
    check_options(request, kind)?;
    check_market(request)?;
    check_maintenance(request)?;
    Ok(LaunchPlan {
        image: image.clone(),
        instance_type: kind,
        zone: subnet.zone.clone(),
        zone_id: subnet.zone_id.clone(),
        interfaces,
        volumes: plan_volumes(image, &request.block_device_mappings)?,
        tags: plan_tags(request)?,
    })
}

fn check_scalars(request: &RunInstances) -> Result<(), Ec2Error> {
    if request.min_count < 1 || request.max_count < request.min_count {
        return Err(Ec2Error::invalid_value(format!(
            "Value ({}) for parameter minCount and value ({}) for parameter maxCount are invalid. \
             minCount must be at least 1 and at most maxCount.",
            request.min_count, request.max_count
        )));
    }
    if request.max_count > COUNT_MAX {
        return Err(Ec2Error::new(
            "InstanceLimitExceeded",
            format!("You have requested more instances than your limit of {COUNT_MAX} allows"),
        ));
    }
    if let Some(token) = &request.client_token
        && (!token.is_ascii() || token.len() > CLIENT_TOKEN_CHARACTERS_MAX)
    {
        return Err(Ec2Error::invalid_value(format!(
            "The client token must be at most {CLIENT_TOKEN_CHARACTERS_MAX} ASCII characters"
        )));
    }
    if let Some(data) = &request.user_data
        && data.0.len() > USER_DATA_BYTES_MAX
    {
        return Err(Ec2Error::invalid_value(format!(
            "User data is limited to {USER_DATA_BYTES_MAX} bytes"
        )));
    }
    if let Some(profile) = &request.iam_instance_profile {
        match (&profile.arn, &profile.name) {
            (Some(_), Some(_)) => {
                return Err(Ec2Error::invalid_combination(
                    "The parameter 'iamInstanceProfile.name' may not be used in combination with \
                     'iamInstanceProfile.arn'",
                ));
            }
            (Some(text), None) | (None, Some(text)) if text.is_empty() => {
                return Err(Ec2Error::invalid_value("Invalid IAM Instance Profile name"));
            }
            (Some(_), None) | (None, Some(_)) | (None, None) => {}
        }
    }
    check_word(
        "instanceInitiatedShutdownBehavior",
        request.instance_initiated_shutdown_behavior.as_deref(),
        &["stop", "terminate"],
    )
}

fn find_image<'a>(world: &'a World, request: &RunInstances) -> Result<&'a Image, Ec2Error> {
    let id = request.image_id.as_deref().ok_or_else(|| Ec2Error::missing_parameter("ImageId"))?;
    if !is_resource_id(id, "ami") {
        return Err(Ec2Error::new(
            "InvalidAMIID.Malformed",
            format!("Invalid id: \"{id}\" (expecting \"ami-...\")"),
        ));
    }
    world.images.get(id).ok_or_else(|| {
        Ec2Error::new("InvalidAMIID.NotFound", format!("The image id '[{id}]' does not exist"))
    })
}

fn find_type(request: &RunInstances, image: &Image) -> Result<&'static InstanceType, Ec2Error> {
    let name = request
        .instance_type
        .as_deref()
        .ok_or_else(|| Ec2Error::missing_parameter("InstanceType"))?;
    let kind = instance_type(name).ok_or_else(|| {
        Ec2Error::invalid_value(format!("Invalid value '{name}' for InstanceType."))
    })?;
    if kind.architecture != image.architecture {
        return Err(Ec2Error::invalid_value(format!(
            "The architecture '{}' of the specified instance type does not match the architecture \
             '{}' of the specified AMI. Specify an instance type and an AMI that have matching \
             architectures, and try again.",
            kind.architecture, image.architecture
        )));
    }
    Ok(kind)
}

fn plan_tags(request: &RunInstances) -> Result<BTreeMap<String, Tags>, Ec2Error> {
    let mut tags = BTreeMap::new();
    for specification in &request.tag_specifications {
        let resource_type = &specification.resource_type;
        if !TAGGABLE.contains(&resource_type.as_str()) {
            return Err(Ec2Error::invalid_value(format!(
                "'{resource_type}' is not a valid taggable resource type for this operation."
            )));
        }
        let checked = checked_tags(&specification.tags)?;
        if tags.insert(resource_type.clone(), checked).is_some() {
            return Err(Ec2Error::invalid_value(format!(
                "The resource type '{resource_type}' is specified more than once"
            )));
        }
    }
    Ok(tags)
}

pub(super) fn check_word(
    name: &str,
    value: Option<&str>,
    allowed: &[&str],
) -> Result<(), Ec2Error> {
    match value {
        Some(value) if !allowed.contains(&value) => Err(Ec2Error::invalid_value(format!(
            "Value ({value}) for parameter {name} is invalid. Expecting one of: {}",
            allowed.join(", ")
        ))),
        Some(_) | None => Ok(()),
    }
}
