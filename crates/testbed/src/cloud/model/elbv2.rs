//! What do network load balancers do? The actions of the Elastic Load Balancing API of 2015-12-01.

mod request;
mod targets;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

pub use request::*;
pub use targets::{Target, TargetHealth};

use super::{
    Cloud,
    error::Ec2Error,
    load_balancers::{BalancedSubnets, balancer_tags, marked_page, validation},
    response::Paged,
    tags::Tags,
};

const PROTOCOLS: &[&str] = &["TCP", "UDP", "TCP_UDP", "TLS", "HTTP", "HTTPS", "GENEVE"];
const TARGET_TYPES: &[&str] = &["instance", "ip", "alb"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBalancer {
    pub arn: String,
    pub name: String,
    pub kind: String,
    pub scheme: String,
    pub ip_address_type: String,
    pub vpc_id: Option<String>,
    /// Zone and subnet.
    pub subnets: Vec<(String, String)>,
    pub security_groups: Vec<String>,
    pub dns_name: String,
    pub created_at: Timestamp,
    pub tags: Tags,
    /// By port.
    pub listeners: BTreeMap<i64, Listener>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    pub arn: String,
    pub load_balancer_arn: String,
    pub port: i64,
    pub protocol: String,
    pub target_group_arns: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetGroup {
    pub arn: String,
    pub name: String,
    pub target_type: String,
    pub protocol: String,
    pub port: i64,
    pub vpc_id: String,
    pub ip_address_type: String,
    pub health_check_protocol: String,
    pub health_check_port: String,
    pub health_check_path: Option<String>,
    pub tags: Tags,
    /// By id and port.
    pub targets: BTreeMap<(String, i64), Target>,
}

/// A target group with the load balancers that forward to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetGroupDescription {
    pub group: TargetGroup,
    pub load_balancer_arns: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Elbv2Response {
    LoadBalancers(Paged<LoadBalancer>),
    TargetGroups(Paged<TargetGroupDescription>),
    Listener(Listener),
    /// The call was done; these instances were registered or deregistered by it.
    Done {
        changed: Vec<String>,
    },
    TargetHealth(Vec<(Target, TargetHealth)>),
}

impl LoadBalancer {
    pub fn target_group_arns(&self) -> BTreeSet<String> {
        self.listeners
            .values()
            .flat_map(|listener| listener.target_group_arns.iter().cloned())
            .collect()
    }
}

impl Cloud {
    pub(super) fn carry_out_elbv2(
        &mut self,
        now: Timestamp,
        request: &Elbv2Request,
    ) -> Result<Elbv2Response, Ec2Error> {
        match request {
            Elbv2Request::CreateLoadBalancer(request) => self.create_load_balancer(now, request),
            Elbv2Request::DeleteLoadBalancer(request) => {
                // AWS answers the same whether it was there or not.
                self.load_balancers.modern.remove(&request.load_balancer_arn);
                Ok(Elbv2Response::Done { changed: Vec::new() })
            }
            Elbv2Request::DescribeLoadBalancers(request) => self.describe_load_balancers(request),
            Elbv2Request::CreateTargetGroup(request) => self.create_target_group(request),
            Elbv2Request::DeleteTargetGroup(request) => self.delete_target_group(request),
            Elbv2Request::DescribeTargetGroups(request) => self.describe_target_groups(request),
            Elbv2Request::CreateListener(request) => self.create_listener(request),
            Elbv2Request::RegisterTargets(request) => self.register_targets(now, request),
            Elbv2Request::DeregisterTargets(request) => self.deregister_targets(now, request),
            Elbv2Request::DescribeTargetHealth(request) => {
                self.describe_target_health(now, request)
            }
        }
    }

    fn create_load_balancer(
        &mut self,
        now: Timestamp,
        request: &CreateLoadBalancer,
    ) -> Result<Elbv2Response, Ec2Error> {
        check_name("load balancer", &request.name)?;
        let kind = request.r#type.as_deref().unwrap_or("application");
        let path = match kind {
            "network" => "net",
            "application" => "app",
            other => {
                return Err(validation(format!("'{other}' is not a simulated load balancer type")));
            }
        };
        let BalancedSubnets { zones: subnets, vpc_id } = self.balanced_subnets(&request.subnets)?;
        if subnets.is_empty() {
            return Err(validation("At least one subnet must be specified"));
        }
        self.check_balancer_groups(&request.security_groups)?;
        if let Some(existing) =
            self.load_balancers.modern.values().find(|balancer| balancer.name == request.name)
        {
            // The same request again gives the same load balancer.
            let is_same = existing.kind == kind && existing.subnets == subnets;
            if is_same {
                return Ok(one_balancer(existing.clone()));
            }
            return Err(Ec2Error::new(
                "DuplicateLoadBalancerName",
                format!(
                    "A load balancer with the same name '{}' exists, but with different settings",
                    request.name
                ),
            ));
        }
        let number = self.randomness.number_below(u64::MAX);
        let balancer = LoadBalancer {
            arn: self.balancing_arn(&format!("loadbalancer/{path}/{}/{number:016x}", request.name)),
            name: request.name.clone(),
            kind: kind.to_owned(),
            scheme: request.scheme.clone().unwrap_or_else(|| "internet-facing".into()),
            ip_address_type: request.ip_address_type.clone().unwrap_or_else(|| "ipv4".into()),
            vpc_id,
            subnets,
            security_groups: request.security_groups.clone(),
            dns_name: format!(
                "{}-{number:016x}.elb.{}.amazonaws.com",
                request.name, self.config.region
            ),
            created_at: now,
            tags: balancer_tags(&request.tags)?,
            listeners: BTreeMap::new(),
        };
        self.load_balancers.modern.insert(balancer.arn.clone(), balancer.clone());
        Ok(one_balancer(balancer))
    }

    fn describe_load_balancers(
        &self,
        request: &DescribeLoadBalancers,
    ) -> Result<Elbv2Response, Ec2Error> {
        for arn in &request.load_balancer_arns {
            self.load_balancer(arn)?;
        }
        let names = &request.names;
        let missing: Vec<&str> = names
            .iter()
            .filter(|name| {
                !self.load_balancers.modern.values().any(|balancer| balancer.name == **name)
            })
            .map(String::as_str)
            .collect();
        if !missing.is_empty() {
            return Err(balancers_not_found(&missing));
        }
        let arns = &request.load_balancer_arns;
        let found = self
            .load_balancers
            .modern
            .values()
            .filter(|balancer| arns.is_empty() || arns.contains(&balancer.arn))
            .filter(|balancer| names.is_empty() || names.contains(&balancer.name))
            .cloned()
            .collect();
        marked_page(found, request.marker.as_deref(), request.page_size)
            .map(Elbv2Response::LoadBalancers)
    }

    fn create_target_group(
        &mut self,
        request: &CreateTargetGroup,
    ) -> Result<Elbv2Response, Ec2Error> {
        check_name("target group", &request.name)?;
        let target_type = request.target_type.clone().unwrap_or_else(|| "instance".into());
        if !TARGET_TYPES.contains(&target_type.as_str()) {
            return Err(validation(format!("'{target_type}' is not a simulated target type")));
        }
        let required = |name: &str| validation(format!("{name} is required for this target type"));
        let protocol = request.protocol.clone().ok_or_else(|| required("Protocol"))?;
        if !PROTOCOLS.contains(&protocol.as_str()) {
            return Err(validation(format!("'{protocol}' is not a valid protocol")));
        }
        let port = request.port.ok_or_else(|| required("Port"))?;
        check_port(port)?;
        let vpc_id = request.vpc_id.clone().ok_or_else(|| required("VpcId"))?;
        if !self.world.vpcs.contains_key(&vpc_id) {
            return Err(validation(format!("The VPC ID '{vpc_id}' is not found")));
        }
        if self.load_balancers.target_groups.values().any(|group| group.name == request.name) {
            return Err(Ec2Error::new(
                "DuplicateTargetGroupName",
                format!("A target group with the same name '{}' exists", request.name),
            ));
        }
        let number = self.randomness.number_below(u64::MAX);
        let group = TargetGroup {
            arn: self.balancing_arn(&format!("targetgroup/{}/{number:016x}", request.name)),
            name: request.name.clone(),
            target_type,
            health_check_protocol: request.health_check_protocol.clone().unwrap_or_else(|| {
                if protocol.starts_with("HTTP") { protocol.clone() } else { "TCP".into() }
            }),
            protocol,
            port,
            vpc_id,
            ip_address_type: request.ip_address_type.clone().unwrap_or_else(|| "ipv4".into()),
            health_check_port: request
                .health_check_port
                .clone()
                .unwrap_or_else(|| "traffic-port".into()),
            health_check_path: request.health_check_path.clone(),
            tags: balancer_tags(&request.tags)?,
            targets: BTreeMap::new(),
        };
        self.load_balancers.target_groups.insert(group.arn.clone(), group.clone());
        let described = TargetGroupDescription { group, load_balancer_arns: Vec::new() };
        Ok(Elbv2Response::TargetGroups(Paged { items: vec![described], next_token: None }))
    }

    fn delete_target_group(&mut self, request: &TargetGroupArn) -> Result<Elbv2Response, Ec2Error> {
        let arn = &request.target_group_arn;
        if self.load_balancers_of(arn).next().is_some() {
            return Err(Ec2Error::new(
                "ResourceInUse",
                format!("Target group '{arn}' is currently in use by a listener or a rule"),
            ));
        }
        self.load_balancers.target_groups.remove(arn);
        Ok(Elbv2Response::Done { changed: Vec::new() })
    }

    fn describe_target_groups(
        &self,
        request: &DescribeTargetGroups,
    ) -> Result<Elbv2Response, Ec2Error> {
        let named = [
            request.load_balancer_arn.is_some(),
            !request.target_group_arns.is_empty(),
            !request.names.is_empty(),
        ];
        if named.iter().filter(|is_named| **is_named).count() > 1 {
            return Err(validation(
                "Load balancer ARN, target group ARNs and names cannot be specified at the same time",
            ));
        }
        for arn in &request.target_group_arns {
            self.target_group(arn)?;
        }
        let groups = &self.load_balancers.target_groups;
        if let Some(name) =
            request.names.iter().find(|name| !groups.values().any(|group| group.name == **name))
        {
            return Err(groups_not_found(name));
        }
        let of_balancer = match &request.load_balancer_arn {
            Some(arn) => Some(self.load_balancer(arn)?.target_group_arns()),
            None => None,
        };
        let found = groups
            .values()
            .filter(|group| of_balancer.as_ref().is_none_or(|arns| arns.contains(&group.arn)))
            .filter(|group| {
                request.target_group_arns.is_empty()
                    || request.target_group_arns.contains(&group.arn)
            })
            .filter(|group| request.names.is_empty() || request.names.contains(&group.name))
            .map(|group| TargetGroupDescription {
                group: group.clone(),
                load_balancer_arns: self
                    .load_balancers_of(&group.arn)
                    .map(|balancer| balancer.arn.clone())
                    .collect(),
            })
            .collect();
        marked_page(found, request.marker.as_deref(), request.page_size)
            .map(Elbv2Response::TargetGroups)
    }

    fn create_listener(&mut self, request: &CreateListener) -> Result<Elbv2Response, Ec2Error> {
        self.load_balancer(&request.load_balancer_arn)?;
        for arn in &request.target_group_arns {
            self.target_group(arn)?;
        }
        if request.target_group_arns.is_empty() {
            return Err(validation("A default action that forwards to a target group is required"));
        }
        let port = request.port.ok_or_else(|| validation("A listener port must be specified"))?;
        check_port(port)?;
        let number = self.randomness.number_below(u64::MAX);
        let arn = format!(
            "{}/{number:016x}",
            request.load_balancer_arn.replace(":loadbalancer/", ":listener/")
        );
        let listener = Listener {
            arn,
            load_balancer_arn: request.load_balancer_arn.clone(),
            port,
            protocol: request.protocol.clone().unwrap_or_else(|| "TCP".into()),
            target_group_arns: request.target_group_arns.clone(),
        };
        if let Some(balancer) = self.load_balancers.modern.get_mut(&request.load_balancer_arn) {
            if balancer.listeners.contains_key(&port) {
                return Err(Ec2Error::new(
                    "DuplicateListener",
                    "A listener already exists on this port for this load balancer",
                ));
            }
            balancer.listeners.insert(port, listener.clone());
        }
        Ok(Elbv2Response::Listener(listener))
    }

    fn load_balancer(&self, arn: &str) -> Result<&LoadBalancer, Ec2Error> {
        self.load_balancers.modern.get(arn).ok_or_else(|| balancers_not_found(&[arn]))
    }

    fn target_group(&self, arn: &str) -> Result<&TargetGroup, Ec2Error> {
        self.load_balancers.target_groups.get(arn).ok_or_else(|| groups_not_found(arn))
    }

    /// Returns the load balancers that forward to a target group.
    pub(super) fn load_balancers_of<'a>(
        &'a self,
        group_arn: &'a str,
    ) -> impl Iterator<Item = &'a LoadBalancer> {
        self.load_balancers
            .modern
            .values()
            .filter(move |balancer| balancer.target_group_arns().contains(group_arn))
    }

    fn balancing_arn(&self, rest: &str) -> String {
        let (region, account) = (&self.config.region, &self.config.account_id);
        format!("arn:aws:elasticloadbalancing:{region}:{account}:{rest}")
    }
}

fn one_balancer(balancer: LoadBalancer) -> Elbv2Response {
    Elbv2Response::LoadBalancers(Paged { items: vec![balancer], next_token: None })
}

fn balancers_not_found(names: &[&str]) -> Ec2Error {
    Ec2Error::new(
        "LoadBalancerNotFound",
        format!("Load balancers '[{}]' not found", names.join(", ")),
    )
}

fn groups_not_found(name: &str) -> Ec2Error {
    Ec2Error::new("TargetGroupNotFound", format!("Target groups '{name}' not found"))
}

fn check_port(port: i64) -> Result<(), Ec2Error> {
    if (1..=65_535).contains(&port) {
        return Ok(());
    }
    Err(validation(format!("The port {port} is not between 1 and 65535")))
}

fn check_name(noun: &str, name: &str) -> Result<(), Ec2Error> {
    let is_fine = (1..=32).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    if is_fine {
        return Ok(());
    }
    Err(validation(format!(
        "The {noun} name '{name}' must be 1 to 32 letters, digits and inner dashes"
    )))
}
