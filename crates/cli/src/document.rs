//! How is an answer written for programs?

use anyhow::Context;
use machinist_core::cluster_api::maintained::parts;
use serde::Serialize;

/// How much room a document takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// For one document, which a person may read, too.
    Indented,
    /// One line of JSON, or one document of YAML, of many that follow each other.
    Stream,
}

pub fn json<T: Serialize>(value: &T, notation: Notation) -> anyhow::Result<String> {
    let text = match notation {
        Notation::Indented => serde_json::to_string_pretty(value),
        Notation::Stream => serde_json::to_string(value),
    };
    Ok(text.context("cannot write JSON")? + "\n")
}

pub fn yaml<T: Serialize>(value: &T, notation: Notation) -> anyhow::Result<String> {
    let text = serde_saphyr::to_string(value).context("cannot write YAML")?;
    Ok(match notation {
        Notation::Indented => text,
        Notation::Stream => format!("---\n{text}"),
    })
}

/// A machine as kubectl names it.
pub fn machine_name(machine: &str) -> String {
    let group = match parts(machine) {
        Some(_) => "cluster.x-k8s.io",
        None => "machine.openshift.io",
    };
    format!("machine.{group}/{machine}\n")
}
