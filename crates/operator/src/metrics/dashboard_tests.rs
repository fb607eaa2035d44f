//! Does the dashboard show what is published? A panel on a metric that nobody publishes stays empty,
//! and nobody notices.

use std::collections::BTreeSet;

use jiff::Timestamp;
use machinist_core::approval::Limits;
use serde_json::Value;

use super::*;
use crate::engine::{env::Env, queue::Outcome};

/// Names of queries that are functions, keywords or labels are told from metrics by these.
const PREFIXES: [&str; 7] = [
    "machinist_",
    "mapi_",
    "workqueue_",
    "controller_runtime_",
    "rest_client_",
    "process_",
    "leader_",
];

/// Every family with a sample, as a family is published from its first sample on.
fn published() -> BTreeSet<String> {
    let metrics = Metrics::new();
    metrics.register_fleet(|| FleetSnapshot {
        machines: Some(vec![MachineRow {
            phase: "Running".into(),
            created: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            ..MachineRow::default()
        }]),
        machine_sets: Some(vec![MachineSetRow::default()]),
    });
    metrics.register_clouds(|| CloudsSnapshot {
        views: vec![CloudViewRow::default()],
        missing_permissions: vec![PermissionRow::default()],
    });
    metrics.register_pending_requests(Limits::default);
    metrics.count_cloud_call("aws", "RunInstances", "success");
    metrics.count_drift(machinist_core::drift::Class::Vanished);
    metrics.count_invariant_violation("S1");
    metrics.observe_phase_transition("Running", Duration::from_secs(25));
    metrics.set_waiting("machine", "ns/a", Some("DrainBlocked"));
    metrics.count_request("200", "GET", "host");
    for operation in
        [InstanceOperation::Create, InstanceOperation::Update, InstanceOperation::Delete]
    {
        metrics.count_instance_failure(operation, "ns", "a", "no capacity");
    }
    let gauges = machinist_core::health::decide::Gauges { nodes_covered: 1, short_circuit: false };
    metrics.set_health_check("ns", "check", gauges);
    metrics.count_remediation("ns", "check");
    metrics.count_certificate_approved("Machine");
    let env = Env::simulated(Timestamp::UNIX_EPOCH, 1);
    let queue = metrics.queue("machine", &env);
    let run = queue.began(env.instant(), Duration::from_millis(1));
    queue.finished(&run, &Outcome::Settled, Duration::from_millis(20));
    let text = metrics.encode().unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next().map(ToOwned::to_owned))
        .collect()
}

fn queries(panel: &Value) -> Vec<String> {
    let targets = panel["targets"].as_array().cloned().unwrap_or_default();
    targets.iter().map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_metric_of_the_dashboard_is_published() {
    let text = include_str!("../../../../deploy/dashboards/machinist.json");
    let dashboard: Value = serde_json::from_str(text).unwrap();
    let published = published();
    let mut seen = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        for query in queries(panel) {
            let words = query.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
            let names: Vec<&str> = words
                .filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
                .collect();
            assert!(!names.is_empty(), "{title}: {query} shows nothing of ours");
            for name in names {
                let base = name.strip_suffix("_total").or(name.strip_suffix("_bucket"));
                let base = base.unwrap_or(name);
                assert!(published.contains(base), "{title}: {name} is not published");
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}
