//! What kind of failure is an answer of AWS, and how is it told?

mod classes;

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_ec2::error::{ErrorMetadata, ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::result::ConnectorError;

use self::classes::{class_of, denies_a_permission, field_of};
use super::actions::Action;
use crate::{ErrorClass, ProviderError};

/// What is being tried, for the message and for the meaning of "not found".
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub action: Action,
    /// The rest of the sentence "failed to ...".
    pub what: String,
    pub subject: Subject,
    /// The field of the providerSpec that it is done for, where one can be named beforehand.
    field: Option<String>,
}

/// What a code about a missing or wrong thing is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// An instance or host that we act on or read: missing means `NotFound`.
    Instance,
    /// Something that the providerSpec names: missing means that the configuration is wrong.
    LaunchInput,
    /// A load balancer of a Machine that runs already: nothing about it is terminal.
    Registration,
    /// The queue of events.
    Queue,
}

impl Attempt {
    pub fn on_instances(action: Action, what: impl Into<String>) -> Self {
        Self::on(Subject::Instance, action, what)
    }

    pub fn on_launch_input(action: Action, what: impl Into<String>) -> Self {
        Self::on(Subject::LaunchInput, action, what)
    }

    pub fn on_queue(action: Action, what: impl Into<String>) -> Self {
        Self::on(Subject::Queue, action, what)
    }

    /// With a load balancer that the field names.
    pub fn on_registration(action: Action, field: &str, what: impl Into<String>) -> Self {
        Self { field: Some(field.to_owned()), ..Self::on(Subject::Registration, action, what) }
    }

    fn on(subject: Subject, action: Action, what: impl Into<String>) -> Self {
        Self { action, what: what.into(), subject, field: None }
    }

    /// The error of this attempt in our own words.
    pub fn failed(&self, class: ErrorClass, words: impl std::fmt::Display) -> ProviderError {
        let what = &self.what;
        ProviderError::new(class, self.with_field(format!("failed to {what}: {words}")))
    }

    fn with_field(&self, message: String) -> String {
        match &self.field {
            Some(field) => format!("{field}: {message}"),
            None => message,
        }
    }
}

/// Returns the error of a configuration that is at fault, with the field's path first.
pub(super) fn invalid(field: &str, message: impl std::fmt::Display) -> ProviderError {
    ProviderError::new(ErrorClass::InvalidConfiguration, format!("{field}: {message}"))
}

/// Translates an error of the SDK.
pub(super) fn provider_error<E, R>(attempt: &Attempt, error: &SdkError<E, R>) -> ProviderError
where
    E: ProvideErrorMetadata + Error + 'static,
    R: ResponseStatus + std::fmt::Debug + 'static,
{
    let failure = match error {
        SdkError::ServiceError(service) => {
            let code = service.err().code();
            let status = service.raw().status_code();
            let words = match (code, service.err().message()) {
                (Some(code), Some(message)) => format!("{code}: {message}"),
                (Some(code), None) => code.to_owned(),
                (None, Some(message)) => format!("HTTP {status}: {message}"),
                (None, None) => format!("HTTP {status}"),
            };
            let class = class_of(code, Some(status), attempt.subject);
            Failure { class, code: code.map(str::to_owned), words }
        }
        SdkError::ResponseError(response) => {
            let status = response.raw().status_code();
            // A good status with a body that cannot be read is a broken connection or a proxy in
            // between: the effect may have happened.
            let class = match status {
                200..=299 => ErrorClass::Transient,
                status => class_of(None, Some(status), attempt.subject),
            };
            let words = format!("HTTP {status} with an unreadable answer: {}", chain(error));
            Failure { class, code: None, words }
        }
        SdkError::TimeoutError(_) => {
            Failure { class: ErrorClass::Transient, code: None, words: chain(error) }
        }
        // It may have arrived, unless there were no credentials to sign it with.
        SdkError::DispatchFailure(_) => unsigned(error, ErrorClass::Transient),
        SdkError::ConstructionFailure(_) => unsigned(error, ErrorClass::Unknown),
        other => Failure { class: ErrorClass::Unknown, code: None, words: chain(other) },
    };
    failure.tell(attempt)
}

/// The HTTP status of a response; a trait so that tests need no response.
pub(super) trait ResponseStatus {
    fn status_code(&self) -> u16;
}

impl ResponseStatus for aws_smithy_runtime_api::client::orchestrator::HttpResponse {
    fn status_code(&self) -> u16 {
        self.status().as_u16()
    }
}

struct Failure {
    class: ErrorClass,
    code: Option<String>,
    words: String,
}

impl Failure {
    fn tell(self, attempt: &Attempt) -> ProviderError {
        let Self { class, code, words } = self;
        let words = shortened(without_encoded_message(&words).trim_end());
        let what = &attempt.what;
        let missing_permission =
            code.as_deref().filter(|code| denies_a_permission(code)).map(|_| {
                named_permission(&words).unwrap_or_else(|| attempt.action.permission()).to_owned()
            });
        let message = match &missing_permission {
            Some(permission) => {
                format!("failed to {what}: permission {permission} is missing: {words}")
            }
            None => format!("failed to {what}: {words}"),
        };
        let at_fault =
            class == ErrorClass::InvalidConfiguration && attempt.subject == Subject::LaunchInput;
        let message = if at_fault && attempt.field.is_none() {
            format!("{}: {message}", field_of(code.as_deref().unwrap_or_default()))
        } else {
            attempt.with_field(message)
        };
        ProviderError { class, message, code, missing_permission }
    }
}

/// The failure of a request that was never answered; `otherwise` where credentials were not why.
fn unsigned(error: &(dyn Error + 'static), otherwise: ErrorClass) -> Failure {
    let words = chain(error);
    let mut causes = sources(error);
    let Some(credentials) = causes.find_map(|cause| cause.downcast_ref::<CredentialsError>())
    else {
        return Failure { class: otherwise, code: None, words };
    };
    // Behind it may be an answer of STS, or none.
    let refusal = sources(credentials).find_map(|cause| cause.downcast_ref::<ErrorMetadata>());
    let code = refusal.and_then(ErrorMetadata::code).map(str::to_owned);
    let is_unreachable = sources(credentials).any(|cause| cause.is::<ConnectorError>());
    let class = match (credentials, code.as_deref()) {
        (CredentialsError::ProviderTimedOut(_), _) => ErrorClass::Transient,
        (_, Some(code)) => match class_of(Some(code), None, Subject::Instance) {
            class @ (ErrorClass::Transient | ErrorClass::Throttled) => class,
            _ => ErrorClass::Unauthorized,
        },
        (_, None) if is_unreachable => ErrorClass::Transient,
        (_, None) => ErrorClass::Unauthorized,
    };
    // A role that may not be assumed lacks the right to sts:AssumeRole, not to the call.
    let code = code.filter(|_| named_permission(&words).is_some());
    Failure { class, code, words }
}

/// The permission that a refusal names: a launch also needs others than its own.
fn named_permission(words: &str) -> Option<&str> {
    let (_, rest) = words.split_once("not authorized to perform: ")?;
    let end = rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || ":-".contains(letter)));
    let permission = &rest[..end.unwrap_or(rest.len())];
    let (service, action) = permission.split_once(':')?;
    (!service.is_empty() && !action.is_empty()).then_some(permission)
}

/// EC2 appends kilobytes that only a holder of other rights can read, and that name our policies.
fn without_encoded_message(words: &str) -> String {
    const LABEL: &str = "Encoded authorization failure message:";
    let Some((before, after)) = words.split_once(LABEL) else { return words.to_owned() };
    let rest = after.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
    format!("{before}{rest}")
}

fn sources<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let current = next?;
        next = current.source();
        Some(current)
    })
}

/// The words of an error and of all its causes, each once.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for source in sources(error) {
        let words = source.to_string();
        if text.ends_with(&words) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&words);
    }
    text
}

/// Keeps conditions and events readable.
pub(super) fn shortened(words: &str) -> String {
    const CHARACTERS_MAX: usize = 1_000;
    match words.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &words[..end]),
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests;
