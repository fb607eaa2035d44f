//! What must be so whatever the bytes are. Each target takes bytes and panics when it finds something.

use k8s_openapi::{
    ByteString,
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
};
use machinist_api::{Machine, MachineSet, MachineSpec, ProviderSpec, RawObject};
use machinist_core::{
    admission::{Architecture, Context, Platform, Review, SecretKnowledge, Webhook},
    approval::{Policy, Reading, read, request},
    machine::observed::{provider_status, validate_record},
    machineset::{self, Bounds, Ceilings, Observed, capacity},
    providerspec,
};
use serde_json::Value;

/// What a person is told is short, however long the input was.
const WORDS_MAX: usize = 100_000;

/// A signing request: read as a node's only if it says so itself, in so many bytes.
pub fn certificate_request(pem: &[u8]) {
    if let Ok(certificate) = request::parse(pem) {
        let (_, block) = x509_parser::pem::parse_x509_pem(pem).expect("it was read");
        let der = block.contents.to_ascii_lowercase();
        let says = |text: &str| contains(&der, text.to_ascii_lowercase().as_bytes());
        assert!(says(&certificate.common_name));
        assert!(certificate.organizations.iter().all(|one| says(one)));
        assert!(certificate.names.dns.iter().all(|one| !one.is_empty() && says(one)));
    }
    let bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";
    let groups =
        ["system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator"];
    let node = "system:node:ip-10-0-1-7.ec2.internal";
    let client = ("kube-apiserver-client-kubelet", bootstrapper, &groups[..], "client auth");
    let serving = ("kubelet-serving", node, &["system:nodes"][..], "server auth");
    for (signer, username, groups, usage) in [client, serving] {
        let groups = groups.iter().copied().chain(["system:authenticated"]).map(str::to_owned);
        let request = CertificateSigningRequest {
            spec: CertificateSigningRequestSpec {
                request: ByteString(pem.to_vec()),
                signer_name: format!("kubernetes.io/{signer}"),
                username: Some(username.to_owned()),
                groups: Some(groups.collect()),
                usages: Some(vec!["digital signature".to_owned(), usage.to_owned()]),
                ..CertificateSigningRequestSpec::default()
            },
            ..CertificateSigningRequest::default()
        };
        match read(&request, &Policy::default()) {
            Reading::Client { node, .. } => {
                let certificate = request::parse(pem).expect("it was read");
                assert_eq!(certificate.common_name, format!("system:node:{node}"));
                assert!(certificate.names.is_empty() && certificate.other_names.is_empty());
                assert!(certificate.organizations.iter().eq(["system:nodes"]));
            }
            Reading::Serving { node, certificate } => {
                assert_eq!(format!("system:node:{node}"), username);
                assert_eq!(certificate.common_name, username);
                assert!(certificate.organizations.iter().eq(["system:nodes"]));
                assert!(certificate.names.dns.iter().all(|name| !name.contains('*')));
            }
            Reading::Refused(refusal) => assert!(refusal.to_string().len() < WORDS_MAX),
            Reading::NotOurs | Reading::Decided => panic!("the request is ours, and open"),
        }
    }
}

/// What a kubelet serves.
pub fn certificate(der: &[u8]) {
    request::parse_certificate(der).ok();
}

/// A question of the API server: answered, or an error of HTTP's.
pub fn admission(body: &[u8]) {
    for (platform, architecture) in [
        (Some(Platform::Aws), Architecture::Amd64),
        (Some(Platform::Other), Architecture::Arm64),
        (None, Architecture::Amd64),
    ] {
        let context = Context {
            platform,
            cluster_id: Some("c".to_owned()),
            region: Some("us-east-1".to_owned()),
            architecture,
        };
        for webhook in Webhook::ALL {
            let review = match Review::read(webhook, body) {
                Ok(review) => review,
                Err(error) => {
                    assert!(matches!(error.http_status(), 400 | 413));
                    assert!(error.to_string().len() < WORDS_MAX);
                    continue;
                }
            };
            let secret = match review.wanted_secret(&context) {
                Some(_) => SecretKnowledge::Missing,
                None => SecretKnowledge::NotAsked,
            };
            let answer = review.answer(&context, &secret);
            let bytes = answer.to_json().expect("an answer can be written");
            let answer: Value = serde_json::from_slice(&bytes).expect("an answer is JSON");
            let response = &answer["response"];
            assert_eq!(response["uid"], review.uid);
            match response["allowed"].as_bool() {
                Some(true) => assert!(response.get("status").is_none()),
                Some(false) => {
                    let words = response["status"]["message"].as_str().expect("it says why");
                    assert!(!words.is_empty() && words.len() < WORDS_MAX);
                    assert!(response.get("patch").is_none());
                }
                None => panic!("neither allowed nor refused"),
            }
        }
    }
}

/// A providerSpec, and a providerStatus: read, or refused by the name of a field.
pub fn provider_spec(json: &[u8]) {
    let Ok(value) = serde_json::from_slice::<RawObject>(json) else { return };
    let provider_spec = ProviderSpec { value: Some(value.clone()) };
    if let Err(fault) = providerspec::read(&provider_spec) {
        assert!(fault.path.starts_with("spec.providerSpec.value"));
        assert!(fault.to_string().len() < WORDS_MAX);
    }
    let mut machine = Machine::new("m", MachineSpec { provider_spec, ..MachineSpec::default() });
    let written = serde_json::to_string(&machine).expect("it can be written");
    assert!(written.contains(value.as_json()), "what a user wrote stays as it was");
    machine.status.get_or_insert_default().provider_status = Some(value);
    if let Err(fault) = validate_record(&machine) {
        assert_eq!(fault.path, "status.providerStatus");
        assert_eq!(provider_status(&machine), Default::default());
    }
}

/// A MachineSet that passed no admission: decided about, and never beyond what it may make.
pub fn machine_set(json: &[u8]) {
    let Ok(set) = serde_json::from_slice::<MachineSet>(json) else { return };
    capacity::question(&set);
    let names: Vec<String> = (0..100).map(|index| format!("m-{index}")).collect();
    let observed = Observed {
        set: &set,
        machines: Vec::new(),
        unreadable: 0,
        fresh_names: &names,
        bounds: Bounds {
            ceilings: Ceilings { of_one_set: 10, of_all: 100 },
            machines_in_all: 95,
            permitted: 50,
            burst_after: jiff::SignedDuration::ZERO,
        },
        status_written_at: None,
        last_failure: None,
    };
    let decision = machineset::decide(&observed, jiff::Timestamp::UNIX_EPOCH);
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
    assert!(decision.actions.len() <= wanted.min(5));
    assert!(wanted <= 10 || decision.actions.is_empty());
    let selector = decision.status.label_selector.as_deref().unwrap_or("x");
    let is_own = decision.status.label_selector
        == set.status.as_ref().and_then(|status| status.label_selector.clone());
    assert!(is_own || (1..=4096).contains(&selector.chars().count()));
    let words = decision.waiting.iter().map(|wait| wait.message.len());
    assert!(words.max().unwrap_or(0) < WORDS_MAX);
}

fn contains(bytes: &[u8], piece: &[u8]) -> bool {
    piece.is_empty() || bytes.windows(piece.len()).any(|window| window == piece)
}
