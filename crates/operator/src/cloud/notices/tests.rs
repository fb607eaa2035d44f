//! What becomes of a notice?

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use machinist_api::Machine;
use machinist_core::cloud::{ErrorClass, InstanceState};

use super::*;
use crate::{
    cloud::{
        CloudAccess, CloudSettings,
        connect::Connect,
        testing::{ScriptedClouds, id},
    },
    testing::{World, machine_in_cloud, put_credentials, read},
};

/// One instance of ours is known, and the queue is read beside the test.
async fn world(clouds: &Arc<ScriptedClouds>) -> (World, Arc<CloudAccess>) {
    let url = "http://127.0.0.1:1/0/events".to_owned();
    let settings = CloudSettings { event_queue_url: Some(url), ..CloudSettings::default() };
    let world = World::with_cloud_settings(Arc::clone(clouds) as Arc<dyn Connect>, settings);
    put_credentials(&world.server, "b2xk");
    clouds.cloud.put("i-1", "uid-a", InstanceState::Running);
    let machine: Machine = read(machine_in_cloud("a", "demo"));
    let access = world.context.clouds.of(&machine).await.unwrap();
    access.view.fresh_within(Duration::from_secs(3600)).await.unwrap();
    (world, access)
}

fn state_changed() -> NoticeKind {
    NoticeKind::StateChanged { state: "stopped".to_owned() }
}

fn counted(world: &World, result: &str) -> bool {
    let line = format!("machinist_cloud_notices_total{{result=\"{result}\"}}");
    world.context.metrics.encode().unwrap().contains(&line)
}

#[tokio::test(start_paused = true)]
async fn a_notice_of_ours_is_looked_into_at_once_and_deleted() {
    let clouds = Arc::new(ScriptedClouds::default());
    let (world, access) = world(&clouds).await;
    let lists = clouds.cloud.lists();
    clouds.cloud.put("i-1", "uid-a", InstanceState::Stopped);
    clouds.queue.put_notice("r-1", "i-1", state_changed());
    clouds.queue.was_deleted.notified().await;
    assert_eq!(*clouds.queue.deleted.lock().unwrap(), ["r-1"]);
    let instance = Arc::clone(access.view.snapshot().get(&id("i-1")).unwrap());
    assert_eq!(instance.state, InstanceState::Stopped);
    assert_eq!(clouds.cloud.lists(), lists, "no list was needed");
    assert!(counted(&world, "ours"));
}

#[tokio::test(start_paused = true)]
async fn notices_about_others_are_left_alone_and_cost_little() {
    let clouds = Arc::new(ScriptedClouds::default());
    let (world, _access) = world(&clouds).await;
    clouds.queue.put_notice("r-1", "i-stranger", state_changed());
    clouds.queue.put_malformed("r-2");
    clouds.queue.was_deleted.notified().await;
    let before = clouds.queue.received.load(Ordering::Relaxed);
    world.context.env.sleep(Duration::from_secs(60)).await;
    let asked = clouds.queue.received.load(Ordering::Relaxed) - before;
    assert!(asked <= 61, "{asked} times in a minute");
    assert_eq!(*clouds.queue.deleted.lock().unwrap(), ["r-2"], "only what cannot be read");
    assert_eq!(clouds.cloud.describes(), 0);
    assert!(counted(&world, "others") && counted(&world, "malformed"));
}

#[tokio::test(start_paused = true)]
async fn a_spot_interruption_is_kept_for_the_decision() {
    let clouds = Arc::new(ScriptedClouds::default());
    let (_world, access) = world(&clouds).await;
    let at = Some(Timestamp::UNIX_EPOCH);
    let action = "terminate".to_owned();
    clouds.queue.put_notice("r-1", "i-1", NoticeKind::SpotInterruption { action, at });
    clouds.queue.was_deleted.notified().await;
    assert_eq!(access.view.snapshot().spot_notice_of(&id("i-1")), at);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_fails_is_asked_less_and_less_often() {
    let clouds = Arc::new(ScriptedClouds::default());
    let error = ProviderError::new(ErrorClass::Unknown, "AWS.SimpleQueueService.NonExistentQueue");
    *clouds.queue.failure.lock().unwrap() = Some(error);
    let (world, access) = world(&clouds).await;
    world.context.env.sleep(Duration::from_secs(600)).await;
    let asked = clouds.queue.received.load(Ordering::Relaxed);
    assert!((5..=25).contains(&asked), "{asked} times in ten minutes");
    assert!(access.view.snapshot().failure.is_none(), "nothing else is disturbed");
    *clouds.queue.failure.lock().unwrap() = None;
    clouds.queue.put_notice("r-1", "i-1", state_changed());
    clouds.queue.was_deleted.notified().await;
}
