//! Are the webhook configurations in `deploy/webhooks` those of core?
//!
//! `UPDATE=1` (or `make webhooks`) rewrites the files.

use std::{collections::BTreeMap, fs, path::Path};

use machinist_core::admission::configuration::{Client, mutating, validating};
use serde::Serialize;

const HEADER: &str = "# Generated from crates/core by `make webhooks`; do not edit.\n";

#[test]
fn the_shipped_configurations_are_generated_from_core() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/webhooks");
    let client = Client::default();
    let generated = BTreeMap::from([
        ("mutating.yaml".to_owned(), to_yaml(&mutating(&client))),
        ("validating.yaml".to_owned(), to_yaml(&validating(&client))),
    ]);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for (name, yaml) in &generated {
            fs::write(folder.join(name), yaml).unwrap();
        }
    }
    let stored: BTreeMap<String, String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    assert_eq!(stored, generated, "run `make webhooks` and read the difference");
}

fn to_yaml<Configuration: Serialize>(configuration: &Configuration) -> String {
    let yaml = serde_saphyr::to_string(configuration).unwrap();
    format!("{HEADER}{yaml}")
}
