//! Which launch do the parameters of RunInstances make?

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::cloud::model::{
    BlockDeviceMapping, CapacityReservationSpecification, CpuOptions, EbsBlockDevice, Ec2Error,
    IamInstanceProfile, InstanceMarketOptions, MaintenanceOptions, MetadataOptions,
    NetworkInterfaceSpecification, Placement, PrivateDnsNameOptions, RunInstances, SpotOptions,
    TagSpecification, UserData,
};

use super::{
    query::Parameters,
    requests::{dry_run, tags},
};

/// Parameters that EC2 has and the simulation has not: silently dropping one would launch something
/// else than was asked for.
const NOT_SIMULATED: &[&str] = &[
    "AdditionalInfo",
    "ElasticGpuSpecification",
    "ElasticInferenceAccelerator",
    "Ipv6Address",
    "KernelId",
    "LaunchTemplate",
    "LicenseSpecification",
    "NetworkPerformanceOptions",
    "Operator",
    "RamdiskId",
    "SecondaryInterface",
];
const NOT_SIMULATED_IN_INTERFACES: &[&str] = &[
    "ConnectionTrackingSpecification",
    "EnaQueueCount",
    "EnaSrdSpecification",
    "Ipv4Prefix",
    "Ipv4PrefixCount",
    "Ipv6Addresses",
    "Ipv6Prefix",
    "Ipv6PrefixCount",
    "NetworkInterfaceId",
    "PrivateIpAddresses",
];

pub fn read_run_instances(parameters: &mut Parameters) -> Result<RunInstances, Ec2Error> {
    refuse(parameters, NOT_SIMULATED)?;
    let count =
        |value: Option<i64>, name: &str| value.ok_or_else(|| Ec2Error::missing_parameter(name));
    Ok(RunInstances {
        image_id: parameters.string("ImageId"),
        instance_type: parameters.string("InstanceType"),
        min_count: count(parameters.integer("MinCount")?, "MinCount")?,
        max_count: count(parameters.integer("MaxCount")?, "MaxCount")?,
        client_token: parameters.string("ClientToken").filter(|token| !token.is_empty()),
        subnet_id: parameters.string("SubnetId"),
        security_group_ids: parameters.strings("SecurityGroupId")?,
        security_groups: parameters.strings("SecurityGroup")?,
        private_ip_address: parameters.string("PrivateIpAddress"),
        ipv6_address_count: parameters.integer("Ipv6AddressCount")?,
        enable_primary_ipv6: parameters.boolean("EnablePrimaryIpv6")?,
        network_interfaces: items(parameters, "NetworkInterface", network_interface)?,
        block_device_mappings: items(parameters, "BlockDeviceMapping", block_device)?,
        tag_specifications: items(parameters, "TagSpecification", tag_specification)?,
        user_data: user_data(parameters)?,
        iam_instance_profile: part(parameters, "IamInstanceProfile", |profile| {
            Ok(IamInstanceProfile { arn: profile.string("Arn"), name: profile.string("Name") })
        })?,
        key_name: parameters.string("KeyName"),
        placement: part(parameters, "Placement", placement)?,
        instance_market_options: part(parameters, "InstanceMarketOptions", market)?,
        metadata_options: part(parameters, "MetadataOptions", metadata)?,
        cpu_options: part(parameters, "CpuOptions", |options| {
            Ok(CpuOptions {
                core_count: options.integer("CoreCount")?,
                threads_per_core: options.integer("ThreadsPerCore")?,
                amd_sev_snp: options.string("AmdSevSnp"),
            })
        })?,
        capacity_reservation_specification: part(
            parameters,
            "CapacityReservationSpecification",
            capacity_reservation,
        )?,
        private_dns_name_options: part(parameters, "PrivateDnsNameOptions", |options| {
            Ok(PrivateDnsNameOptions {
                hostname_type: options.string("HostnameType"),
                enable_resource_name_dns_a_record: options
                    .boolean("EnableResourceNameDnsARecord")?,
                enable_resource_name_dns_aaaa_record: options
                    .boolean("EnableResourceNameDnsAAAARecord")?,
            })
        })?,
        maintenance_options: part(parameters, "MaintenanceOptions", |options| {
            Ok(MaintenanceOptions { auto_recovery: options.string("AutoRecovery") })
        })?,
        monitoring_enabled: switch(parameters, "Monitoring", "Enabled")?,
        ebs_optimized: parameters.boolean("EbsOptimized")?,
        disable_api_termination: parameters.boolean("DisableApiTermination")?,
        disable_api_stop: parameters.boolean("DisableApiStop")?,
        instance_initiated_shutdown_behavior: parameters
            .string("InstanceInitiatedShutdownBehavior"),
        credit_specification: part(parameters, "CreditSpecification", |credit| {
            Ok(credit.string("CpuCredits"))
        })?
        .flatten(),
        hibernation_configured: switch(parameters, "HibernationOptions", "Configured")?,
        enclave_enabled: switch(parameters, "EnclaveOptions", "Enabled")?,
        dry_run: dry_run(parameters)?,
    })
}

fn refuse(parameters: &mut Parameters, names: &[&str]) -> Result<(), Ec2Error> {
    match names.iter().find(|name| parameters.structure(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(Ec2Error::unsupported(format!(
            "The simulated cloud does not have the parameter {name}"
        ))),
    }
}

fn part<T>(
    parameters: &mut Parameters,
    name: &str,
    read: impl FnOnce(&mut Parameters) -> Result<T, Ec2Error>,
) -> Result<Option<T>, Ec2Error> {
    let Some(mut inner) = parameters.structure(name) else {
        return Ok(None);
    };
    let value = read(&mut inner)?;
    inner.finish()?;
    Ok(Some(value))
}

pub(super) fn items<T>(
    parameters: &mut Parameters,
    name: &str,
    read: impl Fn(&mut Parameters) -> Result<T, Ec2Error>,
) -> Result<Vec<T>, Ec2Error> {
    parameters
        .list(name)?
        .into_iter()
        .map(|mut item| {
            let value = read(&mut item)?;
            item.finish()?;
            Ok(value)
        })
        .collect()
}

fn switch(parameters: &mut Parameters, name: &str, inner: &str) -> Result<Option<bool>, Ec2Error> {
    Ok(part(parameters, name, |options| options.boolean(inner))?.flatten())
}

fn user_data(parameters: &mut Parameters) -> Result<Option<UserData>, Ec2Error> {
    let Some(text) = parameters.string("UserData") else {
        return Ok(None);
    };
    // Clients may wrap base64 in lines, as the command-line tool of the same name does.
    let joined: String = text.split_ascii_whitespace().collect();
    STANDARD
        .decode(joined)
        .map(|bytes| Some(UserData(bytes)))
        .map_err(|_| Ec2Error::invalid_value("Invalid BASE64 encoding of user data."))
}

fn network_interface(item: &mut Parameters) -> Result<NetworkInterfaceSpecification, Ec2Error> {
    refuse(item, NOT_SIMULATED_IN_INTERFACES)?;
    Ok(NetworkInterfaceSpecification {
        device_index: item.integer("DeviceIndex")?,
        network_card_index: item.integer("NetworkCardIndex")?,
        subnet_id: item.string("SubnetId"),
        groups: item.strings("SecurityGroupId")?,
        associate_public_ip_address: item.boolean("AssociatePublicIpAddress")?,
        associate_carrier_ip_address: item.boolean("AssociateCarrierIpAddress")?,
        delete_on_termination: item.boolean("DeleteOnTermination")?,
        description: item.string("Description"),
        interface_type: item.string("InterfaceType"),
        ipv6_address_count: item.integer("Ipv6AddressCount")?,
        primary_ipv6: item.boolean("PrimaryIpv6")?,
        private_ip_address: item.string("PrivateIpAddress"),
        secondary_private_ip_address_count: item.integer("SecondaryPrivateIpAddressCount")?,
    })
}

fn block_device(item: &mut Parameters) -> Result<BlockDeviceMapping, Ec2Error> {
    Ok(BlockDeviceMapping {
        device_name: item.string("DeviceName"),
        virtual_name: item.string("VirtualName"),
        no_device: item.string("NoDevice"),
        ebs: part(item, "Ebs", |ebs| {
            Ok(EbsBlockDevice {
                delete_on_termination: ebs.boolean("DeleteOnTermination")?,
                encrypted: ebs.boolean("Encrypted")?,
                iops: ebs.integer("Iops")?,
                kms_key_id: ebs.string("KmsKeyId"),
                snapshot_id: ebs.string("SnapshotId"),
                throughput: ebs.integer("Throughput")?,
                volume_size: ebs.integer("VolumeSize")?,
                volume_type: ebs.string("VolumeType"),
            })
        })?,
    })
}

pub(super) fn tag_specification(item: &mut Parameters) -> Result<TagSpecification, Ec2Error> {
    Ok(TagSpecification { resource_type: item.required_string("ResourceType")?, tags: tags(item)? })
}

fn placement(inner: &mut Parameters) -> Result<Placement, Ec2Error> {
    refuse(inner, &["SpreadDomain", "HostResourceGroupArn"])?;
    Ok(Placement {
        availability_zone: inner.string("AvailabilityZone"),
        availability_zone_id: inner.string("AvailabilityZoneId"),
        tenancy: inner.string("Tenancy"),
        affinity: inner.string("Affinity"),
        host_id: inner.string("HostId"),
        group_name: inner.string("GroupName"),
        group_id: inner.string("GroupId"),
        partition_number: inner.integer("PartitionNumber")?,
    })
}

fn market(inner: &mut Parameters) -> Result<InstanceMarketOptions, Ec2Error> {
    Ok(InstanceMarketOptions {
        market_type: inner.string("MarketType"),
        spot_options: part(inner, "SpotOptions", |spot| {
            Ok(SpotOptions {
                max_price: spot.string("MaxPrice"),
                spot_instance_type: spot.string("SpotInstanceType"),
                instance_interruption_behavior: spot.string("InstanceInterruptionBehavior"),
                block_duration_minutes: spot.integer("BlockDurationMinutes")?,
                valid_until: spot.timestamp("ValidUntil")?,
            })
        })?,
    })
}

fn metadata(inner: &mut Parameters) -> Result<MetadataOptions, Ec2Error> {
    Ok(MetadataOptions {
        http_tokens: inner.string("HttpTokens"),
        http_put_response_hop_limit: inner.integer("HttpPutResponseHopLimit")?,
        http_endpoint: inner.string("HttpEndpoint"),
        http_protocol_ipv6: inner.string("HttpProtocolIpv6"),
        instance_metadata_tags: inner.string("InstanceMetadataTags"),
    })
}

fn capacity_reservation(
    inner: &mut Parameters,
) -> Result<CapacityReservationSpecification, Ec2Error> {
    let preference = inner.string("CapacityReservationPreference");
    let target = part(inner, "CapacityReservationTarget", |target| {
        Ok((
            target.string("CapacityReservationId"),
            target.string("CapacityReservationResourceGroupArn"),
        ))
    })?;
    let (id, group) = target.unwrap_or_default();
    Ok(CapacityReservationSpecification {
        capacity_reservation_preference: preference,
        capacity_reservation_id: id,
        capacity_reservation_resource_group_arn: group,
    })
}
