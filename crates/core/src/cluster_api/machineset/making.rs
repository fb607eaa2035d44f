//! What does a new Machine look like, with the two objects beside it?

use machinist_api::cluster_api::{
    ContractRef, Machine, MachineSet,
    names::{finalizer, kind},
};
use serde_json::Value;

use super::{
    observed::{Found, Part, Template},
    propagate,
};
use crate::cluster_api::{
    contract::{
        GroupKind,
        cloning::{self, Clone as Wanted},
    },
    identity::{controller_reference, plain_reference},
};

/// The objects of one new Machine. The Machine is made last, when what it refers to is there: one that refers to nothing
/// would wait for ever if this process stopped in between.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMachine {
    pub parts: Vec<NewPart>,
    pub machine: Machine,
}

/// An object of a provider that is to be made. Until its Machine takes it over, the set owns it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPart {
    pub part: Part,
    pub kind: GroupKind,
    pub object: Value,
}

/// Why nothing can be made of a template, one sentence each.
pub fn template_faults(templates: &[Template<'_>]) -> Vec<String> {
    templates
        .iter()
        .filter_map(|template| {
            let ContractRef { kind, name, .. } = template.reference;
            match &template.found {
                Found::Whole { .. } if !kind.ends_with(kind::TEMPLATE_SUFFIX) => {
                    Some(format!("{kind} {name} is no template: its kind must end in Template"))
                }
                Found::Whole { .. } => None,
                Found::Missing => Some(format!("{kind} {name} does not exist")),
                Found::Unknown(why) => Some(format!("{kind} {name} cannot be read: {why}")),
            }
        })
        .collect()
}

/// A Machine of this name, and the objects that it refers to.
pub fn new_machine(set: &MachineSet, templates: &[Template<'_>], name: &str) -> NewMachine {
    let labels = propagate::labels(set);
    let annotations = &set.spec.template.metadata.annotations;
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let holder = plain_reference(set);
    let mut machine = Machine::new(name, set.spec.template.spec.clone());
    let mut parts = Vec::new();
    for template in templates {
        let Found::Whole { object, .. } = &template.found else { continue };
        let source = GroupKind::new(&template.reference.api_group, &template.reference.kind);
        let cloned = cloning::cloned_kind(&source);
        let wanted = Wanted {
            name,
            namespace,
            cluster: &set.spec.cluster_name,
            owner: Some(&holder),
            labels: &labels,
            annotations,
        };
        let reference = ContractRef {
            api_group: cloned.group.clone(),
            kind: cloned.kind.clone(),
            name: name.to_owned(),
        };
        match template.part {
            Part::Bootstrap => machine.spec.bootstrap.config_ref = Some(reference),
            Part::Infrastructure => machine.spec.infrastructure_ref = reference,
        }
        let object = cloning::clone_from(object, &source, &wanted);
        parts.push(NewPart { part: template.part, kind: cloned, object });
    }
    machine.spec.provider_id = None;
    machine.spec.cluster_name = set.spec.cluster_name.clone();
    machine.metadata.namespace = set.metadata.namespace.clone();
    machine.metadata.labels = Some(labels);
    machine.metadata.annotations = (!annotations.is_empty()).then(|| annotations.clone());
    machine.metadata.owner_references = Some(vec![controller_reference(set)]);
    machine.metadata.finalizers = Some(vec![finalizer::MACHINE.to_owned()]);
    NewMachine { parts, machine }
}
