//! How is the API server answered that asks about an object that is written, or about another version of it?
//!
//! All rules are in core. Here a request becomes a question (bounded in size, time and number), what
//! the rules must know is looked up, and the answer is sent back. It is served by every replica: the
//! API server asks whichever it reaches.

mod cluster;
mod cluster_api;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest, Request},
    response::{IntoResponse, Response},
    routing::post,
};
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use machinist_core::admission::{Answer, Review, Webhook, review::REVIEW_BYTES_MAX};
use tokio::sync::Semaphore;

pub use self::cluster::Cluster;
use crate::{engine::env::Env, metrics::Metrics};

/// Shorter than the 10 s that the API server waits, so that it is told why.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(9);

/// Most Machines are a few kilobytes. Of larger questions few are read at once, which bounds the
/// memory that strangers can make us use.
const SMALL_BYTES_MAX: usize = 256 * 1024;
const LARGE_AT_ONCE: usize = 4;

/// Looks at the API server that are under way at once. Who creates Machines waits for one of them.
const LOOKS_AT_ONCE: usize = 8;

/// Answers questions.
pub struct Admission {
    cluster: Cluster,
    env: Env,
    metrics: Metrics,
    large: Semaphore,
    looks: Semaphore,
}

/// What becomes of a question.
struct Outcome {
    /// The metric's label.
    result: &'static str,
    status: StatusCode,
    body: Vec<u8>,
}

/// The routes of all webhooks.
pub fn router(cluster: Cluster, env: &Env, metrics: &Metrics) -> Router {
    let admission = Arc::new(Admission {
        cluster,
        env: env.clone(),
        metrics: metrics.clone(),
        large: Semaphore::new(LARGE_AT_ONCE),
        looks: Semaphore::new(LOOKS_AT_ONCE),
    });
    let mut router = Router::new();
    for webhook in Webhook::ALL {
        let admission = Arc::clone(&admission);
        let handler = move |request: Request| {
            let admission = Arc::clone(&admission);
            async move { admission.answer(webhook, request).await }
        };
        router = router.route(webhook.path(), post(handler));
    }
    cluster_api::routes(router).layer(DefaultBodyLimit::max(REVIEW_BYTES_MAX))
}

impl Admission {
    async fn answer(&self, webhook: Webhook, request: Request) -> Response {
        let begun = self.env.instant();
        let _in_flight = self.metrics.begin_review(webhook);
        let review = self.review(webhook, request);
        let outcome = match tokio::time::timeout(ANSWER_TIMEOUT, review).await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::failure("timeout", 408, "the request took too long"),
        };
        let code = outcome.status.as_u16();
        self.metrics.count_review(webhook, outcome.result, code, begun.elapsed());
        outcome.into_response()
    }

    async fn review(&self, webhook: Webhook, request: Request) -> Outcome {
        let size = declared_size(request.headers());
        if size.is_some_and(|size| size > REVIEW_BYTES_MAX) {
            return Outcome::too_large();
        }
        let is_large = size.is_none_or(|size| size > SMALL_BYTES_MAX);
        let _permit = match is_large.then(|| self.large.acquire()) {
            Some(permit) => permit.await.ok(),
            None => None,
        };
        let body = match Bytes::from_request(request, &()).await {
            Ok(body) => body,
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                return Outcome::too_large();
            }
            Err(_) => return Outcome::failure("unreadable", 400, "the request broke off"),
        };
        let read = match is_large {
            false => Review::read(webhook, &body),
            // Long enough to be in the way of whatever else runs on this thread.
            true => match tokio::task::spawn_blocking(move || Review::read(webhook, &body)).await {
                Ok(read) => read,
                Err(_) => return Outcome::failure("error", 500, "the request cannot be read"),
            },
        };
        match read {
            Ok(review) => self.decide(&review).await,
            Err(error) => Outcome::failure("unreadable", error.http_status(), &error.to_string()),
        }
    }

    async fn decide(&self, review: &Review) -> Outcome {
        let Some(context) = self.cluster.context().await else {
            return Outcome::failure("error", 503, "the cluster is not known yet");
        };
        let secret = match review.wanted_secret(&context) {
            Some(name) => self.cluster.look_for_secret(&name, &self.looks).await,
            None => machinist_core::admission::SecretKnowledge::NotAsked,
        };
        let answer = review.answer(&context, &secret);
        match answer.to_json() {
            Ok(body) => Outcome { result: result_of(&answer), status: StatusCode::OK, body },
            Err(error) => Outcome::failure("error", 500, &error.to_string()),
        }
    }
}

fn result_of(answer: &Answer) -> &'static str {
    match (answer.is_allowed(), answer.patch.is_empty(), answer.warnings.is_empty()) {
        (false, _, _) => "denied",
        (true, false, _) => "patched",
        (true, true, false) => "warned",
        (true, true, true) => "allowed",
    }
}

/// None where it is not told, or told in a way that nobody should believe.
fn declared_size(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

impl Outcome {
    fn failure(result: &'static str, status: u16, message: &str) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { result, status, body: format!("{message}\n").into_bytes() }
    }

    fn too_large() -> Self {
        let message = format!("the request has more than {REVIEW_BYTES_MAX} bytes");
        Self::failure("too_large", 413, &message)
    }

    fn into_response(self) -> Response {
        let media_type = match self.status {
            StatusCode::OK => "application/json",
            _ => "text/plain; charset=utf-8",
        };
        (self.status, [(CONTENT_TYPE, media_type)], self.body).into_response()
    }
}
