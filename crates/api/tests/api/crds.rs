//! Are the CRDs in `deploy/crds` those of the types, and do they say what the API server needs?
//!
//! `UPDATE=1` (or `make crds`) rewrites the files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};

const HEADER: &str = "# Generated from crates/api by `make crds`; do not edit.\n";

#[test]
fn files_are_generated_from_the_types() {
    compare("deploy/crds", &machinist_api::crd::all());
    compare("deploy/crds/cluster-api", &machinist_api::crd::cluster_api());
}

fn compare(place: &str, crds: &[CustomResourceDefinition]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(place);
    let mut generated: BTreeMap<String, String> =
        crds.iter().map(|crd| (file_name(crd), to_yaml(crd))).collect();
    generated.insert("kustomization.yaml".to_owned(), kustomization(generated.keys()));

    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for name in files_in(&folder) {
            fs::remove_file(folder.join(name)).unwrap();
        }
        for (name, yaml) in &generated {
            fs::write(folder.join(name), yaml).unwrap();
        }
    }

    let present = files_in(&folder);
    let wanted: BTreeSet<_> = generated.keys().cloned().collect();
    assert_eq!(present, wanted, "{place} has other files than the types give: run `make crds`");
    for (name, yaml) in &generated {
        let stored = fs::read_to_string(folder.join(name)).unwrap();
        let difference = first_difference(&stored, yaml);
        assert!(
            difference.is_none(),
            "{place}/{name} is not what the types give. {}\nRun `make crds` and read the difference \
             with `git diff deploy/crds`.",
            difference.unwrap_or_default()
        );
    }
}

/// The API server refuses such a definition.
#[test]
fn no_default_is_shorter_than_its_field_may_be() {
    for_each_schema(|path, schema| {
        let default = schema.default.as_ref().and_then(|default| default.0.as_str());
        let is_short = default.zip(schema.min_length).is_some_and(|(text, least)| {
            i64::try_from(text.len()).is_ok_and(|length| length < least)
        });
        assert!(!is_short, "{path}: the default is shorter than minLength");
    });
}

#[test]
fn every_field_is_described() {
    for_each_schema(|path, schema| {
        let inside_raw_or_map = path.ends_with("[]") || path.ends_with("metadata");
        assert!(
            schema.description.is_some() || inside_raw_or_map,
            "{path}: `kubectl explain` has nothing to say"
        );
    });
}

#[test]
fn schemas_are_structural_and_say_nothing_that_the_originals_do_not() {
    for_each_schema(|path, schema| {
        let is_typed = schema.type_.is_some() || schema.x_kubernetes_int_or_string == Some(true);
        assert!(is_typed, "{path}: without a type it is not structural");
        assert!(schema.nullable.is_none(), "{path}: nullable");
        assert!(schema.any_of.is_none() && schema.one_of.is_none(), "{path}: alternatives");
        assert!(!path.to_lowercase().contains("authoritativeapi"), "{path}: migration field");
        // A list without a type is replaced whole by server-side apply, whoever owns its items.
        if schema.type_.as_deref() == Some("array") && !path.to_lowercase().contains("selector.") {
            assert!(schema.x_kubernetes_list_type.is_some(), "{path}: list without a type");
        }
        // The API server refuses a list-map whose keys may be absent.
        let Some(keys) = &schema.x_kubernetes_list_map_keys else { return };
        let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items else {
            panic!("{path}: list-map without items")
        };
        for key in keys {
            assert!(item.required.iter().flatten().any(|name| name == key), "{path}: key {key}");
        }
    });
}

/// The name that controller-gen gives, which users of the originals look for.
fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

fn to_yaml(crd: &CustomResourceDefinition) -> String {
    // Block scalars would break the long patterns into folded lines.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let yaml = serde_saphyr::to_string_with_options(crd, options).unwrap();
    format!("{HEADER}{yaml}")
}

/// With it the folder is a part of `deploy/kustomize/base`.
fn kustomization<'a>(files: impl Iterator<Item = &'a String>) -> String {
    let resources: String = files.map(|file| format!("- {file}\n")).collect();
    format!(
        "{HEADER}apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{resources}"
    )
}

fn files_in(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

fn first_difference(stored: &str, generated: &str) -> Option<String> {
    if stored == generated {
        return None;
    }
    let mut stored_lines = stored.lines();
    let mut generated_lines = generated.lines();
    let mut number = 0;
    loop {
        number += 1;
        match (stored_lines.next(), generated_lines.next()) {
            (None, None) => return Some("Only the line ends differ.".to_owned()),
            (left, right) if left == right => {}
            (left, right) => {
                let left = left.unwrap_or("(end of file)");
                let right = right.unwrap_or("(end of file)");
                return Some(format!("Line {number}:\n  stored:    {left}\n  generated: {right}"));
            }
        }
    }
}

fn for_each_schema(mut visit: impl FnMut(&str, &JSONSchemaProps)) {
    for crd in machinist_api::crd::all().into_iter().chain(machinist_api::crd::cluster_api()) {
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
            walk(&crd.spec.names.kind, schema, &mut visit);
        }
    }
}

fn walk(path: &str, schema: &JSONSchemaProps, visit: &mut impl FnMut(&str, &JSONSchemaProps)) {
    visit(path, schema);
    for (name, property) in schema.properties.iter().flatten() {
        walk(&format!("{path}.{name}"), property, visit);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
        walk(&format!("{path}[]"), item, visit);
    }
}
