//! What is refused when an object is created or changed, and what is warned about.
//!
//! A fault that the stored object has already is a warning and not a refusal: such an object came
//! while nobody could be asked, and refusing each change to it would also refuse the controllers,
//! which then could neither launch nor delete anything for it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use machinist_api::{MachineSet, MachineSetSpec, MachineTemplate};
use serde_json::{Value, json};

use super::{
    aws,
    context::{Context, Platform, SecretKnowledge, SecretName},
    fault::{cut, forbidden, listed},
    object::{Kind, at, is_deleting, provider_spec_object, text},
    shape,
};
use crate::{decision::FieldError, machineset, providerspec::is_aws};

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub kind: Kind,
    pub object: &'a Value,
    /// What is stored; none when the object is new.
    pub old: Option<&'a Value>,
    pub namespace: &'a str,
}

/// What is said to it. It is refused if there is a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub faults: Vec<FieldError>,
    pub warnings: Vec<String>,
}

/// Says what is wrong with a change.
pub fn validate(change: &Change, context: &Context, secret: &SecretKnowledge) -> Verdict {
    if change.only_removes_finalizers() {
        return Verdict::default();
    }
    let mut faults = faults_of(change.kind, change.object, context);
    let stored = change.old.map(|old| faults_of(change.kind, old, context)).unwrap_or_default();
    let tolerated: Vec<FieldError> =
        faults.extract_if(.., |fault| stored.contains(fault)).collect();
    faults.extend(change.forbidden_steps());
    let mut warnings: Vec<String> = tolerated.iter().map(tolerated_warning).collect();
    warnings.extend(provider_warnings(change, context, secret));
    Verdict { faults, warnings: listed(warnings) }
}

/// What the stored object has wrong already, in words for a warning.
pub(super) fn tolerated_warning(fault: &FieldError) -> String {
    format!("{fault} (the stored object has this fault already)")
}

/// The Secret that the rules want to know about before they are asked. A change that leaves the
/// providerSpec alone, as most of the controllers' are, costs no look.
pub fn wanted_secret(change: &Change, context: &Context) -> Option<SecretName> {
    let value = change.kind.provider_spec(change.object);
    let stored = change.old.and_then(|old| change.kind.provider_spec(old));
    if rules_for(value, context) == Rules::Untouched || value == stored {
        return None;
    }
    let reference = value?.get("credentialsSecret")?.as_object()?;
    Some(SecretName {
        namespace: change.namespace.to_owned(),
        name: text(reference, "name")?.to_owned(),
    })
}

/// Which cloud's rules a providerSpec is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    Aws,
    Untouched,
}

/// The cluster's platform decides. Where there is none, the kind does, as the controllers read it; a providerSpec that is no
/// object has none, and is wanted by the only rules there are.
pub(super) fn rules_for(value: Option<&Value>, context: &Context) -> Rules {
    match context.platform {
        Some(Platform::Aws) => Rules::Aws,
        Some(Platform::Other) => Rules::Untouched,
        None => match value {
            Some(Value::Object(spec)) if !is_aws(spec) => Rules::Untouched,
            _ => Rules::Aws,
        },
    }
}

/// What is wrong with an object, whatever it was before.
fn faults_of(kind: Kind, object: &Value, context: &Context) -> Vec<FieldError> {
    let findings = shape::check(object, kind.shape(), "");
    if !findings.wrong.is_empty() {
        return findings.wrong;
    }
    let mut faults = Vec::new();
    match kind {
        Kind::Machine => {}
        Kind::MachineSet => faults.extend(set_fault(object)),
    }
    let value = kind.provider_spec(object);
    match rules_for(value, context) {
        Rules::Untouched => {}
        Rules::Aws => match provider_spec_object(value) {
            Ok(spec) => faults.extend(aws::faults(spec, kind.role(object))),
            Err(fault) => faults.push(fault),
        },
    }
    faults
}

fn provider_warnings(change: &Change, context: &Context, secret: &SecretKnowledge) -> Vec<String> {
    let value = change.kind.provider_spec(change.object);
    match (rules_for(value, context), value) {
        (Rules::Aws, Some(Value::Object(spec))) => aws::warnings(spec, change.namespace, secret),
        (Rules::Aws | Rules::Untouched, _) => Vec::new(),
    }
}

/// The MachineSet controller's own rules, so that nothing is admitted that it cannot work with.
fn set_fault(object: &Value) -> Option<FieldError> {
    let part = |path: &[&str]| at(object, path).cloned();
    let read = || -> Result<MachineSetSpec, serde_json::Error> {
        let mut template = MachineTemplate::default();
        template.metadata.labels = serde_json::from_value::<BTreeMap<String, String>>(
            part(&["spec", "template", "metadata", "labels"]).unwrap_or_else(|| json!({})),
        )?;
        Ok(MachineSetSpec {
            selector: serde_json::from_value(
                part(&["spec", "selector"]).unwrap_or_else(|| json!({})),
            )?,
            replicas: serde_json::from_value(part(&["spec", "replicas"]).unwrap_or_default())?,
            delete_policy: serde_json::from_value(
                part(&["spec", "deletePolicy"]).unwrap_or_default(),
            )?,
            template,
            ..MachineSetSpec::default()
        })
    };
    match read() {
        Ok(spec) => {
            let set = MachineSet { spec, ..MachineSet::default() };
            machineset::validate(&set).err()
        }
        Err(error) => Some(FieldError::new("spec", format!("Invalid value: {error}"))),
    }
}

impl Change<'_> {
    /// Steps that no object may take, whatever it is.
    fn forbidden_steps(&self) -> Vec<FieldError> {
        let Some(old) = self.old else { return Vec::new() };
        match self.kind {
            Kind::Machine if is_deleting(self.object) || is_deleting(old) => {
                [("preDrain", "pre-drain"), ("preTerminate", "pre-terminate")]
                    .iter()
                    .filter_map(|(field, words)| new_hooks(self.object, old, field, words))
                    .collect()
            }
            Kind::Machine => Vec::new(),
            Kind::MachineSet if selector(self.object) == selector(old) => Vec::new(),
            Kind::MachineSet => vec![forbidden("spec.selector", "selector is immutable")],
        }
    }

    /// Whether an object that is going only lets go of finalizers. That is never held up, not even
    /// for an object that is wrong in every other way: it would stay for ever.
    fn only_removes_finalizers(&self) -> bool {
        let Some(old) = self.old.filter(|_| is_deleting(self.object)) else { return false };
        let (before, after) = (finalizers(old), finalizers(self.object));
        after.len() < before.len()
            && after.is_subset(&before)
            && without_bookkeeping(old) == without_bookkeeping(self.object)
    }
}

fn finalizers(object: &Value) -> BTreeSet<&str> {
    let list = at(object, &["metadata", "finalizers"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// An object without the finalizers and what the API server writes itself.
fn without_bookkeeping(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["finalizers", "managedFields", "resourceVersion", "generation"] {
            metadata.remove(key);
        }
    }
    object
}

/// Absent and empty parts read the same. One that is no selector at all is compared as it is.
fn selector(object: &Value) -> Result<LabelSelector, &Value> {
    let Some(value) = at(object, &["spec", "selector"]) else {
        return Ok(LabelSelector::default());
    };
    let read: Result<LabelSelector, _> = serde_json::from_value(value.clone());
    read.map_err(|_| value).map(|selector| LabelSelector {
        match_labels: selector.match_labels.filter(|labels| !labels.is_empty()),
        match_expressions: selector.match_expressions.filter(|list| !list.is_empty()),
    })
}

/// Hooks that came, or changed their owner, when only removal is left.
fn new_hooks(object: &Value, old: &Value, field: &str, words: &str) -> Option<FieldError> {
    let before: BTreeSet<_> = hooks(old, field).collect();
    let new = hooks(object, field)
        .filter(|hook| !before.contains(hook))
        .map(|(name, owner)| cut(&format!("{name} (owner {owner})")));
    let new = listed(new);
    (!new.is_empty()).then(|| {
        forbidden(
            format!("spec.lifecycleHooks.{field}"),
            &format!(
                "{words} hooks are immutable when machine is marked for deletion: the following \
                 hooks are new or changed: {}",
                new.join(", ")
            ),
        )
    })
}

fn hooks<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let list = at(object, &["spec", "lifecycleHooks", field]).and_then(Value::as_array);
    let hooks = list.into_iter().flatten().filter_map(Value::as_object);
    hooks.map(|hook| (text(hook, "name").unwrap_or(""), text(hook, "owner").unwrap_or("")))
}
