//! How is a certificate followed that somebody else keeps in a folder: cert-manager, or OpenShift's
//! service-ca?
//!
//! The contents are looked at, and not the times of the files: a mounted Secret is a link that moves.
//! What cannot be used, such as a certificate whose key has not been written yet, changes nothing.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use machinist_core::serving_certificate;

use super::{
    keys::{Pair, ServingKeys},
    trust::{Authorities, CaBundleSource},
};
use crate::{engine::env::Env, metrics::Metrics};

/// The names that Secrets of type `kubernetes.io/tls` have in a folder.
pub const CERTIFICATE_FILE: &str = "tls.crt";
pub const KEY_FILE: &str = "tls.key";
/// cert-manager's; service-ca writes none.
pub const AUTHORITIES_FILE: &str = "ca.crt";

const LOOK_PERIOD: Duration = Duration::from_secs(3);

/// A folder that is followed as long as the process lives.
#[derive(Debug)]
pub struct Folder {
    /// The server that shows the certificate.
    pub server: &'static str,
    pub path: PathBuf,
    pub keys: ServingKeys,
    /// Where others learn of the authorities, if anybody wants to know.
    pub bundle: Option<CaBundleSource>,
    pub env: Env,
    pub metrics: Metrics,
}

/// What was in the folder.
#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Option<Vec<u8>>,
}

impl Folder {
    /// Follows it.
    ///
    /// # Errors
    /// Never: what cannot be used is told, and what there was is kept.
    pub async fn run(self) -> anyhow::Result<()> {
        let mut used: Option<Contents> = None;
        let mut told = String::new();
        loop {
            match self.look(&mut used) {
                Ok(()) => told.clear(),
                Err(error) => {
                    self.metrics.set_certificate_faulty(self.server, true);
                    let error = format!("{error:#}");
                    if error != told {
                        let folder = self.path.display();
                        tracing::warn!(server = self.server, %folder, error, "a certificate cannot be used");
                        told = error;
                    }
                }
            }
            self.env.sleep(LOOK_PERIOD).await;
        }
    }

    fn look(&self, used: &mut Option<Contents>) -> anyhow::Result<()> {
        let contents = Contents::read(&self.path)?;
        if used.as_ref() != Some(&contents) {
            self.take(&contents)?;
            *used = Some(contents);
        }
        self.metrics.set_certificate_faulty(self.server, false);
        Ok(())
    }

    fn take(&self, contents: &Contents) -> anyhow::Result<()> {
        let pair = Pair::read(&contents.certificate, &contents.key)?;
        let authorities = match &contents.authorities {
            None => Authorities::ToldByOthers,
            Some(pem) => {
                serving_certificate::read_all(pem)
                    .with_context(|| format!("{AUTHORITIES_FILE} cannot be used"))?;
                Authorities::Bundle(Arc::from(pem.as_slice()))
            }
        };
        // Whom to trust first: who asks right now should know both sides.
        if let Some(bundle) = &self.bundle {
            bundle.tell(authorities);
        }
        self.keys.set(&pair);
        let expires = pair.certificate.validity.not_after;
        self.metrics.set_certificate_expiry(self.server, expires);
        tracing::info!(server = self.server, %expires, "serving with the certificate of the folder");
        Ok(())
    }
}

impl Contents {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| {
            fs::read(folder.join(name)).with_context(|| format!("failed to read {name}"))
        };
        let authorities = match fs::read(folder.join(AUTHORITIES_FILE)) {
            Ok(pem) if pem.trim_ascii().is_empty() => None,
            Ok(pem) => Some(pem),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).with_context(|| format!("failed to read {AUTHORITIES_FILE}"));
            }
        };
        Ok(Self { certificate: read(CERTIFICATE_FILE)?, key: read(KEY_FILE)?, authorities })
    }
}
