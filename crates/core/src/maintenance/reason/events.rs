//! One event told by several sources is one reason. What became of it is told by the most
//! trustworthy source that speaks of it; that it vanished only by sources that were asked.

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    MaintenanceReason, MaintenanceReasonKind, MaintenanceReasonState, condition::to_seconds,
};

use super::{Facts, Merged, title};
use crate::maintenance::event::{EventState, Sighting, Source};

/// How long an event must be missing before that is believed: answers of the provider are only
/// eventually consistent, and a call too many costs less than an instance too few.
const VANISHED_AFTER: SignedDuration = SignedDuration::from_mins(5);
/// A notice and the listed event that it tells of have different ids. Their times agree, but for
/// rounding and for an event that was moved between the two.
const SAME_EVENT: SignedDuration = SignedDuration::from_hours(24);
/// A notice whose event never shows in a list is believed until this long after its time.
const NOTICE_EXPIRES: SignedDuration = SignedDuration::from_hours(24);

pub(super) fn merge(facts: &Facts<'_>, now: Timestamp) -> Merged {
    let mut merged = Merged::default();
    let mut groups: Vec<Group<'_>> = facts
        .known
        .iter()
        .filter(|reason| reason.kind == MaintenanceReasonKind::Event)
        .map(|known| Group { known: Some(known), sightings: Vec::new() })
        .collect();
    let mut sightings: Vec<&Sighting> = facts.sightings.iter().collect();
    // The most trustworthy first, so that a notice finds the event that it tells of.
    sightings.sort_by(|left, right| (left.source, &left.id).cmp(&(right.source, &right.id)));
    for sighting in sightings {
        match groups.iter_mut().find(|group| group.is_about(sighting)) {
            Some(group) => group.sightings.push(sighting),
            None => groups.push(Group { known: None, sightings: vec![sighting] }),
        }
    }
    for group in groups {
        merged.reasons.extend(group.merged(facts.asked, &mut merged.news, now));
    }
    merged
}

/// What is known and told of one event.
struct Group<'a> {
    known: Option<&'a MaintenanceReason>,
    /// Most trustworthy first.
    sightings: Vec<&'a Sighting>,
}

impl Group<'_> {
    fn is_about(&self, sighting: &Sighting) -> bool {
        let by_known = self.known.is_some_and(|known| {
            let is_notice = known.sources.iter().all(|source| source == Source::Queue.as_str());
            known.id == sighting.id
                || (is_notice || sighting.source == Source::Queue)
                    && known.code == sighting.code
                    && known.state == MaintenanceReasonState::Active
                    && are_close(known.not_before.as_ref().map(|time| time.0), sighting.not_before)
        });
        let by_sighting = |other: &&Sighting| {
            other.id == sighting.id
                || (other.source == Source::Queue) != (sighting.source == Source::Queue)
                    && other.code == sighting.code
                    && are_close(other.not_before, sighting.not_before)
        };
        by_known || self.sightings.iter().any(by_sighting)
    }

    fn merged(
        self,
        asked: &[Source],
        news: &mut Vec<String>,
        now: Timestamp,
    ) -> Option<MaintenanceReason> {
        match (self.known, self.sightings.first()) {
            (None, None) => None,
            // It is over, and nobody knew of it before: no reason for anything.
            (None, Some(best)) if best.state != EventState::Active => None,
            (known, Some(best)) => Some(self.told(known, best, news, now)),
            (Some(known), None) => Some(missing(known, asked, news, now)),
        }
    }

    fn told(
        &self,
        known: Option<&MaintenanceReason>,
        best: &Sighting,
        news: &mut Vec<String>,
        now: Timestamp,
    ) -> MaintenanceReason {
        let time = |field: fn(&Sighting) -> Option<Timestamp>| {
            self.sightings.iter().find_map(|sighting| field(sighting)).map(to_seconds)
        };
        let mut sources: Vec<String> =
            self.sightings.iter().map(|one| one.source.as_str().to_owned()).collect();
        sources.extend(known.iter().flat_map(|known| known.sources.iter().cloned()));
        sources.sort();
        sources.dedup();
        // A notice's id gives way to that of the event itself: only that can be moved.
        let id = match known {
            Some(known) if best.source == Source::Queue => known.id.clone(),
            _ => best.id.clone(),
        };
        let reason = MaintenanceReason {
            action: None,
            code: best.code.clone(),
            description: Some(best.description.clone()).filter(|words| !words.is_empty()),
            id,
            kind: MaintenanceReasonKind::Event,
            missing_since: None,
            not_after: time(|sighting| sighting.not_after),
            not_before: time(|sighting| sighting.not_before),
            not_before_deadline: time(|sighting| sighting.not_before_deadline),
            since: known.map_or_else(|| to_seconds(now), |known| known.since.clone()),
            sources,
            state: match best.state {
                EventState::Active => MaintenanceReasonState::Active,
                EventState::Completed => MaintenanceReasonState::Completed,
                EventState::Cancelled => MaintenanceReasonState::Cancelled,
            },
        };
        if let Some(known) = known {
            news.extend(changes(known, &reason));
        }
        reason
    }
}

/// Nobody tells of it now.
fn missing(
    known: &MaintenanceReason,
    asked: &[Source],
    news: &mut Vec<String>,
    now: Timestamp,
) -> MaintenanceReason {
    let mut reason = known.clone();
    if known.state != MaintenanceReasonState::Active {
        return reason;
    }
    let lists: Vec<Source> = [Source::Api, Source::Metadata]
        .into_iter()
        .filter(|source| known.sources.iter().any(|one| one == source.as_str()))
        .collect();
    if lists.is_empty() {
        let end = known.not_after.as_ref().or(known.not_before.as_ref());
        let expires = end.and_then(|end| end.0.checked_add(NOTICE_EXPIRES).ok());
        if expires.is_some_and(|expires| expires <= now) {
            reason.state = MaintenanceReasonState::Vanished;
            news.push(format!("{} is past, and nothing is heard of it", title(known)));
        }
        return reason;
    }
    if !lists.iter().all(|source| asked.contains(source)) {
        return reason;
    }
    let since = known.missing_since.clone().unwrap_or_else(|| to_seconds(now));
    if since.0.checked_add(VANISHED_AFTER).is_ok_and(|end| end <= now) {
        reason.state = MaintenanceReasonState::Vanished;
        news.push(format!("{} is not shown by the provider any more", title(known)));
    }
    reason.missing_since = Some(since);
    reason
}

/// What changed about a known event, in sentences.
fn changes(known: &MaintenanceReason, reason: &MaintenanceReason) -> Vec<String> {
    let mut news = Vec::new();
    if known.state != reason.state {
        news.push(match reason.state {
            MaintenanceReasonState::Active => format!("{} is back", title(reason)),
            MaintenanceReasonState::Completed => {
                format!("{} is completed, says the provider", title(reason))
            }
            MaintenanceReasonState::Cancelled => {
                format!("{} is cancelled, says the provider", title(reason))
            }
            MaintenanceReasonState::Vanished => {
                format!("{} is not shown by the provider any more", title(reason))
            }
        });
    }
    if known.not_before != reason.not_before {
        let when = |reason: &MaintenanceReason| {
            reason
                .not_before
                .as_ref()
                .map_or_else(|| "no time".to_owned(), |time| time.0.to_string())
        };
        news.push(format!(
            "the provider moved {} from {} to {}",
            title(reason),
            when(known),
            when(reason)
        ));
    }
    news
}

fn are_close(left: Option<Timestamp>, right: Option<Timestamp>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => left.duration_since(right).abs() <= SAME_EVENT,
        (None, _) | (_, None) => true,
    }
}
