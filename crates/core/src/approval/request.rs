//! What certificate is asked for: a PKCS#10 request out of untrusted bytes.
//!
//! Another program, written in Go, reads the same bytes again and signs what it finds. So nothing is
//! accepted that two readers could see differently: what was read is written again, in the one plain
//! form that kubelets use, and must give the same bytes.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::encode;
use sha2::{Digest, Sha256};
use x509_parser::{
    certificate::X509Certificate,
    certification_request::{X509CertificationRequest, X509CertificationRequestInfo},
    cri_attributes::ParsedCriAttribute,
    extensions::{GeneralName, ParsedExtension, SubjectAlternativeName},
    pem::parse_x509_pem,
    prelude::FromDer,
    x509::X509Name,
};

/// A kubelet's request is about one kilobyte, with many addresses three.
const SIZE_MAX: usize = 64 * 1024;
const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";

/// What a certificate is to say, or says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedCertificate {
    pub common_name: String,
    pub organizations: BTreeSet<String>,
    pub names: Names,
    /// The kinds of other alternative names: email addresses, URIs and the like.
    pub other_names: BTreeSet<&'static str>,
    /// The fingerprint of the public key: SHA-256 of it as it is written, in hexadecimal.
    pub key: String,
}

/// The hosts that a certificate stands for. Names are in lower case, addresses in their one form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub dns: BTreeSet<String>,
    pub ip: BTreeSet<IpAddr>,
}

impl Names {
    pub fn is_empty(&self) -> bool {
        self.dns.is_empty() && self.ip.is_empty()
    }
}

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("it is larger than {SIZE_MAX} bytes")]
    TooLarge,
    #[error("it is not exactly one PEM block of type CERTIFICATE REQUEST")]
    NotPem,
    #[error("it is no PKCS#10 request in DER")]
    NotDer,
    #[error("its subject has other parts than one common name and organizations, or unusual ones")]
    Subject,
    #[error("it asks for more than alternative names, or for unusual ones")]
    Extensions,
    #[error("it is not written in the plain form that kubelets use")]
    NotPlain,
}

/// Reads `spec.request` of a signing request.
pub fn parse(pem: &[u8]) -> Result<RequestedCertificate, Unreadable> {
    let der = der_of(pem)?;
    let (rest, request) =
        X509CertificationRequest::from_der(&der).map_err(|_| Unreadable::NotDer)?;
    if !rest.is_empty() {
        return Err(Unreadable::NotDer);
    }
    let info = &request.certification_request_info;
    let mut certificate = subject(&info.subject)?;
    certificate.key = fingerprint(info.subject_pki.raw);
    let alternative_names = alternative_names(info)?;
    if let Some(names) = alternative_names {
        read_names(names, &mut certificate)?;
    }
    let written = encode::request_info(info, alternative_names).ok_or(Unreadable::NotPlain)?;
    if written != info.raw {
        return Err(Unreadable::NotPlain);
    }
    Ok(certificate)
}

/// The one extension of the one attribute that a kubelet sends, if it sends any.
fn alternative_names<'a>(
    info: &'a X509CertificationRequestInfo<'_>,
) -> Result<Option<&'a SubjectAlternativeName<'a>>, Unreadable> {
    let requested = match info.attributes() {
        [] => return Ok(None),
        [only] => match only.parsed_attribute() {
            ParsedCriAttribute::ExtensionRequest(requested) => requested,
            _ => return Err(Unreadable::Extensions),
        },
        _ => return Err(Unreadable::Extensions),
    };
    let [extension] = requested.extensions.as_slice() else { return Err(Unreadable::Extensions) };
    match extension.parsed_extension() {
        ParsedExtension::SubjectAlternativeName(names) => Ok(Some(names)),
        _ => Err(Unreadable::Extensions),
    }
}

/// Reads a certificate that a kubelet serves. Whether it is to be trusted is another question.
pub fn parse_certificate(der: &[u8]) -> Result<RequestedCertificate, Unreadable> {
    if der.len() > SIZE_MAX {
        return Err(Unreadable::TooLarge);
    }
    let (rest, served) = X509Certificate::from_der(der).map_err(|_| Unreadable::NotDer)?;
    if !rest.is_empty() {
        return Err(Unreadable::NotDer);
    }
    let mut certificate = subject(served.subject())?;
    certificate.key = fingerprint(served.public_key().raw);
    let names = served.subject_alternative_name().map_err(|_| Unreadable::Extensions)?;
    if let Some(names) = names {
        read_names(names.value, &mut certificate)?;
    }
    Ok(certificate)
}

/// The one block, and nothing before, after or inside it that a reader could skip.
fn der_of(pem: &[u8]) -> Result<Vec<u8>, Unreadable> {
    if pem.len() > SIZE_MAX {
        return Err(Unreadable::TooLarge);
    }
    let text = std::str::from_utf8(pem).map_err(|_| Unreadable::NotPem)?;
    let body = text
        .trim_end()
        .strip_prefix(BEGIN)
        .and_then(|text| text.strip_suffix(END))
        .ok_or(Unreadable::NotPem)?;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_plain = body.bytes().all(|byte| is_base64(byte) || matches!(byte, b'\r' | b'\n'));
    if !is_plain || !body.starts_with(['\r', '\n']) || !body.ends_with('\n') {
        return Err(Unreadable::NotPem);
    }
    let (_, block) = parse_x509_pem(pem).map_err(|_| Unreadable::NotPem)?;
    Ok(block.contents)
}

fn subject(name: &X509Name<'_>) -> Result<RequestedCertificate, Unreadable> {
    let text = |part: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        part.as_str().map(str::to_owned).map_err(|_| Unreadable::Subject)
    };
    let mut common_names = name.iter_common_name();
    let common_name = match (common_names.next(), common_names.next()) {
        (Some(only), None) => text(only)?,
        _ => return Err(Unreadable::Subject),
    };
    let organizations: Vec<String> =
        name.iter_organization().map(text).collect::<Result<_, _>>()?;
    if name.iter_attributes().count() != organizations.len() + 1 {
        return Err(Unreadable::Subject);
    }
    Ok(RequestedCertificate {
        common_name,
        organizations: organizations.into_iter().collect(),
        ..RequestedCertificate::default()
    })
}

fn fingerprint(key: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(key) {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn read_names(
    names: &SubjectAlternativeName<'_>,
    certificate: &mut RequestedCertificate,
) -> Result<(), Unreadable> {
    for name in &names.general_names {
        match name {
            GeneralName::DNSName(name) if name.is_ascii() && !name.is_empty() => {
                certificate.names.dns.insert(name.to_ascii_lowercase());
            }
            GeneralName::IPAddress(bytes) => {
                certificate.names.ip.insert(address(bytes).ok_or(Unreadable::Extensions)?);
            }
            GeneralName::RFC822Name(_) => {
                certificate.other_names.insert("email address");
            }
            GeneralName::URI(_) => {
                certificate.other_names.insert("URI");
            }
            GeneralName::OtherName(..)
            | GeneralName::X400Address(_)
            | GeneralName::DirectoryName(_)
            | GeneralName::EDIPartyName(_)
            | GeneralName::RegisteredID(_) => {
                certificate.other_names.insert("name of an unusual kind");
            }
            GeneralName::DNSName(_) | GeneralName::Invalid(..) => {
                return Err(Unreadable::Extensions);
            }
        }
    }
    Ok(())
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::V4(Ipv4Addr::from(four)));
    }
    let sixteen = <[u8; 16]>::try_from(bytes).ok()?;
    Some(IpAddr::V6(Ipv6Addr::from(sixteen)).to_canonical())
}
