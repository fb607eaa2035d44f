//! How is a person, or a program, told what was changed?

use jiff::Timestamp;
use machinist_core::overview::wish::{Change, Object, Write};
use serde::Serialize;

use crate::{
    annotate::Effect,
    args::Document,
    document::{self, Notation},
    zone::Zone,
};

/// What `-o json` and `-o yaml` print. Names are never changed, only added; times are in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// False where it was so already, and nothing was written.
    pub changed: bool,
    /// Whether it was only tried.
    pub dry_run: bool,
    /// What was written on, as kubectl names it.
    pub object: Option<String>,
    pub namespace: Option<String>,
    pub sentence: String,
    /// What else holds.
    pub besides: Vec<String>,
}

impl Done {
    pub fn of(change: &Change, effect: Effect, besides: Vec<String>) -> Self {
        let write = change.write.as_ref();
        let namespace = write.map(|write| write.namespace.clone());
        Self {
            changed: write.is_some() && effect == Effect::Real,
            dry_run: effect == Effect::DryRun,
            object: write.map(name),
            namespace: namespace.filter(|namespace| !namespace.is_empty()),
            sentence: change.sentence.clone(),
            besides,
        }
    }

    pub fn text(&self, output: Document, zone: &Zone, now: Timestamp) -> anyhow::Result<String> {
        Ok(match output {
            Document::Text | Document::Wide => {
                let suffix = if self.dry_run { " (dry run)" } else { "" };
                let mut text = format!("{}{suffix}\n", zone.localize(&self.sentence, now));
                for other in &self.besides {
                    text.push_str(&format!("{}\n", zone.localize(other, now)));
                }
                text
            }
            Document::Json => document::json(self, Notation::Indented)?,
            Document::Yaml => document::yaml(self, Notation::Indented)?,
            Document::Name => self.object.iter().map(|name| format!("{name}\n")).collect(),
        })
    }
}

fn name(write: &Write) -> String {
    let kind = match write.on {
        Object::Maintenance => "machinemaintenance.machinemaintenance.managed.openshift.io",
        Object::Machine => "machine.machine.openshift.io",
        Object::Pool => "machineset.machine.openshift.io",
        Object::ClusterApiMachine => "machine.cluster.x-k8s.io",
        Object::ClusterApiSet => "machineset.cluster.x-k8s.io",
        Object::ClusterApiDeployment => "machinedeployment.cluster.x-k8s.io",
        Object::Policy => "maintenancepolicy.machinist.dev",
        Object::Namespace => "namespace",
    };
    format!("{kind}/{}", write.name)
}
