//! Are the names on the wire those that alerts and dashboards know?

mod alerts;
mod cardinality;
pub(super) mod names;

use machinist_core::approval::Limits;

use super::*;
use crate::engine::queue::Outcome;

fn lines_of(metrics: &Metrics, name: &str) -> Vec<String> {
    let text = metrics.encode().unwrap();
    let lines = text.lines().filter(|line| line.starts_with(name) && !line.starts_with('#'));
    lines.map(ToOwned::to_owned).collect()
}

#[test]
fn instance_failures_have_the_bare_names_and_go_with_the_machine() {
    let metrics = Metrics::new();
    metrics.count_instance_failure(InstanceOperation::Create, "ns", "a", "no capacity");
    metrics.count_instance_failure(InstanceOperation::Create, "ns", "a", "no capacity");
    metrics.count_instance_failure(InstanceOperation::Delete, "ns", "b", "denied");
    assert_eq!(
        lines_of(&metrics, "mapi_instance_"),
        [
            r#"mapi_instance_create_failed{name="a",namespace="ns",reason="no capacity"} 2"#,
            r#"mapi_instance_delete_failed{name="b",namespace="ns",reason="denied"} 1"#,
        ]
    );
    metrics.forget_machine("ns", "a");
    assert_eq!(lines_of(&metrics, "mapi_instance_create").len(), 0);
}

#[test]
fn the_fleet_is_shown_as_it_is_at_the_scrape() {
    let metrics = Metrics::new();
    metrics.register_fleet(|| FleetSnapshot {
        machines: Some(vec![
            MachineRow {
                namespace: "ns".into(),
                name: "a".into(),
                spec_provider_id: "aws:///z/i-1".into(),
                node: "n1".into(),
                api_version: "machine.openshift.io/v1beta1".into(),
                phase: "Running".into(),
                created: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            },
            MachineRow { name: "without-phase".into(), ..MachineRow::default() },
        ]),
        machine_sets: None,
    });
    assert_eq!(
        lines_of(&metrics, "mapi_"),
        [
            r#"mapi_mao_collector_up{kind="mapi_machine_items"} 1"#,
            r#"mapi_mao_collector_up{kind="mapi_machineset_items"} 0"#,
            "mapi_machine_items 2",
            r#"mapi_machine_created_timestamp_seconds{name="a",namespace="ns",spec_provider_id="aws:///z/i-1",node="n1",api_version="machine.openshift.io/v1beta1",phase="Running"} 1767225600"#,
        ]
    );
}

#[test]
fn machine_sets_show_their_status() {
    let metrics = Metrics::new();
    metrics.register_fleet(|| FleetSnapshot {
        machines: Some(Vec::new()),
        machine_sets: Some(vec![MachineSetRow {
            namespace: "ns".into(),
            name: "pool".into(),
            api_version: "machine.openshift.io/v1beta1".into(),
            created: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            replicas: 3,
            available_replicas: 1,
            ready_replicas: 2,
        }]),
    });
    assert_eq!(
        lines_of(&metrics, "mapi_machine_set_status"),
        [
            r#"mapi_machine_set_status_replicas{name="pool",namespace="ns"} 3"#,
            r#"mapi_machine_set_status_replicas_available{name="pool",namespace="ns"} 1"#,
            r#"mapi_machine_set_status_replicas_ready{name="pool",namespace="ns"} 2"#,
        ]
    );
    assert_eq!(lines_of(&metrics, "mapi_machineset_").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_engine_counts_has_the_names_of_controller_runtime() {
    let (metrics, env) = (Metrics::new(), crate::testing::env());
    let queue = metrics.queue("machine", &env);
    queue.adds.inc();
    queue.depth.set(4);
    queue.set_concurrency(8);
    let took = Duration::from_millis(20);
    for outcome in [Outcome::Failed(anyhow::anyhow!("no")), Outcome::Settled] {
        let run = queue.began(env.instant(), Duration::from_secs(2));
        queue.finished(&run, &outcome, took);
    }
    for _ in 0..2 {
        queue.began(env.instant(), Duration::ZERO);
        tokio::time::advance(Duration::from_secs(3)).await;
    }
    let text = metrics.encode().unwrap();
    for line in [
        r#"workqueue_depth{name="machine",controller="machine"} 4"#,
        r#"workqueue_adds_total{name="machine",controller="machine"} 1"#,
        r#"workqueue_retries_total{name="machine",controller="machine"} 0"#,
        r#"workqueue_queue_duration_seconds_sum{name="machine",controller="machine"} 4.0"#,
        r#"workqueue_work_duration_seconds_count{name="machine",controller="machine"} 2"#,
        r#"workqueue_unfinished_work_seconds{name="machine",controller="machine"} 9.0"#,
        r#"workqueue_longest_running_processor_seconds{name="machine",controller="machine"} 6.0"#,
        r#"controller_runtime_reconcile_total{controller="machine",result="error"} 1"#,
        r#"controller_runtime_reconcile_total{controller="machine",result="success"} 1"#,
        r#"controller_runtime_reconcile_total{controller="machine",result="requeue_after"} 0"#,
        r#"controller_runtime_reconcile_errors_total{controller="machine"} 1"#,
        r#"controller_runtime_reconcile_time_seconds_count{controller="machine"} 2"#,
        r#"controller_runtime_reconcile_time_seconds_bucket{le="0.025",controller="machine"} 2"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="machine"} 8"#,
        r#"controller_runtime_active_workers{controller="machine"} 2"#,
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn our_own_metrics_count_and_measure() {
    let metrics = Metrics::new();
    metrics.observe_phase_transition("Running", Duration::from_secs(25));
    metrics.count_cloud_call("aws", "RunInstances", "success");
    metrics.count_invariant_violation("S1");
    metrics.set_waiting("machine", "ns/a", Some("DrainBlocked"));
    metrics.set_waiting("machine", "ns/b", Some("DrainBlocked"));
    metrics.set_waiting("machine", "ns/c", Some("Hook"));
    metrics.set_waiting("machine", "ns/c", None);
    metrics.count_notice(NoticeResult::Malformed);
    metrics.set_orphans(3);
    metrics.count_orphan_terminated();
    metrics.register_clouds(|| CloudsSnapshot {
        views: [(1.5, false), (0.5, true)]
            .map(|(age_seconds, is_failing)| CloudViewRow {
                provider: "aws".into(),
                region: "eu".into(),
                age_seconds,
                is_failing,
            })
            .to_vec(),
        missing_permissions: vec![PermissionRow {
            provider: "aws".into(),
            permission: "ec2:StartInstances".into(),
        }],
    });
    let text = metrics.encode().unwrap();
    for line in [
        r#"mapi_machine_phase_transition_seconds_bucket{le="30.0",phase="Running"} 1"#,
        r#"mapi_machine_phase_transition_seconds_bucket{le="20.0",phase="Running"} 0"#,
        r#"machinist_cloud_calls_total{provider="aws",action="RunInstances",result="success"} 1"#,
        r#"machinist_invariant_violations_total{invariant="S1"} 1"#,
        r#"machinist_waiting{controller="machine",reason="DrainBlocked"} 2"#,
        r#"machinist_cloud_view_age_seconds{provider="aws",region="eu"} 1.5"#,
        r#"machinist_cloud_view_failing{provider="aws",region="eu"} 1"#,
        r#"machinist_cloud_permission_missing{provider="aws",permission="ec2:StartInstances"} 1"#,
        r#"machinist_cloud_notices_total{result="malformed"} 1"#,
        "machinist_orphan_instances 3",
        "machinist_orphan_instances_terminated_total 1",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(!text.contains("Hook"), "{text}");
}

#[test]
fn pending_requests_have_the_names_of_the_approver() {
    let metrics = Metrics::new();
    metrics.register_pending_requests(|| Limits { pending: 7, machines: 3, nodes: 5 });
    assert_eq!(lines_of(&metrics, "mapi_current"), ["mapi_current_pending_csr 7"]);
    assert_eq!(lines_of(&metrics, "mapi_max"), ["mapi_max_pending_csr 105"]);
}
