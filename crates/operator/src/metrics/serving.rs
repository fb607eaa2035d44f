//! How are the servers doing that others rely on: admission and TLS? Admission under the names that
//! controller-runtime gives it.

use std::time::Duration;

use jiff::Timestamp;
use machinist_core::admission::Webhook;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::{Metrics, queues::RUN_BUCKETS};

#[derive(Debug)]
pub(super) struct Servers {
    requests: Family<RequestLabels, Counter>,
    latency: Family<WebhookLabels, Histogram, fn() -> Histogram>,
    in_flight: Family<WebhookLabels, Gauge>,
    reviews: Family<ReviewLabels, Counter>,
    certificate_expiry: Family<ServerLabels, Gauge>,
    certificate_faulty: Family<ServerLabels, Gauge>,
    handshake_failures: Family<ServerLabels, Counter>,
    connections_dropped: Family<ServerLabels, Counter>,
    access: Family<AccessLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    webhook: &'static str,
    code: u16,
}

/// The label is the path, as the original has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookLabels {
    webhook: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    webhook: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabels {
    server: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AccessLabels {
    result: &'static str,
}

/// A question that is being answered. Dropping it, also when nobody waits for the answer any more,
/// ends that.
pub struct InFlight {
    gauge: Gauge,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

impl Default for Servers {
    fn default() -> Self {
        let latencies: fn() -> Histogram = || Histogram::new(RUN_BUCKETS);
        Self {
            requests: Family::default(),
            latency: Family::new_with_constructor(latencies),
            in_flight: Family::default(),
            reviews: Family::default(),
            certificate_expiry: Family::default(),
            certificate_faulty: Family::default(),
            handshake_failures: Family::default(),
            connections_dropped: Family::default(),
            access: Family::default(),
        }
    }
}

impl Servers {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "controller_runtime_webhook_requests",
            "Questions for admission by webhook and status code",
            self.requests.clone(),
        );
        registry.register(
            "controller_runtime_webhook_latency_seconds",
            "Time until a question for admission was answered",
            self.latency.clone(),
        );
        registry.register(
            "controller_runtime_webhook_requests_in_flight",
            "Questions for admission that are being answered",
            self.in_flight.clone(),
        );
        registry.register(
            "machinist_admission_reviews",
            "Questions for admission by webhook and what became of them",
            self.reviews.clone(),
        );
        registry.register(
            "machinist_certificate_expiry_timestamp_seconds",
            "When the certificate runs out that the server shows",
            self.certificate_expiry.clone(),
        );
        registry.register(
            "machinist_certificate_faulty",
            "Whether there is a certificate for the server that cannot be used",
            self.certificate_faulty.clone(),
        );
        registry.register(
            "machinist_tls_handshake_failures",
            "Connections whose handshake failed",
            self.handshake_failures.clone(),
        );
        registry.register(
            "machinist_tls_connections_dropped",
            "Connections that had to go because there were too many",
            self.connections_dropped.clone(),
        );
        registry.register(
            "machinist_metrics_access",
            "Requests for metrics over TLS by what became of them",
            self.access.clone(),
        );
    }
}

impl Metrics {
    /// Notes that a question has begun.
    #[must_use]
    pub fn begin_review(&self, webhook: Webhook) -> InFlight {
        let labels = WebhookLabels { webhook: webhook.path() };
        let gauge = self.shared.servers.in_flight.get_or_create_owned(&labels);
        gauge.inc();
        InFlight { gauge }
    }

    /// Counts a question and its answer.
    pub fn count_review(&self, webhook: Webhook, result: &'static str, code: u16, took: Duration) {
        let (servers, webhook) = (&self.shared.servers, webhook.path());
        servers.requests.get_or_create(&RequestLabels { webhook, code }).inc();
        servers.reviews.get_or_create(&ReviewLabels { webhook, result }).inc();
        servers.latency.get_or_create(&WebhookLabels { webhook }).observe(took.as_secs_f64());
    }

    pub(crate) fn set_certificate_expiry(&self, server: &'static str, expires: Timestamp) {
        let labels = ServerLabels { server };
        self.shared.servers.certificate_expiry.get_or_create(&labels).set(expires.as_second());
    }

    pub(crate) fn set_certificate_faulty(&self, server: &'static str, is_faulty: bool) {
        let labels = ServerLabels { server };
        self.shared.servers.certificate_faulty.get_or_create(&labels).set(i64::from(is_faulty));
    }

    pub(crate) fn count_handshake_failure(&self, server: &'static str) {
        self.shared.servers.handshake_failures.get_or_create(&ServerLabels { server }).inc();
    }

    pub(crate) fn count_connection_dropped(&self, server: &'static str) {
        self.shared.servers.connections_dropped.get_or_create(&ServerLabels { server }).inc();
    }

    /// Counts somebody who wanted to read the metrics over TLS.
    pub(crate) fn count_metrics_access(&self, result: &'static str) {
        self.shared.servers.access.get_or_create(&AccessLabels { result }).inc();
    }
}
