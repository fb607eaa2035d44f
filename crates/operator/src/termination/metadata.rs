//! How is the metadata service of this machine asked?
//!
//! A client of our own for version 2 of the service. It is a token and four questions over plain
//! HTTP, and it must be in every build, also in one that knows no cloud. It speaks to the one
//! address that it was given: no proxy, no redirects, no retries; every wait and every answer has a
//! bound. Each request has a connection of its own, so that nothing is left to go stale between two
//! looks.

#[cfg(test)]
mod tests;

use std::{pin::pin, str::FromStr, time::Duration};

use axum::body::{Body, to_bytes};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri,
    header::{CONNECTION, HOST, USER_AGENT},
};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use machinist_core::termination::{
    Answer, Observed,
    reading::{self, Unreadable},
};
use tokio::{net::TcpStream, time::Instant};

use crate::{client::AGENT, engine::env::Env};

/// The service is in the machine's own host: it answers in milliseconds or not at all.
const TIMEOUT: Duration = Duration::from_secs(2);
/// More than any of its answers has.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// The longest that the service gives.
const TOKEN_SECONDS: u32 = 21_600;
/// A token is renewed when this part of its life is left.
const TOKEN_REST: f64 = 0.1;

const TOKEN: HeaderName = HeaderName::from_static("x-aws-ec2-metadata-token");
const TOKEN_TTL: HeaderName = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");

/// Where the service is: a host, a port, and a path before all of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
    /// Host and port as they stand in the URL.
    authority: String,
    path: String,
}

impl Endpoint {
    pub const DEFAULT: &str = "http://169.254.169.254";
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not of the form http://<host>[:<port>][/<path>]");
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"));
        let authority = authority.ok_or_else(wrong)?;
        let is_more = uri.query().is_some() || authority.as_str().contains('@');
        if is_more || authority.host().is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(80),
            authority: authority.to_string(),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

/// Why a question brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    #[error("the metadata service at {authority} cannot be reached: {source}")]
    Unreachable { authority: String, source: std::io::Error },
    #[error("the metadata service did not answer {path} within {TIMEOUT:?}")]
    TimedOut { path: String },
    #[error("the metadata service broke off its answer to {path}: {source}")]
    BrokenOff { path: String, source: hyper::Error },
    #[error("the answer of the metadata service to {path} cannot be used: {source}")]
    Unusable { path: String, source: axum::Error },
    #[error("the metadata service answers {path} with {status}")]
    Refused { path: String, status: StatusCode },
    #[error("the metadata service gave a token that cannot be used")]
    BadToken,
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    #[error("the metadata service lists scheduled events without an id or a code")]
    UnreadableEvents,
}

/// What one look brought: what is known now, and what went wrong.
#[derive(Debug, Default)]
pub struct Look {
    pub observed: Observed,
    pub troubles: Vec<MetadataError>,
}

/// The metadata service of this machine.
#[derive(Debug)]
pub struct Metadata {
    endpoint: Endpoint,
    env: Env,
    token: Option<Token>,
}

#[derive(Clone, Debug)]
struct Token {
    value: HeaderValue,
    renew_at: Instant,
}

struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Metadata {
    pub const fn new(endpoint: Endpoint, env: Env) -> Self {
        Self { endpoint, env, token: None }
    }

    /// Asks all questions. A token that is refused is replaced once.
    pub async fn look(&mut self) -> Look {
        let had_token = self.token.is_some();
        let look = self.look_once().await;
        let is_refused = look.troubles.iter().any(|trouble| {
            matches!(trouble, MetadataError::Refused { status: StatusCode::UNAUTHORIZED, .. })
        });
        if !is_refused {
            return look;
        }
        self.token = None;
        // One that was made for this very look will not be better the second time.
        if had_token { self.look_once().await } else { look }
    }

    async fn look_once(&mut self) -> Look {
        let token = match self.token().await {
            Ok(token) => token,
            Err(error) => return Look { troubles: vec![error], ..Look::default() },
        };
        let (termination, action, rebalance, events) = tokio::join!(
            self.ask("spot/termination-time", &token, reading::termination_time),
            self.ask("spot/instance-action", &token, reading::instance_action),
            self.ask("events/recommendations/rebalance", &token, reading::rebalance),
            self.ask("events/maintenance/scheduled", &token, reading::scheduled_events),
        );
        let mut look = Look::default();
        look.observed.termination = look.take(termination);
        look.observed.action = look.take(action);
        look.observed.rebalance = look.take(rebalance);
        look.observed.events = look.take(events);
        if look.observed.events.announced().is_some_and(|events| events.is_partial) {
            look.troubles.push(MetadataError::UnreadableEvents);
        }
        look
    }

    /// One item below `meta-data`. The service says by 404 that there is nothing.
    async fn ask<T>(
        &self,
        item: &str,
        token: &HeaderValue,
        read: impl Fn(&str) -> Result<T, Unreadable>,
    ) -> Result<Answer<T>, MetadataError> {
        let path = format!("/latest/meta-data/{item}");
        let response = self.request(Method::GET, &path, TOKEN, token.clone()).await?;
        if response.status == StatusCode::NOT_FOUND {
            return Ok(Answer::Nothing);
        }
        if !response.status.is_success() {
            return Err(MetadataError::Refused { path, status: response.status });
        }
        Ok(Answer::Announced(read(&String::from_utf8_lossy(&response.body))?))
    }

    /// The token that there is, or a new one.
    async fn token(&mut self) -> Result<HeaderValue, MetadataError> {
        let now = self.env.instant();
        if let Some(token) = self.token.as_ref().filter(|token| now < token.renew_at) {
            return Ok(token.value.clone());
        }
        let path = "/latest/api/token";
        let seconds = HeaderValue::from(TOKEN_SECONDS);
        let response = self.request(Method::PUT, path, TOKEN_TTL, seconds).await?;
        if !response.status.is_success() {
            let path = path.to_owned();
            return Err(MetadataError::Refused { path, status: response.status });
        }
        let mut value =
            HeaderValue::from_bytes(&response.body).map_err(|_| MetadataError::BadToken)?;
        if value.is_empty() {
            return Err(MetadataError::BadToken);
        }
        value.set_sensitive(true);
        let given = response.headers.get(TOKEN_TTL).and_then(|header| header.to_str().ok());
        let seconds = given.and_then(|text| text.parse::<u32>().ok()).unwrap_or(TOKEN_SECONDS);
        let life = Duration::from_secs(seconds.min(TOKEN_SECONDS).into());
        let renew_at = now + life.mul_f64(1.0 - TOKEN_REST);
        self.token = Some(Token { value: value.clone(), renew_at });
        Ok(value)
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        header: HeaderName,
        value: HeaderValue,
    ) -> Result<Response, MetadataError> {
        let exchange = self.exchange(method, path, header, value);
        tokio::time::timeout(TIMEOUT, exchange)
            .await
            .unwrap_or_else(|_| Err(MetadataError::TimedOut { path: path.to_owned() }))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        header: HeaderName,
        value: HeaderValue,
    ) -> Result<Response, MetadataError> {
        let Endpoint { host, port, authority, path: base } = &self.endpoint;
        let unreachable =
            |source| MetadataError::Unreachable { authority: authority.clone(), source };
        let broken_off = |source| MetadataError::BrokenOff { path: path.to_owned(), source };
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.uri_mut() = format!("{base}{path}")
            .parse()
            .map_err(|error| unreachable(std::io::Error::other::<http::uri::InvalidUri>(error)))?;
        let host_header = HeaderValue::from_str(authority)
            .map_err(|error| unreachable(std::io::Error::other(error)))?;
        let headers = request.headers_mut();
        headers.insert(HOST, host_header);
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(header, value);

        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(unreachable)?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken_off)?;
        let mut answer = pin!(async {
            let (parts, body) =
                sender.send_request(request).await.map_err(broken_off)?.into_parts();
            let body = to_bytes(Body::new(body), BODY_BYTES_MAX)
                .await
                .map_err(|source| MetadataError::Unusable { path: path.to_owned(), source })?;
            Ok(Response { status: parts.status, headers: parts.headers, body: body.into() })
        });
        // The connection moves the bytes; it may end before the answer was taken from it.
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            _ = connection => answer.await,
        }
    }
}

impl Look {
    fn take<T>(&mut self, answer: Result<Answer<T>, MetadataError>) -> Answer<T> {
        answer.unwrap_or_else(|trouble| {
            self.troubles.push(trouble);
            Answer::Unknown
        })
    }
}
