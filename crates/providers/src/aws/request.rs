//! What does RunInstances get?
//!
//! Pure: from a providerSpec and resolved ids to the parameters of the one call, or to the field that
//! is wrong. What AWS would refuse and can be seen here is refused here.

mod market;
mod placement;
mod volumes;

use std::collections::BTreeSet;

use aws_sdk_ec2::{
    operation::run_instances::builders::RunInstancesInputBuilder,
    types::{
        AmdSevSnpSpecification, CpuOptionsRequest, HostnameType, HttpTokensState,
        IamInstanceProfileSpecification, InstanceMetadataOptionsRequest,
        InstanceMetadataProtocolState, InstanceNetworkInterfaceSpecification, InstanceType,
        PrivateDnsNameOptionsRequest, ResourceType, Tag, TagSpecification as Ec2TagSpecification,
    },
};
use base64::{Engine, engine::general_purpose::STANDARD};
use machinist_api::names::tag;
use serde::{Deserialize, Serialize};

use self::{
    market::{capacity_reservation, market_options},
    placement::placement,
    volumes::block_devices,
};
use super::{
    config::{
        AwsMachineProviderConfig, ConfidentialCompute, MetadataAuthentication, NetworkInterfaceType,
    },
    errors::invalid,
};
use crate::{IpFamily, LaunchRequest, ProviderError};

/// The names of a providerSpec as ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resolved {
    pub image_id: String,
    pub root_device_name: Option<String>,
    pub subnet_id: String,
    pub security_group_ids: Vec<String>,
    /// Where the subnet is, or the providerSpec wants it to be.
    pub zone: Option<String>,
    /// Whether a public address is one of a carrier.
    pub carrier_ip: bool,
    /// The host that was allocated for this launch.
    pub host_id: Option<String>,
}

/// Finds what is wrong without asking the cloud.
pub(super) fn check(config: &AwsMachineProviderConfig) -> Result<(), ProviderError> {
    required_instance_type(config)?;
    check_tags(config)?;
    market_options(config)?;
    placement(config, None)?;
    block_devices(config, Some("/dev/xvda"))?;
    network_interface(config, &Resolved::default(), IpFamily::IPv4)?;
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
        .network_interfaces(network_interface(config, resolved, request.ip_family)?)
        .set_placement(placement(config, resolved.host_id.as_deref())?)
        .set_block_device_mappings(block_devices(config, resolved.root_device_name.as_deref())?)
        .set_metadata_options(metadata_options(config, request.ip_family))
        .set_private_dns_name_options(private_dns_name_options(request.ip_family))
        .set_instance_market_options(market_options(config)?)
        .set_capacity_reservation_specification(capacity_reservation(config))
        .set_cpu_options(cpu_options(config))
        .tag_specifications(tagged(ResourceType::Instance))
        .tag_specifications(tagged(ResourceType::Volume)))
}

pub(super) fn required_instance_type(
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
pub(super) fn tags(config: &AwsMachineProviderConfig, request: &LaunchRequest) -> Vec<Tag> {
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

/// Whether a tag says whose a thing is: no user gives these.
pub(super) fn is_identity_tag(key: &str) -> bool {
    key == tag::NAME || key == tag::MACHINE_UID || key.starts_with(tag::CLUSTER_PREFIX)
}

fn network_interface(
    config: &AwsMachineProviderConfig,
    resolved: &Resolved,
    ip_family: IpFamily,
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
    Ok(match ip_family {
        IpFamily::DualStackIPv6Primary => {
            interface.primary_ipv6(true).ipv6_address_count(1).build()
        }
        IpFamily::IPv4 | IpFamily::DualStackIPv4Primary => interface.build(),
    })
}

fn is_dual_stack(ip_family: IpFamily) -> bool {
    match ip_family {
        IpFamily::IPv4 => false,
        IpFamily::DualStackIPv4Primary | IpFamily::DualStackIPv6Primary => true,
    }
}

fn metadata_options(
    config: &AwsMachineProviderConfig,
    ip_family: IpFamily,
) -> Option<InstanceMetadataOptionsRequest> {
    let options = config.metadata_service_options.as_ref();
    let tokens = options.and_then(|options| options.authentication).map(|choice| match choice {
        MetadataAuthentication::Optional => HttpTokensState::Optional,
        MetadataAuthentication::Required => HttpTokensState::Required,
    });
    let ipv6 = is_dual_stack(ip_family).then_some(InstanceMetadataProtocolState::Enabled);
    if tokens.is_none() && ipv6.is_none() {
        return None;
    }
    Some(
        InstanceMetadataOptionsRequest::builder()
            .set_http_tokens(tokens)
            .set_http_protocol_ipv6(ipv6)
            .build(),
    )
}

/// A machine with two addresses has a name of its own, not one made from its IPv4 address.
fn private_dns_name_options(ip_family: IpFamily) -> Option<PrivateDnsNameOptionsRequest> {
    is_dual_stack(ip_family).then(|| {
        PrivateDnsNameOptionsRequest::builder()
            .hostname_type(HostnameType::ResourceName)
            .enable_resource_name_dns_a_record(true)
            .enable_resource_name_dns_aaaa_record(true)
            .build()
    })
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
