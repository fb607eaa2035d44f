//! What do the templates say that new objects are made of?
//!
//! They are read when they are needed and not watched: their content never changes, and a set may be left alone for months.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use machinist_api::cluster_api::ContractRef;
use machinist_core::cluster_api::{
    contract::GroupKind,
    machineset::{Part, Template, observed::Found},
};
use serde_json::Value;

use super::{context::Context, externals::ExternalError};
use crate::write::{self, Precondition, WriteError};

/// A template as it was read.
pub struct Sight {
    pub part: Part,
    pub reference: ContractRef,
    pub seen: Seen,
}

pub enum Seen {
    Whole { metadata: Box<ObjectMeta>, object: Value },
    Missing,
    Unknown(String),
}

impl Seen {
    pub fn found(&self) -> Found<'_> {
        match self {
            Self::Whole { metadata, object } => Found::Whole { metadata, object },
            Self::Missing => Found::Missing,
            Self::Unknown(why) => Found::Unknown(why.clone()),
        }
    }
}

impl Sight {
    pub fn template(&self) -> Template<'_> {
        Template { part: self.part, reference: &self.reference, found: self.seen.found() }
    }
}

/// Reads the templates that are named.
pub async fn look(
    context: &Context,
    namespace: &str,
    references: Vec<(Part, &ContractRef)>,
) -> Vec<Sight> {
    let looks = references.into_iter().map(|(part, reference)| async move {
        let kind = GroupKind::new(&reference.api_group, &reference.kind);
        let seen = read(context, &kind, namespace, &reference.name).await;
        Sight { part, reference: reference.clone(), seen }
    });
    futures::future::join_all(looks).await
}

/// Reads one template.
pub async fn read(context: &Context, kind: &GroupKind, namespace: &str, name: &str) -> Seen {
    seen(context.externals.read_whole(kind, namespace, name).await)
}

/// Reads one template in a version that is named.
pub async fn read_in(
    context: &Context,
    kind: &GroupKind,
    version: &str,
    namespace: &str,
    name: &str,
) -> Seen {
    seen(context.externals.read_in(kind, version, namespace, name).await)
}

fn seen(read: Result<Option<DynamicObject>, ExternalError>) -> Seen {
    match read {
        Ok(Some(object)) => {
            let metadata = object.metadata.clone();
            match serde_json::to_value(&object) {
                Ok(object) => Seen::Whole { metadata: Box::new(metadata), object },
                Err(error) => Seen::Unknown(error.to_string()),
            }
        }
        Ok(None) => Seen::Missing,
        Err(error) => Seen::Unknown(format!("{:#}", anyhow::Error::new(error))),
    }
}

/// Changes a template by a merge patch, as it was read.
pub async fn amend(context: &Context, sight: &Sight, patch: Value) -> Result<(), WriteError> {
    let Seen::Whole { object, .. } = &sight.seen else { return Ok(()) };
    let Ok(object) = serde_json::from_value::<DynamicObject>(object.clone()) else { return Ok(()) };
    let Some(types) = object.types.clone() else { return Ok(()) };
    let Ok(gvk) = GroupVersionKind::try_from(&types) else { return Ok(()) };
    let kind = GroupKind::new(&gvk.group, &gvk.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &kind.plural());
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    let client = context.base.client.clone();
    let api = Api::<DynamicObject>::namespaced_with(client, &namespace, &resource);
    write::external(&api, &object, patch, Precondition::Observed).await?;
    Ok(())
}
