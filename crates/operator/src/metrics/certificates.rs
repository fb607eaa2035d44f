//! How many kubelets wait for a certificate, how many there can rightly be, and who got one?

use std::fmt;

use machinist_core::approval::Limits;
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, metrics::MetricType};

use super::{ApprovalLabels, Metrics};

struct PendingRequests {
    limits: Box<dyn Fn() -> Limits + Send + Sync>,
}

impl fmt::Debug for PendingRequests {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PendingRequests").finish_non_exhaustive()
    }
}

impl Collector for PendingRequests {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let limits = (self.limits)();
        let (current, max) = ("mapi_current_pending_csr", "mapi_max_pending_csr");
        let help = "Recent signing requests of kubelets that are not decided";
        encoder
            .encode_descriptor(current, help, None, MetricType::Gauge)?
            .encode_gauge(&limits.pending)?;
        let help = "With more pending requests than this, none is approved";
        encoder.encode_descriptor(max, help, None, MetricType::Gauge)?.encode_gauge(&limits.max())
    }
}

impl Metrics {
    /// Publishes how many requests are pending from what `limits` returns at each scrape: they also
    /// leave the count by their age alone.
    pub fn register_pending_requests(&self, limits: impl Fn() -> Limits + Send + Sync + 'static) {
        let collector = PendingRequests { limits: Box::new(limits) };
        self.lock_registry().register_collector(Box::new(collector));
    }

    /// Counts an approval by what spoke for it.
    pub fn count_certificate_approved(&self, reason: &'static str) {
        self.shared.certificates_approved.get_or_create(&ApprovalLabels { reason }).inc();
    }
}
