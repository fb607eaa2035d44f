//! What does an answer look like, and a refusal?

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{
    StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE},
};
use machinist_core::overview::{
    query::BadQuestion,
    wish::{Cause, Refusal},
};
use schemars::JsonSchema;
use serde::Serialize;

/// Why a request is not answered.
#[derive(Debug)]
pub(super) struct Refused {
    pub status: StatusCode,
    pub body: ErrorBody,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ErrorBody {
    pub error: ErrorWords,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ErrorWords {
    /// A word for a program.
    pub code: &'static str,
    /// A sentence for a person.
    pub message: String,
    /// What would help.
    pub hint: Option<String>,
}

impl Refused {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let error = ErrorWords { code, message: message.into(), hint: None };
        Self { status, body: ErrorBody { error } }
    }

    pub fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.body.error.hint = Some(hint.into());
        self
    }

    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "there is nothing at this address")
    }

    pub fn unauthenticated() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthenticated", "the API server knows no such token")
            .hinted("send a token that the API server takes: Authorization: Bearer TOKEN")
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Invalid", message)
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// The API server could not be asked.
    pub fn unknown() -> Self {
        let message = "the API server cannot be asked now";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Unknown", message).hinted("try it again")
    }

    pub fn not_ready() -> Self {
        let message = "the operator has not read the cluster yet";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "NotReady", message).hinted("try it again")
    }

    pub fn failed() -> Self {
        let message = "this request cannot be answered";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Failed", message)
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let (status, code) = match refusal.cause {
            Cause::NotFound => (StatusCode::NOT_FOUND, "NotFound"),
            Cause::Invalid => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
            Cause::NotNow => (StatusCode::CONFLICT, "Conflict"),
        };
        Self::new(status, code, refusal.what).hinted(refusal.hint)
    }
}

impl From<BadQuestion> for Refused {
    fn from(question: BadQuestion) -> Self {
        Self::invalid(question.to_string())
    }
}

impl From<Refused> for Response<Body> {
    fn from(refused: Refused) -> Self {
        let mut response = json(&refused.body);
        *response.status_mut() = refused.status;
        if refused.status == StatusCode::UNAUTHORIZED {
            let scheme = http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// An answer that nobody keeps.
pub(super) fn json<T: Serialize>(value: &T) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(text) => {
            let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
            (headers, text).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "an answer of the page cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
