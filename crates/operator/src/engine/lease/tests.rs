//! Is there ever more than one leader, and is there one again soon after a leader went?

use serde_json::Value;

use super::*;
use crate::engine::{
    supervisor::Supervisor,
    testing::{FakeServer, Fault},
};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
const NAMES: [&str; 5] = [
    "machine-api-operator",
    "cluster-api-provider-machineset-leader",
    "cluster-api-provider-nodelink-leader",
    "cluster-api-provider-healthcheck-leader",
    "cluster-api-provider-aws-leader",
];

/// One process that wants to lead.
struct Process {
    supervisor: Supervisor,
    leadership: Leadership,
    ended: tokio::sync::oneshot::Receiver<anyhow::Result<()>>,
    stopping: CancellationToken,
}

fn start(server: &FakeServer, env: &Env, identity: &str) -> Process {
    let leases = NamedLease::originals(
        LeaseTimings::MACHINE_API_OPERATOR,
        LeaseTimings::MACHINE_CONTROLLERS,
    );
    let (election, leadership) =
        Election::new(&server.client(), env, &Metrics::new(), "ns", identity, leases).unwrap();
    let supervisor = Supervisor::new();
    let stopping = CancellationToken::new();
    let (sender, ended) = tokio::sync::oneshot::channel();
    let run = election.run(stopping.clone());
    supervisor.spawner().spawn("election", async move {
        sender.send(run.await).ok();
        Ok(())
    });
    Process { supervisor, leadership, ended, stopping }
}

fn env() -> Env {
    Env::simulated("2026-01-01T00:00:00Z".parse().unwrap(), 5)
}

async fn pass(env: &Env, seconds: u64) {
    env.sleep(Duration::from_secs(seconds)).await;
}

fn lease(server: &FakeServer, name: &str) -> Value {
    server.lock().objects[&(LEASES.to_owned(), name.to_owned())]["spec"].clone()
}

fn holders(server: &FakeServer) -> Vec<String> {
    NAMES
        .map(|name| lease(server, name)["holderIdentity"].as_str().unwrap_or_default().to_owned())
        .to_vec()
}

/// Waits until it holds, and returns after how many seconds; `None` after a quarter of an hour.
async fn seconds_until(env: &Env, condition: impl Fn() -> bool) -> Option<u64> {
    for second in 0..900 {
        if condition() {
            return Some(second);
        }
        pass(env, 1).await;
    }
    None
}

fn foreign(server: &FakeServer, name: &str, holder: &str) {
    server.put(
        LEASES,
        serde_json::json!({
            "metadata": { "namespace": "ns", "name": name, "labels": { "kept": "yes" } },
            "spec": {
                "holderIdentity": holder, "leaseDurationSeconds": 120, "leaseTransitions": 3,
                "acquireTime": "2025-12-31T00:00:00.000000Z", "renewTime": "2025-12-31T00:00:00.000000Z",
            },
        }),
    );
}

#[tokio::test(start_paused = true)]
async fn a_lone_process_acquires_all_leases_in_order_and_renews_them() {
    let (server, env) = (FakeServer::new(), env());
    let first = start(&server, &env, "first");
    assert!(!first.leadership.is_held());
    assert_eq!(
        seconds_until(&env, || first.leadership.is_held()).await.map(|took| took < 3),
        Some(true)
    );
    let created = NAMES.map(|name| {
        let object = &server.lock().objects[&(LEASES.to_owned(), name.to_owned())];
        object["metadata"]["uid"].as_str().unwrap().to_owned()
    });
    assert!(created.is_sorted(), "created in order: {created:?}");
    let requests = server.lock().log.len();
    pass(&env, 3600).await;
    assert!(first.leadership.is_held());
    assert_eq!(holders(&server), ["first"; 5]);
    let spec = lease(&server, "machine-api-operator");
    assert_eq!(spec["leaseDurationSeconds"], 137);
    assert_eq!(spec["leaseTransitions"], 0);
    assert!(spec["acquireTime"].as_str().unwrap().starts_with("2026-01-01T00:00:00"));
    assert!(spec["renewTime"].as_str().unwrap() > "2026-01-01T00:59:00");
    // One write for each renewal: 138 of the first, 180 of each other one.
    let renewals = server.lock().log.len() - requests;
    assert!((850..=865).contains(&renewals), "{renewals}");
}

#[tokio::test(start_paused = true)]
async fn the_operators_lease_may_have_the_timings_of_the_cluster() {
    let (server, env) = (FakeServer::new(), env());
    let leases = NamedLease::originals(
        LeaseTimings::MACHINE_API_OPERATOR,
        LeaseTimings::MACHINE_CONTROLLERS,
    );
    let (mut election, leadership) =
        Election::new(&server.client(), &env, &Metrics::new(), "ns", "first", leases).unwrap();
    election.set_first_timings(LeaseTimings::of_seconds(10, 10, 1)).unwrap_err();
    election.set_first_timings(LeaseTimings::MACHINE_API_OPERATOR_ON_ONE_NODE).unwrap();
    let (supervisor, stopping) = (Supervisor::new(), CancellationToken::new());
    supervisor.spawner().spawn("election", election.run(stopping));
    seconds_until(&env, || leadership.is_held()).await.unwrap();
    let durations = NAMES.map(|name| lease(&server, name)["leaseDurationSeconds"].clone());
    assert_eq!(durations, [270, 120, 120, 120, 120].map(Value::from));
}

#[tokio::test(start_paused = true)]
async fn a_foreign_holder_of_any_one_lease_keeps_us_waiting_until_it_stops_renewing() {
    let (server, env) = (FakeServer::new(), env());
    foreign(&server, NAMES[3], "old-controller");
    let first = start(&server, &env, "first");
    // It renews, with a clock that is a year behind: it lives.
    for _ in 0..20 {
        pass(&env, 20).await;
        let renewed = env.now() - jiff::SignedDuration::from_hours(24 * 365);
        let mut state = server.lock();
        let key = (LEASES.to_owned(), NAMES[3].to_owned());
        let mut object = state.objects[&key].clone();
        object["spec"]["renewTime"] = serde_json::json!(MicroTime(renewed));
        drop(state);
        server.put(LEASES, object);
        state = server.lock();
        assert!(!state.objects.contains_key(&(LEASES.to_owned(), NAMES[4].to_owned())));
        drop(state);
        assert!(!first.leadership.is_held());
        let obstacle = first.leadership.obstacle();
        let words = format!("the lease ns/{} is held by old-controller", NAMES[3]);
        assert_eq!(obstacle.as_ref(), Some(&words));
    }
    let waited = seconds_until(&env, || first.leadership.is_held()).await.unwrap();
    assert!((115..=160).contains(&waited), "{waited}");
    assert_eq!(first.leadership.obstacle(), None);
    let object = server.lock().objects[&(LEASES.to_owned(), NAMES[3].to_owned())].clone();
    assert_eq!(object["spec"]["leaseTransitions"], 4);
    assert_eq!(object["metadata"]["labels"]["kept"], "yes");
}

#[tokio::test(start_paused = true)]
async fn the_second_candidate_takes_over_after_a_crash_and_never_before() {
    let (server, env) = (FakeServer::new(), env());
    let first = start(&server, &env, "first");
    seconds_until(&env, || first.leadership.is_held()).await.unwrap();
    let second = start(&server, &env, "second");
    for _ in 0..600 {
        pass(&env, 1).await;
        assert!(first.leadership.is_held() && !second.leadership.is_held());
    }
    drop(first.supervisor);
    let took = seconds_until(&env, || second.leadership.is_held()).await.unwrap();
    assert!((100..=165).contains(&took), "{took}");
    assert_eq!(holders(&server), ["second"; 5]);
    assert_eq!(lease(&server, NAMES[0])["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_graceful_end_hands_over_without_waiting_for_expiry() {
    let (server, env) = (FakeServer::new(), env());
    let first = start(&server, &env, "first");
    seconds_until(&env, || first.leadership.is_held()).await.unwrap();
    let second = start(&server, &env, "second");
    pass(&env, 100).await;
    first.stopping.cancel();
    first.ended.await.unwrap().unwrap();
    assert!(!first.leadership.is_held());
    assert_eq!(holders(&server), [""; 5]);
    assert_eq!(lease(&server, NAMES[1])["leaseDurationSeconds"], 1);
    let took = seconds_until(&env, || second.leadership.is_held()).await.unwrap();
    assert!(took <= 30, "{took}");
    assert_eq!(lease(&server, NAMES[4])["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_acting_before_anyone_may_take_over() {
    for fault in [Fault::Code(500), Fault::Silence] {
        let (server, env) = (FakeServer::new(), env());
        let first = start(&server, &env, "first");
        seconds_until(&env, || first.leadership.is_held()).await.unwrap();
        pass(&env, 50).await;
        server.fail(move |_, _| fault);
        let held = seconds_until(&env, || !first.leadership.is_held()).await.unwrap();
        assert!((80..=110).contains(&held), "{fault:?}: {held}");
        let error = first.ended.await.unwrap().unwrap_err().to_string();
        assert!(
            error.starts_with("lost the lease ") && error.contains("not renewed for"),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_and_a_conflict_do_not_cost_the_lease() {
    let (server, env) = (FakeServer::new(), env());
    let first = start(&server, &env, "first");
    seconds_until(&env, || first.leadership.is_held()).await.unwrap();
    server.fail(|_, _| Fault::Code(503));
    pass(&env, 60).await;
    server.fail(|_, _| Fault::None);
    // Somebody labels the lease: our next write conflicts and is repeated on what is there now.
    let mut object = server.lock().objects[&(LEASES.to_owned(), NAMES[2].to_owned())].clone();
    object["metadata"]["labels"] = serde_json::json!({ "touched": "yes" });
    server.put(LEASES, object);
    for _ in 0..600 {
        pass(&env, 1).await;
        assert!(first.leadership.is_held());
    }
    let object = server.lock().objects[&(LEASES.to_owned(), NAMES[2].to_owned())].clone();
    assert_eq!(object["metadata"]["labels"]["touched"], "yes");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_ends_at_once() {
    let (server, env) = (FakeServer::new(), env());
    let first = start(&server, &env, "first");
    seconds_until(&env, || first.leadership.is_held()).await.unwrap();
    foreign(&server, NAMES[1], "usurper");
    let held = seconds_until(&env, || !first.leadership.is_held()).await.unwrap();
    assert!(held <= 21, "{held}");
    let error = first.ended.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), format!("lost the lease {} to usurper", NAMES[1]));
}

#[tokio::test(start_paused = true)]
async fn a_restart_under_the_same_identity_goes_on_at_once() {
    let (server, env) = (FakeServer::new(), env());
    let first = start(&server, &env, "same");
    seconds_until(&env, || first.leadership.is_held()).await.unwrap();
    drop(first.supervisor);
    let second = start(&server, &env, "same");
    let took = seconds_until(&env, || second.leadership.is_held()).await.unwrap();
    assert!(took <= 1, "{took}");
    assert_eq!(lease(&server, NAMES[0])["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn two_candidates_at_once_never_both_lead() {
    for seed in 0..20 {
        let server = FakeServer::new();
        let start_time = "2026-01-01T00:00:00Z".parse().unwrap();
        let (one, two) = (Env::simulated(start_time, seed), Env::simulated(start_time, seed + 100));
        let first = start(&server, &one, "first");
        let second = start(&server, &two, "second");
        let mut led = false;
        for _ in 0..1000 {
            pass(&one, 1).await;
            let (first, second) = (first.leadership.is_held(), second.leadership.is_held());
            assert!(!(first && second), "two leaders with seed {seed}");
            led |= first || second;
        }
        assert!(led, "no leader with seed {seed}");
    }
}

/// What the API server sees of an hour with two candidates, an outage and a crash.
async fn requests_of_a_rough_hour(seed: u64) -> Vec<String> {
    let server = FakeServer::new();
    let env = Env::simulated("2026-01-01T00:00:00Z".parse().unwrap(), seed);
    let first = start(&server, &env, "first");
    let _second = start(&server, &env, "second");
    pass(&env, 600).await;
    server.fail(|_, _| Fault::Code(500));
    pass(&env, 60).await;
    server.fail(|_, _| Fault::None);
    pass(&env, 600).await;
    drop(first.supervisor);
    pass(&env, 2340).await;
    server.lock().log.clone()
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_requests() {
    let first = requests_of_a_rough_hour(11).await;
    assert!(first.len() > 500, "{}", first.len());
    assert_eq!(first, requests_of_a_rough_hour(11).await);
}
