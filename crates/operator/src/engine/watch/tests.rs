//! Does the watch keep the store true through restarts, lost events and objects that cannot be read?

use std::sync::Mutex;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::*;
use crate::engine::{
    supervisor::Supervisor,
    testing::{FakeServer, Fault},
};

const MAPS: &str = "/api/v1/namespaces/ns/configmaps";

fn object(name: &str, value: &str) -> Value {
    json!({ "metadata": { "namespace": "ns", "name": name }, "data": { "value": value } })
}

struct World {
    server: FakeServer,
    store: Store<ConfigMap>,
    changes: Arc<Mutex<Vec<String>>>,
    invalid: Arc<Mutex<Vec<String>>>,
    env: Env,
    _supervisor: Supervisor,
}

impl World {
    fn start(
        server: FakeServer,
        configure: impl FnOnce(Watch<ConfigMap>) -> Watch<ConfigMap>,
    ) -> Self {
        let env = Env::simulated(jiff::Timestamp::UNIX_EPOCH, 3);
        let store: Store<ConfigMap> = Store::builder().build();
        let changes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&changes);
        store.on_change(move |change| {
            let sign = if change.after.is_some() { "+" } else { "-" };
            seen.lock().unwrap().push(format!("{sign}{}", change.key.name));
        });
        let invalid = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&invalid);
        let client = server.client();
        let watch =
            Watch::namespaced(&client, &Metrics::new(), &store, "ns").on_invalid(move |object| {
                reported.lock().unwrap().push(object.metadata.name.clone().unwrap_or_default());
            });
        let supervisor = Supervisor::new();
        supervisor.spawner().spawn("watch", configure(watch).run(env.clone()));
        Self { server, store, changes, invalid, env, _supervisor: supervisor }
    }

    /// Lets virtual time pass until the condition holds.
    async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        for _ in 0..10_000 {
            if condition(self) {
                return;
            }
            self.env.sleep(Duration::from_millis(100)).await;
        }
        panic!("never: {what}; changes {:?}", self.changes());
    }

    fn changes(&self) -> Vec<String> {
        self.changes.lock().unwrap().clone()
    }

    fn value(&self, name: &str) -> Option<String> {
        let map = self.store.get(&ObjectKey::new("ns", name))?;
        map.data.as_ref()?.get("value").cloned()
    }
}

#[tokio::test(start_paused = true)]
async fn the_store_follows_the_cluster() {
    let server = FakeServer::new();
    server.put(MAPS, object("a", "1"));
    let world = World::start(server, |watch| watch);
    world.until("listed", |world| world.store.is_synced()).await;
    world.server.put(MAPS, object("b", "1"));
    world.server.put(MAPS, object("a", "2"));
    world.until("modified", |world| world.value("a").as_deref() == Some("2")).await;
    world.server.delete(MAPS, "b");
    world.until("deleted", |world| world.value("b").is_none()).await;
    assert_eq!(world.changes(), ["+a", "+b", "+a", "-b"]);
}

#[tokio::test(start_paused = true)]
async fn deletions_missed_while_away_are_noticed_and_the_store_is_never_empty() {
    let server = FakeServer::new();
    for name in ["a", "b", "c"] {
        server.put(MAPS, object(name, "1"));
    }
    let world = World::start(server, |watch| watch);
    world.until("listed", |world| world.store.is_synced()).await;
    let smallest = Arc::new(Mutex::new(usize::MAX));
    let (seen, store) = (Arc::clone(&smallest), world.store.clone());
    world.store.on_change(move |_| {
        let mut seen = seen.lock().unwrap();
        *seen = (*seen).min(store.len());
    });
    world.server.lock().hide_events = true;
    world.server.delete(MAPS, "b");
    world.server.put(MAPS, object("d", "1"));
    world.server.lock().hide_events = false;
    world.server.cut_watches();
    world.until("relisted", |world| world.changes().contains(&"-b".to_owned())).await;
    assert_eq!(world.changes(), ["+a", "+b", "+c", "+d", "-b"]);
    assert_eq!(*smallest.lock().unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_reported_and_stops_no_other() {
    let server = FakeServer::new();
    server.put(MAPS, object("a", "1"));
    server.put(MAPS, json!({ "metadata": { "namespace": "ns", "name": "broken" }, "data": [1] }));
    server.put(MAPS, object("z", "1"));
    let world = World::start(server, |watch| watch);
    world.until("listed", |world| world.store.is_synced()).await;
    assert_eq!(world.changes(), ["+a", "+z"]);
    let [invalid] = &world.store.invalid()[..] else { panic!("one invalid object") };
    assert!(invalid.error.contains("invalid type"), "{}", invalid.error);
    world.server.put(MAPS, json!({ "metadata": { "namespace": "ns", "name": "a" }, "data": 7 }));
    world.until("broken", |world| world.store.invalid().len() == 2).await;
    world.server.put(MAPS, object("broken", "repaired"));
    world.until("repaired", |world| world.value("broken").is_some()).await;
    assert_eq!(*world.invalid.lock().unwrap(), ["broken", "a"]);
    assert_eq!(world.changes(), ["+a", "+z", "-a", "+broken"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_of_ours_that_is_gone_without_trace_is_checked_and_forgotten() {
    let server = FakeServer::new();
    server.put(MAPS, object("a", "1"));
    let world = World::start(server, |watch| watch);
    world.until("listed", |world| world.store.is_synced()).await;
    // Created and deleted by the time the answer arrives, and the watch saw neither.
    let ghost: ConfigMap = serde_json::from_value(json!({
        "metadata": { "namespace": "ns", "name": "ghost", "uid": "g", "resourceVersion": "50" },
        "data": { "value": "1" },
    }))
    .unwrap();
    // The first check fails; it is repeated.
    let ghost_checks = Arc::new(Mutex::new(0));
    let count = Arc::clone(&ghost_checks);
    world.server.fail(move |_, path| {
        if !path.ends_with("/ghost") {
            return Fault::None;
        }
        *count.lock().unwrap() += 1;
        if *count.lock().unwrap() == 1 { Fault::Code(500) } else { Fault::None }
    });
    world.store.apply_written(ghost);
    assert!(world.value("ghost").is_some());
    world.until("forgotten", |world| world.value("ghost").is_none()).await;
    assert_eq!(*ghost_checks.lock().unwrap(), 2);
    assert!(world.value("a").is_some());
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_lost_is_made_up_for_by_our_own_write() {
    let server = FakeServer::new();
    let world = World::start(server, |watch| watch);
    world.until("listed", |world| world.store.is_synced()).await;
    world.server.lock().hide_events = true;
    world.server.put(MAPS, object("mine", "1"));
    world.server.lock().hide_events = false;
    let answer = world.server.lock().objects[&(MAPS.to_owned(), "mine".to_owned())].clone();
    world.server.put(MAPS, object("other", "1"));
    world.until("passed", |world| world.value("other").is_some()).await;
    world.store.apply_written(serde_json::from_value(answer).unwrap());
    world
        .until("checked", |world| {
            world.server.lock().log.iter().any(|line| line.ends_with("/configmaps/mine"))
        })
        .await;
    world.env.sleep(Duration::from_secs(60)).await;
    assert_eq!(world.value("mine").as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_asked_again_with_growing_delays() {
    let server = FakeServer::new();
    server.put(MAPS, object("a", "1"));
    server.fail(|_, _| Fault::Code(503));
    let world = World::start(server, |watch| watch);
    world.env.sleep(Duration::from_secs(600)).await;
    let attempts = world.server.lock().log.len();
    assert!((10..=24).contains(&attempts), "{attempts} attempts in ten minutes");
    assert!(!world.store.is_synced());
    world.server.fail(|_, _| Fault::None);
    world.until("listed", |world| world.store.is_synced()).await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_cluster_lacks_counts_as_empty_until_it_appears() {
    let server = FakeServer::new();
    server.fail(|_, _| Fault::Code(404));
    let world = World::start(server, Watch::optional);
    world.until("synced", |world| world.store.is_synced()).await;
    world.env.sleep(Duration::from_secs(600)).await;
    let attempts = world.server.lock().log.len();
    assert!((5..=15).contains(&attempts), "{attempts} attempts in ten minutes");
    world.server.put(MAPS, object("a", "1"));
    world.server.fail(|_, _| Fault::None);
    world.until("found", |world| world.value("a").is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_does_not_show_the_present_until_it_goes_on() {
    let server = FakeServer::new();
    server.put(MAPS, object("a", "1"));
    let world = World::start(server, |watch| watch);
    let is_current = |world: &World| world.store.is_current(world.env.instant());
    assert!(!is_current(&world), "nothing is listed yet");
    world.until("listed", is_current).await;
    world.server.fail(|_, _| Fault::Code(500));
    world.server.cut_watches();
    world.until("interrupted", |world| !is_current(world)).await;
    for _ in 0..100 {
        world.env.sleep(Duration::from_secs(1)).await;
        assert!(!is_current(&world), "the failure goes on");
    }
    world.server.fail(|_, _| Fault::None);
    world.until("resumed, though nothing is heard", is_current).await;
}
