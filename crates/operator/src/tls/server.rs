//! How are connections accepted, so that a slow or broken client hurts nobody else?
//!
//! Each connection is a task of its own, owned by the server's. Handshake, headers, silence and age
//! are bounded, and so is the number of connections: beyond it the one goes that has got no answer
//! for the longest time. A panic while answering is an answer of 500, and not the end of the process.

use std::{
    convert::Infallible,
    net::SocketAddr,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use axum::{Router, body::Body, response::IntoResponse};
use futures::FutureExt;
use http::{Request, Response, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use machinist_core::tls_profile::TlsProfile;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::{
    keys::ServingKeys,
    settings::{TlsSettings, server_config},
};
use crate::{engine::env::Env, metrics::Metrics};

/// What a client may take and have.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connections: usize,
    pub handshake: Duration,
    /// For the headers of a request, and for silence between requests.
    pub headers: Duration,
    /// After which a connection is ended between two requests: clients spread over the replicas anew.
    pub age: Duration,
    /// For the answer that is under way when a connection is to end.
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 128,
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(30),
            age: Duration::from_secs(10 * 60),
            farewell: Duration::from_secs(12),
        }
    }
}

/// How long a listener rests that cannot accept: the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A server that is bound and not yet serving.
#[derive(Debug)]
pub struct TlsServer {
    /// What it is called in logs and metrics.
    pub name: &'static str,
    pub address: SocketAddr,
    pub limits: Limits,
    listener: TcpListener,
}

/// What a server needs to serve.
#[derive(Clone, Debug)]
pub struct Serving {
    pub keys: ServingKeys,
    pub settings: TlsSettings,
    pub env: Env,
    pub metrics: Metrics,
}

impl TlsServer {
    /// Binds an address. Port 0 takes a free port.
    ///
    /// # Errors
    /// Fails, naming the address, when it cannot be bound.
    pub async fn bind(name: &'static str, address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("failed to listen on {address} for {name}"))?;
        let address = listener.local_addr().context("failed to read the bound address")?;
        tracing::info!(%address, server = name, "listening for TLS");
        Ok(Self { name, address, limits: Limits::default(), listener })
    }

    /// Serves until told to stop, and then ends what is under way.
    ///
    /// # Errors
    /// Fails when the settings of TLS cannot be used at all.
    pub async fn run(
        self,
        router: Router,
        serving: Serving,
        stopping: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut acceptor = Acceptor::new(&serving)?;
        let mut connections = JoinSet::new();
        let mut open = Open::default();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stopping.cancelled() => break,
                Some(ended) = connections.join_next_with_id() => {
                    open.ended(&match ended {
                        Ok((id, ())) => id,
                        Err(error) => error.id(),
                    });
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(server = self.name, %error, "failed to accept a connection");
                    serving.env.sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            if open.count() >= self.limits.connections {
                open.drop_stalest();
                serving.metrics.count_connection_dropped(self.name);
            }
            let turn = open.next_turn();
            let connection = Connection {
                server: self.name,
                limits: self.limits,
                router: router.clone(),
                metrics: serving.metrics.clone(),
                answered: Arc::clone(&turn),
                turns: Arc::clone(&open.turns),
                stopping: stopping.clone(),
            };
            let task = connections.spawn(connection.serve(stream, acceptor.newest(&serving)));
            open.started(task, turn);
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
        Ok(())
    }
}

/// rustls' configuration, made anew when the settings change.
struct Acceptor {
    profile: Arc<TlsProfile>,
    config: Arc<ServerConfig>,
}

impl Acceptor {
    fn new(serving: &Serving) -> anyhow::Result<Self> {
        let profile = serving.settings.get();
        let config = Arc::new(server_config(&profile, &serving.keys)?);
        Ok(Self { profile, config })
    }

    fn newest(&mut self, serving: &Serving) -> TlsAcceptor {
        if !Arc::ptr_eq(&self.profile, &serving.settings.get()) {
            match Self::new(serving) {
                Ok(newer) => *self = newer,
                Err(error) => tracing::warn!(%error, "the settings of TLS before are kept"),
            }
        }
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

/// The connections that are open, and when each got its last answer. Turns are counted, so that no
/// clock is needed.
#[derive(Default)]
struct Open {
    connections: Vec<(AbortHandle, Arc<AtomicU64>)>,
    turns: Arc<AtomicU64>,
}

impl Open {
    fn count(&self) -> usize {
        self.connections.len()
    }

    fn next_turn(&self) -> Arc<AtomicU64> {
        Arc::new(AtomicU64::new(self.turns.fetch_add(1, Ordering::Relaxed)))
    }

    fn started(&mut self, task: AbortHandle, turn: Arc<AtomicU64>) {
        self.connections.push((task, turn));
    }

    fn ended(&mut self, id: &tokio::task::Id) {
        self.connections.retain(|(task, _)| task.id() != *id);
    }

    fn drop_stalest(&mut self) {
        let turn_of = |(_, turn): &(AbortHandle, Arc<AtomicU64>)| turn.load(Ordering::Relaxed);
        let stalest = self.connections.iter().enumerate().min_by_key(|(_, one)| turn_of(one));
        if let Some(index) = stalest.map(|(index, _)| index) {
            self.connections.swap_remove(index).0.abort();
        }
    }
}

struct Connection {
    server: &'static str,
    limits: Limits,
    router: Router,
    metrics: Metrics,
    answered: Arc<AtomicU64>,
    turns: Arc<AtomicU64>,
    stopping: CancellationToken,
}

impl Connection {
    async fn serve(self, stream: TcpStream, acceptor: TlsAcceptor) {
        let Self { server, limits, .. } = self;
        let handshake = timeout(limits.handshake, acceptor.accept(stream));
        let stream = tokio::select! {
            biased;
            () = self.stopping.cancelled() => return,
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    tracing::debug!(server, %error, "a handshake failed");
                    return self.metrics.count_handshake_failure(server);
                }
                Err(_) => return self.metrics.count_handshake_failure(server),
            },
        };
        let service = service_fn(|request: Request<Incoming>| self.answer(request));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.headers)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            biased;
            ended = &mut connection => Some(ended),
            () = self.stopping.cancelled() => None,
            () = tokio::time::sleep(limits.age) => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().graceful_shutdown();
                timeout(limits.farewell, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(server, %error, "a connection broke");
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let mut router = self.router.clone();
        let answered = AssertUnwindSafe(router.call(request)).catch_unwind().await;
        self.answered.store(self.turns.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Ok(match answered {
            Ok(Ok(response)) => response,
            Err(_) => {
                tracing::error!(server = self.server, "panicked while answering a request");
                (StatusCode::INTERNAL_SERVER_ERROR, "this request cannot be answered\n")
                    .into_response()
            }
        })
    }
}
