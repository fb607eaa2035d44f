//! What is written, and when is nothing?

use std::time::Duration;

use machinist_api::Machine;
use machinist_core::{cloud::InstanceState, operator_status::condition_type};
use machinist_providers::ProviderError;

use super::*;
use crate::{
    cloud::{connect::Connect, testing::ScriptedClouds},
    engine::testing::FakeServer,
    testing::{World, machine_in_cloud, put_credentials, read},
};

const CONFIG_MAPS: &str = "/api/v1/namespaces/ns/configmaps";

fn status(server: &FakeServer) -> OperatorStatus {
    let objects = &server.lock().objects;
    let stored = &objects[&(CONFIG_MAPS.to_owned(), CONFIG_MAP.to_owned())];
    serde_json::from_str(stored["data"][KEY].as_str().unwrap()).unwrap()
}

fn writes(server: &FakeServer) -> usize {
    let log = &server.lock().log;
    log.iter().filter(|line| !line.starts_with("GET") && line.contains("/configmaps")).count()
}

fn condition(server: &FakeServer, type_: &str) -> Condition {
    status(server).conditions.into_iter().find(|one| one.type_ == type_).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_status_follows_the_clouds_and_is_written_only_when_it_changes() {
    let clouds = Arc::new(ScriptedClouds::default());
    let world = World::with_clouds(Arc::clone(&clouds) as Arc<dyn Connect>);
    let (server, context) = (world.server.clone(), Arc::new(world.context));
    let mut publisher = StatusPublisher::new(&context, "ns", &Arc::default());
    publisher.publish().await.unwrap();
    let reachable = || condition(&server, condition_type::CLOUD_REACHABLE);
    assert_eq!(reachable().status, "Unknown");

    clouds.cloud.put("i-1", "uid-a", InstanceState::Running);
    let machine: Machine = read(machine_in_cloud("a", "demo"));
    assert!(context.clouds.of(&machine).await.is_err());
    publisher.publish().await.unwrap();
    let message = reachable().message;
    assert!(message.contains("secret ns/cloud was not found"), "{message}");
    put_credentials(&server, "b2xk");
    context.env.sleep(Duration::from_secs(10)).await;
    let access = context.clouds.of(&machine).await.unwrap();
    access.view.fresh_within(Duration::from_secs(3600)).await.unwrap();
    context.env.sleep(Duration::from_secs(10)).await;
    publisher.publish().await.unwrap();
    let good = reachable();
    assert_eq!(good.status, "True");
    let before = writes(&server);
    for _ in 0..100 {
        context.env.sleep(PERIOD).await;
        publisher.publish().await.unwrap();
    }
    assert_eq!(writes(&server), before, "nothing changed, nothing was written");
    assert_eq!(reachable(), good);

    clouds.cloud.fail_lists(Some(ProviderError::new(
        machinist_core::cloud::ErrorClass::Transient,
        "no route",
    )));
    context.clouds.missing_permissions().refused("aws", "StartInstances", "ec2:StartInstances");
    access.view.fresh_within(Duration::ZERO).await.unwrap_err();
    publisher.publish().await.unwrap();
    let bad = reachable();
    assert_eq!((bad.status.as_str(), bad.reason.as_str()), ("False", "CloudNotAnswering"));
    assert!(bad.message.contains("no route") && bad.message.contains("demo"), "{}", bad.message);
    assert!(bad.last_transition_time.0 > good.last_transition_time.0);
    let permissions = condition(&server, condition_type::CLOUD_PERMISSIONS);
    assert!(permissions.message.contains("ec2:StartInstances"), "{}", permissions.message);
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_goes_on_with_what_is_written() {
    let world = World::new();
    let (server, context) = (world.server.clone(), Arc::new(world.context));
    let publisher = || StatusPublisher::new(&context, "ns", &Arc::default());
    publisher().publish().await.unwrap();
    let (before, written) = (status(&server), writes(&server));
    context.env.sleep(Duration::from_secs(100)).await;
    publisher().publish().await.unwrap();
    assert_eq!(status(&server), before, "no transition, so no other time");
    assert_eq!(writes(&server), written);
}

#[test]
fn a_condition_that_turns_is_an_event_and_one_that_stays_is_not() {
    let good = [
        fact(condition_type::ORPHAN_INSTANCES, "False"),
        fact(condition_type::CLOUD_REACHABLE, "True"),
    ];
    let bad = [
        fact(condition_type::ORPHAN_INSTANCES, "True"),
        fact(condition_type::CLOUD_REACHABLE, "False"),
    ];
    let unknown = [fact(condition_type::CLOUD_REACHABLE, "Unknown")];
    let turned = |before: &[Condition], after: &[Condition]| {
        turns(before, after).into_iter().map(|(_, event_type)| event_type).collect::<Vec<_>>()
    };
    assert_eq!(turned(&[], &good), []);
    assert_eq!(turned(&unknown, &good), []);
    assert_eq!(turned(&good, &bad), [EventType::Warning, EventType::Warning]);
    assert_eq!(turned(&bad, &bad), []);
    assert_eq!(turned(&bad, &good), [EventType::Normal, EventType::Normal]);
}

fn fact(type_: &str, status: &str) -> Condition {
    Condition {
        last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            jiff::Timestamp::UNIX_EPOCH,
        ),
        message: "words".to_owned(),
        observed_generation: None,
        reason: "Reason".to_owned(),
        status: status.to_owned(),
        type_: type_.to_owned(),
    }
}
