//! The operator is killed at each step of a replacement, and another one goes on from there.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use machinist_api::{MachineSet, MaintenancePhase};
use machinist_testbed::{
    cloud::model::{EventCode, HoldWhen, NewBreakpoint},
    operator_process::OperatorProcess,
};
use serde_json::json;
use tokio::time::timeout;

use super::{
    replaced::{BUDGET, assert_nothing_left, assert_replaced, pool_of_three},
    *,
};
use crate::arena::{Arena, run};

/// Generous: the cores may be busy with something else.
const UNTIL_HIT: Duration = Duration::from_secs(120);

/// What has been done at least when the operator is killed.
#[derive(Clone, Copy, Debug)]
enum Step {
    Known,
    Held,
    Phase(MaintenancePhase),
    Grown,
    Call(&'static str, HoldWhen),
    Joined,
    Cordoned,
    Evicted,
    Marked,
    Shrunk,
}

const STEPS: [Step; 17] = [
    Step::Known,
    Step::Held,
    Step::Phase(MaintenancePhase::Surging),
    Step::Grown,
    Step::Call("RunInstances", HoldWhen::Before),
    Step::Call("RunInstances", HoldWhen::After),
    Step::Joined,
    Step::Phase(MaintenancePhase::Draining),
    Step::Cordoned,
    Step::Evicted,
    Step::Phase(MaintenancePhase::Acting),
    Step::Marked,
    Step::Shrunk,
    Step::Call("TerminateInstances", HoldWhen::Before),
    Step::Call("TerminateInstances", HoldWhen::After),
    Step::Phase(MaintenancePhase::Verifying),
    Step::Phase(MaintenancePhase::Succeeded),
];

/// How far a phase is on the way.
fn rank(phase: MaintenancePhase) -> usize {
    let before = [MaintenancePhase::Pending, MaintenancePhase::Scheduled];
    [before.as_slice(), REPLACED.as_slice()]
        .concat()
        .iter()
        .position(|one| *one == phase)
        .unwrap_or_else(|| panic!("{phase:?}"))
}

/// Whether a step has been done, or what comes after it.
async fn is_done(arena: &Arena, subject: &Subject, step: Step) -> bool {
    let Some(object) = arena.maintenance(&subject.machine).await else { return false };
    let phase = object.status.as_ref().and_then(|status| status.phase).unwrap_or_default();
    let is_past = |of: MaintenancePhase| rank(phase) > rank(of);
    let set = arena.api::<MachineSet>().get("pool").await.unwrap();
    match step {
        Step::Known => true,
        Step::Held => object.metadata.finalizers.is_some_and(|names| !names.is_empty()),
        Step::Phase(wanted) => rank(phase) >= rank(wanted),
        Step::Grown => set.spec.replicas == Some(4) || is_past(MaintenancePhase::Surging),
        Step::Call(..) => true,
        Step::Joined => arena.machines().await.iter().all(|machine| {
            let status = machine.status.as_ref();
            status.is_some_and(|status| status.node_ref.is_some())
        }),
        Step::Cordoned => arena
            .node(&subject.node)
            .await
            .is_none_or(|node| node.spec.is_some_and(|spec| spec.unschedulable == Some(true))),
        Step::Evicted => {
            let here = ListParams::default()
                .labels("app=web")
                .fields(&format!("spec.nodeName={}", subject.node));
            let pods = arena.api::<Pod>().list(&here).await.unwrap().items;
            pods.iter().any(|pod| pod.metadata.deletion_timestamp.is_some())
                || is_past(MaintenancePhase::Draining)
        }
        Step::Marked => {
            let key = "machine.openshift.io/delete-machine";
            let machine =
                arena.api::<machinist_api::Machine>().get_opt(&subject.machine).await.unwrap();
            machine.is_none_or(|machine| {
                machine.metadata.annotations.is_some_and(|all| all.contains_key(key))
            })
        }
        Step::Shrunk => {
            set.spec.replicas == Some(3) && rank(phase) >= rank(MaintenancePhase::Acting)
        }
    }
}

/// Lets the operator live until a step is done, and kills it there. The next call that is a step of
/// its own is held meanwhile: however slow this test is to look, the operator does not run past it.
async fn live_until(arena: &Arena, operator: &mut OperatorProcess, subject: &Subject, at: usize) {
    let step = STEPS[at];
    let next_call = STEPS[at..].iter().find_map(|step| match step {
        Step::Call(action, when) => Some((*action, *when)),
        _ => None,
    });
    let barrier = next_call.map(|(action, when)| {
        let barrier = NewBreakpoint {
            action: action.to_owned(),
            nth: 1,
            when,
            mutating_only: false,
            access_key: Some(arena.access_key()),
        };
        arena.cluster.cloud().add_breakpoint(barrier).unwrap()
    });
    operator.restart().await.unwrap();
    match &barrier {
        Some(barrier) if matches!(step, Step::Call(..)) => {
            let hit = timeout(UNTIL_HIT, barrier.wait_until_hit()).await;
            hit.unwrap_or_else(|_| panic!("never came to {step:?}")).unwrap();
        }
        _ => {
            arena
                .eventually(&format!("{step:?}"), async || {
                    is_done(arena, subject, step).await.then_some(())
                })
                .await;
        }
    }
    operator.kill().await;
    if let Some(barrier) = barrier {
        barrier.remove().unwrap();
    }
    let phase = arena.maintenance_status(&subject.machine).await.phase;
    println!("{}: killed at {step:?}, in phase {phase:?}", arena.name);
}

#[test]
fn a_kill_at_each_step_of_a_replacement_loses_and_doubles_nothing() {
    run(async {
        let (arena, mut operator) = Arena::with_operator("mm-killed").await;
        arena.create_policy("nights", json!({"windows": [closed_window()]})).await;
        let subject = pool_of_three(&arena).await;
        arena.announce(&subject, EventCode::InstanceRetirement, from_now(MUCH_LATER));
        arena.wait_phase(&subject.machine, MaintenancePhase::Scheduled).await;
        let open = json!({"windows": [open_window()]});
        let planned = arena.planned_under(&subject.machine, "nights", open.clone()).await;
        assert_eq!(planned["standing"]["is"], "due", "{planned:#}");
        let (nodes, pods) = (arena.watch_nodes("pool").await, arena.watch_pods("web").await);
        operator.kill().await;
        arena.change_policy("nights", open).await;

        for at in 0..STEPS.len() {
            live_until(&arena, &mut operator, &subject, at).await;
        }
        operator.restart().await.unwrap();
        let status = arena.wait_over(&subject.machine, MaintenancePhase::Succeeded).await;
        assert_as_planned(&planned, &status, &REPLACED);
        nodes.assert_at_least(3);
        pods.assert_at_least(BUDGET);
        assert_replaced(&arena, &subject).await;
        assert_nothing_left(&arena).await;
    });
}
