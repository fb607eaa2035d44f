//! What do the kubelet, Prometheus and people ask this process over HTTP?
//!
//! `/metrics` unless it is served over TLS only, `/healthz` (alive: the supervisor ends the process when a task fails, so an answer means all of them run) and
//! `/readyz` (the stores are filled; otherwise it says which are not).

use std::{
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock},
};

use anyhow::Context as _;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use futures::future::try_join_all;
use tokio::net::TcpListener;

use crate::metrics::{self, Metrics};

/// What must be true before the process counts as ready. Clones share the same list.
#[derive(Clone, Default)]
pub struct Readiness {
    conditions: Arc<RwLock<Vec<Condition>>>,
}

struct Condition {
    name: String,
    holds: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Readiness {
    /// Adds a condition; its name is shown while it does not hold.
    pub fn require(
        &self,
        name: impl Into<String>,
        holds: impl Fn() -> bool + Send + Sync + 'static,
    ) {
        let condition = Condition { name: name.into(), holds: Box::new(holds) };
        self.conditions.write().unwrap_or_else(PoisonError::into_inner).push(condition);
    }

    /// Returns the names of the conditions that do not hold.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let conditions = self.conditions.read().unwrap_or_else(PoisonError::into_inner);
        let missing = conditions.iter().filter(|condition| !(condition.holds)());
        missing.map(|condition| condition.name.clone()).collect()
    }
}

/// A server that is bound and not yet serving.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    /// The addresses it is bound to, in the order in which they were given.
    pub addresses: Vec<SocketAddr>,
    router: Router,
}

impl Server {
    /// Binds all addresses. Port 0 takes a free port. Without metrics there is no `/metrics`.
    ///
    /// # Errors
    /// Fails, naming the address, when one cannot be bound.
    pub async fn bind(
        addresses: &[SocketAddr],
        metrics: Option<&Metrics>,
        readiness: &Readiness,
    ) -> anyhow::Result<Self> {
        let mut listeners = Vec::new();
        let mut bound = Vec::new();
        for address in addresses {
            let listener = TcpListener::bind(address)
                .await
                .with_context(|| format!("failed to listen on {address}"))?;
            let address = listener.local_addr().context("failed to read the bound address")?;
            tracing::info!(%address, "serving HTTP");
            bound.push(address);
            listeners.push(listener);
        }
        Ok(Self { listeners, addresses: bound, router: router(metrics, readiness) })
    }

    /// Serves as long as the process lives.
    ///
    /// # Errors
    /// Fails when a listener fails.
    pub async fn run(self) -> anyhow::Result<()> {
        let router = &self.router;
        let servers = self.listeners.into_iter().map(|listener| async move {
            axum::serve(listener, router.clone()).await.context("failed to serve HTTP")
        });
        try_join_all(servers).await?;
        Ok(())
    }
}

/// Returns the routes, for whoever serves them in another way.
pub fn router(metrics: Option<&Metrics>, readiness: &Readiness) -> Router {
    let probes = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .merge(Router::new().route("/readyz", get(answer_readyz)).with_state(readiness.clone()));
    match metrics {
        Some(metrics) => probes.merge(
            Router::new().route("/metrics", get(answer_metrics)).with_state(metrics.clone()),
        ),
        None => probes,
    }
}

async fn answer_metrics(State(metrics): State<Metrics>) -> Response {
    match metrics.encode() {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn answer_readyz(State(readiness): State<Readiness>) -> Response {
    let missing = readiness.missing();
    if missing.is_empty() {
        return "ok\n".into_response();
    }
    let text = format!("not ready: {}\n", missing.join(", "));
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use axum::body::{Body, to_bytes};
    use http::Request;
    use tower::Service;

    use super::*;

    async fn ask(router: &Router, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().call(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn ready_only_when_every_condition_holds_and_says_which_do_not() {
        let readiness = Readiness::default();
        let synced = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&synced);
        readiness.require("machines listed", move || flag.load(Ordering::Relaxed));
        readiness.require("nodes listed", || true);
        let router = router(Some(&Metrics::new()), &readiness);
        assert_eq!(ask(&router, "/healthz").await, (200, "ok\n".to_owned()));
        let expected = (503, "not ready: machines listed\n".to_owned());
        assert_eq!(ask(&router, "/readyz").await, expected);
        synced.store(true, Ordering::Relaxed);
        assert_eq!(ask(&router, "/readyz").await, (200, "ok\n".to_owned()));
    }

    #[tokio::test]
    async fn metrics_are_complete_openmetrics_text() {
        let router = router(Some(&Metrics::new()), &Readiness::default());
        let (status, text) = ask(&router, "/metrics").await;
        assert_eq!(status, 200);
        assert!(text.ends_with("# EOF\n"), "{text}");
        assert!(text.contains("process_resident_memory_bytes "), "{text}");
        let without = super::router(None, &Readiness::default());
        assert_eq!(ask(&without, "/metrics").await.0, 404);
        assert_eq!(ask(&without, "/healthz").await.0, 200);
    }

    #[tokio::test]
    async fn a_free_port_is_taken_and_told() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let (metrics, readiness) = (Metrics::new(), Readiness::default());
        let server = Server::bind(&[any, any], Some(&metrics), &readiness).await.unwrap();
        let ports: Vec<u16> = server.addresses.iter().map(SocketAddr::port).collect();
        assert!(ports.iter().all(|port| *port != 0) && ports.len() == 2, "{ports:?}");
    }
}
