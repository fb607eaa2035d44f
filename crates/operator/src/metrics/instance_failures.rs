//! How often did an operation on a machine's instance fail, and why?
//!
//! The original exposes these counters without the suffix `_total` that OpenMetrics demands of a counter (and that
//! prometheus-client always adds). Alerts use the bare name, so they are written here sample by sample, with the type `unknown`:
//! the only type under which OpenMetrics allows a counted value without the suffix. Queries do not see the type.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, metrics::MetricType};

/// What was attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceOperation {
    /// Launching it.
    Create,
    /// Reading or changing it.
    Update,
    /// Terminating it.
    Delete,
}

#[derive(Clone, Debug, Default)]
pub(super) struct InstanceFailures {
    counts: Arc<Mutex<Counts>>,
}

type Counts = BTreeMap<(InstanceOperation, MachineReason), u64>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MachineReason {
    namespace: String,
    name: String,
    reason: String,
}

const METRICS: [(InstanceOperation, &str, &str); 3] = [
    (InstanceOperation::Create, "mapi_instance_create_failed", "Failed launches of an instance"),
    (InstanceOperation::Update, "mapi_instance_update_failed", "Failed updates of an instance"),
    (
        InstanceOperation::Delete,
        "mapi_instance_delete_failed",
        "Failed terminations of an instance",
    ),
];

impl InstanceFailures {
    pub(super) fn count(
        &self,
        operation: InstanceOperation,
        namespace: &str,
        name: &str,
        reason: &str,
    ) {
        let machine = MachineReason {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        *self.lock().entry((operation, machine)).or_default() += 1;
    }

    pub(super) fn forget(&self, namespace: &str, name: &str) {
        self.lock()
            .retain(|(_, machine), _| machine.namespace != namespace || machine.name != name);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for InstanceFailures {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let counts = self.lock().clone();
        for (operation, name, help) in METRICS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Unknown)?;
            for ((_, machine), count) in counts.iter().filter(|((other, _), _)| *other == operation)
            {
                let labels = [
                    ("name", machine.name.as_str()),
                    ("namespace", machine.namespace.as_str()),
                    ("reason", machine.reason.as_str()),
                ];
                metric.encode_family(&labels)?.encode_gauge(count)?;
            }
        }
        Ok(())
    }
}
