//! How does a person approve what waits for them?
//!
//! A maintenance is approved on its MachineMaintenance, what the disruption gate holds on the Machine or
//! its pool.

use jiff::Timestamp;
use machinist_api::{
    Condition, Machine,
    names::{annotation, maintenance_reason, reason},
};

use super::{Change, Object, Refusal, annotate};
use crate::{
    maintenance::plan::Standing,
    overview::picture::{Picture, name_of},
};

/// How a person approves.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Whatever the reasons become.
    pub any_reason: bool,
    /// Up to when the disruption gate is told to let it be.
    pub until: Timestamp,
}

/// Approves what waits for a person with a machine.
pub fn machine(name: &str, how: How, picture: &Picture<'_>) -> Result<Change, Refusal> {
    let Some(sight) = picture.sights.get(name) else {
        return Err(Refusal::not_found("machine", name, picture.objects.namespace));
    };
    let entry = picture.plan.entry(name);
    let waits_for_a_person = entry.is_some_and(|entry| {
        entry.waits_on.iter().any(|wait| wait.reason == maintenance_reason::APPROVAL_MISSING)
    });
    if waits_for_a_person {
        return maintenance(name, how, picture);
    }
    if is_held(sight.machine, picture) {
        let metadata = &sight.machine.metadata;
        return Ok(Change {
            write: Some(annotate(
                Object::Machine,
                metadata,
                annotation::APPROVED_UNTIL,
                Some(&how.until.to_string()),
            )),
            sentence: format!(
                "machine/{name}: the disruption gate lets it be taken out of work until {}",
                how.until
            ),
        });
    }
    let Some(entry) = entry else {
        return Err(Refusal::not_now(
            format!("machine {name} needs no maintenance, so there is nothing to approve"),
            "`machinist plan` shows what is planned; a person asks for maintenance with the \
             annotation machinist.dev/maintenance-requested on the Machine",
        ));
    };
    if let Standing::UnderWay { phase, .. } = &entry.standing {
        let phase = phase.as_str();
        return Ok(Change {
            write: None,
            sentence: format!("machine/{name}: its maintenance is under way already ({phase})"),
        });
    }
    if is_approved(name, picture) {
        let sentence = format!("machine/{name}: approved already; {}", entry.sentence());
        return Ok(Change { write: None, sentence });
    }
    Err(Refusal::not_now(
        format!("machine {name} does not wait for an approval: {}", entry.sentence()),
        format!("`machinist explain machine/{name}` says what would help"),
    ))
}

/// Whether a person has approved the maintenance of a machine.
pub fn is_approved(name: &str, picture: &Picture<'_>) -> bool {
    picture.records.get(name).is_some_and(|record| {
        let annotations = record.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key(annotation::MAINTENANCE_APPROVED))
    })
}

fn maintenance(name: &str, how: How, picture: &Picture<'_>) -> Result<Change, Refusal> {
    let Some(record) = picture.records.get(name).copied() else {
        return Err(Refusal::not_now(
            format!("machine {name} has no MachineMaintenance yet, on which it could be approved"),
            "the operator makes one within a minute; is it running?",
        ));
    };
    let need = picture.gathered.fleet.machines.iter().find(|one| one.name == name);
    let first = need.and_then(|one| one.need.as_ref()).and_then(|need| need.reasons.first());
    let value = match first {
        Some(reason) if !how.any_reason => reason.id.clone(),
        Some(_) | None => "true".to_owned(),
    };
    let because = picture.plan.entry(name).map_or("", |entry| entry.because.as_str());
    let kept = if value == "true" { "whatever its reasons become" } else { because };
    let key = annotation::MAINTENANCE_APPROVED;
    Ok(Change {
        sentence: format!("machine/{name}: its maintenance is approved for {kept}"),
        write: Some(annotate(Object::Maintenance, &record.metadata, key, Some(&value))),
    })
}

/// Approves what the disruption gate holds of a pool.
pub fn pool(name: &str, how: How, picture: &Picture<'_>) -> Result<Change, Refusal> {
    let objects = picture.objects;
    let found = objects.sets.iter().find(|set| set.metadata.name.as_deref() == Some(name));
    let Some(set) = found else {
        return Err(Refusal::not_found("machineset", name, objects.namespace));
    };
    let is_of_pool = |machine: &&Machine| {
        let owners = machine.metadata.owner_references.iter().flatten();
        let mut controllers = owners.filter(|owner| owner.controller == Some(true));
        controllers.next().is_some_and(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
    };
    let held: Vec<&str> = objects
        .machines
        .iter()
        .copied()
        .filter(is_of_pool)
        .filter(|machine| is_held(machine, picture))
        .map(name_of)
        .collect();
    if held.is_empty() {
        return Err(Refusal::not_now(
            format!("nothing of machineset {name} is held by the disruption gate"),
            "a maintenance is approved for its machine: machinist approve machine/NAME",
        ));
    }
    let (key, value) = (annotation::APPROVED_UNTIL, how.until.to_string());
    Ok(Change {
        write: Some(annotate(Object::Pool, &set.metadata, key, Some(&value))),
        sentence: format!(
            "machineset/{name}: the disruption gate lets its machines be taken out of work until \
             {}; {} waited for it",
            how.until,
            held.join(", ")
        ),
    })
}

/// Whether the disruption gate holds something for a machine: its repair, or its maintenance.
pub fn is_held(machine: &Machine, picture: &Picture<'_>) -> bool {
    let name = name_of(machine);
    let says_so =
        |condition: &Condition| condition.reason.as_deref() == Some(reason::DISRUPTION_HELD);
    let by_machine =
        machine.status.as_ref().is_some_and(|status| status.conditions.iter().any(says_so));
    let by_check = picture.objects.health_checks.iter().any(|check| {
        let conditions = check.status.as_ref().map(|status| status.conditions.as_slice());
        conditions.unwrap_or_default().iter().any(|condition| {
            let words = condition.message.as_deref().unwrap_or_default();
            says_so(condition) && words.contains(&format!("machine {name}:"))
        })
    });
    let by_maintenance = picture.records.get(name).is_some_and(|record| {
        let plan = record.status.as_ref().and_then(|status| status.plan.as_ref());
        plan.is_some_and(|plan| {
            plan.waits_on.iter().any(|wait| wait.reason == maintenance_reason::GATE_HOLDS)
        })
    });
    by_machine || by_check || by_maintenance
}
