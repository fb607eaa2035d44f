//! What the clients are built from, and what every call passes through.

use std::sync::Mutex;

use async_trait::async_trait;

use super::{super::settings::AwsCredentials, *};
use crate::{InstanceId, Provider};

/// Port 1 is reserved and nothing listens there.
const NOWHERE: &str = "http://127.0.0.1:1";

fn unreachable(credentials: AwsCredentials) -> AwsSettings {
    AwsSettings::new("us-east-1", credentials).with_one_endpoint(NOWHERE)
}

fn keys() -> AwsCredentials {
    AwsCredentials::Static {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: "topsecret".to_owned(),
    }
}

async fn first_error(settings: AwsSettings) -> ProviderError {
    let provider = AwsProvider::new(settings).await.unwrap();
    provider.terminate(&InstanceId("i-1".to_owned())).await.unwrap_err()
}

#[tokio::test]
async fn debug_output_shows_no_secret() {
    let shared = AwsCredentials::SharedConfig("aws_secret_access_key = topsecret".to_owned());
    for credentials in [keys(), shared] {
        let settings = unreachable(credentials);
        let provider = AwsProvider::new(settings.clone()).await.unwrap();
        let shown = format!("{settings:?} {provider:?}");
        assert!(!shown.contains("topsecret"), "{shown}");
        assert!(!shown.contains("AKIDEXAMPLE"), "{shown}");
    }
}

#[tokio::test]
async fn unreachable_endpoint_is_transient_and_counted() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let observer: CallObserver = Arc::new(move |call| {
        let permission = call.missing_permission.map(str::to_owned);
        record.lock().unwrap().push((call.action, call.outcome.to_owned(), permission));
    });
    let error = first_error(AwsSettings { observer: Some(observer), ..unreachable(keys()) }).await;
    assert_eq!(error.class, ErrorClass::Transient, "{error}");
    assert!(error.message.starts_with("failed to terminate instance i-1: "), "{error}");
    let expected = ("TerminateInstances", "Transient".to_owned(), None);
    assert_eq!(*seen.lock().unwrap(), [expected]);
}

#[derive(Default)]
struct RecordingPacer(Mutex<Vec<String>>);

#[async_trait]
impl Pacer for RecordingPacer {
    async fn turn_to_read(&self, action: &'static str) {
        self.0.lock().unwrap().push(format!("turn {action}"));
    }

    fn learn(&self, action: &'static str, class: Option<ErrorClass>) {
        self.0.lock().unwrap().push(format!("learn {action} {class:?}"));
    }
}

#[tokio::test]
async fn reads_wait_for_their_turn_and_every_answer_is_learnt_from() {
    let pacer = Arc::new(RecordingPacer::default());
    let settings = AwsSettings { pacer: Some(pacer.clone()), ..unreachable(keys()) };
    let provider = AwsProvider::new(settings).await.unwrap();
    let id = InstanceId("i-1".to_owned());
    provider.describe(std::slice::from_ref(&id)).await.unwrap_err();
    provider.stop(&id).await.unwrap_err();
    assert_eq!(
        *pacer.0.lock().unwrap(),
        [
            "turn DescribeInstances",
            "learn DescribeInstances Some(Transient)",
            "learn StopInstances Some(Transient)",
        ]
    );
}

#[tokio::test]
async fn shared_config_gives_its_default_profile() {
    let text = "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = topsecret\n";
    let error = first_error(unreachable(AwsCredentials::SharedConfig(text.to_owned()))).await;
    // It had credentials to sign with, and then found nobody there.
    assert_eq!(error.class, ErrorClass::Transient, "{error}");
}

#[tokio::test]
async fn shared_config_without_credentials_is_unauthorized() {
    for text in ["", "[other]\n", "[default]\ncredential_process = /bin/true\n"] {
        let credentials = AwsCredentials::SharedConfig(text.to_owned());
        let error = first_error(unreachable(credentials)).await;
        assert_eq!(error.class, ErrorClass::Unauthorized, "{text:?}: {error}");
    }
}

#[tokio::test]
async fn role_is_asked_for_where_the_settings_say_and_silence_there_is_transient() {
    let text = "[default]\nrole_arn = arn:aws:iam::123456789012:role/a\nsource_profile = source\n\
                [profile source]\naws_access_key_id = AKIDEXAMPLE\n\
                aws_secret_access_key = topsecret\n";
    let error = first_error(unreachable(AwsCredentials::SharedConfig(text.to_owned()))).await;
    assert_eq!(error.class, ErrorClass::Transient, "{error}");
    assert!(!error.message.contains("topsecret"), "{error}");
}

#[tokio::test]
async fn unusable_settings_are_refused_with_their_name() {
    let bundle = Some("not a certificate".to_owned());
    let table = [
        (
            unreachable(keys()).with_one_endpoint("ftp://example.com"),
            "endpoint \"ftp://example.com\" of ec2",
        ),
        (AwsSettings { ca_bundle_pem: bundle, ..unreachable(keys()) }, "ca bundle"),
        (AwsSettings { user_agent: "a b".to_owned(), ..unreachable(keys()) }, "user agent"),
    ];
    for (settings, expected) in table {
        let error = AwsProvider::new(settings).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::InvalidConfiguration);
        assert!(error.message.starts_with(expected), "{error}");
    }
}
