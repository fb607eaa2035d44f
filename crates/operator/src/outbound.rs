//! How is an HTTP endpoint asked that is not the API server's? One request on a connection of its own.

use std::{pin::pin, sync::Arc};

use anyhow::{Context as _, bail};
use axum::body::{Body, to_bytes};
use http::{
    HeaderValue, Request, StatusCode, Uri,
    header::{CONNECTION, HOST, USER_AGENT},
};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::client::AGENT;

/// More of an answer is not read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

/// Sends a request to the address. `trusting` says whose certificates count, where it is https.
///
/// # Errors
/// When the address cannot be used, nobody answers, or the certificate is not trusted.
pub async fn exchange(
    address: &Uri,
    mut request: Request<Body>,
    trusting: impl FnOnce() -> anyhow::Result<ClientConfig>,
) -> anyhow::Result<Answer> {
    let authority = address.authority().context("the address names no host")?;
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    *request.uri_mut() = address.path_and_query().map_or("/", |path| path.as_str()).parse()?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(authority.as_str())?);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    match address.scheme_str() {
        Some("http") => {
            let port = authority.port_u16().unwrap_or(80);
            send(TcpStream::connect((host.as_str(), port)).await?, request).await
        }
        Some("https") => {
            let port = authority.port_u16().unwrap_or(443);
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            let connector = TlsConnector::from(Arc::new(trusting()?));
            send(connector.connect(ServerName::try_from(host)?, stream).await?, request).await
        }
        _ => bail!("the address must begin with http:// or https://"),
    }
}

async fn send<S>(stream: S, request: Request<Body>) -> anyhow::Result<Answer>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut answer = pin!(async {
        let (parts, body) = sender.send_request(request).await?.into_parts();
        let body = to_bytes(Body::new(body), ANSWER_BYTES_MAX).await?;
        Ok(Answer { status: parts.status, body })
    });
    // The connection moves the bytes; it may end before the answer was taken from it.
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        _ = connection => answer.await,
    }
}
