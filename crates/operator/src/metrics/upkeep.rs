//! What does the operator keep for itself, and does anything resist?

use std::fmt;

use machinist_core::upkeep::Kept;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet},
    metrics::{MetricType, counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::Metrics;

#[derive(Debug, Default)]
pub(super) struct Upkeep {
    problems: Gauge,
    restored: Family<KeptLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KeptLabels {
    object: String,
}

impl Upkeep {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "machinist_upkeep_problems",
            "Things that the operator keeps for itself and that are not as they should be",
            self.problems.clone(),
        );
        registry.register(
            "machinist_restored_objects",
            "Objects of the operator's own that were missing or changed and were written again",
            self.restored.clone(),
        );
    }
}

struct Approval {
    is_active: Box<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Approval {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Approval").finish_non_exhaustive()
    }
}

impl Collector for Approval {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let name = "machinist_certificate_approval_active";
        let help = "Whether certificates are approved here, and not by OpenShift's own approver";
        let active = i64::from((self.is_active)());
        encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&active)
    }
}

impl Metrics {
    pub fn set_upkeep_problems(&self, count: usize) {
        self.shared.upkeep.problems.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub fn count_restored(&self, kept: Kept) {
        let labels = KeptLabels { object: kept.to_string() };
        self.shared.upkeep.restored.get_or_create(&labels).inc();
    }

    /// Publishes whether certificates are approved here, from what `is_active` returns at each
    /// scrape.
    pub fn register_certificate_approval(
        &self,
        is_active: impl Fn() -> bool + Send + Sync + 'static,
    ) {
        let collector = Approval { is_active: Box::new(is_active) };
        self.lock_registry().register_collector(Box::new(collector));
    }
}
