//! Binds a Machine to its request, then approves that. In order: the second only when the first was
//! stored.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::{Api, api::Patch};
use machinist_api::Machine;
use machinist_core::approval::{Action, approved_condition};
use serde_json::json;

use crate::{
    context::Context,
    write::{self, WriteError},
};

pub async fn execute(
    context: &Context,
    request: &CertificateSigningRequest,
    actions: &[Action],
) -> anyhow::Result<()> {
    for action in actions {
        context.require_leadership()?;
        match action {
            Action::BindMachine { namespace, name, uid, resource_version, annotation, value } => {
                let api = Api::<Machine>::namespaced(context.client.clone(), namespace);
                let patch = Patch::Merge(json!({
                    "metadata": {
                        "uid": uid,
                        "resourceVersion": resource_version,
                        "annotations": { (*annotation): value },
                    },
                }));
                let written = api
                    .patch(name, &write::approval_parameters(), &patch)
                    .await
                    .map_err(|error| WriteError::of(format!("Machine {name}"), error))?;
                context.stores.machines.apply_written(written);
            }
            Action::Approve { name, uid, resource_version, message } => {
                let written =
                    approve(context, request, name, uid, resource_version, message).await?;
                context.stores.requests.apply_written(written);
            }
        }
    }
    Ok(())
}

async fn approve(
    context: &Context,
    request: &CertificateSigningRequest,
    name: &str,
    uid: &str,
    resource_version: &str,
    message: &str,
) -> Result<CertificateSigningRequest, WriteError> {
    let api = Api::<CertificateSigningRequest>::all(context.client.clone());
    let known = request.status.as_ref().and_then(|status| status.conditions.clone());
    let mut conditions = known.unwrap_or_default();
    conditions.push(approved_condition(message, context.env.now()));
    let patch = Patch::Merge(json!({
        "metadata": { "uid": uid, "resourceVersion": resource_version },
        "status": { "conditions": conditions },
    }));
    api.patch_approval(name, &write::approval_parameters(), &patch)
        .await
        .map_err(|error| WriteError::of(write::name_of(request), error))
}
