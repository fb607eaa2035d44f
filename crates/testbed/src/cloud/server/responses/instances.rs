//! Which XML describes an instance, its status and its events?

use super::{write_state, write_tags};
use crate::cloud::{
    model::{
        GroupIdentifier, Instance, InstanceState, InstanceStatus, NetworkInterface, Reservation,
        ScheduledEvent, StatusCheck, Volume, instance_type,
    },
    server::xml::Xml,
};

pub fn write_reservation(xml: &mut Xml, reservation: &Reservation) {
    xml.text("reservationId", &reservation.id);
    xml.text("ownerId", &reservation.owner_id);
    // Groups of the reservation exist in EC2-Classic only.
    xml.items("groupSet", std::iter::empty::<()>(), |_, ()| {});
    xml.items("instancesSet", &reservation.instances, write_instance);
}

fn write_instance(xml: &mut Xml, instance: &Instance) {
    let parameters = &instance.parameters;
    xml.text("instanceId", &instance.id);
    xml.text("imageId", &instance.image_id);
    write_state(xml, "instanceState", instance.state);
    xml.text("privateDnsName", &instance.private_dns_name);
    xml.text("dnsName", instance.public_dns_name().unwrap_or_default());
    xml.text("reason", &instance.transition_reason);
    xml.optional("keyName", parameters.key_name.as_ref());
    xml.text("amiLaunchIndex", instance.launch_index);
    xml.items("productCodes", std::iter::empty::<()>(), |_, ()| {});
    xml.text("instanceType", &instance.instance_type);
    xml.time("launchTime", instance.launch_time);
    write_placement(xml, instance);
    xml.element("monitoring", |xml| {
        let state =
            if parameters.monitoring_enabled == Some(true) { "enabled" } else { "disabled" };
        xml.text("state", state);
    });
    xml.optional("subnetId", instance.subnet_id.as_ref());
    xml.optional("vpcId", instance.vpc_id.as_ref());
    xml.optional("privateIpAddress", instance.private_address());
    xml.optional("ipAddress", instance.public_address());
    xml.text("sourceDestCheck", true);
    xml.items("groupSet", &instance.security_groups, write_group);
    if let Some(reason) = &instance.state_reason {
        xml.element("stateReason", |xml| {
            xml.text("code", &reason.code);
            xml.text("message", &reason.message);
        });
    }
    xml.text("architecture", &instance.architecture);
    xml.text("rootDeviceType", "ebs");
    xml.text("rootDeviceName", &instance.root_device_name);
    xml.items("blockDeviceMapping", &instance.volumes, write_volume);
    xml.text("virtualizationType", "hvm");
    xml.text("clientToken", parameters.client_token.as_deref().unwrap_or_default());
    write_tags(xml, &instance.tags);
    xml.text("hypervisor", "xen");
    xml.items("networkInterfaceSet", &instance.interfaces, |xml, interface| {
        write_interface(xml, instance, interface);
    });
    write_iam_profile(xml, instance);
    xml.text("ebsOptimized", parameters.ebs_optimized.unwrap_or(false));
    xml.text("enaSupport", true);
    write_market(xml, instance);
    write_options(xml, instance);
}

fn write_placement(xml: &mut Xml, instance: &Instance) {
    let placement = instance.parameters.placement.as_ref();
    xml.element("placement", |xml| {
        xml.text("availabilityZone", &instance.availability_zone);
        xml.text("availabilityZoneId", &instance.availability_zone_id);
        let group = placement.and_then(|placement| placement.group_name.as_deref());
        xml.text("groupName", group.unwrap_or_default());
        xml.text("tenancy", instance.tenancy());
        xml.optional("affinity", instance.affinity());
        xml.optional("hostId", instance.host_id.as_ref());
        if let Some(placement) = placement {
            xml.optional("groupId", placement.group_id.as_ref());
            xml.optional("partitionNumber", placement.partition_number);
        }
    });
}

fn write_iam_profile(xml: &mut Xml, instance: &Instance) {
    let Some(profile) = &instance.parameters.iam_instance_profile else {
        return;
    };
    let arn = profile.arn.clone().unwrap_or_else(|| {
        format!(
            "arn:aws:iam::{}:instance-profile/{}",
            instance.owner_id,
            profile.name.as_deref().unwrap_or_default()
        )
    });
    xml.element("iamInstanceProfile", |xml| {
        xml.text("arn", arn);
        xml.text("id", "AIPASIMULATEDPROFILE0");
    });
}

fn write_market(xml: &mut Xml, instance: &Instance) {
    let market = instance
        .parameters
        .instance_market_options
        .as_ref()
        .and_then(|market| market.market_type.as_deref());
    xml.optional("instanceLifecycle", market);
    if let Some(spot) = &instance.spot {
        xml.text("spotInstanceRequestId", &spot.request_id);
    }
    let reservation = instance.parameters.capacity_reservation_specification.as_ref();
    xml.optional(
        "capacityReservationId",
        reservation.and_then(|reservation| reservation.capacity_reservation_id.as_ref()),
    );
    xml.element("capacityReservationSpecification", |xml| {
        let preference = reservation
            .and_then(|reservation| reservation.capacity_reservation_preference.as_deref());
        let id = reservation.and_then(|reservation| reservation.capacity_reservation_id.as_ref());
        let group = reservation
            .and_then(|reservation| reservation.capacity_reservation_resource_group_arn.as_ref());
        if id.is_none() && group.is_none() {
            xml.text("capacityReservationPreference", preference.unwrap_or("open"));
        } else {
            xml.element("capacityReservationTarget", |xml| {
                xml.optional("capacityReservationId", id);
                xml.optional("capacityReservationResourceGroupArn", group);
            });
        }
    });
}

fn write_options(xml: &mut Xml, instance: &Instance) {
    let parameters = &instance.parameters;
    let kind = instance_type(&instance.instance_type);
    xml.element("cpuOptions", |xml| {
        let options = parameters.cpu_options.clone().unwrap_or_default();
        let cores = kind.map_or(1, |kind| i64::from(kind.cores()));
        let threads = kind.map_or(1, |kind| i64::from(kind.threads_per_core));
        xml.text("coreCount", options.core_count.unwrap_or(cores));
        xml.text("threadsPerCore", options.threads_per_core.unwrap_or(threads));
        xml.optional("amdSevSnp", options.amd_sev_snp);
    });
    xml.element("hibernationOptions", |xml| {
        xml.text("configured", parameters.hibernation_configured.unwrap_or(false));
    });
    xml.element("metadataOptions", |xml| {
        let options = parameters.metadata_options.clone().unwrap_or_default();
        let is_pending = instance.state == InstanceState::Pending;
        xml.text("state", if is_pending { "pending" } else { "applied" });
        xml.text("httpTokens", options.http_tokens.as_deref().unwrap_or("optional"));
        xml.text("httpPutResponseHopLimit", options.http_put_response_hop_limit.unwrap_or(1));
        xml.text("httpEndpoint", options.http_endpoint.as_deref().unwrap_or("enabled"));
        xml.text("httpProtocolIpv6", options.http_protocol_ipv6.as_deref().unwrap_or("disabled"));
        let tags = options.instance_metadata_tags.as_deref().unwrap_or("disabled");
        xml.text("instanceMetadataTags", tags);
    });
    xml.element("enclaveOptions", |xml| {
        xml.text("enabled", parameters.enclave_enabled.unwrap_or(false));
    });
    xml.text("bootMode", "uefi-preferred");
    xml.text("currentInstanceBootMode", "uefi");
    xml.text("platformDetails", "Linux/UNIX");
    xml.text("usageOperation", "RunInstances");
    xml.time("usageOperationUpdateTime", instance.created_at);
    xml.element("privateDnsNameOptions", |xml| {
        let options = parameters.private_dns_name_options.clone().unwrap_or_default();
        xml.text("hostnameType", options.hostname_type.as_deref().unwrap_or("ip-name"));
        xml.text(
            "enableResourceNameDnsARecord",
            options.enable_resource_name_dns_a_record.unwrap_or(false),
        );
        xml.text(
            "enableResourceNameDnsAAAARecord",
            options.enable_resource_name_dns_aaaa_record.unwrap_or(false),
        );
    });
    let ipv6 = instance.primary_interface().and_then(|interface| interface.ipv6_addresses.first());
    xml.optional("ipv6Address", ipv6);
    xml.element("maintenanceOptions", |xml| {
        xml.text("autoRecovery", &instance.auto_recovery);
        xml.text("rebootMigration", &instance.reboot_migration);
    });
}

fn write_volume(xml: &mut Xml, volume: &Volume) {
    xml.text("deviceName", &volume.device_name);
    xml.element("ebs", |xml| {
        xml.text("volumeId", &volume.id);
        xml.text("status", "attached");
        xml.time("attachTime", volume.attach_time);
        xml.text("deleteOnTermination", volume.delete_on_termination);
    });
}

fn write_group(xml: &mut Xml, group: &GroupIdentifier) {
    xml.text("groupId", &group.id);
    xml.text("groupName", &group.name);
}

fn write_interface(xml: &mut Xml, instance: &Instance, interface: &NetworkInterface) {
    xml.text("networkInterfaceId", &interface.id);
    xml.text("subnetId", &interface.subnet_id);
    xml.text("vpcId", &interface.vpc_id);
    xml.text("description", &interface.description);
    xml.text("ownerId", &instance.owner_id);
    xml.text("status", "in-use");
    xml.text("macAddress", &interface.mac_address);
    xml.optional("privateIpAddress", interface.private_addresses.first());
    xml.text("privateDnsName", &interface.private_dns_name);
    xml.text("sourceDestCheck", true);
    xml.items("groupSet", &interface.security_groups, write_group);
    xml.element("attachment", |xml| {
        xml.text("attachmentId", &interface.attachment_id);
        xml.text("deviceIndex", interface.device_index);
        xml.text("networkCardIndex", interface.network_card_index);
        let is_pending = instance.state == InstanceState::Pending;
        xml.text("status", if is_pending { "attaching" } else { "attached" });
        xml.time("attachTime", interface.attach_time);
        xml.text("deleteOnTermination", interface.delete_on_termination);
    });
    write_association(xml, instance, interface);
    xml.items(
        "privateIpAddressesSet",
        interface.private_addresses.iter().enumerate(),
        |xml, (position, address)| {
            xml.text("privateIpAddress", address);
            xml.text("primary", position == 0);
            if position == 0 {
                xml.text("privateDnsName", &interface.private_dns_name);
                write_association(xml, instance, interface);
            }
        },
    );
    xml.items(
        "ipv6AddressesSet",
        interface.ipv6_addresses.iter().enumerate(),
        |xml, (position, address)| {
            xml.text("ipv6Address", address);
            xml.text("isPrimaryIpv6", interface.primary_ipv6 && position == 0);
        },
    );
    xml.text("interfaceType", &interface.interface_type);
}

fn write_association(xml: &mut Xml, instance: &Instance, interface: &NetworkInterface) {
    if let Some(carrier_address) = interface.carrier_address {
        xml.element("association", |xml| {
            xml.text("ipOwnerId", &instance.owner_id);
            xml.text("carrierIp", carrier_address);
        });
        return;
    }
    let Some(address) = interface.public_address else { return };
    xml.element("association", |xml| {
        xml.text("ipOwnerId", "amazon");
        xml.text("publicDnsName", instance.public_dns_name().unwrap_or_default());
        xml.text("publicIp", address);
    });
}

pub fn write_status(xml: &mut Xml, status: &InstanceStatus) {
    xml.text("instanceId", &status.instance_id);
    xml.text("availabilityZone", &status.availability_zone);
    xml.text("availabilityZoneId", &status.availability_zone_id);
    if !status.events.is_empty() {
        xml.items("eventsSet", &status.events, write_event);
    }
    write_state(xml, "instanceState", status.state);
    write_check(xml, "instanceStatus", &status.instance_check);
    write_check(xml, "systemStatus", &status.system_check);
    write_check(xml, "attachedEbsStatus", &status.attached_ebs_check);
}

fn write_check(xml: &mut Xml, name: &str, check: &StatusCheck) {
    xml.element(name, |xml| {
        xml.text("status", check.status);
        if let Some(reachability) = check.reachability {
            xml.items("details", [reachability], |xml, reachability| {
                xml.text("name", "reachability");
                xml.text("status", reachability);
                xml.optional_time("impairedSince", check.impaired_since);
            });
        }
    });
}

pub fn write_event(xml: &mut Xml, event: &ScheduledEvent) {
    xml.text("instanceEventId", &event.event_id);
    xml.text("code", event.code.name());
    xml.text("description", event.wire_description());
    xml.time("notBefore", event.not_before);
    xml.optional_time("notAfter", event.not_after);
    xml.optional_time("notBeforeDeadline", event.not_before_deadline);
}
