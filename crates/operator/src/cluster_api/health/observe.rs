//! What is known of one check: its machines, their Nodes, and the requests that were made.

use std::{collections::BTreeMap, sync::Arc};

use kube::api::DynamicObject;
use machinist_api::cluster_api::{Cluster, Machine, MachineHealthCheck};
use machinist_core::cluster_api::{
    contract::cloning,
    health::{Doubt, Gate, NodeSight, Observed, Policy, Target, decide::template_kind},
};

use super::Remembered;
use crate::{
    cluster_api::{
        context::{Context, NodeLook},
        index,
        maintained::Maintained,
        templates::{self, Seen},
    },
    engine::store::ObjectKey,
};

pub struct Observation {
    check: Arc<MachineHealthCheck>,
    cluster: Option<Arc<Cluster>>,
    targets: Vec<(Arc<Machine>, Option<NodeLook>)>,
    template: Option<Seen>,
    requests: Vec<Arc<DynamicObject>>,
    known: Remembered,
    gate: Gate,
    doubt: Option<Doubt>,
}

impl Observation {
    pub fn observed(&self) -> Observed<'_> {
        Observed {
            check: &self.check,
            cluster: self.cluster.as_deref(),
            targets: self.targets.iter().map(|(machine, look)| target(machine, look)).collect(),
            template: self.template.as_ref().map(Seen::found),
            requests: self.requests.iter().map(|request| &request.metadata).collect(),
            last_failure: self.known.failure.as_deref(),
            gate: self.gate.clone(),
            doubt: self.doubt.clone(),
            doubted_at: self.known.doubted_at,
        }
    }

    pub fn is_doubtful(&self) -> bool {
        self.doubt.is_some()
    }
}

fn target<'a>(machine: &'a Machine, look: &'a Option<NodeLook>) -> Target<'a> {
    let node = match look {
        None => NodeSight::NotYet,
        Some(NodeLook::Present(node)) => NodeSight::Present(node),
        Some(NodeLook::Gone) => NodeSight::Gone,
        Some(NodeLook::Unknown) => NodeSight::Unknown,
    };
    Target { machine, node }
}

pub async fn observe(
    context: &Context,
    known: &Remembered,
    check: &Arc<MachineHealthCheck>,
) -> Observation {
    let key = ObjectKey::of(&**check);
    let cluster_key = ObjectKey::new(&key.namespace, &check.spec.cluster_name);
    let policy = Policy::read(check).ok();
    let empty = BTreeMap::new();
    let of_cluster = index::cluster(&key.namespace, &check.spec.cluster_name);
    let mut machines = context.stores.machines.by_index(index::BY_CLUSTER, &of_cluster);
    machines.retain(|machine| {
        let labels = machine.metadata.labels.as_ref().unwrap_or(&empty);
        policy.as_ref().is_some_and(|policy| policy.selector.matches(labels))
    });
    let seen = Maintained {
        stores: Arc::clone(&context.stores),
        nodes: Arc::clone(&context.nodes),
        leadership: context.base.leadership.clone(),
    };
    let gate = seen.gate(&machines);
    let targets = machines
        .into_iter()
        .map(|machine| {
            let node = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
            let look = node.map(|node| context.nodes.look(&cluster_key, &node.name));
            (machine, look)
        })
        .collect();
    let (mut template, mut requests) = (None, Vec::new());
    if let Some(reference) = policy.as_ref().and_then(|policy| policy.template.as_ref()) {
        let (kind, version) = template_kind(reference);
        let name = &reference.name;
        let read = templates::read_in(context, &kind, &version, &key.namespace, name).await;
        template = Some(read);
        let kind = cloning::cloned_kind(&kind);
        let provided = context.externals.provided_in(&kind, &version).await;
        requests = provided.store.list_in(&key.namespace);
    }
    Observation {
        check: Arc::clone(check),
        cluster: context.stores.clusters.get(&cluster_key),
        targets,
        template,
        requests,
        known: known.clone(),
        gate,
        doubt: doubt(context, &cluster_key),
    }
}

/// Nodes that recovered while nobody told us of it would be replaced for what they were.
fn doubt(context: &Context, cluster: &ObjectKey) -> Option<Doubt> {
    if !context.stores.machines.is_current(context.base.env.instant()) {
        return Some(Doubt::Machines);
    }
    context.nodes.doubt(cluster).map(Doubt::Nodes)
}
