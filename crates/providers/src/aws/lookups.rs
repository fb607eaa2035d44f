//! Which image, subnet and groups does a providerSpec mean, and which domains does a VPC have?
//!
//! Reads only. An id is looked up too, so that a wrong one is known before anything is launched.
//! Answers are kept for a while (`memory`), so that a fleet does not ask once for each machine.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use aws_sdk_ec2::types::{Filter, ImageState};

use super::{
    actions::Action,
    client::Cloud,
    config::ResourceFilter,
    errors::{Attempt, invalid},
    memory::Memory,
};
use crate::ProviderError;

/// What an id stands for hardly ever changes. Doubled, a machine may be launched into a subnet
/// that somebody deleted so long ago; the launch then fails and forgets everything.
const KEEP_BY_ID: Duration = Duration::from_secs(600);

/// What filters match changes whenever a new image appears. Doubled, machines get the former image
/// for that long.
const KEEP_BY_FILTERS: Duration = Duration::from_secs(60);

/// A VPC's domains are part of each machine's addresses and change next to never.
const KEEP_DOMAINS: Duration = Duration::from_secs(3_600);

/// By what something is looked up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Selector {
    Ids(Vec<String>),
    Filters(Vec<ResourceFilter>),
}

impl Selector {
    fn keep_for(&self) -> Duration {
        match self {
            Self::Ids(_) => KEEP_BY_ID,
            Self::Filters(_) => KEEP_BY_FILTERS,
        }
    }

    fn into_parameters(self) -> (Option<Vec<String>>, Option<Vec<Filter>>) {
        match self {
            Self::Ids(ids) => (Some(ids), None),
            Self::Filters(filters) => (None, Some(filters.into_iter().map(ec2_filter).collect())),
        }
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ids(ids) => formatter.write_str(&ids.join(", ")),
            Self::Filters(filters) => {
                let shown: Vec<_> = filters
                    .iter()
                    .map(|filter| format!("{}={}", filter.name, filter.values.join(",")))
                    .collect();
                write!(formatter, "by filters [{}]", shown.join("; "))
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Image {
    pub id: String,
    pub root_device_name: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Subnet {
    pub id: String,
    pub zone: Option<String>,
}

/// Whether the machines of a zone reach the world through a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneType {
    Wavelength,
    Other,
}

pub(super) struct Lookups {
    cloud: Arc<Cloud>,
    images: Memory<Selector, Image>,
    subnets: Memory<Selector, Vec<Subnet>>,
    security_groups: Memory<Selector, Vec<String>>,
    zone_types: Memory<String, ZoneType>,
    domains: Memory<String, Vec<String>>,
}

impl Lookups {
    pub fn new(cloud: Arc<Cloud>) -> Self {
        Self {
            cloud,
            images: Memory::default(),
            subnets: Memory::default(),
            security_groups: Memory::default(),
            zone_types: Memory::default(),
            domains: Memory::default(),
        }
    }

    /// Forgets what launches rely on, after one of them showed that it may be wrong.
    pub fn forget_launch_inputs(&self) {
        self.images.forget_all();
        self.subnets.forget_all();
        self.security_groups.forget_all();
        self.zone_types.forget_all();
    }

    /// The image; of several the newest that can be launched.
    pub async fn image(&self, selector: Selector) -> Result<Image, ProviderError> {
        let cloud = Arc::clone(&self.cloud);
        let (question, keep_for) = (selector.clone(), selector.keep_for());
        self.images
            .ask(question, keep_for, || async move { find_image(&cloud, selector).await })
            .await
    }

    /// The subnets, sorted by id; filters may match none.
    pub async fn subnets(&self, selector: Selector) -> Result<Vec<Subnet>, ProviderError> {
        let cloud = Arc::clone(&self.cloud);
        let (question, keep_for) = (selector.clone(), selector.keep_for());
        self.subnets
            .ask(question, keep_for, || async move { find_subnets(&cloud, selector).await })
            .await
    }

    /// The ids of the groups, sorted; filters may match none.
    pub async fn security_groups(&self, selector: Selector) -> Result<Vec<String>, ProviderError> {
        let cloud = Arc::clone(&self.cloud);
        let (question, keep_for) = (selector.clone(), selector.keep_for());
        self.security_groups
            .ask(question, keep_for, || async move { find_security_groups(&cloud, selector).await })
            .await
    }

    pub async fn zone_type(&self, zone: &str) -> Result<ZoneType, ProviderError> {
        let cloud = Arc::clone(&self.cloud);
        let zone = zone.to_owned();
        let question = zone.clone();
        self.zone_types
            .ask(question, KEEP_BY_ID, || async move { find_zone_type(&cloud, zone).await })
            .await
    }

    /// The domains that the VPC's DHCP options name.
    ///
    /// Where the account may not read them there are none: an account with the narrowest policy can
    /// still list its instances.
    pub async fn domains(&self, vpc_id: &str) -> Result<Vec<String>, ProviderError> {
        let cloud = Arc::clone(&self.cloud);
        let vpc_id = vpc_id.to_owned();
        let question = vpc_id.clone();
        let lookup = || async move {
            match find_domains(&cloud, vpc_id).await {
                Err(error) if error.missing_permission.is_some() => {
                    tracing::warn!(%error, "machines get no DNS names of the VPC's own domains");
                    Ok(Vec::new())
                }
                result => result,
            }
        };
        self.domains.ask(question, KEEP_DOMAINS, lookup).await
    }
}

fn ec2_filter(filter: ResourceFilter) -> Filter {
    Filter::builder().name(filter.name).set_values(Some(filter.values)).build()
}

async fn find_image(cloud: &Cloud, selector: Selector) -> Result<Image, ProviderError> {
    let attempt =
        Attempt::on_launch_input(Action::DescribeImages, format!("look up image {selector}"));
    let (ids, filters) = selector.clone().into_parameters();
    let call = cloud.ec2.describe_images().set_image_ids(ids).set_filters(filters);
    let answer = cloud.call(&attempt, call.send()).await?;
    // An image that is still being made or was disabled would only fail the launch.
    let newest = answer
        .images()
        .iter()
        .filter(|image| image.state().is_none_or(|state| *state == ImageState::Available))
        .filter_map(|image| Some((image.creation_date(), image.image_id()?, image)))
        .max_by_key(|(created, id, _)| (*created, *id));
    let Some((_, id, image)) = newest else {
        return Err(invalid("providerSpec.ami", format_args!("no image found {selector}")));
    };
    Ok(Image { id: id.to_owned(), root_device_name: image.root_device_name().map(str::to_owned) })
}

async fn find_subnets(cloud: &Cloud, selector: Selector) -> Result<Vec<Subnet>, ProviderError> {
    let attempt =
        Attempt::on_launch_input(Action::DescribeSubnets, format!("look up subnet {selector}"));
    let (ids, filters) = selector.into_parameters();
    let call = cloud.ec2.describe_subnets().set_subnet_ids(ids).set_filters(filters);
    let answer = cloud.call(&attempt, call.send()).await?;
    let mut subnets: Vec<_> = answer
        .subnets()
        .iter()
        .filter_map(|subnet| {
            let id = subnet.subnet_id()?.to_owned();
            Some(Subnet { id, zone: subnet.availability_zone().map(str::to_owned) })
        })
        .collect();
    // A repeated launch must choose the same one, or its token no longer matches.
    subnets.sort_by(|left, right| left.id.cmp(&right.id));
    Ok(subnets)
}

async fn find_security_groups(
    cloud: &Cloud,
    selector: Selector,
) -> Result<Vec<String>, ProviderError> {
    let what = format!("look up security groups {selector}");
    let attempt = Attempt::on_launch_input(Action::DescribeSecurityGroups, what);
    let (ids, filters) = selector.into_parameters();
    let call = cloud.ec2.describe_security_groups().set_group_ids(ids).set_filters(filters);
    let answer = cloud.call(&attempt, call.send()).await?;
    let groups = answer.security_groups().iter();
    let ids: BTreeSet<_> = groups.filter_map(|group| group.group_id().map(str::to_owned)).collect();
    Ok(ids.into_iter().collect())
}

async fn find_zone_type(cloud: &Cloud, zone: String) -> Result<ZoneType, ProviderError> {
    let what = format!("look up availability zone {zone}");
    let attempt = Attempt::on_launch_input(Action::DescribeAvailabilityZones, what);
    let call = cloud.ec2.describe_availability_zones().zone_names(zone);
    let answer = cloud.call(&attempt, call.send()).await?;
    let is_wavelength =
        answer.availability_zones().iter().any(|zone| zone.zone_type() == Some("wavelength-zone"));
    Ok(if is_wavelength { ZoneType::Wavelength } else { ZoneType::Other })
}

async fn find_domains(cloud: &Cloud, vpc_id: String) -> Result<Vec<String>, ProviderError> {
    let attempt = Attempt::on_instances(Action::DescribeVpcs, format!("look up vpc {vpc_id}"));
    // By filter, as a VPC that is gone by now has no domains and is no error.
    let by_id = Filter::builder().name("vpc-id").values(vpc_id.clone()).build();
    let answer = cloud.call(&attempt, cloud.ec2.describe_vpcs().filters(by_id).send()).await?;
    let Some(options_id) = answer.vpcs().first().and_then(|vpc| vpc.dhcp_options_id()) else {
        return Ok(Vec::new());
    };
    // A VPC without options says `default`, which is no id.
    if options_id == "default" {
        return Ok(Vec::new());
    }
    let what = format!("look up dhcp options {options_id} of vpc {vpc_id}");
    let attempt = Attempt::on_instances(Action::DescribeDhcpOptions, what);
    let by_id = Filter::builder().name("dhcp-options-id").values(options_id).build();
    let call = cloud.ec2.describe_dhcp_options().filters(by_id);
    let answer = cloud.call(&attempt, call.send()).await?;
    let domains = answer
        .dhcp_options()
        .iter()
        .flat_map(|options| options.dhcp_configurations())
        .filter(|configuration| configuration.key() == Some("domain-name"))
        .flat_map(|configuration| configuration.values())
        .filter_map(|value| value.value())
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect();
    Ok(domains)
}
