//! Which certificate is a new connection shown? Connections that are open keep theirs.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use anyhow::Context as _;
use machinist_core::serving_certificate::{self, Certificate};
use rustls::{
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// A certificate with its key, checked to belong together.
#[derive(Clone)]
pub struct Pair {
    key: Arc<CertifiedKey>,
    pub certificate: Certificate,
}

impl fmt::Debug for Pair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the key.
        formatter
            .debug_struct("Pair")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

impl Pair {
    /// Reads a chain and the key of its first certificate, both PEM.
    ///
    /// # Errors
    /// Fails when one of them cannot be read, or they do not belong together.
    pub fn read(chain_pem: &[u8], key_pem: &[u8]) -> anyhow::Result<Self> {
        let certificate = serving_certificate::read(chain_pem)?;
        let chain = CertificateDer::pem_slice_iter(chain_pem)
            .collect::<Result<Vec<_>, _>>()
            .context("the certificate is not PEM")?;
        // Without the parser's words, which may quote what it read.
        let key = PrivateKeyDer::from_pem_slice(key_pem)
            .map_err(|_| anyhow::anyhow!("the key is not PEM"))?;
        let key = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())
            .context("the key is not that of the certificate")?;
        Ok(Self { key: Arc::new(key), certificate })
    }
}

/// What a server shows, and can be changed while it runs. Clones share the same.
#[derive(Clone, Debug, Default)]
pub struct ServingKeys {
    current: Arc<RwLock<Option<Arc<CertifiedKey>>>>,
}

impl ServingKeys {
    /// Shows this one from now on.
    pub fn set(&self, pair: &Pair) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(Arc::clone(&pair.key));
    }

    /// Shows none: what there is must not be used any more.
    pub fn clear(&self) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether there is one; without it every handshake fails.
    #[must_use]
    pub fn are_there(&self) -> bool {
        self.get().is_some()
    }

    fn get(&self) -> Option<Arc<CertifiedKey>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for ServingKeys {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.get()
    }
}
