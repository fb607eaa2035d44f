//! What is wrong is said on the object, by field; nobody else is held up; corrected, it converges.

use kube::api::PostParams;
use machinist_api::{Machine, MachineSet, condition};
use serde_json::json;

use crate::arena::{Arena, run};

#[test]
fn faults_are_named_on_the_object_and_healed_by_a_correction() {
    run(async {
        let (arena, _operator) = Arena::with_operator("bad-input").await;

        // A selector that does not match its own template.
        let selector = json!({"spec": {"selector": {"matchLabels": {"pool": "other"}}}});
        arena.create_set("mismatch", 1, selector).await;
        // No cluster label.
        let unlabelled =
            json!({"metadata": {"labels": {"machine.openshift.io/cluster-api-cluster": null}}});
        arena.create_machine("unlabelled", unlabelled).await;
        // A provider that nobody knows.
        let unknown = json!({"spec": {"providerSpec": {"value": {"kind": "MysteryProviderSpec"}}}});
        arena.create_machine("unknown-kind", unknown).await;
        // A subnet that does not exist.
        let subnet = json!({"spec": {"providerSpec": {
            "value": {"subnet": {"id": "subnet-0123456789abcdef0"}},
        }}});
        arena.create_machine("no-subnet", subnet).await;
        // No providerSpec at all.
        let empty = json!({"spec": {"providerSpec": {"value": null}}});
        arena.create_machine("no-spec", empty).await;

        // The API server itself refuses what is not an object, and names the field.
        let mut text = json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": {"name": "text", "labels": arena.labels("none")},
            "spec": {"providerSpec": {"value": "text"}},
        });
        let refused = arena
            .api::<Machine>()
            .create(&PostParams::default(), &serde_json::from_value(text.take()).unwrap())
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains("spec.providerSpec.value"), "{refused}");

        for (machine, field) in [
            ("unlabelled", "metadata.labels[machine.openshift.io/cluster-api-cluster]"),
            ("unknown-kind", "spec.providerSpec.value.kind"),
            ("no-spec", "spec.providerSpec.value"),
        ] {
            let found = arena
                .wait_condition(machine, "InstanceExists", |condition| {
                    condition.reason.as_deref() == Some("InvalidConfiguration")
                })
                .await;
            assert!(found.message.as_deref().unwrap().starts_with(field), "{found:?}");
            arena.wait_event(machine, "FailedValidate", field).await;
        }
        arena.wait_event("no-subnet", "FailedCreate", "providerSpec.subnet").await;
        let failed = arena
            .eventually("the machine without subnet is Failed", async || {
                let machine = arena.api::<Machine>().get("no-subnet").await.unwrap();
                machine.status.filter(|status| status.phase.as_deref() == Some("Failed"))
            })
            .await;
        assert_eq!(failed.error_reason.as_deref(), Some("InvalidConfiguration"));
        assert!(failed.error_message.unwrap().contains("subnet-0123456789abcdef0"));
        arena.wait_event("mismatch", "ReconcileError", "spec.template.metadata.labels").await;
        arena
            .eventually("the set says what is wrong", async || {
                let set = arena.api::<MachineSet>().get("mismatch").await.unwrap();
                let status = set.status?;
                let scaling = condition::find(&status.conditions, "Scaling")?;
                scaling
                    .message
                    .as_deref()?
                    .starts_with("spec.template.metadata.labels")
                    .then_some(())
            })
            .await;
        assert!(arena.launched().is_empty(), "nothing was launched for any of them");

        // Everybody else goes on.
        arena.create_machine("healthy", json!({})).await;
        arena
            .eventually("the healthy machine is Running", async || {
                let machine = arena.api::<Machine>().get("healthy").await.unwrap();
                (machine.status?.phase.as_deref() == Some("Running")).then_some(())
            })
            .await;

        // Corrected, each converges.
        let good = arena.provider_spec(json!({}));
        arena
            .patch::<Machine>("unlabelled", json!({"metadata": {"labels": arena.labels("none")}}))
            .await;
        for machine in ["unknown-kind", "no-spec", "no-subnet"] {
            arena
                .patch::<Machine>(machine, json!({"spec": {"providerSpec": {"value": good}}}))
                .await;
        }
        arena
            .patch::<MachineSet>(
                "mismatch",
                json!({"spec": {"template": {"metadata": {"labels": {"pool": "other"}}}}}),
            )
            .await;
        arena.wait_running(6).await;
        arena.check_ledger().await;
    });
}
