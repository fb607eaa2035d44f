//! How is a certificate made, and an authority that signs this one and no other?

use std::time::Duration;

use jiff::Timestamp;
use machinist_core::serving_certificate::Validity;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// A certificate, its key and its authority, all PEM. The authority's key is gone.
pub(crate) struct Made {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) authority: String,
}

/// Makes one that stands for these hosts and addresses.
pub(crate) fn make(names: &[String], now: Timestamp) -> Result<Made, rcgen::Error> {
    let validity = Validity::from_now(now);
    // Its name differs from that of the one before: clients look authorities up by name.
    let mut authority = parameters(&format!("machinist-{}", now.as_second()), validity, &[])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let common_name = names.first().map_or("machinist", String::as_str);
    let mut server = parameters(common_name, validity, names)?;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &issuer)?;
    Ok(Made { certificate: certificate.pem(), key: key.serialize_pem(), authority: issuer.pem() })
}

fn parameters(
    common_name: &str,
    validity: Validity,
    names: &[String],
) -> Result<CertificateParams, rcgen::Error> {
    let mut parameters = CertificateParams::new(names)?;
    let mut name = DistinguishedName::new();
    // A common name has room for 64 characters; who checks a server reads the alternative names.
    name.push(DnType::CommonName, common_name.chars().take(64).collect::<String>());
    parameters.distinguished_name = name;
    let since_epoch =
        |time: Timestamp| Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
    parameters.not_before = date_time_ymd(1970, 1, 1) + since_epoch(validity.not_before);
    parameters.not_after = date_time_ymd(1970, 1, 1) + since_epoch(validity.not_after);
    Ok(parameters)
}
