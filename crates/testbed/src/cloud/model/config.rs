//! What can be chosen about the simulated cloud before it starts?

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::faults::Faults;

/// Everything that is fixed when a cloud is made; the seed is given apart.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudConfig {
    pub region: String,
    pub account_id: String,
    /// The infrastructure name that tags and names subnets and security groups.
    pub infrastructure_name: String,
    /// The VPC's DHCP option `domain-name`; none gives what EC2 gives a new VPC in that region.
    pub domain_name: Option<String>,
    pub delays: Delays,
    /// Whether the address of a terminated instance, and so its name, goes to the next one. EC2
    /// makes no promise; it is seen to happen in small subnets.
    pub reuses_addresses: bool,
    /// The access keys that are accepted; none accepts every key, and requests without one.
    pub allowed_access_keys: Option<BTreeSet<String>>,
    pub faults: Faults,
    /// How many calls the ledger keeps. At some 300 bytes each, 200 000 are about 60 MB; a test
    /// that makes more sees the number of dropped ones in the ledger.
    pub ledger_calls_max: usize,
}

/// How long the cloud takes for what it does on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delays {
    pub pending_to_running: SignedDuration,
    pub stopping_to_stopped: SignedDuration,
    pub shutting_down_to_terminated: SignedDuration,
    /// How long a terminated instance can still be described; about an hour in EC2.
    pub terminated_visible: SignedDuration,
    pub reboot: SignedDuration,
    /// How long the status checks say `initializing` after a boot.
    pub status_checks_initializing: SignedDuration,
    /// How long an event stays active after the user did its work; up to an hour in EC2.
    pub event_refresh: SignedDuration,
    /// How long a completed or cancelled event stays listed; up to a week in EC2.
    pub finished_event_visible: SignedDuration,
    /// The time between a spot notice and the reclaim; two minutes in EC2.
    pub spot_notice: SignedDuration,
    /// How long a client token is remembered after its last instance terminated; EC2 promises at
    /// least 24 hours.
    pub client_token_memory: SignedDuration,
    /// How long a target of a load balancer waits for its first health checks.
    pub target_initial: SignedDuration,
    /// How long a deregistered target drains; five minutes unless told otherwise in AWS.
    pub target_draining: SignedDuration,
    /// How long load balancers remember a terminated instance.
    pub terminated_target_remembered: SignedDuration,
}

impl Default for CloudConfig {
    fn default() -> Self {
        Self {
            region: "us-east-1".into(),
            account_id: "123456789012".into(),
            infrastructure_name: "machinist".into(),
            domain_name: None,
            delays: Delays::default(),
            reuses_addresses: false,
            allowed_access_keys: None,
            faults: Faults::default(),
            ledger_calls_max: 200_000,
        }
    }
}

impl CloudConfig {
    /// Returns the configuration for tests and benchmarks: the same states, in fractions of a second.
    pub fn fast() -> Self {
        Self { delays: Delays::fast(), ..Self::default() }
    }

    /// Returns the domain of private names: EC2 gives us-east-1 a name of its own.
    pub fn domain_name(&self) -> String {
        match &self.domain_name {
            Some(name) => name.clone(),
            None => self.internal_domain(),
        }
    }

    /// Returns the domain of `privateDnsName`, which the VPC's DHCP options do not change.
    pub fn internal_domain(&self) -> String {
        if self.region == "us-east-1" {
            "ec2.internal".into()
        } else {
            format!("{}.compute.internal", self.region)
        }
    }

    pub fn public_domain(&self) -> String {
        if self.region == "us-east-1" {
            "compute-1.amazonaws.com".into()
        } else {
            format!("{}.compute.amazonaws.com", self.region)
        }
    }
}

impl Default for Delays {
    /// Returns delays of the order that EC2 shows for a Linux instance.
    fn default() -> Self {
        Self {
            pending_to_running: SignedDuration::from_secs(10),
            stopping_to_stopped: SignedDuration::from_secs(20),
            shutting_down_to_terminated: SignedDuration::from_secs(20),
            terminated_visible: SignedDuration::from_hours(1),
            reboot: SignedDuration::from_secs(20),
            status_checks_initializing: SignedDuration::from_secs(60),
            event_refresh: SignedDuration::from_secs(60),
            finished_event_visible: SignedDuration::from_hours(7 * 24),
            spot_notice: SignedDuration::from_secs(120),
            client_token_memory: SignedDuration::from_hours(24),
            target_initial: SignedDuration::from_secs(30),
            target_draining: SignedDuration::from_secs(300),
            terminated_target_remembered: SignedDuration::from_secs(60),
        }
    }
}

impl Delays {
    pub fn fast() -> Self {
        Self {
            pending_to_running: SignedDuration::from_millis(500),
            stopping_to_stopped: SignedDuration::from_millis(500),
            shutting_down_to_terminated: SignedDuration::from_millis(300),
            terminated_visible: SignedDuration::from_secs(60),
            reboot: SignedDuration::from_millis(500),
            status_checks_initializing: SignedDuration::from_millis(500),
            event_refresh: SignedDuration::from_secs(1),
            target_initial: SignedDuration::from_millis(300),
            target_draining: SignedDuration::from_millis(500),
            terminated_target_remembered: SignedDuration::from_secs(2),
            ..Self::default()
        }
    }
}
