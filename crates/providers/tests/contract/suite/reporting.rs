//! What do reports promise?

use jiff::Timestamp;
use machinist_providers::{InstanceId, InstanceReport};

use crate::harness::{Capability, Harness};

async fn report_of(harness: &Harness, id: &InstanceId) -> Option<InstanceReport> {
    let reports = harness.provider.reports().await.unwrap();
    let ids: Vec<_> = reports.iter().map(|report| &report.instance).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    reports.into_iter().find(|report| report.instance == *id)
}

/// Also over moto, which answers every filter with every instance.
pub async fn instances_that_are_well_are_not_reported(harness: &Harness) {
    let mut ids = Vec::new();
    for _ in 0..12 {
        ids.push(harness.running(&harness.request()).await.id);
    }
    harness.provider.stop(&ids[0]).await.unwrap();
    assert_eq!(harness.provider.reports().await.unwrap(), []);
}

pub async fn failing_checks_are_reported(harness: &Harness) {
    if !harness.can(Capability::Reports) {
        return;
    }
    for check in ["system", "instance", "attached-ebs"] {
        let id = harness.running(&harness.request()).await.id;
        harness.levers().impair(&id, check);
        let report = report_of(harness, &id).await.unwrap();
        // A broken host fails the check of the instance too.
        assert_eq!(report.impairments[0].check, check, "{report:?}");
        assert!(report.impairments.iter().all(|failing| failing.since.is_some()), "{report:?}");
        assert_eq!(report.events, []);
    }
}

pub async fn events_are_reported_and_moved(harness: &Harness) {
    if !harness.can(Capability::Events) {
        return;
    }
    let time = |text: &str| text.parse::<Timestamp>().unwrap();
    let start = time("2100-01-01T00:00:00Z");
    let deadline = time("2100-02-01T00:00:00Z");
    let id = harness.launch(&harness.request()).await.id;
    assert_eq!(report_of(harness, &id).await, None);

    let event_id = harness.schedule.schedule_retirement(&id, start, deadline);
    let report = report_of(harness, &id).await.unwrap();
    let [event] = report.events.as_slice() else { panic!("one event, not {report:?}") };
    assert_eq!((&event.id, &event.instance), (&event_id, &id));
    assert_eq!(event.code, "instance-retirement");
    assert_eq!(event.description, "degraded hardware");
    assert_eq!((event.not_before, event.not_before_deadline), (Some(start), Some(deadline)));
    assert_eq!(report.impairments, []);

    let later = time("2100-01-15T00:00:00Z");
    harness.provider.move_event(&id, &event_id, later).await.unwrap();
    let report = report_of(harness, &id).await.unwrap();
    assert_eq!(report.events[0].not_before, Some(later));

    let too_late = time("2100-03-01T00:00:00Z");
    let error = harness.provider.move_event(&id, &event_id, too_late).await.unwrap_err();
    assert!(error.message.contains(&event_id), "{error}");
}

/// The events themselves are looked at, on every page, for one call each: a server's filter is not trusted.
pub async fn every_page_is_looked_at_whatever_filters_do(harness: &Harness) {
    if !harness.can(Capability::Reports) {
        return;
    }
    let mut ids = Vec::new();
    for _ in 0..22 {
        ids.push(harness.launch(&harness.request()).await.id);
    }
    let impaired = harness.running(&harness.request()).await.id;
    harness.levers().impair(&impaired, "system");
    let start = "2100-01-01T00:00:00Z".parse().unwrap();
    harness.schedule.schedule_retirement(&ids[3], start, start);
    // Both an event and a failing check, reported once.
    harness.schedule.schedule_retirement(&impaired, start, start);
    let mut expected = [impaired, ids[3].clone()];
    expected.sort();
    let answers = [None, Some(true), Some(false)];
    for (round, with_everything) in answers.into_iter().enumerate() {
        if let Some(with_everything) = with_everything {
            harness.levers().answer_status_filters(with_everything);
        }
        let reports = harness.provider.reports().await.unwrap();
        let found: Vec<_> = reports.iter().map(|report| report.instance.clone()).collect();
        assert_eq!(found, expected, "filters answered with everything: {with_everything:?}");
        let calls = harness.calls.count("DescribeInstanceStatus") as usize;
        assert_eq!(calls, 5 * (round + 1), "one call for each page of five");
    }
}
