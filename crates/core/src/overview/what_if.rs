//! How would the plan change? Policies, events and requests that are only supposed; nothing is saved.

use std::collections::BTreeMap;

use jiff::Timestamp;
use machinist_api::{
    Machine, MachineMaintenance, MachineMaintenanceSpec, MaintenanceAction, MaintenancePolicy,
    condition::to_seconds,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    calendar_view::{CalendarView, DAYS_USUAL, calendar},
    instant::Instant,
    objects::Objects,
    picture::{name_of, supposed, with_plan},
    plan_view::{EntryView, PlanView, plan},
    wish::Refusal,
};
use crate::{
    machine::observed::Identity,
    maintenance::{
        event::{Code, Sighting},
        policy,
    },
};

/// How much may be supposed at once.
const SUPPOSED_MAX: usize = 100;

/// What is supposed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WhatIf {
    /// Whole MaintenancePolicies, in the place of those of the same name.
    #[serde(default)]
    pub policies: Vec<Value>,
    /// The names of policies that there would not be.
    #[serde(default)]
    pub without_policies: Vec<String>,
    #[serde(default)]
    pub events: Vec<SupposedEvent>,
    #[serde(default)]
    pub requests: Vec<SupposedRequest>,
}

/// Something that the provider would announce.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SupposedEvent {
    pub machine: String,
    /// Such as instance-retirement.
    pub code: String,
    /// When the provider would act.
    #[schemars(with = "Instant")]
    pub not_before: Timestamp,
    /// Up to when the provider would let it be moved.
    #[serde(default)]
    #[schemars(with = "Option<Instant>")]
    pub movable_until: Option<Timestamp>,
}

/// Something that a person would ask for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SupposedRequest {
    pub machine: String,
    /// Without it the policy chooses.
    #[serde(default)]
    pub action: Option<MaintenanceAction>,
    /// When work may begin at the earliest.
    #[serde(default)]
    #[schemars(with = "Option<Instant>")]
    pub not_before: Option<Timestamp>,
    /// When it is to be done at the latest.
    #[serde(default)]
    #[schemars(with = "Option<Instant>")]
    pub deadline: Option<Timestamp>,
}

/// The plan before and after.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhatIfAnswer {
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    pub before: PlanView,
    pub after: PlanView,
    /// The coming days after.
    pub calendar: CalendarView,
    pub changes: Vec<PlanChange>,
    /// All of it in one sentence.
    pub summary: String,
}

/// What changes for one machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlanChange {
    pub machine: String,
    pub change: ChangeWord,
    pub before: Option<EntryView>,
    pub after: Option<EntryView>,
    pub sentence: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChangeWord {
    Added,
    Removed,
    Earlier,
    Later,
    Other,
}

/// Tries what is supposed on the objects of now.
pub fn what_if(
    objects: &Objects<'_>,
    wish: &WhatIf,
    now: Timestamp,
) -> Result<WhatIfAnswer, Refusal> {
    let count =
        wish.policies.len() + wish.without_policies.len() + wish.events.len() + wish.requests.len();
    if count > SUPPOSED_MAX {
        return Err(invalid(format!("at most {SUPPOSED_MAX} things are supposed at once")));
    }
    let policies = read_policies(&wish.policies)?;
    let sightings = sightings(objects, &wish.events)?;
    let requests = requested(objects, &wish.requests)?;
    let before = with_plan(objects, &[], now, plan);

    let mut trial = objects.clone();
    for name in &wish.without_policies {
        let known = trial.policies.len();
        trial.policies.retain(|one| one.metadata.name.as_ref() != Some(name));
        if trial.policies.len() == known {
            return Err(Refusal {
                what: format!("withoutPolicies: there is no MaintenancePolicy {name}"),
                hint: "the policies that there are can be left out".to_owned(),
                cause: super::wish::Cause::NotFound,
            });
        }
    }
    for policy in &policies {
        trial.policies.retain(|one| one.metadata.name != policy.metadata.name);
        trial.policies.push(policy);
    }
    trial.policies.sort_by_key(|policy| policy.metadata.name.clone());
    trial.maintenances.extend(&requests);
    trial
        .maintenances
        .sort_by_key(|one| (one.metadata.namespace.clone(), one.metadata.name.clone()));
    let to = now.checked_add(DAYS_USUAL).unwrap_or(Timestamp::MAX);
    let (after, calendar) =
        with_plan(&trial, &sightings, now, |picture| (plan(picture), calendar(picture, now, to)));
    let changes = changes(&before, &after);
    let summary = summary(&changes);
    Ok(WhatIfAnswer { as_of: now, before, after, calendar, changes, summary })
}

fn invalid(what: String) -> Refusal {
    Refusal::invalid(what, "nothing was changed")
}

/// One policy after the other, or everything that is wrong with them.
fn read_policies(given: &[Value]) -> Result<Vec<MaintenancePolicy>, Refusal> {
    let mut policies = Vec::new();
    for (index, value) in given.iter().enumerate() {
        let path = format!("policies[{index}]");
        let policy = policy::read_manifest(value).map_err(|problems| {
            let told: Vec<String> =
                problems.iter().map(|problem| format!("{path}: {problem}")).collect();
            invalid(told.join("; "))
        })?;
        policies.push(policy);
    }
    Ok(policies)
}

fn find<'a>(objects: &Objects<'a>, path: &str, name: &str) -> Result<&'a Machine, Refusal> {
    let found = objects.machines.iter().copied().find(|machine| name_of(machine) == name);
    found.ok_or_else(|| Refusal {
        what: format!("{path}: there is no machine {name} in namespace {}", objects.namespace),
        hint: "suppose it for one that there is".to_owned(),
        cause: super::wish::Cause::NotFound,
    })
}

/// The events as the provider would show them for the machines' instances.
fn sightings(objects: &Objects<'_>, events: &[SupposedEvent]) -> Result<Vec<Sighting>, Refusal> {
    let mut sightings = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let path = format!("events[{index}]");
        if Code::of(&event.code).is_none() {
            let codes: Vec<&str> = Code::ALL.into_iter().map(Code::as_str).collect();
            return Err(invalid(format!(
                "{path}.code: Unsupported value: {:?}: supported values: {}",
                event.code,
                codes.join(", ")
            )));
        }
        let machine = find(objects, &format!("{path}.machine"), &event.machine)?;
        let Some(instance) = Identity::of(machine).instance_id else {
            return Err(invalid(format!(
                "{path}.machine: machine {} has no instance yet",
                event.machine
            )));
        };
        let id = format!("what-if-{}", index + 1);
        let mut sighting = supposed(id, instance, &event.code, event.not_before);
        sighting.not_before_deadline = event.movable_until;
        sightings.push(sighting);
    }
    Ok(sightings)
}

/// The objects by which a person would ask.
fn requested(
    objects: &Objects<'_>,
    requests: &[SupposedRequest],
) -> Result<Vec<MachineMaintenance>, Refusal> {
    let mut asking = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        let path = format!("requests[{index}].machine");
        find(objects, &path, &request.machine)?;
        if objects.maintenances.iter().any(|one| one.spec.machinelink == request.machine) {
            return Err(invalid(format!(
                "{path}: machine {} has a MachineMaintenance already",
                request.machine
            )));
        }
        let spec = MachineMaintenanceSpec {
            action: request.action,
            deadline: request.deadline.map(to_seconds),
            machinelink: request.machine.clone(),
            notbefore: request.not_before.map(to_seconds),
            reason: Some("supposed, to try the plan".to_owned()),
            ..MachineMaintenanceSpec::default()
        };
        let mut object = MachineMaintenance::new(&format!("mm-{}", request.machine), spec);
        object.metadata.namespace = Some(objects.namespace.to_owned());
        asking.push(object);
    }
    Ok(asking)
}

fn changes(before: &PlanView, after: &PlanView) -> Vec<PlanChange> {
    let by_name = |plan: &PlanView| -> BTreeMap<String, EntryView> {
        plan.entries.iter().map(|one| (one.entry.machine.clone(), one.clone())).collect()
    };
    let (mut old, new) = (by_name(before), by_name(after));
    let mut changes = Vec::new();
    for (machine, after) in new {
        let before = old.remove(&machine);
        let Some(before) = before else {
            changes.push(PlanChange {
                sentence: format!("new: {}", after.sentence),
                machine,
                change: ChangeWord::Added,
                before: None,
                after: Some(after),
            });
            continue;
        };
        if before.says_the_same(&after) {
            continue;
        }
        let (change, how) = match (before.entry.start, after.entry.start) {
            (Some(old), Some(new)) if new < old => {
                (ChangeWord::Earlier, format!("earlier than {old}"))
            }
            (Some(old), Some(new)) if new > old => (ChangeWord::Later, format!("later than {old}")),
            (None, Some(_)) => (ChangeWord::Earlier, "gets a time".to_owned()),
            (Some(old), None) => (ChangeWord::Later, format!("loses its time, {old}")),
            _ => (ChangeWord::Other, "otherwise than before".to_owned()),
        };
        changes.push(PlanChange {
            sentence: format!("{how}: {}", after.sentence),
            machine,
            change,
            before: Some(before),
            after: Some(after),
        });
    }
    for (machine, before) in old {
        changes.push(PlanChange {
            sentence: format!("no more: {}", before.sentence),
            machine,
            change: ChangeWord::Removed,
            before: Some(before),
            after: None,
        });
    }
    changes.sort_by(|left, right| left.machine.cmp(&right.machine));
    changes
}

fn summary(changes: &[PlanChange]) -> String {
    if changes.is_empty() {
        return "The plan would stay as it is.".to_owned();
    }
    let counted = |word: ChangeWord, what: &str| {
        let count = changes.iter().filter(|one| one.change == word).count();
        (count > 0).then(|| format!("{count} {what}"))
    };
    let parts: Vec<String> = [
        counted(ChangeWord::Added, "new"),
        counted(ChangeWord::Removed, "no more"),
        counted(ChangeWord::Earlier, "earlier"),
        counted(ChangeWord::Later, "later"),
        counted(ChangeWord::Other, "otherwise"),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("The plan would change: {}.", parts.join(", "))
}
