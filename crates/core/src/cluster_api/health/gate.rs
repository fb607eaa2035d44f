//! May an unhealthy machine be taken out of work by our own choice? The one gate of both APIs is asked (Rule 7).

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{
    Machine as Seen, MachineSet as SeenPool,
    cluster_api::{Machine, names::annotation as theirs},
    names::annotation,
};

use super::observed::Policy;
use crate::{
    cluster_api::identity,
    disruption::{self, Pool},
    drift::DriftPolicy,
    maintenance::surge::Mark,
};

/// The pools of a check's machines, as the gate counts them. What was granted counts for the next that asks.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    /// By uid, counted for nobody.
    pools: BTreeMap<String, Pool>,
    /// By the uid of the Machine.
    places: BTreeMap<String, Place>,
}

#[derive(Clone, Debug)]
struct Place {
    /// The uid of its pool.
    pool: Option<String>,
    /// Whether it does its work as far as the gate can tell.
    works: bool,
    /// What its annotations and those of its pool say, or why they cannot be read.
    wishes: Result<DriftPolicy, String>,
}

impl Gate {
    /// Counts, given all machines of these pools, each with its Node.
    pub fn count<'a>(
        pools: impl IntoIterator<Item = &'a SeenPool>,
        machines: &[(&'a Seen, Option<&'a Node>)],
    ) -> Self {
        let mut gate = Self::default();
        for set in pools {
            let uid = set.metadata.uid.clone().unwrap_or_default();
            let members = machines.iter().copied();
            let members = members.filter(|(one, _)| pool_of(one) == Some(uid.as_str()));
            let mut pool = Pool::of(set, members, "");
            let mark = pool.annotations.get(annotation::SURGE).map(String::as_str);
            pool.desired = pool.desired.saturating_sub(Mark::read(mark).count());
            gate.pools.insert(uid, pool);
        }
        for (machine, node) in machines {
            let pool = pool_of(machine).filter(|uid| gate.pools.contains_key(*uid));
            let known = pool.and_then(|uid| gate.pools.get(uid));
            let place = Place {
                pool: pool.map(str::to_owned),
                works: disruption::is_healthy(machine, *node),
                wishes: DriftPolicy::read(machine, known, false).map_err(|fault| fault.to_string()),
            };
            gate.places.insert(machine.metadata.uid.clone().unwrap_or_default(), place);
        }
        gate
    }

    /// Whether this machine may go; if not, why. A person who asks for it by the annotation of Cluster API is not held, only
    /// counted.
    pub(super) fn permit(
        &mut self,
        machine: &Machine,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<(), String> {
        let uid = machine.metadata.uid.as_deref().unwrap_or_default();
        let is_command =
            identity::annotation(&machine.metadata, theirs::REMEDIATE_MACHINE).is_some();
        let Some(place) = self.places.get(uid) else { return Ok(()) };
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        let wishes = match &place.wishes {
            Err(fault) if !is_command => return Err(format!("machine {name}: {fault}")),
            Err(_) => None,
            Ok(wishes) => Some(wishes),
        };
        if let Some(why) = wishes.and_then(|wishes| wishes.hold.as_ref()).filter(|_| !is_command) {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            return Err(format!("machine {name} is on hold{why}"));
        }
        let Some(pool) = place.pool.as_ref().and_then(|uid| self.pools.get_mut(uid)) else {
            return Ok(());
        };
        let mut asked = pool.clone();
        asked.healthy_others = asked.healthy_others.saturating_sub(usize::from(place.works));
        // A share that somebody chose for the check is chosen for the gate as well, unless the pool has one of its own.
        let asks = asked.annotations.contains_key(annotation::MAX_DISRUPTED)
            || !policy.trigger.is_explicit();
        if asks && !is_command {
            let approved_until = wishes.and_then(|wishes| wishes.approved_until);
            asked.permit(approved_until, now).map_err(|held| held.0)?;
        }
        *pool = asked;
        Ok(())
    }

    /// Counts a machine that its owner, or another controller, was asked to replace before.
    pub(super) fn note(&mut self, machine: &Machine) {
        let uid = machine.metadata.uid.as_deref().unwrap_or_default();
        let Some(place) = self.places.get(uid).filter(|place| place.works) else { return };
        let pool = place.pool.as_ref().and_then(|uid| self.pools.get_mut(uid));
        if let Some(pool) = pool {
            pool.healthy_others = pool.healthy_others.saturating_sub(1);
        }
    }
}

fn pool_of(machine: &Seen) -> Option<&str> {
    identity::controller(&machine.metadata).map(|owner| owner.uid.as_str())
}
