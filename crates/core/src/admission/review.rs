//! How a question of the API server is read and its answer written: the bytes of an
//! `admission.k8s.io/v1` AdmissionReview, in and out.
//!
//! What is no question at all is an error, for the server to answer in HTTP's words. A question whose
//! object cannot be read is answered: refused, naming the field.

use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{
    context::{Context, SecretKnowledge, SecretName},
    fault,
    mutate::{PatchOperation, mutate},
    object,
    validate::{Change, tolerated_warning, validate, wanted_secret},
    webhooks::{GROUP, Purpose, Webhook},
};
use crate::decision::FieldError;

/// The API server takes requests of 3 MiB and stores objects of 1.5 MiB; a review holds one of each.
/// What is larger does not come from it.
pub const REVIEW_BYTES_MAX: usize = 8 * 1024 * 1024;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// A question, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    pub webhook: Webhook,
    pub uid: String,
    pub namespace: String,
    operation: Operation,
    object: Option<Result<Value, FieldError>>,
    old: Option<Result<Value, FieldError>>,
}

/// Why bytes are no question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    #[error("the request has {bytes} bytes, more than {REVIEW_BYTES_MAX}")]
    TooLarge { bytes: usize },
    #[error("the request is not UTF-8 text")]
    NotUtf8,
    #[error("the request is no AdmissionReview: {0}")]
    NotAReview(String),
    #[error("the request is about {found}, but {expected} are looked at here")]
    WrongResource { found: String, expected: &'static str },
}

impl ReviewError {
    /// The status code of HTTP that says the same.
    pub fn http_status(&self) -> u16 {
        match self {
            Self::TooLarge { .. } => 413,
            Self::NotUtf8 | Self::NotAReview(_) | Self::WrongResource { .. } => 400,
        }
    }
}

/// What is said to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub uid: String,
    /// Why it is refused; none when it is allowed.
    pub denial: Option<Denial>,
    pub patch: Vec<PatchOperation>,
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Create,
    Update,
    /// Deletion and whatever else nobody asked to be asked about.
    Other,
}

impl Review {
    /// Reads a question that was asked at the path of `webhook`.
    pub fn read(webhook: Webhook, body: &[u8]) -> Result<Self, ReviewError> {
        if body.len() > REVIEW_BYTES_MAX {
            return Err(ReviewError::TooLarge { bytes: body.len() });
        }
        let text = std::str::from_utf8(body).map_err(|_| ReviewError::NotUtf8)?;
        let envelope: Envelope = serde_json::from_str(text)
            .map_err(|error| ReviewError::NotAReview(fault::cut(&error.to_string())))?;
        let missing = |field: &str| ReviewError::NotAReview(format!("{field}: Required value"));
        if envelope.api_version != API_VERSION || envelope.kind != KIND {
            return Err(ReviewError::NotAReview(format!(
                "expected {KIND} of {API_VERSION}, not {:?} of {:?}",
                fault::cut(&envelope.kind),
                fault::cut(&envelope.api_version)
            )));
        }
        let request = envelope.request.ok_or_else(|| missing("request"))?;
        if request.uid.is_empty() {
            return Err(missing("request.uid"));
        }
        request.check_resource(webhook)?;
        let is_of_a_part = request.sub_resource.is_some_and(|part| !part.is_empty());
        Ok(Self {
            webhook,
            uid: request.uid,
            namespace: request.namespace.unwrap_or_default(),
            operation: match request.operation.as_str() {
                _ if is_of_a_part => Operation::Other,
                "CREATE" => Operation::Create,
                "UPDATE" => Operation::Update,
                _ => Operation::Other,
            },
            object: request.object.map(object::read),
            old: request.old_object.map(object::read),
        })
    }

    /// The Secret to look for before answering, if any.
    pub fn wanted_secret(&self, context: &Context) -> Option<SecretName> {
        let (Operation::Create | Operation::Update, Purpose::Validate, Some(Ok(object))) =
            (self.operation, self.webhook.purpose(), &self.object)
        else {
            return None;
        };
        wanted_secret(&self.change(object), context)
    }

    /// Answers; `secret` is what is known of the one that was wanted.
    pub fn answer(&self, context: &Context, secret: &SecretKnowledge) -> Answer {
        let object = match (self.operation, self.webhook.purpose(), &self.object) {
            (Operation::Other, _, _) | (Operation::Update, Purpose::Default, _) => {
                return self.allowed();
            }
            (Operation::Create | Operation::Update, _, None) => {
                return self.unreadable(&fault::required("object", "an object must be sent"));
            }
            (Operation::Create | Operation::Update, _, Some(Err(fault))) => {
                return self.unreadable(fault);
            }
            (Operation::Create | Operation::Update, _, Some(Ok(object))) => object,
        };
        match self.webhook.purpose() {
            Purpose::Default => match mutate(self.webhook.kind(), object, context) {
                Ok(defaulted) => Answer { patch: defaulted.patch, ..self.allowed() },
                Err(faults) => self.refused(&faults, Vec::new()),
            },
            Purpose::Validate => {
                let verdict = validate(&self.change(object), context, secret);
                self.refused(&verdict.faults, verdict.warnings)
            }
        }
    }

    fn change<'a>(&'a self, object: &'a Value) -> Change<'a> {
        let old = match (self.operation, &self.old) {
            (Operation::Update, Some(Ok(old))) => Some(old),
            (Operation::Create | Operation::Update | Operation::Other, _) => None,
        };
        Change { kind: self.webhook.kind(), object, old, namespace: &self.namespace }
    }

    fn allowed(&self) -> Answer {
        Answer { uid: self.uid.clone(), denial: None, patch: Vec::new(), warnings: Vec::new() }
    }

    fn refused(&self, faults: &[FieldError], warnings: Vec<String>) -> Answer {
        let denial = (!faults.is_empty()).then(|| Denial {
            code: 403,
            reason: "Forbidden",
            message: fault::message(faults),
        });
        Answer { denial, warnings, ..self.allowed() }
    }

    /// An object that is stored with the same fault is let through, or nobody could ever remove its
    /// finalizers.
    fn unreadable(&self, fault: &FieldError) -> Answer {
        if self.operation == Operation::Update
            && self.old.as_ref().is_some_and(|old| old.as_ref() == Err(fault))
        {
            return Answer { warnings: vec![tolerated_warning(fault)], ..self.allowed() };
        }
        let message = fault.to_string();
        Answer {
            denial: Some(Denial { code: 400, reason: "BadRequest", message }),
            ..self.allowed()
        }
    }
}

impl Answer {
    pub fn is_allowed(&self) -> bool {
        self.denial.is_none()
    }

    /// The bytes to send back.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let patch = match self.patch.as_slice() {
            [] => None,
            patch => Some(ByteString(serde_json::to_vec(patch)?)),
        };
        serde_json::to_vec(&OutgoingReview {
            api_version: API_VERSION,
            kind: KIND,
            response: OutgoingResponse {
                uid: &self.uid,
                allowed: self.is_allowed(),
                status: self.denial.as_ref().map(|denial| OutgoingStatus {
                    status: "Failure",
                    code: denial.code,
                    reason: denial.reason,
                    message: &denial.message,
                }),
                patch_type: patch.as_ref().map(|_| "JSONPatch"),
                patch,
                warnings: &self.warnings,
            },
        })
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "apiVersion", default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow, default)]
    request: Option<Request<'a>>,
}

/// The objects are kept as text here: reading them must not fail the question.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    sub_resource: Option<String>,
    #[serde(default)]
    resource: Option<Resource>,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    old_object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(default)]
    group: String,
    #[serde(default)]
    resource: String,
}

impl Request<'_> {
    /// A configuration that sends us other objects must not make us refuse them.
    fn check_resource(&self, webhook: Webhook) -> Result<(), ReviewError> {
        match &self.resource {
            Some(Resource { group, resource })
                if group != GROUP || resource != webhook.resource() =>
            {
                Err(ReviewError::WrongResource {
                    found: fault::cut(&format!("{resource}.{group}")),
                    expected: webhook.resource(),
                })
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutgoingReview<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: OutgoingResponse<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutgoingResponse<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<OutgoingStatus<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<ByteString>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
struct OutgoingStatus<'a> {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: &'a str,
}
