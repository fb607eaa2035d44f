//! What goes wrong on purpose? Faults that are off unless switched on, drawn from the seed.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    Caller,
    authorization::Denied,
    error::{Ec2Error, usual_status},
    fates::{LaunchFate, LingeringTermination},
    metadata::MetadataFault,
    random::Randomness,
    reads::{FilterAnswer, Hidden, Omissions, PageFaults, StaleReads},
};

/// All faults that are on. `POST /faults` adds to them, `DELETE /faults` clears them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Faults {
    /// Refuses with RequestLimitExceeded by AWS's published token buckets.
    pub throttling: bool,
    /// New instances cannot be described for a while.
    pub launch_visibility: Option<LaunchVisibility>,
    /// Every answer comes this much later.
    pub latency: Option<SignedDuration>,
    pub errors: Vec<ErrorFault>,
    pub timeouts: Vec<TimeoutFault>,
    pub capacity: Vec<CapacityShortage>,
    /// Access keys that are refused with AuthFailure, as after a rotation.
    pub refused_access_keys: BTreeSet<String>,
    /// Rights that are taken away, as by an IAM policy.
    pub denied: Vec<Denied>,
    /// Instances that reads leave out.
    pub hidden: Vec<Hidden>,
    pub omissions: Option<Omissions>,
    pub stale_reads: Option<StaleReads>,
    pub pages: Option<PageFaults>,
    /// What comes of a filter on the instances' status, whatever it says.
    pub status_filters: Option<FilterAnswer>,
    pub launch_fates: Vec<LaunchFate>,
    pub lingering_terminations: Vec<LingeringTermination>,
    /// The launch time of each launch and start is off by at most this, either way.
    pub launch_time_skew: Option<SignedDuration>,
    /// What goes wrong with the instances' metadata services.
    pub metadata: Vec<MetadataFault>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LaunchVisibility {
    pub lag: SignedDuration,
    /// Which share of the launches is hidden.
    #[serde(default = "always")]
    pub probability: f64,
}

/// Answers calls of an action with an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ErrorFault {
    /// An action as the ledger names it; `*` is every action, and may end a name.
    pub action: String,
    pub code: String,
    #[serde(default)]
    pub message: Option<String>,
    /// The HTTP status; without it, what EC2 sends with this code.
    #[serde(default)]
    pub status: Option<u16>,
    /// How many times at most; without it, until the faults are cleared.
    #[serde(default)]
    pub count: Option<u32>,
    #[serde(default = "always")]
    pub probability: f64,
    /// Whether the call takes effect all the same.
    #[serde(default)]
    pub effect: bool,
    /// Whose calls; none means everybody's.
    #[serde(default)]
    pub access_key: Option<String>,
}

/// Lets calls of an action take effect, then ends the connection without an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TimeoutFault {
    pub action: String,
    /// How long the connection stays silent before it ends.
    #[serde(default)]
    pub after: SignedDuration,
    /// How many times at most; without it, until the faults are cleared.
    #[serde(default)]
    pub count: Option<u32>,
    #[serde(default = "always")]
    pub probability: f64,
    /// Whether the call takes effect; it does unless told otherwise.
    #[serde(default = "yes")]
    pub effect: bool,
}

/// Launches and starts that fail with InsufficientInstanceCapacity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CapacityShortage {
    /// None means every type.
    pub instance_type: Option<String>,
    /// None means every zone.
    pub availability_zone: Option<String>,
    /// How many instances of that type and zone the cloud can hold at once.
    pub available: u32,
}

/// What a fault does to one call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Strike {
    Error { error: Ec2Error, effect: bool },
    Timeout { after: SignedDuration, effect: bool },
}

impl Faults {
    pub(super) fn add(&mut self, now: Timestamp, more: Self) {
        self.throttling |= more.throttling;
        self.launch_visibility = more.launch_visibility.or_else(|| self.launch_visibility.take());
        self.latency = more.latency.or(self.latency);
        self.errors.extend(more.errors);
        self.timeouts.extend(more.timeouts);
        self.capacity.extend(more.capacity);
        self.refused_access_keys.extend(more.refused_access_keys);
        self.denied.extend(more.denied);
        self.hidden.extend(more.hidden.into_iter().map(|hidden| hidden.beginning(now)));
        self.omissions = more.omissions.or_else(|| self.omissions.take());
        self.stale_reads = more.stale_reads.or_else(|| self.stale_reads.take());
        self.pages = more.pages.or_else(|| self.pages.take());
        self.launch_fates.extend(more.launch_fates);
        self.lingering_terminations.extend(more.lingering_terminations);
        self.status_filters = more.status_filters.or(self.status_filters);
        self.launch_time_skew = more.launch_time_skew.or(self.launch_time_skew);
        self.metadata.extend(more.metadata);
    }

    /// Returns the faults without those of one kind, which is named as in their JSON form.
    pub(super) fn without(&self, kind: &str) -> Result<Self, String> {
        let unreadable = |error: serde_json::Error| error.to_string();
        let mut value = serde_json::to_value(self).map_err(unreadable)?;
        let mut is_known = false;
        let mut kinds = String::new();
        if let Some(fields) = value.as_object_mut() {
            kinds = fields.keys().cloned().collect::<Vec<_>>().join(", ");
            is_known = fields.remove(kind).is_some();
        }
        if !is_known {
            return Err(format!("kind {kind} is not one of {kinds}"));
        }
        serde_json::from_value(value).map_err(unreadable)
    }

    /// Names what is wrong with faults that a caller brings.
    pub(super) fn check(&self) -> Result<(), String> {
        let omissions = self.omissions.iter().flat_map(|fault| [fault.by_id, fault.by_filter]);
        let probabilities = (self.errors.iter().map(|fault| fault.probability))
            .chain(self.timeouts.iter().map(|fault| fault.probability))
            .chain(self.launch_visibility.iter().map(|fault| fault.probability))
            .chain(self.stale_reads.iter().map(|fault| fault.probability))
            .chain(self.launch_fates.iter().map(|fault| fault.probability))
            .chain(self.lingering_terminations.iter().map(|fault| fault.probability))
            .chain(self.metadata.iter().map(|fault| fault.probability))
            .chain(omissions);
        for probability in probabilities {
            if !(0.0..=1.0).contains(&probability) {
                return Err(format!("probability {probability} is not between 0 and 1"));
            }
        }
        for status in self.errors.iter().filter_map(|fault| fault.status) {
            if !(400..600).contains(&status) {
                return Err(format!("status {status} is not an HTTP error status"));
            }
        }
        let actions = (self.errors.iter().map(|fault| &fault.action))
            .chain(self.timeouts.iter().map(|fault| &fault.action));
        for action in actions {
            check_action(action)?;
        }
        self.metadata.iter().try_for_each(MetadataFault::check)?;
        self.denied.iter().try_for_each(Denied::check)
    }

    /// Returns what happens to this call, and uses up one of the fault's strikes.
    pub(super) fn strike(
        &mut self,
        caller: &Caller,
        action: &str,
        randomness: &mut Randomness,
    ) -> Option<Strike> {
        for fault in &mut self.errors {
            let key = fault.access_key.as_ref();
            if key.is_none_or(|key| caller.access_key_id.as_ref() == Some(key))
                && concerns(&fault.action, action)
                && strikes(&mut fault.count, fault.probability, randomness)
            {
                let status = fault.status.unwrap_or_else(|| usual_status(&fault.code));
                let message = fault
                    .message
                    .clone()
                    .unwrap_or_else(|| format!("An injected fault answers {action}"));
                let error = Ec2Error { code: fault.code.clone(), message, status };
                return Some(Strike::Error { error, effect: fault.effect });
            }
        }
        for fault in &mut self.timeouts {
            if concerns(&fault.action, action)
                && strikes(&mut fault.count, fault.probability, randomness)
            {
                return Some(Strike::Timeout { after: fault.after, effect: fault.effect });
            }
        }
        None
    }

    /// Returns how many instances the shortages leave room for; none means no shortage applies.
    pub(super) fn capacity_for(&self, instance_type: &str, zone: &str) -> Option<u32> {
        self.capacity
            .iter()
            .filter(|shortage| {
                shortage.instance_type.as_deref().is_none_or(|kind| kind == instance_type)
                    && shortage.availability_zone.as_deref().is_none_or(|name| name == zone)
            })
            .map(|shortage| shortage.available)
            .min()
    }
}

/// Returns whether a fault strikes now, and uses up one of its strikes if so.
pub(super) fn strikes(
    count: &mut Option<u32>,
    probability: f64,
    randomness: &mut Randomness,
) -> bool {
    if *count == Some(0) || !randomness.strikes(probability) {
        return false;
    }
    if let Some(count) = count {
        *count -= 1;
    }
    true
}

/// Returns whether a pattern names an action: the same name, or one that a `*` at the end covers.
pub(super) fn concerns(pattern: &str, action: &str) -> bool {
    pattern == action
        || pattern.strip_suffix('*').is_some_and(|beginning| action.starts_with(beginning))
}

/// Refuses a pattern that no action could ever match: a misspelt fault would test nothing.
pub(super) fn check_action(pattern: &str) -> Result<(), String> {
    if super::ACTIONS.iter().any(|action| concerns(pattern, action)) {
        return Ok(());
    }
    Err(format!("action {pattern} is not one of *, {}", super::ACTIONS.join(", ")))
}

pub(super) fn always() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}
