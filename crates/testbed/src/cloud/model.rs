//! What does the cloud know, and what does it do when time passes or a call comes in?
//!
//! A pure state machine: no clock, no network, no randomness but the seed. `Cloud::call` is the front
//! door for EC2 calls, with faults, throttling and the ledger; the console's verbs are in `console`.

mod authorization;
mod breakpoints;
mod catalog;
mod config;
mod console;
mod describe;
mod elb;
mod elbv2;
mod error;
mod events;
mod facts;
mod fates;
mod faults;
mod filter;
mod hosts;
mod instance;
mod launch;
mod launch_plan;
mod launch_request;
mod ledger;
mod lifecycle;
mod load_balancers;
mod lookups;
mod metadata;
mod random;
mod reads;
mod request;
mod response;
mod tags;
#[cfg(test)]
mod tests;
mod throttle;
mod time;
mod world;
mod world_filters;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use breakpoints::Breakpoints;
use faults::Strike;
use hosts::Allocation;
use launch::{TokenEntry, TokenKey};
use ledger::Ledger;
use load_balancers::LoadBalancers;
use metadata::MetadataTokens;
use random::Randomness;
use reads::Replica;
use throttle::Throttle;

pub use authorization::Denied;
pub use breakpoints::{Breakpoint, HeldCall, HoldWhen, NewBreakpoint};
pub use catalog::{Gpu, INSTANCE_TYPES, InstanceType, instance_type};
pub use config::{CloudConfig, Delays};
pub use console::{ConsoleError, HideRequest, Impair, RebalanceRequest, SpotNoticeRequest};
pub use elb::{ClassicHealth, ClassicLoadBalancer, ElbResponse};
pub use elbv2::{
    Elbv2Response, Listener, LoadBalancer, Target, TargetGroup, TargetGroupDescription,
    TargetHealth,
};
pub use error::Ec2Error;
pub use events::{EventCode, EventPatch, EventState, NewEvent, ScheduledEvent};
pub use facts::InstanceFacts;
pub use fates::{FateKind, LaunchFate, LingeringTermination};
pub use faults::{CapacityShortage, ErrorFault, Faults, LaunchVisibility, TimeoutFault};
pub use hosts::{Host, HostDescription, HostState, UnreleasedHost};
pub use instance::{
    GroupIdentifier, ImpairedCheck, Impairment, Instance, InstanceState, NetworkInterface, Spot,
    SpotAction, SpotNotice, StateReason, Volume,
};
pub use ledger::{LedgerCall, LedgerInstance, LedgerQuery, LedgerView};
pub use lifecycle::ChangedBy;
pub use load_balancers::{
    ClassicFacts, LoadBalancerFacts, ModernFacts, TargetFacts, TargetGroupFacts,
};
pub use metadata::{MetadataAnswer, MetadataFault, MetadataFaultKind, MetadataRequest};
pub use reads::{FilterAnswer, Hidden, Omissions, PageFaults, StaleReads};
pub use request::*;
pub use response::{
    Delivery, InstanceStatus, Outcome, Paged, Reservation, Response, StateChange, StatusCheck,
};
pub use time::wire_time;
pub use world::{
    DhcpOptions, Image, Region, SecurityGroup, Subnet, Vpc, World, WorldIds, Zone, ZoneKind,
};

/// The actions that the cloud answers, as the ledger names them.
pub const ACTIONS: &[&str] = &[
    "RunInstances",
    "DescribeInstances",
    "DescribeInstanceStatus",
    "TerminateInstances",
    "StopInstances",
    "StartInstances",
    "RebootInstances",
    "CreateTags",
    "DeleteTags",
    "ModifyInstanceEventStartTime",
    "DescribeRegions",
    "DescribeAvailabilityZones",
    "DescribeVpcs",
    "DescribeDhcpOptions",
    "DescribeSubnets",
    "DescribeSecurityGroups",
    "DescribeImages",
    "DescribeInstanceTypes",
    "ModifyInstanceMaintenanceOptions",
    "AllocateHosts",
    "DescribeHosts",
    "ReleaseHosts",
    "elb:CreateLoadBalancer",
    "elb:DeleteLoadBalancer",
    "elb:DescribeLoadBalancers",
    "elb:RegisterInstancesWithLoadBalancer",
    "elb:DeregisterInstancesFromLoadBalancer",
    "elb:DescribeInstanceHealth",
    "elbv2:CreateLoadBalancer",
    "elbv2:DeleteLoadBalancer",
    "elbv2:DescribeLoadBalancers",
    "elbv2:CreateTargetGroup",
    "elbv2:DeleteTargetGroup",
    "elbv2:DescribeTargetGroups",
    "elbv2:CreateListener",
    "elbv2:RegisterTargets",
    "elbv2:DeregisterTargets",
    "elbv2:DescribeTargetHealth",
];

/// The whole cloud. Cloning it gives a second cloud that goes its own way from here.
#[derive(Debug, Clone)]
pub struct Cloud {
    config: CloudConfig,
    world: World,
    faults: Faults,
    throttle: Throttle,
    randomness: Randomness,
    /// Every instance that can be described, and terminated ones until they fade.
    instances: BTreeMap<String, Instance>,
    tokens: BTreeMap<TokenKey, TokenEntry>,
    timers: BTreeSet<(Timestamp, String, Timer)>,
    hosts: BTreeMap<String, Host>,
    /// Host allocations by their client token.
    host_allocations: BTreeMap<String, Allocation>,
    load_balancers: LoadBalancers,
    metadata_tokens: MetadataTokens,
    /// Old copies of the instances, oldest first, kept for stale reads only.
    replicas: VecDeque<Replica>,
    breakpoints: Breakpoints,
    ledger: Ledger,
    /// Counts changes that a watcher of instances can see.
    revision: u64,
}

/// Who calls: what an HTTP request says about its sender.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    pub access_key_id: Option<String>,
    pub user_agent: String,
}

/// What is due at a time. A timer may be stale; the handler compares it with the instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    TransitionEnds,
    RebootEnds,
    SpotReclaimed,
    Fades,
    EventStarts(String),
    EventSettles(String),
    EventFades(String),
    LingeringEnds,
    TargetsForgotten,
    HostFades,
}

impl Cloud {
    pub fn new(config: CloudConfig, seed: u64) -> Self {
        let mut randomness = Randomness::from_seed(seed);
        let world = World::new(&config, &mut randomness);
        Self {
            world,
            faults: config.faults.clone(),
            throttle: Throttle::default(),
            randomness,
            instances: BTreeMap::new(),
            tokens: BTreeMap::new(),
            timers: BTreeSet::new(),
            hosts: BTreeMap::new(),
            host_allocations: BTreeMap::new(),
            load_balancers: LoadBalancers::default(),
            metadata_tokens: MetadataTokens::default(),
            replicas: VecDeque::new(),
            breakpoints: Breakpoints::default(),
            ledger: Ledger::new(config.ledger_calls_max),
            revision: 0,
            config,
        }
    }

    pub fn config(&self) -> &CloudConfig {
        &self.config
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    /// Returns a number that grows with every change of an instance, its tags or its events.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the earliest time at which something happens without a call.
    pub fn next_transition(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _, _)| *at)
    }

    /// Does everything that is due by now, in order of time. What one timer sets may be due as well.
    pub fn advance(&mut self, now: Timestamp) {
        while let Some((at, id, timer)) = self.timers.pop_first() {
            if at > now {
                self.timers.insert((at, id, timer));
                return;
            }
            match timer {
                Timer::TransitionEnds => self.transition_ends(at, &id),
                Timer::RebootEnds => self.reboot_ends(at, &id),
                Timer::SpotReclaimed => self.spot_reclaimed(at, &id),
                Timer::Fades => self.fades(&id),
                Timer::EventStarts(event_id) => self.event_starts(at, &id, &event_id),
                Timer::EventSettles(event_id) => self.event_settles(at, &id, &event_id),
                Timer::EventFades(event_id) => self.event_fades(&id, &event_id),
                Timer::LingeringEnds => self.lingering_ends(at, &id),
                Timer::TargetsForgotten => self.forget_targets(&id),
                Timer::HostFades => self.host_fades(&id),
            }
        }
    }

    /// Answers one call: breakpoints, credentials, throttling, rights, faults, the action itself,
    /// the ledger.
    pub fn call(&mut self, now: Timestamp, caller: &Caller, request: Request) -> Outcome {
        self.advance(now);
        self.refresh_replicas(now);
        let request_id = self.randomness.request_id();
        let held = self.breakpoints.strike(caller, &request);
        let (result, delivery) = match held {
            Some((_, HoldWhen::Before)) => {
                let error = Ec2Error::new("Held", "A breakpoint holds the call before its effect");
                (Err(error), self.usual_delivery())
            }
            Some((_, HoldWhen::After)) | None => self.answer(now, caller, &request),
        };
        let delivery = Delivery { held: held.map(|(id, _)| id), ..delivery };
        let call = self.ledger.record(now, caller, &request, &result, delivery);
        if let (Some((id, _)), Some(call)) = (held, call) {
            self.breakpoints.note(id, call);
        }
        Outcome { request_id, result, delivery }
    }

    /// Answers a call that could not be read, and notes it in the ledger like any other.
    pub fn reject(
        &mut self,
        now: Timestamp,
        caller: &Caller,
        action: &str,
        parameters: BTreeMap<String, String>,
        error: Ec2Error,
    ) -> Outcome {
        self.advance(now);
        let request_id = self.randomness.request_id();
        // Wrong credentials are told first, as EC2 does: a stranger learns nothing about parameters.
        let service = Service::of_action(action);
        let error = self.authenticate(caller, service).err().unwrap_or(error);
        let delivery = self.usual_delivery();
        self.ledger.record_unread(now, caller, action, parameters, &error);
        Outcome { request_id, result: Err(error), delivery }
    }

    fn answer(
        &mut self,
        now: Timestamp,
        caller: &Caller,
        request: &Request,
    ) -> (Result<Response, Ec2Error>, Delivery) {
        let delivery = self.usual_delivery();
        if let Err(error) = self.authenticate(caller, request.service()) {
            return (Err(error), delivery);
        }
        if self.faults.throttling && !self.throttle.admits(now, request) {
            return (Err(Ec2Error::throttled(request.service())), delivery);
        }
        if let Err(error) = self.authorize(caller, request) {
            return (Err(error), delivery);
        }
        match self.faults.strike(caller, request.action(), &mut self.randomness) {
            None => (self.perform(now, request), delivery),
            Some(Strike::Error { error, effect }) => {
                let refused = if effect { self.perform(now, request).err() } else { None };
                (Err(refused.unwrap_or(error)), delivery)
            }
            Some(Strike::Timeout { after, effect }) => {
                let result = if effect {
                    self.perform(now, request)
                } else {
                    Err(Ec2Error::new("InternalError", "An injected fault lost the request"))
                };
                (result, Delivery { after: delivery.after + after, lost: true, held: None })
            }
        }
    }

    fn usual_delivery(&self) -> Delivery {
        let after = self.faults.latency.unwrap_or(SignedDuration::ZERO);
        Delivery { after, ..Delivery::AT_ONCE }
    }

    fn authenticate(&self, caller: &Caller, service: Service) -> Result<(), Ec2Error> {
        let key = caller.access_key_id.as_deref();
        let is_refused = key.is_some_and(|key| self.faults.refused_access_keys.contains(key));
        let is_allowed = self
            .config
            .allowed_access_keys
            .as_ref()
            .is_none_or(|allowed| key.is_some_and(|key| allowed.contains(key)));
        if is_refused || !is_allowed {
            return Err(Ec2Error::authentication_failed(service));
        }
        Ok(())
    }

    fn perform(&mut self, now: Timestamp, request: &Request) -> Result<Response, Ec2Error> {
        if !request.is_dry_run() {
            return self.carry_out(now, request);
        }
        // A dry run must find exactly the errors of the real thing; a copy of the cloud shows them.
        let mut copy = self.clone();
        let wet = match request {
            Request::RunInstances(launch) => Request::RunInstances(Arc::new(RunInstances {
                dry_run: false,
                ..RunInstances::clone(launch)
            })),
            other => other.clone(),
        };
        copy.carry_out(now, &wet)?;
        Err(Ec2Error::dry_run_succeeded())
    }

    fn carry_out(&mut self, now: Timestamp, request: &Request) -> Result<Response, Ec2Error> {
        match request {
            Request::RunInstances(request) => self.run_instances(now, request),
            Request::DescribeInstances(request) => self.describe_instances(now, request),
            Request::DescribeInstanceStatus(request) => self.describe_instance_status(now, request),
            Request::TerminateInstances(request) => self.terminate_instances(now, request),
            Request::StopInstances(request) => self.stop_instances(now, request),
            Request::StartInstances(request) => self.start_instances(now, request),
            Request::RebootInstances(request) => self.reboot_instances(now, request),
            Request::CreateTags(request) => self.create_tags(now, request),
            Request::DeleteTags(request) => self.delete_tags(now, request),
            Request::ModifyInstanceEventStartTime(request) => self.modify_event_start(now, request),
            Request::DescribeRegions(request) => self.describe_regions(request),
            Request::DescribeAvailabilityZones(request) => self.describe_zones(request),
            Request::DescribeVpcs(request) => self.describe_vpcs(request),
            Request::DescribeDhcpOptions(request) => self.describe_dhcp_options(request),
            Request::DescribeSubnets(request) => self.describe_subnets(request),
            Request::DescribeSecurityGroups(request) => self.describe_security_groups(request),
            Request::DescribeImages(request) => self.describe_images(request),
            Request::DescribeInstanceTypes(request) => self.describe_instance_types(request),
            Request::ModifyInstanceMaintenanceOptions(request) => {
                self.modify_maintenance_options(now, request)
            }
            Request::AllocateHosts(request) => self.allocate_hosts(now, request),
            Request::DescribeHosts(request) => self.describe_hosts(request),
            Request::ReleaseHosts(request) => self.release_hosts(now, request),
            Request::Elb(request) => self.carry_out_elb(now, request).map(Response::Elb),
            Request::Elbv2(request) => self.carry_out_elbv2(now, request).map(Response::Elbv2),
        }
    }

    fn set_timer(&mut self, at: Timestamp, id: &str, timer: Timer) {
        self.timers.insert((at, id.to_owned(), timer));
    }

    fn touch(&mut self) {
        self.revision += 1;
    }
}
