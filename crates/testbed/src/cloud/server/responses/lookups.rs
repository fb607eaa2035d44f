//! Which XML describes regions, zones, networks, images and instance types?

use super::write_tags;
use crate::cloud::{
    model::{DhcpOptions, Image, InstanceType, Region, SecurityGroup, Subnet, Vpc, Zone},
    server::xml::Xml,
};

pub fn write_region(xml: &mut Xml, region: &Region) {
    xml.text("regionName", region.name);
    xml.text("regionEndpoint", region.endpoint());
    xml.text("optInStatus", region.opt_in_status);
}

pub fn write_zone(xml: &mut Xml, zone: &Zone) {
    xml.text("zoneName", &zone.name);
    xml.text("zoneId", &zone.id);
    xml.text("zoneState", "available");
    xml.text("regionName", &zone.region);
    xml.text("zoneType", zone.type_name());
    xml.text("groupName", zone.group_name());
    xml.text("networkBorderGroup", &zone.region);
    xml.text("optInStatus", zone.opt_in_status());
    xml.items("messageSet", std::iter::empty::<()>(), |_, ()| {});
}

pub fn write_vpc(xml: &mut Xml, vpc: &Vpc) {
    xml.text("vpcId", &vpc.id);
    xml.text("ownerId", &vpc.owner_id);
    xml.text("state", "available");
    xml.text("cidrBlock", &vpc.cidr);
    xml.items("cidrBlockAssociationSet", [&vpc.cidr], |xml, cidr| {
        xml.text("associationId", &vpc.cidr_association_id);
        xml.text("cidrBlock", cidr);
        xml.element("cidrBlockState", |xml| xml.text("state", "associated"));
    });
    xml.items("ipv6CidrBlockAssociationSet", [&vpc.ipv6_cidr], |xml, cidr| {
        xml.text("associationId", &vpc.cidr_association_id);
        xml.text("ipv6CidrBlock", cidr);
        xml.element("ipv6CidrBlockState", |xml| xml.text("state", "associated"));
    });
    xml.text("dhcpOptionsId", &vpc.dhcp_options_id);
    xml.text("instanceTenancy", "default");
    xml.text("isDefault", false);
    write_tags(xml, &vpc.tags);
}

pub fn write_dhcp_options(xml: &mut Xml, options: &DhcpOptions) {
    xml.text("dhcpOptionsId", &options.id);
    xml.text("ownerId", &options.owner_id);
    xml.items("dhcpConfigurationSet", &options.options, |xml, (key, values)| {
        xml.text("key", key);
        xml.items("valueSet", values, |xml, value| xml.text("value", value));
    });
    write_tags(xml, &options.tags);
}

pub fn write_subnet(xml: &mut Xml, subnet: &Subnet) {
    xml.text("subnetId", &subnet.id);
    xml.text("subnetArn", subnet.arn());
    xml.text("state", "available");
    xml.text("ownerId", &subnet.owner_id);
    xml.text("vpcId", &subnet.vpc_id);
    xml.text("cidrBlock", subnet.cidr());
    xml.items("ipv6CidrBlockAssociationSet", [&subnet.ipv6_cidr], |xml, cidr| {
        xml.text("associationId", format!("subnet-cidr-assoc-{}", subnet.id));
        xml.text("ipv6CidrBlock", cidr);
        xml.element("ipv6CidrBlockState", |xml| xml.text("state", "associated"));
    });
    xml.text("availableIpAddressCount", subnet.free_addresses());
    xml.text("availabilityZone", &subnet.zone);
    xml.text("availabilityZoneId", &subnet.zone_id);
    xml.text("defaultForAz", false);
    xml.text("mapPublicIpOnLaunch", subnet.public);
    xml.text("assignIpv6AddressOnCreation", false);
    xml.text("ipv6Native", false);
    xml.text("enableDns64", false);
    xml.element("privateDnsNameOptionsOnLaunch", |xml| {
        xml.text("hostnameType", "ip-name");
        xml.text("enableResourceNameDnsARecord", false);
        xml.text("enableResourceNameDnsAAAARecord", false);
    });
    write_tags(xml, &subnet.tags);
}

pub fn write_security_group(xml: &mut Xml, group: &SecurityGroup) {
    xml.text("groupId", &group.id);
    xml.text("securityGroupArn", group.arn());
    xml.text("groupName", &group.name);
    xml.text("groupDescription", &group.description);
    xml.text("ownerId", &group.owner_id);
    xml.text("vpcId", &group.vpc_id);
    xml.items("ipPermissions", std::iter::empty::<()>(), |_, ()| {});
    xml.items("ipPermissionsEgress", ["0.0.0.0/0"], |xml, cidr| {
        xml.text("ipProtocol", "-1");
        xml.items("ipRanges", [cidr], |xml, cidr| xml.text("cidrIp", cidr));
    });
    write_tags(xml, &group.tags);
}

pub fn write_image(xml: &mut Xml, image: &Image) {
    xml.text("imageId", &image.id);
    xml.text("imageLocation", format!("{}/{}", image.owner_id, image.name));
    xml.text("imageState", "available");
    xml.text("imageOwnerId", &image.owner_id);
    xml.text("creationDate", &image.creation_date);
    xml.text("isPublic", false);
    xml.text("architecture", &image.architecture);
    xml.text("imageType", "machine");
    xml.text("name", &image.name);
    xml.text("description", &image.description);
    xml.text("rootDeviceType", "ebs");
    xml.text("rootDeviceName", &image.root_device_name);
    xml.items("blockDeviceMapping", [&image.root_device_name], |xml, device| {
        xml.text("deviceName", device);
        xml.element("ebs", |xml| {
            xml.text("snapshotId", &image.snapshot_id);
            xml.text("volumeSize", image.root_size_gib);
            xml.text("deleteOnTermination", true);
            xml.text("volumeType", "gp2");
            xml.text("encrypted", false);
        });
    });
    xml.text("virtualizationType", "hvm");
    xml.text("hypervisor", "xen");
    xml.text("enaSupport", true);
    xml.text("bootMode", "uefi-preferred");
    xml.text("platformDetails", "Linux/UNIX");
    xml.text("usageOperation", "RunInstances");
    write_tags(xml, &image.tags);
}

pub fn write_instance_type(xml: &mut Xml, kind: &InstanceType) {
    xml.text("instanceType", kind.name);
    xml.text("currentGeneration", true);
    xml.text("freeTierEligible", false);
    xml.values("supportedUsageClasses", ["on-demand", "spot"]);
    xml.values("supportedRootDeviceTypes", ["ebs"]);
    xml.values("supportedVirtualizationTypes", ["hvm"]);
    xml.text("bareMetal", false);
    xml.text("hypervisor", "nitro");
    xml.element("processorInfo", |xml| {
        xml.values("supportedArchitectures", [kind.architecture]);
        xml.text("sustainedClockSpeedInGhz", kind.clock_ghz);
        xml.text("manufacturer", kind.manufacturer);
    });
    xml.element("vCpuInfo", |xml| {
        xml.text("defaultVCpus", kind.vcpus);
        xml.text("defaultCores", kind.cores());
        xml.text("defaultThreadsPerCore", kind.threads_per_core);
    });
    xml.element("memoryInfo", |xml| xml.text("sizeInMiB", kind.memory_mib));
    xml.text("instanceStorageSupported", kind.instance_store_gb.is_some());
    if let Some(size) = kind.instance_store_gb {
        xml.element("instanceStorageInfo", |xml| {
            xml.text("totalSizeInGB", size);
            xml.items("disks", [size], |xml, size| {
                xml.text("sizeInGB", size);
                xml.text("count", 1);
                xml.text("type", "ssd");
            });
            xml.text("nvmeSupport", "required");
        });
    }
    xml.element("ebsInfo", |xml| {
        xml.text("ebsOptimizedSupport", "default");
        xml.text("encryptionSupport", "supported");
        xml.text("nvmeSupport", "required");
    });
    write_network_info(xml, kind);
    if let Some(gpu) = &kind.gpu {
        xml.element("gpuInfo", |xml| {
            xml.items("gpus", [gpu], |xml, gpu| {
                xml.text("name", gpu.name);
                xml.text("manufacturer", gpu.manufacturer);
                xml.text("count", gpu.count);
                xml.element("memoryInfo", |xml| xml.text("sizeInMiB", gpu.memory_mib));
            });
            xml.text("totalGpuMemoryInMiB", gpu.count * gpu.memory_mib);
        });
    }
    xml.element("placementGroupInfo", |xml| {
        xml.values("supportedStrategies", ["cluster", "partition", "spread"]);
    });
    xml.text("hibernationSupported", false);
    xml.text("burstablePerformanceSupported", kind.burstable);
    xml.text("dedicatedHostsSupported", true);
    xml.text("autoRecoverySupported", true);
    xml.values("supportedBootModes", ["legacy-bios", "uefi"]);
}

fn write_network_info(xml: &mut Xml, kind: &InstanceType) {
    xml.element("networkInfo", |xml| {
        xml.text("networkPerformance", kind.network_performance);
        xml.text("maximumNetworkInterfaces", kind.network_interfaces_max);
        xml.text("maximumNetworkCards", 1);
        xml.text("defaultNetworkCardIndex", 0);
        xml.items("networkCards", [0], |xml, index| {
            xml.text("networkCardIndex", index);
            xml.text("networkPerformance", kind.network_performance);
            xml.text("maximumNetworkInterfaces", kind.network_interfaces_max);
        });
        xml.text("ipv4AddressesPerInterface", kind.addresses_per_interface);
        xml.text("ipv6AddressesPerInterface", kind.addresses_per_interface);
        xml.text("ipv6Supported", true);
        xml.text("enaSupport", "required");
        xml.text("efaSupported", kind.efa_supported);
    });
}
