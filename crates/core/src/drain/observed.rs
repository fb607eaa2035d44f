//! What must be known to drain one machine's Node.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::Machine;

/// A deleting Machine, its Node and what runs there.
pub struct Observed<'a> {
    pub machine: &'a Machine,
    /// The Node as linked or matched; `None` when there is none any more.
    pub node: Option<&'a Node>,
    /// Another control-plane Node that is cordoned already, if any.
    pub cordoned_control_plane: Option<&'a str>,
    pub pods: Vec<&'a Pod>,
    /// Those DaemonSets of the pods, by namespace and name, that certainly do not exist. They are only
    /// asked for when nothing else is left.
    pub missing_daemon_sets: BTreeSet<(&'a str, &'a str)>,
    pub budgets: Vec<&'a PodDisruptionBudget>,
    /// What earlier passes of this process tried; losing it costs one early eviction, no more.
    pub attempts: &'a Attempts,
}

/// Evictions that were refused, by pod uid.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    refused: BTreeMap<String, Refusal>,
}

/// The first wait after a refusal; doubled each time. Ten seconds keeps sixty blocked pods below
/// ten requests a second, and a budget that relaxes is noticed by its watch, not by this.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(10);
const LAST_RETRY: SignedDuration = SignedDuration::from_secs(120);

#[derive(Clone, Debug)]
struct Refusal {
    times: u32,
    at: Timestamp,
    message: String,
    /// What the budgets looked like; another look of theirs is worth a try at once.
    budgets_seen: String,
}

impl Attempts {
    /// Notes that the API server refused to evict a pod.
    pub fn refuse(&mut self, pod_uid: &str, message: &str, budgets_seen: &str, now: Timestamp) {
        let times = self.refused.get(pod_uid).map_or(0, |refusal| refusal.times) + 1;
        let refusal = Refusal {
            times,
            at: now,
            message: message.to_owned(),
            budgets_seen: budgets_seen.to_owned(),
        };
        self.refused.insert(pod_uid.to_owned(), refusal);
    }

    /// Forgets pods that are not there any more.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.refused.retain(|uid, _| is_there(uid));
    }

    /// What was said when a pod was last refused; `None` when it was not.
    pub fn said(&self, pod_uid: &str) -> Option<&str> {
        self.refused.get(pod_uid).map(|refusal| refusal.message.as_str())
    }

    /// When a refused pod may be tried again, and what was said; `None` when it may be tried now.
    pub(super) fn hold(&self, pod_uid: &str, budgets_seen: &str) -> Option<(Timestamp, &str)> {
        let refusal = self.refused.get(pod_uid)?;
        if refusal.budgets_seen != budgets_seen {
            return None;
        }
        let doublings = refusal.times.saturating_sub(1).min(10);
        let wait = (FIRST_RETRY * 2_i32.pow(doublings)).min(LAST_RETRY);
        let until = refusal.at.checked_add(wait).unwrap_or(Timestamp::MAX);
        Some((until, refusal.message.as_str()))
    }
}
