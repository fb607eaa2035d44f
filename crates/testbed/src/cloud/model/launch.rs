//! What does RunInstances do? Client tokens, capacity, and the birth of instances.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use jiff::Timestamp;

use super::{
    Cloud, Timer,
    error::Ec2Error,
    fates::Fate,
    instance::{Instance, InstanceState, NetworkInterface, Spot, Volume},
    launch_plan::{InterfacePlan, LaunchPlan, plan_launch},
    random::Randomness,
    request::RunInstances,
    response::{Reservation, Response},
    time::later,
};

/// A client token and where it counts. AWS documents RunInstances as zonal when the request names a
/// zone or a subnet: the same token in another zone launches anew.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenKey {
    token: String,
    zone: String,
}

/// What is remembered of a launch by its token.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TokenEntry {
    request: Arc<RunInstances>,
    reservation_id: String,
    instance_ids: Vec<String>,
    live: BTreeSet<String>,
    ended_at: Option<Timestamp>,
}

impl TokenEntry {
    pub(super) fn instance_ended(&mut self, at: Timestamp, id: &str) {
        self.live.remove(id);
        if self.live.is_empty() {
            self.ended_at = Some(at);
        }
    }
}

impl Cloud {
    pub(super) fn run_instances(
        &mut self,
        now: Timestamp,
        request: &Arc<RunInstances>,
    ) -> Result<Response, Ec2Error> {
        let plan = plan_launch(&self.world, request)?;
        let key =
            request.client_token.clone().map(|token| TokenKey { token, zone: plan.zone.clone() });
        if let Some(key) = &key
            && let Some(repeated) = self.repeated_launch(now, key, request)?
        {
            return Ok(Response::Launched(repeated));
        }
        let count = self.launchable_count(request, &plan)?;
        let places =
            self.hosts_for(request.placement.as_ref(), plan.instance_type, &plan.zone, count)?;
        let count = match &places {
            Some(places) => i64::try_from(places.len()).unwrap_or(count),
            None => count,
        };
        if count < request.min_count {
            return Err(Ec2Error::new(
                "InsufficientCapacityOnHost",
                "There is not enough capacity on the Dedicated Host to launch the instances.",
            ));
        }
        let mut places = places.into_iter().flatten();
        let reservation_id = self.randomness.resource_id("r");
        let mut ids = Vec::new();
        for index in 0..count {
            let mut instance = self.give_birth(now, request, &plan, &reservation_id, index)?;
            ids.push(instance.id.clone());
            instance.token = key.clone();
            instance.host_id = places.next();
            instance.fate = self.draw_fate();
            if instance.fate == Some(Fate::Stuck) {
                instance.transition_due = Some(Timestamp::MAX);
            } else {
                let boots_at = later(now, self.config.delays.pending_to_running);
                self.set_timer(boots_at, &instance.id, Timer::TransitionEnds);
            }
            self.instances.insert(instance.id.clone(), instance);
        }
        if let Some(key) = key {
            let entry = TokenEntry {
                request: Arc::clone(request),
                reservation_id: reservation_id.clone(),
                instance_ids: ids.clone(),
                live: ids.iter().cloned().collect(),
                ended_at: None,
            };
            self.tokens.insert(key, entry);
        }
        self.touch();
        Ok(Response::Launched(self.reservation(reservation_id, &ids)))
    }

    /// Returns what an earlier call with this token launched; none means the token is new.
    fn repeated_launch(
        &mut self,
        now: Timestamp,
        key: &TokenKey,
        request: &RunInstances,
    ) -> Result<Option<Reservation>, Ec2Error> {
        let Some(entry) = self.tokens.get(key) else {
            return Ok(None);
        };
        let memory = self.config.delays.client_token_memory;
        let is_forgotten = entry.ended_at.is_some_and(|ended_at| later(ended_at, memory) <= now);
        if is_forgotten {
            self.tokens.remove(key);
            return Ok(None);
        }
        if *entry.request != *request {
            return Err(Ec2Error::new(
                "IdempotentParameterMismatch",
                "The request uses the same client token as a previous, but non-identical request. \
                 Do not reuse a client token with different requests, unless the requests are \
                 identical.",
            ));
        }
        if entry.live.is_empty() {
            return Err(Ec2Error::new(
                "IdempotentInstanceTerminated",
                "The request to launch an instance uses the same client token as a previous request \
                 for which the instance has been terminated.",
            ));
        }
        Ok(Some(self.reservation(entry.reservation_id.clone(), &entry.instance_ids)))
    }

    fn reservation(&self, id: String, instance_ids: &[String]) -> Reservation {
        Reservation {
            id,
            owner_id: self.config.account_id.clone(),
            instances: instance_ids
                .iter()
                .filter_map(|id| self.instances.get(id).cloned())
                .collect(),
        }
    }

    /// Returns how many instances there is room for, between MinCount and MaxCount.
    fn launchable_count(&self, request: &RunInstances, plan: &LaunchPlan) -> Result<i64, Ec2Error> {
        let room = self.check_capacity(plan.instance_type.name, &plan.zone, request.min_count)?;
        let mut count = request.max_count.min(room);
        for interface in &plan.interfaces {
            let Some(subnet) = self.world.subnets.get(&interface.subnet_id) else {
                continue;
            };
            let for_each =
                1 + interface.specification.secondary_private_ip_address_count.unwrap_or(0).max(0);
            let free = i64::try_from(subnet.free_addresses()).unwrap_or(i64::MAX);
            count = count.min(free / for_each);
            if count < request.min_count {
                return Err(Ec2Error::new(
                    "InsufficientFreeAddressesInSubnet",
                    format!(
                        "There are not enough free addresses in subnet '{}' to satisfy the requested \
                         number of instances.",
                        subnet.id
                    ),
                ));
            }
            let is_taken = interface.address.is_some_and(|address| !subnet.is_free(address));
            if is_taken || (interface.address.is_some() && request.max_count > 1) {
                return Err(Ec2Error::new(
                    "InvalidIPAddress.InUse",
                    format!(
                        "Address {} is in use.",
                        interface.address.map(|address| address.to_string()).unwrap_or_default()
                    ),
                ));
            }
        }
        Ok(count)
    }

    /// Returns how many more instances of the type fit in the zone, at least as many as are needed.
    pub(super) fn check_capacity(
        &self,
        instance_type: &str,
        zone: &str,
        needed: i64,
    ) -> Result<i64, Ec2Error> {
        let Some(available) = self.faults.capacity_for(instance_type, zone) else {
            return Ok(i64::MAX);
        };
        let held = self
            .instances
            .values()
            .filter(|instance| {
                instance.instance_type == instance_type
                    && instance.availability_zone == zone
                    && matches!(instance.state, InstanceState::Pending | InstanceState::Running)
            })
            .count();
        let room = i64::from(available).saturating_sub(i64::try_from(held).unwrap_or(i64::MAX));
        if room < needed {
            return Err(Ec2Error::new(
                "InsufficientInstanceCapacity",
                format!(
                    "We currently do not have sufficient {instance_type} capacity in the \
                     Availability Zone you requested ({zone}). Our system will be working on \
                     provisioning additional capacity."
                ),
            ));
        }
        Ok(room)
    }

    fn give_birth(
        &mut self,
        now: Timestamp,
        request: &Arc<RunInstances>,
        plan: &LaunchPlan,
        reservation_id: &str,
        index: i64,
    ) -> Result<Instance, Ec2Error> {
        let id = self.randomness.resource_id("i");
        let mut interfaces = Vec::new();
        for interface in &plan.interfaces {
            interfaces.push(self.attach_interface(now, request, plan, interface, &id)?);
        }
        let volumes = plan
            .volumes
            .iter()
            .map(|volume| Volume {
                id: self.randomness.resource_id("vol"),
                device_name: volume.device_name.clone(),
                delete_on_termination: volume.delete_on_termination,
                size_gib: volume.size_gib,
                volume_type: volume.volume_type.clone(),
                attach_time: now,
                tags: plan.tags.get("volume").cloned().unwrap_or_default(),
            })
            .collect();
        let primary = interfaces.first();
        Ok(Instance {
            reservation_id: reservation_id.to_owned(),
            owner_id: self.config.account_id.clone(),
            public_domain: self.config.public_domain(),
            launch_index: index,
            parameters: Arc::clone(request),
            image_id: plan.image.id.clone(),
            instance_type: plan.instance_type.name.to_owned(),
            architecture: plan.image.architecture.clone(),
            root_device_name: plan.image.root_device_name.clone(),
            availability_zone: plan.zone.clone(),
            availability_zone_id: plan.zone_id.clone(),
            vpc_id: primary.map(|interface| interface.vpc_id.clone()),
            subnet_id: primary.map(|interface| interface.subnet_id.clone()),
            state: InstanceState::Pending,
            state_reason: None,
            transition_reason: String::new(),
            created_at: now,
            launch_time: self.shown_launch_time(now),
            booted_at: None,
            terminated_at: None,
            visible_from: self.visible_from(now),
            boot_generation: 0,
            tags: plan.tags.get("instance").cloned().unwrap_or_default(),
            security_groups: primary
                .map(|interface| interface.security_groups.clone())
                .unwrap_or_default(),
            private_dns_name: primary
                .map(|interface| interface.private_dns_name.clone())
                .unwrap_or_default(),
            interfaces,
            volumes,
            spot: self.spot_request(request, plan),
            impairment: None,
            events: std::collections::BTreeMap::new(),
            host_id: None,
            auto_recovery: request
                .maintenance_options
                .as_ref()
                .and_then(|options| options.auto_recovery.clone())
                .unwrap_or_else(|| "default".into()),
            reboot_migration: "disabled".into(),
            fate: None,
            lingers_until: None,
            transition_due: Some(later(now, self.config.delays.pending_to_running)),
            rebooting_until: None,
            token: None,
            id,
        })
    }

    fn spot_request(&mut self, request: &RunInstances, plan: &LaunchPlan) -> Option<Spot> {
        let market = request.instance_market_options.as_ref()?;
        if market.market_type.as_deref() != Some("spot") {
            return None;
        }
        let persistent = market
            .spot_options
            .as_ref()
            .is_some_and(|spot| spot.spot_instance_type.as_deref() == Some("persistent"));
        Some(Spot {
            request_id: self.randomness.resource_id("sir"),
            persistent,
            notice: None,
            rebalance: None,
            tags: plan.tags.get("spot-instances-request").cloned().unwrap_or_default(),
        })
    }

    fn visible_from(&mut self, now: Timestamp) -> Timestamp {
        match &self.faults.launch_visibility {
            Some(fault) if self.randomness.strikes(fault.probability) => later(now, fault.lag),
            Some(_) | None => now,
        }
    }

    fn attach_interface(
        &mut self,
        now: Timestamp,
        request: &RunInstances,
        plan: &LaunchPlan,
        interface: &InterfacePlan,
        instance_id: &str,
    ) -> Result<NetworkInterface, Ec2Error> {
        let specification = &interface.specification;
        let subnet = self.world.subnets.get_mut(&interface.subnet_id).ok_or_else(|| {
            Ec2Error::new(
                "InvalidSubnetID.NotFound",
                format!("The subnet ID '{}' does not exist", interface.subnet_id),
            )
        })?;
        let mut private_addresses = Vec::new();
        if let Some(address) = interface.address {
            subnet.take(address);
            private_addresses.push(address);
        }
        let secondary = specification.secondary_private_ip_address_count.unwrap_or(0).max(0);
        let wanted = usize::try_from(secondary).unwrap_or(0) + 1;
        while private_addresses.len() < wanted {
            let Some(address) = subnet.take_next(self.config.reuses_addresses) else { break };
            private_addresses.push(address);
        }
        let primary = private_addresses.first().copied().ok_or_else(|| {
            Ec2Error::new(
                "InsufficientFreeAddressesInSubnet",
                format!("There are no free addresses in subnet '{}'.", interface.subnet_id),
            )
        })?;
        let ipv6_prefix = subnet.ipv6_cidr.clone();
        let ipv6_count = specification.ipv6_address_count.unwrap_or(0).max(0);
        let names_by_resource = request
            .private_dns_name_options
            .as_ref()
            .is_some_and(|options| options.hostname_type.as_deref() == Some("resource-name"));
        let host = if names_by_resource {
            instance_id.to_owned()
        } else {
            format!("ip-{}", dashed(primary))
        };
        let mac = self.randomness.number_below(1 << 40);
        Ok(NetworkInterface {
            id: self.randomness.resource_id("eni"),
            attachment_id: self.randomness.resource_id("eni-attach"),
            device_index: specification.device_index.unwrap_or(0),
            network_card_index: specification.network_card_index.unwrap_or(0),
            subnet_id: interface.subnet_id.clone(),
            vpc_id: interface.vpc_id.clone(),
            security_groups: interface.security_groups.clone(),
            mac_address: mac_address(mac),
            private_dns_name: format!("{host}.{}", self.config.internal_domain()),
            private_addresses,
            wants_public_address: interface.wants_public_address,
            public_address: interface
                .wants_public_address
                .then(|| public_address(&mut self.randomness)),
            carrier_address: (specification.associate_carrier_ip_address == Some(true))
                .then(|| carrier_address(&mut self.randomness)),
            ipv6_addresses: (0..ipv6_count)
                .filter_map(|_| ipv6_address(&ipv6_prefix, &mut self.randomness))
                .collect(),
            primary_ipv6: specification.primary_ipv6.unwrap_or(false),
            description: specification.description.clone().unwrap_or_default(),
            interface_type: specification
                .interface_type
                .clone()
                .unwrap_or_else(|| "interface".into()),
            delete_on_termination: specification.delete_on_termination.unwrap_or(true),
            attach_time: now,
            tags: plan.tags.get("network-interface").cloned().unwrap_or_default(),
        })
    }
}

/// Returns a public address out of a range that AWS really uses.
pub(super) fn public_address(randomness: &mut Randomness) -> Ipv4Addr {
    let [_, second, third, fourth] =
        u32::try_from(randomness.number_below(1 << 24)).unwrap_or(1).to_be_bytes();
    Ipv4Addr::new(54, second, third, fourth)
}

/// Returns an address out of the range that AWS's documentation uses for carriers.
fn carrier_address(randomness: &mut Randomness) -> Ipv4Addr {
    let [_, _, third, fourth] =
        u32::try_from(randomness.number_below(1 << 16)).unwrap_or(1).to_be_bytes();
    Ipv4Addr::new(155, 146, third, fourth)
}

/// Returns an address with its bytes joined by dashes, as it stands in EC2's host names.
pub fn dashed(address: Ipv4Addr) -> String {
    address.to_string().replace('.', "-")
}

fn mac_address(number: u64) -> String {
    let [_, _, _, a, b, c, d, e] = number.to_be_bytes();
    // The second lowest bit of the first byte marks a locally administered address, as ENIs have.
    format!("0e:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}")
}

fn ipv6_address(cidr: &str, randomness: &mut Randomness) -> Option<Ipv6Addr> {
    let prefix: Ipv6Addr = cidr.split('/').next()?.parse().ok()?;
    let host = u128::from(randomness.number_below(u64::MAX));
    Some(Ipv6Addr::from(u128::from(prefix) | host))
}
