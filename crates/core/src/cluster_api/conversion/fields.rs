//! Which field of v1beta1 is which field of v1beta2?

use std::collections::BTreeMap;

use machinist_api::cluster_api::names::kind;
use serde_json::{Map, Value, json};

use super::Served;
use crate::cluster_api::contract::GroupKind;

/// A field in both versions.
pub struct Moved {
    /// Empty where the older version has no such field: it is left out there, and comes back from what is remembered.
    pub older: Vec<String>,
    pub newer: Vec<String>,
    pub form: Form,
}

/// What becomes of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Same,
    /// `1m30s` and 90.
    Duration,
    /// With an apiVersion and a namespace, and with a group.
    Reference,
    /// With a namespace and without.
    Template,
    /// A map by name, and a list.
    Domains,
    /// With everything, and with the name only.
    Node,
    /// A list of unhealthy conditions.
    Conditions,
}

/// The fields of a kind that differ; `None` where the kind is not known.
pub fn of_kind(kind: &str) -> Option<Vec<Moved>> {
    let mut all = Vec::new();
    match kind {
        kind::MACHINE => {
            machine_spec(&mut all, "spec");
            own_conditions(&mut all);
            add(
                &mut all,
                "status.bootstrapReady",
                "status.initialization.bootstrapDataSecretCreated",
            );
            add(
                &mut all,
                "status.infrastructureReady",
                "status.initialization.infrastructureProvisioned",
            );
            shaped(&mut all, "status.nodeRef", "status.nodeRef", Form::Node);
            only_newer(&mut all, "status.failureDomain");
            deprecated(&mut all, &["failureReason", "failureMessage"]);
        }
        kind::MACHINE_SET => {
            machine_spec(&mut all, "spec.template.spec");
            own_conditions(&mut all);
            add(&mut all, "spec.deletePolicy", "spec.deletion.order");
            add(&mut all, "spec.minReadySeconds", "spec.template.spec.minReadySeconds");
            add(&mut all, "spec.machineNamingStrategy", "spec.machineNaming");
            counts(&mut all);
            deprecated(
                &mut all,
                &[
                    "fullyLabeledReplicas",
                    "readyReplicas",
                    "availableReplicas",
                    "failureReason",
                    "failureMessage",
                ],
            );
        }
        kind::MACHINE_DEPLOYMENT => {
            machine_spec(&mut all, "spec.template.spec");
            own_conditions(&mut all);
            let strategy = "spec.rollout.strategy";
            add(&mut all, "spec.rolloutAfter", "spec.rollout.after");
            add(&mut all, "spec.strategy.type", &format!("{strategy}.type"));
            for field in ["maxSurge", "maxUnavailable"] {
                let older = format!("spec.strategy.rollingUpdate.{field}");
                add(&mut all, &older, &format!("{strategy}.rollingUpdate.{field}"));
            }
            add(&mut all, "spec.strategy.rollingUpdate.deletePolicy", "spec.deletion.order");
            add(&mut all, "spec.strategy.remediation.maxInFlight", "spec.remediation.maxInFlight");
            add(&mut all, "spec.minReadySeconds", "spec.template.spec.minReadySeconds");
            add(&mut all, "spec.machineNamingStrategy", "spec.machineNaming");
            counts(&mut all);
            deprecated(
                &mut all,
                &["updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"],
            );
        }
        kind::MACHINE_HEALTH_CHECK => {
            own_conditions(&mut all);
            let checks = "spec.checks";
            shaped(
                &mut all,
                "spec.unhealthyConditions",
                &format!("{checks}.unhealthyNodeConditions"),
                Form::Conditions,
            );
            only_newer(&mut all, &format!("{checks}.unhealthyMachineConditions"));
            only_newer(&mut all, &format!("{checks}.unhealthyExpressions"));
            shaped(
                &mut all,
                "spec.nodeStartupTimeout",
                &format!("{checks}.nodeStartupTimeoutSeconds"),
                Form::Duration,
            );
            let trigger = "spec.remediation.triggerIf";
            add(&mut all, "spec.maxUnhealthy", &format!("{trigger}.unhealthyLessThanOrEqualTo"));
            add(&mut all, "spec.unhealthyRange", &format!("{trigger}.unhealthyInRange"));
            let template = "spec.remediation.templateRef";
            shaped(&mut all, "spec.remediationTemplate", template, Form::Template);
        }
        kind::CLUSTER => {
            own_conditions(&mut all);
            for field in ["spec.controlPlaneRef", "spec.infrastructureRef"] {
                shaped(&mut all, field, field, Form::Reference);
            }
            add(
                &mut all,
                "status.infrastructureReady",
                "status.initialization.infrastructureProvisioned",
            );
            add(
                &mut all,
                "status.controlPlaneReady",
                "status.initialization.controlPlaneInitialized",
            );
            shaped(&mut all, "status.failureDomains", "status.failureDomains", Form::Domains);
            for field in ["controlPlane", "workers"] {
                add(&mut all, &format!("status.v1beta2.{field}"), &format!("status.{field}"));
            }
            // Nothing else of a topology is known here: what differs is left out by the older version's schema.
            add(&mut all, "spec.topology.class", "spec.topology.classRef.name");
            add(&mut all, "spec.topology.classNamespace", "spec.topology.classRef.namespace");
            deprecated(&mut all, &["failureReason", "failureMessage"]);
        }
        kind::MACHINE_DRAIN_RULE => {}
        _ => return None,
    }
    Some(all)
}

fn add(all: &mut Vec<Moved>, older: &str, newer: &str) {
    shaped(all, older, newer, Form::Same);
}

fn shaped(all: &mut Vec<Moved>, older: &str, newer: &str, form: Form) {
    let split = |path: &str| path.split('.').map(str::to_owned).collect();
    all.push(Moved { older: split(older), newer: split(newer), form });
}

fn only_newer(all: &mut Vec<Moved>, newer: &str) {
    let newer = newer.split('.').map(str::to_owned).collect();
    all.push(Moved { older: Vec::new(), newer, form: Form::Same });
}

fn machine_spec(all: &mut Vec<Moved>, at: &str) {
    only_newer(all, &format!("{at}.taints"));
    for field in ["infrastructureRef", "bootstrap.configRef"] {
        let path = format!("{at}.{field}");
        shaped(all, &path, &path, Form::Reference);
    }
    for field in ["nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout"] {
        let newer = format!("{at}.deletion.{field}Seconds");
        shaped(all, &format!("{at}.{field}"), &newer, Form::Duration);
    }
}

/// The conditions of either version are kept in the other, in a place of their own.
fn own_conditions(all: &mut Vec<Moved>) {
    add(all, "status.v1beta2.conditions", "status.conditions");
    add(all, "status.conditions", "status.deprecated.v1beta1.conditions");
}

fn counts(all: &mut Vec<Moved>) {
    only_newer(all, "status.versions");
    for field in ["readyReplicas", "availableReplicas", "upToDateReplicas"] {
        add(all, &format!("status.v1beta2.{field}"), &format!("status.{field}"));
    }
}

fn deprecated(all: &mut Vec<Moved>, fields: &[&str]) {
    for field in fields {
        add(all, &format!("status.{field}"), &format!("status.deprecated.v1beta1.{field}"));
    }
}

/// Whole seconds of a duration as Go writes it: `1h2m3s`, `10s`, `0s`. A rest of a second is dropped.
pub fn seconds(text: &str) -> Option<i64> {
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut milliseconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let scale = match unit {
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" => 1_000.0,
            "ms" => 1.0,
            "us" | "µs" => 0.001,
            "ns" => 0.000_001,
            _ => return None,
        };
        milliseconds += number.parse::<f64>().ok()? * scale;
        rest = after;
    }
    let seconds = (milliseconds / 1000.0).floor();
    // Far below what a float holds exactly.
    (!text.is_empty() && (0.0..=f64::from(i32::MAX)).contains(&seconds)).then_some(seconds as i64)
}

/// A duration as Go writes it.
pub fn duration(seconds: i64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

/// A reference by the group of its apiVersion.
pub fn by_group(reference: &Value) -> Value {
    let version = reference["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    json!({ "apiGroup": group, "kind": reference["kind"], "name": reference["name"] })
}

/// A reference by the version that is served of its group; the usual one where nothing is known.
pub fn by_version(reference: &Value, served: Served<'_>) -> Value {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let kind = GroupKind::new(text("apiGroup"), text("kind"));
    let version = served(&kind).unwrap_or_else(|| "v1beta1".to_owned());
    json!({
        "apiVersion": format!("{}/{version}", kind.group), "kind": kind.kind, "name": text("name"),
    })
}

/// A reference in this namespace, or in none.
pub fn within(mut reference: Value, namespace: Option<&str>) -> Value {
    if let Some(map) = reference.as_object_mut() {
        map.remove("namespace");
        map.extend(namespace.map(|namespace| ("namespace".to_owned(), json!(namespace))));
    }
    reference
}

/// Failure domains as a list, by name. What is no map of them stays as it is.
pub fn listed(domains: Value) -> Value {
    let Value::Object(map) = domains else { return domains };
    let one = |(name, domain): (String, Value)| {
        let mut one = Map::from_iter([("name".to_owned(), json!(name))]);
        if let Value::Object(domain) = domain {
            one.extend(domain.into_iter().filter(|(field, _)| field != "name"));
        }
        Value::Object(one)
    };
    // Sorted, so that the same map is the same list.
    let sorted: BTreeMap<String, Value> = map.into_iter().collect();
    Value::Array(sorted.into_iter().map(one).collect())
}

/// Failure domains as a map. What is no list of them stays as it is.
pub fn by_name(domains: Value) -> Value {
    let Value::Array(list) = &domains else { return domains };
    let one = |domain: &Value| {
        let mut domain = domain.as_object()?.clone();
        let name = domain.remove("name")?.as_str()?.to_owned();
        Some((name, Value::Object(domain)))
    };
    match list.iter().map(one).collect::<Option<Map<String, Value>>>() {
        Some(map) => Value::Object(map),
        None => domains,
    }
}
