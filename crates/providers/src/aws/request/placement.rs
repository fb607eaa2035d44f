//! Where does the instance run: zone, group, tenancy, host?

use aws_sdk_ec2::types::{Placement as Ec2Placement, Tenancy as Ec2Tenancy};

use super::super::{
    config::{AwsMachineProviderConfig, HostAffinity, Placement, Tenancy},
    errors::invalid,
    hosts::{WantedHost, wanted_host},
};
use crate::ProviderError;

/// The placement; `allocated_host` is the one that was allocated for this launch.
pub(super) fn placement(
    config: &AwsMachineProviderConfig,
    allocated_host: Option<&str>,
) -> Result<Option<Ec2Placement>, ProviderError> {
    let wanted = config.placement.clone().unwrap_or_default();
    let host_id = match wanted_host(config)? {
        WantedHost::None => None,
        WantedHost::UserProvided(id) => Some(id),
        WantedHost::Dynamic(_) => allocated_host.map(str::to_owned),
    };
    let affinity = host_affinity(&wanted, config)?;
    let tenancy = wanted.tenancy.map(|tenancy| match tenancy {
        Tenancy::Default => Ec2Tenancy::Default,
        Tenancy::Dedicated => Ec2Tenancy::Dedicated,
        Tenancy::Host => Ec2Tenancy::Host,
    });
    // A subnet given by id has its zone; a second opinion could only contradict it.
    let subnet_by_id = config.subnet.as_ref().is_some_and(|subnet| subnet.id.is_some());
    let zone = wanted.availability_zone.filter(|_| !subnet_by_id);
    check_partition(config)?;
    let placement = Ec2Placement::builder()
        .set_availability_zone(zone)
        .set_tenancy(tenancy)
        .set_affinity(affinity.map(str::to_owned))
        .set_host_id(host_id)
        .set_group_name(config.placement_group_name.clone())
        .set_partition_number(config.placement_group_partition)
        .build();
    Ok((placement != Ec2Placement::builder().build()).then_some(placement))
}

/// Whether the instance returns to its host after a stop, in EC2's words.
fn host_affinity(
    wanted: &Placement,
    config: &AwsMachineProviderConfig,
) -> Result<Option<&'static str>, ProviderError> {
    const HOST: &str = "providerSpec.placement.host";
    let Some(host) = &wanted.host else { return Ok(None) };
    let affinity = match (host.affinity, wanted_host(config)?) {
        (None, _) => {
            return Err(invalid(
                &format!("{HOST}.affinity"),
                "expected AnyAvailable or DedicatedHost",
            ));
        }
        (Some(HostAffinity::DedicatedHost), WantedHost::None) => {
            return Err(invalid(
                &format!("{HOST}.dedicatedHost.id"),
                "expected an id with affinity DedicatedHost",
            ));
        }
        (Some(HostAffinity::AnyAvailable), WantedHost::Dynamic(_)) => {
            return Err(invalid(
                &format!("{HOST}.affinity"),
                "AnyAvailable does not go with a host of the machine's own",
            ));
        }
        (Some(HostAffinity::DedicatedHost), _) => "host",
        (Some(HostAffinity::AnyAvailable), _) => "default",
    };
    if wanted.tenancy != Some(Tenancy::Host) {
        return Err(invalid(HOST, "only goes with providerSpec.placement.tenancy host"));
    }
    Ok(Some(affinity))
}

fn check_partition(config: &AwsMachineProviderConfig) -> Result<(), ProviderError> {
    const FIELD: &str = "providerSpec.placementGroupPartition";
    let Some(partition) = config.placement_group_partition else { return Ok(()) };
    if !(1..=7).contains(&partition) {
        return Err(invalid(FIELD, format_args!("{partition} is not between 1 and 7")));
    }
    if config.placement_group_name.is_none() {
        return Err(invalid(FIELD, "expected providerSpec.placementGroupName with it"));
    }
    Ok(())
}
