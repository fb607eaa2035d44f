//! Is the region one that the account may use?
//!
//! Only asked about regions that are newer than this program's table: of the others AWS itself says
//! so soon enough, and no call is spent on them.

use std::{sync::Arc, time::Duration};

use aws_sdk_ec2::{config::Region, types::Region as Ec2Region};

use super::{
    actions::Action,
    client::Cloud,
    errors::{Attempt, invalid},
    memory::Memory,
};
use crate::ProviderError;

/// How long an answer holds. Doubled, a region that was just opted in to is refused that much
/// longer by those that asked before.
const KEEP: Duration = Duration::from_secs(1_800);

/// The regions in the SDK's own table, which it keeps to itself.
const KNOWN: [&str; 46] = [
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-central-1",
    "ca-west-1",
    "cn-north-1",
    "cn-northwest-1",
    "eu-central-1",
    "eu-central-2",
    "eu-isoe-west-1",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "eusc-de-east-1",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-gov-east-1",
    "us-gov-west-1",
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-east-1",
    "us-isof-south-1",
    "us-west-1",
    "us-west-2",
];

/// Where regions are asked about: the region in question may have no endpoint at all.
const ASKED_IN: &str = "us-east-1";

/// A region and whether the account opted in to it, in AWS's words.
#[derive(Clone, Debug)]
struct ListedRegion {
    name: String,
    opt_in: String,
}

pub(super) struct Regions {
    cloud: Arc<Cloud>,
    listed: Memory<(), Vec<ListedRegion>>,
}

impl Regions {
    pub fn new(cloud: Arc<Cloud>) -> Self {
        Self { cloud, listed: Memory::default() }
    }

    /// Fails where AWS does not list the region or the account has not opted in to it.
    ///
    /// An account that may not list regions is not held up: its calls will show.
    pub async fn check(&self) -> Result<(), ProviderError> {
        let region = &self.cloud.region;
        if self.cloud.has_own_ec2_endpoint || KNOWN.contains(&region.as_str()) {
            return Ok(());
        }
        let cloud = Arc::clone(&self.cloud);
        let listed = self.listed.ask((), KEEP, || async move { list(&cloud).await }).await;
        match listed {
            Ok(listed) => check_listed(region, &listed),
            Err(error) if error.missing_permission.is_some() => {
                tracing::warn!(%error, "region {region} is taken as it is");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

async fn list(cloud: &Cloud) -> Result<Vec<ListedRegion>, ProviderError> {
    let attempt = Attempt::on_instances(Action::DescribeRegions, "list the regions");
    let there = aws_sdk_ec2::config::Builder::new().region(Region::from_static(ASKED_IN));
    let call = cloud.ec2.describe_regions().all_regions(true).customize().config_override(there);
    let answer = cloud.call(&attempt, call.send()).await?;
    Ok(answer.regions().iter().filter_map(listed_region).collect())
}

fn listed_region(region: &Ec2Region) -> Option<ListedRegion> {
    Some(ListedRegion {
        name: region.region_name()?.to_owned(),
        opt_in: region.opt_in_status().unwrap_or_default().to_owned(),
    })
}

fn check_listed(region: &str, listed: &[ListedRegion]) -> Result<(), ProviderError> {
    const FIELD: &str = "providerSpec.placement.region";
    match listed.iter().find(|listed| listed.name == region) {
        None => Err(invalid(FIELD, format_args!("there is no region {region:?}"))),
        Some(found) if found.opt_in == "not-opted-in" => {
            Err(invalid(FIELD, format_args!("the account has not opted in to region {region:?}")))
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_must_be_listed_and_opted_in_to() {
        let listed =
            [("xx-new-1", "opted-in"), ("xx-new-2", "not-opted-in")].map(|(name, opt_in)| {
                ListedRegion { name: name.to_owned(), opt_in: opt_in.to_owned() }
            });
        check_listed("xx-new-1", &listed).unwrap();
        let table = [
            ("xx-new-2", "providerSpec.placement.region: the account has not opted in"),
            ("xx-new-3", "providerSpec.placement.region: there is no region \"xx-new-3\""),
        ];
        for (region, expected) in table {
            let error = check_listed(region, &listed).unwrap_err();
            assert!(error.message.starts_with(expected), "{error}");
        }
    }
}
