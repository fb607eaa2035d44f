//! When is the cloud asked, what is written, and what is told?

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use http::Method;
use jiff::Timestamp;
use machinist_api::RawObject;
use machinist_core::cloud::{ErrorClass, Instance, InstanceId, InstanceReport, InstanceState};
use machinist_providers::{InstanceSize, LaunchRequest, PreparedLaunch, Provider, ProviderError};
use serde_json::Value;

use super::*;
use crate::{
    cloud::connect::{Connect, ConnectRequest},
    engine::testing::Fault,
    machineset,
    testing::{MACHINES, World, pool, read},
};

const SETS: &str = "/apis/machine.openshift.io/v1beta1/namespaces/ns/machinesets";

/// Offers what a test says, and counts how often it is asked. A mock, because what is tested is
/// when the catalog is asked for, not what a cloud answers; the provider contract suite tests that.
#[derive(Default)]
struct ScriptedCloud {
    catalog: Mutex<Script>,
    connections: AtomicUsize,
    asked: AtomicUsize,
}

#[derive(Clone, Default)]
enum Script {
    #[default]
    Silent,
    Offers(&'static [&'static str]),
    Fails(ErrorClass),
}

impl ScriptedCloud {
    fn offering(types: &'static [&'static str]) -> Arc<Self> {
        let cloud = Arc::new(Self::default());
        cloud.follow(Script::Offers(types));
        cloud
    }

    fn follow(&self, script: Script) {
        *self.catalog.lock().unwrap() = script;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Hands out the same cloud for every region.
struct Connection(Arc<ScriptedCloud>);

#[async_trait]
impl Connect for Connection {
    async fn connect(&self, _: ConnectRequest) -> Result<Arc<dyn Provider>, ProviderError> {
        self.0.connections.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::clone(&self.0) as Arc<dyn Provider>)
    }
}

fn not_scripted<T>() -> Result<T, ProviderError> {
    Err(ProviderError::new(ErrorClass::Unknown, "not scripted"))
}

#[async_trait]
impl Provider for ScriptedCloud {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn list(&self, _: &str) -> Result<Vec<Instance>, ProviderError> {
        Ok(Vec::new())
    }

    async fn describe(&self, _: &[InstanceId]) -> Result<Vec<Instance>, ProviderError> {
        Ok(Vec::new())
    }

    async fn find(&self, _: &str, _: &[String]) -> Result<Vec<Instance>, ProviderError> {
        not_scripted()
    }

    async fn prepare(&self, _: &LaunchRequest) -> Result<PreparedLaunch, ProviderError> {
        not_scripted()
    }

    async fn launch(&self, _: &PreparedLaunch, _: &str) -> Result<Instance, ProviderError> {
        not_scripted()
    }

    async fn terminate(&self, _: &InstanceId) -> Result<InstanceState, ProviderError> {
        not_scripted()
    }

    async fn tag(&self, _: &InstanceId, _: &BTreeMap<String, String>) -> Result<(), ProviderError> {
        not_scripted()
    }

    fn tags(&self, _: &LaunchRequest) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    async fn start(&self, _: &InstanceId) -> Result<InstanceState, ProviderError> {
        not_scripted()
    }

    async fn stop(&self, _: &InstanceId) -> Result<InstanceState, ProviderError> {
        not_scripted()
    }

    async fn reboot(&self, _: &InstanceId) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn reports(&self) -> Result<Vec<InstanceReport>, ProviderError> {
        Ok(Vec::new())
    }

    async fn move_event(&self, _: &InstanceId, _: &str, _: Timestamp) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn enable_reboot_migration(&self, _: &InstanceId) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn attach(&self, _: &RawObject, _: &Instance) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn detach(&self, _: &RawObject, _: &Instance) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn release_hosts(&self, _: &str) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn catalog(&self) -> Result<Vec<InstanceSize>, ProviderError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let script = self.catalog.lock().unwrap().clone();
        match script {
            Script::Silent => std::future::pending().await,
            Script::Offers(types) => {
                // Long enough for others to ask meanwhile.
                tokio::time::sleep(Duration::from_secs(1)).await;
                let sizes = types.iter().map(|name| InstanceSize {
                    name: (*name).to_owned(),
                    vcpus: 2,
                    memory_mib: 8192,
                    gpus: 0,
                    architecture: "amd64".to_owned(),
                    has_instance_store: false,
                });
                Ok(sizes.collect())
            }
            Script::Fails(class) => Err(ProviderError::new(class, "the cloud says no")),
        }
    }
}

/// A pool of m5.large in some region.
fn set(name: &str, region: &str) -> Value {
    let mut set = pool(0);
    set["metadata"]["name"] = json!(name);
    set["metadata"]["uid"] = json!(format!("uid-{name}"));
    let template = &mut set["spec"]["template"];
    template["metadata"]["labels"]["machine.openshift.io/cluster-api-cluster"] = json!("demo");
    template["spec"]["providerSpec"]["value"] = json!({
        "kind": "AWSMachineProviderConfig", "instanceType": "m5.large",
        "placement": { "region": region },
    });
    set
}

fn world(cloud: &Arc<ScriptedCloud>, sets: &[Value]) -> World {
    let world = World::with_clouds(Arc::new(Connection(Arc::clone(cloud))));
    for set in sets {
        put(&world, set);
    }
    world
}

fn put(world: &World, set: &Value) {
    world.server.put(SETS, set.clone());
    world.context.stores.machine_sets.apply_written(read(set.clone()));
}

async fn pass(world: &World, memory: &Memory, name: &str) -> Outcome {
    reconcile(&world.context, memory, ObjectKey::new("ns", name)).await
}

fn annotations(world: &World, name: &str) -> Value {
    let stored = &world.server.lock().objects[&(SETS.to_owned(), name.to_owned())];
    stored["metadata"]["annotations"].clone()
}

#[track_caller]
fn recheck(outcome: Outcome) -> Duration {
    match outcome {
        Outcome::RecheckAfter(delay) => delay,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_described_once_and_then_left_alone() {
    let cloud = ScriptedCloud::offering(&["m5.large", "m5.xlarge"]);
    let (world, memory) = (world(&cloud, &[set("pool", "r")]), Memory::default());
    assert!(matches!(pass(&world, &memory, "pool").await, Outcome::Settled));
    assert_eq!(
        annotations(&world, "pool"),
        json!({
            "machine.openshift.io/vCPU": "2",
            "machine.openshift.io/memoryMb": "8192",
            "machine.openshift.io/GPU": "0",
            "capacity.cluster-autoscaler.kubernetes.io/labels": "kubernetes.io/arch=amd64",
        })
    );
    for _ in 0..10 {
        assert!(matches!(pass(&world, &memory, "pool").await, Outcome::Settled));
    }
    assert_eq!(world.requests("PATCH"), [format!("{SETS}/pool")]);
    assert_eq!(cloud.asked(), 1);
    assert_eq!(world.into_event_count().await, 0);
}

#[tokio::test(start_paused = true)]
async fn pools_of_one_region_share_one_call_for_a_day() {
    let cloud = ScriptedCloud::offering(&["m5.large"]);
    let sets = [set("a", "r"), set("b", "r"), set("c", "r"), set("far", "s")];
    let (world, memory) = (world(&cloud, &sets), Memory::default());
    let all = ["a", "b", "c", "far"];
    futures::future::join_all(all.map(|name| pass(&world, &memory, name))).await;
    assert_eq!(world.requests("PATCH").len(), 4);
    assert_eq!(cloud.asked(), 2);
    tokio::time::sleep(Duration::from_secs(23 * 60 * 60)).await;
    pass(&world, &memory, "a").await;
    assert_eq!(cloud.asked(), 2);
    tokio::time::sleep(Duration::from_secs(2 * 60 * 60)).await;
    pass(&world, &memory, "a").await;
    assert_eq!(cloud.asked(), 3);
    assert_eq!(world.requests("PATCH").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_type_is_told_once_and_looked_for_again_in_the_next_catalog() {
    let cloud = ScriptedCloud::offering(&["m5.xlarge"]);
    let (world, memory) = (world(&cloud, &[set("pool", "r")]), Memory::default());
    for _ in 0..5 {
        let delay = recheck(pass(&world, &memory, "pool").await);
        assert!(delay > Duration::from_secs(23 * 60 * 60), "{delay:?}");
    }
    assert_eq!(cloud.asked(), 1);
    assert_eq!(world.requests("PATCH").len(), 0);
    cloud.follow(Script::Offers(&["m5.large"]));
    tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
    assert!(matches!(pass(&world, &memory, "pool").await, Outcome::Settled));
    assert_eq!(world.requests("PATCH").len(), 1);
    assert_eq!(world.into_event_count().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_once_and_the_cloud_is_asked_again_every_ten_minutes_for_all_pools() {
    let cloud = ScriptedCloud::offering(&[]);
    cloud.follow(Script::Fails(ErrorClass::Unauthorized));
    let (world, memory) = (world(&cloud, &[set("a", "r"), set("b", "r")]), Memory::default());
    for round in 1..=3 {
        for name in ["a", "b", "a", "b"] {
            let delay = recheck(pass(&world, &memory, name).await);
            assert_eq!(delay, Duration::from_secs(600));
        }
        assert_eq!(cloud.asked(), round);
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    cloud.follow(Script::Offers(&["m5.large"]));
    for name in ["a", "b"] {
        assert!(matches!(pass(&world, &memory, name).await, Outcome::Settled));
    }
    assert_eq!((cloud.asked(), world.requests("PATCH").len()), (4, 2));
    assert_eq!(world.into_event_count().await, 2, "one for each pool");
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_is_retried_with_growing_delays_and_told_nobody() {
    let cloud = ScriptedCloud::offering(&[]);
    cloud.follow(Script::Fails(ErrorClass::Throttled));
    let (world, memory) = (world(&cloud, &[set("pool", "r")]), Memory::default());
    let mut delays = Vec::new();
    for _ in 0..10 {
        let delay = recheck(pass(&world, &memory, "pool").await);
        assert_eq!(
            recheck(pass(&world, &memory, "pool").await),
            delay,
            "not asked before its time"
        );
        tokio::time::sleep(delay).await;
        delays.push(delay);
    }
    assert_eq!(cloud.asked(), 10);
    assert!(delays[0] <= Duration::from_secs(5), "{delays:?}");
    assert!(delays[2] > delays[0] && delays[9] <= Duration::from_secs(600), "{delays:?}");
    cloud.follow(Script::Offers(&["m5.large"]));
    assert!(matches!(pass(&world, &memory, "pool").await, Outcome::Settled));
    assert_eq!(world.requests("PATCH").len(), 1);
    assert_eq!(world.into_event_count().await, 0);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_missing_are_not_looked_for_at_every_pass() {
    let cloud = ScriptedCloud::offering(&["m5.large"]);
    let mut without = set("pool", "r");
    without["spec"]["template"]["spec"]["providerSpec"]["value"]["credentialsSecret"] =
        json!({ "name": "absent" });
    let (world, memory) = (world(&cloud, &[without]), Memory::default());
    for _ in 0..5 {
        assert_eq!(recheck(pass(&world, &memory, "pool").await), Duration::from_secs(600));
    }
    let secrets = world.requests("GET").iter().filter(|path| path.ends_with("/absent")).count();
    assert_eq!(secrets, 1);
    assert_eq!(world.into_event_count().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_does_not_answer_keeps_no_pool_from_its_size() {
    let cloud = Arc::new(ScriptedCloud::default());
    let mut wanted = set("pool", "r");
    wanted["spec"]["replicas"] = json!(2);
    let (world, memory) = (world(&cloud, &[wanted]), Memory::default());
    let scaling = machineset::Memory::default();
    let key = ObjectKey::new("ns", "pool");
    tokio::select! {
        biased;
        outcome = pass(&world, &memory, "pool") => panic!("{outcome:?}"),
        _ = machineset::reconcile(&world.context, &scaling, key) => {}
    }
    assert_eq!(world.requests("POST"), [MACHINES; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_for_the_others_when_the_first_to_ask_gives_up() {
    let cloud = ScriptedCloud::offering(&["m5.large"]);
    let (world, memory) = (world(&cloud, &[set("a", "r"), set("b", "r")]), Memory::default());
    tokio::select! {
        biased;
        outcome = pass(&world, &memory, "a") => panic!("{outcome:?}"),
        () = tokio::time::sleep(Duration::from_millis(500)) => {}
    }
    assert!(matches!(pass(&world, &memory, "b").await, Outcome::Settled));
    assert_eq!((cloud.asked(), world.requests("PATCH").len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_a_pool_that_cannot_be_read() {
    let cloud = ScriptedCloud::offering(&["m5.large"]);
    let mut broken = set("broken", "r");
    broken["spec"]["template"]["spec"]["providerSpec"]["value"]["instanceType"] = json!(5);
    let (world, memory) = (world(&cloud, &[broken, pool(0)]), Memory::default());
    for name in ["broken", "pool", "absent"] {
        assert!(matches!(pass(&world, &memory, name).await, Outcome::Settled), "{name}");
    }
    assert_eq!((cloud.connections.load(Ordering::Relaxed), cloud.asked()), (0, 0));
    assert_eq!(world.into_event_count().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_template_at_fault_waits_for_its_change_and_finds_the_way_free() {
    let cloud = ScriptedCloud::offering(&["m5.large"]);
    let mut nowhere = set("pool", "r");
    nowhere["spec"]["template"]["spec"]["providerSpec"]["value"]["placement"] = json!({});
    let (world, memory) = (world(&cloud, &[nowhere]), Memory::default());
    assert!(matches!(pass(&world, &memory, "pool").await, Outcome::Settled));
    assert_eq!(cloud.asked(), 0);
    world.context.stores.infrastructures.apply_written(read(json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
        "metadata": { "name": "cluster", "uid": "uid-cluster", "resourceVersion": "10" },
        "spec": {},
        "status": { "platformStatus": { "type": "AWS", "aws": { "region": "r" } } },
    })));
    assert!(matches!(pass(&world, &memory, "pool").await, Outcome::Settled));
    assert_eq!((cloud.asked(), world.requests("PATCH").len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_came_too_late_is_decided_anew() {
    let cloud = ScriptedCloud::offering(&["m5.large"]);
    let (world, memory) = (world(&cloud, &[set("pool", "r")]), Memory::default());
    world.server.fail(|method, _| match *method {
        Method::PATCH => Fault::Code(409),
        _ => Fault::None,
    });
    recheck(pass(&world, &memory, "pool").await);
    world.server.fail(|method, _| match *method {
        Method::PATCH => Fault::Code(500),
        _ => Fault::None,
    });
    assert!(matches!(pass(&world, &memory, "pool").await, Outcome::Failed(_)));
    world.server.fail(|_, _| Fault::None);
    assert!(matches!(pass(&world, &memory, "pool").await, Outcome::Settled));
    assert_eq!(annotations(&world, "pool")["machine.openshift.io/vCPU"], "2");
    assert_eq!(cloud.asked(), 1);
}
