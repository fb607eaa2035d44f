//! How are the shipped manifests rendered and compared?

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Output,
};

use machinist_testbed::manifests::documents;
use serde_json::{Value, json};
use tokio::{process::Command, sync::OnceCell};

use super::words;
use crate::arena::cluster;

/// Objects by kind, namespace and name.
#[derive(Clone, Debug)]
pub struct Manifests(BTreeMap<(String, String, String), Value>);

impl Manifests {
    pub fn parse(yaml: &str) -> Self {
        let mut objects = BTreeMap::new();
        for object in documents(yaml).unwrap() {
            let text =
                |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let key =
                ["/kind", "/metadata/namespace", "/metadata/name"].map(|one| text(one).to_owned());
            assert!(!key[0].is_empty() && !key[2].is_empty(), "{object}");
            let key: (String, String, String) = key.into();
            assert!(objects.insert(key.clone(), object).is_none(), "{key:?} is there twice");
        }
        Self(objects)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.values().filter(move |object| object["kind"] == kind)
    }

    pub fn all(&self) -> impl Iterator<Item = &Value> {
        self.0.values()
    }

    pub fn find(&self, kind: &str, name: &str) -> &Value {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        self.all().find(is_it).unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    pub fn without(&self, is_it: impl Fn(&Value) -> bool) -> Self {
        let others = self.0.iter().filter(|(_, object)| !is_it(object));
        Self(others.map(|(key, object)| (key.clone(), object.clone())).collect())
    }

    pub fn remove_annotation(&mut self, name: &str) {
        for object in self.0.values_mut() {
            let metadata = object["metadata"].as_object_mut().unwrap();
            let Some(annotations) = metadata.get_mut("annotations") else { continue };
            let annotations = annotations.as_object_mut().unwrap();
            annotations.remove(name);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }

    pub fn assert_same(&self, other: &Self, which: &str) {
        let keys = |one: &Self| one.0.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(self), keys(other), "{which}");
        for (key, object) in &self.0 {
            assert_eq!(object, &other.0[key], "{which}: {key:?}");
        }
    }

    /// All objects as one that kubectl takes; the namespace first, and the definitions.
    pub fn to_list(&self) -> String {
        let mut items: Vec<&Value> = self.all().collect();
        items.sort_by_key(|object| match object["kind"].as_str() {
            Some("Namespace") => 0,
            Some("CustomResourceDefinition") => 1,
            _ => 2,
        });
        json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
    }
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Renders the chart.
pub async fn chart(namespace: &str, values: &[&str]) -> Manifests {
    let output = helm("template", &["--namespace", namespace], values).await;
    assert!(output.status.success(), "{values:?}: {}", words(&output));
    Manifests::parse(&String::from_utf8(output.stdout).unwrap())
}

pub async fn helm(command: &str, arguments: &[&str], values: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut helm = Command::new(helm_program().await);
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        helm.env(variable, folder.path());
    }
    helm.arg(command).arg(repository().join("deploy/helm/machinist")).args(arguments);
    for value in values {
        helm.args(["--set", value]);
    }
    helm.output().await.unwrap()
}

pub async fn helm_program() -> &'static Path {
    static PROGRAM: OnceCell<PathBuf> = OnceCell::const_new();
    PROGRAM
        .get_or_init(|| async {
            let script = repository().join("tools/build.sh");
            let output = Command::new("bash").arg(script).arg("helm").output().await.unwrap();
            assert!(output.status.success(), "{}", words(&output));
            let text = String::from_utf8(output.stdout).unwrap();
            text.trim().strip_prefix("helm ").unwrap().into()
        })
        .await
}

/// Renders a folder of `deploy/kustomize`.
pub async fn kustomize(folder: &str) -> Manifests {
    Manifests::parse(&kustomize_text(folder).await)
}

pub async fn kustomize_text(folder: &str) -> String {
    let folder = repository().join("deploy/kustomize").join(folder);
    let kubectl = cluster().await.kubectl();
    let output = Command::new(kubectl).arg("kustomize").arg(folder).output().await.unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", words(&output));
    String::from_utf8(output.stdout).unwrap()
}
