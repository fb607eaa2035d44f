//! Does the cluster have our definitions, and are they of this version?

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps,
    JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use super::{
    observed::{Definition, DefinitionState, Observed},
    report::{Check, Code, Finding},
};

pub(super) const NAME: &str = "definitions";

/// How many fields are named before they are only counted.
const NAMED_MAX: usize = 3;

pub(super) fn check(observed: &Observed) -> Check {
    let findings: Vec<Finding> = observed.definitions.iter().filter_map(finding).collect();
    let well = format!("all {} are there, as this version needs them", observed.definitions.len());
    Check::of(NAME, well, findings)
}

fn finding(state: &DefinitionState) -> Option<Finding> {
    let name = name_of(&state.shipped);
    let installed = match &state.installed {
        Err(why) => {
            return Some(Finding::warning(
                Code::NotChecked,
                format!("the definition {name} could not be looked at"),
                why.clone(),
                "get the right to read customresourcedefinitions, or ask somebody who may"
                    .to_owned(),
            ));
        }
        Ok(Definition::Served) => return None,
        Ok(Definition::Missing) => {
            return Some(Finding::failed(
                Code::MissingCrd,
                format!("the definition {name} is missing"),
                "the API server does not serve it".to_owned(),
                format!("kubectl apply -f {}", file_of(&state.shipped)),
            ));
        }
        Ok(Definition::Installed(installed)) => installed,
    };
    let problems: Vec<String> = state
        .shipped
        .spec
        .versions
        .iter()
        .flat_map(|version| problems(version, installed))
        .collect();
    let (first, rest) = problems.split_first()?;
    let more = if rest.is_empty() { String::new() } else { format!("; {}", rest.join("; ")) };
    Some(Finding::failed(
        Code::OldCrdVersion,
        format!("the definition {name} is of another version"),
        format!("{first}{more}"),
        format!("kubectl apply -f {}", file_of(&state.shipped)),
    ))
}

fn problems(
    shipped: &CustomResourceDefinitionVersion,
    installed: &CustomResourceDefinition,
) -> Vec<String> {
    let versions = &installed.spec.versions;
    let Some(there) = versions.iter().find(|one| one.name == shipped.name && one.served) else {
        let served: Vec<&str> =
            versions.iter().filter(|one| one.served).map(|one| one.name.as_str()).collect();
        return vec![format!("{} is not served, only {}", shipped.name, served.join(", "))];
    };
    let mut problems = Vec::new();
    let has_status = |of: &CustomResourceDefinitionVersion| {
        of.subresources.as_ref().is_some_and(|all| all.status.is_some())
    };
    if has_status(shipped) && !has_status(there) {
        problems.push(format!("{} has no status subresource", shipped.name));
    }
    let schema = |of: &CustomResourceDefinitionVersion| {
        of.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.clone())
    };
    if let (Some(wanted), Some(there)) = (schema(shipped), schema(there)) {
        let mut missing = Vec::new();
        missing_fields(&wanted, &there, "", &mut missing);
        if !missing.is_empty() {
            let more = missing.len().saturating_sub(NAMED_MAX);
            missing.truncate(NAMED_MAX);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            problems.push(format!(
                "{} does not know {}{more}: what is written there is dropped",
                shipped.name,
                missing.join(", ")
            ));
        }
    }
    problems
}

/// The fields that one schema has and the other would drop. The walk follows what is shipped, whose depth
/// is ours.
fn missing_fields(
    wanted: &JSONSchemaProps,
    there: &JSONSchemaProps,
    path: &str,
    missing: &mut Vec<String>,
) {
    if there.x_kubernetes_preserve_unknown_fields == Some(true) {
        return;
    }
    let keeps_any = there.additional_properties.is_some();
    for (name, property) in wanted.properties.iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match there.properties.as_ref().and_then(|known| known.get(name)) {
            Some(known) => missing_fields(property, known, &path, missing),
            None if keeps_any => {}
            None => missing.push(path),
        }
    }
    if let (
        Some(JSONSchemaPropsOrArray::Schema(wanted)),
        Some(JSONSchemaPropsOrArray::Schema(there)),
    ) = (&wanted.items, &there.items)
    {
        missing_fields(wanted, there, &format!("{path}[]"), missing);
    }
    if let (
        Some(JSONSchemaPropsOrBool::Schema(wanted)),
        Some(JSONSchemaPropsOrBool::Schema(there)),
    ) = (&wanted.additional_properties, &there.additional_properties)
    {
        missing_fields(wanted, there, &format!("{path}.*"), missing);
    }
}

fn name_of(definition: &CustomResourceDefinition) -> String {
    format!("{}.{}", definition.spec.names.plural, definition.spec.group)
}

/// Where this version ships it.
fn file_of(definition: &CustomResourceDefinition) -> String {
    format!("deploy/crds/{}_{}.yaml", definition.spec.group, definition.spec.names.plural)
}
