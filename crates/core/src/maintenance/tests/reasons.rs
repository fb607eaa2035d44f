//! Do the provider's events from several sources, drift, requests and templates become one need?

use machinist_api::{
    Machine, MachineMaintenance, MaintenanceAction, MaintenanceReasonKind, MaintenanceReasonState,
    maintenance_policy::Approval,
};

use super::*;
use crate::{
    cloud::{InstanceId, ScheduledEvent},
    maintenance::{
        event::{Code, EventState, HealthNotice, Sighting, Source},
        reason::{Facts, Merged, Request, merge},
    },
};

fn scheduled(id: &str, code: &str, description: &str, in_hours: i64) -> ScheduledEvent {
    ScheduledEvent {
        id: id.to_owned(),
        instance: InstanceId("i-1".to_owned()),
        code: code.to_owned(),
        description: description.to_owned(),
        not_before: Some(after(hours(in_hours))),
        not_after: None,
        not_before_deadline: Some(after(hours(in_hours + 72))),
    }
}

fn listed(id: &str, code: &str, description: &str, in_hours: i64) -> Sighting {
    Sighting::listed(&scheduled(id, code, description, in_hours))
}

fn noticed(type_code: &str, status: &str, in_hours: i64) -> Sighting {
    Sighting::noticed(&HealthNotice {
        arn: "arn:aws:health:event/1",
        type_code,
        status,
        description: "",
        start: Some(after(hours(in_hours))),
        end: None,
        instance: InstanceId("i-1".to_owned()),
    })
}

fn merged_at(
    known: &[MaintenanceReason],
    sightings: &[Sighting],
    asked: &[Source],
    now: Timestamp,
) -> Merged {
    let facts = Facts {
        known,
        sightings,
        asked,
        requests: Vec::new(),
        impaired: None,
        differences: &[],
        is_done: false,
    };
    merge(&facts, &Policy::default(), now)
}

fn told(merged: &Merged) -> Vec<(&str, MaintenanceReasonState)> {
    merged.reasons.iter().map(|reason| (reason.id.as_str(), reason.state)).collect()
}

const ASKED: [Source; 2] = [Source::Api, Source::Metadata];

#[test]
fn state_is_read_from_the_words_before_the_description() {
    for (description, state, rest) in [
        ("[Completed] The instance", EventState::Completed, "The instance"),
        ("[completed]The instance", EventState::Completed, "The instance"),
        (" [CANCELED] x", EventState::Cancelled, "x"),
        ("[Cancelled] x", EventState::Cancelled, "x"),
        (
            "The instance was [Completed] before",
            EventState::Active,
            "The instance was [Completed] before",
        ),
        ("[Comp", EventState::Active, "[Comp"),
        ("", EventState::Active, ""),
        ("[Ünïcödë…] x", EventState::Active, "[Ünïcödë…] x"),
    ] {
        let sighting = listed("e", "instance-stop", description, 1);
        assert_eq!((sighting.state, sighting.description.as_str()), (state, rest), "{description}");
    }
    let metadata =
        |state| Sighting::in_metadata(&scheduled("e", "instance-stop", "x", 1), state).state;
    assert_eq!(metadata("active"), EventState::Active);
    assert_eq!(metadata("completed"), EventState::Completed);
    assert_eq!(metadata("canceled"), EventState::Cancelled);
}

#[test]
fn codes_of_notices_are_understood_and_unknown_ones_kept() {
    for (code, expected) in [
        ("AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED", Some(Code::InstanceRetirement)),
        ("AWS_EC2_INSTANCE_RETIREMENT_EXPEDITED", Some(Code::InstanceRetirement)),
        ("AWS_EC2_INSTANCE_STOP_SCHEDULED", Some(Code::InstanceStop)),
        ("AWS_EC2_INSTANCE_TERMINATION_SCHEDULED", Some(Code::InstanceRetirement)),
        ("AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED", Some(Code::SystemReboot)),
        ("AWS_EC2_INSTANCE_REBOOT_FLEXIBLE_MAINTENANCE_SCHEDULED", Some(Code::InstanceReboot)),
        ("AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED", Some(Code::SystemMaintenance)),
        ("AWS_EC2_PERSISTENT_INSTANCE_POWER_MAINTENANCE_SCHEDULED", Some(Code::SystemMaintenance)),
        ("AWS_EC2_SOMETHING_NEW", None),
    ] {
        let sighting = noticed(code, "upcoming", 1);
        assert_eq!(Code::of(&sighting.code), expected, "{code}");
        assert_eq!(sighting.state, EventState::Active);
    }
    assert_eq!(
        noticed("AWS_EC2_INSTANCE_STOP_SCHEDULED", "closed", 1).state,
        EventState::Completed
    );
}

#[test]
fn one_event_told_by_three_sources_is_one_reason() {
    let event = scheduled("instance-event-1", "instance-stop", "degraded", 48);
    let sightings = [
        noticed("AWS_EC2_INSTANCE_STOP_SCHEDULED", "upcoming", 48),
        Sighting::in_metadata(&event, "active"),
        Sighting::listed(&event),
    ];
    let merged = merged_at(&[], &sightings, &ASKED, now());
    assert_eq!(told(&merged), [("instance-event-1", MaintenanceReasonState::Active)]);
    assert_eq!(merged.reasons[0].sources, ["API", "Metadata", "Queue"]);
    assert_eq!(merged.news, ["event instance-stop (instance-event-1) was noticed"]);
    let again = merged_at(&merged.reasons, &sightings, &ASKED, after(minutes(1)));
    assert_eq!(
        again,
        Merged { reasons: merged.reasons, news: Vec::new() },
        "nothing is told twice"
    );
}

#[test]
fn notice_that_comes_first_becomes_the_event_when_that_is_listed() {
    let notice = [noticed("AWS_EC2_INSTANCE_STOP_SCHEDULED", "upcoming", 48)];
    let first = merged_at(&[], &notice, &ASKED, now());
    assert_eq!(told(&first), [("arn:aws:health:event/1", MaintenanceReasonState::Active)]);
    let unheard = merged_at(&first.reasons, &[], &ASKED, after(hours(3)));
    assert_eq!(told(&unheard), told(&first), "the absence of a notice says nothing");
    let both = [notice[0].clone(), listed("instance-event-1", "instance-stop", "x", 48)];
    let second = merged_at(&first.reasons, &both, &ASKED, after(minutes(5)));
    assert_eq!(told(&second), [("instance-event-1", MaintenanceReasonState::Active)]);
    assert_eq!(second.reasons[0].since, first.reasons[0].since);
    let expired = merged_at(&first.reasons, &[], &ASKED, after(hours(48 + 25)));
    assert_eq!(expired.reasons[0].state, MaintenanceReasonState::Vanished);
}

#[test]
fn two_events_of_one_machine_stay_two() {
    let sightings = [
        listed("e1", "instance-reboot", "x", 48),
        listed("e2", "instance-reboot", "x", 48),
        listed("e3", "instance-stop", "x", 48),
    ];
    assert_eq!(merged_at(&[], &sightings, &ASKED, now()).reasons.len(), 3);
}

#[test]
fn finished_event_that_nobody_knew_is_no_reason() {
    for words in ["[Completed] x", "[Canceled] x"] {
        let merged = merged_at(&[], &[listed("e", "instance-stop", words, 48)], &ASKED, now());
        assert_eq!(merged, Merged::default());
    }
}

#[test]
fn completion_cancellation_and_moves_are_told() {
    let first = merged_at(&[], &[listed("e", "instance-stop", "x", 48)], &ASKED, now());
    for (sighting, state, news) in [
        (
            listed("e", "instance-stop", "[Completed] x", 48),
            MaintenanceReasonState::Completed,
            "event instance-stop (e) is completed, says the provider",
        ),
        (
            listed("e", "instance-stop", "[Canceled] x", 48),
            MaintenanceReasonState::Cancelled,
            "event instance-stop (e) is cancelled, says the provider",
        ),
        (
            listed("e", "instance-stop", "x", 72),
            MaintenanceReasonState::Active,
            "the provider moved event instance-stop (e) from 2026-11-04T10:00:00Z to \
             2026-11-05T10:00:00Z",
        ),
    ] {
        let next = merged_at(&first.reasons, &[sighting], &ASKED, after(minutes(5)));
        assert_eq!(told(&next), [("e", state)]);
        assert_eq!(next.news, [news]);
    }
}

#[test]
fn event_vanishes_only_when_those_who_showed_it_do_not_for_a_while() {
    let first = merged_at(&[], &[listed("e", "instance-stop", "x", 48)], &ASKED, now());
    let unasked = merged_at(&first.reasons, &[], &[], after(hours(9)));
    assert_eq!(unasked, Merged { reasons: first.reasons.clone(), news: Vec::new() });

    let missing = merged_at(&first.reasons, &[], &ASKED, after(minutes(1)));
    assert_eq!(told(&missing), [("e", MaintenanceReasonState::Active)]);
    let need = Need::of(&missing.reasons, &Policy::default()).unwrap();
    assert!(need.is_doubtful, "nothing is begun for an event that is not shown");
    let still = merged_at(&missing.reasons, &[], &ASKED, after(minutes(5)));
    assert_eq!(told(&still), [("e", MaintenanceReasonState::Active)]);
    let gone = merged_at(&still.reasons, &[], &ASKED, after(minutes(6)));
    assert_eq!(told(&gone), [("e", MaintenanceReasonState::Vanished)]);
    assert_eq!(gone.news, ["event instance-stop (e) is not shown by the provider any more"]);

    let back = [listed("e", "instance-stop", "x", 48)];
    let shown = merged_at(&missing.reasons, &back, &ASKED, after(minutes(2)));
    assert_eq!(shown.reasons[0].missing_since, None);
    let back = merged_at(&gone.reasons, &back, &ASKED, after(minutes(9)));
    assert_eq!(back.news, ["event instance-stop (e) is back"]);
}

fn object(changes: Value) -> MachineMaintenance {
    let mut object = json!({
        "metadata": { "name": "mm-a" },
        "spec": { "machinelink": "a", "maintenancescheduled": false },
    });
    patch(&mut object, &changes);
    serde_json::from_value(object).unwrap()
}

#[test]
fn person_asks_by_an_object() {
    let asked = Request::of_object(&object(json!({ "spec": {
        "action": "Reboot", "reason": "kernel", "notbefore": "2026-11-03T00:00:00Z",
        "deadline": "2026-11-09T00:00:00Z" } })))
    .unwrap();
    assert_eq!(asked.id, "request/object");
    assert_eq!(asked.action, Some(MaintenanceAction::Reboot));
    assert_eq!(asked.not_before, Some(at("2026-11-03T00:00:00Z")));
    assert_eq!(asked.deadline, Some(at("2026-11-09T00:00:00Z")));

    let ours =
        json!({ "metadata": { "annotations": { "machinist.dev/created-for-event": "true" } } });
    let old = json!({ "spec": { "maintenancescheduled": true } });
    let leaving = json!({ "metadata": { "deletionTimestamp": "2026-11-01T00:00:00Z" } });
    let done = json!({ "spec": { "maintenancescheduled": true },
        "status": { "phase": "Succeeded", "work": { "action": "Reboot" } } });
    let called_off = json!({ "status": { "phase": "Cancelled" } });
    for changes in [ours, old, leaving, done, called_off] {
        assert_eq!(Request::of_object(&object(changes.clone())), None, "{changes}");
    }
    let failed = json!({ "spec": { "maintenancescheduled": true },
        "status": { "phase": "Failed", "work": { "action": "Reboot" } } });
    let again = json!({ "status": { "phase": "Succeeded", "work": { "action": "Reboot" } } });
    for changes in [failed, again] {
        assert!(Request::of_object(&object(changes.clone())).is_some(), "{changes}");
    }
}

/// The original's README: an object with an event that may or may not exist.
#[test]
fn object_of_an_old_script_asks_for_its_event() {
    let script = object(json!({ "spec": {
        "eventcode": "instance-stop", "eventid": "e", "machineid": "i-1" } }));
    let requests: Vec<Request> = Request::of_object(&script).into_iter().collect();
    let with = |sightings: &[Sighting]| {
        let facts = Facts {
            known: &[],
            sightings,
            asked: &ASKED,
            requests: requests.clone(),
            impaired: None,
            differences: &[],
            is_done: false,
        };
        merge(&facts, &Policy::default(), now())
    };
    let unknown = with(&[]);
    assert_eq!(unknown.reasons[0].kind, MaintenanceReasonKind::Request);
    assert_eq!(unknown.reasons[0].code, "instance-stop");
    let known = with(&[listed("e", "instance-stop", "x", 48)]);
    assert_eq!(known.reasons.len(), 1);
    assert_eq!(known.reasons[0].kind, MaintenanceReasonKind::Event);
    assert_eq!(with(&[listed("e", "instance-stop", "[Completed] x", 48)]), Merged::default());
}

#[test]
fn person_asks_by_an_annotation() {
    let machine = |value: &str| -> Machine {
        let annotations = json!({ "machinist.dev/maintenance-requested": value });
        serde_json::from_value(json!({ "metadata": { "annotations": annotations }, "spec": {} }))
            .unwrap()
    };
    for (value, action, why) in [
        ("", None, None),
        ("true", None, None),
        ("Replace", Some(MaintenanceAction::Replace), None),
        ("Reboot: new kernel: 6.1", Some(MaintenanceAction::Reboot), Some("new kernel: 6.1")),
    ] {
        let request = Request::of_machine(&machine(value)).unwrap().unwrap();
        assert_eq!((request.action, request.why.as_deref()), (action, why), "{value}");
    }
    let error = Request::of_machine(&machine("Explode")).unwrap_err();
    assert!(error.contains("maintenance-requested") && error.contains("Explode"), "{error}");
    assert_eq!(Request::of_machine(&Machine::default()), Ok(None));
}

#[test]
fn drift_and_templates_are_reasons_only_where_policy_says_so() {
    let differences = ["providerSpec.ami.id".to_owned()];
    let facts = |failing: i64| Facts {
        known: &[],
        sightings: &[],
        asked: &ASKED,
        requests: Vec::new(),
        impaired: Some((after(-minutes(failing)), "system".to_owned())),
        differences: &differences,
        is_done: false,
    };
    assert_eq!(merge(&facts(60), &Policy::default(), now()), Merged::default());
    let policy = read_policy(json!({
        "drift": { "onImpaired": "StopStart", "impairedGracePeriod": "10m" },
        "outdated": "Replace",
    }));
    let codes = |failing| -> Vec<String> {
        let merged = merge(&facts(failing), &policy, now());
        merged.reasons.into_iter().map(|reason| reason.code).collect()
    };
    assert_eq!(codes(9), ["Outdated"]);
    assert_eq!(codes(10), ["Impaired", "Outdated"]);
    let recorded = merge(&facts(10), &policy, now()).reasons;
    let nothing = Facts { known: &recorded, impaired: None, differences: &[], ..facts(0) };
    let over = merge(&nothing, &policy, now());
    assert!(Need::of(&over.reasons, &policy).is_none());
    assert_eq!(over.news.len(), 2);
}

#[test]
fn reasons_become_one_need_with_the_earliest_deadline() {
    let mut wish = request("request/object");
    wish.not_before = Some(machinist_api::condition::to_seconds(after(hours(10))));
    let mut stop = event("instance-stop", "e1", Some(after(hours(48))));
    stop.not_before_deadline = Some(machinist_api::condition::to_seconds(after(hours(90))));
    let retire = event("instance-retirement", "e2", Some(after(hours(72))));
    let need = Need::of(&[wish.clone(), stop, retire.clone()], &Policy::default()).unwrap();
    assert_eq!(need.codes(), ["instance-retirement", "instance-stop", "Requested"]);
    assert_eq!(need.deadline, Some(after(hours(48))));
    assert_eq!(need.movable.as_ref().unwrap().event_id, "e1");
    assert_eq!(need.earliest, None, "the events allow work now");
    let only = Need::of(&[wish], &Policy::default()).unwrap();
    assert_eq!(only.earliest, Some(after(hours(10))));

    let policy = read_policy(json!({ "events": [{
        "code": "instance-retirement", "action": "Replace", "leadTime": "24h", "approval": "Manual" }] }));
    let led = Need::of(&[retire], &policy).unwrap();
    assert_eq!(led.earliest, Some(after(hours(48))));
    assert_eq!(led.approval, Approval::Manual);
}

#[test]
fn record_of_reasons_is_bounded_and_keeps_what_holds() {
    let sightings: Vec<Sighting> = (0..40)
        .map(|number| {
            let words = if number < 25 { "x" } else { "[Completed] x" };
            listed(&format!("e{number:02}"), "instance-stop", words, 48)
        })
        .collect();
    let merged = merged_at(&[], &sightings, &ASKED, now());
    assert_eq!(merged.reasons.len(), 20);
    assert!(merged.reasons.iter().all(|reason| reason.state == MaintenanceReasonState::Active));
}
