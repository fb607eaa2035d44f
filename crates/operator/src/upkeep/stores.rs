//! What the upkeep looks at besides what all controllers do.

use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    apps::v1::{DaemonSet, Deployment},
};
use kube::Client;
use machinist_api::openshift_config::ClusterOperator;
use machinist_core::{
    admission::configuration,
    upkeep::{OLD_CONTROLLERS, cluster_operator, desired::TERMINATION_HANDLER},
};

use crate::{
    args::{
        Args,
        upkeep::{KeepWebhooks, UpkeepArgs},
    },
    context::Stores,
    engine::{env::Env, store::Store, supervisor::Spawner, watch::Watch},
    metrics::Metrics,
};

/// One store of each kind, each with the one object that matters.
pub struct UpkeepStores {
    pub cluster_operators: Store<ClusterOperator>,
    pub mutating: Store<MutatingWebhookConfiguration>,
    pub validating: Store<ValidatingWebhookConfiguration>,
    pub daemon_sets: Store<DaemonSet>,
    pub deployments: Store<Deployment>,
}

impl UpkeepStores {
    pub fn new() -> Self {
        Self {
            cluster_operators: Store::builder().build(),
            mutating: Store::builder().build(),
            validating: Store::builder().build(),
            daemon_sets: Store::builder().build(),
            deployments: Store::builder().build(),
        }
    }

    /// Calls `wake` for every change of what the upkeep looks at.
    pub fn on_change(&self, shared: &Stores, wake: impl Fn() + Clone + Send + Sync + 'static) {
        let to = wake.clone();
        self.cluster_operators.on_change(move |_| to());
        let to = wake.clone();
        self.mutating.on_change(move |_| to());
        let to = wake.clone();
        self.validating.on_change(move |_| to());
        let to = wake.clone();
        self.daemon_sets.on_change(move |_| to());
        let to = wake.clone();
        self.deployments.on_change(move |_| to());
        let to = wake.clone();
        shared.infrastructures.on_change(move |_| to());
        let to = wake.clone();
        shared.openshift.proxies.on_change(move |_| to());
        shared.health_checks.on_change(move |change| {
            if change.key.name == TERMINATION_HANDLER {
                wake();
            }
        });
    }

    /// Starts to listen, to what is kept only.
    pub fn watch(
        &self,
        args: &Args,
        client: &Client,
        env: &Env,
        metrics: &Metrics,
        spawner: &Spawner,
    ) {
        let namespace = &args.namespace;
        let named = |name: &str| format!("metadata.name={name}");
        let operators = Watch::cluster_wide(client, metrics, &self.cluster_operators)
            .fields(&named(cluster_operator::NAME))
            .optional();
        spawner.spawn("watch of clusteroperators", operators.run(env.clone()));
        let deployments = Watch::namespaced(client, metrics, &self.deployments, namespace)
            .fields(&named(OLD_CONTROLLERS))
            .optional();
        spawner.spawn("watch of deployments", deployments.run(env.clone()));
        if args.upkeep.keep_webhooks != KeepWebhooks::Off {
            let mutating = Watch::cluster_wide(client, metrics, &self.mutating)
                .fields(&named(configuration::NAME));
            spawner.spawn("watch of mutating webhooks", mutating.run(env.clone()));
            let validating = Watch::cluster_wide(client, metrics, &self.validating)
                .fields(&named(configuration::NAME));
            spawner.spawn("watch of validating webhooks", validating.run(env.clone()));
        }
        if args.upkeep.keeps_termination_handlers() {
            let sets = Watch::namespaced(client, metrics, &self.daemon_sets, namespace)
                .fields(&named(TERMINATION_HANDLER));
            spawner.spawn("watch of daemonsets", sets.run(env.clone()));
        }
    }

    /// Waits for everything that is looked at: nothing is made because it was not seen yet.
    pub async fn synced(&self, args: &UpkeepArgs, shared: &Stores) {
        self.cluster_operators.synced().await;
        self.deployments.synced().await;
        if args.keep_webhooks != KeepWebhooks::Off {
            self.mutating.synced().await;
            self.validating.synced().await;
        }
        if args.keeps_termination_handlers() {
            self.daemon_sets.synced().await;
            shared.health_checks.synced().await;
        }
        shared.machines.synced().await;
        shared.machine_sets.synced().await;
        shared.infrastructures.synced().await;
        shared.openshift.proxies.synced().await;
    }
}
