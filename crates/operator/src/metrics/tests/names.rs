//! Is everything published under the names, types and labels that are promised?

use std::collections::{BTreeMap, BTreeSet};

use machinist_api::{MaintenanceAction, MaintenancePhase};
use machinist_core::{
    admission::Webhook, approval::Limits, drift, health::decide::Gauges, upkeep::Kept,
};

use super::*;

/// A name as queries have it, with its type and its labels.
pub(in crate::metrics) type Published = BTreeMap<String, (String, BTreeSet<String>)>;

/// Metrics with a value for everything that there is.
pub(in crate::metrics) fn of_everything() -> Metrics {
    let metrics = Metrics::new();
    metrics.register_fleet(|| FleetSnapshot {
        machines: Some(vec![MachineRow {
            phase: "Running".into(),
            created: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            ..MachineRow::default()
        }]),
        machine_sets: Some(vec![MachineSetRow {
            created: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            ..MachineSetRow::default()
        }]),
    });
    metrics.register_clouds(|| CloudsSnapshot {
        views: vec![CloudViewRow::default()],
        missing_permissions: vec![PermissionRow::default()],
    });
    metrics.register_pending_requests(Limits::default);
    let queue = metrics.queue("machine", &crate::testing::env());
    queue.depth.set(0);
    for operation in
        [InstanceOperation::Create, InstanceOperation::Update, InstanceOperation::Delete]
    {
        metrics.count_instance_failure(operation, "ns", "a", "Throttled");
    }
    metrics.observe_phase_transition("Running", Duration::from_secs(25));
    metrics.count_cloud_call("aws", "RunInstances", "ok");
    metrics.count_drift(drift::Class::Vanished);
    metrics.count_invariant_violation("S1");
    metrics.set_waiting("machine", "ns/a", Some("Draining"));
    metrics.count_notice(NoticeResult::Ours);
    metrics.count_certificate_approved("machine");
    metrics.count_request("200", "GET", "host");
    metrics.count_watch_failure("Machine");
    metrics.set_lease_held("lease", true);
    metrics.set_health_check("ns", "check", Gauges { nodes_covered: 1, short_circuit: false });
    metrics.count_remediation("ns", "check");
    drop(metrics.begin_review(Webhook::DefaultMachine));
    metrics.count_review(Webhook::DefaultMachine, "allowed", 200, Duration::from_millis(1));
    metrics.set_certificate_expiry("webhook", jiff::Timestamp::UNIX_EPOCH);
    metrics.set_certificate_faulty("webhook", false);
    metrics.count_handshake_failure("webhook");
    metrics.count_connection_dropped("webhook");
    metrics.count_metrics_access("allowed");
    metrics.set_upkeep_problems(0);
    metrics.count_restored(Kept::MutatingWebhooks);
    metrics.register_certificate_approval(|| true);
    metrics.register_maintenances(|| {
        vec![MaintenanceRow {
            is_late: true,
            seconds_to_deadline: Some(60.0),
            under_way_seconds: Some(60.0),
            waits_on: Some("OutsideWindow".into()),
            unverified: Some("NodeNotReady".into()),
            ..MaintenanceRow::default()
        }]
    });
    metrics.observe_maintenance(
        MaintenanceAction::Replace,
        MaintenancePhase::Succeeded,
        Duration::from_secs(900),
    );
    metrics.count_notification(NotificationResult::Sent);
    metrics
}

/// What the text of a scrape shows, by the types that it declares.
pub(in crate::metrics) fn published(text: &str) -> Published {
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found = Published::new();
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, type_) = declared.split_once(' ').unwrap();
            assert_eq!(types.insert(name, type_), None, "{name} is declared twice");
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let end = line.find(['{', ' ']).unwrap();
        let sample = &line[..end];
        let suffixes = [("counter", "_total"), ("histogram", "_bucket"), ("histogram", "_sum")];
        let suffixes = suffixes.into_iter().chain([("histogram", "_count"), ("", "")]);
        let (name, type_) = suffixes
            .filter_map(|(type_, suffix)| {
                let family = sample.strip_suffix(suffix)?;
                let declared = types.get(family)?;
                let name = if type_ == "counter" { sample } else { family };
                (*declared == type_ || type_.is_empty()).then_some((name, *declared))
            })
            .next()
            .unwrap_or_else(|| panic!("{sample} has no type"));
        let entry =
            found.entry(name.to_owned()).or_insert_with(|| (type_.to_owned(), BTreeSet::new()));
        let labels = line[end..].strip_prefix('{').and_then(|rest| rest.rsplit_once('}'));
        for label in labels.map_or("", |(labels, _)| labels).split("\",") {
            if let Some((key, _)) = label.split_once("=\"")
                && key != "le"
            {
                entry.1.insert(key.to_owned());
            }
        }
    }
    found
}

fn rows(table: &[(&str, &str, &str)]) -> Published {
    let row = |(name, type_, labels): &(&str, &str, &str)| {
        let labels = labels.split(' ').filter(|one| !one.is_empty()).map(str::to_owned).collect();
        ((*name).to_owned(), ((*type_).to_owned(), labels))
    };
    table.iter().map(row).collect()
}

/// The contract with existing dashboards and alerts.
#[test]
fn the_names_of_the_machine_api_are_kept() {
    let created = "name namespace spec_provider_id node api_version phase";
    let failed = "name namespace reason";
    let contract = rows(&[
        ("mapi_machine_phase_transition_seconds", "histogram", "phase"),
        ("mapi_instance_create_failed", "unknown", failed),
        ("mapi_instance_update_failed", "unknown", failed),
        ("mapi_instance_delete_failed", "unknown", failed),
        ("mapi_machine_items", "gauge", ""),
        ("mapi_machineset_items", "gauge", ""),
        ("mapi_machine_created_timestamp_seconds", "gauge", created),
        ("mapi_machineset_created_timestamp_seconds", "gauge", "name namespace api_version"),
        ("mapi_machine_set_status_replicas", "gauge", "name namespace"),
        ("mapi_machine_set_status_replicas_available", "gauge", "name namespace"),
        ("mapi_machine_set_status_replicas_ready", "gauge", "name namespace"),
        ("mapi_mao_collector_up", "gauge", "kind"),
        ("mapi_machinehealthcheck_nodes_covered", "gauge", "name namespace"),
        ("mapi_machinehealthcheck_short_circuit", "gauge", "name namespace"),
        ("mapi_machinehealthcheck_remediation_success_total", "counter", "name namespace"),
        ("mapi_current_pending_csr", "gauge", ""),
        ("mapi_max_pending_csr", "gauge", ""),
    ]);
    let mut found = published(&of_everything().encode().unwrap());
    found.retain(|name, _| name.starts_with("mapi_"));
    assert_eq!(found, contract);
}

#[test]
fn phases_are_measured_in_the_buckets_of_the_original() {
    let metrics = of_everything();
    let buckets: Vec<String> = lines_of(&metrics, "mapi_machine_phase_transition_seconds_bucket")
        .iter()
        .map(|line| line.split('"').nth(1).unwrap().trim_end_matches(".0").to_owned())
        .collect();
    let expected = [
        "5", "10", "20", "30", "60", "90", "120", "180", "240", "300", "360", "480", "600", "+Inf",
    ];
    assert_eq!(buckets, expected);
}

/// The tables of docs/reference/metrics.md: name, type and labels of each row.
fn documented() -> Published {
    let text = include_str!("../../../../../docs/reference/metrics.md");
    let quoted = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let mut found = Published::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, type_, labels, meaning] = cells.as_slice() else { panic!("{line}") };
        assert!(!meaning.is_empty(), "{line}");
        let name = quoted(name).remove(0);
        let labels = quoted(labels).into_iter().collect();
        let earlier = found.insert(name, ((*type_).to_owned(), labels));
        assert_eq!(earlier, None, "twice: {line}");
    }
    found
}

#[test]
fn the_reference_lists_exactly_what_is_published() {
    let metrics = of_everything();
    let found = published(&metrics.encode().unwrap());
    assert_eq!(found, documented());
    // What is registered and has no value yet is in no text: a new one must be added above.
    let registry = format!("{:?}", metrics.lock_registry());
    for descriptor in registry.split("Descriptor { name: \"").skip(1) {
        let name = descriptor.split('"').next().unwrap();
        let is_known = |name: &str| found.contains_key(name);
        assert!(is_known(name) || is_known(&format!("{name}_total")), "{name}");
    }
}
