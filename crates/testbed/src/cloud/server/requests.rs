//! Which request do the parameters make? One reader for each action.

use crate::cloud::model::{
    CreateTags, DeleteTags, DescribeAvailabilityZones, DescribeInstanceStatus, DescribeInstances,
    DescribeRegions, DescribeResources, Ec2Error, Filter, InstanceIds,
    ModifyInstanceEventStartTime, Page, Request, Tag, TagKey,
};

use super::{launch_request::read_run_instances, query::Parameters};

pub fn read_request(action: &str, pairs: Vec<(String, String)>) -> Result<Request, Ec2Error> {
    let mut parameters = Parameters::from_pairs(pairs)?;
    parameters.string("Action");
    parameters.string("Version");
    let request = match action {
        "" => {
            return Err(Ec2Error::new(
                "MissingAction",
                "The request is missing an action or a required parameter",
            ));
        }
        "RunInstances" => Request::RunInstances(read_run_instances(&mut parameters)?.into()),
        "DescribeInstances" => Request::DescribeInstances(DescribeInstances {
            instance_ids: parameters.strings("InstanceId")?,
            filters: filters(&mut parameters)?,
            page: page(&mut parameters)?,
            dry_run: dry_run(&mut parameters)?,
        }),
        "DescribeInstanceStatus" => Request::DescribeInstanceStatus(DescribeInstanceStatus {
            instance_ids: parameters.strings("InstanceId")?,
            filters: filters(&mut parameters)?,
            page: page(&mut parameters)?,
            include_all_instances: parameters.boolean("IncludeAllInstances")?.unwrap_or(false),
            dry_run: dry_run(&mut parameters)?,
        }),
        "TerminateInstances" => Request::TerminateInstances(instance_ids(&mut parameters)?),
        "StopInstances" => Request::StopInstances(instance_ids(&mut parameters)?),
        "StartInstances" => Request::StartInstances(instance_ids(&mut parameters)?),
        "RebootInstances" => Request::RebootInstances(instance_ids(&mut parameters)?),
        "CreateTags" => Request::CreateTags(CreateTags {
            resources: parameters.strings("ResourceId")?,
            tags: tags(&mut parameters)?,
            dry_run: dry_run(&mut parameters)?,
        }),
        "DeleteTags" => Request::DeleteTags(DeleteTags {
            resources: parameters.strings("ResourceId")?,
            tags: tag_keys(&mut parameters)?,
            dry_run: dry_run(&mut parameters)?,
        }),
        "ModifyInstanceEventStartTime" => {
            Request::ModifyInstanceEventStartTime(ModifyInstanceEventStartTime {
                instance_id: parameters.required_string("InstanceId")?,
                instance_event_id: parameters.required_string("InstanceEventId")?,
                not_before: parameters
                    .timestamp("NotBefore")?
                    .ok_or_else(|| Ec2Error::missing_parameter("NotBefore"))?,
                dry_run: dry_run(&mut parameters)?,
            })
        }
        "DescribeRegions" => Request::DescribeRegions(DescribeRegions {
            region_names: parameters.strings("RegionName")?,
            all_regions: parameters.boolean("AllRegions")?.unwrap_or(false),
            filters: filters(&mut parameters)?,
            dry_run: dry_run(&mut parameters)?,
        }),
        "DescribeAvailabilityZones" => {
            // Local and Wavelength zones do not exist here, so "all zones" shows the same ones.
            parameters.boolean("AllAvailabilityZones")?;
            Request::DescribeAvailabilityZones(DescribeAvailabilityZones {
                zone_names: parameters.strings("ZoneName")?,
                zone_ids: parameters.strings("ZoneId")?,
                filters: filters(&mut parameters)?,
                dry_run: dry_run(&mut parameters)?,
            })
        }
        "DescribeVpcs" => Request::DescribeVpcs(resources(&mut parameters, "VpcId")?),
        "DescribeDhcpOptions" => {
            Request::DescribeDhcpOptions(resources(&mut parameters, "DhcpOptionsId")?)
        }
        "DescribeSubnets" => Request::DescribeSubnets(resources(&mut parameters, "SubnetId")?),
        "DescribeSecurityGroups" => {
            let names = parameters.strings("GroupName")?;
            let resources = resources(&mut parameters, "GroupId")?;
            Request::DescribeSecurityGroups(DescribeResources { names, ..resources })
        }
        "DescribeImages" => {
            let owners = parameters.strings("Owner")?;
            // Every image here belongs to the caller and is neither deprecated nor disabled.
            parameters.strings("ExecutableBy")?;
            parameters.boolean("IncludeDeprecated")?;
            parameters.boolean("IncludeDisabled")?;
            let resources = resources(&mut parameters, "ImageId")?;
            Request::DescribeImages(DescribeResources { owners, ..resources })
        }
        "DescribeInstanceTypes" => {
            parameters.boolean("IncludeUnsupportedInRegion")?;
            Request::DescribeInstanceTypes(resources(&mut parameters, "InstanceType")?)
        }
        other => {
            return Err(Ec2Error::new(
                "InvalidAction",
                format!("The action {other} is not valid for this web service."),
            ));
        }
    };
    parameters.boolean("IncludeManagedResources")?;
    parameters.finish()?;
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
