use std::time::Duration;

use super::Reach;
use crate::{
    cluster_api::{
        context::NodeLook,
        lab::{Lab, cluster},
    },
    engine::{store::ObjectKey, testing::Fault},
};

fn why(lab: &Lab, key: &ObjectKey) -> String {
    match lab.parts.workloads.reach(key) {
        Reach::Up { .. } => "up".to_owned(),
        Reach::Down { why, .. } => why,
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_falls_silent_is_noticed_within_half_a_minute_and_found_again() {
    let lab = Lab::new();
    lab.put_node("n", "foo://n");
    lab.connect().await;
    lab.workload.fail(|_, path| if path == "/" { Fault::Silence } else { Fault::None });
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(why(&lab, &cluster()), "no answer within 5s");
    lab.workload.fail(|_, _| Fault::None);
    lab.wait("it is reached again", || lab.is_up()).await;
}

/// It gives signs of life, so it counts as reached; what it last said of its Nodes may be the past all the same.
#[tokio::test(start_paused = true)]
async fn nodes_that_nobody_tells_of_any_more_are_doubted_until_somebody_does() {
    let lab = Lab::new();
    lab.put_node("n", "foo://n");
    lab.connect().await;
    let doubt = || lab.context.nodes.doubt(&cluster());
    assert_eq!(doubt(), None);
    lab.workload.fail(|_, path| if path == "/" { Fault::None } else { Fault::Code(500) });
    lab.workload.cut_watches();
    lab.wait("the doubt", || doubt().is_some()).await;
    assert!(lab.is_up());
    assert_eq!(doubt().unwrap(), "the watch of the nodes of Cluster ns/c is interrupted");
    assert!(matches!(lab.context.nodes.look(&cluster(), "n"), NodeLook::Present(_)));
    lab.workload.fail(|_, _| Fault::None);
    lab.wait("it is told of again", || doubt().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_kubeconfig_says_so_and_costs_the_others_nothing() {
    let lab = Lab::new();
    let other = ObjectKey::new("ns", "other");
    lab.parts.workloads.begin(&other);
    lab.connect().await;
    lab.wait("why not", || why(&lab, &other).contains("other-kubeconfig does not exist")).await;
    assert!(lab.is_up());
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_refused_are_read_anew_at_once() {
    let lab = Lab::new();
    lab.connect().await;
    lab.workload.fail(|_, path| if path == "/" { Fault::Code(401) } else { Fault::None });
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert!(why(&lab, &cluster()).contains("does not know us"), "{}", why(&lab, &cluster()));
    let asked = |lab: &Lab| {
        let log = &lab.server.lock().log;
        log.iter().filter(|line| line.ends_with("/secrets/c-kubeconfig")).count()
    };
    let before = asked(&lab);
    lab.wait("the kubeconfig is read anew", || asked(&lab) > before).await;
}
