//! Who may read the metrics over TLS?
//!
//! Whoever shows a token that the API server knows and whom its rules let read `/metrics`. Both
//! questions are asked by this process itself: no side-car is needed.

mod access;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::{
    Router,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{
    HeaderMap, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE},
};

pub(crate) use self::access::asked_by;
pub use self::access::{Access, Verdict};
use crate::metrics::{self, Metrics};

/// Tokens of service accounts have about a thousand characters.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// The one route.
pub fn router(access: Access, metrics: &Metrics) -> Router {
    let (access, metrics) = (Arc::new(access), metrics.clone());
    let handler = move |headers: HeaderMap| {
        let (access, metrics) = (Arc::clone(&access), metrics.clone());
        async move { answer(&access, &metrics, &headers).await }
    };
    Router::new().route("/metrics", get(handler))
}

async fn answer(access: &Access, metrics: &Metrics, headers: &HeaderMap) -> Response {
    let verdict = match token(headers) {
        None => Verdict::Unauthenticated,
        Some(token) => access.ask(token).await,
    };
    metrics.count_metrics_access(verdict.label());
    match verdict {
        Verdict::Allowed => match metrics.encode() {
            Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        },
        Verdict::Unauthenticated => {
            (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], "who are you?\n")
                .into_response()
        }
        Verdict::Forbidden => (StatusCode::FORBIDDEN, "you may not get /metrics\n").into_response(),
        Verdict::Unknown => {
            (StatusCode::SERVICE_UNAVAILABLE, "the API server cannot be asked who you are\n")
                .into_response()
        }
    }
}

/// The token that a request shows.
pub(crate) fn token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    let is_one = scheme.eq_ignore_ascii_case("Bearer") && !token.is_empty();
    (is_one && token.len() <= TOKEN_BYTES_MAX).then_some(token)
}
