//! What is known of one set: its Machines, their objects of providers, its templates, its cluster.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use machinist_api::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet, names::kind};
use machinist_core::{
    cluster_api::{
        contract::{GroupKind, cloning, reading},
        identity::{self, is_deleting},
        machineset::{
            Observed,
            decide::is_short,
            observed::{ControlPlane, Provided, template_references},
            validate,
        },
        naming, pausing, scaling,
        version::Version,
    },
    machineset::Bounds,
};
use serde_json::Value;

use super::memory::{Memory, SetMemory};
use crate::{
    cluster_api::{
        context::Context,
        index,
        templates::{self, Sight},
    },
    engine::store::ObjectKey,
    machineset::memory::random_letters,
};

/// How many Machines one pass may make; the next pass follows at once.
const CREATED_IN_ONE_PASS: usize = 100;

pub struct Observation {
    pub set: Arc<MachineSet>,
    cluster: Option<Arc<Cluster>>,
    deployment: Option<Arc<MachineDeployment>>,
    machines: Vec<Arc<Machine>>,
    unreadable: usize,
    pub templates: Vec<Sight>,
    control_plane: ControlPlane,
    provided: Vec<(GroupKind, Arc<DynamicObject>)>,
    names: Vec<String>,
    bounds: Bounds,
    memory: SetMemory,
}

impl Observation {
    pub fn observed(&self) -> Observed<'_> {
        Observed {
            set: &self.set,
            cluster: self.cluster.as_deref(),
            deployment: self.deployment.as_deref(),
            machines: self.machines.iter().map(|machine| &**machine).collect(),
            unreadable: self.unreadable,
            templates: self.templates.iter().map(Sight::template).collect(),
            control_plane: self.control_plane.clone(),
            provided: self
                .provided
                .iter()
                .map(|(kind, object)| Provided { kind: kind.clone(), metadata: &object.metadata })
                .collect(),
            fresh_names: &self.names,
            bounds: self.bounds,
            status_written_at: self.memory.status_written_at,
            last_failure: self.memory.last_failure.as_deref(),
        }
    }
}

pub async fn observe(context: &Context, memory: &Memory, set: &Arc<MachineSet>) -> Observation {
    let key = ObjectKey::of(&**set);
    let cluster = context.stores.cluster(&key.namespace, &set.spec.cluster_name);
    let machines = members(context, set);
    let unreadable = unreadable(context, set);
    let is_alive =
        !is_deleting(&set.metadata) && !pausing::is_paused(&set.metadata, cluster.as_deref());
    let is_short = is_alive && is_short(set, machines.len() + unreadable);

    let generation = set.metadata.uid.clone().zip(set.metadata.generation);
    let is_news = memory.of(&key).templates_seen != generation;
    let is_remediated = is_alive
        && machines.iter().any(|one| scaling::is_live(one) && scaling::is_to_be_remediated(one));
    // A template may say which checks of the control plane are left out.
    let templates = match is_short || is_remediated || (is_alive && is_news) {
        true => templates::look(context, &key.namespace, template_references(set)).await,
        false => Vec::new(),
    };
    if !templates.is_empty() {
        memory.change(&key, |memory| memory.templates_seen = generation);
    }
    let control_plane = match (is_short || is_remediated, &cluster) {
        (true, Some(cluster)) => control_plane(context, cluster).await,
        _ => ControlPlane::default(),
    };
    let provided = provided(context, memory, set, &machines).await;
    let remembered = memory.of(&key);
    let names = names(context, set, &machines, &remembered);
    let bounds = memory.creations.bounds(&context.base.env, in_all(context));
    Observation {
        set: Arc::clone(set),
        deployment: deployment(context, set),
        cluster,
        machines,
        unreadable,
        templates,
        control_plane,
        provided,
        names,
        bounds,
        memory: remembered,
    }
}

/// All Machines there are, those that cannot be read included.
pub fn in_all(context: &Context) -> usize {
    let machines = &context.stores.machines;
    machines.len() + machines.invalid().len()
}

/// What the set controls, whatever its labels, and what matches and has no controller.
fn members(context: &Context, set: &MachineSet) -> Vec<Arc<Machine>> {
    let machines = &context.stores.machines;
    let Some(uid) = set.metadata.uid.as_deref() else { return Vec::new() };
    let mut members = machines.by_index(index::MACHINE_BY_OWNER, uid);
    if let Ok(selector) = validate(set) {
        let empty = BTreeMap::new();
        let orphans = machines.by_index(index::MACHINE_BY_OWNER, index::NO_OWNER);
        members.extend(orphans.into_iter().filter(|machine| {
            !is_deleting(&machine.metadata)
                && selector.matches(machine.metadata.labels.as_ref().unwrap_or(&empty))
        }));
    }
    members.retain(|machine| machine.metadata.namespace == set.metadata.namespace);
    members
}

/// How many Machines of this set exist that could not be read.
fn unreadable(context: &Context, set: &MachineSet) -> usize {
    let uid = set.metadata.uid.as_deref();
    let is_ours = |metadata: &ObjectMeta| {
        metadata.namespace == set.metadata.namespace && identity::is_controlled_by(metadata, uid)
    };
    context.stores.machines.invalid().iter().filter(|object| is_ours(&object.metadata)).count()
}

fn deployment(context: &Context, set: &MachineSet) -> Option<Arc<MachineDeployment>> {
    let owner = identity::controller(&set.metadata)?;
    let key = ObjectKey::new(set.metadata.namespace.clone()?, owner.name.clone());
    let found = context.stores.deployments.get(&key)?;
    let is_that =
        owner.kind == kind::MACHINE_DEPLOYMENT && found.metadata.uid.as_ref() == Some(&owner.uid);
    is_that.then_some(found)
}

async fn control_plane(context: &Context, cluster: &Cluster) -> ControlPlane {
    let Some(reference) = &cluster.spec.control_plane_ref else { return ControlPlane::default() };
    let kind = GroupKind::new(&reference.api_group, &reference.kind);
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let what = format!("{} {namespace}/{}", reference.kind, reference.name);
    let topology = cluster.spec.topology.as_ref().and_then(|topology| topology.as_object());
    let topology_version =
        topology.and_then(|topology| topology.get("version")?.as_str().map(str::to_owned));
    match context.externals.find(&kind, namespace, &reference.name).await {
        Ok(found) => {
            let data = found.object.map_or(Value::Null, |object| object.data.clone());
            let version = reading::text(&data, "/spec/version").map(str::to_owned);
            ControlPlane {
                what: version.is_some().then_some(what),
                version,
                running_version: running_version(&data),
                topology_version,
                unknown: None,
            }
        }
        Err(error) => ControlPlane {
            unknown: Some(format!("{what} cannot be read: {:#}", anyhow::Error::new(error))),
            ..ControlPlane::default()
        },
    }
}

/// The oldest version that the control plane says it runs.
fn running_version(data: &Value) -> Option<String> {
    let several = data.pointer("/status/versions").and_then(Value::as_array);
    let several = several.into_iter().flatten().filter_map(|one| one.get("version")?.as_str());
    let one = reading::text(data, "/status/version");
    several.chain(one).min_by_key(|text| Version::parse(text)).map(str::to_owned)
}

/// The objects of providers that the Machines refer to, as far as their kinds are watched; and once, those that the set
/// made and no Machine refers to.
async fn provided(
    context: &Context,
    memory: &Memory,
    set: &MachineSet,
    machines: &[Arc<Machine>],
) -> Vec<(GroupKind, Arc<DynamicObject>)> {
    let key = ObjectKey::of(set);
    let watched = context.externals.watched();
    let mut all = Vec::new();
    for machine in machines {
        let config = machine.spec.bootstrap.config_ref.as_ref();
        for reference in config.into_iter().chain([&machine.spec.infrastructure_ref]) {
            let kind = GroupKind::new(&reference.api_group, &reference.kind);
            let store = watched.iter().find(|known| known.kind == kind).map(|known| &known.store);
            let object =
                store.and_then(|store| store.get(&ObjectKey::new(&key.namespace, &reference.name)));
            all.extend(object.map(|object| (kind, object)));
        }
    }
    if memory.of(&key).is_tidy {
        return all;
    }
    let mut is_tidy = true;
    for (_, reference) in template_references(set) {
        let kind = cloning::cloned_kind(&GroupKind::new(&reference.api_group, &reference.kind));
        // A kind that cannot be spoken to has no objects that we made.
        let Ok(provided) = context.externals.provided(&kind).await else { continue };
        is_tidy &= provided.store.is_synced();
        for object in provided.store.list_in(&key.namespace) {
            let mut owners = object.metadata.owner_references.iter().flatten();
            let is_held = owners.any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref());
            let is_known = all
                .iter()
                .any(|(known, one)| *known == kind && one.metadata.uid == object.metadata.uid);
            if is_held && !is_known {
                all.push((kind.clone(), object));
            }
        }
    }
    memory.change(&key, |memory| memory.is_tidy = is_tidy);
    all
}

/// Names for the Machines that are missing: first those whose creation had no clear answer.
fn names(
    context: &Context,
    set: &MachineSet,
    machines: &[Arc<Machine>],
    remembered: &SetMemory,
) -> Vec<String> {
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(0)).unwrap_or(0);
    let missing = wanted.saturating_sub(machines.len()).min(CREATED_IN_ONE_PASS);
    let is_there =
        |name: &String| machines.iter().any(|machine| machine.metadata.name.as_ref() == Some(name));
    let mut names: Vec<String> =
        remembered.unresolved.iter().filter(|name| !is_there(name)).cloned().collect();
    let template = set.spec.machine_naming.template.as_deref().unwrap_or(naming::USUAL_TEMPLATE);
    let own = set.metadata.name.as_deref().unwrap_or_default();
    while names.len() < missing {
        let letters = random_letters(&context.base.env);
        match naming::machine_name(template, &set.spec.cluster_name, own, &letters) {
            Ok(name) => names.push(name),
            // The decision refuses the set for it.
            Err(_) => break,
        }
    }
    names
}
