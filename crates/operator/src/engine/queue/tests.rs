//! Does the queue keep its promises: once, in order, with backoff, and the same way every time?

use std::{cell::RefCell, rc::Rc};

use super::*;
use crate::engine::leadership::Claim;

/// One operator in virtual time: a queue, and what happened in it.
struct World {
    env: Env,
    queue: Queue<String>,
    trace: Rc<RefCell<Vec<(u64, String)>>>,
    started: Instant,
}

impl World {
    fn new(seed: u64) -> Self {
        let env = Env::simulated(jiff::Timestamp::UNIX_EPOCH, seed);
        let queue = Queue::new("test", &env, &Metrics::new());
        Self { started: env.instant(), env, queue, trace: Rc::default() }
    }

    fn note(&self, what: impl Into<String>) {
        let milliseconds = self.env.instant().duration_since(self.started).as_millis();
        self.trace.borrow_mut().push((u64::try_from(milliseconds).unwrap(), what.into()));
    }

    fn trace(&self) -> Vec<String> {
        self.trace.borrow().iter().map(|(_, what)| what.clone()).collect()
    }

    fn times_of(&self, wanted: &str) -> Vec<u64> {
        self.trace.borrow().iter().filter(|(_, what)| what == wanted).map(|(at, _)| *at).collect()
    }

    /// Runs the queue for so much virtual time.
    async fn run<F: Future<Output = Outcome>>(
        &self,
        seconds: u64,
        concurrency: usize,
        handler: impl Fn(String) -> F,
    ) {
        let stopping = CancellationToken::new();
        let run = self.queue.clone().run(
            Leadership::always_held(),
            stopping.clone(),
            concurrency,
            handler,
        );
        let stop = async {
            self.env.sleep(Duration::from_secs(seconds)).await;
            stopping.cancel();
        };
        let (result, ()) = futures::join!(run, stop);
        result.unwrap();
    }

    fn add_all(&self, keys: &[&str]) {
        for key in keys {
            self.queue.add((*key).to_owned());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_queued_once_and_order_is_first_come_first_served() {
    let world = World::new(1);
    world.add_all(&["c", "a", "b", "a", "c"]);
    assert_eq!(world.queue.depth(), 3);
    world
        .run(1, 1, async |key| {
            world.note(key);
            Outcome::Settled
        })
        .await;
    assert_eq!(world.trace(), ["c", "a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_added_while_running_runs_again_afterwards_and_never_beside_itself() {
    let world = World::new(1);
    world.add_all(&["a"]);
    world
        .run(60, 4, async |key| {
            world.note("start");
            if world.trace().len() == 1 {
                world.queue.add(key.clone());
                world.queue.add(key);
            }
            world.env.sleep(Duration::from_secs(5)).await;
            world.note("end");
            Outcome::Settled
        })
        .await;
    assert_eq!(world.trace(), ["start", "end", "start", "end"]);
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_bounded_and_used() {
    let world = World::new(1);
    let (now, most) = (RefCell::new(0_usize), RefCell::new(0_usize));
    world.add_all(&["a", "b", "c", "d", "e", "f", "g"]);
    world
        .run(60, 3, async |key| {
            *now.borrow_mut() += 1;
            let running = *now.borrow();
            most.replace_with(|most| running.max(*most));
            world.env.sleep(Duration::from_secs(1)).await;
            *now.borrow_mut() -= 1;
            world.note(key);
            Outcome::Settled
        })
        .await;
    assert_eq!(*most.borrow(), 3);
    assert_eq!(world.trace().len(), 7);
    assert_eq!(world.times_of("g"), [3000]);
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_exponentially_up_to_the_cap_and_success_resets() {
    let world = World::new(1);
    world.add_all(&["a"]);
    world
        .run(60 * 60, 1, async |key| {
            world.note(key);
            if world.trace().len() == 14 {
                return Outcome::RecheckAfter(Duration::from_secs(1));
            }
            Outcome::Failed(anyhow::anyhow!("no"))
        })
        .await;
    let times = world.times_of("a");
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (failures, gap) in gaps.iter().take(13).enumerate() {
        let expected = (500_u64 << failures).min(300_000);
        assert!(*gap <= expected + 1 && *gap >= expected * 4 / 5, "gap {failures}: {gap}");
    }
    assert_eq!(gaps[13], 1000, "recheck after success");
    assert!(gaps[14] <= 501, "the first failure after a success waits the base delay");
}

#[tokio::test(start_paused = true)]
async fn the_earliest_due_time_wins_and_an_immediate_add_does_not_cancel_it() {
    let world = World::new(1);
    world.queue.add_after("a".into(), Duration::from_secs(30));
    world.queue.add_after("a".into(), Duration::from_secs(10));
    world.queue.add_after("a".into(), Duration::from_secs(20));
    world.queue.add("a".into());
    world
        .run(60, 1, async |key| {
            world.note(key);
            Outcome::Settled
        })
        .await;
    assert_eq!(world.times_of("a"), [0, 10_000]);
}

#[tokio::test(start_paused = true)]
async fn recheck_repeats_at_its_interval() {
    let world = World::new(1);
    world.add_all(&["a"]);
    world
        .run(65, 1, async |key| {
            world.note(key);
            Outcome::RecheckAfter(Duration::from_secs(20))
        })
        .await;
    assert_eq!(world.times_of("a"), [0, 20_000, 40_000, 60_000]);
}

#[tokio::test(start_paused = true)]
async fn a_poisoned_key_does_not_starve_the_others() {
    let world = World::new(1);
    world.add_all(&["poison", "a", "b", "c"]);
    world
        .run(600, 1, async |key| {
            if key == "poison" {
                // It also asks for itself all the time.
                world.queue.add(key);
                world.env.sleep(Duration::from_secs(1)).await;
                return Outcome::Failed(anyhow::anyhow!("always"));
            }
            world.note(key);
            Outcome::Settled
        })
        .await;
    assert_eq!(world.trace(), ["a", "b", "c"]);
    assert_eq!(world.times_of("c"), [1000], "behind one run of the poisoned key only");
}

#[tokio::test(start_paused = true)]
async fn stopping_finishes_what_runs_and_starts_nothing_new() {
    let world = World::new(1);
    world.add_all(&["long", "never"]);
    world
        .run(1, 1, async |key| {
            world.note(format!("{key} starts"));
            world.env.sleep(Duration::from_secs(10)).await;
            world.note(format!("{key} ends"));
            Outcome::Settled
        })
        .await;
    assert_eq!(world.trace(), ["long starts", "long ends"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_while_leadership_is_not_held() {
    let world = World::new(1);
    let (told, leadership) = Leadership::elected();
    let stopping = CancellationToken::new();
    world.add_all(&["a"]);
    let run = world.queue.clone().run(leadership, stopping.clone(), 1, async |key| {
        world.note(key);
        Outcome::RecheckAfter(Duration::from_secs(10))
    });
    let script = async {
        world.env.sleep(Duration::from_secs(100)).await;
        told.claim.send_replace(Claim::HeldUntil(world.env.instant() + Duration::from_secs(25)));
        // Nobody takes it back: the time alone must end it, as after a long pause of the process.
        world.env.sleep(Duration::from_secs(100)).await;
        told.claim.send_replace(Claim::HeldUntil(world.env.instant() + Duration::from_secs(5)));
        world.env.sleep(Duration::from_secs(1)).await;
        told.claim.send_replace(Claim::NotHeld);
        world.env.sleep(Duration::from_secs(100)).await;
        stopping.cancel();
    };
    futures::join!(async { run.await.unwrap() }, script);
    assert_eq!(world.times_of("a"), [100_000, 110_000, 120_000, 200_000]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_run_reaches_the_supervisor() {
    let env = Env::simulated(jiff::Timestamp::UNIX_EPOCH, 1);
    let queue: Queue<String> = Queue::new("fragile", &env, &Metrics::new());
    queue.add("a".into());
    let supervisor = crate::engine::supervisor::Supervisor::new();
    let spawner = supervisor.spawner();
    let run = queue.run(Leadership::always_held(), spawner.stopping(), 2, |key| async move {
        assert!(key.is_empty(), "bad key {key}");
        Outcome::Settled
    });
    spawner.spawn_graceful("fragile", run);
    let error = supervisor.run(std::future::pending()).await.unwrap_err();
    assert_eq!(error.to_string(), "task fragile panicked: bad key a");
}

/// A busy hour with failures, rechecks and additions that all draw on the same seed.
async fn busy_trace(seed: u64) -> Vec<(u64, String)> {
    let world = World::new(seed);
    for number in 0..40 {
        world.queue.add(format!("key-{number:02}"));
    }
    world
        .run(3600, 5, async |key| {
            world.note(&*key);
            let draw = world.env.random_unit();
            world.env.sleep(Duration::from_secs_f64(draw * 3.0)).await;
            if draw < 0.3 {
                return Outcome::Failed(anyhow::anyhow!("unlucky"));
            }
            if draw < 0.4 {
                world.queue.add(format!("key-{:02}", (draw * 100.0) as u32));
            }
            if draw < 0.9 {
                return Outcome::RecheckAfter(Duration::from_secs_f64(draw * 60.0));
            }
            Outcome::Settled
        })
        .await;
    world.trace.take()
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_trace_and_another_one_does_not() {
    let first = busy_trace(42).await;
    assert!(first.len() > 200, "a busy trace, not {}", first.len());
    assert_eq!(first, busy_trace(42).await);
    assert_ne!(first, busy_trace(43).await);
}
