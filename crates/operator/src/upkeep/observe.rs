//! What is kept, as it is and as it should be.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Resource;
use machinist_core::{
    admission::configuration::{self, Address, Client, SERVICE, SERVICE_PORT, Trust},
    upkeep::{
        History, Kept, Mode, OLD_CONTROLLERS, Object, Observed, TerminationHandler,
        desired::{
            TERMINATION_HANDLER, default_kubelet_config, mutating_webhooks, validating_webhooks,
        },
        mode, termination_check, termination_handler,
    },
};
use serde::Serialize;
use serde_json::Value;

use super::Upkeep;
use crate::{
    args::upkeep::KeepWebhooks,
    context::Context,
    engine::store::{ObjectKey, Store},
};

pub struct Observation {
    pub mode: Mode,
    objects: Vec<Object>,
    old_controllers: Option<Arc<Deployment>>,
    /// What could not be observed.
    pub problems: Vec<String>,
}

impl Observation {
    pub fn observed<'a>(&'a self, history: &'a History) -> Observed<'a> {
        Observed {
            objects: self.objects.clone(),
            old_controllers: self.old_controllers.as_deref(),
            history,
        }
    }
}

pub fn observe(context: &Context, upkeep: &Upkeep) -> Observation {
    let mode = mode::mode(context.stores.openshift.infrastructure().as_deref());
    let (mut objects, mut problems) = (Vec::new(), Vec::new());
    if mode == Mode::NoOp {
        return Observation { mode, objects, old_controllers: None, problems };
    }
    if let Some(client) = webhook_client(upkeep) {
        let key = ObjectKey::cluster_wide(configuration::NAME);
        objects.push(Object {
            kept: Kept::MutatingWebhooks,
            stored: stored(&upkeep.stores.mutating, &key),
            wanted: mutating_webhooks(&configuration::mutating(&client)),
        });
        objects.push(Object {
            kept: Kept::ValidatingWebhooks,
            stored: stored(&upkeep.stores.validating, &key),
            wanted: validating_webhooks(&configuration::validating(&client)),
        });
    }
    match upkeep.args.termination_handler_image() {
        Ok(None) => {}
        Ok(Some(image)) => objects.extend(termination_objects(context, upkeep, image)),
        Err(error) => problems.push(format!("{error:#}")),
    }
    let key = ObjectKey::new(upkeep.namespace.as_str(), OLD_CONTROLLERS);
    let old_controllers = upkeep.stores.deployments.get(&key);
    Observation { mode, objects, old_controllers, problems }
}

fn termination_objects(context: &Context, upkeep: &Upkeep, image: String) -> [Object; 2] {
    let key = ObjectKey::new(upkeep.namespace.as_str(), TERMINATION_HANDLER);
    let handler = TerminationHandler {
        namespace: upkeep.namespace.clone(),
        image,
        proxy: context.stores.openshift.proxy().unwrap_or_default(),
        kubelet_config: upkeep.args.termination_handler_kubeconfig.clone().unwrap_or_else(|| {
            let is_openshift = context.stores.openshift.infrastructure().is_some();
            default_kubelet_config(is_openshift).to_owned()
        }),
    };
    [
        Object {
            kept: Kept::TerminationHandler,
            stored: stored(&upkeep.stores.daemon_sets, &key),
            wanted: termination_handler(&handler),
        },
        Object {
            kept: Kept::TerminationCheck,
            stored: stored(&context.stores.health_checks, &key),
            wanted: termination_check(&upkeep.namespace),
        },
    ]
}

/// Whom the API server is to ask; none while that is nobody, or not known yet.
fn webhook_client(upkeep: &Upkeep) -> Option<Client> {
    let trust = match (upkeep.ca_bundle.trust()?, &upkeep.args.webhook_ca_from) {
        (Trust::ServiceCa, Some(certificate)) => Trust::CertManager(certificate.clone()),
        (trust, _) => trust,
    };
    let address = match &upkeep.args.keep_webhooks {
        KeepWebhooks::Off => return None,
        // Nobody injects a bundle for a URL.
        KeepWebhooks::Url(_) if !matches!(trust, Trust::Bundle(_)) => return None,
        KeepWebhooks::Url(url) => Address::Url(url.clone()),
        KeepWebhooks::Service => Address::Service {
            namespace: upkeep.namespace.clone(),
            name: SERVICE.to_owned(),
            port: SERVICE_PORT,
        },
    };
    Some(Client { address, trust })
}

/// Serialising what was read cannot fail; what does would be written anew.
fn stored<K: Resource + Serialize>(store: &Store<K>, key: &ObjectKey) -> Option<Value> {
    let object = store.get(key)?;
    serde_json::to_value(&*object).ok()
}
