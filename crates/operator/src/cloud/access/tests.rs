//! When is a cloud connected to, with what, and what survives?

use std::sync::atomic::Ordering;

use machinist_core::cloud::InstanceState;
use serde_json::json;

use super::*;
use crate::{
    cloud::{
        connection::RECONNECT_PAUSE,
        testing::{ScriptedClouds, forbidden, id, refused},
    },
    testing::{World, machine_in_cloud, put_credentials, read},
};

const OLD: &str = "b2xk";
const NEW: &str = "bmV3";

fn world(clouds: &Arc<ScriptedClouds>) -> World {
    let world = World::with_clouds(Arc::clone(clouds) as Arc<dyn Connect>);
    put_credentials(&world.server, OLD);
    clouds.cloud.put("i-1", "uid-a", InstanceState::Running);
    world
}

fn machine(name: &str, cluster: &str) -> Machine {
    read(machine_in_cloud(name, cluster))
}

fn keys(clouds: &ScriptedClouds) -> Vec<String> {
    clouds.connections.lock().unwrap().iter().map(|(_, key)| key.clone()).collect()
}

fn secret_reads(world: &World) -> usize {
    world.requests("GET").iter().filter(|path| path.contains("/secrets/")).count()
}

async fn first_list(access: &CloudAccess) {
    access.view.fresh_within(Duration::from_secs(3600)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn rotated_credentials_are_noticed_and_nothing_is_learnt_anew() {
    let clouds = Arc::new(ScriptedClouds::default());
    let world = world(&clouds);
    let env = world.context.env.clone();
    let access = world.context.clouds.of(&machine("a", "demo")).await.unwrap();
    first_list(&access).await;
    clouds.cloud.fail_lists(Some(refused()));
    env.sleep(Duration::from_secs(300)).await;
    assert_eq!(keys(&clouds), ["old"], "the same secret is no reason to connect");
    let reads = secret_reads(&world);
    assert!((2..=11).contains(&reads), "read {reads} times in ten pauses");

    put_credentials(&world.server, NEW);
    env.sleep(RECONNECT_PAUSE * 3).await;
    assert_eq!(keys(&clouds), ["old", "new"]);
    assert!(access.view.snapshot().get(&id("i-1")).is_some(), "the picture was kept throughout");
    clouds.cloud.fail_lists(None);
    env.sleep(Duration::from_secs(60)).await;
    assert!(access.view.snapshot().failure.is_none());
    let again = world.context.clouds.of(&machine("a", "demo")).await.unwrap();
    assert!(Arc::ptr_eq(&access, &again));
    let reads = secret_reads(&world);
    env.sleep(RECONNECT_PAUSE * 10).await;
    assert_eq!(secret_reads(&world), reads, "accepted credentials are left alone");
}

#[tokio::test(start_paused = true)]
async fn credentials_that_lack_a_permission_are_replaced_by_better_ones_and_else_kept() {
    let clouds = Arc::new(ScriptedClouds::default());
    let world = world(&clouds);
    let access = world.context.clouds.of(&machine("a", "demo")).await.unwrap();
    first_list(&access).await;
    clouds.cloud.fail_lists(Some(forbidden("ec2:DescribeInstances")));
    world.context.env.sleep(RECONNECT_PAUSE * 10).await;
    assert_eq!(keys(&clouds), ["old"], "the same ones make no new client");
    assert!(secret_reads(&world) <= 12, "read now and then");
    put_credentials(&world.server, NEW);
    world.context.env.sleep(RECONNECT_PAUSE * 3).await;
    assert_eq!(keys(&clouds), ["old", "new"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_infrastructure_reaches_machines_and_clients_and_keeps_the_view() {
    let clouds = Arc::new(ScriptedClouds::default());
    let world = world(&clouds);
    let before = world.context.clouds.of(&machine("a", "demo")).await.unwrap();
    first_list(&before).await;
    assert_eq!(before.ip_family, IpFamily::IPv4);
    world.context.stores.infrastructures.apply_written(read(json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
        "metadata": { "name": "cluster", "uid": "u", "resourceVersion": "5" }, "spec": {},
        "status": { "platformStatus": { "aws": {
            "region": "elsewhere", "ipFamily": "DualStackIPv6Primary",
            "resourceTags": [{ "key": "cost", "value": "42" }],
            "serviceEndpoints": [
                { "name": "ec2", "url": "https://ec2.example" },
                { "name": "sts", "url": "https://sts.example" },
            ],
        } } },
    })));
    let after = world.context.clouds.of(&machine("a", "demo")).await.unwrap();
    assert_eq!(after.cluster_tags, BTreeMap::from([("cost".to_owned(), "42".to_owned())]));
    assert_eq!(after.ip_family, IpFamily::DualStackIPv6Primary);
    assert!(after.view.snapshot().get(&id("i-1")).is_some(), "nothing was learnt anew");
    after.provider().list("demo").await.unwrap();
    let connections = clouds.connections.lock().unwrap().clone();
    let endpoints = [("ec2", "https://ec2.example"), ("sts", "https://sts.example")];
    let endpoints = endpoints.map(|(name, url)| (name.to_owned(), url.to_owned()));
    let expected =
        [(BTreeMap::new(), "old".to_owned()), (BTreeMap::from(endpoints), "old".to_owned())];
    assert_eq!(connections, expected);
    assert_eq!(world.context.clouds.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_infrastructure_sends_the_operator_to_the_metadata_service() {
    for (url, word) in [
        ("https://169.254.169.254", "link of the machine"),
        ("https://[fd00:ec2::254]", "link of the machine"),
        ("http://ec2.example", "https"),
    ] {
        let clouds = Arc::new(ScriptedClouds::default());
        let world = world(&clouds);
        world.context.stores.infrastructures.apply_written(read(json!({
            "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
            "metadata": { "name": "cluster", "uid": "u", "resourceVersion": "5" }, "spec": {},
            "status": { "platformStatus": { "aws": {
                "region": "elsewhere", "serviceEndpoints": [{ "name": "ec2", "url": url }],
            } } },
        })));
        let refused = world.context.clouds.of(&machine("a", "demo")).await;
        let Err(failure) = refused else { panic!("{url}") };
        let words = format!("{failure:?}");
        assert!(words.contains("endpoint of ec2") && words.contains(word), "{words}");
        assert!(clouds.connections.lock().unwrap().is_empty(), "{url}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_proxy_or_of_the_trusted_certificates_makes_a_new_client() {
    let clouds = Arc::new(ScriptedClouds::default());
    let world = world(&clouds);
    let openshift = &world.context.stores.openshift;
    let access = world.context.clouds.of(&machine("a", "demo")).await.unwrap();
    first_list(&access).await;
    let call = || async { access.provider().list("demo").await.unwrap() };
    let proxy = |version: u32, url: &str| {
        let spec = json!({ "httpProxy": url, "httpsProxy": url });
        openshift.proxies.apply_written(read(json!({
            "metadata": { "name": "cluster", "uid": "u", "resourceVersion": version.to_string() },
            "spec": spec, "status": { "httpProxy": url, "httpsProxy": url, "noProxy": ".svc" },
        })));
    };
    proxy(5, "http://one");
    call().await;
    call().await;
    proxy(6, "http://two");
    call().await;
    openshift.trust(read(json!({
        "metadata": {
            "name": "mao-trusted-ca", "namespace": "ns", "uid": "t", "resourceVersion": "7",
        },
        "data": { "ca-bundle.crt": "certificates" },
    })));
    call().await;
    proxy(8, "");
    call().await;
    let ways: Vec<(Option<String>, Option<String>)> = clouds
        .ways
        .lock()
        .unwrap()
        .iter()
        .map(|(proxy, trusted)| {
            let https = proxy.as_ref().map(|proxy| proxy.https.clone().unwrap_or_default());
            (https, trusted.clone())
        })
        .collect();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        ways,
        [
            (None, None),
            (text("http://one"), None),
            (text("http://two"), None),
            (text("http://two"), text("certificates")),
            (text(""), text("certificates")),
        ]
    );
    assert!(access.view.snapshot().get(&id("i-1")).is_some(), "nothing was learnt anew");
}

#[tokio::test(start_paused = true)]
async fn clusters_share_a_client_and_its_pace_and_have_views_of_their_own() {
    let clouds = Arc::new(ScriptedClouds::default());
    let world = world(&clouds);
    let of = |cluster: &'static str| {
        let machine = machine("a", cluster);
        let clouds = &world.context.clouds;
        async move { clouds.of(&machine).await.unwrap() }
    };
    let (one, same, other) = (of("demo").await, of("demo").await, of("other").await);
    assert!(Arc::ptr_eq(&one, &same));
    assert!(Arc::ptr_eq(&one.pace, &other.pace));
    assert!(Arc::ptr_eq(&one.connection, &other.connection));
    assert_eq!(keys(&clouds), ["old"]);
    assert_eq!(world.context.clouds.health().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn machines_whose_secret_is_missing_share_the_answer() {
    let clouds = Arc::new(ScriptedClouds::default());
    let world = World::with_clouds(Arc::clone(&clouds) as Arc<dyn Connect>);
    for _ in 0..100 {
        let failure = world.context.clouds.of(&machine("a", "demo")).await.err().unwrap();
        assert_eq!(failure.class, ErrorClass::Unauthorized);
        assert!(failure.message.contains("secret ns/cloud was not found"), "{}", failure.message);
    }
    assert_eq!(secret_reads(&world), 1);
    put_credentials(&world.server, OLD);
    world.context.env.sleep(FAILURE_KEPT).await;
    world.context.clouds.of(&machine("a", "demo")).await.unwrap();
    assert_eq!(clouds.cloud.lists.load(Ordering::Relaxed), 0, "connecting asks nothing");
}

#[test]
fn a_queue_serves_the_region_of_its_name() {
    let serves = |url: &str, region: &str| {
        let settings =
            CloudSettings { event_queue_url: Some(url.to_owned()), ..CloudSettings::default() };
        settings.event_queue_url_of(region).is_some()
    };
    let queue = "https://sqs.eu-west-1.amazonaws.com/123456789012/events";
    assert!(serves(queue, "eu-west-1"));
    assert!(!serves(queue, "us-east-1"));
    assert!(serves("http://127.0.0.1:5000/123456789012/events", "us-east-1"));
    assert!(CloudSettings::default().event_queue_url_of("us-east-1").is_none());
}
