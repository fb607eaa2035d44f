//! How are objects read that somebody wrote to files, as `kubectl get … -o yaml` does?

use std::path::{Path, PathBuf};

use anyhow::Context;
use machinist_api::cluster_api;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Snapshot, is_maintenance_of, is_of, unreadable};
use crate::cluster_api::ClusterApi;

/// How the names of files end that are read in a folder.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

pub(super) fn read(paths: &[PathBuf], namespace: &str) -> anyhow::Result<Snapshot> {
    let mut snapshot = Snapshot { namespace: namespace.to_owned(), ..Snapshot::default() };
    let mut of = ClusterApi::default();
    for path in paths {
        for file in files_of(path)? {
            for document in documents(&file)? {
                for object in items(document) {
                    snapshot.take(object, &mut of);
                }
            }
        }
    }
    snapshot.add(&of);
    Ok(snapshot)
}

/// The documents of a file, of standard input where it is `-`.
pub(super) fn documents(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?
    } else {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?
    };
    // A dump of thousands of machines is more than the reader of YAML takes.
    if let Ok(document) = serde_json::from_str(&text) {
        return Ok(vec![document]);
    }
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
        .with_context(|| format!("{} is no YAML", path.display()))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The objects of a list, or the one that it is.
pub(super) fn items(document: Value) -> Vec<Value> {
    let is_list =
        document.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match document {
        Value::Object(mut list) if is_list => match list.remove("items") {
            Some(Value::Array(items)) => items,
            Some(_) | None => Vec::new(),
        },
        Value::Array(items) => items,
        object => vec![object],
    }
}

/// The file itself, or those of a folder and the folders in it, by name.
fn files_of(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let listed =
        std::fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))?;
    for entry in listed {
        let entry = entry.with_context(|| format!("cannot list {}", path.display()))?.path();
        let ending = entry.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if entry.is_dir() {
            files.extend(files_of(&entry)?);
        } else if ENDINGS.contains(&ending) {
            files.push(entry);
        }
    }
    files.sort();
    Ok(files)
}

impl Snapshot {
    /// Takes an object in, where its kind is one that is looked at.
    fn take(&mut self, object: Value, of: &mut ClusterApi) {
        let text = |pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let name = text("/metadata/name");
        let namespace = Some(text("/metadata/namespace")).filter(|name| !name.is_empty());
        let home = self.namespace.clone();
        let is_of_home = is_of(namespace.as_deref(), &home);
        let notes = &mut self.notes;
        let mut problem = None;
        match (group, kind.as_str()) {
            ("machine.openshift.io", "Machine") if is_of_home => {
                problem = push(&mut self.machines, object);
            }
            ("machine.openshift.io", "Machine") => self.other_namespaces.extend(namespace),
            ("machine.openshift.io", "MachineSet") if is_of_home => {
                problem = push(&mut self.sets, object);
            }
            ("machine.openshift.io", "MachineHealthCheck") if is_of_home => {
                problem = push(&mut self.health_checks, object);
            }
            (cluster_api::GROUP, "Cluster") => problem = push(&mut of.clusters, object),
            (cluster_api::GROUP, "Machine") => problem = push(&mut of.machines, object),
            (cluster_api::GROUP, "MachineSet") => problem = push(&mut of.sets, object),
            (cluster_api::GROUP, "MachineDeployment") => {
                problem = push(&mut of.deployments, object);
            }
            ("", "Event") => problem = push(&mut self.events, object),
            ("", "Node") => problem = push(&mut self.nodes, object),
            ("", "Pod") => problem = push(&mut self.pods, object),
            ("", "Namespace") if name == home => {
                let mut found = Vec::new();
                problem = push(&mut found, object);
                self.home = found.pop().or_else(|| self.home.take());
            }
            ("policy", "PodDisruptionBudget") => problem = push(&mut self.budgets, object),
            ("machinemaintenance.managed.openshift.io", "MachineMaintenance")
                if is_maintenance_of(namespace.as_deref(), &home) =>
            {
                problem = push(&mut self.maintenances, object);
            }
            ("machinist.dev", "MaintenancePolicy") => problem = push(&mut self.policies, object),
            ("upgrade.managed.openshift.io", "UpgradeConfig") => {
                problem = push(&mut self.upgrades, object);
            }
            ("upgrade.managed.openshift.io", "AdminFreezeWindow") => {
                problem = push(&mut self.admin_freezes, object);
            }
            ("upgrade.managed.openshift.io", "CustomerFreezeWindow") => {
                problem = push(&mut self.customer_freezes, object);
            }
            ("upgrade.managed.openshift.io", "PreferredUpgradeStartTime") => {
                problem = push(&mut self.preferred_starts, object);
            }
            _ => {}
        }
        if let Some(problem) = problem {
            notes.push(unreadable(&kind, &name, &problem));
        }
    }
}

/// Tells what is wrong where the object is not what its kind says.
fn push<K: DeserializeOwned>(objects: &mut Vec<K>, object: Value) -> Option<String> {
    match serde_json::from_value(object) {
        Ok(object) => {
            objects.push(object);
            None
        }
        Err(error) => Some(error.to_string()),
    }
}
