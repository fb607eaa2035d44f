//! MachineHealthChecks: who is unhealthy is replaced, unless too many are. H-1 and H-2 of the
//! original's acceptance suite, and fifty machines of which twenty fail at once.

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use machinist_api::{ConditionStatus, Machine, MachineHealthCheck, condition};
use machinist_testbed::cloud::model::Impair;
use serde_json::{Value, json};

use crate::{
    arena::{Arena, run},
    seen::Subject,
};

const CUSTOM: &str = "MachineHealthCheckE2E";

impl Arena {
    async fn create_check(&self, name: &str, max_unhealthy: Value, bad: Value) {
        self.create::<MachineHealthCheck>(json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "MachineHealthCheck",
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": self.labels("pool")},
                "maxUnhealthy": max_unhealthy,
                "unhealthyConditions": [bad],
            },
        }))
        .await;
    }

    /// Waits for `RemediationAllowed` of a check to be so.
    async fn wait_remediation(&self, check: &str, allowed: ConditionStatus) -> String {
        self.eventually(&format!("RemediationAllowed of {check} is {allowed:?}"), async || {
            let found = self.api::<MachineHealthCheck>().get(check).await.unwrap();
            let status = found.status?;
            let found = condition::find(&status.conditions, "RemediationAllowed")?;
            (found.status == allowed).then(|| found.message.clone().unwrap_or_default())
        })
        .await
    }

    async fn subjects(&self, count: usize) -> Vec<Subject> {
        self.wait_running(count).await.iter().map(Subject::of).collect()
    }
}

async fn set_custom_condition(arena: &Arena, node: &str) {
    let now = jiff::Timestamp::now().to_string();
    let condition = json!({
        "type": CUSTOM,
        "status": "True",
        "reason": "TestedHere",
        "message": "set by a test",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    });
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    let nodes: Api<Node> = Api::all(arena.client.clone());
    nodes.patch_status(node, &PatchParams::default(), &patch).await.unwrap();
}

#[test]
fn h_1_an_unhealthy_machine_is_replaced_and_h_2_not_more_than_are_allowed() {
    run(async {
        let (arena, _operator) = Arena::with_operator("health").await;
        arena.create_set("pool", 2, json!({})).await;
        let before = arena.subjects(2).await;
        let bad = json!({"type": CUSTOM, "status": "True", "timeout": "1s"});
        arena.create_check("check", json!(1), bad).await;
        arena.wait_remediation("check", ConditionStatus::True).await;

        let [unhealthy, healthy] = before.as_slice() else { panic!("{before:?}") };
        set_custom_condition(&arena, &unhealthy.node).await;
        arena.wait_event(&unhealthy.machine, "MachineDeleted", &unhealthy.machine).await;
        arena.wait_gone(&unhealthy.machine).await;
        let after = arena.subjects(2).await;
        assert!(after.iter().any(|one| one.uid == healthy.uid), "the healthy one is untouched");
        let remediated = format!(
            "mapi_machinehealthcheck_remediation_success_total{{name=\"check\",namespace=\"{}\"}}",
            arena.name
        );
        assert!((arena.metric(&remediated).await - 1.0).abs() < f64::EPSILON);

        // H-2: two of two are more than one.
        for subject in &after {
            set_custom_condition(&arena, &subject.node).await;
        }
        let words = "Remediation restricted due to exceeded number of unhealthy machines";
        arena.wait_event("check", "RemediationRestricted", words).await;
        let said = arena.wait_remediation("check", ConditionStatus::False).await;
        assert!(said.contains("total: 2, unhealthy: 2, maxUnhealthy: 1"), "{said}");
        arena.let_it_look(5).await;
        for subject in &after {
            let machine = arena.machine(&subject.machine).await;
            assert!(machine.metadata.deletion_timestamp.is_none(), "{}", subject.machine);
        }
        arena.check_ledger().await;
    });
}

fn set_hung(arena: &Arena, subjects: &[Subject], hung: bool) {
    for subject in subjects {
        let impair = Impair { impaired: hung, ..Impair::default() };
        arena.cluster.cloud().impair(&subject.instance, &impair).unwrap();
    }
}

#[test]
fn twenty_of_fifty_go_not_ready_at_once() {
    run(async {
        // Alone: the clock of a check runs while the cores are busy.
        let arena = Arena::alone("health-fifty").await;
        let _operator = arena.start_operator().await;
        arena.create_set("pool", 50, json!({})).await;
        let all = arena.subjects(50).await;
        let failing = &all[..20];
        // Longer than the twenty take to be noticed one after the other.
        let bad = json!({"type": "Ready", "status": "Unknown", "timeout": "20s"});
        arena.create_check("check", json!("39%"), bad).await;
        arena.wait_remediation("check", ConditionStatus::True).await;

        // 39 % of fifty are nineteen.
        set_hung(&arena, failing, true);
        arena.wait_event("check", "RemediationRestricted", "Remediation restricted").await;
        let said = arena.wait_remediation("check", ConditionStatus::False).await;
        assert!(said.contains("total: 50, unhealthy: 20, maxUnhealthy: 39%"), "{said}");
        // The last of them have timed out too, and nothing changes any more.
        arena.let_it_look(30).await;
        let writes = arena.writes_during(10).await;
        assert!(writes.is_empty(), "while nothing changes: {writes:?}");
        assert_eq!(arena.times_told("check", "RemediationRestricted").await, 1);
        let short_circuit = format!(
            "mapi_machinehealthcheck_short_circuit{{name=\"check\",namespace=\"{}\"}}",
            arena.name
        );
        assert!((arena.metric(&short_circuit).await - 1.0).abs() < f64::EPSILON);
        let uids = |machines: &[Machine]| -> Vec<String> {
            let mut uids: Vec<_> =
                machines.iter().map(|one| one.metadata.uid.clone().unwrap()).collect();
            uids.sort();
            uids
        };
        let mut before: Vec<String> = all.iter().map(|one| one.uid.clone()).collect();
        before.sort();
        assert_eq!(uids(&arena.machines().await), before, "none was remediated");

        // They recover, and the check with them: once the first has, nineteen are few enough, and
        // those of them that are not back yet are replaced.
        set_hung(&arena, failing, false);
        arena.wait_remediation("check", ConditionStatus::True).await;
        arena
            .eventually("no Machine is on its way out", async || {
                let machines = arena.machines().await;
                machines.iter().all(|one| one.metadata.deletion_timestamp.is_none()).then_some(())
            })
            .await;
        let all = arena.subjects(50).await;
        let (failing, others) = all.split_at(20);
        assert!(arena.metric(&short_circuit).await.abs() < f64::EPSILON);

        // 40 % of fifty are twenty.
        arena.patch::<MachineHealthCheck>("check", json!({"spec": {"maxUnhealthy": "40%"}})).await;
        set_hung(&arena, failing, true);
        for subject in failing {
            arena.wait_gone(&subject.machine).await;
        }
        let after = uids(&arena.wait_running(50).await);
        assert!(others.iter().all(|one| after.contains(&one.uid)), "exactly those twenty");
        arena.check_ledger().await;
    });
}
