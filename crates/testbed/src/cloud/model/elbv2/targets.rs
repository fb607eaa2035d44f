//! Who gets the traffic of a target group, and is it well?

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jiff::Timestamp;

use super::{Elbv2Response, TargetDescription, TargetGroup, Targets};
use crate::cloud::model::{
    Cloud,
    error::Ec2Error,
    instance::{Instance, InstanceState},
    load_balancers::validation,
    time::later,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub id: String,
    pub port: i64,
    pub availability_zone: Option<String>,
    pub registered_at: Timestamp,
    /// Since when it drains; it is forgotten when that is over.
    pub deregistered_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetHealth {
    pub state: &'static str,
    pub reason: Option<&'static str>,
    pub description: Option<String>,
}

impl TargetHealth {
    fn new(state: &'static str, reason: &'static str, description: impl Into<String>) -> Self {
        Self { state, reason: Some(reason), description: Some(description.into()) }
    }
}

impl Cloud {
    pub(super) fn register_targets(
        &mut self,
        now: Timestamp,
        request: &Targets,
    ) -> Result<Elbv2Response, Ec2Error> {
        let group = self.target_group(&request.target_group_arn)?;
        check_some(&request.targets)?;
        for target in &request.targets {
            self.check_target(now, group, target)?;
        }
        let default_port = group.port;
        let is_by_instance = group.target_type == "instance";
        if let Some(group) = self.load_balancers.target_groups.get_mut(&request.target_group_arn) {
            for wanted in &request.targets {
                let port = wanted.port.unwrap_or(default_port);
                let registered = Target {
                    id: wanted.id.clone(),
                    port,
                    availability_zone: wanted.availability_zone.clone(),
                    registered_at: now,
                    deregistered_at: None,
                };
                // What is registered keeps its health; what drains begins anew.
                let entry = group.targets.entry((wanted.id.clone(), port));
                entry
                    .and_modify(|target| {
                        if target.deregistered_at.is_some() {
                            *target = registered.clone();
                        }
                    })
                    .or_insert_with(|| registered.clone());
            }
        }
        Ok(Elbv2Response::Done { changed: changed(request, is_by_instance) })
    }

    pub(super) fn deregister_targets(
        &mut self,
        now: Timestamp,
        request: &Targets,
    ) -> Result<Elbv2Response, Ec2Error> {
        let group = self.target_group(&request.target_group_arn)?;
        check_some(&request.targets)?;
        let is_by_instance = group.target_type == "instance";
        let present: Vec<(String, i64)> = self
            .present_targets(now, group)
            .map(|target| (target.id.clone(), target.port))
            .collect();
        let mut keys = Vec::new();
        for wanted in &request.targets {
            // Without a port, AWS deregisters the target at the group's port and at any other.
            let matching: Vec<_> = present
                .iter()
                .filter(|(id, port)| {
                    *id == wanted.id && wanted.port.is_none_or(|wanted| wanted == *port)
                })
                .cloned()
                .collect();
            if matching.is_empty() {
                return Err(invalid_target(format!(
                    "The following targets are not registered: '{}'",
                    wanted.id
                )));
            }
            keys.extend(matching);
        }
        if let Some(group) = self.load_balancers.target_groups.get_mut(&request.target_group_arn) {
            for key in keys {
                if let Some(target) = group.targets.get_mut(&key) {
                    target.deregistered_at.get_or_insert(now);
                }
            }
            let draining = self.config.delays.target_draining;
            group.targets.retain(|_, target| !is_drained(now, target, draining));
        }
        Ok(Elbv2Response::Done { changed: changed(request, is_by_instance) })
    }

    pub(super) fn describe_target_health(
        &self,
        now: Timestamp,
        request: &Targets,
    ) -> Result<Elbv2Response, Ec2Error> {
        let group = self.target_group(&request.target_group_arn)?;
        let mut described = Vec::new();
        if request.targets.is_empty() {
            described.extend(
                self.present_targets(now, group)
                    .map(|target| (target.clone(), self.target_health(now, group, target))),
            );
        }
        for asked in &request.targets {
            let port = asked.port.unwrap_or(group.port);
            let found = self
                .present_targets(now, group)
                .find(|target| target.id == asked.id && target.port == port);
            described.push(match found {
                Some(target) => (target.clone(), self.target_health(now, group, target)),
                None => (
                    Target {
                        id: asked.id.clone(),
                        port,
                        availability_zone: None,
                        registered_at: now,
                        deregistered_at: None,
                    },
                    TargetHealth::new(
                        "unused",
                        "Target.NotRegistered",
                        "Target is not registered to the target group",
                    ),
                ),
            });
        }
        Ok(Elbv2Response::TargetHealth(described))
    }

    /// Returns the targets that are registered or still drain.
    pub(in crate::cloud::model) fn present_targets<'a>(
        &'a self,
        now: Timestamp,
        group: &'a TargetGroup,
    ) -> impl Iterator<Item = &'a Target> {
        let draining = self.config.delays.target_draining;
        group.targets.values().filter(move |target| !is_drained(now, target, draining))
    }

    pub(in crate::cloud::model) fn target_health(
        &self,
        now: Timestamp,
        group: &TargetGroup,
        target: &Target,
    ) -> TargetHealth {
        if target.deregistered_at.is_some() {
            return TargetHealth::new(
                "draining",
                "Target.DeregistrationInProgress",
                "Target deregistration is in progress",
            );
        }
        if self.load_balancers_of(&group.arn).next().is_none() {
            return TargetHealth::new(
                "unused",
                "Target.NotInUse",
                "Target group is not configured to receive traffic from the load balancer",
            );
        }
        let mut since = target.registered_at;
        if group.target_type != "alb" {
            let instance = self.instance_behind(group, target);
            match instance.filter(|instance| instance.state == InstanceState::Running) {
                Some(instance) if instance.impairment.is_some() || instance.is_rebooting() => {
                    return TargetHealth::new(
                        "unhealthy",
                        "Target.FailedHealthChecks",
                        "Health checks failed",
                    );
                }
                Some(instance) => since = since.max(instance.booted_at.unwrap_or(since)),
                None if group.target_type == "instance" => {
                    let state = instance.map_or("terminated", |instance| instance.state.name());
                    return TargetHealth::new(
                        "unused",
                        "Target.InvalidState",
                        format!("Target is in the {state} state"),
                    );
                }
                // Nobody answers at that address.
                None => {
                    return TargetHealth::new("unhealthy", "Target.Timeout", "Request timed out");
                }
            }
        }
        if now < later(since, self.config.delays.target_initial) {
            return TargetHealth::new(
                "initial",
                "Elb.InitialHealthChecking",
                "Initial health checks in progress",
            );
        }
        TargetHealth { state: "healthy", reason: None, description: None }
    }

    fn instance_behind(&self, group: &TargetGroup, target: &Target) -> Option<&Instance> {
        if group.target_type == "instance" {
            return self.instances.get(&target.id);
        }
        let address: IpAddr = target.id.parse().ok()?;
        self.instances.values().find(|instance| {
            instance.interfaces.iter().any(|interface| match address {
                IpAddr::V4(address) => interface.private_addresses.contains(&address),
                IpAddr::V6(address) => interface.ipv6_addresses.contains(&address),
            })
        })
    }

    fn check_target(
        &self,
        now: Timestamp,
        group: &TargetGroup,
        target: &TargetDescription,
    ) -> Result<(), Ec2Error> {
        let id = &target.id;
        match group.target_type.as_str() {
            "instance" => {
                let instance =
                    self.instances.get(id).filter(|instance| instance.visible_from <= now);
                match instance.map(|instance| instance.state) {
                    Some(InstanceState::Running) => Ok(()),
                    Some(
                        InstanceState::Pending
                        | InstanceState::ShuttingDown
                        | InstanceState::Terminated
                        | InstanceState::Stopping
                        | InstanceState::Stopped,
                    ) => Err(invalid_target(format!(
                        "The following targets are not in a running state and cannot be \
                         registered: '{id}'"
                    ))),
                    None => Err(invalid_target(format!("The instance IDs '{id}' are not valid"))),
                }
            }
            "ip" => self.check_address(group, id),
            _ => match self.load_balancers.modern.get(id) {
                Some(balancer) if balancer.kind == "application" => Ok(()),
                Some(_) | None => Err(invalid_target(format!(
                    "The target '{id}' is not an Application Load Balancer"
                ))),
            },
        }
    }

    fn check_address(&self, group: &TargetGroup, text: &str) -> Result<(), Ec2Error> {
        let address: IpAddr = text
            .parse()
            .map_err(|_| validation(format!("The IP address '{text}' is not a valid address")))?;
        let vpc = self.world.vpcs.get(&group.vpc_id);
        let is_inside = vpc.is_some_and(|vpc| match address {
            IpAddr::V4(address) => {
                group.ip_address_type == "ipv4" && contains_v4(&vpc.cidr, address)
            }
            IpAddr::V6(address) => {
                group.ip_address_type == "ipv6" && contains_v6(&vpc.ipv6_cidr, address)
            }
        });
        if is_inside {
            return Ok(());
        }
        Err(invalid_target(format!(
            "The IP address '{text}' is not within the address range of VPC '{}'",
            group.vpc_id
        )))
    }
}

fn is_drained(now: Timestamp, target: &Target, draining: jiff::SignedDuration) -> bool {
    target.deregistered_at.is_some_and(|since| later(since, draining) <= now)
}

/// Returns the instances that a call is about; an address names no instance.
fn changed(request: &Targets, is_by_instance: bool) -> Vec<String> {
    if !is_by_instance {
        return Vec::new();
    }
    request.targets.iter().map(|target| target.id.clone()).collect()
}

fn check_some(targets: &[TargetDescription]) -> Result<(), Ec2Error> {
    if targets.is_empty() {
        return Err(validation("At least one target must be specified"));
    }
    Ok(())
}

fn invalid_target(message: String) -> Ec2Error {
    Ec2Error::new("InvalidTarget", message)
}

fn contains_v4(cidr: &str, address: Ipv4Addr) -> bool {
    let parts = cidr.split_once('/').and_then(|(base, length)| {
        Some((base.parse::<Ipv4Addr>().ok()?, length.parse::<u32>().ok()?))
    });
    parts.is_some_and(|(base, length)| {
        let mask = u32::MAX.checked_shl(32_u32.saturating_sub(length)).unwrap_or(0);
        u32::from(base) & mask == u32::from(address) & mask
    })
}

fn contains_v6(cidr: &str, address: Ipv6Addr) -> bool {
    let parts = cidr.split_once('/').and_then(|(base, length)| {
        Some((base.parse::<Ipv6Addr>().ok()?, length.parse::<u32>().ok()?))
    });
    parts.is_some_and(|(base, length)| {
        let mask = u128::MAX.checked_shl(128_u32.saturating_sub(length)).unwrap_or(0);
        u128::from(base) & mask == u128::from(address) & mask
    })
}
