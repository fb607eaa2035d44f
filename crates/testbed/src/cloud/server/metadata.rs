//! What happens to one HTTP request for an instance's metadata service?
//!
//! Every machine has the service at the same address; here each has it below a path of its own.

use std::time::Duration;

use axum::body::Body;
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
};

use super::{CloudHandle, ec2::AnswerLost};
use crate::cloud::model::MetadataRequest;

/// What all paths of metadata services begin with; then comes the instance's id.
pub(super) const PREFIX: &str = "/_imds/";

const TOKEN: &str = "x-aws-ec2-metadata-token";
const TOKEN_TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";

pub(super) async fn answer(
    handle: &CloudHandle,
    request: Request<Incoming>,
) -> Result<Response<Body>, AnswerLost> {
    let rest = request.uri().path().strip_prefix(PREFIX).unwrap_or_default();
    let (instance, path) = rest.split_once('/').unwrap_or((rest, ""));
    let header = |name: &str| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_owned)
    };
    let asked = MetadataRequest {
        method: request.method().to_string(),
        path: format!("/{path}"),
        token: header(TOKEN),
        token_seconds: header(TOKEN_TTL),
        forwarded: header("x-forwarded-for").is_some(),
    };
    let answer = handle.metadata(instance, &asked);
    let wait = Duration::try_from(answer.delivery.after).unwrap_or(Duration::ZERO);
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    if answer.delivery.lost {
        return Err(AnswerLost);
    }
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if let Some(seconds) = answer.token_seconds {
        response.headers_mut().insert(TOKEN_TTL, HeaderValue::from(seconds));
    }
    Ok(response)
}
