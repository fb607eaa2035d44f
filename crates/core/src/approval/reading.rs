//! Whose request it is, and whether it could ever be right: what can be said of a request without
//! looking at anything else.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use machinist_api::names::certificate::{
    AUTHENTICATED_GROUP, CLIENT_SIGNER, NODE_USER_PREFIX, NODES_GROUP, SERVING_SIGNER,
};

use super::{
    refusal::{Refusal, quoted},
    request::{self, Names, RequestedCertificate},
};

/// Older requests do not count against the limit: their kubelets gave up long ago.
const PENDING_WINDOW: SignedDuration = SignedDuration::from_hours(1);
const TOKEN_USER_PREFIX: &str = "system:bootstrap:";

/// Who may ask for the first certificate of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub bootstrappers: Vec<Bootstrapper>,
}

/// One kind of bootstrap credential: the user, and exactly its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bootstrapper {
    pub user: BootstrapUser,
    pub groups: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootstrapUser {
    Named(String),
    /// A bootstrap token of Kubernetes, whatever its id.
    AnyToken,
}

impl Default for Policy {
    /// As on OpenShift: the machine configuration's service account and no other.
    fn default() -> Self {
        Self {
            bootstrappers: vec![Bootstrapper::service_account(
                "openshift-machine-config-operator",
                "node-bootstrapper",
            )],
        }
    }
}

impl Bootstrapper {
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            user: BootstrapUser::Named(format!("system:serviceaccount:{namespace}:{name}")),
            groups: groups([
                "system:serviceaccounts",
                &format!("system:serviceaccounts:{namespace}"),
                AUTHENTICATED_GROUP,
            ]),
        }
    }

    /// The tokens that kubeadm makes.
    pub fn kubeadm_token() -> Self {
        Self {
            user: BootstrapUser::AnyToken,
            groups: groups([
                "system:bootstrappers",
                "system:bootstrappers:kubeadm:default-node-token",
                AUTHENTICATED_GROUP,
            ]),
        }
    }

    fn is(&self, username: &str) -> bool {
        match &self.user {
            BootstrapUser::Named(name) => name == username,
            BootstrapUser::AnyToken => username.strip_prefix(TOKEN_USER_PREFIX).is_some_and(|id| {
                id.len() == 6
                    && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            }),
        }
    }
}

/// What a request turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Another signer's, or a node that renews its own client certificate, which Kubernetes approves
    /// by itself.
    NotOurs,
    /// Approved, denied or failed already.
    Decided,
    /// Wrong in itself, for ever.
    Refused(Refusal),
    /// The first certificate of a machine that wants to become this Node, for the key of this
    /// fingerprint.
    Client { node: String, key: String },
    /// A certificate for the kubelet's own server.
    Serving { node: String, certificate: RequestedCertificate },
}

pub fn read(request: &CertificateSigningRequest, policy: &Policy) -> Reading {
    if !is_of_kubelets(request) {
        return Reading::NotOurs;
    }
    if is_decided(request) {
        return Reading::Decided;
    }
    let reading = match request.spec.signer_name.as_str() {
        CLIENT_SIGNER => read_client(request, policy),
        _ => read_serving(request),
    };
    reading.unwrap_or_else(Reading::Refused)
}

/// Whether a request counts against the limit of pending ones.
pub fn counts_as_pending(request: &CertificateSigningRequest, now: Timestamp) -> bool {
    let created = request.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    is_of_kubelets(request)
        && !is_decided(request)
        && created.checked_add(PENDING_WINDOW).is_ok_and(|end| end > now)
}

fn is_of_kubelets(request: &CertificateSigningRequest) -> bool {
    match request.spec.signer_name.as_str() {
        CLIENT_SIGNER => !username(request).starts_with(NODE_USER_PREFIX),
        SERVING_SIGNER => true,
        _ => false,
    }
}

fn is_decided(request: &CertificateSigningRequest) -> bool {
    request.status.as_ref().is_some_and(|status| {
        let is_verdict = |type_: &str| matches!(type_, "Approved" | "Denied" | "Failed");
        let conditions = status.conditions.iter().flatten();
        status.certificate.as_ref().is_some_and(|bytes| !bytes.0.is_empty())
            || conditions.into_iter().any(|condition| is_verdict(&condition.type_))
    })
}

fn username(request: &CertificateSigningRequest) -> &str {
    request.spec.username.as_deref().unwrap_or_default()
}

fn read_client(request: &CertificateSigningRequest, policy: &Policy) -> Result<Reading, Refusal> {
    let username = username(request);
    let mut known = policy.bootstrappers.iter().filter(|one| one.is(username)).peekable();
    let Some(first) = known.peek().copied() else {
        return Err(Refusal::Requester { username: username.to_owned() });
    };
    if !known.any(|one| has_groups(request, &one.groups)) {
        return Err(Refusal::Groups { expected: joined(&first.groups) });
    }
    has_usages(request, "client auth")?;
    let certificate = request::parse(&request.spec.request.0).map_err(Refusal::Unreadable)?;
    let node = node_named(&certificate, "system:node:<name>")?;
    no_forbidden_names(&certificate)?;
    if !certificate.names.is_empty() {
        return Err(Refusal::UnexpectedNames);
    }
    Ok(Reading::Client { node, key: certificate.key })
}

fn read_serving(request: &CertificateSigningRequest) -> Result<Reading, Refusal> {
    let username = username(request);
    if !username.starts_with(NODE_USER_PREFIX) {
        return Err(Refusal::Requester { username: username.to_owned() });
    }
    let expected = groups([NODES_GROUP, AUTHENTICATED_GROUP]);
    if !has_groups(request, &expected) {
        return Err(Refusal::Groups { expected: joined(&expected) });
    }
    has_usages(request, "server auth")?;
    let certificate = request::parse(&request.spec.request.0).map_err(Refusal::Unreadable)?;
    if certificate.common_name != username {
        return Err(Refusal::CommonName { expected: "the user that asks" });
    }
    let node = node_named(&certificate, "the user that asks")?;
    no_forbidden_names(&certificate)?;
    no_wildcards(&certificate.names)?;
    if certificate.names.is_empty() {
        return Err(Refusal::NoNames);
    }
    Ok(Reading::Serving { node, certificate })
}

fn has_groups(request: &CertificateSigningRequest, expected: &BTreeSet<String>) -> bool {
    let present: BTreeSet<String> = request.spec.groups.iter().flatten().cloned().collect();
    present == *expected
}

/// A digital signature and the purpose, with or without key encipherment, which RSA keys need.
fn has_usages(request: &CertificateSigningRequest, purpose: &str) -> Result<(), Refusal> {
    let mut present: BTreeSet<&str> =
        request.spec.usages.iter().flatten().map(String::as_str).collect();
    present.remove("key encipherment");
    if present == BTreeSet::from(["digital signature", purpose]) {
        Ok(())
    } else {
        Err(Refusal::Usages)
    }
}

fn node_named(
    certificate: &RequestedCertificate,
    expected: &'static str,
) -> Result<String, Refusal> {
    let Some(name) = certificate.common_name.strip_prefix(NODE_USER_PREFIX) else {
        return Err(Refusal::CommonName { expected });
    };
    // One more organization would be one more group: that of administrators, say.
    if certificate.organizations != groups([NODES_GROUP]) {
        return Err(Refusal::Organization);
    }
    if !is_node_name(name) {
        return Err(Refusal::NodeName { name: name.to_owned() });
    }
    Ok(name.to_owned())
}

fn no_forbidden_names(certificate: &RequestedCertificate) -> Result<(), Refusal> {
    if certificate.other_names.is_empty() {
        return Ok(());
    }
    let kinds: Vec<&str> = certificate.other_names.iter().copied().collect();
    Err(Refusal::ForbiddenNames { kinds: kinds.join(", ") })
}

fn no_wildcards(names: &Names) -> Result<(), Refusal> {
    match names.dns.iter().find(|name| name.contains('*')) {
        Some(name) => Err(Refusal::Wildcard { name: name.clone() }),
        None => Ok(()),
    }
}

/// A DNS subdomain, as the API server wants the name of a Node.
fn is_node_name(name: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().copied().is_some_and(is_edge)
            && bytes.last().copied().is_some_and(is_edge)
            && bytes.iter().all(|byte| is_edge(*byte) || *byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

fn groups<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn joined(groups: &BTreeSet<String>) -> String {
    groups.iter().map(|group| quoted(group)).collect::<Vec<_>>().join(", ")
}
