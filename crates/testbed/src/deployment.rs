//! How does the shipped Deployment run the operator? Tests that start it as a process begin with the same
//! flags and environment, and change only what a process on this machine must have otherwise.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;

use crate::manifests::documents;

const DEPLOYMENT: &str = include_str!("../../../deploy/kustomize/base/deployment.yaml");

/// What the container of the operator is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Values by flag, `--namespace` for example; an empty value is a flag without one.
    pub flags: BTreeMap<String, String>,
    pub environment: BTreeMap<String, String>,
}

/// The container as the kubelet would start it in a Pod of that namespace and name.
pub fn shipped_container(namespace: &str, pod: &str) -> anyhow::Result<Container> {
    let objects = documents(DEPLOYMENT)?;
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment");
    container_of(deployment.context("there is no Deployment")?, namespace, pod)
}

/// The first container of a Deployment, as the kubelet would start it in a Pod of that namespace and name.
pub fn container_of(deployment: &Value, namespace: &str, pod: &str) -> anyhow::Result<Container> {
    let container = deployment
        .pointer("/spec/template/spec/containers/0")
        .context("the Deployment has no container")?;
    let list = |field: &str| container[field].as_array().cloned().unwrap_or_default();
    let mut environment = BTreeMap::new();
    for variable in list("env") {
        let name = variable["name"].as_str().context("a variable has no name")?;
        let value = match variable.pointer("/valueFrom/fieldRef/fieldPath").and_then(Value::as_str)
        {
            Some("metadata.namespace") => namespace,
            Some("metadata.name") => pod,
            Some(other) => anyhow::bail!("{name} is taken from {other}, which is not known here"),
            None => variable["value"].as_str().unwrap_or_default(),
        };
        environment.insert(name.to_owned(), value.to_owned());
    }
    let mut flags = BTreeMap::new();
    for argument in list("args") {
        let mut argument = argument.as_str().context("an argument is no text")?.to_owned();
        for (name, value) in &environment {
            argument = argument.replace(&format!("$({name})"), value);
        }
        let (flag, value) = argument.split_once('=').unwrap_or((&argument, ""));
        flags.insert(flag.to_owned(), value.to_owned());
    }
    Ok(Container { flags, environment })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_as_the_kubelet_does() {
        let container = shipped_container("ns", "pod-1").unwrap();
        assert_eq!(container.flags["--namespace"], "ns");
        assert_eq!(container.flags["--http-metrics"], "false");
        assert_eq!(container.environment["POD_NAME"], "pod-1");
        assert!(!container.flags.values().any(|value| value.contains("$(")));
    }
}
