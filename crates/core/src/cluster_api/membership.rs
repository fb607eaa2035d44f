//! What is missing on a set or a deployment itself before it is one of its Cluster?
//!
//! Its finalizer, its owner, and the label of the Cluster on everything that selects or makes Machines.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use machinist_api::cluster_api::{Cluster, names::label};
use serde_json::{Map, Value, json};

use super::identity::{self, plain_reference};

pub struct Member<'a> {
    pub metadata: &'a ObjectMeta,
    pub cluster_name: &'a str,
    pub selector: &'a LabelSelector,
    pub template_labels: &'a BTreeMap<String, String>,
    pub finalizer: &'a str,
    /// Whether its owner is another than the Cluster.
    pub is_of_another: bool,
}

impl Member<'_> {
    /// The patch that completes it, with these annotations; `None` when nothing is missing.
    pub fn amendment(&self, cluster: &Cluster, annotations: Option<Value>) -> Option<Value> {
        let mut patch = Map::new();
        for (part, fields) in
            [("metadata", self.metadata(cluster, annotations)), ("spec", self.spec())]
        {
            if !fields.is_empty() {
                patch.insert(part.to_owned(), Value::Object(fields));
            }
        }
        (!patch.is_empty()).then_some(Value::Object(patch))
    }

    fn metadata(&self, cluster: &Cluster, annotations: Option<Value>) -> Map<String, Value> {
        let mut metadata = Map::new();
        let finalizers = self.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|known| known == self.finalizer) {
            let all: Vec<String> =
                finalizers.into_iter().chain([self.finalizer.to_owned()]).collect();
            metadata.insert("finalizers".to_owned(), json!(all));
        }
        if !self.is_of_another && !identity::is_owned_by_cluster(self.metadata, cluster) {
            let owners = identity::with_owner(self.metadata, plain_reference(cluster));
            metadata.insert("ownerReferences".to_owned(), json!(owners));
        }
        if identity::label(self.metadata, label::CLUSTER_NAME) != Some(self.cluster_name) {
            metadata.insert("labels".to_owned(), self.label());
        }
        if let Some(annotations) = annotations {
            metadata.insert("annotations".to_owned(), annotations);
        }
        metadata
    }

    fn spec(&self) -> Map<String, Value> {
        let mut spec = Map::new();
        let has = |labels: Option<&BTreeMap<String, String>>| {
            let named = labels.and_then(|labels| labels.get(label::CLUSTER_NAME));
            named.is_some_and(|named| named == self.cluster_name)
        };
        if !has(self.selector.match_labels.as_ref()) {
            spec.insert("selector".to_owned(), json!({ "matchLabels": self.label() }));
        }
        if !has(Some(self.template_labels)) {
            let labels = json!({ "metadata": { "labels": self.label() } });
            spec.insert("template".to_owned(), labels);
        }
        spec
    }

    fn label(&self) -> Value {
        json!({ label::CLUSTER_NAME: self.cluster_name })
    }
}
