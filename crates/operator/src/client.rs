//! How do we talk to the API server?
//!
//! One client for the whole process: from a kubeconfig file that was named, or from inside the cluster; the user's own
//! `KUBECONFIG` is never read. kube's built-in retry is off: it would repeat a refused eviction (429) for minutes before anyone
//! sees that a disruption budget refused it, and repeat a create whose effect is unknown. The work queue is the one that retries.

use std::{
    future::Future,
    path::Path,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use anyhow::Context as _;
use axum::body::{Bytes, HttpBody};
use http::{HeaderValue, Request, Response, header::USER_AGENT};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use tower::{BoxError, Layer, Service};

use crate::{cluster_api::reframe::OneEventEachLine, metrics::Metrics, refusals::is_list};

/// The user agent in the API server's audit log.
pub const AGENT: &str = concat!("machinist-operator/", env!("CARGO_PKG_VERSION"));

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest wait for the beginning of an answer. Watches are excepted; a list of a large cluster takes seconds.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The same for a single object of a workload cluster, as Cluster API has it. Passes for the machines of all clusters share their
/// places, and one cluster whose API server hangs must not fill them.
const WORKLOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest silence on a connection. Longer than a watch's own timeout of 290 s, so that it only ends the dead ones.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(310);

/// Where the API server is, and who we are to it.
#[derive(Clone)]
pub struct Cluster {
    config: Config,
}

impl Cluster {
    /// Reads a kubeconfig file, or looks around inside the cluster when none is named.
    ///
    /// # Errors
    /// Fails, naming the file, when the configuration cannot be read.
    pub async fn find(kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        let mut names_a_proxy = false;
        let config = match kubeconfig {
            Some(path) => {
                let kubeconfig = Kubeconfig::read_from(path)
                    .with_context(|| format!("failed to read kubeconfig {}", path.display()))?;
                let clusters = kubeconfig.clusters.iter().filter_map(|one| one.cluster.as_ref());
                names_a_proxy = clusters.into_iter().any(|cluster| cluster.proxy_url.is_some());
                Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                    .await
                    .with_context(|| format!("kubeconfig {} cannot be used", path.display()))?
            }
            None => Config::incluster()
                .context("not running inside a cluster and no --kubeconfig was given")?,
        };
        Ok(Self { config: tuned(config, names_a_proxy) })
    }

    /// Makes a client that acts for us.
    ///
    /// # Errors
    /// Fails when the configuration cannot be used.
    pub fn connect(&self, metrics: &Metrics) -> anyhow::Result<Client> {
        client_of(self.config.clone(), metrics, true)
    }

    /// Makes a client that acts for the bearer of a token: with nothing of ours but the way there.
    ///
    /// # Errors
    /// Fails when the configuration cannot be used.
    pub fn connect_as(&self, token: &str, metrics: &Metrics) -> anyhow::Result<Client> {
        let mut config = self.config.clone();
        config.auth_info = AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() };
        client_of(config, metrics, false)
    }
}

/// Makes a client from a kubeconfig file, or from inside the cluster when none is named.
///
/// # Errors
/// Fails, naming the file, when the configuration cannot be read or used.
pub async fn connect(kubeconfig: Option<&Path>, metrics: &Metrics) -> anyhow::Result<Client> {
    Cluster::find(kubeconfig).await?.connect(metrics)
}

/// Makes a client of another cluster, whose nodes are machines of this one.
///
/// # Errors
/// Fails when the configuration cannot be used.
pub fn of_workload(
    config: Config,
    names_a_proxy: bool,
    metrics: &Metrics,
) -> anyhow::Result<Client> {
    let metered = Metered::of_workload(metrics);
    let builder = ClientBuilder::try_from(tuned(config, names_a_proxy)).context(UNUSABLE)?;
    Ok(builder.with_layer(&metered).with_layer(&OneEventEachLine).build())
}

fn client_of(config: Config, metrics: &Metrics, is_ours: bool) -> anyhow::Result<Client> {
    let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    let builder = ClientBuilder::try_from(config).context(UNUSABLE)?;
    Ok(builder.with_layer(&Metered::of_cluster(metrics, host, is_ours)).build())
}

const UNUSABLE: &str = "failed to make a Kubernetes client";

fn tuned(mut config: Config, names_a_proxy: bool) -> Config {
    // kube takes the environment's proxy, which is that of the cloud; the API server is reached directly
    // unless the kubeconfig itself names one.
    if !names_a_proxy {
        config.proxy_url = None;
    }
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(SILENCE_TIMEOUT);
    config.reset_reader_on_write = true;
    config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
    config
}

/// Makes a client over any service that answers as an API server does: the simulator's, or a test's.
pub fn with_service<S, B>(service: S, namespace: &str, metrics: &Metrics) -> Client
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let layer = Metered::of_cluster(metrics, "simulated".to_owned(), true);
    ClientBuilder::new(service, namespace).with_layer(&layer).build()
}

/// Counts requests and bounds the wait for their answers.
#[derive(Clone, Debug)]
struct Metered {
    metrics: Metrics,
    host: String,
    /// What a workload cluster refuses us, or ours a user, is no fault of our own rights.
    is_ours: bool,
    /// The longest wait for the answer about a single object.
    patience: Duration,
}

impl Metered {
    fn of_cluster(metrics: &Metrics, host: String, is_ours: bool) -> Self {
        Self { metrics: metrics.clone(), host, is_ours, patience: RESPONSE_TIMEOUT }
    }

    fn of_workload(metrics: &Metrics) -> Self {
        // One name for all of them: a label for each cluster would have no bound.
        let host = "workload".to_owned();
        Self { metrics: metrics.clone(), host, is_ours: false, patience: WORKLOAD_TIMEOUT }
    }
}

impl<S> Layer<S> for Metered {
    type Service = MeteredService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        MeteredService { inner, metered: self.clone() }
    }
}

#[derive(Clone, Debug)]
struct MeteredService<S> {
    inner: S,
    metered: Metered,
}

impl<S, B> Service<Request<Body>> for MeteredService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        let watches = request.uri().query().is_some_and(|query| {
            query.split('&').any(|parameter| matches!(parameter, "watch=true" | "watch=1"))
        });
        let Metered { metrics, host, is_ours, patience } = self.metered.clone();
        let patience = if is_list(&method, &path) { RESPONSE_TIMEOUT } else { patience };
        let response = self.inner.call(request);
        Box::pin(async move {
            let result = if watches {
                response.await.map_err(Into::into)
            } else {
                match tokio::time::timeout(patience, response).await {
                    Ok(result) => result.map_err(Into::into),
                    Err(elapsed) => Err(elapsed.into()),
                }
            };
            let code = match &result {
                Ok(response) => response.status().as_str().to_owned(),
                // As client-go counts a request that got no answer.
                Err(_) => "<error>".to_owned(),
            };
            metrics.count_request(&code, &method, &host);
            if let (Ok(response), true) = (&result, is_ours) {
                metrics.refusals().note(&method, &path, watches, response.status().as_u16());
            }
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;

    use super::*;

    /// Whole lists of a large cluster take their time; a single object does not.
    #[tokio::test(start_paused = true)]
    async fn a_workload_cluster_that_hangs_costs_a_pass_ten_seconds() {
        let silent = tower::service_fn(|_: Request<Body>| async {
            std::future::pending::<Result<Response<Body>, Infallible>>().await
        });
        let layer = Metered::of_workload(&Metrics::new());
        let client = ClientBuilder::new(silent, "default").with_layer(&layer).build();
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let began = tokio::time::Instant::now();
        maps.get("a").await.unwrap_err();
        assert_eq!(began.elapsed(), WORKLOAD_TIMEOUT);
        maps.delete("a", &kube::api::DeleteParams::default()).await.unwrap_err();
        assert_eq!(began.elapsed(), 2 * WORKLOAD_TIMEOUT);
        maps.list(&kube::api::ListParams::default()).await.unwrap_err();
        assert_eq!(began.elapsed(), 2 * WORKLOAD_TIMEOUT + RESPONSE_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_answer_ends_and_is_counted_and_a_429_is_not_retried() {
        let metrics = Metrics::new();
        let silent = tower::service_fn(|_: Request<Body>| async {
            std::future::pending::<Result<Response<Body>, Infallible>>().await
        });
        let client = with_service(silent, "default", &metrics);
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.get("a").await.unwrap_err();

        let refusing = tower::service_fn(|_: Request<Body>| async {
            let response = Response::builder().status(429).body(Body::empty());
            Ok::<_, Infallible>(response.unwrap())
        });
        let client = with_service(refusing, "default", &metrics);
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.delete("a", &kube::api::DeleteParams::default()).await.unwrap_err();

        let forbidding = tower::service_fn(|_: Request<Body>| async {
            let response = Response::builder().status(403).body(Body::empty());
            Ok::<_, Infallible>(response.unwrap())
        });
        let client = with_service(forbidding, "default", &metrics);
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.get("a").await.unwrap_err();
        assert_eq!(metrics.refusals().list(), ["get configmaps in default"]);

        let text = metrics.encode().unwrap();
        let expected = [
            r#"rest_client_requests_total{code="<error>",method="GET",host="simulated"} 1"#,
            r#"rest_client_requests_total{code="429",method="DELETE",host="simulated"} 1"#,
        ];
        for line in expected {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
