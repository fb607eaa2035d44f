//! The CRDs we ship, generated from the types.
//!
//! The types say what is allowed; this module removes what schemars says beyond that, so that the
//! API server treats our objects exactly as it treats the originals.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionVersion,
    CustomResourceValidation, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    ServiceReference, WebhookClientConfig, WebhookConversion,
};
use kube::CustomResourceExt;

use crate::cluster_api::{self, names::label};
use crate::{Machine, MachineHealthCheck, MachineMaintenance, MachineSet, MaintenancePolicy};

/// Every CRD that Machinist installs.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        tidy(Machine::crd()),
        tidy(MachineHealthCheck::crd()),
        tidy(MachineMaintenance::crd()),
        tidy(MachineSet::crd()),
        tidy(MaintenancePolicy::crd()),
    ]
}

/// The CRDs of Cluster API, for a cluster that has none of Cluster API's own.
pub fn cluster_api() -> Vec<CustomResourceDefinition> {
    vec![
        of_cluster_api(cluster_api::Cluster::crd()),
        of_cluster_api(cluster_api::Machine::crd()),
        of_cluster_api(cluster_api::MachineDeployment::crd()),
        of_cluster_api(cluster_api::MachineDrainRule::crd()),
        of_cluster_api(cluster_api::MachineHealthCheck::crd()),
        of_cluster_api(cluster_api::MachineSet::crd()),
    ]
}

/// Adds what Cluster API's other parts look for: the contract labels, and the version before, which is
/// served and converted. Its fields are checked after the conversion, by the schema of the newer one.
fn of_cluster_api(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut crd = tidy(crd);
    crd.metadata.labels = Some(BTreeMap::from([
        (label::CONTRACT_V1BETA1.to_owned(), "v1beta1".to_owned()),
        (label::CONTRACT_V1BETA2.to_owned(), "v1beta2".to_owned()),
        (label::PROVIDER.to_owned(), "cluster-api".to_owned()),
    ]));
    let Some(newest) = crd.spec.versions.first() else { return crd };
    let before = CustomResourceDefinitionVersion {
        additional_printer_columns: None,
        deprecated: Some(true),
        name: "v1beta1".to_owned(),
        schema: Some(CustomResourceValidation { open_api_v3_schema: Some(untouched_schema()) }),
        served: true,
        storage: false,
        subresources: newest.subresources.clone(),
        ..CustomResourceDefinitionVersion::default()
    };
    crd.spec.versions.insert(0, before);
    crd.spec.conversion = Some(CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(WebhookClientConfig {
                service: Some(ServiceReference {
                    name: "machine-api-operator-webhook".to_owned(),
                    namespace: crate::names::DEFAULT_NAMESPACE.to_owned(),
                    path: Some("/convert".to_owned()),
                    port: Some(443),
                }),
                ..WebhookClientConfig::default()
            }),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    });
    crd
}

/// A schema that keeps whatever is written.
fn untouched_schema() -> JSONSchemaProps {
    let anything = |description: &str| JSONSchemaProps {
        description: Some(description.to_owned()),
        type_: Some("object".to_owned()),
        x_kubernetes_preserve_unknown_fields: Some(true),
        ..JSONSchemaProps::default()
    };
    JSONSchemaProps {
        description: Some("As Cluster API's v1beta1 has it; converted to v1beta2.".to_owned()),
        type_: Some("object".to_owned()),
        properties: Some(BTreeMap::from([
            ("spec".to_owned(), anything("What is wanted.")),
            ("status".to_owned(), anything("What was last seen.")),
        ])),
        ..JSONSchemaProps::default()
    }
}

fn tidy(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let names = &mut crd.spec.names;
    names.list_kind = Some(format!("{}List", names.kind));
    for version in &mut crd.spec.versions {
        if let Some(validation) = &mut version.schema
            && let Some(schema) = &mut validation.open_api_v3_schema
        {
            tidy_schema(schema);
        }
    }
    crd
}

fn tidy_schema(schema: &mut JSONSchemaProps) {
    // Rust's name of the type; the description is what people read.
    schema.title = None;
    // An optional field may be absent. It may not be null: the API server drops a null of a field
    // that is not nullable, and keeps one of a field that is, which no Go client expects.
    schema.nullable = None;
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| !value.0.is_null());
    }
    // `#[serde(default)]` says how an absent object is read. As a default of the API server it would
    // be written into every object, and applying the same manifest twice would show a difference.
    if schema.default.as_ref().is_some_and(|default| default.0.is_object()) {
        schema.default = None;
    }

    for (name, property) in schema.properties.iter_mut().flatten() {
        tidy_schema(property);
        // An absent text is read as an empty one, to be told by its name. Where an empty one is not allowed, the API
        // server refuses it as a default, and what is meant is that the field must be there.
        let is_empty = property.default.as_ref().is_some_and(|default| default.0 == "");
        if is_empty && property.min_length.is_some_and(|least| least > 0) {
            property.default = None;
            schema.required.get_or_insert_default().push(name.clone());
        }
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => tidy_schema(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(tidy_schema),
        None => {}
    }
    match &mut schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(value)) => tidy_schema(value),
        Some(JSONSchemaPropsOrBool::Bool(_)) | None => {}
    }
}
