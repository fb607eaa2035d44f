//! Which versions of TLS and which ciphers are spoken, in rustls' words, and how they are changed
//! while a server runs.

use std::sync::Arc;

use anyhow::Context as _;
use machinist_core::tls_profile::{Chosen, Cipher, TlsProfile, TlsVersion};
use rustls::{
    ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
    crypto::aws_lc_rs::{
        self,
        cipher_suite::{
            TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        },
    },
    server::NoServerSessionStorage,
    version::{TLS12, TLS13},
};

use super::keys::ServingKeys;
use crate::engine::latest;

/// What all servers of the process offer. Clones share the same.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    profile: Arc<latest::Sender<Arc<TlsProfile>>>,
    /// Flags say it, so nobody else does.
    is_fixed: bool,
}

impl TlsSettings {
    /// What flags say, or, without them, the default until somebody knows the cluster's.
    #[must_use]
    pub fn new(flags: Option<Chosen>) -> Self {
        let is_fixed = flags.is_some();
        let profile = flags.map_or_else(TlsProfile::default, |chosen| {
            tell(&chosen);
            chosen.profile
        });
        Self { profile: Arc::new(latest::Sender::new(Arc::new(profile))), is_fixed }
    }

    /// Offers what the cluster's profile says from the next connection on, unless flags decide.
    pub fn follow(&self, cluster: Chosen) {
        if !self.is_fixed && *self.get() != cluster.profile {
            tell(&cluster);
            self.profile.send_replace(Arc::new(cluster.profile));
        }
    }

    /// Whether flags decide, and nobody needs to be waited for.
    #[must_use]
    pub fn are_fixed(&self) -> bool {
        self.is_fixed
    }

    #[must_use]
    pub fn get(&self) -> Arc<TlsProfile> {
        self.profile.get()
    }
}

fn tell(chosen: &Chosen) {
    let TlsProfile { min_version, cipher_suites } = &chosen.profile;
    tracing::info!(?min_version, ?cipher_suites, "the settings of TLS");
    for remark in &chosen.remarks {
        tracing::warn!(remark, "a setting of TLS cannot be had");
    }
}

/// Makes rustls' configuration of a server that offers this and shows those keys.
pub(super) fn server_config(
    profile: &TlsProfile,
    keys: &ServingKeys,
) -> anyhow::Result<ServerConfig> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|suite| matches!(suite, SupportedCipherSuite::Tls13(_)));
    provider.cipher_suites.extend(profile.cipher_suites.iter().map(|cipher| suite(*cipher)));
    let versions: &[&SupportedProtocolVersion] = match profile.min_version {
        TlsVersion::Tls12 => &[&TLS13, &TLS12],
        TlsVersion::Tls13 => &[&TLS13],
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .context("the settings of TLS cannot be used")?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(keys.clone()));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Nothing is resumed: every connection is shown the newest certificate, by the newest settings.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn suite(cipher: Cipher) -> SupportedCipherSuite {
    match cipher {
        Cipher::EcdheEcdsaAes128Gcm => TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        Cipher::EcdheRsaAes128Gcm => TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        Cipher::EcdheEcdsaAes256Gcm => TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        Cipher::EcdheRsaAes256Gcm => TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        Cipher::EcdheEcdsaChacha20 => TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        Cipher::EcdheRsaChacha20 => TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    }
}
