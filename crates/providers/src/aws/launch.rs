//! How does a providerSpec become an instance?
//!
//! `prepare` reads and decides everything that can be known beforehand, `launch` makes the one call
//! that has an effect.

use std::{collections::BTreeSet, sync::Arc};

use machinist_core::cloud::Instance;

use super::{
    client::AwsProvider,
    config::{AwsMachineProviderConfig, ResourceFilter, ResourceReference},
    errors::{Attempt, invalid},
    instances::translate,
    lookups::{Selector, Subnet, ZoneType},
    request::{self, Resolved},
};
use crate::{ErrorClass, LaunchRequest, PreparedLaunch, ProviderError};

impl AwsProvider {
    pub(super) async fn prepare_launch(
        &self,
        request: &LaunchRequest,
    ) -> Result<PreparedLaunch, ProviderError> {
        let config = AwsMachineProviderConfig::parse(&request.provider_spec)?;
        self.check_region(&config)?;
        request::check(&config)?;
        let resolved = self.resolve(&config).await?;
        request::build(&config, &resolved, request)?;
        if !config.load_balancers.is_empty() {
            tracing::warn!(
                machine = %request.machine_name,
                "load balancers of the providerSpec are not registered yet"
            );
        }
        let resolved = serde_json::to_value(&resolved).map_err(|error| {
            ProviderError::new(ErrorClass::Unknown, format!("failed to keep a launch: {error}"))
        })?;
        Ok(PreparedLaunch { request: request.clone(), resolved })
    }

    pub(super) async fn launch_instance(
        &self,
        prepared: &PreparedLaunch,
        client_token: &str,
    ) -> Result<Instance, ProviderError> {
        let request = &prepared.request;
        let config = AwsMachineProviderConfig::parse(&request.provider_spec)?;
        let resolved: Resolved =
            serde_json::from_value(prepared.resolved.clone()).map_err(|error| {
                let message = format!("launch was prepared by another provider: {error}");
                ProviderError::new(ErrorClass::Unknown, message)
            })?;
        let input = request::build(&config, &resolved, request)?.client_token(client_token);

        let what = format!("launch an instance for machine {}", request.machine_name);
        let attempt = Attempt::on_launch_input("RunInstances", what);
        let ec2 = Arc::clone(&self.ec2);
        let launched = ec2.call(&attempt, input.send_with(&ec2.client)).await;
        let answer = launched.inspect_err(|error| {
            if matches!(error.class, ErrorClass::InvalidConfiguration | ErrorClass::NotFound) {
                self.lookups.forget_launch_inputs();
            }
        })?;
        let [launched] = answer.instances() else {
            let count = answer.instances().len();
            let message = format!("failed to {}: {count} instances in the answer", attempt.what);
            return Err(ProviderError::new(ErrorClass::Unknown, message));
        };
        // The instance exists now, whatever else fails: its addresses can wait for the next look.
        let domains = match launched.vpc_id() {
            Some(vpc_id) => self.lookups.domains(vpc_id).await.unwrap_or_default(),
            None => Vec::new(),
        };
        translate(launched, &ec2.region, &domains)
    }

    /// The client signs and sends for one region: another one's ids would mean nothing here.
    fn check_region(&self, config: &AwsMachineProviderConfig) -> Result<(), ProviderError> {
        match config.region() {
            Some(region) if region != self.ec2.region => Err(invalid(
                "providerSpec.placement.region",
                format_args!("{region:?} is not the region {:?} of this provider", self.ec2.region),
            )),
            Some(_) | None => Ok(()),
        }
    }

    async fn resolve(&self, config: &AwsMachineProviderConfig) -> Result<Resolved, ProviderError> {
        let image = self.lookups.image(image_selector(config)?).await?;
        let subnet = self.resolve_subnet(config).await?;
        let security_group_ids = self.resolve_security_groups(&config.security_groups).await?;
        let carrier_ip = match (&subnet.zone, config.public_ip) {
            (Some(zone), Some(_)) => self.lookups.zone_type(zone).await? == ZoneType::Wavelength,
            _ => false,
        };
        Ok(Resolved {
            image_id: image.id,
            root_device_name: image.root_device_name,
            subnet_id: subnet.id,
            security_group_ids,
            carrier_ip,
        })
    }

    async fn resolve_subnet(
        &self,
        config: &AwsMachineProviderConfig,
    ) -> Result<Subnet, ProviderError> {
        let zone = config.availability_zone();
        let reference = config.subnet.as_ref();
        let selector = if let Some(id) = reference.and_then(|subnet| subnet.id.clone()) {
            Selector::Ids(vec![id])
        } else {
            let in_zone = zone.map(|zone| ResourceFilter {
                name: "availabilityZone".to_owned(),
                values: vec![zone.to_owned()],
            });
            let named = reference.into_iter().flat_map(|subnet| subnet.filters.iter().cloned());
            let filters: Vec<_> = in_zone.into_iter().chain(named).collect();
            if filters.is_empty() {
                return Err(invalid(
                    "providerSpec.subnet",
                    "expected an id, filters, or providerSpec.placement.availabilityZone",
                ));
            }
            Selector::Filters(filters)
        };
        let subnets = self.lookups.subnets(selector.clone()).await?;
        if subnets.len() > 1 {
            tracing::warn!(%selector, "several subnets found, the first by id is used");
        }
        let Some(subnet) = subnets.into_iter().next() else {
            return Err(invalid("providerSpec.subnet", format_args!("no subnet found {selector}")));
        };
        if let (Some(wanted), Some(found)) = (zone, subnet.zone.as_deref())
            && wanted != found
        {
            tracing::warn!(
                subnet = %subnet.id,
                "providerSpec.placement.availabilityZone is {wanted}, the subnet's is {found}"
            );
        }
        Ok(subnet)
    }

    async fn resolve_security_groups(
        &self,
        references: &[ResourceReference],
    ) -> Result<Vec<String>, ProviderError> {
        let mut groups = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for (index, reference) in references.iter().enumerate() {
            if let Some(id) = &reference.id {
                ids.insert(id.clone());
            } else if reference.filters.is_empty() {
                // Without filters EC2 answers with every group of the account.
                let field = format!("providerSpec.securityGroups[{index}]");
                return Err(invalid(&field, "expected an id or filters"));
            } else {
                let selector = Selector::Filters(reference.filters.clone());
                groups.extend(self.lookups.security_groups(selector).await?);
            }
        }
        if !ids.is_empty() {
            let selector = Selector::Ids(ids.into_iter().collect());
            groups.extend(self.lookups.security_groups(selector).await?);
        }
        if groups.is_empty() {
            return Err(invalid("providerSpec.securityGroups", "no security group found"));
        }
        Ok(groups.into_iter().collect())
    }
}

fn image_selector(config: &AwsMachineProviderConfig) -> Result<Selector, ProviderError> {
    match &config.ami {
        Some(ResourceReference { id: Some(id), .. }) => Ok(Selector::Ids(vec![id.clone()])),
        Some(ResourceReference { filters, .. }) if !filters.is_empty() => {
            Ok(Selector::Filters(filters.clone()))
        }
        Some(_) | None => Err(invalid("providerSpec.ami", "expected an id or filters")),
    }
}
