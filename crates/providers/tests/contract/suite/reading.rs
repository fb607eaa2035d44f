//! What do list, describe, find and catalog promise?

use std::{collections::BTreeSet, sync::Arc};

use machinist_providers::{ErrorClass, InstanceId, LaunchRequest};

use crate::harness::{Capability, Harness, token};

/// Machines of one cluster, more than two pages of five.
async fn launch_a_dozen(harness: &Harness) -> (String, BTreeSet<InstanceId>) {
    let cluster_id = harness.request().cluster_id;
    let mut ids = BTreeSet::new();
    for _ in 0..12 {
        let request = LaunchRequest { cluster_id: cluster_id.clone(), ..harness.request() };
        ids.insert(harness.launch(&request).await.id);
    }
    assert_eq!(ids.len(), 12);
    (cluster_id, ids)
}

pub async fn list_has_every_page_sorted_and_only_the_cluster(harness: &Harness) {
    let (cluster_id, ids) = launch_a_dozen(harness).await;
    let stranger = harness.launch(&harness.request()).await;
    let calls = harness.calls.count("DescribeInstances");
    let listed = harness.provider.list(&cluster_id).await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(|instance| instance.id).collect();
    assert_eq!(listed, ids.iter().cloned().collect::<Vec<_>>());
    assert!(!listed.contains(&stranger.id));
    assert_eq!(harness.calls.count("DescribeInstances") - calls, 3);
    assert_eq!(harness.provider.list("no-such-cluster").await.unwrap(), []);
}

pub async fn list_is_all_or_nothing(harness: &Harness) {
    if !harness.can(Capability::Faults) {
        return;
    }
    let (cluster_id, ids) = launch_a_dozen(harness).await;
    let levers = Arc::clone(harness.levers());
    let refuse = move || levers.refuse("DescribeInstances", "InternalError");
    harness.calls.after_success("DescribeInstances", refuse);
    let error = harness.provider.list(&cluster_id).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient, "{error}");
    harness.levers().clear();
    assert_eq!(harness.provider.list(&cluster_id).await.unwrap().len(), ids.len());
}

pub async fn unknown_id_does_not_hide_others(harness: &Harness) {
    let first = harness.launch(&harness.request()).await.id;
    let second = harness.launch(&harness.request()).await.id;
    let mut expected = [first.clone(), second.clone()];
    expected.sort();
    // More than one filter's worth of ids that nobody has, and one that nobody could have.
    let mut ids: Vec<_> = (0..450).map(|number| InstanceId(format!("i-{number:017x}"))).collect();
    ids.push(InstanceId("nonsense".to_owned()));
    ids.insert(100, second.clone());
    ids.insert(400, first.clone());
    ids.push(first.clone());
    let found = harness.provider.describe(&ids).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|instance| instance.id).collect();
    assert_eq!(found, expected);
    let calls = harness.calls.total();
    assert_eq!(harness.provider.describe(&[]).await.unwrap(), []);
    assert_eq!(harness.calls.total(), calls);
}

pub async fn instances_are_found_by_uid_and_by_token(harness: &Harness) {
    let request = harness.request();
    let other = harness.launch(&harness.request()).await;
    assert_eq!(harness.provider.find(&request.machine_uid, &[]).await.unwrap(), []);
    let launched = harness.launch(&request).await;
    let found = harness.provider.find(&request.machine_uid, &[]).await.unwrap();
    assert_eq!(found.iter().map(|found| &found.id).collect::<Vec<_>>(), [&launched.id]);
    if !harness.can(Capability::ClientTokens) {
        return;
    }
    let tokens = ["unused".to_owned(), token(&request)];
    let found = harness.provider.find("no-such-uid", &tokens).await.unwrap();
    assert_eq!(found.iter().map(|found| &found.id).collect::<Vec<_>>(), [&launched.id]);
    let found = harness.provider.find(&request.machine_uid, &tokens).await.unwrap();
    assert_eq!(found.len(), 1, "one instance found by both is one instance");
    assert_ne!(found[0].id, other.id);
}

pub async fn addresses_are_looked_up_once_for_all(harness: &Harness) {
    let (cluster_id, _) = launch_a_dozen(harness).await;
    for _ in 0..3 {
        harness.provider.list(&cluster_id).await.unwrap();
    }
    assert_eq!(harness.calls.count("DescribeVpcs"), 1);
    assert!(harness.calls.count("DescribeDhcpOptions") <= 1);
}

pub async fn catalog_is_sorted_and_has_sizes(harness: &Harness) {
    let sizes = harness.provider.catalog().await.unwrap();
    let names: Vec<_> = sizes.iter().map(|size| &size.name).collect();
    assert!(names.is_sorted());
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    let used = harness.provider_spec["instanceType"].as_str().unwrap();
    let size = sizes.iter().find(|size| size.name == used).unwrap();
    assert_eq!((size.vcpus, size.memory_mib, size.gpus), (2, 8_192, 0));
    assert_eq!(size.architecture, "amd64");
}
