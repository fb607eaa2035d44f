//! What do the verbs promise that change an instance?

use std::collections::BTreeMap;

use machinist_providers::{ErrorClass, InstanceId, InstanceState};

use crate::harness::{Capability, Harness};

pub async fn terminate_can_be_repeated(harness: &Harness) {
    let request = harness.request();
    let id = harness.launch(&request).await.id;
    assert_ending(harness.provider.terminate(&id).await.unwrap());
    assert_ending(harness.provider.terminate(&id).await.unwrap());
    let gone = harness.wait_for(&id, InstanceState::Terminated).await;
    assert_eq!(gone.machine_uid(), Some(request.machine_uid.as_str()));
    assert_eq!(gone.state_reason.code, "Client.UserInitiatedShutdown", "{gone:?}");
    assert!(!gone.state_reason.message.is_empty(), "{gone:?}");
    assert!(gone.state_reason.since.is_some(), "{gone:?}");
    assert_ending(harness.provider.terminate(&id).await.unwrap());
    let listed = harness.provider.list(&request.cluster_id).await.unwrap();
    assert_eq!(listed.len(), 1, "a terminated instance stays visible for a while");
}

fn assert_ending(state: InstanceState) {
    assert!(matches!(state, InstanceState::ShuttingDown | InstanceState::Terminated), "{state:?}");
}

pub async fn stop_start_and_reboot_can_be_repeated(harness: &Harness) {
    let id = harness.launch(&harness.request()).await.id;
    harness.wait_for(&id, InstanceState::Running).await;
    assert_starting(harness.provider.start(&id).await.unwrap());
    harness.wait_for(&id, InstanceState::Running).await;
    harness.provider.reboot(&id).await.unwrap();
    harness.wait_for(&id, InstanceState::Running).await;
    assert_stopping(harness.provider.stop(&id).await.unwrap());
    harness.wait_for(&id, InstanceState::Stopped).await;
    assert_stopping(harness.provider.stop(&id).await.unwrap());
    harness.wait_for(&id, InstanceState::Stopped).await;
    assert_starting(harness.provider.start(&id).await.unwrap());
    harness.wait_for(&id, InstanceState::Running).await;
}

fn assert_starting(state: InstanceState) {
    assert!(matches!(state, InstanceState::Pending | InstanceState::Running), "{state:?}");
}

fn assert_stopping(state: InstanceState) {
    assert!(matches!(state, InstanceState::Stopping | InstanceState::Stopped), "{state:?}");
}

pub async fn tags_are_added_and_others_left_alone(harness: &Harness) {
    let request = harness.request();
    let id = harness.launch(&request).await.id;
    let added = BTreeMap::from([
        ("team".to_owned(), "red".to_owned()),
        ("new".to_owned(), "tag".to_owned()),
    ]);
    for _ in 0..2 {
        harness.provider.tag(&id, &added).await.unwrap();
    }
    let tagged = harness.provider.describe(std::slice::from_ref(&id)).await.unwrap().remove(0);
    assert_eq!(tagged.tags["team"], "red");
    assert_eq!(tagged.tags["new"], "tag");
    assert_eq!(tagged.machine_uid(), Some(request.machine_uid.as_str()));
    let calls = harness.calls.total();
    harness.provider.tag(&id, &BTreeMap::new()).await.unwrap();
    assert_eq!(harness.calls.total(), calls);
}

pub async fn unknown_id_is_not_found(harness: &Harness) {
    let id = InstanceId("i-0123456789abcdef0".to_owned());
    let tags = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let mut errors = vec![
        harness.provider.terminate(&id).await.unwrap_err(),
        harness.provider.start(&id).await.unwrap_err(),
        harness.provider.stop(&id).await.unwrap_err(),
        harness.provider.reboot(&id).await.unwrap_err(),
    ];
    if harness.can(Capability::TagsOnlyWhatExists) {
        errors.push(harness.provider.tag(&id, &tags).await.unwrap_err());
    }
    for error in errors {
        assert_eq!(error.class, ErrorClass::NotFound, "{error}");
        assert!(error.message.contains(&id.0), "{error}");
    }
}
