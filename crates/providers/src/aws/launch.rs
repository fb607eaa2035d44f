//! How does a providerSpec become an instance?
//!
//! `prepare` reads and decides everything that can be known beforehand, `launch` makes the calls that
//! have an effect: one, and before it the one that allocates a host where a host is wanted.

use std::collections::BTreeSet;

use machinist_core::cloud::Instance;

use super::{
    actions::Action,
    client::AwsProvider,
    config::{AwsMachineProviderConfig, ResourceFilter, ResourceReference},
    errors::{Attempt, invalid},
    hosts::{WantedHost, wanted_host},
    instances::translate,
    lookups::{Selector, Subnet, ZoneType},
    redaction,
    request::{self, Resolved},
};
use crate::{ErrorClass, LaunchRequest, PreparedLaunch, ProviderError};

impl AwsProvider {
    pub(super) async fn prepare_launch(
        &self,
        request: &LaunchRequest,
    ) -> Result<PreparedLaunch, ProviderError> {
        self.regions.check().await?;
        let config = AwsMachineProviderConfig::parse(&request.provider_spec)?;
        self.check_region(&config)?;
        request::check(&config)?;
        let resolved = self.resolve(&config).await?;
        request::build(&config, &resolved, request)?;
        if matches!(wanted_host(&config)?, WantedHost::Dynamic(_)) {
            zone_of_host(&resolved)?;
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
        let mut resolved: Resolved =
            serde_json::from_value(prepared.resolved.clone()).map_err(|error| {
                let message = format!("launch was prepared by another provider: {error}");
                ProviderError::new(ErrorClass::Unknown, message)
            })?;
        let wanted_host = wanted_host(&config)?;
        if let WantedHost::Dynamic(tags) = &wanted_host {
            let instance_type = request::required_instance_type(&config)?;
            let zone = zone_of_host(&resolved)?.to_owned();
            let host = self
                .allocate_host(request, instance_type.as_str(), &zone, tags, client_token)
                .await?;
            resolved.host_id = Some(host);
        }
        let launched = self.run_instance(&config, &resolved, request, client_token).await;
        match (&launched, &wanted_host, &resolved.host_id) {
            (Ok(_), WantedHost::UserProvided(host), _) => {
                self.mark_host_as_shared(host, &request.cluster_id).await;
            }
            (Err(error), WantedHost::Dynamic(_), Some(host)) if is_refusal(error.class) => {
                self.release_unused_host(host, &request.machine_name).await;
            }
            _ => {}
        }
        launched
    }

    /// Makes the one call that launches.
    async fn run_instance(
        &self,
        config: &AwsMachineProviderConfig,
        resolved: &Resolved,
        request: &LaunchRequest,
        client_token: &str,
    ) -> Result<Instance, ProviderError> {
        let input = request::build(config, resolved, request)?.client_token(client_token);
        let what = format!("launch an instance for machine {}", request.machine_name);
        let attempt = Attempt::on_launch_input(Action::RunInstances, what);
        let launched = self.cloud.call(&attempt, input.send_with(&self.cloud.ec2)).await;
        let launched = launched.map_err(|error| without_user_data(error, request));
        let answer = match (launched, &resolved.host_id) {
            (Err(error), Some(host)) if is_about_a_host(&error) => {
                return Err(self.blame_host(error, host).await);
            }
            (Err(error), _) => {
                if matches!(error.class, ErrorClass::InvalidConfiguration | ErrorClass::NotFound) {
                    self.lookups.forget_launch_inputs();
                }
                return Err(error);
            }
            (Ok(answer), _) => answer,
        };
        let [launched] = answer.instances() else {
            let count = answer.instances().len();
            return Err(
                attempt.failed(ErrorClass::Unknown, format!("{count} instances in the answer"))
            );
        };
        // The instance exists now, whatever else fails: its addresses can wait for the next look.
        let domains = match launched.vpc_id() {
            Some(vpc_id) => self.lookups.domains(vpc_id).await.unwrap_or_default(),
            None => Vec::new(),
        };
        translate(launched, &self.cloud.region, &domains)
    }

    /// Classes a refusal of the host that was allocated for this launch, which is never the
    /// configuration's fault. A host that is gone was given back after an earlier refusal: its
    /// token, and so the launch's, can never launch anything any more.
    async fn blame_host(&self, error: ProviderError, host_id: &str) -> ProviderError {
        let class = match self.host_is_held(host_id).await {
            Ok(false) => ErrorClass::TokenMismatch,
            Ok(true) | Err(_) => ErrorClass::Transient,
        };
        ProviderError { class, ..error }
    }

    /// The client signs and sends for one region: another one's ids would mean nothing here.
    fn check_region(&self, config: &AwsMachineProviderConfig) -> Result<(), ProviderError> {
        match config.region() {
            Some(region) if region != self.cloud.region => Err(invalid(
                "providerSpec.placement.region",
                format_args!(
                    "{region:?} is not the region {:?} of this provider",
                    self.cloud.region
                ),
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
            zone: subnet.zone.or_else(|| config.availability_zone().map(str::to_owned)),
            subnet_id: subnet.id,
            security_group_ids,
            carrier_ip,
            host_id: None,
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

/// Where a host of the machine's own is allocated: a host has one zone, and so has a subnet.
fn zone_of_host(resolved: &Resolved) -> Result<&str, ProviderError> {
    resolved.zone.as_deref().ok_or_else(|| {
        invalid("providerSpec.placement.availabilityZone", "expected a zone for the dedicated host")
    })
}

/// Whether an error of the launch proves that it had no effect, so that its host is not in use.
fn is_refusal(class: ErrorClass) -> bool {
    match class {
        ErrorClass::Throttled
        | ErrorClass::InvalidConfiguration
        | ErrorClass::NotFound
        | ErrorClass::QuotaExceeded
        | ErrorClass::InsufficientCapacity
        | ErrorClass::Unauthorized => true,
        ErrorClass::Transient | ErrorClass::TokenMismatch | ErrorClass::Unknown => false,
    }
}

/// EC2 may repeat what it was given, and user data holds bootstrap credentials (Rule 13).
fn without_user_data(error: ProviderError, request: &LaunchRequest) -> ProviderError {
    match &request.user_data {
        Some(data) => {
            ProviderError { message: redaction::without(&error.message, &data.0), ..error }
        }
        None => error,
    }
}

fn is_about_a_host(error: &ProviderError) -> bool {
    error.code.as_deref().is_some_and(|code| code.starts_with("InvalidHost"))
}
