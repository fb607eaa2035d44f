//! How does a person put a maintenance off?
//!
//! By an annotation on its MachineMaintenance that says until when. What the provider does by itself is
//! not kept from happening by that, and the answer says so.

use jiff::Timestamp;
use machinist_api::{condition::to_seconds, names::annotation};

use super::{Change, Object, Refusal, annotate};
use crate::{maintenance::plan::Standing, overview::picture::Picture};

/// Puts the maintenance of a machine off until then; without a time, takes that back.
pub fn machine(
    name: &str,
    until: Option<Timestamp>,
    picture: &Picture<'_>,
) -> Result<Change, Refusal> {
    if !picture.sights.contains_key(name) {
        return Err(Refusal::not_found("machine", name, picture.objects.namespace));
    }
    let postponed = picture.records.get(name).and_then(|record| {
        record.metadata.annotations.as_ref()?.get(annotation::MAINTENANCE_POSTPONED)
    });
    let Some(entry) = picture.plan.entry(name) else {
        return Err(Refusal::not_now(
            format!("machine {name} needs no maintenance, so there is nothing to put off"),
            "`machinist plan` shows what is planned",
        ));
    };
    if let Standing::UnderWay { phase, .. } = &entry.standing {
        return Err(Refusal::not_now(
            format!("the maintenance of machine {name} is under way already ({})", phase.as_str()),
            "what was begun is finished",
        ));
    }
    let Some(record) = picture.records.get(name).copied() else {
        return Err(Refusal::not_now(
            format!("machine {name} has no MachineMaintenance yet, on which it could be put off"),
            "the operator makes one within a minute; is it running?",
        ));
    };
    let key = annotation::MAINTENANCE_POSTPONED;
    let Some(until) = until.map(|time| to_seconds(time).0) else {
        return Ok(match postponed {
            None => Change {
                write: None,
                sentence: format!("machine/{name}: its maintenance is not put off"),
            },
            Some(_) => Change {
                write: Some(annotate(Object::Maintenance, &record.metadata, key, None)),
                sentence: format!("machine/{name}: its maintenance is not put off any more"),
            },
        });
    };
    if until <= picture.now {
        return Err(Refusal::invalid(
            format!("until: Invalid value: {until}: that is not in the future"),
            "name a time that is still to come",
        ));
    }
    let late = match entry.latest_safe_start {
        Some(latest) if latest < until => format!(
            "; to be over in time it would have to begin at {latest} at the latest, and the \
             provider does not wait"
        ),
        Some(_) | None => String::new(),
    };
    Ok(Change {
        sentence: format!("machine/{name}: its maintenance is put off until {until}{late}"),
        write: Some(annotate(Object::Maintenance, &record.metadata, key, Some(&until.to_string()))),
    })
}
