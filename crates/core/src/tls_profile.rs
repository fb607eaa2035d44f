//! Which versions of TLS and which ciphers do our servers offer?
//!
//! OpenShift's profiles and OpenSSL's and IANA's names of ciphers are mapped to what we can speak.
//! What we cannot is left out and told. No setting, however odd, leaves a server that nobody can
//! talk to: where nothing would be left, the default is taken.

use std::collections::BTreeSet;

use machinist_api::openshift_config::ApiServerSpec;
use serde::Deserialize;

use crate::decision::FieldError;

/// The oldest version that a client may speak. Older ones are not spoken at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    #[default]
    Tls12,
    Tls13,
}

/// A cipher of TLS 1.2 that we can speak. Those of TLS 1.3 cannot be chosen: all of them are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cipher {
    EcdheEcdsaAes128Gcm,
    EcdheRsaAes128Gcm,
    EcdheEcdsaAes256Gcm,
    EcdheRsaAes256Gcm,
    EcdheEcdsaChacha20,
    EcdheRsaChacha20,
}

/// What a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsProfile {
    pub min_version: TlsVersion,
    /// The ciphers of TLS 1.2, none twice, never empty unless the least version is 1.3.
    pub cipher_suites: Vec<Cipher>,
}

/// What somebody asked for, in their words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// `VersionTLS10` to `VersionTLS13`; none leaves it at the default.
    pub min_version: Option<&'a str>,
    /// Names of OpenSSL's or of IANA's; none leaves them at the default.
    pub cipher_suites: Option<&'a [String]>,
}

/// A profile, and what could not be had of what was asked for, a sentence each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub profile: TlsProfile,
    pub remarks: Vec<String>,
}

/// `tlsAdherence` of OpenShift's APIServer, as far as it matters: whether components like us follow
/// the cluster's profile. Words that nobody knows yet mean that they do.
pub fn follows_cluster(adherence: &str) -> bool {
    !matches!(adherence, "" | "LegacyAdheringComponentsOnly")
}

/// What OpenShift's APIServer says; nothing, and an object that is not there, mean the default.
pub fn of_api_server(spec: Option<&ApiServerSpec>) -> Chosen {
    #[derive(Default, Deserialize)]
    struct Profile {
        #[serde(rename = "type", default)]
        type_name: String,
        #[serde(default)]
        custom: Option<Custom>,
    }
    #[derive(Deserialize)]
    struct Custom {
        #[serde(default)]
        ciphers: Option<Vec<String>>,
        #[serde(rename = "minTLSVersion", default)]
        min_version: Option<String>,
    }
    let followed =
        spec.filter(|spec| follows_cluster(spec.tls_adherence.as_deref().unwrap_or_default()));
    let Some(written) = followed.and_then(|spec| spec.tls_security_profile.as_ref()) else {
        return Chosen::of_cluster("", Wanted { min_version: None, cipher_suites: None });
    };
    let profile: Profile = match written.parse() {
        Ok(profile) => profile,
        Err(error) => {
            let remark = format!("spec.tlsSecurityProfile cannot be read: {error}");
            return Chosen { profile: TlsProfile::default(), remarks: vec![remark] };
        }
    };
    let custom = profile.custom.as_ref();
    let wanted = Wanted {
        min_version: custom.and_then(|custom| custom.min_version.as_deref()),
        cipher_suites: custom.and_then(|custom| custom.ciphers.as_deref()),
    };
    Chosen::of_cluster(&profile.type_name, wanted)
}

impl Default for TlsProfile {
    /// OpenShift's `Intermediate`.
    fn default() -> Self {
        Self { min_version: TlsVersion::Tls12, cipher_suites: Cipher::ALL.to_vec() }
    }
}

impl Chosen {
    /// `tlsSecurityProfile` of OpenShift's APIServer: its type, and `custom` where that is the type.
    pub fn of_cluster(type_name: &str, custom: Wanted) -> Self {
        let (profile, remarks) = match type_name {
            "" | "Intermediate" => (TlsProfile::default(), Vec::new()),
            "Modern" => (TlsProfile::modern(), Vec::new()),
            "Old" => {
                let remark = "profile Old: nothing below TLS 1.2 is spoken here".to_owned();
                (TlsProfile::default(), vec![remark])
            }
            "Custom" => return Self::of_wanted(custom),
            other => {
                let other: String = other.chars().take(64).collect();
                let remark = format!("unknown profile {other:?}: Intermediate is taken instead");
                (TlsProfile::default(), vec![remark])
            }
        };
        Self { profile, remarks }
    }

    /// A profile out of a least version and a list of ciphers.
    pub fn of_wanted(wanted: Wanted) -> Self {
        let mut remarks = Vec::new();
        let min_version = match wanted.min_version.map(TlsVersion::read) {
            None => TlsVersion::default(),
            Some(Ok((version, remark))) => {
                remarks.extend(remark);
                version
            }
            Some(Err(error)) => {
                remarks.push(format!("{error}: TLS 1.2 is taken instead"));
                TlsVersion::default()
            }
        };
        let profile = match (min_version, wanted.cipher_suites) {
            (TlsVersion::Tls13, _) => TlsProfile::modern(),
            (TlsVersion::Tls12, None) => TlsProfile::default(),
            (TlsVersion::Tls12, Some(names)) => with_ciphers(names, &mut remarks),
        };
        Self { profile, remarks }
    }
}

/// The profile of TLS 1.2 and these ciphers. Who names only those of TLS 1.3 wants no other.
fn with_ciphers(names: &[String], remarks: &mut Vec<String>) -> TlsProfile {
    let mut has_newer = false;
    let mut known = BTreeSet::new();
    let mut cipher_suites = Vec::new();
    let mut skipped = BTreeSet::new();
    for name in names {
        match Name::read(name) {
            Name::Chosen(cipher) if known.insert(cipher) => cipher_suites.push(cipher),
            Name::Chosen(_) => {}
            Name::Newer => has_newer = true,
            Name::NotSpoken => {
                skipped.insert(name.chars().take(64).collect::<String>());
            }
        }
    }
    if !skipped.is_empty() {
        let listed: Vec<_> = skipped.iter().take(SKIPPED_LISTED_MAX).cloned().collect();
        let more = skipped.len().saturating_sub(listed.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        remarks.push(format!("ciphers that are not spoken here: {}{more}", listed.join(", ")));
    }
    match (cipher_suites.is_empty(), has_newer) {
        (false, _) => TlsProfile { min_version: TlsVersion::Tls12, cipher_suites },
        (true, true) => {
            remarks.push("only ciphers of TLS 1.3 are left: nothing below is spoken".to_owned());
            TlsProfile::modern()
        }
        (true, false) => {
            remarks.push("no cipher is left: those of Intermediate are taken".to_owned());
            TlsProfile::default()
        }
    }
}

/// Names that are spelled out in a remark.
const SKIPPED_LISTED_MAX: usize = 20;

impl TlsProfile {
    /// OpenShift's `Modern`.
    pub fn modern() -> Self {
        Self { min_version: TlsVersion::Tls13, cipher_suites: Vec::new() }
    }
}

impl TlsVersion {
    /// Reads Kubernetes' name of a version, and says if it is older than what we speak.
    pub fn read(name: &str) -> Result<(Self, Option<String>), FieldError> {
        match name {
            "VersionTLS13" => Ok((Self::Tls13, None)),
            "VersionTLS12" => Ok((Self::Tls12, None)),
            "VersionTLS10" | "VersionTLS11" => {
                Ok((Self::Tls12, Some(format!("{name}: nothing below TLS 1.2 is spoken here"))))
            }
            _ => {
                let name: String = name.chars().take(64).collect();
                Err(FieldError::new(
                    "minTLSVersion",
                    format!(
                        "Unsupported value: {name:?}: supported values: \"VersionTLS10\", \
                         \"VersionTLS11\", \"VersionTLS12\", \"VersionTLS13\""
                    ),
                ))
            }
        }
    }
}

impl Cipher {
    /// In the order of OpenShift's `Intermediate`.
    pub const ALL: [Self; 6] = [
        Self::EcdheEcdsaAes128Gcm,
        Self::EcdheRsaAes128Gcm,
        Self::EcdheEcdsaAes256Gcm,
        Self::EcdheRsaAes256Gcm,
        Self::EcdheEcdsaChacha20,
        Self::EcdheRsaChacha20,
    ];

    pub fn openssl_name(self) -> &'static str {
        match self {
            Self::EcdheEcdsaAes128Gcm => "ECDHE-ECDSA-AES128-GCM-SHA256",
            Self::EcdheRsaAes128Gcm => "ECDHE-RSA-AES128-GCM-SHA256",
            Self::EcdheEcdsaAes256Gcm => "ECDHE-ECDSA-AES256-GCM-SHA384",
            Self::EcdheRsaAes256Gcm => "ECDHE-RSA-AES256-GCM-SHA384",
            Self::EcdheEcdsaChacha20 => "ECDHE-ECDSA-CHACHA20-POLY1305",
            Self::EcdheRsaChacha20 => "ECDHE-RSA-CHACHA20-POLY1305",
        }
    }

    pub fn iana_name(self) -> &'static str {
        match self {
            Self::EcdheEcdsaAes128Gcm => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            Self::EcdheRsaAes128Gcm => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            Self::EcdheEcdsaAes256Gcm => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            Self::EcdheRsaAes256Gcm => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            Self::EcdheEcdsaChacha20 => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            Self::EcdheRsaChacha20 => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        }
    }
}

/// What the name of a cipher stands for.
enum Name {
    Chosen(Cipher),
    /// One of TLS 1.3.
    Newer,
    NotSpoken,
}

impl Name {
    fn read(name: &str) -> Self {
        let is_newer = ["AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256"]
            .iter()
            .any(|newer| name.strip_prefix("TLS_") == Some(*newer));
        if is_newer {
            return Self::Newer;
        }
        let is_called = |cipher: &Cipher| {
            // Go once left the hash out of these two.
            name == cipher.openssl_name()
                || name == cipher.iana_name()
                || name.ends_with("_CHACHA20_POLY1305")
                    && cipher.iana_name().strip_suffix("_SHA256") == Some(name)
        };
        Cipher::ALL.into_iter().find(is_called).map_or(Self::NotSpoken, Self::Chosen)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(list: &str) -> Vec<String> {
        list.split_whitespace().map(str::to_owned).collect()
    }

    fn custom(min_version: &str, ciphers: &str) -> Chosen {
        let ciphers = names(ciphers);
        let wanted =
            Wanted { min_version: Some(min_version), cipher_suites: Some(ciphers.as_slice()) };
        Chosen::of_cluster("Custom", wanted)
    }

    #[test]
    fn an_api_servers_profile_counts_where_all_components_follow_it() {
        let of = |spec: serde_json::Value| {
            let spec: ApiServerSpec = serde_json::from_value(spec).unwrap();
            of_api_server(Some(&spec))
        };
        let modern = serde_json::json!({ "type": "Modern" });
        let strict = "StrictAllComponents";
        let followed = of(serde_json::json!({
            "tlsSecurityProfile": modern, "tlsAdherence": strict,
        }));
        assert_eq!(followed.profile, TlsProfile::modern());
        assert_eq!(of_api_server(None).profile, TlsProfile::default());
        assert_eq!(
            of(serde_json::json!({ "tlsSecurityProfile": modern })).profile,
            TlsProfile::default(),
            "legacy components do not follow"
        );
        let custom = of(serde_json::json!({
            "tlsAdherence": strict,
            "tlsSecurityProfile": {
                "type": "Custom",
                "custom": { "ciphers": ["ECDHE-RSA-AES256-GCM-SHA384"], "minTLSVersion": "VersionTLS12" },
            },
        }));
        assert_eq!(custom.profile.cipher_suites.len(), 1);
        let odd = of(serde_json::json!({
            "tlsAdherence": strict, "tlsSecurityProfile": { "type": 7 },
        }));
        assert_eq!((odd.profile, odd.remarks.len()), (TlsProfile::default(), 1));
    }

    #[test]
    fn the_named_profiles_are_openshifts() {
        let of = |name: &str| Chosen::of_cluster(name, Wanted::default());
        for name in ["", "Intermediate", "Old", "Newest"] {
            assert_eq!(of(name).profile, TlsProfile::default(), "{name}");
        }
        assert_eq!(of("Modern").profile, TlsProfile::modern());
        assert!(of("Modern").remarks.is_empty() && of("Intermediate").remarks.is_empty());
        assert_eq!(of("Old").remarks, ["profile Old: nothing below TLS 1.2 is spoken here"]);
        assert_eq!(
            of("Newest").remarks,
            ["unknown profile \"Newest\": Intermediate is taken instead"]
        );
    }

    #[test]
    fn ciphers_are_taken_in_their_order_under_both_names_and_the_rest_is_told() {
        let chosen = custom(
            "VersionTLS12",
            "ECDHE-RSA-AES256-GCM-SHA384 TLS_AES_128_GCM_SHA256 DHE-RSA-AES128-GCM-SHA256 \
             TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 AES128-SHA",
        );
        let expected = vec![Cipher::EcdheRsaAes256Gcm, Cipher::EcdheEcdsaChacha20];
        assert_eq!(chosen.profile.cipher_suites, expected);
        assert_eq!(
            chosen.remarks,
            ["ciphers that are not spoken here: AES128-SHA, DHE-RSA-AES128-GCM-SHA256"]
        );
    }

    #[test]
    fn no_setting_leaves_a_server_that_nobody_can_talk_to() {
        let chosen = custom("VersionTLS11", "AES128-SHA");
        assert_eq!(chosen.profile, TlsProfile::default());
        assert_eq!(
            chosen.remarks,
            [
                "VersionTLS11: nothing below TLS 1.2 is spoken here",
                "ciphers that are not spoken here: AES128-SHA",
                "no cipher is left: those of Intermediate are taken",
            ]
        );
        assert_eq!(custom("VersionTLS12", "TLS_AES_128_GCM_SHA256").profile, TlsProfile::modern());
        assert_eq!(custom("VersionTLS13", "ECDHE-RSA-AES128-GCM-SHA256").profile.cipher_suites, []);
        assert_eq!(custom("1.2", "").remarks.len(), 2);
    }

    #[test]
    fn every_cipher_is_known_by_both_its_names() {
        for cipher in Cipher::ALL {
            for name in [cipher.openssl_name(), cipher.iana_name()] {
                let chosen = custom("VersionTLS12", name);
                assert_eq!(chosen.profile.cipher_suites, [cipher]);
                assert!(chosen.remarks.is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn only_a_cluster_that_says_so_is_followed() {
        assert!(!follows_cluster("") && !follows_cluster("LegacyAdheringComponentsOnly"));
        assert!(follows_cluster("StrictAllComponents"));
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_something_is_offered(
            name in "Custom|Old|Modern|.{0,8}",
            version in "VersionTLS1[0-9]|.{0,12}",
            ciphers in proptest::collection::vec("ECDHE-RSA-AES128-GCM-SHA256|[A-Z0-9-]{0,20}", 0..40),
        ) {
            let wanted = Wanted { min_version: Some(&version), cipher_suites: Some(&ciphers) };
            let Chosen { profile, remarks } = Chosen::of_cluster(&name, wanted);
            prop_assert!(
                profile.min_version == TlsVersion::Tls13 || !profile.cipher_suites.is_empty()
            );
            prop_assert!(remarks.len() <= 3);
        }
    }
}
