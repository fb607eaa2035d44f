//! What does RunInstances get?
//!
//! Pure: from a providerSpec and resolved ids to the parameters of the one call, or to the field that
//! is wrong. What AWS would refuse and can be seen here is refused here.

use std::collections::BTreeSet;

use aws_sdk_ec2::{
    operation::run_instances::builders::RunInstancesInputBuilder,
    types::{
        AmdSevSnpSpecification, BlockDeviceMapping, CapacityReservationSpecification,
        CapacityReservationTarget, CpuOptionsRequest, EbsBlockDevice as Ec2EbsBlockDevice,
        HttpTokensState, IamInstanceProfileSpecification, InstanceInterruptionBehavior,
        InstanceMarketOptionsRequest, InstanceMetadataOptionsRequest,
        InstanceNetworkInterfaceSpecification, InstanceType, MarketType as Ec2MarketType,
        Placement as Ec2Placement, ResourceType, SpotInstanceType,
        SpotMarketOptions as Ec2SpotMarketOptions, Tag, TagSpecification as Ec2TagSpecification,
        Tenancy as Ec2Tenancy, VolumeType,
    },
};
use base64::{Engine, engine::general_purpose::STANDARD};
use machinist_api::names::tag;
use serde::{Deserialize, Serialize};

use super::{
    config::{
        AllocationStrategy, AwsMachineProviderConfig, BlockDevice, ConfidentialCompute,
        EbsBlockDevice, HostAffinity, HostPlacement, MarketType, MetadataAuthentication,
        NetworkInterfaceType, Tenancy,
    },
    errors::invalid,
};
use crate::{LaunchRequest, ProviderError};

/// The names of a providerSpec as ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resolved {
    pub image_id: String,
    pub root_device_name: Option<String>,
    pub subnet_id: String,
    pub security_group_ids: Vec<String>,
    /// Whether a public address is one of a carrier.
    pub carrier_ip: bool,
}

/// Finds what is wrong without asking the cloud.
pub(super) fn check(config: &AwsMachineProviderConfig) -> Result<(), ProviderError> {
    required_instance_type(config)?;
    check_tags(config)?;
    market_options(config)?;
    placement(config)?;
    block_devices(config, Some("/dev/xvda"))?;
    network_interface(config, &Resolved::default())?;
    Ok(())
}

/// Builds the call, complete but for the client token.
pub(super) fn build(
    config: &AwsMachineProviderConfig,
    resolved: &Resolved,
    request: &LaunchRequest,
) -> Result<RunInstancesInputBuilder, ProviderError> {
    check_tags(config)?;
    let tags = tags(config, request);
    let tagged = |resource: ResourceType| {
        Ec2TagSpecification::builder().resource_type(resource).set_tags(Some(tags.clone())).build()
    };
    let user_data = request.user_data.as_ref().map(|data| STANDARD.encode(&data.0));
    Ok(RunInstancesInputBuilder::default()
        .min_count(1)
        .max_count(1)
        .image_id(&resolved.image_id)
        .instance_type(required_instance_type(config)?)
        .set_key_name(config.key_name.clone())
        .set_iam_instance_profile(instance_profile(config))
        .set_user_data(user_data)
        .network_interfaces(network_interface(config, resolved)?)
        .set_placement(placement(config)?)
        .set_block_device_mappings(block_devices(config, resolved.root_device_name.as_deref())?)
        .set_metadata_options(metadata_options(config))
        .set_instance_market_options(market_options(config)?)
        .set_capacity_reservation_specification(capacity_reservation(config))
        .set_cpu_options(cpu_options(config))
        .tag_specifications(tagged(ResourceType::Instance))
        .tag_specifications(tagged(ResourceType::Volume)))
}

fn required_instance_type(
    config: &AwsMachineProviderConfig,
) -> Result<InstanceType, ProviderError> {
    match config.instance_type.as_deref() {
        Some(instance_type) => Ok(InstanceType::from(instance_type)),
        None => Err(invalid("providerSpec.instanceType", "expected an instance type")),
    }
}

fn instance_profile(config: &AwsMachineProviderConfig) -> Option<IamInstanceProfileSpecification> {
    let name = config.iam_instance_profile.as_ref()?.id.as_deref()?;
    Some(IamInstanceProfileSpecification::builder().name(name).build())
}

fn check_tags(config: &AwsMachineProviderConfig) -> Result<(), ProviderError> {
    match config.tags.iter().position(|tag| tag.name.is_empty()) {
        Some(index) => Err(invalid(&format!("providerSpec.tags[{index}].name"), "expected a name")),
        None => Ok(()),
    }
}

/// The tags of the instance and its volumes: the Machine's own, then the cluster's, then those that
/// say whose it is. The first of a name wins, and nobody else gives the names of the last.
fn tags(config: &AwsMachineProviderConfig, request: &LaunchRequest) -> Vec<Tag> {
    let own = config.tags.iter().map(|tag| (tag.name.as_str(), tag.value.as_str()));
    let cluster = request.cluster_tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let cluster_tag = tag::cluster(&request.cluster_id);
    let identity = [
        (cluster_tag.as_str(), tag::OWNED),
        (tag::NAME, request.machine_name.as_str()),
        (tag::MACHINE_UID, request.machine_uid.as_str()),
    ];
    let mut seen = BTreeSet::new();
    own.chain(cluster)
        .filter(|(key, _)| !is_identity_tag(key))
        .chain(identity)
        .filter(|(key, _)| seen.insert(*key))
        .map(|(key, value)| Tag::builder().key(key).value(value).build())
        .collect()
}

fn is_identity_tag(key: &str) -> bool {
    key == tag::NAME || key == tag::MACHINE_UID || key.starts_with(tag::CLUSTER_PREFIX)
}

fn network_interface(
    config: &AwsMachineProviderConfig,
    resolved: &Resolved,
) -> Result<InstanceNetworkInterfaceSpecification, ProviderError> {
    let device_index = match config.device_index {
        Some(index) => in_range("providerSpec.deviceIndex", index)?,
        None => 0,
    };
    let interface_type = config.network_interface_type.map(|kind| match kind {
        NetworkInterfaceType::Ena => "interface".to_owned(),
        NetworkInterfaceType::Efa => "efa".to_owned(),
    });
    let interface = InstanceNetworkInterfaceSpecification::builder()
        .device_index(device_index)
        .subnet_id(&resolved.subnet_id)
        .set_groups(Some(resolved.security_group_ids.clone()))
        .set_interface_type(interface_type);
    let interface = if resolved.carrier_ip {
        interface.set_associate_carrier_ip_address(config.public_ip)
    } else {
        interface.set_associate_public_ip_address(config.public_ip)
    };
    Ok(interface.build())
}

fn placement(config: &AwsMachineProviderConfig) -> Result<Option<Ec2Placement>, ProviderError> {
    let wanted = config.placement.clone().unwrap_or_default();
    let tenancy = wanted.tenancy.map(|tenancy| match tenancy {
        Tenancy::Default => Ec2Tenancy::Default,
        Tenancy::Dedicated => Ec2Tenancy::Dedicated,
        Tenancy::Host => Ec2Tenancy::Host,
    });
    // A subnet given by id has its zone; a second opinion could only contradict it.
    let subnet_by_id = config.subnet.as_ref().is_some_and(|subnet| subnet.id.is_some());
    let zone = wanted.availability_zone.filter(|_| !subnet_by_id);
    let (affinity, host_id) = match &wanted.host {
        Some(host) => host_placement(host)?,
        None => (None, None),
    };
    if let Some(partition) = config.placement_group_partition {
        const FIELD: &str = "providerSpec.placementGroupPartition";
        if !(1..=7).contains(&partition) {
            return Err(invalid(FIELD, format_args!("{partition} is not between 1 and 7")));
        }
        if config.placement_group_name.is_none() {
            return Err(invalid(FIELD, "expected providerSpec.placementGroupName with it"));
        }
    }
    let placement = Ec2Placement::builder()
        .set_availability_zone(zone)
        .set_tenancy(tenancy)
        .set_affinity(affinity)
        .set_host_id(host_id)
        .set_group_name(config.placement_group_name.clone())
        .set_partition_number(config.placement_group_partition)
        .build();
    Ok((placement != Ec2Placement::builder().build()).then_some(placement))
}

/// The affinity and the id of a host.
fn host_placement(host: &HostPlacement) -> Result<(Option<String>, Option<String>), ProviderError> {
    let dedicated = host.dedicated_host.clone().unwrap_or_default();
    if dedicated.allocation_strategy == Some(AllocationStrategy::Dynamic)
        || dedicated.dynamic_host_allocation.is_some()
    {
        return Err(invalid(
            "providerSpec.placement.host.dedicatedHost.allocationStrategy",
            "dynamic allocation of dedicated hosts is not supported yet",
        ));
    }
    match host.affinity {
        Some(HostAffinity::DedicatedHost) if dedicated.id.is_none() => Err(invalid(
            "providerSpec.placement.host.dedicatedHost.id",
            "expected an id with affinity DedicatedHost",
        )),
        Some(HostAffinity::DedicatedHost) => Ok((Some("host".to_owned()), dedicated.id)),
        Some(HostAffinity::AnyAvailable) => Ok((Some("default".to_owned()), dedicated.id)),
        None => Err(invalid(
            "providerSpec.placement.host.affinity",
            "expected AnyAvailable or DedicatedHost",
        )),
    }
}

fn block_devices(
    config: &AwsMachineProviderConfig,
    root_device_name: Option<&str>,
) -> Result<Option<Vec<BlockDeviceMapping>>, ProviderError> {
    let mut mappings = Vec::new();
    let mut root_is_taken = false;
    for (index, device) in config.block_devices.iter().enumerate() {
        if device.ebs.is_none() && device.no_device.is_none() && device.virtual_name.is_none() {
            continue;
        }
        let field = format!("providerSpec.blockDevices[{index}]");
        let name = match (&device.device_name, root_device_name) {
            (Some(name), _) => name.as_str(),
            (None, Some(root)) if !root_is_taken => {
                root_is_taken = true;
                root
            }
            (None, Some(_)) => return Err(invalid(&field, "non root device must have name")),
            (None, None) => {
                return Err(invalid(&field, "the image names no root device, so a name is needed"));
            }
        };
        mappings.push(block_device(&field, name, device)?);
    }
    Ok((!mappings.is_empty()).then_some(mappings))
}

fn block_device(
    field: &str,
    name: &str,
    device: &BlockDevice,
) -> Result<BlockDeviceMapping, ProviderError> {
    let ebs = match &device.ebs {
        Some(ebs) => Some(ebs_block_device(field, ebs)?),
        None => None,
    };
    Ok(BlockDeviceMapping::builder()
        .device_name(name)
        .set_ebs(ebs)
        .set_no_device(device.no_device.clone())
        .set_virtual_name(device.virtual_name.clone())
        .build())
}

fn ebs_block_device(field: &str, ebs: &EbsBlockDevice) -> Result<Ec2EbsBlockDevice, ProviderError> {
    let volume_type = ebs.volume_type.as_deref();
    let number = |name: &str, value: Option<i64>| match value {
        Some(value) if value > 0 => in_range(&format!("{field}.ebs.{name}"), value).map(Some),
        Some(_) | None => Ok(None),
    };
    // The other types refuse these two, and manifests carry them over from one type to another.
    let iops = ebs.iops.filter(|_| matches!(volume_type, Some("io1" | "io2" | "gp3")));
    let throughput = ebs.throughput_mib.filter(|_| volume_type == Some("gp3"));
    let kms_key = ebs.kms_key.as_ref().and_then(|key| key.id.clone().or_else(|| key.arn.clone()));
    Ok(Ec2EbsBlockDevice::builder()
        .delete_on_termination(true)
        .set_encrypted(ebs.encrypted)
        .set_kms_key_id(kms_key)
        .set_iops(number("iops", iops)?)
        .set_throughput(number("throughputMib", throughput)?)
        .set_volume_size(number("volumeSize", ebs.volume_size)?)
        .set_volume_type(volume_type.map(VolumeType::from))
        .build())
}

fn metadata_options(config: &AwsMachineProviderConfig) -> Option<InstanceMetadataOptionsRequest> {
    let tokens = match config.metadata_service_options.as_ref()?.authentication? {
        MetadataAuthentication::Optional => HttpTokensState::Optional,
        MetadataAuthentication::Required => HttpTokensState::Required,
    };
    Some(InstanceMetadataOptionsRequest::builder().http_tokens(tokens).build())
}

fn market_options(
    config: &AwsMachineProviderConfig,
) -> Result<Option<InstanceMarketOptionsRequest>, ProviderError> {
    const FIELD: &str = "providerSpec.marketType";
    check_capacity_reservation_id(config)?;
    let spot = config.spot_market_options.as_ref();
    let reservation = config.capacity_reservation_id.as_deref();
    let market = match (config.market_type, spot) {
        (Some(MarketType::OnDemand | MarketType::CapacityBlock), Some(_)) => {
            return Err(invalid(FIELD, "only Spot goes with providerSpec.spotMarketOptions"));
        }
        (Some(market), _) => market,
        (None, Some(_)) => MarketType::Spot,
        (None, None) => MarketType::OnDemand,
    };
    match (market, reservation) {
        (MarketType::OnDemand, _) => Ok(None),
        (MarketType::Spot, Some(_)) => {
            Err(invalid(FIELD, "Spot does not go with providerSpec.capacityReservationId"))
        }
        (MarketType::Spot, None) => {
            Ok(Some(spot_market(spot.and_then(|spot| spot.max_price.clone()))))
        }
        (MarketType::CapacityBlock, Some(_)) => Ok(Some(
            InstanceMarketOptionsRequest::builder()
                .market_type(Ec2MarketType::CapacityBlock)
                .build(),
        )),
        (MarketType::CapacityBlock, None) => {
            Err(invalid(FIELD, "CapacityBlock needs providerSpec.capacityReservationId"))
        }
    }
}

fn spot_market(max_price: Option<String>) -> InstanceMarketOptionsRequest {
    let options = Ec2SpotMarketOptions::builder()
        .spot_instance_type(SpotInstanceType::OneTime)
        .instance_interruption_behavior(InstanceInterruptionBehavior::Terminate)
        .set_max_price(max_price)
        .build();
    InstanceMarketOptionsRequest::builder()
        .market_type(Ec2MarketType::Spot)
        .spot_options(options)
        .build()
}

fn check_capacity_reservation_id(config: &AwsMachineProviderConfig) -> Result<(), ProviderError> {
    let Some(id) = config.capacity_reservation_id.as_deref() else { return Ok(()) };
    let is_lower_hexadecimal = |character: char| matches!(character, '0'..='9' | 'a'..='f');
    let is_well_formed = id
        .strip_prefix("cr-")
        .is_some_and(|rest| rest.len() == 17 && rest.chars().all(is_lower_hexadecimal));
    if is_well_formed {
        return Ok(());
    }
    Err(invalid(
        "providerSpec.capacityReservationId",
        format_args!(
            "invalid value for capacityReservationId: {id:?}, it must start with 'cr-' and be \
             exactly 20 characters long with 17 hexadecimal characters"
        ),
    ))
}

fn capacity_reservation(
    config: &AwsMachineProviderConfig,
) -> Option<CapacityReservationSpecification> {
    let id = config.capacity_reservation_id.as_deref()?;
    let target = CapacityReservationTarget::builder().capacity_reservation_id(id).build();
    Some(CapacityReservationSpecification::builder().capacity_reservation_target(target).build())
}

fn cpu_options(config: &AwsMachineProviderConfig) -> Option<CpuOptionsRequest> {
    let snp = match config.cpu_options.as_ref()?.confidential_compute? {
        ConfidentialCompute::Disabled => AmdSevSnpSpecification::Disabled,
        ConfidentialCompute::AMDEncryptedVirtualizationNestedPaging => {
            AmdSevSnpSpecification::Enabled
        }
    };
    Some(CpuOptionsRequest::builder().amd_sev_snp(snp).build())
}

fn in_range(field: &str, value: i64) -> Result<i32, ProviderError> {
    i32::try_from(value)
        .ok()
        .filter(|value| *value >= 0)
        .ok_or_else(|| invalid(field, format_args!("{value} is out of range")))
}

#[cfg(test)]
mod tests;
