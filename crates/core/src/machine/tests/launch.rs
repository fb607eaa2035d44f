//! Whether, when and with which token something is launched.

use super::*;

#[test]
fn finalizer_comes_before_everything() {
    let decision = decided(&machine(json!({"metadata": {"finalizers": null}})), vec![]);
    assert_eq!(names(&decision), ["AddFinalizer"]);
}

#[test]
fn intent_is_stored_before_the_launch() {
    let decision = decided(&machine(json!({})), vec![]);
    assert_eq!(names(&decision), ["StoreIntent", "Launch"]);
    let Action::StoreIntent(status) = &decision.actions[0] else { panic!() };
    assert_eq!(status.phase.as_deref(), Some("Provisioning"));
    let stored: Value = status.provider_status.as_ref().unwrap().parse().unwrap();
    assert_eq!(stored["launch"]["clientToken"], "uid-1-1");
    let Action::Launch { client_token } = &decision.actions[1] else { panic!() };
    assert_eq!(client_token, "uid-1-1");
}

#[test]
fn a_stored_intent_is_repeated_with_the_same_token() {
    let overrides = json!({"status": {"providerStatus": {"launch": intent(1, seconds_ago(5))}}});
    let decision = decided(&machine(overrides), vec![]);
    assert_eq!(names(&decision), ["Launch"]);
}

#[test]
fn a_launch_whose_answer_was_lost_is_found_by_its_uid() {
    let overrides = json!({"status": {"providerStatus": {"launch": intent(1, seconds_ago(5))}}});
    let decision = decided(&machine(overrides), vec![instance(InstanceState::Running)]);
    assert!(!names(&decision).contains(&"Launch"));
    let status: Value = decision.status.provider_status.unwrap().parse().unwrap();
    assert_eq!(status["instanceId"], "i-1");
}

#[test]
fn nothing_is_launched_while_the_cloud_is_unknown_or_the_owner_goes() {
    let machine = machine(json!({}));
    for cloud in [CloudKnowledge::Loading, CloudKnowledge::Unknown(failure(ErrorClass::Throttled))]
    {
        let decision = decide(&observed(&machine, cloud), &Policy::default(), now());
        assert!(decision.actions.is_empty());
        assert!(!decision.waiting.is_empty(), "every wait says why");
    }
    let mut orphan = observed(&machine, CloudKnowledge::Known(vec![]));
    orphan.owner_is_deleting = true;
    assert!(decide(&orphan, &Policy::default(), now()).actions.is_empty());
    assert!(!wants_launch(&orphan, &Policy::default(), now()));
}

#[test]
fn a_refused_check_says_why_and_stores_no_intent() {
    let machine = machine(json!({}));
    let mut observed = observed(&machine, CloudKnowledge::Known(vec![]));
    observed.launch_check = Some(Err(CloudFailure {
        class: ErrorClass::InvalidConfiguration,
        message: "providerSpec.subnet: no such subnet".into(),
    }));
    let decision = decide(&observed, &Policy::default(), now());
    assert!(decision.actions.is_empty());
    assert_eq!(decision.status.phase.as_deref(), Some("Failed"));
    assert_eq!(decision.status.error_reason.as_deref(), Some("InvalidConfiguration"));
    assert!(decision.announcements[0].message.contains("providerSpec.subnet"));
    assert!(decision.status.provider_status.unwrap().as_json().contains("refusedGeneration"));
}

#[test]
fn only_invalid_configuration_is_terminal() {
    let machine = machine(json!({"status": {"providerStatus": {"launch": intent(1, now())}}}));
    for class in [
        ErrorClass::Transient,
        ErrorClass::Throttled,
        ErrorClass::NotFound,
        ErrorClass::QuotaExceeded,
        ErrorClass::InsufficientCapacity,
        ErrorClass::Unauthorized,
        ErrorClass::Unknown,
    ] {
        let after = outcome::launch_failed(&machine, &failure(class), true, now());
        assert_eq!(after.status.phase.as_deref(), Some("Provisioning"), "{class:?}");
        assert_eq!(after.status.error_message, None, "{class:?}");
    }
    let invalid = failure(ErrorClass::InvalidConfiguration);
    let after = outcome::launch_failed(&machine, &invalid, true, now());
    assert_eq!(after.status.phase.as_deref(), Some("Failed"));
}

#[test]
fn a_refusal_gets_a_new_token_after_a_pause() {
    let mut machine = machine(json!({"status": {"providerStatus": {"launch": intent(1, now())}}}));
    let quota = failure(ErrorClass::QuotaExceeded);
    let refused = outcome::launch_failed(&machine, &quota, true, now());
    machine.status = Some(refused.status);
    let held = decided(&machine, vec![]);
    assert!(held.actions.is_empty());
    assert!(held.waiting[0].message.contains("the cloud's words"), "{:?}", held.waiting);
    let later = held.recheck.expect("a time to try again");
    let known = observed(&machine, CloudKnowledge::Known(vec![]));
    let next = decide(&known, &Policy::default(), later);
    assert_eq!(names(&next), ["StoreIntent", "Launch"]);
    assert_eq!(next.actions[1], Action::Launch { client_token: "uid-1-2".into() });
}

#[test]
fn a_token_whose_first_answer_was_lost_is_never_given_up() {
    let mut machine = machine(json!({"status": {"providerStatus": {"launch": intent(1, now())}}}));
    // The first call had an effect and its answer was lost; the second is refused for good.
    for (class, only_call) in [(ErrorClass::Transient, true), (ErrorClass::Unauthorized, false)] {
        let after = outcome::launch_failed(&machine, &failure(class), only_call, now());
        machine.status = Some(after.status);
        let decision = decided(&machine, vec![]);
        assert_eq!(decision.actions, [Action::Launch { client_token: "uid-1-1".into() }]);
    }
}

#[test]
fn a_failed_machine_is_left_alone_until_its_spec_changes() {
    let failed = json!({
        "status": {
            "phase": "Failed", "errorReason": "InvalidConfiguration", "errorMessage": "bad",
            "providerStatus": {"refusedGeneration": 1},
        },
    });
    // All that is left to do is to say that nothing is known of an instance.
    let told = decided(&machine(failed.clone()), vec![]);
    let [Action::ChangeMetadata(change)] = told.actions.as_slice() else { panic!("{told:?}") };
    assert_eq!(change.annotations["machine.openshift.io/instance-state"], "Unknown");
    let mut telling = failed.clone();
    let state = json!({"machine.openshift.io/instance-state": "Unknown"});
    merge(&mut telling, json!({"metadata": {"annotations": state}}));
    assert!(decided(&machine(telling), vec![]).actions.is_empty());
    let mut corrected = failed;
    merge(&mut corrected, json!({"metadata": {"generation": 2}}));
    let decision = decided(&machine(corrected), vec![]);
    assert_eq!(names(&decision), ["StoreIntent", "Launch"]);
    assert_eq!(decision.status.error_message, None);
    assert_eq!(decision.status.phase.as_deref(), Some("Provisioning"));
}
