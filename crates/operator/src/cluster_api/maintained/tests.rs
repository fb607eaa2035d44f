//! Is a machine of Cluster API replaced within its owner's surge, exactly the one that is meant, whatever happens in between?
//!
//! The planner, the maintenance controller and Cluster API's controllers of deployments and sets are the real ones; the
//! provider, the Nodes and the deletion of a Machine are played.

mod bench;
mod drifting;
mod namesakes;
mod occupied;
mod waking;

use machinist_api::MaintenancePhase::{
    Acting, Cancelled, Pending, Scheduled, Succeeded, Surging, Verifying,
};
use serde_json::json;

use self::bench::Bench;

#[tokio::test(start_paused = true)]
async fn a_requested_replacement_makes_a_machine_more_and_then_exactly_the_one_meant_goes() {
    let mut bench = Bench::new(json!({})).await;
    let (target, others) = bench.target();
    bench.request(&target, "Replace: new kernel");
    bench.until_phase(Succeeded).await;
    bench.rounds(3).await;
    assert_eq!(bench.phases, [Scheduled, Surging, Acting, Verifying, Succeeded]);
    assert!(bench.fewest_ready >= 3, "{} were ready", bench.fewest_ready);
    assert_eq!(bench.most, 4, "one above the size");
    let left = bench.machines();
    assert!(!left.contains(&target) && others.iter().all(|one| left.contains(one)), "{left:?}");
    assert_eq!(left.len(), 3);
    bench.assert_nothing_left();
    let object = bench.object().unwrap();
    assert_eq!(object.spec.machinelink, format!("ns/{target}"));
    assert_eq!(object.metadata.name, Some(format!("mm-ns.{target}")));
    let written = bench.writes();
    let marks = format!("PATCH /apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines/{target}");
    assert!(written.contains(&marks), "{written:?}");
    assert!(!written.iter().any(|line| line.contains("machine.openshift.io")), "{written:?}");
}

#[tokio::test(start_paused = true)]
async fn without_surge_the_machine_goes_first_and_its_owner_makes_another() {
    let mut bench = Bench::new(json!({ "maxSurge": 0, "maxUnavailable": 1 })).await;
    let (target, others) = bench.target();
    bench.request(&target, "Replace");
    bench.until_phase(Succeeded).await;
    assert_eq!(bench.phases, [Scheduled, Acting, Verifying, Succeeded]);
    assert_eq!((bench.most, bench.fewest_ready), (3, 2));
    let left = bench.machines();
    assert!(!left.contains(&target) && others.iter().all(|one| left.contains(one)), "{left:?}");
    let written = bench.writes();
    let deletion = format!("DELETE /apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines/{target}");
    assert_eq!(written.iter().filter(|line| **line == deletion).count(), 1);
    bench.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_node_tells_of_is_a_reason_and_one_of_the_control_plane_is_left_alone() {
    let mut bench = Bench::new(json!({})).await;
    let (target, _) = bench.target();
    bench.announce(&target);
    bench.announce("cp");
    bench.until("the object", |bench| bench.object_of("cp").is_some()).await;
    bench.until_phase(Succeeded).await;
    bench.rounds(3).await;
    assert!(!bench.machines().contains(&target));
    assert!(bench.is_there("cp"), "it is not ours to replace");
    let status = bench.object_of("cp").unwrap().status.unwrap();
    let wait = &status.plan.unwrap().waits_on[0];
    assert_eq!(wait.reason, "NoAction");
    assert!(wait.message.contains("KubeadmControlPlane kcp"), "{}", wait.message);
}

#[tokio::test(start_paused = true)]
async fn an_event_of_a_cloud_that_is_looked_at_is_a_reason_and_nothing_is_done_to_the_instance() {
    let mut bench = Bench::new(json!({})).await;
    let (target, _) = bench.target();
    bench.watch_cloud(&target).await;
    bench.until_phase(Succeeded).await;
    assert_eq!(bench.phases, [Scheduled, Surging, Acting, Verifying, Succeeded]);
    let object = bench.object().unwrap();
    assert_eq!(object.spec.eventcode.as_deref(), Some("instance-retirement"));
    assert_eq!(object.spec.machineid, format!("i-{target}"));
    assert!(!bench.machines().contains(&target));
    assert_eq!(bench.effects(), [""; 0], "its provider ends it");
}

#[tokio::test(start_paused = true)]
async fn a_paused_cluster_stops_what_was_begun_and_a_withdrawn_request_is_undone() {
    let mut bench = Bench::new(json!({})).await;
    let (target, _) = bench.target();
    bench.request(&target, "Replace");
    bench.until_phase(Surging).await;
    bench.pause(true);
    bench.rounds(5).await;
    let (before, machines) = (bench.writes().len(), bench.machines());
    bench.rounds(10).await;
    assert_eq!((bench.writes().len(), bench.machines()), (before, machines), "nothing moves");
    let wait = bench.status().plan.unwrap().waits_on[0].clone();
    assert_eq!(wait.reason, "ReasonDoubtful");
    assert!(wait.message.contains("Cluster c1 is paused"), "{}", wait.message);
    bench.pause(false);
    bench.withdraw(&target);
    bench.until_phase(Cancelled).await;
    bench.rounds(5).await;
    assert!(bench.machines().contains(&target));
    assert_eq!(bench.machines().len(), 3);
    bench.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_of_cluster_api_nothing_is_begun() {
    let mut bench = Bench::new(json!({})).await;
    let (target, _) = bench.target();
    bench.lose_lease();
    bench.request(&target, "Replace");
    bench.rounds(10).await;
    assert_eq!(bench.status().phase, Some(Pending));
    let wait = bench.status().plan.unwrap().waits_on[0].clone();
    assert!(wait.message.contains("lease of Cluster API's core manager"), "{}", wait.message);
    assert!(bench.machines().contains(&target));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_between_any_two_writes_changes_nothing_about_the_end() {
    let mut write = 1;
    loop {
        let mut bench = Bench::new(json!({})).await;
        let (target, _) = bench.target();
        bench.request(&target, "Replace");
        bench.die_before(write);
        bench.until_phase(Succeeded).await;
        bench.rounds(3).await;
        assert!(bench.fewest_ready >= 3, "before write {write}: {}", bench.fewest_ready);
        assert_eq!(bench.machines().len(), 3, "before write {write}");
        assert!(!bench.machines().contains(&target), "before write {write}");
        bench.assert_nothing_left();
        if bench.deaths == 0 {
            break;
        }
        write += 1;
    }
    assert!(write > 10, "a replacement has more than {write} writes");
}
