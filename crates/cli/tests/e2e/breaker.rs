//! Half of a pool is in trouble at once: what is certainly gone is replaced, launches paced; what is
//! a choice of ours is held, says so, and goes on when the pool recovers or a person approves.

use machinist_api::{ConditionStatus, Machine, MachineSet};
use machinist_testbed::cloud::model::{ChangedBy, HideRequest, Impair};
use serde_json::{Value, json};

use crate::{
    arena::{Arena, run},
    seen::{Subject, record_of},
};

const POOL: usize = 20;
const HALF: usize = 10;
const RUNNING: &str = "InstanceRunning";
const STILL_READY: &str = "its node is still Ready";
/// How far apart the first and the last of the pool's launches are at least, where they are paced:
/// five at once and two a second, growing, take five seconds for twenty and one for ten.
const LAUNCHES_TAKE: jiff::SignedDuration = jiff::SignedDuration::from_secs(2);
const RELAUNCHES_TAKE: jiff::SignedDuration = jiff::SignedDuration::from_millis(300);

async fn pool_of_twenty(arena: &Arena, annotations: Value) -> Vec<Subject> {
    let overrides = json!({"metadata": {"annotations": annotations}});
    arena.create_set("pool", i32::try_from(POOL).unwrap(), overrides).await;
    arena.wait_running(POOL).await;
    arena.wait_set_columns("pool", "20 20 20 20").await;
    let machines = arena.machines().await;
    for machine in &machines {
        arena.wait_true(machine.metadata.name.as_deref().unwrap(), RUNNING).await;
    }
    machines.iter().map(Subject::of).collect()
}

async fn annotate_pool(arena: &Arena, key: &str, value: Value) {
    arena.patch::<MachineSet>("pool", json!({"metadata": {"annotations": {key: value}}})).await;
}

/// Waits until each of these says on itself that and why it is held, and an event and the metric say
/// so too.
async fn wait_held(arena: &Arena, subjects: &[Subject], words: &str) {
    for subject in subjects {
        arena.wait_said(&subject.machine, RUNNING, words).await;
        let said = arena.wait_said(&subject.machine, RUNNING, "its replacement is held").await;
        let message = said.message.unwrap();
        let says_what_to_do = message.contains("machinist.dev/approved-until");
        assert!(says_what_to_do || words == STILL_READY, "{message}");
        arena.wait_event(&subject.machine, "DisruptionHeld", "its replacement is held").await;
    }
    arena
        .eventually("the metric counts what is held", async || {
            (arena.waiting_for("DisruptionHeld").await == subjects.len() as f64).then_some(())
        })
        .await;
}

/// Ends an impairment.
fn healthy() -> Impair {
    Impair { impaired: false, ..Impair::default() }
}

fn uids(machines: &[Machine]) -> Vec<String> {
    machines.iter().filter_map(|machine| machine.metadata.uid.clone()).collect()
}

/// All of these were replaced, the others were not, and the pool is whole.
async fn wait_replaced(arena: &Arena, replaced: &[Subject], kept: &[Subject]) -> Vec<Subject> {
    for subject in replaced {
        arena.wait_gone(&subject.machine).await;
    }
    let machines = arena.wait_running(POOL).await;
    let uids = uids(&machines);
    assert!(kept.iter().all(|subject| uids.contains(&subject.uid)), "nobody else was replaced");
    arena.wait_set_columns("pool", "20 20 20 20").await;
    arena.check_ledger().await;
    machines.iter().map(Subject::of).collect()
}

/// How far apart the first and the last launch since a page of the books are.
fn launches_span(arena: &Arena, page: u64) -> jiff::SignedDuration {
    let launches = arena.calls_since(page, "RunInstances");
    let (first, last) = (launches.first().unwrap(), launches.last().unwrap());
    last.time.duration_since(first.time)
}

#[test]
fn half_of_a_pool_vanishes_is_stopped_by_users_or_is_certainly_gone() {
    run(async {
        let (arena, _operator) = Arena::with_operator("breaker-gone").await;
        let cloud = arena.cluster.cloud();
        let page = arena.page_of_the_books();
        // All stops are recorded before the first is acted on.
        let annotations = json!({"machinist.dev/stopped-grace-period": "10s"});
        let pool = pool_of_twenty(&arena, annotations).await;
        assert!(launches_span(&arena, page) >= LAUNCHES_TAKE, "launches are paced");

        // Reads no longer show half of them. That proves nothing, and nothing is done.
        let (lost, others) = pool.split_at(HALF);
        let page = arena.page_of_the_books();
        for subject in lost {
            cloud.hide(&subject.instance, &HideRequest::default()).unwrap();
        }
        for subject in lost {
            arena.wait_event(&subject.machine, "Vanished", "it is looked for until").await;
        }
        wait_held(&arena, lost, STILL_READY).await;
        // Their Nodes do not answer either: that half of a pool died at once is hard to believe.
        for subject in lost {
            cloud.impair(&subject.instance, &Impair::default()).unwrap();
        }
        wait_held(&arena, lost, "10 of 20 machines of pool pool are out of work").await;
        arena.wait_set_columns("pool", "20 20 10 10").await;
        assert_eq!(arena.changes_since(page), 0, "nothing is launched or terminated");
        assert_eq!(arena.machines().await.len(), POOL, "nothing is deleted");
        assert_eq!(arena.drift("Vanished").await, HALF as f64);
        for subject in lost {
            cloud.impair(&subject.instance, &healthy()).unwrap();
            cloud.show(&subject.instance).unwrap();
        }
        for subject in lost {
            arena.wait_event(&subject.machine, "Update", "is there after all").await;
            arena.wait_true(&subject.machine, RUNNING).await;
            arena.wait_machine_columns(&subject.machine, "Running running").await;
        }
        arena.wait_running(POOL).await;
        arena.wait_set_columns("pool", "20 20 20 20").await;
        assert_eq!(arena.changes_since(page), 0, "nothing was launched or terminated");

        // Users stop half of them: they mean it.
        for subject in lost {
            cloud.stop(&subject.instance, ChangedBy::User).unwrap();
        }
        for subject in lost {
            // A look in between may see nine of them.
            let all = "users stopped 10 machines of pool pool";
            let said = arena.wait_said(&subject.machine, RUNNING, all).await;
            let message = said.message.unwrap();
            assert!(message.contains("which looks intended"), "{message}");
            assert_eq!(said.reason.as_deref(), Some("StoppedByUser"));
        }
        assert_eq!(arena.changes_since(page), 0, "nothing is started");
        for subject in lost {
            cloud.start(&subject.instance).unwrap();
        }
        for subject in lost {
            arena.wait_event(&subject.machine, "Started", &subject.instance).await;
        }
        arena.wait_running(POOL).await;
        arena.wait_set_columns("pool", "20 20 20 20").await;
        assert_eq!(arena.changes_since(page), 0, "nothing was started");

        // Half of them are gone, and the cloud says so of each: that is no choice of ours.
        let page = arena.page_of_the_books();
        for subject in lost {
            cloud.terminate(&subject.instance, ChangedBy::User).unwrap();
        }
        wait_replaced(&arena, lost, others).await;
        assert_eq!(arena.launched().len(), POOL + HALF, "one launch for each");
        assert_eq!(arena.drift("TerminatedByUser").await, HALF as f64);
        assert!(launches_span(&arena, page) >= RELAUNCHES_TAKE, "launches are paced");
        for subject in lost {
            assert_eq!(arena.times_told(&subject.machine, "Replacing").await, 1);
        }
    });
}

#[test]
fn half_of_a_pool_is_not_ready_or_stopped_and_to_be_replaced() {
    run(async {
        let (arena, _operator) = Arena::with_operator("breaker-stopped").await;
        let cloud = arena.cluster.cloud();
        let annotations = json!({
            "machinist.dev/on-stopped": "Replace",
            "machinist.dev/stopped-grace-period": "5s",
        });
        let pool = pool_of_twenty(&arena, annotations).await;

        // Half of the Nodes are NotReady, and one machine more is stopped: that one waits.
        let page = arena.page_of_the_books();
        let (hung, others) = pool.split_at(HALF);
        for subject in hung {
            cloud.impair(&subject.instance, &Impair::default()).unwrap();
        }
        for subject in hung {
            arena.wait_node_status(&subject.node, "NotReady").await;
        }
        let (stopped, others) = others.split_at(1);
        cloud.stop(&stopped[0].instance, ChangedBy::Provider).unwrap();
        wait_held(&arena, stopped, "11 of 20 machines of pool pool").await;
        assert_eq!(arena.changes_since(page), 0, "nothing is done");
        for subject in hung {
            cloud.impair(&subject.instance, &healthy()).unwrap();
        }
        let kept: Vec<_> = hung.iter().chain(others).cloned().collect();
        let pool = wait_replaced(&arena, stopped, &kept).await;

        // Half is stopped. When three are started again by hand, the rest is replaced.
        let page = arena.page_of_the_books();
        let (stopped, others) = pool.split_at(HALF);
        for subject in stopped {
            cloud.stop(&subject.instance, ChangedBy::User).unwrap();
        }
        wait_held(&arena, stopped, "10 of 20 machines of pool pool").await;
        assert_eq!(arena.changes_since(page), 0, "nothing is done");
        let (started, replaced) = stopped.split_at(3);
        for subject in started {
            cloud.start(&subject.instance).unwrap();
        }
        let kept: Vec<_> = started.iter().chain(others).cloned().collect();
        let pool = wait_replaced(&arena, replaced, &kept).await;
        assert_eq!(arena.calls_since(page, "RunInstances").len(), replaced.len());
        assert_eq!(arena.calls_since(page, "StartInstances").len(), 0);

        // Half is stopped again, and a person approves.
        let page = arena.page_of_the_books();
        let (stopped, others) = pool.split_at(HALF);
        for subject in stopped {
            cloud.stop(&subject.instance, ChangedBy::User).unwrap();
        }
        wait_held(&arena, stopped, "10 of 20 machines of pool pool").await;
        assert_eq!(arena.changes_since(page), 0, "nothing is done");
        annotate_pool(&arena, "machinist.dev/approved-until", json!("2100-01-01T00:00:00Z")).await;
        wait_replaced(&arena, stopped, others).await;
        assert_eq!(arena.calls_since(page, "RunInstances").len(), HALF);
        for machine in arena.machines().await {
            let running = machinist_api::condition::find(
                &machine.status.as_ref().unwrap().conditions,
                RUNNING,
            );
            assert_eq!(running.unwrap().status, ConditionStatus::True);
            assert!(record_of(&machine).drift.is_none());
        }
    });
}
