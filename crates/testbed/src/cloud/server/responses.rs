//! Which XML carries an answer? The element names are those of EC2's 2016-11-15 API, and of the two
//! load balancing APIs, which wrap their answers and errors in another way.

mod hosts;
mod instances;
mod load_balancers;
mod lookups;

use super::xml::Xml;
use crate::cloud::model::{Ec2Error, InstanceState, Response, Service, StateChange};

fn namespace(service: Service) -> &'static str {
    match service {
        Service::Ec2 => "http://ec2.amazonaws.com/doc/2016-11-15/",
        Service::Elb => "http://elasticloadbalancing.amazonaws.com/doc/2012-06-01/",
        Service::Elbv2 => "http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/",
    }
}

/// Writes an answer; the action is named as on the wire.
pub fn response_document(
    service: Service,
    action: &str,
    request_id: &str,
    response: &Response,
) -> String {
    let mut xml = Xml::document();
    xml.root(&format!("{action}Response"), namespace(service), |xml| match service {
        Service::Ec2 => {
            xml.text("requestId", request_id);
            write_response(xml, response);
        }
        Service::Elb | Service::Elbv2 => {
            xml.element(&format!("{action}Result"), |xml| write_response(xml, response));
            xml.element("ResponseMetadata", |xml| xml.text("RequestId", request_id));
        }
    });
    xml.finish()
}

pub fn error_document(service: Service, request_id: &str, error: &Ec2Error) -> String {
    let mut xml = Xml::document();
    match service {
        Service::Ec2 => xml.element("Response", |xml| {
            xml.element("Errors", |xml| {
                xml.element("Error", |xml| {
                    xml.text("Code", &error.code);
                    xml.text("Message", &error.message);
                });
            });
            xml.text("RequestID", request_id);
        }),
        Service::Elb | Service::Elbv2 => {
            xml.root("ErrorResponse", namespace(service), |xml| {
                xml.element("Error", |xml| {
                    xml.text("Type", if error.status < 500 { "Sender" } else { "Receiver" });
                    xml.text("Code", &error.code);
                    xml.text("Message", &error.message);
                });
                xml.text("RequestId", request_id);
            });
        }
    }
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
        Response::MaintenanceOptions { instance_id, auto_recovery, reboot_migration } => {
            xml.text("instanceId", instance_id);
            xml.text("autoRecovery", auto_recovery);
            xml.text("rebootMigration", reboot_migration);
        }
        Response::HostsAllocated(ids) => xml.values("hostIdSet", ids),
        Response::Hosts(page) => {
            xml.items("hostSet", &page.items, hosts::write_host);
            xml.optional("nextToken", page.next_token.as_ref());
        }
        Response::HostsReleased { successful, unsuccessful } => {
            xml.values("successful", successful);
            xml.items("unsuccessful", unsuccessful, hosts::write_unreleased);
        }
        Response::Elb(response) => load_balancers::write_elb(xml, response),
        Response::Elbv2(response) => load_balancers::write_elbv2(xml, response),
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
