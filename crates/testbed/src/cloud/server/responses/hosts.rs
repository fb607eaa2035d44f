//! Which XML describes dedicated hosts?

use super::write_tags;
use crate::cloud::{
    model::{HostDescription, UnreleasedHost},
    server::xml::Xml,
};

pub fn write_host(xml: &mut Xml, described: &HostDescription) {
    let host = &described.host;
    xml.text("hostId", &host.id);
    xml.text("autoPlacement", if host.auto_placement { "on" } else { "off" });
    xml.text("availabilityZone", &host.availability_zone);
    xml.text("availabilityZoneId", &host.availability_zone_id);
    xml.optional("clientToken", host.client_token.as_ref());
    xml.text("state", host.state.name());
    xml.text("ownerId", &host.owner_id);
    xml.text("hostRecovery", &host.host_recovery);
    xml.text("hostMaintenance", &host.host_maintenance);
    let takes_many = host.instance_type.is_none();
    xml.text("allowsMultipleInstanceTypes", if takes_many { "on" } else { "off" });
    xml.time("allocationTime", host.allocated_at);
    xml.optional_time("releaseTime", host.released_at);
    xml.element("hostProperties", |xml| {
        xml.text("cores", described.cores());
        xml.text("sockets", 2);
        xml.text("totalVCpus", described.total_vcpus());
        xml.optional("instanceType", host.instance_type.as_ref());
        xml.text("instanceFamily", &host.instance_family);
    });
    xml.element("availableCapacity", |xml| {
        xml.text("availableVCpus", described.available_vcpus);
    });
    xml.items("instances", &described.instances, |xml, (id, kind)| {
        xml.text("instanceId", id);
        xml.text("instanceType", kind);
        xml.text("ownerId", &host.owner_id);
    });
    write_tags(xml, &host.tags);
}

pub fn write_unreleased(xml: &mut Xml, host: &UnreleasedHost) {
    xml.text("resourceId", &host.id);
    xml.element("error", |xml| {
        xml.text("code", host.code);
        xml.text("message", &host.message);
    });
}
