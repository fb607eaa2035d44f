//! When is a certificate that we signed for ourselves replaced, and whom do clients trust meanwhile?
//!
//! Each certificate has an authority of its own, whose key is forgotten once it has signed. Before one
//! runs out the next is made and its authority is made known; only later, when every client has had
//! the time to learn of it, is the next one served with. Nobody is ever shown a certificate that it
//! does not trust yet.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use x509_parser::{
    certificate::X509Certificate,
    extensions::{GeneralName, ParsedExtension},
    pem::Pem,
    prelude::FromDer,
};

/// How long a certificate and its authority are good for.
pub const LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);

/// How long before now they begin, for clients whose clocks are behind.
pub const BACKDATED: SignedDuration = SignedDuration::from_hours(1);

/// How long before the end the next one is made: long enough for people to notice that it failed.
pub const RENEWED_BEFORE: SignedDuration = SignedDuration::from_hours(90 * 24);

/// How long the next authority is known before its certificate is served with.
pub const KNOWN_BEFORE: SignedDuration = SignedDuration::from_hours(1);

/// Certificates of a file that are looked at. A chain has a few.
const CERTIFICATES_MAX: usize = 64;

/// When a certificate is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

/// What must be known of a certificate to serve with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    pub validity: Validity,
    /// Host names and addresses, as text.
    pub names: BTreeSet<String>,
}

/// Why bytes are no certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    #[error("there is no certificate in PEM")]
    Empty,
    #[error("there are more than {CERTIFICATES_MAX} certificates")]
    TooMany,
    #[error("certificate {0} is not in PEM")]
    NotPem(usize),
    #[error("certificate {0} cannot be read")]
    NotDer(usize),
}

/// What to do about the certificates that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Keep,
    /// Serve with a new one now: there is none that anybody could trust.
    Replace,
    /// Make the next one and let its authority be known.
    Prepare,
    /// Serve with the next one.
    Promote,
}

/// Decides; `current` and `next` are absent where they cannot be used for what is served.
pub fn decide(current: Option<Validity>, next: Option<Validity>, now: Timestamp) -> Step {
    let next = next.filter(|next| now < next.not_after);
    let Some(current) = current.filter(|current| current.holds(now)) else {
        return match next {
            Some(next) if next.holds(now) => Step::Promote,
            Some(_) | None => Step::Replace,
        };
    };
    match next {
        // Made longer ago than the pause; a clock that was set back only makes it longer.
        Some(next) => {
            let known_for = now.duration_since(next.not_before).saturating_sub(BACKDATED);
            if known_for >= KNOWN_BEFORE { Step::Promote } else { Step::Keep }
        }
        None if current.not_after.duration_since(now) < RENEWED_BEFORE => Step::Prepare,
        None => Step::Keep,
    }
}

impl Validity {
    /// Of a certificate that is made now.
    pub fn from_now(now: Timestamp) -> Self {
        Self {
            not_before: now.saturating_sub(BACKDATED).unwrap_or(Timestamp::MIN),
            not_after: now.saturating_add(LIFETIME).unwrap_or(Timestamp::MAX),
        }
    }

    pub fn holds(&self, now: Timestamp) -> bool {
        self.not_before <= now && now < self.not_after
    }
}

/// Reads all certificates of a PEM file, in their order.
pub fn read_all(pem: &[u8]) -> Result<Vec<Certificate>, CertificateError> {
    let mut all = Vec::new();
    for (index, block) in Pem::iter_from_buffer(pem).enumerate() {
        if index >= CERTIFICATES_MAX {
            return Err(CertificateError::TooMany);
        }
        let number = index.saturating_add(1);
        let block = block.map_err(|_| CertificateError::NotPem(number))?;
        let (_, certificate) = X509Certificate::from_der(&block.contents)
            .map_err(|_| CertificateError::NotDer(number))?;
        all.push(facts(&certificate).ok_or(CertificateError::NotDer(number))?);
    }
    if all.is_empty() { Err(CertificateError::Empty) } else { Ok(all) }
}

/// Reads the first certificate of a PEM file, which is the server's own.
pub fn read(pem: &[u8]) -> Result<Certificate, CertificateError> {
    read_all(pem)?.into_iter().next().ok_or(CertificateError::Empty)
}

fn facts(certificate: &X509Certificate<'_>) -> Option<Certificate> {
    let validity = certificate.validity();
    let mut names = BTreeSet::new();
    for extension in certificate.extensions() {
        let ParsedExtension::SubjectAlternativeName(alternatives) = extension.parsed_extension()
        else {
            continue;
        };
        for name in &alternatives.general_names {
            match name {
                GeneralName::DNSName(name) => drop(names.insert((*name).to_owned())),
                GeneralName::IPAddress(bytes) => names.extend(address(bytes)),
                _ => {}
            }
        }
    }
    Some(Certificate {
        validity: Validity {
            not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
        },
        names,
    })
}

fn address(bytes: &[u8]) -> Option<String> {
    let four: Option<std::net::IpAddr> = <[u8; 4]>::try_from(bytes).ok().map(Into::into);
    let address = four.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(Into::into))?;
    Some(address.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(hours: i64) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        start.saturating_add(SignedDuration::from_hours(hours)).unwrap()
    }

    #[test]
    fn the_next_one_is_known_before_it_is_served_and_nothing_is_done_without_need() {
        let (year, renewal) = (365 * 24, 275 * 24);
        let made = |hours| Some(Validity::from_now(at(hours)));
        let table = [
            ("there is none", None, None, 0, Step::Replace),
            ("fresh", made(0), None, 1, Step::Keep),
            ("before the renewal", made(0), None, renewal, Step::Keep),
            ("at the renewal", made(0), None, renewal + 1, Step::Prepare),
            ("just made known", made(0), made(renewal), renewal, Step::Keep),
            ("known for a while", made(0), made(renewal), renewal + 1, Step::Promote),
            ("run out", made(0), None, year, Step::Replace),
            ("run out, and the next is there", made(0), made(renewal), year, Step::Promote),
            ("the next has run out too", made(0), made(0), year, Step::Replace),
            ("an old next one beside a fresh one", made(year), made(0), year + 1, Step::Keep),
            ("a clock that was set back", made(10), None, 0, Step::Replace),
            ("a clock that was set back while changing", made(0), made(10), 5, Step::Keep),
        ];
        for (name, current, next, now, expected) in table {
            assert_eq!(decide(current, next, at(now)), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn nobody_is_shown_what_was_not_known_for_a_while(
            current in proptest::option::of(0..20_000_i64),
            next in proptest::option::of(0..20_000_i64),
            now in 0..20_000_i64,
        ) {
            let made = |hours: Option<i64>| hours.map(|hours| Validity::from_now(at(hours)));
            let step = decide(made(current), made(next), at(now));
            let can_serve = made(current).is_some_and(|current| current.holds(at(now)));
            match step {
                Step::Replace => prop_assert!(!can_serve),
                Step::Promote if can_serve => prop_assert!(next.unwrap() < now),
                Step::Promote => prop_assert!(made(next).unwrap().holds(at(now))),
                Step::Keep | Step::Prepare => prop_assert!(can_serve),
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            drop(read(&bytes));
            let mut pem = b"-----BEGIN CERTIFICATE-----\n".to_vec();
            pem.extend(&bytes);
            pem.extend(b"\n-----END CERTIFICATE-----\n");
            prop_assert!(read(&pem).is_err());
        }
    }
}
