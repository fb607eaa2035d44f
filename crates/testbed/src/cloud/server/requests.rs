//! Which request do the parameters make? One reader for each action.

use crate::cloud::model::{
    AllocateHosts, CreateTags, DeleteTags, DescribeAvailabilityZones, DescribeHosts,
    DescribeInstanceStatus, DescribeInstances, DescribeRegions, DescribeResources, Ec2Error,
    Filter, InstanceIds, ModifyInstanceEventStartTime, ModifyInstanceMaintenanceOptions, Page,
    ReleaseHosts, Request, Service, Tag, TagKey,
};

use super::{
    elb_requests::{read_elb_request, read_elbv2_request},
    launch_request::{items, read_run_instances, tag_specification},
    query::Parameters,
};

pub fn read_request(
    service: Service,
    action: &str,
    pairs: Vec<(String, String)>,
) -> Result<Request, Ec2Error> {
    let mut parameters = Parameters::from_pairs(pairs)?;
    parameters.string("Action");
    parameters.string("Version");
    if action.is_empty() {
        return Err(Ec2Error::new(
            "MissingAction",
            "The request is missing an action or a required parameter",
        ));
    }
    let request = match service {
        Service::Ec2 => read_ec2_request(action, &mut parameters)?,
        Service::Elb => Request::Elb(read_elb_request(action, &mut parameters)?),
        Service::Elbv2 => Request::Elbv2(read_elbv2_request(action, &mut parameters)?),
    };
    parameters.finish()?;
    Ok(request)
}

/// Names an action that the service does not have.
pub(super) fn unknown_action(action: &str) -> Ec2Error {
    Ec2Error::new(
        "InvalidAction",
        format!("The action {action} is not valid for this web service."),
    )
}

fn read_ec2_request(action: &str, parameters: &mut Parameters) -> Result<Request, Ec2Error> {
    let request = match action {
        "RunInstances" => Request::RunInstances(read_run_instances(parameters)?.into()),
        "DescribeInstances" => Request::DescribeInstances(DescribeInstances {
            instance_ids: parameters.strings("InstanceId")?,
            filters: filters(parameters)?,
            page: page(parameters)?,
            dry_run: dry_run(parameters)?,
        }),
        "DescribeInstanceStatus" => Request::DescribeInstanceStatus(DescribeInstanceStatus {
            instance_ids: parameters.strings("InstanceId")?,
            filters: filters(parameters)?,
            page: page(parameters)?,
            include_all_instances: parameters.boolean("IncludeAllInstances")?.unwrap_or(false),
            dry_run: dry_run(parameters)?,
        }),
        "TerminateInstances" => Request::TerminateInstances(instance_ids(parameters)?),
        "StopInstances" => Request::StopInstances(instance_ids(parameters)?),
        "StartInstances" => Request::StartInstances(instance_ids(parameters)?),
        "RebootInstances" => Request::RebootInstances(instance_ids(parameters)?),
        "CreateTags" => Request::CreateTags(CreateTags {
            resources: parameters.strings("ResourceId")?,
            tags: tags(parameters)?,
            dry_run: dry_run(parameters)?,
        }),
        "DeleteTags" => Request::DeleteTags(DeleteTags {
            resources: parameters.strings("ResourceId")?,
            tags: tag_keys(parameters)?,
            dry_run: dry_run(parameters)?,
        }),
        "ModifyInstanceEventStartTime" => {
            Request::ModifyInstanceEventStartTime(ModifyInstanceEventStartTime {
                instance_id: parameters.required_string("InstanceId")?,
                instance_event_id: parameters.required_string("InstanceEventId")?,
                not_before: parameters
                    .timestamp("NotBefore")?
                    .ok_or_else(|| Ec2Error::missing_parameter("NotBefore"))?,
                dry_run: dry_run(parameters)?,
            })
        }
        "DescribeRegions" => Request::DescribeRegions(DescribeRegions {
            region_names: parameters.strings("RegionName")?,
            all_regions: parameters.boolean("AllRegions")?.unwrap_or(false),
            filters: filters(parameters)?,
            dry_run: dry_run(parameters)?,
        }),
        "DescribeAvailabilityZones" => {
            // Local and Wavelength zones do not exist here, so "all zones" shows the same ones.
            parameters.boolean("AllAvailabilityZones")?;
            Request::DescribeAvailabilityZones(DescribeAvailabilityZones {
                zone_names: parameters.strings("ZoneName")?,
                zone_ids: parameters.strings("ZoneId")?,
                filters: filters(parameters)?,
                dry_run: dry_run(parameters)?,
            })
        }
        "DescribeVpcs" => Request::DescribeVpcs(resources(parameters, "VpcId")?),
        "DescribeDhcpOptions" => {
            Request::DescribeDhcpOptions(resources(parameters, "DhcpOptionsId")?)
        }
        "DescribeSubnets" => Request::DescribeSubnets(resources(parameters, "SubnetId")?),
        "DescribeSecurityGroups" => {
            let names = parameters.strings("GroupName")?;
            let resources = resources(parameters, "GroupId")?;
            Request::DescribeSecurityGroups(DescribeResources { names, ..resources })
        }
        "DescribeImages" => {
            let owners = parameters.strings("Owner")?;
            // Every image here belongs to the caller and is neither deprecated nor disabled.
            parameters.strings("ExecutableBy")?;
            parameters.boolean("IncludeDeprecated")?;
            parameters.boolean("IncludeDisabled")?;
            let resources = resources(parameters, "ImageId")?;
            Request::DescribeImages(DescribeResources { owners, ..resources })
        }
        "DescribeInstanceTypes" => {
            parameters.boolean("IncludeUnsupportedInRegion")?;
            Request::DescribeInstanceTypes(resources(parameters, "InstanceType")?)
        }
        "ModifyInstanceMaintenanceOptions" => {
            Request::ModifyInstanceMaintenanceOptions(ModifyInstanceMaintenanceOptions {
                instance_id: parameters.required_string("InstanceId")?,
                auto_recovery: parameters.string("AutoRecovery"),
                reboot_migration: parameters.string("RebootMigration"),
                dry_run: dry_run(parameters)?,
            })
        }
        "AllocateHosts" => Request::AllocateHosts(AllocateHosts {
            quantity: parameters.integer("Quantity")?,
            instance_type: parameters.string("InstanceType"),
            instance_family: parameters.string("InstanceFamily"),
            availability_zone: parameters.string("AvailabilityZone"),
            availability_zone_id: parameters.string("AvailabilityZoneId"),
            auto_placement: parameters.string("AutoPlacement"),
            host_recovery: parameters.string("HostRecovery"),
            host_maintenance: parameters.string("HostMaintenance"),
            client_token: parameters.string("ClientToken").filter(|token| !token.is_empty()),
            tag_specifications: items(parameters, "TagSpecification", tag_specification)?,
        }),
        "DescribeHosts" => Request::DescribeHosts(DescribeHosts {
            host_ids: parameters.strings("HostId")?,
            filters: filters(parameters)?,
            page: page(parameters)?,
        }),
        "ReleaseHosts" => {
            Request::ReleaseHosts(ReleaseHosts { host_ids: parameters.strings("HostId")? })
        }
        other => return Err(unknown_action(other)),
    };
    parameters.boolean("IncludeManagedResources")?;
    Ok(request)
}

fn instance_ids(parameters: &mut Parameters) -> Result<InstanceIds, Ec2Error> {
    // How the guest is brought down makes no difference to a guest that does not exist.
    for ignored in ["Force", "SkipOsShutdown"] {
        parameters.boolean(ignored)?;
    }
    parameters.string("AdditionalInfo");
    if parameters.boolean("Hibernate")? == Some(true) {
        return Err(Ec2Error::new(
            "UnsupportedHibernationConfiguration",
            "The simulated cloud does not hibernate instances",
        ));
    }
    Ok(InstanceIds {
        instance_ids: parameters.strings("InstanceId")?,
        dry_run: dry_run(parameters)?,
    })
}

fn resources(parameters: &mut Parameters, id: &str) -> Result<DescribeResources, Ec2Error> {
    Ok(DescribeResources {
        ids: parameters.strings(id)?,
        names: Vec::new(),
        owners: Vec::new(),
        filters: filters(parameters)?,
        page: page(parameters)?,
        dry_run: dry_run(parameters)?,
    })
}

fn filters(parameters: &mut Parameters) -> Result<Vec<Filter>, Ec2Error> {
    parameters
        .list("Filter")?
        .into_iter()
        .map(|mut item| {
            let filter =
                Filter { name: item.required_string("Name")?, values: item.strings("Value")? };
            item.finish()?;
            Ok(filter)
        })
        .collect()
}

fn page(parameters: &mut Parameters) -> Result<Page, Ec2Error> {
    Ok(Page {
        max_results: parameters.integer("MaxResults")?,
        // Some clients send an empty token for the first page.
        next_token: parameters.string("NextToken").filter(|token| !token.is_empty()),
    })
}

pub(super) fn dry_run(parameters: &mut Parameters) -> Result<bool, Ec2Error> {
    Ok(parameters.boolean("DryRun")?.unwrap_or(false))
}

pub(super) fn tags(parameters: &mut Parameters) -> Result<Vec<Tag>, Ec2Error> {
    parameters
        .list("Tag")?
        .into_iter()
        .map(|mut item| {
            let tag = Tag {
                key: item.required_string("Key")?,
                value: item.string("Value").unwrap_or_default(),
            };
            item.finish()?;
            Ok(tag)
        })
        .collect()
}

fn tag_keys(parameters: &mut Parameters) -> Result<Vec<TagKey>, Ec2Error> {
    parameters
        .list("Tag")?
        .into_iter()
        .map(|mut item| {
            let tag = TagKey { key: item.required_string("Key")?, value: item.string("Value") };
            item.finish()?;
            Ok(tag)
        })
        .collect()
}
