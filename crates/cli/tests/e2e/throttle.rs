//! The cloud throttles as AWS publishes it: everything arrives, and refusals are not answered with
//! more calls.

use machinist_testbed::cloud::model::Faults;
use serde_json::json;

use crate::arena::{Arena, run};

const MACHINES: usize = 60;

#[test]
fn many_launches_at_once_keep_to_the_published_limits() {
    run(async {
        let arena = Arena::alone("throttle").await;
        let faults = Faults { throttling: true, ..Faults::default() };
        arena.cluster.cloud().add_faults(faults).unwrap();
        let _operator = arena.start_operator().await;
        let page = arena.page_of_the_books();
        arena.create_set("pool", i32::try_from(MACHINES).unwrap(), json!({})).await;
        arena.wait_running(MACHINES).await;
        let launches = arena.calls_since(page, "RunInstances");
        let refused = launches.iter().filter(|call| call.result != "ok").count();
        println!("{} launches for {MACHINES} machines, {refused} refused", launches.len());
        assert!(launches.len() * 10 <= MACHINES * 12, "{} launches", launches.len());
        assert_eq!(arena.launched().len(), MACHINES);
        // They go at once and in as many calls as they are.
        let page = arena.page_of_the_books();
        arena.scale("pool", 0).await;
        arena
            .eventually("all machines and instances are gone", async || {
                (arena.machines().await.is_empty() && arena.live().is_empty()).then_some(())
            })
            .await;
        let terminations = arena.calls_since(page, "TerminateInstances").len();
        assert!(terminations * 10 <= MACHINES * 12, "{terminations} terminations");
        arena.cluster.cloud().clear_fault_kind("throttling").unwrap();
        arena.check_ledger().await;
    });
}
