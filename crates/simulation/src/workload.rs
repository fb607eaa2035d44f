//! How does an operator reach a workload cluster of Cluster API? It is the same API server, by another way, which can be cut
//! while the management cluster goes on answering.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use async_trait::async_trait;
use http::{Request, Response};
use kube::{Client, client::Body};
use machinist_operator::{client, cluster_api::workloads::ConnectWorkload, metrics::Metrics};
use tower::{BoxError, Service};

use crate::{
    api_server::{ApiServer, ApiService, ResponseBody},
    hub::Hub,
    template::cluster_api::KUBECONFIG,
};

/// What tells requests to a workload cluster from those of the same life to its own: `a#1@workload`.
const WAY: &str = "@workload";

/// The tag of a life on its way to workload clusters.
#[must_use]
pub fn tag_of(life: &str) -> String {
    format!("{life}{WAY}")
}

/// The life behind a tag, whichever way it takes.
#[must_use]
pub fn life_of(tag: &str) -> &str {
    tag.strip_suffix(WAY).unwrap_or(tag)
}

/// Whether a client is on its way to a workload cluster.
#[must_use]
pub fn is_workload(client: &str) -> bool {
    client.ends_with(WAY)
}

/// The workload clusters of one life of an operator.
pub struct SimulatedWorkloads {
    pub hub: Arc<Hub>,
    pub server: ApiServer,
    /// The tag of that life.
    pub life: String,
    pub metrics: Metrics,
}

#[async_trait]
impl ConnectWorkload for SimulatedWorkloads {
    async fn connect(&self, kubeconfig: &str) -> anyhow::Result<Client> {
        anyhow::ensure!(kubeconfig == KUBECONFIG, "the kubeconfig is of no cluster here");
        let inner = self.server.service(&tag_of(&self.life));
        let way = CuttableWay { hub: Arc::clone(&self.hub), inner };
        Ok(client::with_service(way, "default", &self.metrics))
    }
}

/// The server behind a way that may be cut.
#[derive(Clone)]
struct CuttableWay {
    hub: Arc<Hub>,
    inner: ApiService,
}

impl Service<Request<Body>> for CuttableWay {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = <ApiService as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let now = self.hub.clock.now();
        if self.hub.weather().workloads_away_until.is_some_and(|until| now < until) {
            let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
            return Box::pin(async { Err(refused.into()) });
        }
        self.inner.call(request)
    }
}
