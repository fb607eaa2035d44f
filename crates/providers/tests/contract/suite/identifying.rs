//! With whose rights does a provider call?

use machinist_providers::{ErrorClass, Provider, aws::AwsCredentials};

use crate::harness::{Capability, Harness};

/// STS answers only where the settings say: a success shows that it was asked there.
pub async fn role_is_assumed(harness: &Harness) {
    if !harness.can(Capability::Roles) {
        return;
    }
    let keys = "aws_access_key_id = testing\naws_secret_access_key = testing\n";
    let role = "role_arn = arn:aws:iam::123456789012:role/machinist\nsource_profile = source\n";
    for source in ["[profile source]", "[source]"] {
        let text = format!("[default]\n{role}\n{source}\n{keys}");
        let provider = harness.provider_with(AwsCredentials::SharedConfig(text)).await;
        provider.list("prod").await.unwrap();
    }
    let text = format!("[default]\n{role}");
    let provider = harness.provider_with(AwsCredentials::SharedConfig(text)).await;
    let error = provider.list("prod").await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unauthorized, "{error}");
}

pub async fn web_identity_is_exchanged(harness: &Harness) {
    if !harness.can(Capability::Roles) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, "header.payload.signature").unwrap();
    let text = |file: &std::path::Path| {
        format!(
            "[default]\nrole_arn = arn:aws:iam::123456789012:role/machinist\n\
             role_session_name = machinist\nweb_identity_token_file = {}\n",
            file.display()
        )
    };
    let provider = harness.provider_with(AwsCredentials::SharedConfig(text(&token_file))).await;
    provider.list("prod").await.unwrap();

    let missing = text(&folder.path().join("no-such-file"));
    let provider = harness.provider_with(AwsCredentials::SharedConfig(missing)).await;
    let error = provider.list("prod").await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unauthorized, "{error}");
    assert!(!error.message.contains("header.payload"), "{error}");
}
