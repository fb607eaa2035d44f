//! Is a machine whose instance is gone replaced, once, as policy wants it, and never too many at once?

use serde_json::json;

use super::bench::Bench;

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
    bench.look_at_instances().await;
    bench.later().await;
    bench.look_at_instances().await;
    let told = bench.instance_of(&target);
    assert!(told.contains("nothing is done: Cluster c1 is paused"), "{told}");
    assert_eq!(deletions(&bench), [""; 0]);

    let (mut bench, target, _) = watched().await;
    bench.terminate(&target).await;
    bench.revive(&target);
    bench.look_at_instances().await;
    assert_eq!(deletions(&bench), [""; 0], "what is asked by id runs");
    bench.lose_lease();
    bench.look_at_instances().await;
    assert_eq!(deletions(&bench), [""; 0]);
}
