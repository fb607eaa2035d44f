//! How does somebody reach the API server, and as whom?

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::pki::{Authority, Identity, Proof, kubeconfig};

/// The group that may do everything.
pub const ADMINISTRATORS: &str = "system:masters";

/// The API server's address and the authority whose client certificates it trusts.
#[derive(Clone)]
pub struct ApiAccess {
    server: String,
    authority: Arc<Authority>,
}

impl ApiAccess {
    #[must_use]
    pub const fn new(server: String, authority: Arc<Authority>) -> Self {
        Self { server, authority }
    }

    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// A client for `user`, with a certificate made for it.
    pub async fn client_for(&self, user: &str, group: Option<&str>) -> anyhow::Result<Client> {
        let identity = self.authority.client(user, group)?;
        self.client(user, &identity).await
    }

    /// A client with a certificate that somebody else signed (a kubelet's).
    pub async fn client(&self, user: &str, identity: &Identity) -> anyhow::Result<Client> {
        Ok(Client::try_from(self.config(user, Proof::Certificate(identity)).await?)?)
    }

    /// A client for a service account, with a token of it.
    pub async fn client_with_token(&self, user: &str, token: &str) -> anyhow::Result<Client> {
        Ok(Client::try_from(self.config(user, Proof::Token(token)).await?)?)
    }

    /// A client that reports "not now" answers instead of repeating the request for minutes.
    pub async fn client_without_retry(
        &self,
        user: &str,
        group: Option<&str>,
    ) -> anyhow::Result<Client> {
        let identity = self.authority.client(user, group)?;
        let mut config = self.config(user, Proof::Certificate(&identity)).await?;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// Writes a kubeconfig file for `user` that only this machine's user can read.
    pub fn write_kubeconfig(
        &self,
        path: &Path,
        user: &str,
        group: Option<&str>,
    ) -> anyhow::Result<PathBuf> {
        self.write_kubeconfig_with(path, user, &self.authority.client(user, group)?)?;
        Ok(path.to_owned())
    }

    /// Writes a kubeconfig file with a certificate that somebody else signed (a kubelet's).
    pub fn write_kubeconfig_with(
        &self,
        path: &Path,
        user: &str,
        identity: &Identity,
    ) -> anyhow::Result<()> {
        let proof = Proof::Certificate(identity);
        let text = kubeconfig(&self.server, &self.authority.certificate(), user, proof);
        write_private(path, &text)
    }

    async fn config(&self, user: &str, proof: Proof<'_>) -> anyhow::Result<Config> {
        let text = kubeconfig(&self.server, &self.authority.certificate(), user, proof);
        let parsed = Kubeconfig::from_yaml(&text)?;
        let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await;
        config.with_context(|| format!("cannot make a client for {user}"))
    }
}

/// Writes a file that holds a key.
pub fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(path)?.write_all(text.as_bytes())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
