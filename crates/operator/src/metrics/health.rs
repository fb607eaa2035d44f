//! How are the MachineHealthChecks doing, by the names of the original?

use machinist_core::health::decide::Gauges;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::Metrics;

#[derive(Debug, Default)]
pub(super) struct HealthChecks {
    nodes_covered: Family<CheckLabels, Gauge>,
    short_circuit: Family<CheckLabels, Gauge>,
    remediations: Family<CheckLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    name: String,
    namespace: String,
}

impl CheckLabels {
    fn new(namespace: &str, name: &str) -> Self {
        Self { name: name.to_owned(), namespace: namespace.to_owned() }
    }
}

impl HealthChecks {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "mapi_machinehealthcheck_nodes_covered",
            "Machines that the check watches",
            self.nodes_covered.clone(),
        );
        registry.register(
            "mapi_machinehealthcheck_short_circuit",
            "Whether too many machines are unhealthy for any to be remediated",
            self.short_circuit.clone(),
        );
        registry.register(
            "mapi_machinehealthcheck_remediation_success",
            "Machines whose deletion the check asked for",
            self.remediations.clone(),
        );
    }
}

impl Metrics {
    /// Publishes what a check covers.
    pub fn set_health_check(&self, namespace: &str, name: &str, gauges: Gauges) {
        let (checks, labels) = (&self.shared.health_checks, CheckLabels::new(namespace, name));
        let covered = i64::try_from(gauges.nodes_covered).unwrap_or(i64::MAX);
        checks.nodes_covered.get_or_create(&labels).set(covered);
        checks.short_circuit.get_or_create(&labels).set(i64::from(gauges.short_circuit));
    }

    /// Counts a machine that was deleted for its bad health.
    pub fn count_remediation(&self, namespace: &str, name: &str) {
        let labels = CheckLabels::new(namespace, name);
        self.shared.health_checks.remediations.get_or_create(&labels).inc();
    }

    /// Ends the series of a check that is gone. An alert on one of them ends with it.
    pub fn forget_health_check(&self, namespace: &str, name: &str) {
        let (checks, labels) = (&self.shared.health_checks, CheckLabels::new(namespace, name));
        checks.nodes_covered.remove(&labels);
        checks.short_circuit.remove(&labels);
        checks.remediations.remove(&labels);
    }
}
