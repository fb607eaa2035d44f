//! Which load balancers are there, and who looks at them? What both generations share.

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Cloud,
    elb::ClassicLoadBalancer,
    elbv2::{LoadBalancer, TargetGroup},
    error::Ec2Error,
    request::Tag,
    response::Paged,
    tags::Tags,
};
use std::collections::{BTreeMap, BTreeSet};

/// Everything that the two load balancing services keep.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LoadBalancers {
    /// Classic ones by name.
    pub(super) classic: BTreeMap<String, ClassicLoadBalancer>,
    /// The others by ARN, as are target groups.
    pub(super) modern: BTreeMap<String, LoadBalancer>,
    pub(super) target_groups: BTreeMap<String, TargetGroup>,
}

/// Where a load balancer is made.
pub(super) struct BalancedSubnets {
    /// Zone and subnet.
    pub(super) zones: Vec<(String, String)>,
    pub(super) vpc_id: Option<String>,
}

/// What `GET /load-balancers` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerFacts {
    pub classic: Vec<ClassicFacts>,
    pub load_balancers: Vec<ModernFacts>,
    pub target_groups: Vec<TargetGroupFacts>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassicFacts {
    pub name: String,
    pub instances: Vec<TargetFacts>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModernFacts {
    pub name: String,
    pub arn: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// The names of the groups that its listeners forward to.
    pub target_groups: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetGroupFacts {
    pub name: String,
    pub arn: String,
    pub target_type: String,
    pub load_balancers: Vec<String>,
    pub targets: Vec<TargetFacts>,
}

/// One target and its health in the words of its service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetFacts {
    pub id: String,
    pub port: Option<i64>,
    pub state: String,
    pub reason: Option<String>,
}

impl Cloud {
    /// Returns every load balancer with its targets, in the order of their names.
    pub fn load_balancer_facts(&self, now: Timestamp) -> LoadBalancerFacts {
        let classic = self.load_balancers.classic.values().map(|balancer| ClassicFacts {
            name: balancer.name.clone(),
            instances: balancer
                .instances
                .iter()
                .map(|(id, since)| {
                    let health = self.classic_health(now, id, *since);
                    TargetFacts {
                        id: id.clone(),
                        port: None,
                        state: health.state.into(),
                        reason: Some(health.description),
                    }
                })
                .collect(),
        });
        let modern = self.load_balancers.modern.values().map(|balancer| ModernFacts {
            name: balancer.name.clone(),
            arn: balancer.arn.clone(),
            kind: balancer.kind.clone(),
            target_groups: balancer
                .target_group_arns()
                .iter()
                .filter_map(|arn| self.load_balancers.target_groups.get(arn))
                .map(|group| group.name.clone())
                .collect(),
        });
        let groups = self.load_balancers.target_groups.values().map(|group| TargetGroupFacts {
            name: group.name.clone(),
            arn: group.arn.clone(),
            target_type: group.target_type.clone(),
            load_balancers: self
                .load_balancers_of(&group.arn)
                .map(|balancer| balancer.name.clone())
                .collect(),
            targets: self
                .present_targets(now, group)
                .map(|target| {
                    let health = self.target_health(now, group, target);
                    TargetFacts {
                        id: target.id.clone(),
                        port: Some(target.port),
                        state: health.state.into(),
                        reason: health.reason.map(str::to_owned),
                    }
                })
                .collect(),
        });
        let mut facts = LoadBalancerFacts {
            classic: classic.collect(),
            load_balancers: modern.collect(),
            target_groups: groups.collect(),
        };
        facts.load_balancers.sort_by(|a, b| a.name.cmp(&b.name));
        facts.target_groups.sort_by(|a, b| a.name.cmp(&b.name));
        facts
    }

    /// Returns whether any load balancer holds this instance by its id.
    pub(super) fn is_balanced(&self, instance_id: &str) -> bool {
        self.load_balancers
            .classic
            .values()
            .any(|balancer| balancer.instances.contains_key(instance_id))
            || self
                .load_balancers
                .target_groups
                .values()
                .any(|group| group.targets.values().any(|target| target.id == instance_id))
    }

    /// Forgets an instance that is gone for good. Targets by address are nobody's, so they stay.
    pub(super) fn forget_targets(&mut self, instance_id: &str) {
        for balancer in self.load_balancers.classic.values_mut() {
            balancer.instances.remove(instance_id);
        }
        for group in self.load_balancers.target_groups.values_mut() {
            group.targets.retain(|_, target| target.id != instance_id);
        }
    }

    /// Returns the zones and the one VPC of subnets that a load balancer is made in.
    pub(super) fn balanced_subnets(&self, subnets: &[String]) -> Result<BalancedSubnets, Ec2Error> {
        let mut zones = Vec::new();
        let mut vpcs = BTreeSet::new();
        for id in subnets {
            let subnet = self.world.subnets.get(id).ok_or_else(|| {
                Ec2Error::new("SubnetNotFound", format!("The subnet ID '{id}' does not exist"))
            })?;
            zones.push((subnet.zone.clone(), id.clone()));
            vpcs.insert(subnet.vpc_id.clone());
        }
        Ok(BalancedSubnets { zones, vpc_id: vpcs.into_iter().next() })
    }

    pub(super) fn check_balancer_groups(&self, groups: &[String]) -> Result<(), Ec2Error> {
        match groups.iter().find(|id| !self.world.security_groups.contains_key(*id)) {
            None => Ok(()),
            Some(id) => Err(Ec2Error::new(
                "InvalidSecurityGroup",
                format!("The security group '{id}' does not exist"),
            )),
        }
    }
}

/// Returns one page of a list whose order does not change, with the marker of the next.
pub(super) fn marked_page<T>(
    items: Vec<T>,
    marker: Option<&str>,
    page_size: Option<i64>,
) -> Result<Paged<T>, Ec2Error> {
    let size = match page_size {
        None => 400,
        Some(size) if (1..=400).contains(&size) => usize::try_from(size).unwrap_or(400),
        Some(size) => {
            return Err(validation(format!(
                "1 validation error detected: Value '{size}' at 'pageSize' failed to satisfy \
                 constraint: Member must have value between 1 and 400"
            )));
        }
    };
    let start: usize = match marker.filter(|marker| !marker.is_empty()) {
        None => 0,
        Some(marker) => {
            marker.parse().map_err(|_| validation(format!("The marker '{marker}' is not valid")))?
        }
    };
    let more = items.len() > start.saturating_add(size);
    let items = items.into_iter().skip(start).take(size).collect();
    Ok(Paged { items, next_token: more.then(|| start.saturating_add(size).to_string()) })
}

pub(super) fn validation(message: impl Into<String>) -> Ec2Error {
    Ec2Error::new("ValidationError", message)
}

/// Returns tags that a load balancer is made with; one key at most once.
pub(super) fn balancer_tags(tags: &[Tag]) -> Result<Tags, Ec2Error> {
    let mut kept = Tags::new();
    for Tag { key, value } in tags {
        if kept.insert(key.clone(), value.clone()).is_some() {
            return Err(Ec2Error::new(
                "DuplicateTagKeys",
                format!("The tag key '{key}' was specified more than once"),
            ));
        }
    }
    Ok(kept)
}
