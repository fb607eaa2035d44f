//! What becomes of the controllers before us: their Deployment is scaled to 0, once.

use k8s_openapi::api::apps::v1::Deployment;
use machinist_api::names::annotation;
use serde_json::{Value, json};

/// The Deployment of the controllers before us.
pub const OLD_CONTROLLERS: &str = "machine-api-controllers";

/// By this container the old Deployment is known: nothing else of that name is touched.
const OLD_CONTAINER: &str = "machine-controller";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TakeOver {
    /// Nobody was here before us.
    Nothing,
    Scale {
        uid: String,
        resource_version: String,
    },
    Done(String),
    /// We scaled it down, and somebody scaled it up.
    Undone(String),
}

/// The patch that scales the Deployment of this uid down, and says in the same write that it was done: a
/// process that starts later must know of it.
pub fn scale_down_patch(uid: &str) -> Value {
    json!({
        "metadata": { "annotations": { annotation::TAKEN_OVER: uid } },
        "spec": { "replicas": 0 },
    })
}

/// It is not done a second time: whoever undoes it wants something. The old controllers do no harm
/// meanwhile, for they wait for the leases that we hold.
pub(super) fn take_over(old: Option<&Deployment>) -> TakeOver {
    let Some((old, spec)) = old.and_then(|old| Some((old, old.spec.as_ref()?))) else {
        return TakeOver::Nothing;
    };
    let containers = spec.template.spec.iter().flat_map(|pod| &pod.containers);
    let is_old = containers.into_iter().any(|container| container.name == OLD_CONTAINER);
    if !is_old || old.metadata.deletion_timestamp.is_some() {
        return TakeOver::Nothing;
    }
    let namespace = old.metadata.namespace.as_deref().unwrap_or_default();
    let name = format!("Deployment {namespace}/{OLD_CONTROLLERS}");
    let uid = old.metadata.uid.clone().unwrap_or_default();
    if spec.replicas == Some(0) {
        return TakeOver::Done(format!("{name} is scaled to 0: this operator does its work"));
    }
    let annotations = old.metadata.annotations.as_ref();
    if annotations.and_then(|all| all.get(annotation::TAKEN_OVER)) == Some(&uid) {
        return TakeOver::Undone(format!(
            "{name} was scaled up again after it was scaled to 0; it is left so, and its controllers \
             wait for the leases that this operator holds"
        ));
    }
    let resource_version = old.metadata.resource_version.clone().unwrap_or_default();
    TakeOver::Scale { uid, resource_version }
}
