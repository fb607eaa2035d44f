//! A sweep over a scripted cloud and a small API server.

use machinist_core::cloud::InstanceState;
use serde_json::json;

use super::*;
use crate::{
    audit::tests::Trail,
    cloud::{connect::Connect, testing::ScriptedClouds},
    engine::{
        supervisor::Supervisor,
        testing::{FakeServer, Fault},
        watch::Watch,
    },
    testing::{MACHINES, World, machine_in_cloud, put_credentials, read},
};

const PERIOD: Duration = Duration::from_secs(300);

struct Bench {
    clouds: Arc<ScriptedClouds>,
    server: FakeServer,
    context: Arc<Context>,
    sweeper: Sweeper,
    access: Arc<CloudAccess>,
    _supervisor: Supervisor,
}

/// The Machine `there` with its instance, and an instance of a Machine that is gone.
async fn bench(terminate: bool) -> Bench {
    let clouds = Arc::new(ScriptedClouds::default());
    clouds.cloud.put("i-1", "uid-there", InstanceState::Running);
    clouds.cloud.put("i-2", "uid-gone", InstanceState::Running);
    let world = World::with_clouds(Arc::clone(&clouds) as Arc<dyn Connect>);
    let World { server, context, supervisor, .. } = world;
    put_credentials(&server, "b2xk");
    let there = machine_in_cloud("there", "demo");
    server.put(MACHINES, there.clone());
    let context = Arc::new(context);
    let machines = context.stores.machines.clone();
    let watch = Watch::namespaced(&context.client, &context.metrics, &machines, "ns");
    // What happens later is not watched: the store is as far behind as a watch can be.
    tokio::select! {
        _ = watch.run(context.env.clone()) => unreachable!("a watch runs for ever"),
        () = machines.synced() => {}
    }
    let access = context.clouds.of(&read::<Machine>(there)).await.unwrap();
    access.view.fresh_within(Duration::from_secs(3600)).await.unwrap();
    let policy = Policy { terminate, ..Policy::default() };
    let sweeper = Sweeper::new(&context, "ns", policy, PERIOD);
    Bench { clouds, server, context, sweeper, access, _supervisor: supervisor }
}

impl Bench {
    async fn sweeps(&mut self, count: u32) {
        for _ in 0..count {
            self.context.env.sleep(PERIOD).await;
            self.access.view.fresh_within(Duration::from_secs(60)).await.ok();
            self.sweeper.sweep().await;
        }
    }

    fn terminated(&self) -> Vec<String> {
        self.clouds.cloud.terminated.lock().unwrap().clone()
    }

    fn reported(&self) -> Vec<String> {
        self.sweeper.findings().orphans().unwrap_or_default().into_keys().collect()
    }

    fn machine_lists(&self) -> usize {
        self.server.lock().log.iter().filter(|line| **line == format!("GET {MACHINES}")).count()
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphan_is_reported_and_left_alone_by_default() {
    let mut bench = bench(false).await;
    let lists = bench.machine_lists();
    bench.sweeps(5).await;
    assert_eq!(bench.reported(), ["i-2"]);
    assert_eq!(bench.terminated(), [""; 0]);
    assert_eq!(bench.machine_lists(), lists, "a report needs no list of its own");
    let text = bench.context.metrics.encode().unwrap();
    assert!(text.contains("machinist_orphan_instances 1"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_orphan_is_terminated_when_asked_for_in_the_second_sweep() {
    let trail = Trail::begin();
    let mut bench = bench(true).await;
    bench.sweeps(1).await;
    assert_eq!(bench.terminated(), [""; 0]);
    bench.sweeps(1).await;
    assert_eq!(bench.terminated(), ["i-2"]);
    assert_eq!(trail.instances(), bench.terminated());
    assert_eq!(
        (&trail.lines()[0]["actor"], &trail.lines()[0]["machine_uid"]),
        (&json!("sweep"), &json!("uid-gone"))
    );
    bench.sweeps(3).await;
    assert_eq!(bench.terminated(), ["i-2"], "once");
    assert_eq!(bench.reported(), [""; 0], "what is ending is no orphan");
    let text = bench.context.metrics.encode().unwrap();
    assert!(text.contains("machinist_orphan_instances_terminated_total 1"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn two_looks_at_one_list_are_one_sweep() {
    let mut bench = bench(true).await;
    bench.sweeps(1).await;
    for _ in 0..10 {
        bench.sweeper.sweep().await;
    }
    assert_eq!(bench.terminated(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_terminated_while_machines_or_instances_cannot_be_listed() {
    let mut bench = bench(true).await;
    bench.server.fail(|_, path| if path == MACHINES { Fault::Code(500) } else { Fault::None });
    bench.sweeps(4).await;
    assert_eq!(bench.terminated(), [""; 0]);
    assert_eq!(bench.reported(), ["i-2"]);
    bench.server.fail(|_, _| Fault::None);
    let error = machinist_providers::ProviderError::new(ErrorClass::Transient, "no route");
    bench.clouds.cloud.fail_lists(Some(error));
    bench.sweeps(4).await;
    assert_eq!(bench.terminated(), [""; 0]);
    bench.clouds.cloud.fail_lists(None);
    bench.sweeps(1).await;
    assert_eq!(bench.terminated(), ["i-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_the_watch_has_not_shown_yet_protects_its_instance() {
    let mut bench = bench(true).await;
    // Named by id only: another controller made it.
    let mut adopted = machine_in_cloud("adopted", "demo");
    adopted["spec"]["providerID"] = json!("aws:///z/i-2");
    bench.server.put(MACHINES, adopted);
    bench.sweeps(4).await;
    assert_eq!(bench.context.stores.machines.len(), 1, "the watch is behind");
    assert_eq!(bench.terminated(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn one_machine_that_cannot_be_read_protects_everything() {
    let mut bench = bench(true).await;
    let mut broken = machine_in_cloud("broken", "demo");
    broken["spec"]["taints"] = json!("not a list");
    bench.server.put(MACHINES, broken);
    bench.sweeps(4).await;
    assert_eq!(bench.terminated(), [""; 0]);
    assert_eq!(bench.reported(), ["i-2"]);
}
