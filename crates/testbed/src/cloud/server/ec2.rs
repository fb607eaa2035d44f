//! What happens to one HTTP request for EC2 or a load balancing service? Query protocol in, XML out,
//! late or never if so decided.

use std::{collections::BTreeMap, time::Duration};

use axum::body::{Body, to_bytes};
use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, USER_AGENT},
};

use super::{
    CloudHandle,
    requests::read_request,
    responses::{error_document, response_document},
};
use crate::cloud::model::{Caller, Ec2Error, Outcome, Service, UserData};

/// User data is at most 16 KiB and tags are small; more than this is no EC2 request.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The connection is to end without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer is lost on purpose")]
pub(super) struct AnswerLost;

pub(super) async fn answer(
    handle: &CloudHandle,
    request: Request<Incoming>,
) -> Result<Response<Body>, AnswerLost> {
    let (parts, body) = request.into_parts();
    let mut pairs = Vec::new();
    if let Some(query) = parts.uri.query() {
        pairs.extend(form_urlencoded::parse(query.as_bytes()).into_owned());
    }
    let readable = match parts.method {
        Method::GET => Ok(()),
        Method::POST => match to_bytes(Body::new(body), BODY_BYTES_MAX).await {
            Ok(bytes) => {
                pairs.extend(form_urlencoded::parse(&bytes).into_owned());
                Ok(())
            }
            Err(_) => Err(Ec2Error::new("RequestEntityTooLarge", "The request body is too large")),
        },
        _ => Err(Ec2Error::new("InvalidRequest", "The request must be a GET or a POST")),
    };
    let caller = caller_of(&parts.headers, &pairs);
    let outcome = match readable {
        Ok(()) => call(handle, &caller, pairs),
        Err(error) => {
            let outcome = handle.reject(&caller, "", BTreeMap::new(), error);
            Answer { service: Service::Ec2, action: String::new(), outcome }
        }
    };
    deliver(handle, outcome).await
}

/// An outcome, and for whom it is to be written.
struct Answer {
    service: Service,
    /// As it stands on the wire.
    action: String,
    outcome: Outcome,
}

fn call(handle: &CloudHandle, caller: &Caller, mut pairs: Vec<(String, String)>) -> Answer {
    // What belongs to the signature of a presigned request is no parameter of the action.
    pairs.retain(|(name, _)| !is_signature_part(name));
    let value = |wanted: &str| {
        let found = pairs.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let action = value("Action");
    let service = service_of(&value("Version"));
    let outcome = match read_request(service, &action, pairs.clone()) {
        Ok(request) => handle.call(caller, request),
        Err(error) => {
            let name = format!("{}{action}", service.prefix());
            handle.reject(caller, &name, without_secrets(pairs), error)
        }
    };
    Answer { service, action, outcome }
}

/// The services share one endpoint; the version of the API tells which is meant.
fn service_of(version: &str) -> Service {
    match version {
        "2012-06-01" => Service::Elb,
        "2015-12-01" => Service::Elbv2,
        _ => Service::Ec2,
    }
}

fn without_secrets(pairs: Vec<(String, String)>) -> BTreeMap<String, String> {
    pairs
        .into_iter()
        .map(|(name, value)| {
            if name != "UserData" {
                return (name, value);
            }
            let data = UserData(STANDARD.decode(&value).unwrap_or_else(|_| value.into_bytes()));
            (name, format!("{} bytes, sha256 {}", data.0.len(), data.sha256()))
        })
        .collect()
}

async fn deliver(handle: &CloudHandle, answer: Answer) -> Result<Response<Body>, AnswerLost> {
    let Answer { service, action, outcome } = answer;
    if let Some(breakpoint) = outcome.delivery.held {
        // Ends when the breakpoint is removed; hyper drops it when the client goes away before.
        handle.breakpoint_removed(breakpoint).await;
        return Err(AnswerLost);
    }
    let wait = Duration::try_from(outcome.delivery.after).unwrap_or(Duration::ZERO);
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    if outcome.delivery.lost {
        return Err(AnswerLost);
    }
    let (status, document) = match &outcome.result {
        Ok(response) => (200, response_document(service, &action, &outcome.request_id, response)),
        Err(error) => (error.status, error_document(service, &outcome.request_id, error)),
    };
    let mut response = Response::new(Body::from(document));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = hyper::header::HeaderValue::from_static("text/xml;charset=UTF-8");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    if let Ok(value) = outcome.request_id.parse() {
        response.headers_mut().insert("x-amzn-requestid", value);
    }
    Ok(response)
}

/// Reads who calls. Signatures are not verified, and neither are the region and date of the
/// credential's scope: the simulation tells callers apart, it does not protect anything.
fn caller_of(headers: &HeaderMap, pairs: &[(String, String)]) -> Caller {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &hyper::header::HeaderValue| value.to_str().ok())
            .unwrap_or_default()
    };
    let from_header = text(AUTHORIZATION).split_once("Credential=").map(|(_, rest)| rest);
    let presigned = pairs
        .iter()
        .find(|(name, _)| name == "X-Amz-Credential" || name == "AWSAccessKeyId")
        .map(|(_, value)| value.as_str());
    let access_key_id = from_header
        .or(presigned)
        .and_then(|credential| credential.split(['/', ',']).next())
        .filter(|key| !key.is_empty())
        .map(str::to_owned);
    Caller { access_key_id, user_agent: text(USER_AGENT).to_owned() }
}

fn is_signature_part(name: &str) -> bool {
    name.starts_with("X-Amz-")
        || matches!(
            name,
            "AWSAccessKeyId" | "Signature" | "SignatureMethod" | "SignatureVersion" | "Timestamp"
        )
}
