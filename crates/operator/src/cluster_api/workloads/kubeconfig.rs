//! Which kubeconfigs are used, and how?
//!
//! They come out of Secrets that others write. So whatever would run a program here, or read a file of ours, is refused.

use async_trait::async_trait;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::ConnectWorkload;
use crate::{client, metrics::Metrics};

/// Connects as the kubeconfig says.
pub struct OverTls {
    pub metrics: Metrics,
}

#[async_trait]
impl ConnectWorkload for OverTls {
    async fn connect(&self, kubeconfig: &str) -> anyhow::Result<Client> {
        // The text may hold keys: what the parser says of it is not repeated (Rule 13).
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig)
            .map_err(|_| anyhow::anyhow!("the kubeconfig cannot be read"))?;
        refuse(&kubeconfig)?;
        let names_a_proxy = kubeconfig
            .clusters
            .iter()
            .filter_map(|one| one.cluster.as_ref())
            .any(|one| one.proxy_url.is_some());
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| anyhow::anyhow!("the kubeconfig cannot be used: {error}"))?;
        client::of_workload(config, names_a_proxy, &self.metrics)
    }
}

/// # Errors
/// Fails, naming the field, when the kubeconfig asks for more than a connection.
fn refuse(kubeconfig: &Kubeconfig) -> anyhow::Result<()> {
    for user in &kubeconfig.auth_infos {
        let Some(info) = &user.auth_info else { continue };
        let refused = [
            (info.exec.is_some(), "exec: it would run a program here"),
            (info.auth_provider.is_some(), "auth-provider: it would run a plugin here"),
            (info.token_file.is_some(), "tokenFile: it names a file of this process"),
            (
                info.client_certificate.is_some(),
                "client-certificate: it names a file of this process",
            ),
            (info.client_key.is_some(), "client-key: it names a file of this process"),
        ];
        for (is_there, why) in refused {
            anyhow::ensure!(!is_there, "the kubeconfig is refused: user {:?} has {why}", user.name);
        }
    }
    for named in &kubeconfig.clusters {
        let names_a_file =
            named.cluster.as_ref().is_some_and(|one| one.certificate_authority.is_some());
        anyhow::ensure!(
            !names_a_file,
            "the kubeconfig is refused: cluster {:?} has certificate-authority: it names a file of this process",
            named.name
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(user: &str, cluster: &str) -> Option<String> {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: 'https://x'{cluster}}}}}]\n\
             users: [{{name: u, user: {{{user}}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        );
        refuse(&Kubeconfig::from_yaml(&text).unwrap()).err().map(|error| error.to_string())
    }

    #[test]
    fn a_kubeconfig_that_would_run_or_read_something_here_is_refused_by_name() {
        assert_eq!(refusal("token: abc", ""), None);
        assert_eq!(refusal("client-certificate-data: YQ==, client-key-data: YQ==", ""), None);
        for (user, cluster, field) in [
            ("exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}", "", "exec"),
            ("auth-provider: {name: gcp, config: {}}", "", "auth-provider"),
            ("tokenFile: /etc/shadow", "", "tokenFile"),
            ("client-key: /etc/key", "", "client-key"),
            ("token: abc", ", certificate-authority: /etc/ca", "certificate-authority"),
        ] {
            let error = refusal(user, cluster).unwrap();
            assert!(
                error.starts_with("the kubeconfig is refused") && error.contains(field),
                "{error}"
            );
        }
    }
}
