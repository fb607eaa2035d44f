//! How many objects wait, and for what?

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, metrics::MetricType};

/// The reason for which each object waits, by controller and key.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    reasons: Arc<Mutex<BTreeMap<(String, String), String>>>,
}

impl Waiting {
    pub(super) fn set(&self, controller: &str, key: &str, reason: Option<&str>) {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        let object = (controller.to_owned(), key.to_owned());
        match reason {
            Some(reason) => reasons.insert(object, reason.to_owned()),
            None => reasons.remove(&object),
        };
    }
}

impl Collector for Waiting {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        for ((controller, _), reason) in
            self.reasons.lock().unwrap_or_else(PoisonError::into_inner).iter()
        {
            *counts.entry((controller.clone(), reason.clone())).or_default() += 1;
        }
        let help = "Objects that wait, by reason";
        let mut metric =
            encoder.encode_descriptor("machinist_waiting", help, None, MetricType::Gauge)?;
        for ((controller, reason), count) in &counts {
            let labels = [("controller", controller.as_str()), ("reason", reason.as_str())];
            metric.encode_family(&labels)?.encode_gauge(count)?;
        }
        Ok(())
    }
}
