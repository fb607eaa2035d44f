//! What kind of failure is an answer of EC2?
//!
//! The class is read from EC2's error code, never from its words. A code that is in no table is
//! `Unknown`, or `Transient` where the status is a 5xx: never `InvalidConfiguration`, which is
//! terminal.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};

use crate::{ErrorClass, ProviderError};

/// What is being tried, for the message and for the meaning of "not found".
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// EC2's name of the action, such as `RunInstances`.
    pub action: &'static str,
    /// The rest of the sentence "failed to ...".
    pub what: String,
    pub subject: Subject,
}

/// What a code about a missing thing is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// An instance that we act on or read: missing means `NotFound`.
    Instance,
    /// Something that the providerSpec names: missing means that the configuration is wrong.
    LaunchInput,
}

impl Attempt {
    pub fn on_instances(action: &'static str, what: impl Into<String>) -> Self {
        Self { action, what: what.into(), subject: Subject::Instance }
    }

    pub fn on_launch_input(action: &'static str, what: impl Into<String>) -> Self {
        Self { action, what: what.into(), subject: Subject::LaunchInput }
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
    let what = &attempt.what;
    let (class, code, words) = match error {
        SdkError::ServiceError(service) => {
            let code = service.err().code();
            let status = service.raw().status_code();
            let class = class_of(code, Some(status), attempt.subject);
            let words = match (code, service.err().message()) {
                (Some(code), Some(message)) => format!("{code}: {message}"),
                (Some(code), None) => code.to_owned(),
                (None, Some(message)) => format!("HTTP {status}: {message}"),
                (None, None) => format!("HTTP {status}"),
            };
            (class, code, words)
        }
        SdkError::ResponseError(response) => {
            let status = response.raw().status_code();
            // A good status with a body that cannot be read is a broken connection or a proxy in
            // between: the effect may have happened.
            let class = match status {
                200..=299 => ErrorClass::Transient,
                status => class_of(None, Some(status), attempt.subject),
            };
            (class, None, format!("HTTP {status} with an unreadable answer: {}", chain(error)))
        }
        SdkError::TimeoutError(_) => (ErrorClass::Transient, None, chain(error)),
        SdkError::DispatchFailure(_) => (dispatch_class(error), None, chain(error)),
        SdkError::ConstructionFailure(_) => {
            (credentials_class(error).unwrap_or(ErrorClass::Unknown), None, chain(error))
        }
        other => (ErrorClass::Unknown, None, chain(other)),
    };
    let code = code.map(str::to_owned);
    let words = shortened(&words);
    let message = if class == ErrorClass::InvalidConfiguration {
        let field = field_of(code.as_deref().unwrap_or_default());
        format!("{field}: failed to {what}: {words}")
    } else {
        format!("failed to {what}: {words}")
    };
    ProviderError { class, message, code }
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

/// The class of an error code, or of a bare status.
pub(super) fn class_of(code: Option<&str>, status: Option<u16>, subject: Subject) -> ErrorClass {
    if let Some(class) = code.and_then(|code| class_of_code(code, subject)) {
        return class;
    }
    match status {
        Some(429) => ErrorClass::Throttled,
        Some(401 | 403) => ErrorClass::Unauthorized,
        Some(500..=599) => ErrorClass::Transient,
        _ => ErrorClass::Unknown,
    }
}

fn class_of_code(code: &str, subject: Subject) -> Option<ErrorClass> {
    // Old endpoints and some stand-ins prefix the code with the guilty side.
    let code =
        code.strip_prefix("Client.").or_else(|| code.strip_prefix("Server.")).unwrap_or(code);
    let class = match code {
        "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "EC2ThrottledException"
        | "TooManyRequestsException"
        | "BandwidthLimitExceeded"
        | "SlowDown" => ErrorClass::Throttled,
        "InsufficientInstanceCapacity"
        | "InsufficientHostCapacity"
        | "InsufficientCapacity"
        | "InsufficientCapacityOnHost"
        | "InsufficientReservedInstanceCapacity"
        | "InsufficientFreeAddressesInSubnet"
        | "InsufficientAddressCapacity"
        | "InsufficientVolumeCapacity"
        | "ReservationCapacityExceeded"
        | "UnfulfillableCapacity"
        | "SpotMaxPriceTooLow" => ErrorClass::InsufficientCapacity,
        // The request itself asks for too much of one thing: no quota of the account.
        "TagLimitExceeded"
        | "SecurityGroupsPerInstanceLimitExceeded"
        | "SecurityGroupsPerInterfaceLimitExceeded" => ErrorClass::InvalidConfiguration,
        "MaxSpotInstanceCountExceeded" | "ResourceCountExceeded" => ErrorClass::QuotaExceeded,
        "UnauthorizedOperation"
        | "Blocked"
        | "OptInRequired"
        | "PendingVerification"
        | "AccessDenied"
        | "AccessDeniedException"
        | "InvalidClientTokenId"
        | "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "MissingAuthenticationToken"
        | "IncompleteSignature"
        | "InvalidSecurity"
        | "InvalidHttpAuthHeader"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "RequestExpired"
        | "UnrecognizedClientException"
        | "NotAuthorized"
        | "OperationNotPermitted" => ErrorClass::Unauthorized,
        // The second says that the token's instance is gone: like a mismatch, the token is spent.
        "IdempotentParameterMismatch"
        | "IdempotentParameterMismatchException"
        | "IdempotentInstanceTerminated" => ErrorClass::TokenMismatch,
        "InternalError"
        | "InternalFailure"
        | "InternalServerError"
        | "Unavailable"
        | "ServiceUnavailable"
        | "RequestTimeout"
        | "RequestTimeoutException"
        | "ConcurrentTagAccess"
        | "IncorrectInstanceState"
        | "IncorrectState"
        | "InvalidState"
        | "InvalidHostState"
        | "InvalidNextToken"
        | "InvalidPaginationToken" => ErrorClass::Transient,
        // The endpoint does not know the action: nothing that a providerSpec could mend.
        "InvalidAction" | "UnknownAction" => ErrorClass::Unknown,
        "MissingParameter"
        | "MissingInput"
        | "UnknownParameter"
        | "Unsupported"
        | "UnsupportedOperation"
        | "UnsupportedException"
        | "UnsupportedTenancy"
        | "UnsupportedHostConfiguration"
        | "UnsupportedInstanceTypeOnHost"
        | "ValidationError"
        | "VolumeTypeNotAvailableInZone"
        | "VPCIdNotSpecified"
        | "VPCResourceNotSpecified"
        | "EncryptedVolumesNotSupported"
        | "NonEBSInstance" => ErrorClass::InvalidConfiguration,
        code => return class_of_code_family(code, subject),
    };
    Some(class)
}

/// Families of codes that EC2 extends with every new kind of thing.
fn class_of_code_family(code: &str, subject: Subject) -> Option<ErrorClass> {
    if code.starts_with("AuthFailure") {
        return Some(ErrorClass::Unauthorized);
    }
    if code.ends_with("LimitExceeded") {
        return Some(ErrorClass::QuotaExceeded);
    }
    let names_a_missing_thing = code.ends_with("NotFound") || code.ends_with(".Malformed");
    match subject {
        // An id that cannot even be read belongs to no instance.
        Subject::Instance if names_a_missing_thing || code == "InvalidInstanceID" => {
            Some(ErrorClass::NotFound)
        }
        Subject::LaunchInput if names_a_missing_thing => Some(ErrorClass::InvalidConfiguration),
        Subject::Instance | Subject::LaunchInput => {
            code.starts_with("Invalid").then_some(ErrorClass::InvalidConfiguration)
        }
    }
}

/// The field of the providerSpec that a code is about.
fn field_of(code: &str) -> &'static str {
    const FIELDS: [(&str, &str); 17] = [
        ("InvalidAMI", "providerSpec.ami"),
        ("InvalidSubnet", "providerSpec.subnet"),
        ("InvalidGroup", "providerSpec.securityGroups"),
        ("InvalidSecurityGroup", "providerSpec.securityGroups"),
        ("SecurityGroups", "providerSpec.securityGroups"),
        ("InvalidKeyPair", "providerSpec.keyName"),
        ("InvalidCapacityReservation", "providerSpec.capacityReservationId"),
        ("InvalidPlacementGroup", "providerSpec.placementGroupName"),
        ("InvalidBlockDevice", "providerSpec.blockDevices"),
        ("InvalidVolume", "providerSpec.blockDevices"),
        ("VolumeType", "providerSpec.blockDevices"),
        ("InvalidInstanceType", "providerSpec.instanceType"),
        ("InvalidHost", "providerSpec.placement.host"),
        ("InvalidTenancy", "providerSpec.placement.tenancy"),
        ("InvalidZone", "providerSpec.placement.availabilityZone"),
        ("InvalidUserData", "providerSpec.userDataSecret"),
        ("Tag", "providerSpec.tags"),
    ];
    FIELDS
        .iter()
        .find(|(prefix, _)| code.starts_with(prefix))
        .map_or("providerSpec", |(_, field)| field)
}

/// A request that got no answer. It may have arrived, unless there were no credentials to sign it.
fn dispatch_class(error: &(dyn Error + 'static)) -> ErrorClass {
    credentials_class(error).unwrap_or(ErrorClass::Transient)
}

fn credentials_class(error: &(dyn Error + 'static)) -> Option<ErrorClass> {
    let credentials =
        sources(error).find_map(|source| source.downcast_ref::<CredentialsError>())?;
    Some(match credentials {
        CredentialsError::ProviderTimedOut(_) => ErrorClass::Transient,
        _ => ErrorClass::Unauthorized,
    })
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

/// Keeps conditions and events readable: EC2 appends kilobytes of encoded text to some refusals.
fn shortened(words: &str) -> String {
    const CHARACTERS_MAX: usize = 1_000;
    match words.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &words[..end]),
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::{error::ErrorMetadata, operation::run_instances::RunInstancesError};

    use super::*;

    #[derive(Debug)]
    struct Status(u16);

    impl ResponseStatus for Status {
        fn status_code(&self) -> u16 {
            self.0
        }
    }

    #[test]
    fn codes_have_the_class_that_decides_the_policy() {
        use ErrorClass::{
            InsufficientCapacity, InvalidConfiguration, NotFound, QuotaExceeded, Throttled,
            TokenMismatch, Transient, Unauthorized, Unknown,
        };
        let table = [
            ("RequestLimitExceeded", 503, Throttled, Throttled),
            ("Client.RequestLimitExceeded", 503, Throttled, Throttled),
            ("Throttling", 400, Throttled, Throttled),
            ("InsufficientInstanceCapacity", 500, InsufficientCapacity, InsufficientCapacity),
            ("InsufficientFreeAddressesInSubnet", 400, InsufficientCapacity, InsufficientCapacity),
            ("ReservationCapacityExceeded", 400, InsufficientCapacity, InsufficientCapacity),
            ("InstanceLimitExceeded", 400, QuotaExceeded, QuotaExceeded),
            ("VcpuLimitExceeded", 400, QuotaExceeded, QuotaExceeded),
            ("VolumeLimitExceeded", 400, QuotaExceeded, QuotaExceeded),
            ("MaxSpotInstanceCountExceeded", 400, QuotaExceeded, QuotaExceeded),
            ("UnauthorizedOperation", 403, Unauthorized, Unauthorized),
            ("AuthFailure", 401, Unauthorized, Unauthorized),
            ("InvalidClientTokenId", 403, Unauthorized, Unauthorized),
            ("ExpiredToken", 400, Unauthorized, Unauthorized),
            ("OperationNotPermitted", 400, Unauthorized, Unauthorized),
            ("IdempotentParameterMismatch", 400, TokenMismatch, TokenMismatch),
            ("IdempotentInstanceTerminated", 400, TokenMismatch, TokenMismatch),
            ("InvalidInstanceID.NotFound", 400, NotFound, InvalidConfiguration),
            ("InvalidInstanceID.Malformed", 400, NotFound, InvalidConfiguration),
            ("InvalidSubnetID.NotFound", 400, NotFound, InvalidConfiguration),
            ("InvalidAMIID.NotFound", 400, NotFound, InvalidConfiguration),
            ("InvalidAMIID.Unavailable", 400, InvalidConfiguration, InvalidConfiguration),
            ("InvalidGroup.NotFound", 400, NotFound, InvalidConfiguration),
            ("InvalidParameterValue", 400, InvalidConfiguration, InvalidConfiguration),
            ("InvalidParameterCombination", 400, InvalidConfiguration, InvalidConfiguration),
            ("MissingParameter", 400, InvalidConfiguration, InvalidConfiguration),
            ("Unsupported", 400, InvalidConfiguration, InvalidConfiguration),
            ("TagLimitExceeded", 400, InvalidConfiguration, InvalidConfiguration),
            ("IncorrectInstanceState", 400, Transient, Transient),
            ("InternalError", 500, Transient, Transient),
            ("Unavailable", 503, Transient, Transient),
            ("SomethingNew", 500, Transient, Transient),
            ("SomethingNew", 400, Unknown, Unknown),
            ("InvalidAction", 400, Unknown, Unknown),
        ];
        for (code, status, on_instance, on_launch) in table {
            let class = |subject| class_of(Some(code), Some(status), subject);
            assert_eq!(class(Subject::Instance), on_instance, "{code} on an instance");
            assert_eq!(class(Subject::LaunchInput), on_launch, "{code} on a launch");
        }
        assert_eq!(class_of(None, Some(429), Subject::Instance), Throttled);
        assert_eq!(class_of(None, Some(403), Subject::Instance), Unauthorized);
        assert_eq!(class_of(None, Some(502), Subject::Instance), Transient);
        assert_eq!(class_of(None, None, Subject::Instance), Unknown);
    }

    #[test]
    fn refused_launch_names_the_field_the_machine_and_the_words_of_the_provider() {
        let metadata = ErrorMetadata::builder()
            .code("InvalidSubnetID.NotFound")
            .message("The subnet ID 'subnet-1' does not exist")
            .build();
        let error = SdkError::service_error(RunInstancesError::generic(metadata), Status(400));
        let attempt = Attempt::on_launch_input("RunInstances", "launch an instance for machine a");
        let error = provider_error(&attempt, &error);
        assert_eq!(error.class, ErrorClass::InvalidConfiguration);
        assert_eq!(error.code.as_deref(), Some("InvalidSubnetID.NotFound"));
        assert_eq!(
            error.message,
            "providerSpec.subnet: failed to launch an instance for machine a: \
             InvalidSubnetID.NotFound: The subnet ID 'subnet-1' does not exist"
        );
    }

    #[test]
    fn request_without_an_answer_is_transient() {
        let error: SdkError<RunInstancesError, Status> = SdkError::timeout_error("too slow");
        let attempt = Attempt::on_launch_input("RunInstances", "launch an instance for machine a");
        let error = provider_error(&attempt, &error);
        assert_eq!(error.class, ErrorClass::Transient);
        assert!(error.message.contains("too slow"), "{}", error.message);
    }

    #[test]
    fn long_refusals_are_cut() {
        assert_eq!(shortened(&"é".repeat(5_000)).chars().count(), 1_003);
        assert_eq!(shortened("short"), "short");
    }
}
