//! Are the pages of the custom resources those of their definitions?

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use crate::golden::{self, cell, docs};

#[test]
fn the_pages_of_the_custom_resources_are_those_of_their_definitions() {
    let mut pages = BTreeSet::new();
    for crd in machinist_api::crd::all() {
        let page = format!("{}.md", crd.spec.names.plural);
        golden::assert_is(&format!("reference/crds/{page}"), &text_of(&crd));
        pages.insert(page);
    }
    let stored = golden::pages_below(&docs().join("reference/crds"));
    let stored = stored.into_iter().map(|path| path.to_str().unwrap().to_owned());
    assert_eq!(stored.collect::<BTreeSet<_>>(), pages, "a page of a kind that is gone");
}

fn text_of(crd: &CustomResourceDefinition) -> String {
    let (names, spec) = (&crd.spec.names, &crd.spec);
    let mut text =
        format!("# {}\n\nWritten by `make reference` from `deploy/crds`.\n\n", names.kind);
    let short = names.short_names.iter().flatten().map(|name| format!("`{name}`"));
    let short: Vec<String> = short.collect();
    let known_as = if short.is_empty() {
        format!("`{}`", names.plural)
    } else {
        format!("`{}`, {}", names.plural, short.join(", "))
    };
    let scope = if spec.scope == "Namespaced" { "in a namespace" } else { "of the whole cluster" };
    for version in &spec.versions {
        let schema = version.schema.as_ref().and_then(|one| one.open_api_v3_schema.as_ref());
        let Some(schema) = schema else { continue };
        text.push_str(&format!(
            "`{}/{}`, {scope}; kubectl knows it as {known_as}.\n\n",
            spec.group, version.name
        ));
        if let Some(words) = &schema.description {
            text.push_str(&format!("{}\n\n", cell(words)));
        }
        let columns = version.additional_printer_columns.iter().flatten();
        let columns: Vec<String> = columns
            .map(|one| format!("| {} | `{}` |\n", cell(&one.name), cell(&one.json_path)))
            .collect();
        if !columns.is_empty() {
            text.push_str("## Columns of `kubectl get`\n\n| column | field |\n|---|---|\n");
            text.extend(columns);
            text.push('\n');
        }
        for (part, properties) in schema.properties.iter().flatten() {
            if !matches!(part.as_str(), "spec" | "status") {
                continue;
            }
            text.push_str(&format!(
                "## {part}\n\n| field | type | default | meaning |\n|---|---|---|---|\n"
            ));
            fields(part, properties, &mut text);
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn fields(path: &str, schema: &JSONSchemaProps, text: &mut String) {
    let required: &[String] = schema.required.as_deref().unwrap_or_default();
    for (name, property) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        let default =
            property.default.as_ref().map(|value| format!("`{}`", cell(&value.0.to_string())));
        let default = match default {
            None if required.contains(name) => "required".to_owned(),
            other => other.unwrap_or_default(),
        };
        let words = cell(property.description.as_deref().unwrap_or_default());
        text.push_str(&format!("| `{path}` | {} | {default} | {words} |\n", type_of(property)));
        fields(&path, property, text);
        if let Some(JSONSchemaPropsOrArray::Schema(item)) = &property.items {
            fields(&format!("{path}[]"), item, text);
        }
        if let Some(JSONSchemaPropsOrBool::Schema(value)) = &property.additional_properties {
            fields(&format!("{path}.*"), value, text);
        }
    }
}

fn type_of(schema: &JSONSchemaProps) -> String {
    if let Some(values) = &schema.enum_ {
        let values = values.iter().filter_map(|value| value.0.as_str());
        let values: Vec<String> = values.map(|value| format!("`{value}`")).collect();
        return values.join(", ");
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return "integer or string".to_owned();
    }
    let simple = schema.type_.as_deref().unwrap_or("any");
    match (simple, &schema.items, &schema.additional_properties) {
        ("array", Some(JSONSchemaPropsOrArray::Schema(item)), _) => {
            format!("list of {}", type_of(item))
        }
        ("object", _, Some(JSONSchemaPropsOrBool::Schema(value))) => {
            format!("map of {}", type_of(value))
        }
        _ => match schema.format.as_deref() {
            Some("date-time") => "time".to_owned(),
            _ => simple.to_owned(),
        },
    }
}
