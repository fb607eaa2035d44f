//! How does this process become, stay and cease to be the one that acts?
//!
//! Holds all of the named leases or none that counts: they are acquired in a fixed order (so that two candidates cannot
//! hold half each), and only when all are held does [`Leadership`] say so. The original controllers
//! each wait for one of these leases, so an old one and this process never act together.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use machinist_core::lease::{
    LeaseDecision, LeaseNow, LeaseRecord, LeaseTimings, ObservedLease, decide, released,
};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    env::Env,
    leadership::{Claim, Leadership, Told},
};
use crate::metrics::Metrics;

/// How long the release of a lease may take at shutdown. After that it expires by itself.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// The least time between attempts, for a lease that expires at this moment.
const RETRY_FLOOR: Duration = Duration::from_millis(100);

/// A lease to hold.
#[derive(Clone, Debug)]
pub struct NamedLease {
    /// Its name in the namespace of the operator.
    pub name: String,
    /// Its timings.
    pub timings: LeaseTimings,
}

impl NamedLease {
    /// Returns the five leases of the original operator and its controllers, in the order of acquiring. The operator's
    /// comes first: while we hold it, the original operator cannot bring its controllers back.
    #[must_use]
    pub fn originals(operator: LeaseTimings, controllers: LeaseTimings) -> Vec<Self> {
        [
            ("machine-api-operator", operator),
            ("cluster-api-provider-machineset-leader", controllers),
            ("cluster-api-provider-nodelink-leader", controllers),
            ("cluster-api-provider-healthcheck-leader", controllers),
            ("cluster-api-provider-aws-leader", controllers),
        ]
        .map(|(name, timings)| Self { name: name.to_owned(), timings })
        .to_vec()
    }
}

/// One process's part in the election.
pub struct Election {
    voter: Voter,
    metrics: Metrics,
    candidacies: Vec<Candidacy>,
    told: Told,
}

/// Who we are, and where.
struct Voter {
    api: Api<Lease>,
    env: Env,
    identity: String,
    /// The zero of this election's monotonic time.
    origin: Instant,
}

/// What is wanted of a lease for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Intent {
    Hold,
    Look,
}

/// What this process knows of one lease.
struct Candidacy {
    lease: NamedLease,
    /// The object as last read or written, whose resourceVersion the next write carries.
    object: Option<Lease>,
    observed: Option<ObservedLease>,
    /// When the last successful renewal was sent; `None` while it is not ours.
    renewed: Option<Instant>,
    next_attempt: Instant,
    /// The holder that was last named in the log.
    reported: Option<String>,
    /// Why it is not ours, in words.
    obstacle: Option<String>,
}

/// What an attempt brought.
enum Attempt {
    Held,
    /// It could be taken, and was not wanted yet.
    Free,
    HeldByOther {
        holder: String,
        until: Duration,
    },
    Failed(anyhow::Error),
}

impl Election {
    /// Prepares to hold all of `leases` in `namespace` under `identity`, which must be unique among processes.
    ///
    /// # Errors
    /// Fails when the timings of a lease contradict each other.
    pub fn new(
        client: &Client,
        env: &Env,
        metrics: &Metrics,
        namespace: &str,
        identity: impl Into<String>,
        leases: Vec<NamedLease>,
    ) -> anyhow::Result<(Self, Leadership)> {
        for NamedLease { name, timings } in &leases {
            timings.validate().map_err(|error| anyhow::anyhow!("lease {name}: {error}"))?;
        }
        let (told, leadership) = Leadership::elected();
        let origin = env.instant();
        let candidacies = leases.into_iter().map(|lease| Candidacy::new(lease, origin)).collect();
        let voter = Voter {
            api: Api::namespaced(client.clone(), namespace),
            env: env.clone(),
            identity: identity.into(),
            origin,
        };
        let election = Self { voter, metrics: metrics.clone(), candidacies, told };
        Ok((election, leadership))
    }

    /// Gives the first lease other timings; before the election is run.
    ///
    /// # Errors
    /// Fails when they contradict each other.
    pub fn set_first_timings(&mut self, timings: LeaseTimings) -> anyhow::Result<()> {
        if let Some(first) = self.candidacies.first_mut() {
            let name = &first.lease.name;
            timings.validate().map_err(|error| anyhow::anyhow!("lease {name}: {error}"))?;
            first.lease.timings = timings;
        }
        Ok(())
    }

    /// Acquires the leases, keeps them, and releases them when `stopping` is cancelled.
    ///
    /// # Errors
    /// Fails when a lease was lost: the process must end, since others may act from now on.
    pub async fn run(mut self, stopping: CancellationToken) -> anyhow::Result<()> {
        loop {
            let next = self.next_attempt();
            tokio::select! {
                biased;
                () = stopping.cancelled() => break,
                () = sleep_until(next) => {}
            }
            let result = tokio::select! {
                biased;
                result = self.attempt_due() => result,
                () = stopping.cancelled() => break,
            };
            if let Err(lost) = result {
                self.claim_nothing();
                return Err(lost);
            }
            self.publish();
        }
        self.claim_nothing();
        self.release().await;
        Ok(())
    }

    /// Attends to all leases that are due: renews those held, tries for the first one that is not, and looks at the rest, so
    /// that the time in which their holder gives no sign of life counts from now and not from when their turn comes.
    async fn attempt_due(&mut self) -> anyhow::Result<()> {
        let Self { voter, candidacies, .. } = self;
        let now = voter.env.instant();
        let mut missing = 0_usize;
        let due = candidacies.iter_mut().filter_map(|candidacy| {
            missing += usize::from(candidacy.renewed.is_none());
            let intent = if candidacy.renewed.is_some() || missing == 1 {
                Intent::Hold
            } else {
                Intent::Look
            };
            (candidacy.next_attempt <= now).then_some((candidacy, intent))
        });
        let attempts = due.map(|(candidacy, intent)| candidacy.attempt(voter, intent));
        join_all(attempts).await.into_iter().collect::<anyhow::Result<()>>()?;
        // One that was just acquired makes the next one worth trying at once.
        let missing_after = candidacies.iter().filter(|other| other.renewed.is_none()).count();
        if missing_after < missing
            && let Some(next) = candidacies.iter_mut().find(|other| other.renewed.is_none())
        {
            next.next_attempt = self.voter.env.instant();
        }
        Ok(())
    }

    fn next_attempt(&self) -> Instant {
        let next = self.candidacies.iter().map(|candidacy| candidacy.next_attempt).min();
        next.unwrap_or_else(|| self.voter.env.instant())
    }

    fn claim_nothing(&self) {
        self.told.first_claim.send_replace(Claim::NotHeld);
        self.told.claim.send_replace(Claim::NotHeld);
    }

    fn publish(&self) {
        let first = self.candidacies.first().and_then(Candidacy::deadline);
        self.told.first_claim.send_replace(first.map_or(Claim::NotHeld, Claim::HeldUntil));
        let missing = self.candidacies.iter().find(|one| one.renewed.is_none());
        self.told.obstacle.send_replace(missing.and_then(|one| {
            let namespace = self.voter.api.namespace().unwrap_or_default();
            let obstacle = one.obstacle.as_ref()?;
            Some(format!("the lease {namespace}/{} {obstacle}", one.lease.name))
        }));
        let mut until = None;
        for candidacy in &self.candidacies {
            self.metrics.set_lease_held(&candidacy.lease.name, candidacy.renewed.is_some());
            let Some(deadline) = candidacy.deadline() else {
                self.told.claim.send_replace(Claim::NotHeld);
                return;
            };
            until = Some(until.map_or(deadline, |until: Instant| until.min(deadline)));
        }
        let Some(until) = until else { return };
        if matches!(self.told.claim.send_replace(Claim::HeldUntil(until)), Claim::NotHeld) {
            tracing::info!(identity = self.voter.identity, "all leases are held");
        }
    }

    /// Gives the leases up, the last acquired first, so that a successor acquires them in order without waiting.
    async fn release(&mut self) {
        let Voter { api, env, identity, .. } = &self.voter;
        let deadline = env.instant() + RELEASE_TIMEOUT;
        for candidacy in self.candidacies.iter_mut().rev() {
            let name = &candidacy.lease.name;
            self.metrics.set_lease_held(name, false);
            // Also one that an interrupted attempt may have got without our learning of it.
            let release = release(api, name, identity, env);
            match timeout_at(deadline, release).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(lease = name, %error, "failed to release"),
                Err(_) => tracing::warn!(lease = name, "failed to release in time"),
            }
        }
    }
}

/// Releases the lease if we hold it, as the API server sees it.
async fn release(api: &Api<Lease>, name: &str, identity: &str, env: &Env) -> kube::Result<()> {
    let Some(object) = api.get_opt(name).await? else { return Ok(()) };
    let record = record_of(&object);
    if record.holder == identity {
        let object = with_record(object, &released(&record, env.now()));
        api.replace(name, &PostParams::default(), &object).await?;
        tracing::info!(lease = name, "released");
    }
    Ok(())
}

impl Candidacy {
    fn new(lease: NamedLease, now: Instant) -> Self {
        Self {
            lease,
            object: None,
            observed: None,
            renewed: None,
            next_attempt: now,
            reported: None,
            obstacle: None,
        }
    }

    /// Until when it is safe to act on this lease.
    fn deadline(&self) -> Option<Instant> {
        self.renewed.map(|renewed| renewed + self.lease.timings.renew_deadline)
    }

    /// Attempts to acquire or renew. Fails when the lease was ours and is no more.
    async fn attempt(&mut self, voter: &Voter, intent: Intent) -> anyhow::Result<()> {
        let Voter { env, identity, origin, .. } = voter;
        let NamedLease { name, timings } = self.lease.clone();
        let started = env.instant();
        // A request that hangs must neither hide the deadline nor use up all attempts before it.
        let give_up = started + timings.retry_period;
        let give_up = self.deadline().map_or(give_up, |deadline| deadline.min(give_up));
        let attempt = match timeout_at(give_up, self.reach(voter, intent)).await {
            Ok(attempt) => attempt,
            Err(_) => Attempt::Failed(anyhow::anyhow!("no answer from the API server in time")),
        };
        let now = env.instant();
        let mut pause = timings.retry_period;
        match attempt {
            Attempt::Held => {
                if self.renewed.is_none() {
                    tracing::info!(lease = name, identity, "acquired");
                }
                (self.renewed, self.reported, self.obstacle) = (Some(started), None, None);
            }
            Attempt::Free => {
                self.obstacle = None;
                pause = env.jitter(pause, 0.2);
            }
            Attempt::HeldByOther { holder, .. } if self.renewed.is_some() => {
                anyhow::bail!("lost the lease {name} to {holder}");
            }
            Attempt::HeldByOther { holder, until } => {
                self.obstacle = Some(format!("is held by {holder}"));
                if self.reported.as_ref() != Some(&holder) {
                    tracing::info!(
                        lease = name,
                        holder,
                        "waiting for the lease that another one holds"
                    );
                    self.reported = Some(holder);
                }
                let expiry = (*origin + until).saturating_duration_since(now);
                pause = env.jitter(pause, 0.2).min(expiry.max(RETRY_FLOOR));
            }
            Attempt::Failed(error) => {
                self.obstacle = Some(format!("cannot be taken: {error:#}"));
                tracing::warn!(
                    lease = name,
                    error = format!("{error:#}"),
                    "failed to acquire or renew"
                );
                pause = env.jitter(pause, 0.2);
            }
        }
        // From the start, not from the answer: slow answers must not stretch the period.
        self.next_attempt = (started + pause).max(now + RETRY_FLOOR);
        if let Some(deadline) = self.deadline() {
            if now >= deadline {
                anyhow::bail!(
                    "lost the lease {name}: not renewed for {} s",
                    timings.renew_deadline.as_secs_f64()
                );
            }
            self.next_attempt = self.next_attempt.min(deadline);
        }
        Ok(())
    }

    async fn reach(&mut self, voter: &Voter, intent: Intent) -> Attempt {
        // A lease that is ours is written on what we know; only if that fails is it read.
        if (self.renewed.is_none() || self.object.is_none())
            && let Err(error) = self.read(voter).await
        {
            return Attempt::Failed(error);
        }
        match self.write(voter, intent).await {
            Ok(attempt) => attempt,
            Err(error) if self.renewed.is_some() => {
                let error = format!("{error:#}");
                tracing::debug!(lease = self.lease.name, error, "reading anew");
                if let Err(error) = self.read(voter).await {
                    return Attempt::Failed(error);
                }
                self.write(voter, intent).await.unwrap_or_else(Attempt::Failed)
            }
            Err(error) => Attempt::Failed(error),
        }
    }

    async fn read(&mut self, voter: &Voter) -> anyhow::Result<()> {
        self.object = voter.api.get_opt(&self.lease.name).await?;
        let record = self.object.as_ref().map(record_of);
        let now = voter.monotonic();
        self.observed =
            record.map(|record| ObservedLease::update(self.observed.take(), record, now));
        Ok(())
    }

    async fn write(&mut self, voter: &Voter, intent: Intent) -> anyhow::Result<Attempt> {
        let Voter { api, env, identity, .. } = voter;
        let name = &self.lease.name;
        let now = LeaseNow { monotonic: voter.monotonic(), wall: env.now() };
        let parameters = PostParams::default();
        let written = match decide(self.observed.as_ref(), identity, &self.lease.timings, now) {
            LeaseDecision::Wait { holder, until } => {
                return Ok(Attempt::HeldByOther { holder, until });
            }
            LeaseDecision::Create(_) | LeaseDecision::Take(_) | LeaseDecision::Renew(_)
                if intent == Intent::Look =>
            {
                return Ok(Attempt::Free);
            }
            LeaseDecision::Create(record) => {
                let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
                let object = with_record(Lease { metadata, spec: None }, &record);
                api.create(&parameters, &object).await?
            }
            LeaseDecision::Renew(record) | LeaseDecision::Take(record) => {
                // The object carries the resourceVersion that was decided on (Rule 3).
                let object = with_record(self.object.clone().unwrap_or_default(), &record);
                api.replace(name, &parameters, &object).await?
            }
        };
        let record = record_of(&written);
        self.observed = Some(ObservedLease { record, since: now.monotonic });
        self.object = Some(written);
        Ok(Attempt::Held)
    }
}

impl Voter {
    fn monotonic(&self) -> Duration {
        self.env.instant().duration_since(self.origin)
    }
}

fn record_of(lease: &Lease) -> LeaseRecord {
    let spec = lease.spec.clone().unwrap_or_default();
    LeaseRecord {
        holder: spec.holder_identity.unwrap_or_default(),
        duration_seconds: spec.lease_duration_seconds.unwrap_or_default(),
        acquired: spec.acquire_time.map(|time| time.0),
        renewed: spec.renew_time.map(|time| time.0),
        transitions: spec.lease_transitions.unwrap_or_default(),
    }
}

/// Writes the record into the object and leaves whatever else it carries.
fn with_record(mut lease: Lease, record: &LeaseRecord) -> Lease {
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(record.holder.clone()),
        lease_duration_seconds: Some(record.duration_seconds),
        acquire_time: record.acquired.map(MicroTime),
        renew_time: record.renewed.map(MicroTime),
        lease_transitions: Some(record.transitions),
        ..lease.spec.unwrap_or_default()
    });
    lease
}

#[cfg(test)]
mod tests;
