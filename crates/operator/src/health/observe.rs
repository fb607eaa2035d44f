//! What is known for one check: the Machines of its namespace with their Nodes, their pools, and the
//! objects of the controller that repairs them.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::Node;
use machinist_api::{Machine, MachineHealthCheck};
use machinist_core::{
    disruption::Pool,
    health::{
        Observed, Policy, Target,
        external::TemplateReference,
        observed::{ExternalRequest, Template},
    },
};

use super::{
    closer_look, external,
    memory::{CheckMemory, Memory},
};
use crate::{context::Context, engine::store::ObjectKey, index};

pub type LinkedMachine = (Arc<Machine>, Option<Arc<Node>>);

pub struct Observation {
    check: Arc<MachineHealthCheck>,
    machines: Vec<LinkedMachine>,
    pools: BTreeMap<String, Pool>,
    reference: Option<TemplateReference>,
    template: Template,
    requests: Option<BTreeMap<String, ExternalRequest>>,
    memory: CheckMemory,
    doubt: Option<&'static str>,
    /// What could not be read; the pass is repeated for it.
    pub failure: Option<anyhow::Error>,
}

impl Observation {
    pub fn observed(&self) -> Observed<'_> {
        let machines = self.machines.iter();
        Observed {
            check: &self.check,
            machines: machines
                .map(|(machine, node)| Target::of(machine, node.as_deref()))
                .collect(),
            pools: &self.pools,
            template: self.template.clone(),
            requests: self.requests.as_ref(),
            request_failure: self.memory.request_failure.as_deref(),
            memory: &self.memory.decided,
            status_written_at: self.memory.status_written_at,
            doubt: self.doubt,
        }
    }

    pub async fn ask_for_template(&mut self, context: &Context, memory: &Memory) {
        let Some(reference) = &self.reference else { return };
        let namespace = self.namespace();
        match external::template(&context.client, memory, &namespace, reference).await {
            Ok(template) => self.template = template,
            Err(error) => self.failure = Some(error),
        }
    }

    /// Replaces what the stores show by what is so now. Without an answer nothing is believed.
    pub async fn look_closer(&mut self, context: &Context) {
        let namespace = self.namespace();
        match closer_look::machines(context, &namespace).await {
            Ok(machines) => {
                self.pools = pools(context, &namespace, &machines);
                self.machines = machines;
            }
            Err(error) => {
                self.doubt = Some("the API server could not be asked how things are now");
                self.failure = Some(error);
            }
        }
    }

    fn namespace(&self) -> String {
        ObjectKey::of(&*self.check).namespace
    }
}

pub async fn observe(
    context: &Context,
    memory: &Memory,
    check: &Arc<MachineHealthCheck>,
) -> Observation {
    let key = ObjectKey::of(&**check);
    let machines: Vec<LinkedMachine> = context
        .stores
        .machines
        .list_in(&key.namespace)
        .into_iter()
        .map(|machine| {
            let node = context.stores.linked_node(&machine);
            (machine, node)
        })
        .collect();
    let reference = Policy::read(check).ok().and_then(|policy| policy.template);
    let (mut requests, mut failure) = (None, None);
    if let Some(reference) = &reference {
        match external::requests(&context.client, memory, &key.namespace, reference).await {
            Ok(known) => requests = Some(known),
            Err(error) => failure = Some(error),
        }
    }
    Observation {
        check: Arc::clone(check),
        pools: pools(context, &key.namespace, &machines),
        machines,
        reference,
        template: Template::NotAsked,
        requests,
        memory: memory.of(&key),
        doubt: doubt(context),
        failure,
    }
}

/// The pools of a namespace by the uid of their MachineSet, counted for nobody.
fn pools(context: &Context, namespace: &str, machines: &[LinkedMachine]) -> BTreeMap<String, Pool> {
    let mut members: BTreeMap<String, Vec<&LinkedMachine>> = BTreeMap::new();
    for linked in machines {
        for owner in index::owner_of_machine(&linked.0) {
            members.entry(owner).or_default().push(linked);
        }
    }
    let sets = context.stores.machine_sets.list_in(namespace);
    let counted = sets.iter().map(|set| {
        let uid = set.metadata.uid.clone().unwrap_or_default();
        let owned = members.get(&uid).into_iter().flatten();
        let owned = owned.map(|(machine, node)| (&**machine, node.as_deref()));
        (uid, Pool::of(set, owned, ""))
    });
    counted.collect()
}

/// Why what the stores show may be the past. Nodes that recovered while nobody told us of it would be
/// deleted for what they were.
fn doubt(context: &Context) -> Option<&'static str> {
    let (stores, now) = (&context.stores, context.env.instant());
    if !stores.nodes.is_current(now) {
        return Some("the watch of nodes is interrupted");
    }
    if !stores.machines.is_current(now) {
        return Some("the watch of machines is interrupted");
    }
    None
}
