//! The CRDs we ship, generated from the types.
//!
//! The types say what is allowed; this module removes what schemars says beyond that, so that the
//! API server treats our objects exactly as it treats the originals.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

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

    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        tidy_schema(property);
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
