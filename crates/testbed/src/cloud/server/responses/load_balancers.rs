//! Which XML carries the answers of the two load balancing services?

use crate::cloud::{
    model::{
        ClassicHealth, ClassicLoadBalancer, ElbResponse, Elbv2Response, Listener, LoadBalancer,
        Target, TargetGroupDescription, TargetHealth,
    },
    server::xml::Xml,
};

pub fn write_elb(xml: &mut Xml, response: &ElbResponse) {
    match response {
        ElbResponse::Created { dns_name } => xml.text("DNSName", dns_name),
        ElbResponse::Deleted => {}
        ElbResponse::LoadBalancers(page) => {
            xml.members("LoadBalancerDescriptions", &page.items, write_classic);
            xml.optional("NextMarker", page.next_token.as_ref());
        }
        ElbResponse::Instances { registered, .. } => {
            xml.members("Instances", registered, |xml, id| xml.text("InstanceId", id));
        }
        ElbResponse::Health(states) => xml.members("InstanceStates", states, write_classic_health),
    }
}

fn write_classic(xml: &mut Xml, balancer: &ClassicLoadBalancer) {
    xml.text("LoadBalancerName", &balancer.name);
    xml.text("DNSName", &balancer.dns_name);
    xml.members("ListenerDescriptions", &balancer.request.listeners, |xml, listener| {
        xml.element("Listener", |xml| {
            xml.text("Protocol", &listener.protocol);
            xml.text("LoadBalancerPort", listener.load_balancer_port);
            let inside = listener.instance_protocol.as_ref().unwrap_or(&listener.protocol);
            xml.text("InstanceProtocol", inside);
            xml.text("InstancePort", listener.instance_port);
        });
        xml.member_values("PolicyNames", std::iter::empty::<&str>());
    });
    xml.member_values("AvailabilityZones", &balancer.availability_zones);
    xml.member_values("Subnets", &balancer.request.subnets);
    xml.optional("VPCId", balancer.vpc_id.as_ref());
    xml.members("Instances", balancer.instances.keys(), |xml, id| xml.text("InstanceId", id));
    xml.member_values("SecurityGroups", &balancer.request.security_groups);
    xml.time("CreatedTime", balancer.created_at);
    let scheme = balancer.request.scheme.as_deref().unwrap_or("internet-facing");
    xml.text("Scheme", scheme);
}

fn write_classic_health(xml: &mut Xml, health: &ClassicHealth) {
    xml.text("InstanceId", &health.instance_id);
    xml.text("State", health.state);
    xml.text("ReasonCode", health.reason_code);
    xml.text("Description", &health.description);
}

pub fn write_elbv2(xml: &mut Xml, response: &Elbv2Response) {
    match response {
        Elbv2Response::LoadBalancers(page) => {
            xml.members("LoadBalancers", &page.items, write_load_balancer);
            xml.optional("NextMarker", page.next_token.as_ref());
        }
        Elbv2Response::TargetGroups(page) => {
            xml.members("TargetGroups", &page.items, write_target_group);
            xml.optional("NextMarker", page.next_token.as_ref());
        }
        Elbv2Response::Listener(listener) => xml.members("Listeners", [listener], write_listener),
        Elbv2Response::Done { .. } => {}
        Elbv2Response::TargetHealth(targets) => {
            xml.members("TargetHealthDescriptions", targets, write_target_health);
        }
    }
}

fn write_load_balancer(xml: &mut Xml, balancer: &LoadBalancer) {
    xml.text("LoadBalancerArn", &balancer.arn);
    xml.text("LoadBalancerName", &balancer.name);
    xml.text("DNSName", &balancer.dns_name);
    xml.text("Type", &balancer.kind);
    xml.text("Scheme", &balancer.scheme);
    xml.text("IpAddressType", &balancer.ip_address_type);
    xml.optional("VpcId", balancer.vpc_id.as_ref());
    xml.time("CreatedTime", balancer.created_at);
    xml.element("State", |xml| xml.text("Code", "active"));
    xml.members("AvailabilityZones", &balancer.subnets, |xml, (zone, subnet)| {
        xml.text("ZoneName", zone);
        xml.text("SubnetId", subnet);
    });
    xml.member_values("SecurityGroups", &balancer.security_groups);
}

fn write_target_group(xml: &mut Xml, described: &TargetGroupDescription) {
    let group = &described.group;
    xml.text("TargetGroupArn", &group.arn);
    xml.text("TargetGroupName", &group.name);
    xml.text("Protocol", &group.protocol);
    xml.text("Port", group.port);
    xml.text("VpcId", &group.vpc_id);
    xml.text("TargetType", &group.target_type);
    xml.text("IpAddressType", &group.ip_address_type);
    xml.text("HealthCheckEnabled", true);
    xml.text("HealthCheckProtocol", &group.health_check_protocol);
    xml.text("HealthCheckPort", &group.health_check_port);
    xml.optional("HealthCheckPath", group.health_check_path.as_ref());
    xml.text("HealthCheckIntervalSeconds", 30);
    xml.text("HealthCheckTimeoutSeconds", 10);
    xml.text("HealthyThresholdCount", 3);
    xml.text("UnhealthyThresholdCount", 3);
    xml.member_values("LoadBalancerArns", &described.load_balancer_arns);
}

fn write_listener(xml: &mut Xml, listener: &Listener) {
    xml.text("ListenerArn", &listener.arn);
    xml.text("LoadBalancerArn", &listener.load_balancer_arn);
    xml.text("Port", listener.port);
    xml.text("Protocol", &listener.protocol);
    xml.members("DefaultActions", &listener.target_group_arns, |xml, arn| {
        xml.text("Type", "forward");
        xml.text("TargetGroupArn", arn);
    });
}

fn write_target_health(xml: &mut Xml, (target, health): &(Target, TargetHealth)) {
    xml.element("Target", |xml| {
        xml.text("Id", &target.id);
        xml.text("Port", target.port);
        xml.optional("AvailabilityZone", target.availability_zone.as_ref());
    });
    xml.text("HealthCheckPort", target.port);
    xml.element("TargetHealth", |xml| {
        xml.text("State", health.state);
        xml.optional("Reason", health.reason);
        xml.optional("Description", health.description.as_ref());
    });
}
