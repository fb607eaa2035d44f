//! What are the files of the page, and how long may a browser keep them?
//!
//! They are part of the program. A build without them serves the API alone.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::answer::Refused;

const INDEX: &str = "index.html";
/// Files in here have their content's hash in their name.
const HASHED: &str = "assets/";

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Files;

/// The file at a path that the guard let through.
pub(super) fn answer(method: &Method, path: &str, headers: &HeaderMap) -> Response<Body> {
    if method != Method::GET && method != Method::HEAD {
        let message = "only GET is answered here";
        return Refused::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).into();
    }
    let name = path.trim_start_matches('/');
    // The page has paths of its own, which are no files: those of machines may have dots.
    let is_route = name.is_empty() || !name.contains('.') || name.starts_with("machines/");
    let name = if is_route { INDEX } else { name };
    match Files::get(name) {
        Some(file) => serve(name, &file, headers),
        None if name == INDEX => {
            let text = "this program was built without the page; its API is under /api/v1\n";
            (StatusCode::NOT_FOUND, text).into_response()
        }
        None => Refused::not_found().into(),
    }
}

fn serve(name: &str, file: &EmbeddedFile, headers: &HeaderMap) -> Response<Body> {
    let hash = file.metadata.sha256_hash();
    let tag: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    let keep = match name.starts_with(HASHED) {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let kept = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if kept == Some(tag.as_str()) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    let headers = [
        (CONTENT_TYPE, content_type(name).to_owned()),
        (CACHE_CONTROL, keep.to_owned()),
        (ETAG, tag),
    ];
    (headers, file.data.to_vec()).into_response()
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}
