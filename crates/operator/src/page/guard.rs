//! Which requests are tricks, and what does a browser have to be told with every answer?
//!
//! There are no cookies: a foreign page cannot make a browser send the token along. Writes are refused to
//! foreign pages all the same.

use axum::{
    body::{Body, Bytes, to_bytes},
    response::Response,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode,
    header::{CONTENT_TYPE, HOST, ORIGIN},
};
use serde::de::DeserializeOwned;

use super::answer::Refused;

/// How much a request may carry.
const BODY_MAX: usize = 256 * 1024;
/// No path of ours is longer: a name has at most 253 letters, and a namespace 63.
const PATH_MAX: usize = 512;
/// The slash between the namespace and the name of a machine of Cluster API, as browsers write it in a part of a path.
const SLASHES: [&str; 2] = ["%2F", "%2f"];
/// How long a request may take to arrive.
const ARRIVAL: std::time::Duration = std::time::Duration::from_secs(10);

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Nothing but what this server itself serves; nobody frames it, nothing is sent anywhere by a form.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The parts behind `/api/v1`.
    Api(Vec<String>),
    File,
}

/// Reads a path. Nothing is decoded but the slash in the name of a machine: what else has to be is no path of ours.
pub(super) fn path(path: &str) -> Result<Place, Refused> {
    let parts = path.strip_prefix('/').ok_or_else(Refused::not_found)?;
    let parts: Vec<String> = parts.split('/').map(decoded).collect();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._/".contains(letter);
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_whole = path == "/" || parts.iter().all(|part| part.split('/').all(is_part));
    let is_plain = parts.iter().all(|part| part.chars().all(is_plain));
    if path.len() > PATH_MAX || !is_plain || !is_whole {
        return Err(Refused::not_found());
    }
    match parts.as_slice() {
        [api, version, rest @ ..] if api == "api" && version == "v1" => {
            Ok(Place::Api(rest.to_vec()))
        }
        [api, ..] if api == "api" => Err(Refused::not_found()),
        _ => Ok(Place::File),
    }
}

/// One part, with the slash that may be in it. A second one is none of a name.
fn decoded(part: &str) -> String {
    let slash = SLASHES.iter().find(|slash| part.contains(**slash));
    slash.map_or_else(|| part.to_owned(), |slash| part.replacen(slash, "/", 1))
}

/// Reads what a page sends, after it is clear that it is ours.
pub(super) async fn sent<T: DeserializeOwned>(
    request: Request<Body>,
    origins: &[String],
) -> Result<T, Refused> {
    is_ours(request.headers(), origins)?;
    let content = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content = content.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !content.eq_ignore_ascii_case("application/json") {
        let message = "the content must be application/json";
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "WrongContentType", message));
    }
    let bytes = body(request.into_body()).await?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Refused::invalid(format!("the content cannot be read: {error}")))
}

async fn body(body: Body) -> Result<Bytes, Refused> {
    let too_large = || {
        let message = format!("the content may have {BODY_MAX} bytes");
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", message)
    };
    match tokio::time::timeout(ARRIVAL, to_bytes(body, BODY_MAX)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => {
            let message = "the content does not arrive";
            Err(Refused::new(StatusCode::REQUEST_TIMEOUT, "TooSlow", message))
        }
    }
}

/// Whether a browser says that this comes from another page than ours.
fn is_ours(headers: &HeaderMap, origins: &[String]) -> Result<(), Refused> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let is_listed = |origin: &str| origins.iter().any(|one| one.eq_ignore_ascii_case(origin));
    let is_same = |origin: &str| {
        let host = origin.split_once("://").map(|(_, host)| host);
        host.is_some() && host == text(HOST)
    };
    let origin = text(ORIGIN);
    let is_foreign = origin.is_some_and(|origin| !is_same(origin) && !is_listed(origin))
        || (origin.is_none_or(|origin| !is_listed(origin))
            && text(SEC_FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none"));
    if is_foreign {
        let message = "this comes from another page";
        return Err(Refused::new(StatusCode::FORBIDDEN, "WrongOrigin", message)
            .hinted("behind a proxy, name its origin with --page-origin"));
    }
    Ok(())
}

/// Refuses another method than the one that a path has.
pub(super) fn method(request: &Request<Body>, wanted: &Method) -> Result<(), Refused> {
    if request.method() == wanted {
        return Ok(());
    }
    let message = format!("only {wanted} is answered here");
    Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message))
}

/// Says with every answer what a browser may do with it.
pub(super) fn with_headers(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}
