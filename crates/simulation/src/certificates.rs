//! How is a certificate asked for, and how is it issued? In real bytes, so that the operator reads what
//! kubelets write.
//!
//! The same names are asked for in world after world, so the bytes are made once for each. The first
//! kubelets of all names share one key of the process, their successors the next, and all strangers
//! another: no run depends on which.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use machinist_api::names::certificate::{
    CLIENT_SIGNER, NODE_USER_PREFIX, NODES_GROUP, SERVING_SIGNER,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName,
    DnType, IsCa, Issuer, KeyPair, SanType, string::Ia5String,
};
use serde_json::{Value, json};

/// Who lets machines ask for their first certificate.
pub const BOOTSTRAPPER: &str =
    "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";

/// What a certificate is to say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    pub common_name: String,
    pub organizations: Vec<String>,
    pub dns: BTreeSet<String>,
    pub ip: BTreeSet<IpAddr>,
    /// Whose key it is for.
    pub key: KeyOf,
}

/// Who has the key that a certificate is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyOf {
    /// The kubelet that bears its name as so manieth; from 0.
    Kubelet(usize),
    Stranger,
}

impl Asked {
    /// As a kubelet asks to be this Node.
    #[must_use]
    pub fn client(node: &str) -> Self {
        Self {
            common_name: user_of(node),
            organizations: vec![NODES_GROUP.to_owned()],
            dns: BTreeSet::new(),
            ip: BTreeSet::new(),
            key: KeyOf::Kubelet(0),
        }
    }

    /// The same, for the key of a later bearer of the name.
    #[must_use]
    pub fn by_bearer(self, number: usize) -> Self {
        Self { key: KeyOf::Kubelet(number), ..self }
    }

    /// The same, for a key that no kubelet has.
    #[must_use]
    pub fn by_stranger(self) -> Self {
        Self { key: KeyOf::Stranger, ..self }
    }

    /// As a kubelet asks to serve under a name and an address.
    #[must_use]
    pub fn serving(node: &str, dns: &str, ip: Option<IpAddr>) -> Self {
        Self {
            dns: [dns.to_owned()].into_iter().collect(),
            ip: ip.into_iter().collect(),
            ..Self::client(node)
        }
    }

    /// The Node that it is for, where it is for one.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        self.common_name.strip_prefix(NODE_USER_PREFIX)
    }
}

/// What a Node is called as a user.
#[must_use]
pub fn user_of(node: &str) -> String {
    format!("{NODE_USER_PREFIX}{node}")
}

/// What the kubelet of an instance calls its request for a first certificate.
#[must_use]
pub fn client_request_of(instance: &str) -> String {
    format!("node-csr-{instance}")
}

/// What the certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    Client,
    Serving,
}

impl Purpose {
    #[must_use]
    pub const fn signer(self) -> &'static str {
        match self {
            Self::Client => CLIENT_SIGNER,
            Self::Serving => SERVING_SIGNER,
        }
    }

    const fn usage(self) -> &'static str {
        match self {
            Self::Client => "client auth",
            Self::Serving => "server auth",
        }
    }
}

/// The object that asks; its metadata is the asker's business.
#[must_use]
pub fn object(metadata: Value, purpose: Purpose, asked: &Asked) -> Value {
    json!({
        "metadata": metadata,
        "spec": {
            "signerName": purpose.signer(),
            "usages": ["digital signature", purpose.usage()],
            "request": &*request(asked),
        },
    })
}

/// What `spec.request` asks for, if it was made here.
#[must_use]
pub fn asked(request: &str) -> Option<Asked> {
    with_bytes(|bytes| bytes.asked.get(request).cloned())
}

/// The certificate for `spec.request`, as `status.certificate` holds it.
#[must_use]
pub fn issue(request: &str) -> Option<Arc<str>> {
    if let Some(known) = with_bytes(|bytes| bytes.issued.get(request).cloned()) {
        return Some(known);
    }
    let pem = String::from_utf8(STANDARD.decode(request).ok()?).ok()?;
    let parameters = CertificateSigningRequestParams::from_pem(&pem).ok()?;
    let keys = KEYS.as_ref()?;
    let certificate = parameters.signed_by(&keys.issuer).ok()?;
    let issued: Arc<str> = Arc::from(STANDARD.encode(certificate.pem()));
    with_bytes(|bytes| bytes.issued.insert(request.to_owned(), Arc::clone(&issued)));
    Some(issued)
}

/// The bytes of a certificate that `status.certificate` holds.
#[must_use]
pub fn der(certificate: &str) -> Option<Vec<u8>> {
    let pem = String::from_utf8(STANDARD.decode(certificate).ok()?).ok()?;
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    STANDARD.decode(body).ok()
}

/// The request in PEM, as `spec.request` holds it. Empty where it cannot be written, which every server
/// refuses.
fn request(asked: &Asked) -> Arc<str> {
    if let Some(known) = with_bytes(|bytes| bytes.requests.get(asked).cloned()) {
        return known;
    }
    let made: Arc<str> = Arc::from(encode(asked).unwrap_or_default());
    with_bytes(|bytes| {
        bytes.asked.insert(made.to_string(), asked.clone());
        bytes.requests.entry(asked.clone()).or_insert(made).clone()
    })
}

fn encode(asked: &Asked) -> Option<String> {
    let mut parameters = CertificateParams::default();
    let mut name = DistinguishedName::new();
    // The more general first, as Go writes it.
    for organization in &asked.organizations {
        name.push(DnType::OrganizationName, organization.as_str());
    }
    name.push(DnType::CommonName, asked.common_name.as_str());
    parameters.distinguished_name = name;
    for dns in &asked.dns {
        let dns = Ia5String::try_from(dns.as_str()).ok()?;
        parameters.subject_alt_names.push(SanType::DnsName(dns));
    }
    parameters.subject_alt_names.extend(asked.ip.iter().copied().map(SanType::IpAddress));
    let keys = KEYS.as_ref()?;
    let key = match asked.key {
        KeyOf::Kubelet(number) => keys.nodes.get(number)?,
        KeyOf::Stranger => &keys.stranger,
    };
    let request = parameters.serialize_request(key).ok()?;
    Some(STANDARD.encode(request.pem().ok()?))
}

/// What was made so far.
#[derive(Default)]
struct Bytes {
    requests: BTreeMap<Asked, Arc<str>>,
    asked: BTreeMap<String, Asked>,
    issued: BTreeMap<String, Arc<str>>,
}

static BYTES: LazyLock<Mutex<Bytes>> = LazyLock::new(Mutex::default);

fn with_bytes<T>(with: impl FnOnce(&mut Bytes) -> T) -> T {
    with(&mut BYTES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// So many instances of one world have one name after another. More cannot ask.
const BEARERS_MAX: usize = 64;

struct Keys {
    nodes: Vec<KeyPair>,
    stranger: KeyPair,
    issuer: Issuer<'static, KeyPair>,
}

static KEYS: LazyLock<Option<Keys>> = LazyLock::new(|| {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = Issuer::new(authority, KeyPair::generate().ok()?);
    let nodes = (0..BEARERS_MAX).map(|_| KeyPair::generate().ok()).collect::<Option<_>>()?;
    Some(Keys { nodes, stranger: KeyPair::generate().ok()?, issuer })
});

#[cfg(test)]
mod tests {
    use machinist_core::approval::request::{parse, parse_certificate};

    use super::*;

    #[test]
    fn what_is_asked_for_is_what_the_operator_reads() {
        let client = Asked::client("ip-10-0-1-7.ec2.internal");
        let address: IpAddr = "10.0.1.7".parse().unwrap();
        let serving = Asked::serving("a", "a", Some(address));
        for wanted in [client, serving] {
            let text = request(&wanted);
            assert_eq!(asked(&text), Some(wanted.clone()));
            let read = parse(&STANDARD.decode(&*text).unwrap()).unwrap();
            assert_eq!(read.common_name, wanted.common_name);
            assert_eq!(read.organizations.into_iter().collect::<Vec<_>>(), wanted.organizations);
            assert_eq!((read.names.dns, read.names.ip), (wanted.dns, wanted.ip));
        }
    }

    #[test]
    fn a_certificate_says_what_was_asked_for() {
        let wanted = Asked::serving("a", "a", None);
        let issued = issue(&request(&wanted)).unwrap();
        let read = parse_certificate(&der(&issued).unwrap()).unwrap();
        assert_eq!((read.common_name, read.names.dns), (wanted.common_name, wanted.dns));
    }
}
