//! Is a machine whose instance is gone replaced, once, as policy wants it, and never too many at once?

use serde_json::json;

use super::bench::{Bench, WATCHED};

async fn watched() -> (Bench, String, Vec<String>) {
    let bench = Bench::new(json!({})).await;
    let (target, others) = bench.target();
    // Nothing is announced: the event is of no machine.
    bench.watch_cloud("nobody").await;
    bench.look_at_instances().await;
    (bench, target, others)
}

fn deletions(bench: &Bench) -> Vec<String> {
    let written = bench.writes();
    written.into_iter().filter(|line| line.starts_with("DELETE")).collect()
}

#[tokio::test(start_paused = true)]
async fn one_whose_instance_is_gone_is_deleted_once_and_it_is_said() {
    let (bench, target, _) = watched().await;
    bench.terminate(&target).await;
    bench.look_at_instances().await;
    let path = format!("DELETE /apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines/{target}");
    assert_eq!(deletions(&bench), [path]);
    bench.later().await;
    bench.look_at_instances().await;
    assert_eq!(deletions(&bench).len(), 1);
    assert_eq!(bench.effects(), [""; 0], "the instance is its provider's");
}

/// What is certainly gone is no choice, so the gate is not asked.
#[tokio::test(start_paused = true)]
async fn all_whose_instances_are_gone_are_deleted() {
    let (bench, target, others) = watched().await;
    for machine in others.iter().chain([&target]) {
        bench.terminate(machine).await;
    }
    bench.look_at_instances().await;
    assert_eq!(deletions(&bench).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_while_paused_without_the_lease_or_where_the_cloud_changed_its_mind() {
    let (bench, target, _) = watched().await;
    bench.pause(true);
    bench.terminate(&target).await;
    let before = bench.writes();
    bench.look_at_instances().await;
    bench.later().await;
    bench.look_at_instances().await;
    assert_eq!(bench.writes(), before, "what is paused is not even written to");

    let (mut bench, target, _) = watched().await;
    bench.terminate(&target).await;
    bench.revive(&target);
    bench.look_at_instances().await;
    assert_eq!(deletions(&bench), [""; 0], "what is asked by id runs");
    bench.lose_lease();
    bench.look_at_instances().await;
    assert_eq!(deletions(&bench), [""; 0]);
}

/// What nobody can ask may be anything: the instance may run there (Rule 9).
#[tokio::test(start_paused = true)]
async fn a_cloud_that_is_not_connected_to_says_nothing() {
    const UNREACHED: &str = "region=r,secret=ns/other,tag=demo";
    let (bench, target, others) = watched().await;
    bench.look_in(&[WATCHED, UNREACHED]).await;
    bench.forget(&target).await;
    bench.look_in(&[WATCHED, UNREACHED]).await;
    assert_eq!(bench.instance_of(&target), "", "it is not called missing");
    bench.look_at_instances().await;
    assert!(bench.instance_of(&target).contains("does not show instance"));

    // One that the cloud itself shows to be gone is gone, whatever others cannot say.
    bench.terminate(&others[0]).await;
    bench.look_in(&[WATCHED, UNREACHED]).await;
    assert_eq!(deletions(&bench).len(), 1);
}
