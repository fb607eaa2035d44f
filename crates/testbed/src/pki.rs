//! Which certificates does a cluster need, and who signs them?

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize,
    date_time_ymd,
};

/// A certificate and the key that belongs to it, both as PEM.
#[derive(Clone)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

/// A certificate authority.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Result<Self, rcgen::Error> {
        Self::with_key(name, KeyPair::generate()?)
    }

    /// With an RSA key, for programs that know no other.
    pub fn with_rsa(name: &str) -> Result<Self, rcgen::Error> {
        Self::with_key(name, KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?)
    }

    fn with_key(name: &str, key: KeyPair) -> Result<Self, rcgen::Error> {
        let mut parameters = parameters(name, None)?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let issuer = CertifiedIssuer::self_signed(parameters, key)?;
        Ok(Self { issuer })
    }

    /// The authority's own certificate, as PEM.
    #[must_use]
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// The authority's own certificate and key, for a program that signs with them.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { certificate: self.issuer.pem(), key: self.issuer.key().serialize_pem() }
    }

    /// A client certificate. Kubernetes reads the common name as the user and the organization as
    /// the group.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Identity, rcgen::Error> {
        let mut parameters = parameters(user, group)?;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&parameters)
    }

    /// A serving certificate for the given DNS names and addresses, good as a client's too: etcd
    /// calls itself with it.
    pub fn server(&self, name: &str, alternatives: &[&str]) -> Result<Identity, rcgen::Error> {
        let mut parameters = parameters(name, None)?;
        let names: Vec<String> = alternatives.iter().map(|&name| name.to_owned()).collect();
        parameters.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&parameters)
    }

    fn sign(&self, parameters: &CertificateParams) -> Result<Identity, rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.issuer)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// What shows that a user is who it says.
#[derive(Clone, Copy)]
pub enum Proof<'a> {
    Certificate(&'a Identity),
    /// A service account's.
    Token(&'a str),
}

/// The text of a kubeconfig file with one user. JSON is YAML, and needs no rules about quoting.
#[must_use]
pub fn kubeconfig(
    server: &str,
    authority_certificate: &str,
    user: &str,
    proof: Proof<'_>,
) -> String {
    use base64::Engine;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let proof = match proof {
        Proof::Certificate(identity) => serde_json::json!({
            "client-certificate-data": encode(&identity.certificate),
            "client-key-data": encode(&identity.key),
        }),
        Proof::Token(token) => serde_json::json!({ "token": token }),
    };
    let value = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "machinist",
        "clusters": [{
            "name": "machinist",
            "cluster": {
                "server": server,
                "certificate-authority-data": encode(authority_certificate),
            },
        }],
        "users": [{ "name": user, "user": proof }],
        "contexts": [{
            "name": "machinist",
            "context": { "cluster": "machinist", "user": user },
        }],
    });
    format!("{value:#}\n")
}

/// A certificate signing request, as PEM, and the key that it is for.
pub fn signing_request(
    user: &str,
    group: Option<&str>,
    alternatives: &[String],
) -> Result<Identity, rcgen::Error> {
    let mut parameters = parameters(user, group)?;
    parameters.subject_alt_names = CertificateParams::new(alternatives)?.subject_alt_names;
    let key = KeyPair::generate()?;
    let request = parameters.serialize_request(&key)?;
    Ok(Identity { certificate: request.pem()?, key: key.serialize_pem() })
}

fn parameters(
    common_name: &str,
    organization: Option<&str>,
) -> Result<CertificateParams, rcgen::Error> {
    let mut parameters = CertificateParams::new(Vec::<String>::new())?;
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    parameters.distinguished_name = name;
    let year = i32::from(Timestamp::now().to_zoned(TimeZone::UTC).year());
    parameters.not_before = date_time_ymd(year.saturating_sub(1), 1, 1);
    parameters.not_after = date_time_ymd(year.saturating_add(10), 1, 1);
    Ok(parameters)
}
