//! What is refused?

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use machinist_api::cluster_api::{
    DrainBehavior, Machine, MachineDeployment, MachineDrainRule, MachineHealthCheck, MachineSet,
    MachineSpec,
    names::{annotation, kind, label, preflight},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Kind;
use crate::{
    admission::fault,
    cluster_api::{
        deployment, health, identity, machineset, naming, share::Share, version::Version,
    },
    decision::FieldError,
    selector::MachineSelector,
};

/// The shortest startup timeout that is no mistake.
const STARTUP_SECONDS_MIN: i32 = 30;

/// Why the object is refused; nothing where it is not. `old` is what was stored before an update.
pub fn faults(kind: Kind, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut faults = match kind {
        Kind::Machine => read(object, machine),
        Kind::MachineSet => read(object, machine_set),
        Kind::MachineDeployment => read(object, machine_deployment),
        Kind::MachineHealthCheck => read(object, health_check),
        Kind::MachineDrainRule => read(object, drain_rule),
    };
    let cluster = |object: &Value| object.pointer("/spec/clusterName").cloned();
    if let Some(old) = old
        && cluster(old) != cluster(object)
    {
        faults.push(fault::forbidden("spec.clusterName", "field is immutable"));
    }
    faults
}

fn read<K: DeserializeOwned>(
    object: &Value,
    check: impl Fn(&K) -> Vec<FieldError>,
) -> Vec<FieldError> {
    match serde_json::from_value::<K>(object.clone()) {
        Ok(object) => check(&object),
        Err(error) => vec![FieldError::new("object", format!("Invalid value: {error}"))],
    }
}

fn machine(machine: &Machine) -> Vec<FieldError> {
    let mut owners = machine.metadata.owner_references.iter().flatten();
    let is_of_pool = owners.any(|owner| owner.kind == kind::MACHINE_POOL);
    machine_spec("spec", &machine.spec, is_of_pool)
}

fn machine_spec(path: &str, spec: &MachineSpec, is_of_pool: bool) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let bootstrap = &spec.bootstrap;
    if bootstrap.config_ref.is_none() && bootstrap.data_secret_name.is_none() && !is_of_pool {
        let words =
            "expected either bootstrap.dataSecretName or bootstrap.configRef to be populated";
        faults.push(fault::required(format!("{path}.bootstrap.data"), words));
    }
    let version = spec.version.as_deref().filter(|version| Version::parse(version).is_none());
    if let Some(version) = version {
        let words = "must be a valid semantic version";
        faults.push(fault::invalid(format!("{path}.version"), &Value::from(version), words));
    }
    if !spec.taints.is_empty() {
        let words = "taints can only be set when the feature gate MachineTaintPropagation is on";
        faults.push(fault::forbidden(format!("{path}.taints"), words));
    }
    faults
}

fn machine_set(set: &MachineSet) -> Vec<FieldError> {
    let mut faults: Vec<FieldError> = machineset::validate(set).err().into_iter().collect();
    let template = &set.spec.template.spec;
    faults.extend(template_cluster(&set.spec.cluster_name, &template.cluster_name));
    faults.extend(machine_spec("spec.template.spec", template, false));
    faults.extend(skipped_checks(&set.metadata));
    faults
}

fn machine_deployment(deployment: &MachineDeployment) -> Vec<FieldError> {
    let spec = &deployment.spec;
    let mut faults: Vec<FieldError> = deployment::validate(deployment).err().into_iter().collect();
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    if !naming::is_label_value(name) {
        let words =
            "must be a valid value of a label: at most 63 letters, digits, '-', '_' and '.'";
        faults.push(fault::invalid("metadata.name", &Value::from(name), words));
    }
    let update = &spec.rollout.strategy.rolling_update;
    let is_zero = |share: Share| matches!(share, Share::Number(0) | Share::Percent(0));
    if let Ok((surge, unavailable)) = deployment::observed::limits(update)
        && is_zero(surge)
        && is_zero(unavailable)
    {
        let path = "spec.rollout.strategy.rollingUpdate.maxUnavailable";
        faults.push(fault::invalid(path, &Value::from(0), "cannot be 0 when maxSurge is 0"));
    }
    if let Some(limit) = &spec.remediation.max_in_flight {
        faults.extend(Share::read("spec.remediation.maxInFlight", limit).err());
    }
    let template = &spec.template.spec;
    faults.extend(template_cluster(&spec.cluster_name, &template.cluster_name));
    faults.extend(machine_spec("spec.template.spec", template, false));
    faults.extend(skipped_checks(&deployment.metadata));
    faults
}

fn template_cluster(own: &str, of_template: &str) -> Option<FieldError> {
    let path = "spec.template.spec.clusterName";
    let words = "must be the same as spec.clusterName";
    (own != of_template).then(|| fault::invalid(path, &Value::from(of_template), words))
}

fn skipped_checks(metadata: &ObjectMeta) -> Vec<FieldError> {
    let known = [
        preflight::ALL,
        preflight::KUBEADM_VERSION_SKEW,
        preflight::KUBERNETES_VERSION_SKEW,
        preflight::CONTROL_PLANE_IS_STABLE,
        preflight::CONTROL_PLANE_VERSION_SKEW,
    ];
    let Some(text) = identity::annotation(metadata, annotation::SKIP_PREFLIGHT_CHECKS) else {
        return Vec::new();
    };
    let path = format!("metadata.annotations[{}]", annotation::SKIP_PREFLIGHT_CHECKS);
    let unknown = text.split(',').map(str::trim).filter(|check| !known.contains(check));
    unknown.map(|check| fault::unsupported(path.clone(), check, &known)).collect()
}

fn health_check(check: &MachineHealthCheck) -> Vec<FieldError> {
    let mut faults: Vec<FieldError> = health::Policy::read(check).err().into_iter().collect();
    let seconds = check.spec.checks.node_startup_timeout_seconds;
    if let Some(seconds) = seconds.filter(|seconds| (1..STARTUP_SECONDS_MIN).contains(seconds)) {
        let words = "must be at least 30, or 0 to wait for ever";
        let path = "spec.checks.nodeStartupTimeoutSeconds";
        faults.push(fault::invalid(path, &Value::from(seconds), words));
    }
    let labels = check.spec.selector.match_labels.as_ref();
    let other = labels
        .and_then(|labels| labels.get(label::CLUSTER_NAME))
        .filter(|cluster| **cluster != check.spec.cluster_name);
    if let Some(other) = other {
        let words = "cannot name another cluster than spec.clusterName";
        let path = "spec.selector.matchLabels";
        faults.push(fault::invalid(path, &Value::from(other.as_str()), words));
    }
    faults
}

fn drain_rule(rule: &MachineDrainRule) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let drain = &rule.spec.drain;
    if drain.order.is_some() && drain.behavior != DrainBehavior::Drain {
        let words = "order must not be set if drain behavior is not \"Drain\"";
        faults.push(fault::forbidden("spec.drain.order", words));
    }
    let machines = rule.spec.machines.iter().enumerate().flat_map(|(place, one)| {
        [
            (format!("spec.machines[{place}].selector"), &one.selector),
            (format!("spec.machines[{place}].clusterSelector"), &one.cluster_selector),
        ]
    });
    let pods = rule.spec.pods.iter().enumerate().flat_map(|(place, one)| {
        [
            (format!("spec.pods[{place}].selector"), &one.selector),
            (format!("spec.pods[{place}].namespaceSelector"), &one.namespace_selector),
        ]
    });
    for (path, selector) in machines.chain(pods) {
        let chosen = selector.as_ref().filter(|selector| !is_all(selector));
        faults.extend(chosen.and_then(|selector| MachineSelector::read(&path, selector).err()));
    }
    faults
}

/// An empty selector means everything here.
fn is_all(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(|labels| labels.is_empty())
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}
