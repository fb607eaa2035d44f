//! Which instances carry the cluster's tag and belong to no Machine? Reported always, terminated only
//! when asked for by flag; the rule is core's.
//!
//! A limit: the operator may read the Machines of its own namespace only. An instance that a Machine
//! of another namespace owns looks ownerless here. It is reported, and, unless that Machine has
//! another cluster id, would be terminated with `--terminate-orphans`: run one operator for a cluster.

mod findings;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kube::{Api, api::ListParams};
use machinist_api::Machine;
use machinist_core::{
    cloud::{ErrorClass, Instance, InstanceId},
    sweep::{Claim, Machines, Memory, Observed, Policy, SweepDecision, decide},
};
use tokio::time::Instant;

pub use self::findings::Findings;
use crate::{
    audit::Destruction,
    cloud::{CloudAccess, CloudKey, Snapshot},
    context::Context,
    index,
};

/// Before an instance is terminated, the cloud's own list must be younger than this.
const LIST_AGE_MAX: Duration = Duration::from_secs(60);

/// How often it is looked whether a view has a new list to sweep.
const LOOK: Duration = Duration::from_secs(5);

/// Sweeps every view, one after the other.
pub struct Sweeper {
    context: Arc<Context>,
    namespace: String,
    policy: Policy,
    period: Duration,
    findings: Arc<Findings>,
    swept: BTreeMap<CloudKey, Swept>,
}

/// What is remembered of one view.
struct Swept {
    at: Instant,
    /// Which list was swept: the same list twice is no second sweep.
    list: Instant,
    memory: Memory,
}

impl Sweeper {
    pub fn new(context: &Arc<Context>, namespace: &str, policy: Policy, period: Duration) -> Self {
        Self {
            context: Arc::clone(context),
            namespace: namespace.to_owned(),
            policy,
            period,
            findings: Arc::default(),
            swept: BTreeMap::new(),
        }
    }

    pub fn findings(&self) -> Arc<Findings> {
        Arc::clone(&self.findings)
    }

    /// Sweeps for as long as the process leads.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let mut leadership = self.context.leadership.clone();
        loop {
            leadership.held().await;
            self.sweep().await;
            self.context.env.sleep(LOOK).await;
        }
    }

    /// Sweeps the views that have a new complete list and whose time has come.
    pub async fn sweep(&mut self) {
        if !self.context.stores.machines.is_synced() {
            return;
        }
        for (key, access) in self.context.clouds.all() {
            let snapshot = access.view.snapshot();
            // Nothing is concluded from a picture that is older than it should be (Rule 9).
            let Some(list) = snapshot.listed_at.filter(|_| snapshot.failure.is_none()) else {
                continue;
            };
            let now = self.context.env.instant();
            let is_due = self
                .swept
                .get(&key)
                .is_none_or(|swept| list > swept.list && now >= swept.at + self.period);
            if is_due {
                self.sweep_view(&key, &access, &snapshot, list).await;
            }
        }
    }

    async fn sweep_view(
        &mut self,
        key: &CloudKey,
        access: &CloudAccess,
        snapshot: &Snapshot,
        list: Instant,
    ) {
        let memory = self.swept.remove(key).map(|swept| swept.memory).unwrap_or_default();
        let remembered = Machines::Remembered(self.remembered());
        let mut decision = self.decide(key, snapshot, remembered, &memory);
        // There are some that only a fresh list of Machines can condemn.
        if self.policy.terminate && decision.waiting.is_some() {
            match self.condemn(key, access, &memory).await {
                Ok(condemned) => decision = condemned,
                Err(error) => {
                    tracing::warn!(cloud = %key, error = format!("{error:#}"), "sweep cut short");
                }
            }
        }
        if let Some(wait) = &decision.waiting {
            let (reason, message) = (wait.reason, wait.message.as_str());
            tracing::info!(cloud = %key, reason, message, "orphans are left alone");
        }
        self.findings.set(key.clone(), &decision.orphans);
        self.context.metrics.set_orphans(self.findings.count());
        let at = self.context.env.instant();
        self.swept.insert(key.clone(), Swept { at, list, memory: decision.memory });
    }

    /// Decides once more, on fresh lists of both sides, and terminates what that condemns.
    async fn condemn(
        &self,
        key: &CloudKey,
        access: &CloudAccess,
        memory: &Memory,
    ) -> anyhow::Result<SweepDecision> {
        self.context.require_leave()?;
        let at = self.context.env.now();
        let api = Api::<Machine>::namespaced(self.context.client.clone(), &self.namespace);
        // All or nothing: one Machine that cannot be read fails the list, and nothing is killed.
        let machines = api.list(&ListParams::default()).await?;
        let claims = machines.items.iter().map(Claim::of).collect();
        let snapshot = access.view.fresh_within(LIST_AGE_MAX).await.map_err(|failure| {
            anyhow::anyhow!("no fresh list of instances: {}", failure.message)
        })?;
        let decision = self.decide(key, &snapshot, Machines::Listed { claims, at }, memory);
        let condemned: BTreeSet<InstanceId> = decision.terminate.iter().cloned().collect();
        let confirmed = access
            .view
            .confirm(condemned)
            .await
            .map_err(|failure| anyhow::anyhow!("orphans not confirmed: {}", failure.message))?;
        for instance in &confirmed {
            // What changed its tags or its launch since the list is not what was decided on.
            if snapshot.get(&instance.id).is_some_and(|known| is_same(known, instance)) {
                self.terminate(key, access, instance).await?;
            }
        }
        Ok(decision)
    }

    async fn terminate(
        &self,
        key: &CloudKey,
        access: &CloudAccess,
        instance: &Instance,
    ) -> anyhow::Result<()> {
        let id = &instance.id;
        access.pace.turn("TerminateInstances", &id.0).await?;
        self.context.require_leave()?;
        let uid = instance.machine_uid().unwrap_or_default();
        // Whoever was made since the list claims it as well.
        let machines = &self.context.stores.machines;
        let is_claimed = !machines.by_index(index::MACHINE_BY_INSTANCE, &id.0).is_empty()
            || !machines.by_index(index::MACHINE_BY_UID, uid).is_empty();
        anyhow::ensure!(!is_claimed, "instance {id} was claimed by a machine meanwhile");
        Destruction {
            call: "TerminateInstances",
            actor: "sweep",
            instance: &id.0,
            machine: String::new(),
            machine_uid: uid,
            machine_version: "",
            reason: format!("an instance of {key} without a Machine"),
        }
        .record();
        match access.provider().terminate(id).await {
            Ok(_) => self.context.metrics.count_orphan_terminated(),
            // Gone by itself.
            Err(error) if error.class == ErrorClass::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        access.view.watch_closely(id.clone());
        Ok(())
    }

    fn decide(
        &self,
        key: &CloudKey,
        snapshot: &Snapshot,
        machines: Machines,
        memory: &Memory,
    ) -> SweepDecision {
        let observed = Observed {
            cluster_id: &key.cluster_id,
            instances: snapshot.instances().into_iter().map(|one| &**one).collect(),
            machines,
            memory,
        };
        decide(&observed, &self.policy, self.context.env.now())
    }

    /// The Machines as the watch has them, those that cannot be read included.
    fn remembered(&self) -> Vec<Claim> {
        let machines = &self.context.stores.machines;
        let unreadable = machines.invalid().into_iter().map(|object| Claim {
            machine_uid: object.metadata.uid.clone().unwrap_or_default(),
            is_unreadable: true,
            ..Claim::default()
        });
        machines.list().iter().map(|machine| Claim::of(machine)).chain(unreadable).collect()
    }
}

fn is_same(known: &Instance, confirmed: &Instance) -> bool {
    known.tags == confirmed.tags && known.launched_at == confirmed.launched_at
}

#[cfg(test)]
mod tests;
