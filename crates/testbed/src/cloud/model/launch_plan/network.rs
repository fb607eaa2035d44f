//! Which network interfaces does a launch get?

use std::{collections::BTreeSet, net::Ipv4Addr};

use super::{InterfacePlan, check_word};
use crate::cloud::model::{
    catalog::InstanceType,
    error::Ec2Error,
    instance::GroupIdentifier,
    random::is_resource_id,
    request::{NetworkInterfaceSpecification, RunInstances},
    world::{Subnet, World, ZoneKind},
};

pub(super) fn plan_interfaces(
    world: &World,
    request: &RunInstances,
    kind: &InstanceType,
) -> Result<Vec<InterfacePlan>, Ec2Error> {
    let mut specifications = request.network_interfaces.clone();
    if specifications.is_empty() {
        specifications.push(NetworkInterfaceSpecification {
            device_index: Some(0),
            subnet_id: request.subnet_id.clone(),
            groups: group_ids(world, request)?,
            ipv6_address_count: request.ipv6_address_count,
            primary_ipv6: request.enable_primary_ipv6,
            private_ip_address: request.private_ip_address.clone(),
            ..NetworkInterfaceSpecification::default()
        });
    } else if request.subnet_id.is_some()
        || !request.security_group_ids.is_empty()
        || !request.security_groups.is_empty()
    {
        return Err(Ec2Error::invalid_combination(
            "Network interfaces and an instance-level subnet ID or security groups may not be \
             specified on the same request",
        ));
    }
    check_interface_list(&specifications, kind)?;
    // The first interface is the primary one, whatever the order of the request.
    specifications.sort_by_key(|specification| {
        (specification.network_card_index.unwrap_or(0), specification.device_index)
    });
    let interfaces = specifications
        .into_iter()
        .map(|specification| plan_interface(world, specification, kind))
        .collect::<Result<Vec<_>, _>>()?;
    let zones: BTreeSet<&str> = interfaces
        .iter()
        .filter_map(|interface| world.subnets.get(&interface.subnet_id))
        .map(|subnet| subnet.zone.as_str())
        .collect();
    if zones.len() > 1 {
        return Err(Ec2Error::invalid_combination(
            "You may not specify network interfaces in different Availability Zones",
        ));
    }
    Ok(interfaces)
}

fn check_interface_list(
    specifications: &[NetworkInterfaceSpecification],
    kind: &InstanceType,
) -> Result<(), Ec2Error> {
    let mut indexes = BTreeSet::new();
    for specification in specifications {
        let index = specification
            .device_index
            .ok_or_else(|| Ec2Error::missing_parameter("NetworkInterface.DeviceIndex"))?;
        let card = specification.network_card_index.unwrap_or(0);
        if !indexes.insert((card, index)) {
            return Err(Ec2Error::invalid_value(format!(
                "Each network interface requires a unique device index; {index} is given twice"
            )));
        }
    }
    if !indexes.contains(&(0, 0)) {
        return Err(Ec2Error::invalid_value(
            "The network interface with device index 0 is required",
        ));
    }
    if specifications.len() > kind.network_interfaces_max as usize {
        return Err(Ec2Error::new(
            "AttachmentLimitExceeded",
            format!("Interface count {} exceeds the limit for {}", specifications.len(), kind.name),
        ));
    }
    let wants_public = specifications
        .iter()
        .any(|specification| specification.associate_public_ip_address.is_some());
    if specifications.len() > 1 && wants_public {
        return Err(Ec2Error::invalid_combination(
            "The associatePublicIPAddress parameter cannot be specified when launching with \
             multiple network interfaces.",
        ));
    }
    Ok(())
}

fn plan_interface(
    world: &World,
    specification: NetworkInterfaceSpecification,
    kind: &InstanceType,
) -> Result<InterfacePlan, Ec2Error> {
    let subnet = find_subnet(world, specification.subnet_id.as_deref())?;
    check_word(
        "interfaceType",
        specification.interface_type.as_deref(),
        &["interface", "efa", "efa-only"],
    )?;
    let is_efa = specification
        .interface_type
        .as_deref()
        .is_some_and(|interface_type| interface_type.starts_with("efa"));
    if is_efa && !kind.efa_supported {
        return Err(Ec2Error::invalid_combination(format!(
            "EFA interfaces are not supported on {}",
            kind.name
        )));
    }
    let zone = world.zone(&subnet.zone);
    let is_wavelength = zone.is_some_and(|zone| zone.kind == ZoneKind::Wavelength);
    if specification.associate_public_ip_address == Some(true) && is_wavelength {
        return Err(Ec2Error::invalid_combination(format!(
            "Public IP addresses are not supported in subnet {}, which is in a Wavelength Zone",
            subnet.id
        )));
    }
    if specification.associate_carrier_ip_address == Some(true) && !is_wavelength {
        return Err(Ec2Error::invalid_combination(format!(
            "Carrier IP addresses are not supported in subnet {}, which is not in a Wavelength Zone",
            subnet.id
        )));
    }
    let security_groups = if specification.groups.is_empty() {
        vec![find_group(world, &world.ids().default_security_group)?]
    } else {
        specification
            .groups
            .iter()
            .map(|id| find_group(world, id))
            .collect::<Result<Vec<_>, _>>()?
    };
    let address = specification
        .private_ip_address
        .as_deref()
        .map(|text| wanted_address(text, subnet))
        .transpose()?;
    Ok(InterfacePlan {
        subnet_id: subnet.id.clone(),
        vpc_id: subnet.vpc_id.clone(),
        security_groups,
        address,
        wants_public_address: specification.associate_public_ip_address.unwrap_or(subnet.public),
        specification,
    })
}

fn find_subnet<'a>(world: &'a World, id: Option<&str>) -> Result<&'a Subnet, Ec2Error> {
    let Some(id) = id else {
        return Err(Ec2Error::new(
            "VPCIdNotSpecified",
            "No default VPC for this user. GroupName is only supported for EC2-Classic and default \
             VPC.",
        ));
    };
    world.subnets.get(id).ok_or_else(|| {
        Ec2Error::new("InvalidSubnetID.NotFound", format!("The subnet ID '{id}' does not exist"))
    })
}

fn find_group(world: &World, id: &str) -> Result<GroupIdentifier, Ec2Error> {
    if !is_resource_id(id, "sg") {
        return Err(Ec2Error::new(
            "InvalidGroupId.Malformed",
            format!("Invalid id: \"{id}\" (expecting \"sg-...\")"),
        ));
    }
    let group = world.security_groups.get(id).ok_or_else(|| {
        Ec2Error::new("InvalidGroup.NotFound", format!("The security group '{id}' does not exist"))
    })?;
    Ok(GroupIdentifier { id: group.id.clone(), name: group.name.clone() })
}

fn group_ids(world: &World, request: &RunInstances) -> Result<Vec<String>, Ec2Error> {
    let mut ids = request.security_group_ids.clone();
    for name in &request.security_groups {
        let group =
            world.security_groups.values().find(|group| group.name == *name).ok_or_else(|| {
                Ec2Error::new(
                    "InvalidGroup.NotFound",
                    format!("The security group '{name}' does not exist"),
                )
            })?;
        ids.push(group.id.clone());
    }
    Ok(ids)
}

fn wanted_address(text: &str, subnet: &Subnet) -> Result<Ipv4Addr, Ec2Error> {
    let address: Ipv4Addr = text
        .parse()
        .map_err(|_| Ec2Error::invalid_value(format!("invalid value for IPv4 address: {text}")))?;
    if !subnet.contains(address) {
        return Err(Ec2Error::invalid_value(format!(
            "Address {address} does not fall within the subnet's address range"
        )));
    }
    Ok(address)
}
