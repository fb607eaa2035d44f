//! What is in the Secret: the certificate, the next one during a change, and whom to trust.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use machinist_core::serving_certificate::{self, Validity};

use super::make::Made;
use crate::tls::keys::Pair;

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITIES: &str = "ca.crt";
const NEXT_CERTIFICATE: &str = "next.crt";
const NEXT_KEY: &str = "next.key";

const END: &str = "-----END CERTIFICATE-----";

/// The Secret's data; what is absent is empty.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Vec<u8>,
    next: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Contents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the keys.
        formatter.debug_struct("Contents").finish_non_exhaustive()
    }
}

impl Contents {
    pub(super) fn new(made: Made) -> Self {
        Self {
            certificate: made.certificate.into_bytes(),
            key: made.key.into_bytes(),
            authorities: made.authority.into_bytes(),
            next: None,
        }
    }

    pub(super) fn of(secret: &Secret) -> Self {
        let part = |name: &str| Some(secret.data.as_ref()?.get(name)?.0.clone());
        Self {
            certificate: part(CERTIFICATE).unwrap_or_default(),
            key: part(KEY).unwrap_or_default(),
            authorities: part(AUTHORITIES).unwrap_or_default(),
            next: part(NEXT_CERTIFICATE).zip(part(NEXT_KEY)),
        }
    }

    pub(super) fn to_data(&self) -> BTreeMap<String, ByteString> {
        let next = self.next.as_ref();
        [
            (CERTIFICATE, Some(&self.certificate)),
            (KEY, Some(&self.key)),
            (AUTHORITIES, Some(&self.authorities)),
            (NEXT_CERTIFICATE, next.map(|(certificate, _)| certificate)),
            (NEXT_KEY, next.map(|(_, key)| key)),
        ]
        .into_iter()
        .filter_map(|(name, bytes)| Some((name.to_owned(), ByteString(bytes?.clone()))))
        .collect()
    }

    pub(super) fn pair(&self) -> anyhow::Result<Pair> {
        Pair::read(&self.certificate, &self.key)
    }

    /// Whom to trust, in PEM; empty if nobody wrote it.
    pub(super) fn authorities(&self) -> &[u8] {
        &self.authorities
    }

    /// When the certificate is good; none if it cannot be used to serve under these names.
    pub(super) fn validity_for(&self, names: &[String]) -> Option<Validity> {
        self.usable(&self.certificate, &self.key, names)
    }

    pub(super) fn next_validity_for(&self, names: &[String]) -> Option<Validity> {
        let (certificate, key) = self.next.as_ref()?;
        self.usable(certificate, key, names)
    }

    /// The same with the next certificate beside, whose authority is to be trusted as well.
    pub(super) fn with_next(&self, made: Made, now: Timestamp) -> Self {
        Self {
            authorities: [self.good_authorities(now), made.authority.into_bytes()].concat(),
            next: Some((made.certificate.into_bytes(), made.key.into_bytes())),
            ..self.clone()
        }
    }

    /// The next one in its place. The authority of the one before is still trusted: another replica
    /// may serve with it for a while.
    pub(super) fn promoted(&self) -> Self {
        match self.next.clone() {
            Some((certificate, key)) => Self { certificate, key, next: None, ..self.clone() },
            None => self.clone(),
        }
    }

    fn usable(&self, certificate: &[u8], key: &[u8], names: &[String]) -> Option<Validity> {
        serving_certificate::read_all(&self.authorities).ok()?;
        let pair = Pair::read(certificate, key).ok()?;
        let stands_for = |name: &String| pair.certificate.names.contains(name);
        names.iter().all(stands_for).then_some(pair.certificate.validity)
    }

    /// The authorities that have not run out.
    fn good_authorities(&self, now: Timestamp) -> Vec<u8> {
        let text = String::from_utf8_lossy(&self.authorities);
        let is_good = |pem: &&str| {
            serving_certificate::read(pem.as_bytes())
                .is_ok_and(|certificate| now < certificate.validity.not_after)
        };
        let good = text.split_inclusive(END).map(str::trim).filter(is_good);
        good.flat_map(|pem| [pem.as_bytes(), b"\n"]).collect::<Vec<_>>().concat()
    }
}
