//! Which machines are somebody's alone? Dedicated hosts: allocated, filled, and released.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Cloud, Timer,
    catalog::{InstanceType, instance_type},
    error::Ec2Error,
    filter::{Filterable, check_filters, cut_page, matches_filters},
    instance::{Instance, InstanceState},
    random::is_resource_id,
    request::{AllocateHosts, DescribeHosts, Placement, ReleaseHosts},
    response::Response,
    tags::{Tags, checked_tags},
    time::later,
};

/// What a host of most families has: 48 cores of two threads.
const VCPUS: u32 = 96;
const CORES: u32 = 48;
const QUANTITY_MAX: i64 = 100;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    pub id: String,
    pub owner_id: String,
    pub availability_zone: String,
    pub availability_zone_id: String,
    /// The only type that it takes; none means every type of its family.
    pub instance_type: Option<String>,
    pub instance_family: String,
    pub auto_placement: bool,
    pub host_recovery: String,
    pub host_maintenance: String,
    pub client_token: Option<String>,
    pub state: HostState,
    pub allocated_at: Timestamp,
    pub released_at: Option<Timestamp>,
    pub tags: Tags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostState {
    Available,
    Released,
}

/// A host with what is on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostDescription {
    #[serde(flatten)]
    pub host: Host,
    /// The instances that hold it, with their types.
    pub instances: BTreeMap<String, String>,
    pub available_vcpus: u32,
}

/// One id that ReleaseHosts could not release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreleasedHost {
    pub id: String,
    pub code: &'static str,
    pub message: String,
}

/// What is remembered of an allocation by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Allocation {
    request: AllocateHosts,
    ids: Vec<String>,
}

impl HostState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Released => "released",
        }
    }
}

impl HostDescription {
    pub fn total_vcpus(&self) -> u32 {
        VCPUS
    }

    pub fn cores(&self) -> u32 {
        CORES
    }
}

impl Cloud {
    pub(super) fn allocate_hosts(
        &mut self,
        now: Timestamp,
        request: &AllocateHosts,
    ) -> Result<Response, Ec2Error> {
        if let Some(token) = &request.client_token
            && let Some(known) = self.host_allocations.get(token)
        {
            if known.request != *request {
                return Err(Ec2Error::new(
                    "IdempotentParameterMismatch",
                    "The request uses the same client token as a previous, but non-identical \
                     request.",
                ));
            }
            return Ok(Response::HostsAllocated(known.ids.clone()));
        }
        let (zone, zone_id) = self.host_zone(request)?;
        let (kind, family) = host_kind(request)?;
        let quantity = request.quantity.unwrap_or(1);
        if !(1..=QUANTITY_MAX).contains(&quantity) {
            return Err(Ec2Error::invalid_value(format!(
                "Value ({quantity}) for parameter quantity is invalid. Expecting a value between 1 \
                 and {QUANTITY_MAX}."
            )));
        }
        let auto_placement = match request.auto_placement.as_deref() {
            None | Some("on") => true,
            Some("off") => false,
            Some(other) => {
                return Err(Ec2Error::invalid_value(format!(
                    "Value ({other}) for parameter autoPlacement is invalid. Expecting one of: on, \
                     off"
                )));
            }
        };
        let tags = host_tags(request)?;
        let mut ids = Vec::new();
        for _ in 0..quantity {
            let id = self.randomness.resource_id("h");
            let host = Host {
                id: id.clone(),
                owner_id: self.config.account_id.clone(),
                availability_zone: zone.clone(),
                availability_zone_id: zone_id.clone(),
                instance_type: kind.clone(),
                instance_family: family.clone(),
                auto_placement,
                host_recovery: request.host_recovery.clone().unwrap_or_else(|| "off".into()),
                host_maintenance: request.host_maintenance.clone().unwrap_or_else(|| "off".into()),
                client_token: request.client_token.clone(),
                state: HostState::Available,
                allocated_at: now,
                released_at: None,
                tags: tags.clone(),
            };
            self.hosts.insert(id.clone(), host);
            ids.push(id);
        }
        if let Some(token) = &request.client_token {
            let allocation = Allocation { request: request.clone(), ids: ids.clone() };
            self.host_allocations.insert(token.clone(), allocation);
        }
        Ok(Response::HostsAllocated(ids))
    }

    fn host_zone(&self, request: &AllocateHosts) -> Result<(String, String), Ec2Error> {
        let zone = self.world.zones.iter().find(|zone| {
            match (&request.availability_zone, &request.availability_zone_id) {
                (Some(name), _) => zone.name == *name,
                (None, Some(id)) => zone.id == *id,
                (None, None) => false,
            }
        });
        let named = request.availability_zone.as_ref().or(request.availability_zone_id.as_ref());
        match (zone, named) {
            (Some(zone), _) => Ok((zone.name.clone(), zone.id.clone())),
            (None, None) => Err(Ec2Error::missing_parameter("availabilityZone")),
            (None, Some(named)) => {
                Err(Ec2Error::invalid_value(format!("Invalid availability zone: [{named}]")))
            }
        }
    }

    pub(super) fn describe_hosts(&self, request: &DescribeHosts) -> Result<Response, Ec2Error> {
        check_filters::<HostDescription>(&request.filters)?;
        for id in &request.host_ids {
            self.known_host(id)?;
        }
        let ids = &request.host_ids;
        let matching = self
            .hosts
            .values()
            .filter(|host| ids.is_empty() || ids.contains(&host.id))
            .map(|host| self.host_description(host))
            .filter(|host| matches_filters(host, &request.filters));
        cut_page("DescribeHosts", &request.page, matching).map(Response::Hosts)
    }

    pub(super) fn release_hosts(
        &mut self,
        now: Timestamp,
        request: &ReleaseHosts,
    ) -> Result<Response, Ec2Error> {
        if request.host_ids.is_empty() {
            return Err(Ec2Error::missing_parameter("hostId"));
        }
        let mut successful = Vec::new();
        let mut unsuccessful = Vec::new();
        for id in &request.host_ids {
            let is_held = self.hosts.get(id).is_some_and(|host| host.state == HostState::Available);
            if !is_held {
                unsuccessful.push(UnreleasedHost {
                    id: id.clone(),
                    code: "Client.InvalidHostID.NotFound",
                    message: format!("Dedicated host '{id}' does not exist"),
                });
                continue;
            }
            if self.on_host(id).next().is_some() {
                unsuccessful.push(UnreleasedHost {
                    id: id.clone(),
                    code: "Client.InvalidHost.Occupied",
                    message: format!("Dedicated host '{id}' cannot be released as it is occupied."),
                });
                continue;
            }
            if let Some(host) = self.hosts.get_mut(id) {
                host.state = HostState::Released;
                host.released_at = Some(now);
            }
            let fades_at = later(now, self.config.delays.terminated_visible);
            self.set_timer(fades_at, id, Timer::HostFades);
            successful.push(id.clone());
        }
        Ok(Response::HostsReleased { successful, unsuccessful })
    }

    pub(super) fn host_fades(&mut self, id: &str) {
        self.hosts.remove(id);
    }

    /// Returns every host that can be described, in the order of their ids.
    pub fn hosts(&self) -> Vec<HostDescription> {
        self.hosts.values().map(|host| self.host_description(host)).collect()
    }

    /// Returns a host for each of the instances that a launch or start wants, as many as fit; none
    /// where the tenancy is not `host`.
    pub(super) fn hosts_for(
        &self,
        placement: Option<&Placement>,
        kind: &InstanceType,
        zone: &str,
        count: i64,
    ) -> Result<Option<Vec<String>>, Ec2Error> {
        let Some(placement) =
            placement.filter(|placement| placement.tenancy.as_deref() == Some("host"))
        else {
            return Ok(None);
        };
        let candidates: Vec<&Host> = match &placement.host_id {
            Some(id) => vec![self.usable_host(id, kind, zone)?],
            None => self
                .hosts
                .values()
                .filter(|host| {
                    host.auto_placement
                        && host.state == HostState::Available
                        && host.availability_zone == zone
                        && host.takes(kind)
                })
                .collect(),
        };
        let mut places = Vec::new();
        for host in candidates {
            let room = self.free_vcpus(&host.id) / kind.vcpus.max(1);
            places.extend((0..room).map(|_| host.id.clone()));
        }
        places.truncate(usize::try_from(count).unwrap_or(0));
        if places.is_empty() {
            return Err(Ec2Error::new(
                "InsufficientCapacityOnHost",
                "There is not enough capacity on the Dedicated Host to launch or start the instance.",
            ));
        }
        Ok(Some(places))
    }

    /// Returns the host that a stopped instance would start on; none where it needs no host.
    pub(super) fn host_to_start_on(&self, id: &str) -> Result<Option<String>, Ec2Error> {
        let Some(instance) = self.instances.get(id) else {
            return Ok(None);
        };
        let Some(kind) = instance_type(&instance.instance_type) else {
            return Ok(None);
        };
        let placement = instance.parameters.placement.clone().map(|placement| Placement {
            host_id: instance.host_id.clone().filter(|_| instance.affinity() == Some("host")),
            ..placement
        });
        let places = self.hosts_for(placement.as_ref(), kind, &instance.availability_zone, 1)?;
        Ok(places.into_iter().flatten().next())
    }

    fn usable_host(&self, id: &str, kind: &InstanceType, zone: &str) -> Result<&Host, Ec2Error> {
        let host = self.known_host(id)?;
        if host.state != HostState::Available {
            return Err(Ec2Error::new(
                "InvalidHostState",
                format!("The Dedicated Host '{id}' is not in the available state"),
            ));
        }
        if host.availability_zone != zone {
            return Err(Ec2Error::invalid_value(format!(
                "The Dedicated Host '{id}' is in the Availability Zone {}, not in {zone}",
                host.availability_zone
            )));
        }
        if !host.takes(kind) {
            return Err(Ec2Error::invalid_value(format!(
                "The instance type {} is not supported on the Dedicated Host '{id}'",
                kind.name
            )));
        }
        Ok(host)
    }

    fn known_host(&self, id: &str) -> Result<&Host, Ec2Error> {
        if !is_resource_id(id, "h") {
            return Err(Ec2Error::new(
                "InvalidHostID.Malformed",
                format!("Invalid id: \"{id}\" (expecting \"h-...\")"),
            ));
        }
        self.hosts.get(id).ok_or_else(|| {
            Ec2Error::new(
                "InvalidHostID.NotFound",
                format!("The Dedicated Host ID '{id}' does not exist"),
            )
        })
    }

    /// Returns the instances that hold a host: a stopped one is on no host.
    fn on_host<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Instance> {
        self.instances.values().filter(move |instance| {
            instance.host_id.as_deref() == Some(id)
                && !matches!(instance.state, InstanceState::Stopped | InstanceState::Terminated)
        })
    }

    fn free_vcpus(&self, id: &str) -> u32 {
        let used: u32 = self
            .on_host(id)
            .filter_map(|instance| super::instance_type(&instance.instance_type))
            .map(|kind| kind.vcpus)
            .sum();
        VCPUS.saturating_sub(used)
    }

    fn host_description(&self, host: &Host) -> HostDescription {
        HostDescription {
            instances: self
                .on_host(&host.id)
                .map(|instance| (instance.id.clone(), instance.instance_type.clone()))
                .collect(),
            available_vcpus: self.free_vcpus(&host.id),
            host: host.clone(),
        }
    }
}

impl Host {
    fn takes(&self, kind: &InstanceType) -> bool {
        match &self.instance_type {
            Some(name) => name == kind.name,
            None => family_of(kind.name) == self.instance_family,
        }
    }
}

fn family_of(instance_type: &str) -> &str {
    instance_type.split('.').next().unwrap_or_default()
}

fn host_kind(request: &AllocateHosts) -> Result<(Option<String>, String), Ec2Error> {
    match (&request.instance_type, &request.instance_family) {
        (Some(_), Some(_)) => Err(Ec2Error::invalid_combination(
            "The parameter instanceType cannot be used with the parameter instanceFamily",
        )),
        (None, None) => Err(Ec2Error::missing_parameter("instanceType")),
        (Some(name), None) => {
            if instance_type(name).is_none() {
                return Err(Ec2Error::invalid_value(format!(
                    "Invalid value '{name}' for instanceType."
                )));
            }
            Ok((Some(name.clone()), family_of(name).to_owned()))
        }
        (None, Some(family)) => {
            if !super::INSTANCE_TYPES.iter().any(|kind| family_of(kind.name) == family) {
                return Err(Ec2Error::invalid_value(format!(
                    "Invalid value '{family}' for instanceFamily."
                )));
            }
            Ok((None, family.clone()))
        }
    }
}

fn host_tags(request: &AllocateHosts) -> Result<Tags, Ec2Error> {
    let mut tags = Tags::new();
    for specification in &request.tag_specifications {
        if specification.resource_type != "dedicated-host" {
            return Err(Ec2Error::invalid_value(format!(
                "'{}' is not a valid taggable resource type for this operation.",
                specification.resource_type
            )));
        }
        tags.extend(checked_tags(&specification.tags)?);
    }
    Ok(tags)
}

impl Filterable for HostDescription {
    const FILTERS: &'static [&'static str] = &[
        "auto-placement",
        "availability-zone",
        "availability-zone-id",
        "client-token",
        "host-reservation-id",
        "instance-type",
        "state",
    ];

    fn page_key(&self) -> &str {
        &self.host.id
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.host.tags)
    }

    fn filter_values(&self, name: &str) -> Vec<String> {
        match name {
            "auto-placement" => vec![if self.host.auto_placement { "on" } else { "off" }.into()],
            "availability-zone" => vec![self.host.availability_zone.clone()],
            "availability-zone-id" => vec![self.host.availability_zone_id.clone()],
            "client-token" => self.host.client_token.iter().cloned().collect(),
            "instance-type" => self.host.instance_type.iter().cloned().collect(),
            "state" => vec![self.host.state.name().into()],
            _ => Vec::new(),
        }
    }
}
