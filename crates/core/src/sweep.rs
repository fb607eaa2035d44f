//! Which instances belong to no Machine, and which of them may be terminated?
//!
//! Sweepers have killed whole fleets: when the API server was down and its empty answer meant "no
//! Machines", or while a launch was under way. So a sweep reports freely and kills by rule S7 only:
//! a full list of Machines that is newer than the launch, an instance old enough for every launch
//! and every late read to be over, no launch under way for it, seen without an owner at least
//! twice, and few at a time. Pure; the operator's `sweep` calls it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use machinist_api::Machine;

use crate::{
    cloud::{Instance, InstanceId},
    decision::Wait,
    machine::observed::{Identity, cluster_id, provider_status, validate_record},
};

/// Everything that a sweep looks at.
pub struct Observed<'a> {
    pub cluster_id: &'a str,
    /// The instances of a complete list.
    pub instances: Vec<&'a Instance>,
    pub machines: Machines,
    /// What earlier sweeps saw.
    pub memory: &'a Memory,
}

/// The Machines, and how well they are known.
#[derive(Clone, Debug)]
pub enum Machines {
    /// From the watch: good enough to report, never to kill.
    Remembered(Vec<Claim>),
    /// A full list that the API server was asked for at that time.
    Listed { claims: Vec<Claim>, at: Timestamp },
}

/// What one Machine says is its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    pub machine_uid: String,
    pub cluster_id: Option<String>,
    /// Every id that the Machine names, wherever it does.
    pub instances: BTreeSet<InstanceId>,
    /// The tokens with which a launch may be under way.
    pub client_tokens: BTreeSet<String>,
    /// Whether the record cannot be read: then it may name any instance.
    pub is_unreadable: bool,
}

impl Claim {
    pub fn of(machine: &Machine) -> Self {
        let identity = Identity::of(machine);
        let recorded = provider_status(machine).instance_id.filter(|id| !id.is_empty());
        let named = machine.spec.provider_id.as_deref().and_then(InstanceId::from_provider_id);
        Self {
            machine_uid: identity.machine_uid,
            cluster_id: cluster_id(machine).map(str::to_owned),
            instances: recorded.map(InstanceId).into_iter().chain(named).collect(),
            client_tokens: identity.client_tokens.into_iter().collect(),
            is_unreadable: validate_record(machine).is_err(),
        }
    }
}

/// Who was seen without an owner, since when and in how many sweeps.
pub type Memory = BTreeMap<InstanceId, Sighting>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub first: Timestamp,
    pub sweeps: u32,
}

/// What a sweep may do.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Whether orphans are terminated at all.
    pub terminate: bool,
    /// How long a launch may be under way.
    pub launch_timeout: SignedDuration,
    /// How late a read may be, and how wrong the provider's clock.
    pub consistency_bound: SignedDuration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            terminate: false,
            // The slowest launch seen in the peers' reports took ten minutes.
            launch_timeout: SignedDuration::from_mins(15),
            // EC2 advises to wait for "some minutes"; five more for its clock.
            consistency_bound: SignedDuration::from_mins(10),
        }
    }
}

/// In how many sweeps an orphan must have been seen before it is terminated.
const SWEEPS_BEFORE_KILL: u32 = 2;
/// Of the cluster's live instances, at most this part is terminated in one sweep, and always one.
const KILL_SHARE: f64 = 0.05;

/// What was found, and what is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepDecision {
    /// Sorted by id.
    pub orphans: Vec<Orphan>,
    /// The oldest first.
    pub terminate: Vec<InstanceId>,
    /// Why orphans that are old enough are left alone, where termination is asked for.
    pub waiting: Option<Wait>,
    /// For the next sweep.
    pub memory: Memory,
}

/// An instance with the cluster's tag and without a Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    pub id: InstanceId,
    pub since: Timestamp,
    pub why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was launched for a Machine that no longer exists.
    MachineIsGone { machine_uid: String },
    /// It carries no Machine's uid: somebody else made it, and it is only reported.
    NeverHadMachine,
}

pub fn decide(observed: &Observed<'_>, policy: &Policy, now: Timestamp) -> SweepDecision {
    let claims = match &observed.machines {
        Machines::Remembered(claims) | Machines::Listed { claims, .. } => claims,
    };
    let ownerless = ownerless(observed, claims);
    let memory = remembered(&ownerless, observed.memory, now);
    let bound = policy.launch_timeout.max(policy.consistency_bound);
    let mut orphans: Vec<(&Instance, Orphan)> = ownerless
        .into_iter()
        .filter_map(|instance| {
            let sighting = memory.get(&instance.id)?;
            // An instance without a time of launch is as old as our knowledge of it.
            let since = instance.launched_at.unwrap_or(sighting.first);
            let why = instance.machine_uid().map_or(Why::NeverHadMachine, |uid| {
                Why::MachineIsGone { machine_uid: uid.to_owned() }
            });
            let orphan = Orphan { id: instance.id.clone(), since, why };
            (now.duration_since(since) > bound).then_some((instance, orphan))
        })
        .collect();
    orphans.sort_by(|(_, left), (_, right)| left.id.cmp(&right.id));

    let mut decision = SweepDecision { memory, ..SweepDecision::default() };
    if policy.terminate {
        let candidates = candidates(&orphans, &decision.memory);
        match may_kill(observed, claims) {
            Ok(listed_at) => {
                choose(&mut decision, &candidates, listed_at, kill_cap(observed));
            }
            Err(wait) if !candidates.is_empty() => decision.waiting = Some(wait),
            Err(_) => {}
        }
    }
    decision.orphans = orphans.into_iter().map(|(_, orphan)| orphan).collect();
    decision
}

/// The live instances of the cluster that no Machine claims in any way.
fn ownerless<'a>(observed: &Observed<'a>, claims: &[Claim]) -> Vec<&'a Instance> {
    let uids: BTreeSet<&str> = claims.iter().map(|claim| claim.machine_uid.as_str()).collect();
    let named: BTreeSet<&InstanceId> = claims.iter().flat_map(|claim| &claim.instances).collect();
    let tokens: BTreeSet<&str> =
        claims.iter().flat_map(|claim| &claim.client_tokens).map(String::as_str).collect();
    let is_claimed = |instance: &Instance| {
        named.contains(&instance.id)
            || instance.machine_uid().is_some_and(|uid| uids.contains(uid))
            || instance.client_token.as_deref().is_some_and(|token| tokens.contains(token))
    };
    let mut ownerless: Vec<&Instance> = observed
        .instances
        .iter()
        .copied()
        .filter(|instance| instance.is_owned_by_cluster(observed.cluster_id))
        .filter(|instance| is_live(instance) && !is_claimed(instance))
        .collect();
    ownerless.sort_by(|left, right| left.id.cmp(&right.id));
    ownerless.dedup_by(|left, right| left.id == right.id);
    ownerless
}

/// Whether it still costs something: one that is shutting down needs nobody's help.
fn is_live(instance: &Instance) -> bool {
    use crate::cloud::InstanceState::{
        Pending, Running, ShuttingDown, Stopped, Stopping, Terminated,
    };
    match instance.state {
        Pending | Running | Stopping | Stopped => true,
        ShuttingDown | Terminated => false,
    }
}

/// Whoever got an owner in between begins anew.
fn remembered(ownerless: &[&Instance], memory: &Memory, now: Timestamp) -> Memory {
    let sighting = |id: &InstanceId| match memory.get(id) {
        Some(known) => Sighting { first: known.first, sweeps: known.sweeps.saturating_add(1) },
        None => Sighting { first: now, sweeps: 1 },
    };
    ownerless.iter().map(|instance| (instance.id.clone(), sighting(&instance.id))).collect()
}

/// Those launched for a Machine of ours that is gone, and seen often enough.
fn candidates<'a>(orphans: &[(&'a Instance, Orphan)], memory: &Memory) -> Vec<&'a Instance> {
    orphans
        .iter()
        .filter(|(_, orphan)| matches!(orphan.why, Why::MachineIsGone { .. }))
        .filter(|(_, orphan)| {
            memory.get(&orphan.id).is_some_and(|seen| seen.sweeps >= SWEEPS_BEFORE_KILL)
        })
        // An age that the provider does not tell is no proof.
        .filter(|(instance, _)| instance.launched_at.is_some())
        .map(|(instance, _)| *instance)
        .collect()
}

/// When the Machines were listed, if what is known of them can prove that one does not exist.
fn may_kill(observed: &Observed<'_>, claims: &[Claim]) -> Result<Timestamp, Wait> {
    let Machines::Listed { at, .. } = &observed.machines else {
        return Err(Wait::on(
            reason::MACHINES_NOT_LISTED,
            "the Machines could not be listed afresh, so none of them is known to be gone",
        ));
    };
    if let Some(claim) = claims.iter().find(|claim| claim.is_unreadable) {
        let message = format!(
            "the record of the Machine with uid {} cannot be read: it may name any instance",
            claim.machine_uid
        );
        return Err(Wait::on(reason::MACHINE_UNREADABLE, message));
    }
    // An empty list is what a wrong namespace, a wrong cluster and a restore in progress look like.
    let is_of_cluster = |claim: &Claim| claim.cluster_id.as_deref() == Some(observed.cluster_id);
    if !claims.iter().any(is_of_cluster) {
        let message =
            format!("no Machine of cluster {} is left to compare with", observed.cluster_id);
        return Err(Wait::on(reason::NO_MACHINES, message));
    }
    Ok(*at)
}

fn kill_cap(observed: &Observed<'_>) -> usize {
    let live = observed.instances.iter().filter(|instance| is_live(instance)).count();
    ((live as f64 * KILL_SHARE) as usize).max(1)
}

fn choose(
    decision: &mut SweepDecision,
    candidates: &[&Instance],
    listed_at: Timestamp,
    cap: usize,
) {
    let mut chosen: Vec<&Instance> = candidates
        .iter()
        .copied()
        .filter(|instance| instance.launched_at.is_some_and(|launched| launched < listed_at))
        .collect();
    chosen.sort_by(|left, right| (left.launched_at, &left.id).cmp(&(right.launched_at, &right.id)));
    if chosen.len() > cap {
        let message = format!("{} may be terminated, at most {cap} in one sweep", chosen.len());
        decision.waiting = Some(Wait::on(reason::CAP_REACHED, message));
    }
    decision.terminate = chosen.into_iter().take(cap).map(|one| one.id.clone()).collect();
}

/// Why a sweep leaves orphans alone.
pub mod reason {
    pub const MACHINES_NOT_LISTED: &str = "MachinesNotListed";
    pub const MACHINE_UNREADABLE: &str = "MachineUnreadable";
    pub const NO_MACHINES: &str = "NoMachines";
    pub const CAP_REACHED: &str = "CapReached";
}

#[cfg(test)]
mod tests;
