//! The planning pass: the whole fleet's reasons are laid on the calendar, objects are made for Machines
//! that have a reason and none, old ones are removed, and each policy says what it is worth.

use std::time::Duration;

use anyhow::Context as _;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use kube::{
    Api,
    api::{DeleteParams, PostParams, Preconditions},
};
use machinist_api::{MachineMaintenance, MaintenancePolicy, MaintenanceReasonState, names::event};
use machinist_core::{
    decision::Severity,
    maintenance::{
        Note,
        freshness::is_held_by_pods,
        policies::Subject,
        policy_status::{self, Coverage},
        records,
    },
};

use super::{Maintenance, fleet::Fleet, memory::Planned};
use crate::{
    cluster_api::maintained::event_target,
    context::Context,
    engine::{events::EventType, queue::Outcome, store::ObjectKey},
    machine::{superseded_or_failed, until},
    write::{self, Precondition, WriteError},
};

pub const NAME: &str = "maintenance-plan";

/// How soon a cluster without the kind is looked at again; asks for nothing.
const WHILE_ABSENT: Duration = Duration::from_secs(60);
/// While anything is pending or under way it is planned anew this often, whatever happens.
const WHILE_PENDING: SignedDuration = SignedDuration::from_mins(10);
/// What time alone decides about: an event that is not shown any more, checks that go on failing.
const WHILE_DOUBTFUL: SignedDuration = SignedDuration::from_mins(1);
/// How many requests are under way at once.
const LARGEST_BATCH: usize = 32;

/// The one key of the queue.
pub fn key() -> ObjectKey {
    ObjectKey::cluster_wide("fleet")
}

pub async fn reconcile(context: &Context, maintenance: &Maintenance) -> Outcome {
    if context.stores.maintenance.is_absent() {
        maintenance.memory.drop_plan();
        return Outcome::RecheckAfter(WHILE_ABSENT);
    }
    let fleet = Fleet::observe(context, &maintenance.memory).await;
    let now = context.env.now();
    let missing = keep_plan(context, maintenance, &fleet, now);

    let mut failure = None;
    for result in [
        make(context, missing).await,
        remove_expired(context, &fleet, maintenance, now).await,
        publish_policies(context, &fleet, now).await,
    ] {
        failure = failure.or_else(|| result.err());
    }
    if let Some(error) = failure {
        return superseded_or_failed(error);
    }
    let Some(planned) = maintenance.memory.planned() else { return Outcome::Settled };
    match recheck(context, &fleet, &planned, now) {
        Some(at) => Outcome::RecheckAfter(until(now, at)),
        None => Outcome::Settled,
    }
}

/// Plans on what is known at this moment, and keeps the plan. Called with the turn to begin.
pub(super) async fn plan_anew(context: &Context, maintenance: &Maintenance) {
    let fleet = Fleet::observe(context, &maintenance.memory).await;
    keep_plan(context, maintenance, &fleet, context.env.now());
}

/// Keeps a new plan and wakes those that it says something new for. Returns the objects that are
/// missing.
fn keep_plan(
    context: &Context,
    maintenance: &Maintenance,
    fleet: &Fleet,
    now: Timestamp,
) -> Vec<MachineMaintenance> {
    let new = fleet.plan(&context.stores.maintenance.namespace, now);
    tell(context, maintenance, &new.planned.plan.notes);
    let objects = fleet.maintenances.iter().map(AsRef::as_ref);
    for key in maintenance.memory.keep(new.planned, objects) {
        maintenance.queue.add(key);
    }
    new.missing
}

/// Tells, once, what cannot be used. What is wrong with an object of ours stands on that object.
fn tell(context: &Context, maintenance: &Maintenance, notes: &[Note]) {
    for note in maintenance.memory.news(notes) {
        tracing::info!(about = note.about, reason = note.reason, "{}", note.message);
        let Some(name) = note.about.strip_prefix("machine/") else { continue };
        if let Some(machine) = context.stores.machine_named(name)
            && note.severity == Severity::Warning
        {
            let target = event_target(&machine);
            let (type_, reason) = (EventType::Warning, event::FAILED_VALIDATE);
            context.events.record(&target, type_, reason, "Validate", &note.message);
        }
    }
}

/// Makes the objects that are missing. One that fails keeps no other from being made.
async fn make(context: &Context, missing: Vec<MachineMaintenance>) -> anyhow::Result<()> {
    let api = Api::<MachineMaintenance>::namespaced(
        context.client.clone(),
        &context.stores.maintenance.namespace,
    );
    let mut failure = None;
    for batch in missing.chunks(LARGEST_BATCH) {
        let made = batch.iter().map(|object| make_one(context, &api, object));
        for result in join_all(made).await {
            failure = failure.or_else(|| result.err());
        }
    }
    failure.map_or(Ok(()), Err)
}

async fn make_one(
    context: &Context,
    api: &Api<MachineMaintenance>,
    object: &MachineMaintenance,
) -> anyhow::Result<()> {
    context.require_leadership()?;
    match api.create(&PostParams::default(), object).await {
        Ok(made) => {
            tracing::info!(maintenance = %ObjectKey::of(&made), "a machine needs maintenance");
            context.stores.maintenance.apply_written(made);
            Ok(())
        }
        // The watch is about to show it.
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            Err(error).with_context(|| format!("failed to make MachineMaintenance {name}"))
        }
    }
}

/// Removes records of what was over long ago, unless their reason still holds.
async fn remove_expired(
    context: &Context,
    fleet: &Fleet,
    maintenance: &Maintenance,
    now: Timestamp,
) -> anyhow::Result<()> {
    let planned = maintenance.memory.planned();
    let mut failure = None;
    for object in &fleet.maintenances {
        let is_due = expiry(fleet, object).is_some_and(|at| at <= now);
        let still_holds =
            planned.as_ref().is_some_and(|planned| has_reason(planned, &object.spec.machinelink));
        if is_due && !still_holds && object.metadata.deletion_timestamp.is_none() {
            let removed = remove(context, object).await;
            failure = failure.or_else(|| removed.err());
        }
    }
    failure.map_or(Ok(()), Err)
}

fn expiry(fleet: &Fleet, object: &MachineMaintenance) -> Option<Timestamp> {
    let plan = object.status.as_ref().and_then(|status| status.plan.as_ref());
    let named = fleet.policies.get(plan.and_then(|plan| plan.policy.as_deref()));
    // A policy that is gone or cannot be used says nothing about how long its records are kept.
    records::expires_at(object, named.or_else(|| fleet.policies.get(None))?)
}

fn has_reason(planned: &Planned, machine: &str) -> bool {
    let reasons = planned.reasons.get(machine).map(Vec::as_slice).unwrap_or_default();
    reasons.iter().any(|reason| reason.state == MaintenanceReasonState::Active)
}

async fn remove(context: &Context, object: &MachineMaintenance) -> anyhow::Result<()> {
    context.require_leadership()?;
    let key = ObjectKey::of(object);
    let api = Api::<MachineMaintenance>::namespaced(context.client.clone(), &key.namespace);
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: object.metadata.uid.clone(),
            resource_version: object.metadata.resource_version.clone(),
        }),
        ..DeleteParams::default()
    };
    match api.delete(&key.name, &parameters).await {
        Ok(answer) => {
            tracing::info!(maintenance = %key, "its record is old and removed");
            let uid = object.metadata.uid.as_deref().unwrap_or_default();
            context.stores.maintenance.apply_deleted(&key, uid, answer.left());
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            Err(WriteError::Conflict { what: write::name_of(object) }.into())
        }
        Err(error) => Err(error).with_context(|| format!("failed to remove {key}")),
    }
}

/// Says on each policy whether it can be used and whom it holds for.
async fn publish_policies(context: &Context, fleet: &Fleet, now: Timestamp) -> anyhow::Result<()> {
    let policies = context.stores.maintenance.policies.list();
    if policies.is_empty() {
        return Ok(());
    }
    let subjects = fleet.machines.iter().map(|sighted| Subject::of(&sighted.machine));
    let coverage = Coverage::of(&fleet.policies, subjects);
    let api = Api::<MaintenancePolicy>::all(context.client.clone());
    let mut failure = None;
    for policy in policies.iter().filter(|one| one.metadata.deletion_timestamp.is_none()) {
        let wanted = policy_status::status(policy, &coverage, now);
        let stored = policy.status.as_ref();
        let precondition = Precondition::Observed;
        match write::status(&api, &**policy, stored, &wanted, precondition).await {
            Ok(Some(written)) => context.stores.maintenance.policies.apply_written(written),
            Ok(None) => {}
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(()), |error| Err(error.into()))
}

/// When the plan can change by the passing of time alone.
fn recheck(
    context: &Context,
    fleet: &Fleet,
    planned: &Planned,
    now: Timestamp,
) -> Option<Timestamp> {
    let later = |by: SignedDuration| now.checked_add(by).ok();
    let is_doubtful = fleet.machines.iter().any(|sighted| sighted.is_impaired())
        || planned.reasons.values().flatten().any(|reason| {
            reason.state == MaintenanceReasonState::Active && reason.missing_since.is_some()
        });
    let is_pending = !planned.plan.entries.is_empty();
    let is_held_elsewhere = planned.plan.entries.iter().any(is_held_by_pods);
    let expiries = fleet.maintenances.iter().filter_map(|object| expiry(fleet, object));
    let policies = context.stores.maintenance.policies.list();
    let openings = policies.iter().filter_map(|policy| {
        policy.status.as_ref()?.next_opening.as_ref().map(|opening| opening.0)
    });
    [
        planned.plan.recheck(),
        (is_doubtful || is_held_elsewhere).then(|| later(WHILE_DOUBTFUL)).flatten(),
        is_pending.then(|| later(WHILE_PENDING)).flatten(),
        expiries.filter(|at| *at > now).min(),
        openings.filter(|at| *at > now).min(),
    ]
    .into_iter()
    .flatten()
    .min()
}
