//! Which XML carries an answer? The element names are those of EC2's 2016-11-15 API.

mod instances;
mod lookups;

use super::xml::Xml;
use crate::cloud::model::{Ec2Error, InstanceState, Response, StateChange};

const NAMESPACE: &str = "http://ec2.amazonaws.com/doc/2016-11-15/";

pub fn response_document(action: &str, request_id: &str, response: &Response) -> String {
    let mut xml = Xml::document();
    xml.root(&format!("{action}Response"), NAMESPACE, |xml| {
        xml.text("requestId", request_id);
        write_response(xml, response);
    });
    xml.finish()
}

pub fn error_document(request_id: &str, error: &Ec2Error) -> String {
    let mut xml = Xml::document();
    xml.element("Response", |xml| {
        xml.element("Errors", |xml| {
            xml.element("Error", |xml| {
                xml.text("Code", &error.code);
                xml.text("Message", &error.message);
            });
        });
        xml.text("RequestID", request_id);
    });
    xml.finish()
}

fn write_response(xml: &mut Xml, response: &Response) {
    match response {
        Response::Launched(reservation) => instances::write_reservation(xml, reservation),
        Response::Instances(page) => {
            xml.items("reservationSet", &page.items, instances::write_reservation);
            xml.optional("nextToken", page.next_token.as_ref());
        }
        Response::InstanceStatuses(page) => {
            xml.items("instanceStatusSet", &page.items, instances::write_status);
            xml.optional("nextToken", page.next_token.as_ref());
        }
        Response::StateChanges(changes) => {
            xml.items("instancesSet", changes, write_state_change);
        }
        Response::Done => xml.text("return", true),
        Response::EventMoved(event) => {
            xml.element("event", |xml| instances::write_event(xml, event));
        }
        Response::Regions(regions) => xml.items("regionInfo", regions, lookups::write_region),
        Response::AvailabilityZones(zones) => {
            xml.items("availabilityZoneInfo", zones, lookups::write_zone);
        }
        Response::Vpcs(page) => {
            xml.items("vpcSet", &page.items, lookups::write_vpc);
            xml.optional("nextToken", page.next_token.as_ref());
        }
        Response::DhcpOptions(page) => {
            xml.items("dhcpOptionsSet", &page.items, lookups::write_dhcp_options);
            xml.optional("nextToken", page.next_token.as_ref());
        }
        Response::Subnets(page) => {
            xml.items("subnetSet", &page.items, lookups::write_subnet);
            xml.optional("nextToken", page.next_token.as_ref());
        }
        Response::SecurityGroups(page) => {
            xml.items("securityGroupInfo", &page.items, lookups::write_security_group);
            xml.optional("nextToken", page.next_token.as_ref());
        }
        Response::Images(page) => {
            xml.items("imagesSet", &page.items, lookups::write_image);
            xml.optional("nextToken", page.next_token.as_ref());
        }
        Response::InstanceTypes(page) => {
            xml.items("instanceTypeSet", &page.items, lookups::write_instance_type);
            xml.optional("nextToken", page.next_token.as_ref());
        }
    }
}

fn write_state_change(xml: &mut Xml, change: &StateChange) {
    xml.text("instanceId", &change.instance_id);
    write_state(xml, "currentState", change.current);
    write_state(xml, "previousState", change.previous);
}

fn write_state(xml: &mut Xml, name: &str, state: InstanceState) {
    xml.element(name, |xml| {
        xml.text("code", state.code());
        xml.text("name", state.name());
    });
}

fn write_tags(xml: &mut Xml, tags: &std::collections::BTreeMap<String, String>) {
    xml.items("tagSet", tags, |xml, (key, value)| {
        xml.text("key", key);
        xml.text("value", value);
    });
}
