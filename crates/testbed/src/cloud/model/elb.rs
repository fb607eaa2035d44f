//! What do classic load balancers do? The actions of the Elastic Load Balancing API of 2012-06-01.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Cloud,
    error::Ec2Error,
    instance::InstanceState,
    load_balancers::{BalancedSubnets, balancer_tags, marked_page, validation},
    request::Tag,
    response::Paged,
    tags::Tags,
    time::later,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ElbRequest {
    CreateLoadBalancer(CreateClassicLoadBalancer),
    DeleteLoadBalancer(ClassicName),
    DescribeLoadBalancers(DescribeClassicLoadBalancers),
    RegisterInstancesWithLoadBalancer(ClassicInstances),
    DeregisterInstancesFromLoadBalancer(ClassicInstances),
    DescribeInstanceHealth(ClassicInstances),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CreateClassicLoadBalancer {
    pub load_balancer_name: String,
    pub listeners: Vec<ClassicListener>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub availability_zones: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ClassicListener {
    pub protocol: String,
    pub load_balancer_port: i64,
    pub instance_protocol: Option<String>,
    pub instance_port: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ClassicName {
    pub load_balancer_name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeClassicLoadBalancers {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_balancer_names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_size: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ClassicInstances {
    pub load_balancer_name: String,
    pub instances: Vec<ClassicInstance>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ClassicInstance {
    pub instance_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassicLoadBalancer {
    pub name: String,
    pub dns_name: String,
    pub request: CreateClassicLoadBalancer,
    pub availability_zones: Vec<String>,
    pub vpc_id: Option<String>,
    pub created_at: Timestamp,
    pub tags: Tags,
    /// The registered instances, and since when.
    pub instances: BTreeMap<String, Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassicHealth {
    pub instance_id: String,
    pub state: &'static str,
    pub reason_code: &'static str,
    pub description: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ElbResponse {
    Created {
        dns_name: String,
    },
    Deleted,
    LoadBalancers(Paged<ClassicLoadBalancer>),
    /// What is registered after the call, and which of it the call was about.
    Instances {
        registered: Vec<String>,
        changed: Vec<String>,
    },
    Health(Vec<ClassicHealth>),
}

impl ElbRequest {
    pub fn action(&self) -> &'static str {
        match self {
            Self::CreateLoadBalancer(_) => "elb:CreateLoadBalancer",
            Self::DeleteLoadBalancer(_) => "elb:DeleteLoadBalancer",
            Self::DescribeLoadBalancers(_) => "elb:DescribeLoadBalancers",
            Self::RegisterInstancesWithLoadBalancer(_) => "elb:RegisterInstancesWithLoadBalancer",
            Self::DeregisterInstancesFromLoadBalancer(_) => {
                "elb:DeregisterInstancesFromLoadBalancer"
            }
            Self::DescribeInstanceHealth(_) => "elb:DescribeInstanceHealth",
        }
    }

    pub fn load_balancer_name(&self) -> Option<&str> {
        match self {
            Self::CreateLoadBalancer(request) => Some(&request.load_balancer_name),
            Self::DeleteLoadBalancer(request) => Some(&request.load_balancer_name),
            Self::RegisterInstancesWithLoadBalancer(request)
            | Self::DeregisterInstancesFromLoadBalancer(request)
            | Self::DescribeInstanceHealth(request) => Some(&request.load_balancer_name),
            Self::DescribeLoadBalancers(_) => None,
        }
    }
}

impl Cloud {
    pub(super) fn carry_out_elb(
        &mut self,
        now: Timestamp,
        request: &ElbRequest,
    ) -> Result<ElbResponse, Ec2Error> {
        match request {
            ElbRequest::CreateLoadBalancer(request) => self.create_classic(now, request),
            ElbRequest::DeleteLoadBalancer(request) => {
                // Deleting what is not there succeeds, as in AWS.
                self.load_balancers.classic.remove(&request.load_balancer_name);
                Ok(ElbResponse::Deleted)
            }
            ElbRequest::DescribeLoadBalancers(request) => self.describe_classic(request),
            ElbRequest::RegisterInstancesWithLoadBalancer(request) => {
                self.register_classic(now, request)
            }
            ElbRequest::DeregisterInstancesFromLoadBalancer(request) => {
                self.deregister_classic(request)
            }
            ElbRequest::DescribeInstanceHealth(request) => {
                self.describe_classic_health(now, request)
            }
        }
    }

    fn create_classic(
        &mut self,
        now: Timestamp,
        request: &CreateClassicLoadBalancer,
    ) -> Result<ElbResponse, Ec2Error> {
        let name = &request.load_balancer_name;
        if request.listeners.is_empty() {
            return Err(validation("Listeners is required"));
        }
        if let Some(existing) = self.load_balancers.classic.get(name) {
            if existing.request == *request {
                return Ok(ElbResponse::Created { dns_name: existing.dns_name.clone() });
            }
            return Err(Ec2Error::new(
                "DuplicateLoadBalancerName",
                format!(
                    "The load balancer '{name}' already exists and is configured with different \
                     parameters"
                ),
            ));
        }
        if request.subnets.is_empty() == request.availability_zones.is_empty() {
            return Err(validation("Either AvailabilityZones or Subnets must be specified"));
        }
        let BalancedSubnets { zones: subnets, vpc_id } = self.balanced_subnets(&request.subnets)?;
        self.check_balancer_groups(&request.security_groups)?;
        let zones = if subnets.is_empty() {
            request.availability_zones.clone()
        } else {
            subnets.into_iter().map(|(zone, _)| zone).collect()
        };
        let number = self.randomness.number_below(10_000_000_000);
        let dns_name = format!("{name}-{number}.{}.elb.amazonaws.com", self.config.region);
        let balancer = ClassicLoadBalancer {
            name: name.clone(),
            dns_name: dns_name.clone(),
            request: request.clone(),
            availability_zones: zones,
            vpc_id,
            created_at: now,
            tags: balancer_tags(&request.tags)?,
            instances: BTreeMap::new(),
        };
        self.load_balancers.classic.insert(name.clone(), balancer);
        Ok(ElbResponse::Created { dns_name })
    }

    fn describe_classic(
        &self,
        request: &DescribeClassicLoadBalancers,
    ) -> Result<ElbResponse, Ec2Error> {
        let names = &request.load_balancer_names;
        for name in names {
            self.classic(name)?;
        }
        let found = self
            .load_balancers
            .classic
            .values()
            .filter(|balancer| names.is_empty() || names.contains(&balancer.name))
            .cloned()
            .collect();
        marked_page(found, request.marker.as_deref(), request.page_size)
            .map(ElbResponse::LoadBalancers)
    }

    fn register_classic(
        &mut self,
        now: Timestamp,
        request: &ClassicInstances,
    ) -> Result<ElbResponse, Ec2Error> {
        self.classic(&request.load_balancer_name)?;
        let changed = self.known_instances(now, request)?;
        let registered = match self.load_balancers.classic.get_mut(&request.load_balancer_name) {
            None => Vec::new(),
            Some(balancer) => {
                for id in &changed {
                    balancer.instances.entry(id.clone()).or_insert(now);
                }
                balancer.instances.keys().cloned().collect()
            }
        };
        Ok(ElbResponse::Instances { registered, changed })
    }

    fn deregister_classic(&mut self, request: &ClassicInstances) -> Result<ElbResponse, Ec2Error> {
        self.classic(&request.load_balancer_name)?;
        let changed: Vec<String> =
            request.instances.iter().map(|instance| instance.instance_id.clone()).collect();
        let registered = match self.load_balancers.classic.get_mut(&request.load_balancer_name) {
            None => Vec::new(),
            Some(balancer) => {
                let unknown = changed.iter().find(|id| {
                    !balancer.instances.contains_key(*id) && !self.instances.contains_key(*id)
                });
                if let Some(id) = unknown {
                    return Err(invalid_instance(id));
                }
                balancer.instances.retain(|id, _| !changed.contains(id));
                balancer.instances.keys().cloned().collect()
            }
        };
        Ok(ElbResponse::Instances { registered, changed })
    }

    fn describe_classic_health(
        &self,
        now: Timestamp,
        request: &ClassicInstances,
    ) -> Result<ElbResponse, Ec2Error> {
        let balancer = self.classic(&request.load_balancer_name)?;
        let asked: Vec<&String> =
            request.instances.iter().map(|instance| &instance.instance_id).collect();
        if let Some(id) = asked.iter().find(|id| !balancer.instances.contains_key(**id)) {
            return Err(invalid_instance(id));
        }
        let health = balancer
            .instances
            .iter()
            .filter(|(id, _)| asked.is_empty() || asked.contains(id))
            .map(|(id, since)| self.classic_health(now, id, *since))
            .collect();
        Ok(ElbResponse::Health(health))
    }

    pub(super) fn classic_health(
        &self,
        now: Timestamp,
        id: &str,
        registered_at: Timestamp,
    ) -> ClassicHealth {
        let out = |reason_code, description: &str| ClassicHealth {
            instance_id: id.to_owned(),
            state: "OutOfService",
            reason_code,
            description: description.into(),
        };
        let Some(instance) =
            self.instances.get(id).filter(|instance| instance.state != InstanceState::Terminated)
        else {
            return out("Instance", "Instance is in terminated state.");
        };
        let since = instance.booted_at.unwrap_or(registered_at).max(registered_at);
        if instance.state != InstanceState::Running {
            return out("Instance", &format!("Instance is in {} state.", instance.state.name()));
        }
        if instance.impairment.is_some() || instance.is_rebooting() {
            return out(
                "Instance",
                "Instance has failed at least the UnhealthyThreshold number of health checks \
                 consecutively.",
            );
        }
        if now < later(since, self.config.delays.target_initial) {
            return out("ELB", "Instance registration is still in progress.");
        }
        ClassicHealth {
            instance_id: id.to_owned(),
            state: "InService",
            reason_code: "N/A",
            description: "N/A".into(),
        }
    }

    fn classic(&self, name: &str) -> Result<&ClassicLoadBalancer, Ec2Error> {
        self.load_balancers.classic.get(name).ok_or_else(|| {
            Ec2Error::new(
                "LoadBalancerNotFound",
                format!("There is no ACTIVE Load Balancer named '{name}'"),
            )
        })
    }

    fn known_instances(
        &self,
        now: Timestamp,
        request: &ClassicInstances,
    ) -> Result<Vec<String>, Ec2Error> {
        let mut ids = Vec::new();
        for ClassicInstance { instance_id } in &request.instances {
            let is_known = self.instances.get(instance_id).is_some_and(|instance| {
                instance.visible_from <= now && !instance.state.is_ending()
            });
            if !is_known {
                return Err(invalid_instance(instance_id));
            }
            ids.push(instance_id.clone());
        }
        if ids.is_empty() {
            return Err(validation("Instances is required"));
        }
        Ok(ids)
    }
}

fn invalid_instance(id: &str) -> Ec2Error {
    Ec2Error::new("InvalidInstance", format!("Could not find EC2 instance {id}."))
}
