//! Keys are rotated while the operator runs: the old ones are refused, the secret gets new ones, and
//! machines go on.

use k8s_openapi::api::core::v1::Secret;
use machinist_testbed::cloud::model::{ChangedBy, Faults};
use serde_json::json;

use crate::{
    arena::{Arena, run},
    seen::Subject,
};

#[test]
fn rotated_keys_are_taken_up_without_a_restart() {
    run(async {
        let (arena, operator) = Arena::with_operator("rotation").await;
        let annotations = json!({"metadata": {"annotations": {
            "machinist.dev/stopped-grace-period": "0s",
        }}});
        arena.create_set("pool", 2, annotations).await;
        let machines = arena.wait_running(2).await;
        let process = operator.process().id();

        let old_key = arena.access_key();
        let faults = Faults { refused_access_keys: [old_key.clone()].into(), ..Faults::default() };
        arena.cluster.cloud().add_faults(faults).unwrap();
        arena.create_machine("waiting", json!({})).await;
        let failed = arena.wait_event("waiting", "FailedCreate", "AuthFailure");
        let unknown = arena.wait_event("waiting", "FailedUpdate", "AuthFailure");
        tokio::select! {
            _ = failed => {}
            _ = unknown => {}
        }
        for machine in &machines {
            let columns = arena.machine_columns(machine.metadata.name.as_deref().unwrap()).await;
            assert_eq!(columns, "Running running", "a cloud that refuses says nothing of machines");
        }

        let keys = json!({"stringData": {
            "aws_access_key_id": format!("{old_key}NEW"),
            "aws_secret_access_key": "rotated",
        }});
        arena.patch::<Secret>("aws-cloud-credentials", keys).await;
        arena.wait_running(3).await;
        // The view goes on as well: drift is noticed and repaired.
        let subject = Subject::of(&machines[0]);
        arena.cluster.cloud().stop(&subject.instance, ChangedBy::User).unwrap();
        arena.wait_event(&subject.machine, "StoppedByUser", &subject.instance).await;
        arena.wait_true(&subject.machine, "InstanceRunning").await;
        arena.delete_machine("waiting").await;
        arena.wait_gone("waiting").await;
        assert_eq!(operator.process().id(), process);
        assert!(operator.process().is_running());
        arena.cluster.cloud().clear_fault_kind("refusedAccessKeys").unwrap();
        arena.check_ledger().await;
    });
}
