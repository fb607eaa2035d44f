//! What OpenShift says of the whole cluster: its proxy, its features, its TLS profile, the
//! certificates that it trusts, and whether its own approver of certificates runs. On plain
//! Kubernetes none of that exists, and every answer is that nobody says anything.

use std::sync::Arc;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::Client;
use machinist_api::openshift_config::{ApiServer, CLUSTER, FeatureGate, Infrastructure, Proxy};
use machinist_core::{
    approval::standby::{self, OTHER_DEPLOYMENT, OTHER_NAMESPACE, OtherApprover},
    decision::Wait,
    features,
    pause::Migration,
    proxy::ProxySettings,
};

use crate::{
    args::Args,
    engine::{
        env::Env,
        store::{ObjectKey, Store},
        supervisor::Spawner,
        watch::Watch,
    },
    metrics::Metrics,
};

/// The certificates that OpenShift has all its components trust, injected by it.
const TRUSTED_CA: &str = "mao-trusted-ca";
const TRUSTED_CA_KEY: &str = "ca-bundle.crt";

/// One store of each kind.
#[derive(Clone)]
pub struct OpenShift {
    pub proxies: Store<Proxy>,
    pub feature_gates: Store<FeatureGate>,
    /// Whoever serves TLS reads the cluster's profile here, and listens to its changes.
    pub api_servers: Store<ApiServer>,
    /// Of our own namespace, and only the one of trusted certificates.
    trusted: Store<ConfigMap>,
    /// OpenShift's own approver of certificates.
    pub approvers: Store<Deployment>,
    infrastructures: Store<Infrastructure>,
    namespace: String,
    release: String,
}

impl OpenShift {
    pub fn new(namespace: &str, release: &str, infrastructures: &Store<Infrastructure>) -> Self {
        Self {
            proxies: Store::builder().build(),
            feature_gates: Store::builder().build(),
            api_servers: Store::builder().build(),
            trusted: Store::builder().build(),
            approvers: Store::builder().build(),
            infrastructures: infrastructures.clone(),
            namespace: namespace.to_owned(),
            release: release.to_owned(),
        }
    }

    /// The cluster's proxy; none where the cluster has no such object, and the environment decides.
    pub fn proxy(&self) -> Option<ProxySettings> {
        self.proxies.get(&ObjectKey::cluster_wide(CLUSTER)).map(|proxy| ProxySettings::of(&proxy))
    }

    /// The certificates that the cluster trusts besides the system's, in PEM.
    pub fn trusted_ca(&self) -> Option<String> {
        let known = self.trusted_config_map()?;
        known.data.as_ref()?.get(TRUSTED_CA_KEY).filter(|pem| !pem.is_empty()).cloned()
    }

    /// Tells one version of them from another.
    pub fn trusted_ca_version(&self) -> Option<String> {
        self.trusted_config_map()?.metadata.resource_version.clone()
    }

    fn trusted_config_map(&self) -> Option<Arc<ConfigMap>> {
        self.trusted.get(&ObjectKey::new(self.namespace.as_str(), TRUSTED_CA))
    }

    /// Waits until it is known what all controllers go by: features, and how the cloud is reached.
    pub(crate) async fn synced(&self) {
        self.feature_gates.synced().await;
        self.proxies.synced().await;
        self.trusted.synced().await;
    }

    /// Whether the fields of the migration to another API are looked at.
    pub fn migration(&self) -> Migration {
        match self.is_enabled(features::MACHINE_API_MIGRATION) {
            Some(false) => Migration::Off,
            Some(true) | None => Migration::Honoured,
        }
    }

    /// Whether MachineHealthChecks are another component's.
    pub fn health_checks_are_anothers(&self) -> bool {
        self.is_enabled(features::NO_HEALTH_CHECKS) == Some(true)
    }

    /// Why certificates are not approved here, if they are not.
    pub fn approval_standby(&self) -> Option<Wait> {
        let key = ObjectKey::new(OTHER_NAMESPACE, OTHER_DEPLOYMENT);
        let deployment = self.approvers.get(&key);
        standby::standby(match &deployment {
            Some(deployment) => OtherApprover::Known(Some(deployment)),
            None if self.infrastructures.is_empty() => OtherApprover::NoSuchThing,
            None if self.approvers.is_synced() => OtherApprover::Known(None),
            None => OtherApprover::Unknown,
        })
    }

    /// The platform's own object, if there is one.
    pub fn infrastructure(&self) -> Option<Arc<Infrastructure>> {
        self.infrastructures.get(&ObjectKey::cluster_wide(CLUSTER))
    }

    /// Puts in what the watch of trusted certificates would.
    #[cfg(test)]
    pub(crate) fn trust(&self, certificates: ConfigMap) {
        self.trusted.apply_written(certificates);
    }

    fn is_enabled(&self, feature: &str) -> Option<bool> {
        let gates = self.feature_gates.get(&ObjectKey::cluster_wide(CLUSTER));
        features::is_enabled(gates.as_deref(), &self.release, feature)
    }

    /// Starts to listen. Only where the cluster is OpenShift's is another namespace looked into.
    pub(crate) fn watch(
        &self,
        args: &Args,
        client: &Client,
        env: &Env,
        metrics: &Metrics,
        spawner: &Spawner,
    ) {
        let proxies = Watch::cluster_wide(client, metrics, &self.proxies).optional();
        spawner.spawn("watch of proxies", proxies.run(env.clone()));
        let gates = Watch::cluster_wide(client, metrics, &self.feature_gates).optional();
        spawner.spawn("watch of feature gates", gates.run(env.clone()));
        let servers = Watch::cluster_wide(client, metrics, &self.api_servers).optional();
        spawner.spawn("watch of apiservers", servers.run(env.clone()));
        let trusted = Watch::namespaced(client, metrics, &self.trusted, &self.namespace)
            .fields(&format!("metadata.name={TRUSTED_CA}"))
            .optional();
        spawner.spawn("watch of trusted certificates", trusted.run(env.clone()));
        if args.approve_certificates {
            let approvers = Watch::namespaced(client, metrics, &self.approvers, OTHER_NAMESPACE)
                .fields(&format!("metadata.name={OTHER_DEPLOYMENT}"))
                .optional();
            let (infrastructures, env) = (self.infrastructures.clone(), env.clone());
            spawner.spawn("watch of the other approver", async move {
                first_of(&infrastructures).await;
                approvers.run(env).await
            });
        }
    }
}

/// Waits until there is an object.
async fn first_of<K: kube::Resource + Send + Sync + 'static>(store: &Store<K>) {
    let seen = Arc::new(tokio::sync::Notify::new());
    let notify = Arc::clone(&seen);
    store.on_change(move |change| {
        if change.after.is_some() {
            notify.notify_one();
        }
    });
    // What came before we listened is there by now.
    if store.is_empty() {
        seen.notified().await;
    }
}

#[cfg(test)]
mod tests;
