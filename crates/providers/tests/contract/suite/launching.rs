//! What does a launch promise?

use machinist_providers::{ErrorClass, InstanceState, LaunchRequest, UserData};
use serde_json::json;

use crate::harness::{Capability, Harness, token};

pub async fn instance_is_tagged_from_its_first_moment(harness: &Harness) {
    let request = harness.request();
    let launched = harness.launch(&request).await;
    assert!(
        matches!(launched.state, InstanceState::Pending | InstanceState::Running),
        "{launched:?}"
    );
    let described =
        harness.provider.describe(std::slice::from_ref(&launched.id)).await.unwrap().remove(0);
    for instance in [&launched, &described] {
        assert_eq!(instance.machine_uid(), Some(request.machine_uid.as_str()));
        assert!(instance.is_owned_by_cluster(&request.cluster_id), "{instance:?}");
        let tag = |key: &str| instance.tags.get(key).map(String::as_str);
        assert_eq!(tag("Name"), Some(request.machine_name.as_str()));
        assert_eq!(tag("team"), Some("blue"));
        assert_eq!(tag("from-cluster"), Some("yes"));
        assert_eq!(instance.provider_id, format!("aws:///{}/{}", instance.zone, instance.id));
        assert!(instance.zone.starts_with(&instance.region), "{instance:?}");
        assert_eq!(instance.instance_type, harness.provider_spec["instanceType"]);
        assert_eq!(instance.client_token.as_deref(), Some(token(&request).as_str()));
        assert!(!instance.interruptible);
        assert!(instance.launched_at.is_some());
    }
    let has = |type_: &str| described.addresses.iter().any(|address| address.type_ == type_);
    assert!(has("InternalIP") && has("InternalDNS") && has("Hostname"), "{described:?}");
}

pub async fn identity_tags_cannot_be_overridden(harness: &Harness) {
    let mut request = harness.request_with(&json!({"tags": [
        {"name": "Name", "value": "evil"},
        {"name": "machinist.dev/machine-uid", "value": "evil"},
        {"name": "kubernetes.io/cluster/evil", "value": "owned"},
        {"name": "from-cluster", "value": "from-machine"},
    ]}));
    request.cluster_tags.insert("machinist.dev/machine-uid".to_owned(), "evil".to_owned());
    request
        .cluster_tags
        .insert(format!("kubernetes.io/cluster/{}", request.cluster_id), "x".into());
    let instance = harness.launch(&request).await;
    assert_eq!(instance.machine_uid(), Some(request.machine_uid.as_str()));
    assert!(instance.is_owned_by_cluster(&request.cluster_id));
    assert!(!instance.is_owned_by_cluster("evil"));
    assert_eq!(instance.tags["Name"], request.machine_name);
    assert_eq!(instance.tags["from-cluster"], "from-machine");
}

pub async fn same_token_gives_the_same_instance(harness: &Harness) {
    if !harness.can(Capability::ClientTokens) {
        return;
    }
    let request = harness.request();
    let first = harness.launch(&request).await;
    let second = harness.launch(&request).await;
    assert_eq!(first.id, second.id);
    harness.wait_for(&first.id, InstanceState::Running).await;
    assert_eq!(harness.launch(&request).await.id, first.id);
    assert_eq!(harness.provider.list(&request.cluster_id).await.unwrap().len(), 1);
}

pub async fn same_token_with_other_parameters_launches_nothing(harness: &Harness) {
    if !harness.can(Capability::ClientTokens) {
        return;
    }
    let request = harness.request();
    harness.launch(&request).await;
    let other = LaunchRequest { user_data: Some(UserData(b"other".to_vec())), ..request.clone() };
    let prepared = harness.provider.prepare(&other).await.unwrap();
    let error = harness.provider.launch(&prepared, &token(&request)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::TokenMismatch, "{error}");
    assert_eq!(harness.provider.list(&request.cluster_id).await.unwrap().len(), 1);
}

pub async fn launch_whose_answer_was_lost_is_found_and_not_doubled(harness: &Harness) {
    if !harness.can(Capability::Faults) {
        return;
    }
    let request = harness.request();
    let prepared = harness.provider.prepare(&request).await.unwrap();
    harness.levers().lose_answer("RunInstances");
    let error = harness.provider.launch(&prepared, &token(&request)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient, "{error}");
    let tokens = [token(&request)];
    let found = harness.provider.find(&request.machine_uid, &tokens).await.unwrap();
    let [found] = found.as_slice() else { panic!("one instance, not {found:?}") };
    assert_eq!(harness.launch(&request).await.id, found.id);
}
