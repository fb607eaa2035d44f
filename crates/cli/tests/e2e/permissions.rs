//! A right that the credentials lack disables what needs it and nothing else, and is named.

use machinist_api::ConditionStatus;
use machinist_testbed::cloud::model::{ChangedBy, Denied, Faults};
use serde_json::json;

use crate::{
    arena::{Arena, run},
    seen::Subject,
};

const METRIC: &str = "machinist_cloud_permission_missing";

/// Whether the metric says that a right is missing.
async fn is_missing(arena: &Arena, action: &str) -> bool {
    let metrics = arena.metrics().await;
    metrics.lines().any(|line| {
        line.starts_with(METRIC) && line.contains(&format!("\"{action}\"")) && line.ends_with(" 1")
    })
}

async fn wait_missing(arena: &Arena, action: &str, expected: bool) {
    let what = format!("{METRIC} of {action} is {expected}");
    arena
        .eventually(&what, async || (is_missing(arena, action).await == expected).then_some(()))
        .await;
}

#[test]
fn missing_rights_are_named_and_disable_only_what_needs_them() {
    run(async {
        let arena = Arena::new("permissions").await;
        let key = Some(arena.access_key());
        let denied = ["ec2:StartInstances", "ec2:DescribeInstanceStatus"]
            .map(|action| Denied { action: action.to_owned(), access_key: key.clone() });
        let faults = Faults { denied: denied.to_vec(), ..Faults::default() };
        arena.cluster.cloud().add_faults(faults).unwrap();
        let _operator = arena.start_operator().await;

        let grace = json!({"metadata": {"annotations": {
            "machinist.dev/stopped-grace-period": "0s",
        }}});
        arena.create_machine("stopped", grace).await;
        let subject = Subject::of(&arena.wait_running(1).await[0]);

        // Status checks cannot be read: that is said, and everything else goes on.
        let health =
            arena.wait_said("stopped", "InstanceHealthy", "ec2:DescribeInstanceStatus").await;
        assert_eq!(health.status, ConditionStatus::Unknown);
        wait_missing(&arena, "ec2:DescribeInstanceStatus", true).await;

        // A stopped instance cannot be started.
        arena.cluster.cloud().stop(&subject.instance, ChangedBy::User).unwrap();
        let running = arena.wait_said("stopped", "InstanceRunning", "ec2:StartInstances").await;
        assert_eq!(running.status, ConditionStatus::False);
        assert_eq!(running.reason.as_deref(), Some("StoppedByUser"));
        let message = running.message.unwrap();
        assert!(message.contains("it could not be started, tried again at"), "{message}");
        assert!(!message.contains("Encoded authorization failure"), "{message}");
        arena.wait_event("stopped", "FailedStart", "ec2:StartInstances").await;
        wait_missing(&arena, "ec2:StartInstances", true).await;

        // Launches and deletions go on meanwhile.
        arena.create_machine("other", json!({})).await;
        arena.wait_machine_columns("other", "Running running").await;
        arena.delete_machine("other").await;
        arena.wait_gone("other").await;

        // Given back, the rights are used again.
        arena.cluster.cloud().clear_fault_kind("denied").unwrap();
        arena.wait_true("stopped", "InstanceRunning").await;
        arena.wait_true("stopped", "InstanceHealthy").await;
        arena.wait_machine_columns("stopped", "Running running").await;
        wait_missing(&arena, "ec2:StartInstances", false).await;
        wait_missing(&arena, "ec2:DescribeInstanceStatus", false).await;
        arena.wait_running(1).await;
        arena.check_ledger().await;
    });
}
