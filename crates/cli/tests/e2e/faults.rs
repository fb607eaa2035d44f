//! The operator is killed at random moments, the cloud fails: nothing doubles, nothing is lost.

use std::{fs::File, io::Read, time::Duration};

use machinist_api::Machine;
use machinist_testbed::cloud::model::{CapacityShortage, ErrorFault, Faults, TimeoutFault};
use serde_json::json;
use tokio::time::sleep;

use crate::arena::{Arena, name_of, run};

/// Twelve pauses of up to two seconds, different in each run; what must hold does not differ.
fn random_moments() -> Vec<u64> {
    let mut bytes = [0; 24];
    File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    bytes.chunks(2).map(|pair| u64::from(u16::from_le_bytes([pair[0], pair[1]])) % 2000).collect()
}

#[test]
fn kills_at_random_moments_double_and_lose_nothing() {
    run(async {
        let (arena, mut operator) = Arena::with_operator("kills").await;
        arena.create_set("pool", 4, json!({})).await;
        let moments = random_moments();
        println!("kills after so many milliseconds: {moments:?}");
        let mut moments = moments.into_iter().cycle();
        for replicas in [6, 2, 5] {
            for _ in 0..3 {
                sleep(Duration::from_millis(moments.next().unwrap())).await;
                operator.kill().await;
                operator.restart().await.unwrap();
            }
            arena.scale("pool", replicas).await;
            sleep(Duration::from_millis(moments.next().unwrap())).await;
            operator.kill().await;
            operator.restart().await.unwrap();
            arena.wait_running(usize::try_from(replicas).unwrap()).await;
            arena.check_ledger().await;
        }
        let victim = name_of(&arena.machines().await[0]);
        arena.delete_machine(&victim).await;
        operator.kill().await;
        operator.restart().await.unwrap();
        arena.wait_running(5).await;
        arena.scale("pool", 0).await;
        operator.kill().await;
        operator.restart().await.unwrap();
        arena
            .eventually("everything is gone", async || {
                (arena.machines().await.is_empty() && arena.live().is_empty()).then_some(())
            })
            .await;
        arena.check_ledger().await;
    });
}

#[test]
fn a_failing_cloud_delays_and_never_fails_a_machine() {
    run(async {
        let (arena, _operator) = Arena::with_operator("cloud-faults").await;
        let error = |action: &str, code: &str, count| ErrorFault {
            action: action.to_owned(),
            code: code.to_owned(),
            message: None,
            status: None,
            count: Some(count),
            probability: 1.0,
            effect: false,
            access_key: Some(arena.access_key()),
        };
        // The timeout strikes whoever comes first; other tests must bear it as well.
        let faults = Faults {
            errors: vec![
                error("DescribeSubnets", "Unavailable", 2),
                error("RunInstances", "VcpuLimitExceeded", 1),
                error("RunInstances", "RequestLimitExceeded", 1),
            ],
            timeouts: vec![TimeoutFault {
                action: "RunInstances".to_owned(),
                after: jiff::SignedDuration::ZERO,
                count: Some(1),
                probability: 1.0,
                effect: true,
            }],
            capacity: vec![CapacityShortage {
                instance_type: Some("c5.large".to_owned()),
                availability_zone: None,
                available: 0,
            }],
            ..Faults::default()
        };
        arena.cluster.cloud().add_faults(faults).unwrap();
        arena.create_set("pool", 3, json!({})).await;
        let scarce = json!({"spec": {"providerSpec": {"value": {"instanceType": "c5.large"}}}});
        arena.create_machine("scarce", scarce).await;
        arena.wait_event("scarce", "FailedCreate", "c5.large").await;
        arena
            .eventually("the pool is Running all the same", async || {
                let machines = arena.machines().await;
                let running = machines
                    .iter()
                    .filter(|machine| {
                        let phase = machine.status.as_ref().and_then(|it| it.phase.as_deref());
                        phase == Some("Running")
                    })
                    .count();
                (running == 3).then_some(())
            })
            .await;
        let waiting = arena.api::<Machine>().get("scarce").await.unwrap().status.unwrap();
        assert_eq!(waiting.phase.as_deref(), Some("Provisioning"), "capacity is not terminal");
        arena.cluster.cloud().clear_fault_kind("capacity").unwrap();
        arena.wait_running(4).await;
        arena.check_ledger().await;
    });
}
