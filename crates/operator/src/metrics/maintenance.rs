//! How is maintenance doing: what is pending, late, stuck, and how long it takes?

use std::{fmt, time::Duration};

use machinist_api::{MaintenanceAction, MaintenancePhase};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet},
    metrics::{MetricType, counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

use super::Metrics;

/// Seconds; from a reboot to a drain that took all night.
const DURATION_BUCKETS: [f64; 10] =
    [60.0, 180.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0];

/// One MachineMaintenance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaintenanceRow {
    pub namespace: String,
    pub machine: String,
    pub phase: MaintenancePhase,
    pub is_late: bool,
    pub seconds_to_deadline: Option<f64>,
    pub under_way_seconds: Option<f64>,
    /// What it waits on first.
    pub waits_on: Option<String>,
    /// Why the machine is not well afterwards.
    pub unverified: Option<String>,
}

#[derive(Debug)]
pub(super) struct Maintenances {
    durations: Family<DurationLabels, Histogram, fn() -> Histogram>,
    notifications: Family<NotificationLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    action: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NotificationLabels {
    result: &'static str,
}

/// What became of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationResult {
    Sent,
    /// Given up after several tries.
    Failed,
    /// Too many were waiting.
    Dropped,
}

impl Default for Maintenances {
    fn default() -> Self {
        let durations: fn() -> Histogram = || Histogram::new(DURATION_BUCKETS);
        Self {
            durations: Family::new_with_constructor(durations),
            notifications: Family::default(),
        }
    }
}

impl Maintenances {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "machinist_maintenance_duration_seconds",
            "Time from the beginning of a maintenance to its end",
            self.durations.clone(),
        );
        registry.register(
            "machinist_maintenance_notifications",
            "Notifications of changes by what became of them",
            self.notifications.clone(),
        );
    }
}

impl Metrics {
    /// Publishes how maintenance is doing from what `rows` returns at each scrape.
    pub fn register_maintenances(
        &self,
        rows: impl Fn() -> Vec<MaintenanceRow> + Send + Sync + 'static,
    ) {
        self.lock_registry().register_collector(Box::new(Rows { rows: Box::new(rows) }));
    }

    /// Observes how long a maintenance took.
    pub fn observe_maintenance(
        &self,
        action: MaintenanceAction,
        outcome: MaintenancePhase,
        took: Duration,
    ) {
        let labels = DurationLabels { action: action.as_str(), outcome: outcome.as_str() };
        let durations = &self.shared.maintenances.durations;
        durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts a notification.
    pub fn count_notification(&self, result: NotificationResult) {
        let result = match result {
            NotificationResult::Sent => "sent",
            NotificationResult::Failed => "failed",
            NotificationResult::Dropped => "dropped",
        };
        let labels = NotificationLabels { result };
        self.shared.maintenances.notifications.get_or_create(&labels).inc();
    }
}

struct Rows {
    rows: Box<dyn Fn() -> Vec<MaintenanceRow> + Send + Sync>,
}

impl fmt::Debug for Rows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Rows")
    }
}

impl Collector for Rows {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let rows = (self.rows)();
        let name = "machinist_maintenance_phase";
        let help = "Maintenances by phase";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for phase in MaintenancePhase::ALL {
            let count = rows.iter().filter(|row| row.phase == phase).count();
            metric.encode_family(&[("phase", phase.as_str())])?.encode_gauge(&count)?;
        }
        let is_pending = |row: &&MaintenanceRow| {
            matches!(row.phase, MaintenancePhase::Pending | MaintenancePhase::Scheduled)
        };
        let pending = rows.iter().filter(is_pending).count();
        encoder
            .encode_descriptor(
                "machinist_maintenance_pending",
                "Maintenances that are not begun yet",
                None,
                MetricType::Gauge,
            )?
            .encode_gauge(&pending)?;
        each(
            &mut encoder,
            &rows,
            "machinist_maintenance_late",
            "Maintenances that will not be over before their deadline",
            |row| row.is_late.then_some(1.0),
        )?;
        each(
            &mut encoder,
            &rows,
            "machinist_maintenance_seconds_to_deadline",
            "Time until the provider acts",
            |row| row.seconds_to_deadline,
        )?;
        each(
            &mut encoder,
            &rows,
            "machinist_maintenance_under_way_seconds",
            "Time since a maintenance was begun that is not over",
            |row| row.under_way_seconds,
        )?;
        reasons(
            &mut encoder,
            &rows,
            "machinist_maintenance_waiting",
            "What a maintenance waits on first",
            |row| row.waits_on.as_deref(),
        )?;
        reasons(
            &mut encoder,
            &rows,
            "machinist_maintenance_unverified",
            "Maintenances whose machine is not well afterwards",
            |row| row.unverified.as_deref(),
        )
    }
}

fn each(
    encoder: &mut DescriptorEncoder<'_>,
    rows: &[MaintenanceRow],
    name: &str,
    help: &str,
    value: impl Fn(&MaintenanceRow) -> Option<f64>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for row in rows {
        let Some(value) = value(row) else { continue };
        let labels = [("namespace", row.namespace.as_str()), ("machine", row.machine.as_str())];
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

fn reasons(
    encoder: &mut DescriptorEncoder<'_>,
    rows: &[MaintenanceRow],
    name: &str,
    help: &str,
    reason: impl Fn(&MaintenanceRow) -> Option<&str>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for row in rows {
        let Some(reason) = reason(row) else { continue };
        let labels = [
            ("namespace", row.namespace.as_str()),
            ("machine", row.machine.as_str()),
            ("reason", reason),
        ];
        metric.encode_family(&labels)?.encode_gauge(&1)?;
    }
    Ok(())
}
