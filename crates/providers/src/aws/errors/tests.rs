//! How a refusal reads, and what is kept out of it.

use aws_sdk_ec2::operation::run_instances::RunInstancesError;

use super::*;

#[derive(Debug)]
struct Status(u16);

impl ResponseStatus for Status {
    fn status_code(&self) -> u16 {
        self.0
    }
}

fn refusal(attempt: &Attempt, code: &str, message: &str, status: u16) -> ProviderError {
    let metadata = ErrorMetadata::builder().code(code).message(message).build();
    let error = SdkError::service_error(RunInstancesError::generic(metadata), Status(status));
    provider_error(attempt, &error)
}

fn launch() -> Attempt {
    Attempt::on_launch_input(Action::RunInstances, "launch an instance for machine a")
}

#[test]
fn refused_launch_names_the_field_the_machine_and_the_words_of_the_provider() {
    let words = "The subnet ID 'subnet-1' does not exist";
    let error = refusal(&launch(), "InvalidSubnetID.NotFound", words, 400);
    assert_eq!(error.class, ErrorClass::InvalidConfiguration);
    assert_eq!(error.code.as_deref(), Some("InvalidSubnetID.NotFound"));
    assert_eq!(
        error.message,
        "providerSpec.subnet: failed to launch an instance for machine a: \
         InvalidSubnetID.NotFound: The subnet ID 'subnet-1' does not exist"
    );
}

#[test]
fn refused_deed_does_not_blame_the_configuration() {
    let attempt = Attempt::on_instances(Action::StopInstances, "stop instance i-1");
    let words = "You can't stop the Spot Instance 'i-1'";
    let error = refusal(&attempt, "UnsupportedOperation", words, 400);
    assert_eq!(error.class, ErrorClass::InvalidConfiguration);
    assert!(error.message.starts_with("failed to stop instance i-1: "), "{error}");
}

#[test]
fn refused_registration_names_its_load_balancer() {
    let attempt = Attempt::on_registration(
        Action::RegisterTargets,
        "providerSpec.loadBalancers[1]",
        "register instance i-1 with load balancer int",
    );
    let error = refusal(&attempt, "TargetGroupNotFound", "gone", 400);
    assert_eq!(error.class, ErrorClass::NotFound);
    assert_eq!(
        error.message,
        "providerSpec.loadBalancers[1]: failed to register instance i-1 with load balancer int: \
         TargetGroupNotFound: gone"
    );
}

#[test]
fn missing_permission_is_named_and_the_encoded_message_dropped() {
    let start = Attempt::on_instances(Action::StartInstances, "start instance i-1");
    let encoded = "Encoded authorization failure message: aGVsbG8td29ybGQ_x-y";
    let user = "User: arn:aws:iam::1:user/a is";
    let table = [
        (
            "UnauthorizedOperation",
            format!("You are not authorized to perform this operation. {encoded}"),
            Some("ec2:StartInstances"),
        ),
        (
            "UnauthorizedOperation",
            format!("{user} not authorized to perform: iam:PassRole on resource: b. {encoded}"),
            Some("iam:PassRole"),
        ),
        (
            "AccessDenied",
            format!("{user} not authorized to perform: ec2:CreateTags"),
            Some("ec2:CreateTags"),
        ),
        ("AccessDeniedException", "no".to_owned(), Some("ec2:StartInstances")),
        (
            "AccessDenied",
            "not authorized to perform: everything".to_owned(),
            Some("ec2:StartInstances"),
        ),
        ("AuthFailure", "credentials could not be validated".to_owned(), None),
        ("OptInRequired", "subscribe first".to_owned(), None),
    ];
    for (code, words, expected) in table {
        let error = refusal(&start, code, &words, 403);
        assert_eq!(error.class, ErrorClass::Unauthorized, "{code}");
        assert_eq!(error.missing_permission.as_deref(), expected, "{words}");
        assert!(!error.message.contains("aGVsbG8"), "{error}");
        assert!(!error.message.contains("Encoded"), "{error}");
        if let Some(permission) = expected {
            let named = format!("failed to start instance i-1: permission {permission} is missing");
            assert!(error.message.starts_with(&named), "{error}");
        }
    }
}

#[test]
fn what_follows_an_encoded_message_is_kept() {
    let words = "a. Encoded authorization failure message: xyz and more";
    assert_eq!(without_encoded_message(words), "a. and more");
    assert_eq!(without_encoded_message("plain"), "plain");
}

#[test]
fn request_without_an_answer_is_transient() {
    let error: SdkError<RunInstancesError, Status> = SdkError::timeout_error("too slow");
    let error = provider_error(&launch(), &error);
    assert_eq!(error.class, ErrorClass::Transient);
    assert!(error.message.contains("too slow"), "{}", error.message);
}

#[test]
fn refusal_of_sts_is_told_from_its_silence() {
    let unsigned_by = |cause: Box<dyn Error + Send + Sync>| {
        let credentials = CredentialsError::provider_error(cause);
        let error: SdkError<RunInstancesError, Status> =
            SdkError::construction_failure(credentials);
        provider_error(&launch(), &error)
    };
    let denied = ErrorMetadata::builder()
        .code("AccessDenied")
        .message("User: a is not authorized to perform: sts:AssumeRole on resource: b")
        .build();
    let error = unsigned_by(denied.into());
    assert_eq!(error.class, ErrorClass::Unauthorized, "{error}");
    assert_eq!(error.missing_permission.as_deref(), Some("sts:AssumeRole"), "{error}");
    let throttled = ErrorMetadata::builder().code("Throttling").build();
    assert_eq!(unsigned_by(throttled.into()).class, ErrorClass::Throttled);
    let silence = ConnectorError::io("connection refused".into());
    assert_eq!(unsigned_by(silence.into()).class, ErrorClass::Transient);
    let expired = ErrorMetadata::builder().code("ExpiredToken").build();
    let error = unsigned_by(expired.into());
    assert_eq!((error.class, error.missing_permission), (ErrorClass::Unauthorized, None));
}

#[test]
fn long_refusals_are_cut() {
    assert_eq!(shortened(&"é".repeat(5_000)).chars().count(), 1_003);
    assert_eq!(shortened("short"), "short");
}
