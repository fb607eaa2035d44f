//! What do the Describe calls show that a launch needs: regions, zones, network, images, types?

use std::collections::BTreeMap;

use super::{
    Cloud,
    catalog::INSTANCE_TYPES,
    error::Ec2Error,
    filter::{Filterable, check_filters, cut_page, matches_filters},
    random::is_resource_id,
    request::{DescribeAvailabilityZones, DescribeRegions, DescribeResources},
    response::{Paged, Response},
    world::REGIONS,
};

/// How EC2 names the ids of one kind of resource and its errors.
struct Kind {
    action: &'static str,
    prefix: &'static str,
    not_found: &'static str,
    malformed: &'static str,
    noun: &'static str,
}

impl Cloud {
    pub(super) fn describe_regions(&self, request: &DescribeRegions) -> Result<Response, Ec2Error> {
        check_filters::<super::Region>(&request.filters)?;
        for name in &request.region_names {
            if !REGIONS.iter().any(|region| region.name == name) {
                return Err(Ec2Error::invalid_value(format!("Invalid region name: '{name}'")));
            }
        }
        let regions = REGIONS
            .iter()
            .filter(|region| request.all_regions || region.opt_in_status != "not-opted-in")
            .filter(|region| {
                request.region_names.is_empty()
                    || request.region_names.iter().any(|name| name == region.name)
            })
            .filter(|region| matches_filters(*region, &request.filters))
            .cloned()
            .collect();
        Ok(Response::Regions(regions))
    }

    pub(super) fn describe_zones(
        &self,
        request: &DescribeAvailabilityZones,
    ) -> Result<Response, Ec2Error> {
        check_filters::<super::Zone>(&request.filters)?;
        let unknown =
            request.zone_names.iter().find(|name| self.world.zone(name).is_none()).or_else(|| {
                request
                    .zone_ids
                    .iter()
                    .find(|id| !self.world.zones.iter().any(|zone| zone.id == **id))
            });
        if let Some(unknown) = unknown {
            return Err(Ec2Error::invalid_value(format!("Invalid availability zone: [{unknown}]")));
        }
        let zones = self
            .world
            .zones
            .iter()
            .filter(|zone| request.zone_names.is_empty() || request.zone_names.contains(&zone.name))
            .filter(|zone| request.zone_ids.is_empty() || request.zone_ids.contains(&zone.id))
            .filter(|zone| matches_filters(*zone, &request.filters))
            .cloned()
            .collect();
        Ok(Response::AvailabilityZones(zones))
    }

    pub(super) fn describe_vpcs(&self, request: &DescribeResources) -> Result<Response, Ec2Error> {
        let kind = Kind {
            action: "DescribeVpcs",
            prefix: "vpc",
            not_found: "InvalidVpcID.NotFound",
            malformed: "InvalidVpcID.Malformed",
            noun: "vpc ID",
        };
        describe(&kind, &self.world.vpcs, request).map(Response::Vpcs)
    }

    pub(super) fn describe_dhcp_options(
        &self,
        request: &DescribeResources,
    ) -> Result<Response, Ec2Error> {
        let kind = Kind {
            action: "DescribeDhcpOptions",
            prefix: "dopt",
            not_found: "InvalidDhcpOptionID.NotFound",
            malformed: "InvalidDhcpOptionsID.Malformed",
            noun: "dhcp option ID",
        };
        describe(&kind, &self.world.dhcp_options, request).map(Response::DhcpOptions)
    }

    pub(super) fn describe_subnets(
        &self,
        request: &DescribeResources,
    ) -> Result<Response, Ec2Error> {
        let kind = Kind {
            action: "DescribeSubnets",
            prefix: "subnet",
            not_found: "InvalidSubnetID.NotFound",
            malformed: "InvalidSubnetID.Malformed",
            noun: "subnet ID",
        };
        describe(&kind, &self.world.subnets, request).map(Response::Subnets)
    }

    pub(super) fn describe_security_groups(
        &self,
        request: &DescribeResources,
    ) -> Result<Response, Ec2Error> {
        let kind = Kind {
            action: "DescribeSecurityGroups",
            prefix: "sg",
            not_found: "InvalidGroup.NotFound",
            malformed: "InvalidGroupId.Malformed",
            noun: "security group",
        };
        let mut page = describe(&kind, &self.world.security_groups, request)?;
        for name in &request.names {
            if !self.world.security_groups.values().any(|group| group.name == *name) {
                return Err(Ec2Error::new(
                    "InvalidGroup.NotFound",
                    format!("The security group '{name}' does not exist"),
                ));
            }
        }
        page.items.retain(|group| request.names.is_empty() || request.names.contains(&group.name));
        Ok(Response::SecurityGroups(page))
    }

    pub(super) fn describe_images(
        &self,
        request: &DescribeResources,
    ) -> Result<Response, Ec2Error> {
        let kind = Kind {
            action: "DescribeImages",
            prefix: "ami",
            not_found: "InvalidAMIID.NotFound",
            malformed: "InvalidAMIID.Malformed",
            noun: "image id",
        };
        let mut page = describe(&kind, &self.world.images, request)?;
        page.items.retain(|image| {
            request.owners.is_empty()
                || request.owners.iter().any(|owner| owner == "self" || *owner == image.owner_id)
        });
        Ok(Response::Images(page))
    }

    pub(super) fn describe_instance_types(
        &self,
        request: &DescribeResources,
    ) -> Result<Response, Ec2Error> {
        check_filters::<super::InstanceType>(&request.filters)?;
        let unknown: Vec<&str> = request
            .ids
            .iter()
            .map(String::as_str)
            .filter(|name| super::instance_type(name).is_none())
            .collect();
        if !unknown.is_empty() {
            return Err(Ec2Error::new(
                "InvalidInstanceType",
                format!(
                    "The following supplied instance types do not exist: [{}]",
                    unknown.join(", ")
                ),
            ));
        }
        let matching = INSTANCE_TYPES
            .iter()
            .filter(|kind| request.ids.is_empty() || request.ids.iter().any(|id| id == kind.name))
            .filter(|kind| matches_filters(*kind, &request.filters))
            .copied();
        cut_page("DescribeInstanceTypes", &request.page, matching).map(Response::InstanceTypes)
    }
}

fn describe<T: Filterable + Clone>(
    kind: &Kind,
    resources: &BTreeMap<String, T>,
    request: &DescribeResources,
) -> Result<Paged<T>, Ec2Error> {
    check_filters::<T>(&request.filters)?;
    for id in &request.ids {
        if !is_resource_id(id, kind.prefix) {
            return Err(Ec2Error::new(
                kind.malformed,
                format!("Invalid id: \"{id}\" (expecting \"{}-...\")", kind.prefix),
            ));
        }
        if !resources.contains_key(id) {
            return Err(Ec2Error::new(
                kind.not_found,
                format!("The {} '{id}' does not exist", kind.noun),
            ));
        }
    }
    let matching = resources
        .iter()
        .filter(|(id, _)| request.ids.is_empty() || request.ids.contains(id))
        .map(|(_, resource)| resource)
        .filter(|resource| matches_filters(*resource, &request.filters))
        .cloned();
    cut_page(kind.action, &request.page, matching)
}
