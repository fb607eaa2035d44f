//! Does the operator run, and is it the only one? All leases are to be held by one process: the original
//! controllers each wait for one of them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use machinist_api::names::lease;

use super::{
    observed::{LeaseState, Observed},
    report::{Check, Code, Finding},
};
use crate::operator_status::needs_attention;

pub(super) const OPERATOR: &str = "operator";
pub(super) const NAME: &str = "leases";

/// A holder that renewed within its own time is not gone yet; this much is for slow networks.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(5);

/// What the leases show.
pub(super) struct Leases {
    /// Who holds a lease now: its name, and the holder.
    pub live: BTreeMap<String, String>,
    /// Who holds the most of them: the operator, unless it got none.
    pub foremost: Option<String>,
    /// When a lease was last renewed, by the API server's clock where that is known.
    pub last_sign: Option<Timestamp>,
}

impl Leases {
    /// Whether one process has them all, and so keeps true what it says of itself.
    pub fn is_led(&self) -> bool {
        let has_all = lease::ALL.into_iter().all(|name| self.live.contains_key(name));
        has_all && self.live.values().all(|holder| Some(holder) == self.foremost.as_ref())
    }
}

pub(super) fn look(observed: &Observed) -> Leases {
    let nothing = BTreeMap::new();
    let known = observed.leases.as_ref().unwrap_or(&nothing);
    let ours = || known.iter().filter(|(name, _)| lease::ALL.contains(&name.as_str()));
    let live: BTreeMap<String, String> = ours()
        .filter(|(_, state)| is_live(state, observed.now))
        .map(|(name, state)| (name.clone(), state.record.holder.clone()))
        .collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for holder in live.values() {
        *counts.entry(holder).or_default() += 1;
    }
    let most = counts.values().max().copied();
    let of_first = live.get(lease::OPERATOR).map(String::as_str);
    let foremost = counts
        .iter()
        .filter(|(_, count)| Some(**count) == most)
        // Among equals, whoever has the lease that is taken first.
        .max_by_key(|(holder, _)| Some(**holder) == of_first)
        .map(|(holder, _)| (*holder).to_owned());
    let last_sign = ours().filter_map(|(_, state)| sign_of_life(state)).max();
    Leases { live, foremost, last_sign }
}

fn sign_of_life(state: &LeaseState) -> Option<Timestamp> {
    state.written.or(state.record.renewed)
}

/// By the API server's clock: a holder whose own clock is wrong is no less alive.
fn is_live(state: &LeaseState, now: Timestamp) -> bool {
    let duration = SignedDuration::from_secs(i64::from(state.record.duration_seconds));
    let is_fresh =
        sign_of_life(state).is_some_and(|at| now.duration_since(at) <= duration + TOLERANCE);
    !state.record.holder.is_empty() && is_fresh
}

pub(super) fn operator(observed: &Observed, leases: &Leases) -> Check {
    if let Err(why) = &observed.leases {
        return Check::not_made(OPERATOR, why);
    }
    let namespace = &observed.namespace;
    let mut findings = Vec::new();
    if leases.foremost.is_none() {
        let seen = match leases.last_sign {
            Some(at) => format!(
                "nobody holds its leases in {namespace}; they were last renewed at {}",
                whole_seconds(at)
            ),
            None => format!("there are no leases of it in {namespace}"),
        };
        let deployed = match &observed.deployed {
            Some(deployed) => format!(
                "; Deployment {} has {} of {} Pods available",
                deployed.name, deployed.available, deployed.wanted
            ),
            None => format!("; there is no Deployment of it in {namespace}"),
        };
        findings.push(Finding::failed(
            Code::OperatorNotRunning,
            "no operator runs".to_owned(),
            format!("{seen}{deployed}"),
            match &observed.deployed {
                Some(deployed) => format!(
                    "read why: kubectl -n {namespace} describe deployment {name}; kubectl -n \
                     {namespace} logs deployment/{name}",
                    name = deployed.name
                ),
                None => {
                    "install it (docs/operate/install.md), or name its namespace with -n".to_owned()
                }
            },
        ));
    }
    let free = free(leases);
    if leases.live.len() > 1
        && !free.is_empty()
        && let Some(holder) = &leases.foremost
        && leases.live.values().all(|one| one == holder)
    {
        findings.push(Finding::warning(
            Code::OperatorNotRunning,
            format!("{holder} does not lead yet: it has {} leases", leases.live.len()),
            format!("nobody holds {} in {namespace}", free.join(", ")),
            "wait a moment; if it stays so, see that the operator may update these leases"
                .to_owned(),
        ));
    }
    findings.extend(said(observed, leases));
    let well = match &leases.foremost {
        Some(holder) if leases.is_led() => format!("{holder} leads"),
        Some(holder) => format!("nobody leads: {holder} lacks a lease"),
        None => String::new(),
    };
    Check::of(OPERATOR, well, findings)
}

/// What the operator itself says, besides what other checks read in it.
fn said(observed: &Observed, leases: &Leases) -> Vec<Finding> {
    use crate::operator_status::{CONFIG_MAP, condition_type as of};
    let status = match &observed.status {
        Err(why) => {
            return vec![Finding::warning(
                Code::NotChecked,
                format!("what the operator says in ConfigMap {CONFIG_MAP} could not be read"),
                why.clone(),
                "get the right to read it; credentials, permissions and endpoints of the cloud are only \
                 known from there"
                    .to_owned(),
            )];
        }
        Ok(None) if leases.is_led() => {
            return vec![Finding::warning(
                Code::OperatorSaysNothing,
                "the operator has said nothing of itself yet".to_owned(),
                format!("there is no ConfigMap {CONFIG_MAP} in {}", observed.namespace),
                "wait a minute; if it does not come, look for refused requests in the operator's log"
                    .to_owned(),
            )];
        }
        Ok(None) => return Vec::new(),
        Ok(Some(status)) => status,
    };
    let elsewhere = [of::CLOUD_PERMISSIONS, of::CLOUD_REACHABLE];
    let bad = status.conditions.iter().filter(|one| needs_attention(one));
    bad.filter(|one| !elsewhere.contains(&one.type_.as_str()))
        .map(|condition| {
            let fix = match condition.type_.as_str() {
                of::HELD => {
                    "delete ConfigMap machinist-operator-hold when it may go on \
                             (docs/operate/hold.md)"
                }
                of::ORPHAN_INSTANCES => {
                    "terminate them in the cloud, or take the cluster's tag off them; \
                                         see --terminate-orphans of the operator"
                }
                of::CLUSTER_API_LEASE => {
                    "where Cluster API's core manager has it: scale that to 0, wait for the lease, and scale it \
                     up again (docs/guide/migrate-cluster-api.md), or take --cluster-api away; where it cannot be \
                     taken: make the namespace that it names, or grant the right"
                }
                of::API_PERMISSIONS => {
                    "apply deploy/kustomize/base/rbac.yaml of this version again"
                }
                _ => "put right what it names; the operator tries again by itself",
            };
            Finding::warning(
                Code::OperatorNeedsAttention,
                format!("the operator says {}: {}", condition.type_, condition.message),
                format!("condition {} in ConfigMap {CONFIG_MAP}{}", condition.type_, age(leases)),
                fix.to_owned(),
            )
        })
        .collect()
}

/// A warning about words that nobody keeps true.
pub(super) fn age(leases: &Leases) -> String {
    match (leases.is_led(), leases.last_sign) {
        (true, _) => String::new(),
        (false, Some(at)) => {
            format!(
                ", which nobody keeps true: the operator last showed itself at {}",
                whole_seconds(at)
            )
        }
        (false, None) => ", which nobody keeps true: no operator runs".to_owned(),
    }
}

pub(super) fn check(observed: &Observed, leases: &Leases) -> Check {
    if let Err(why) = &observed.leases {
        return Check::not_made(NAME, why);
    }
    let Some(foremost) = &leases.foremost else {
        return Check::of(NAME, "nobody holds them".to_owned(), Vec::new());
    };
    let foreign: Vec<(&String, &String)> =
        leases.live.iter().filter(|(_, holder)| *holder != foremost).collect();
    let count = |holder: &str| leases.live.values().filter(|one| *one == holder).count();
    let mut findings: Vec<Finding> = foreign
        .iter()
        .map(|(name, holder)| {
            second_controller(
                observed,
                name,
                holder,
                &format!("{foremost} holds {} of the {}", count(foremost), lease::ALL.len()),
            )
        })
        .collect();
    // The original controllers want one lease each, and ours takes them one after the other within seconds:
    // who has a single one is another.
    let free = free(leases);
    if leases.live.len() == 1 && !free.is_empty() {
        let held: Vec<&str> = leases.live.keys().map(String::as_str).collect();
        findings.push(second_controller(
            observed,
            &held.join(", "),
            foremost,
            &format!("nobody holds {}", free.join(", ")),
        ));
    }
    let well = format!("{foremost} holds all {}", lease::ALL.len());
    Check::of(NAME, well, findings)
}

fn free(leases: &Leases) -> Vec<&'static str> {
    lease::ALL.into_iter().filter(|name| !leases.live.contains_key(*name)).collect()
}

fn second_controller(observed: &Observed, name: &str, holder: &str, others: &str) -> Finding {
    let namespace = &observed.namespace;
    Finding::failed(
        Code::SecondController,
        format!("lease {name} is held by {holder}, which is another controller"),
        format!("lease {namespace}/{name} is kept alive by {holder}, while {others}"),
        format!(
            "find and stop {holder} (the part before _ is the name of its Pod): kubectl -n {namespace} get \
             pods; Machinist does nothing until it has all leases"
        ),
    )
}

pub(super) fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
