//! What is known for one maintenance: its Machine, Node, instance, pool and pods, the reasons as they
//! are now, and what the plan says. What costs requests is asked for only in the phases that read it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{
    Machine, MachineMaintenance, MachineSet, MaintenanceAction, MaintenancePhase, MaintenanceWork,
    names::annotation,
};
use machinist_core::{
    cloud::Instance,
    cluster_api::maintained,
    disruption::{Held, Pool},
    drain::Attempts,
    maintenance::{
        Durations, Need, Observed, PlanEntry, Policy, PolicySet,
        action::Traits,
        event::Source,
        freshness::WHEN_NEAR,
        observed::{CloudSight, Member, PoolSight},
        plan::{ClusterState, ControlPlane},
        policies::{Chosen, Subject},
        reason::Merged,
        surge::without_surplus,
    },
};

use super::{
    Maintenance, closer_look,
    fleet::{Fleet, control_plane_now},
    home::Home,
    sight::{Pictures, Sighted},
};
use crate::{
    cloud::CloudAccess, context::Context, drain::observe::pods_on, engine::store::ObjectKey, index,
};

/// How old the provider's answer about its events may be when work begins.
const REPORTS_WITHIN: Duration = Duration::from_secs(20);
/// How long such an answer is waited for.
const REPORTS_PATIENCE: Duration = Duration::from_secs(20);

/// Everything that was read, held for the length of one pass.
pub struct Observation {
    pub object: Arc<MachineMaintenance>,
    pub policy: Policy,
    pub access: Option<Arc<CloudAccess>>,
    pub machine: Option<Arc<Machine>>,
    node: Option<Arc<Node>>,
    facts: Facts,
    entry: Option<PlanEntry>,
    cloud: CloudSight,
    pool: Option<(Arc<MachineSet>, Vec<Linked>)>,
    replacement: Option<Linked>,
    control_plane: ControlPlane,
    pods: Vec<Arc<Pod>>,
    budgets: Vec<Arc<PodDisruptionBudget>>,
    attempts: Attempts,
    gate: Result<(), Held>,
    workloads_missing: Vec<String>,
    doubt: Option<String>,
}

/// A Machine with its Node.
struct Linked {
    machine: Arc<Machine>,
    node: Option<Arc<Node>>,
    daemons_run: bool,
}

impl Linked {
    fn member(&self) -> Member<'_> {
        Member { machine: &self.machine, node: self.node.as_deref(), daemons_run: self.daemons_run }
    }
}

/// What core gathers of the one Machine.
#[derive(Default)]
struct Facts {
    reasons: Merged,
    need: Option<Need>,
    traits: Traits,
    is_control_plane: bool,
    zone: Option<String>,
    policy: Policy,
}

impl Observation {
    /// The decision's view of it.
    pub fn observed(&self) -> Observed<'_> {
        let pool = self.pool.as_ref();
        Observed {
            maintenance: &self.object,
            reasons: &self.facts.reasons,
            need: self.facts.need.as_ref(),
            entry: self.entry.as_ref(),
            machine: self.machine.as_deref(),
            node: self.node.as_deref(),
            cloud: self.cloud.clone(),
            traits: &self.facts.traits,
            is_control_plane: self.facts.is_control_plane,
            zone: self.facts.zone.as_deref(),
            pool: pool.map(|(set, members)| PoolSight {
                set,
                members: members.iter().map(Linked::member).collect(),
            }),
            replacement: self.replacement.as_ref().map(Linked::member),
            control_plane: &self.control_plane,
            pods: self.pods.iter().map(AsRef::as_ref).collect(),
            budgets: self.budgets.iter().map(AsRef::as_ref).collect(),
            attempts: &self.attempts,
            gate: self.gate.clone(),
            workloads_missing: &self.workloads_missing,
            doubt: self.doubt.as_deref(),
        }
    }

    /// The name of the pool, where the machine has one.
    pub fn pool_name(&self) -> Option<&str> {
        self.pool.as_ref().and_then(|(set, _)| set.metadata.name.as_deref())
    }

    /// Whether something that is known is not shown by the provider now: only time tells.
    pub fn is_doubtful(&self) -> bool {
        self.facts.reasons.reasons.iter().any(|reason| {
            reason.missing_since.is_some()
                && reason.state == machinist_api::MaintenanceReasonState::Active
        })
    }
}

/// `begins`: the pass holds the turn to begin, and the plan was made a moment ago.
pub async fn observe(
    context: &Context,
    maintenance: &Maintenance,
    object: Arc<MachineMaintenance>,
    begins: bool,
) -> anyhow::Result<Observation> {
    let (stores, memory) = (&context.stores, &maintenance.memory);
    let key = ObjectKey::of(&*object);
    let namespace = stores.maintenance.namespace.as_str();
    let name = object.spec.machinelink.as_str();
    let machine = stores.machine_named(name);
    let is_of_cluster_api = maintained::parts(name).is_some();
    let status = object.status.clone().unwrap_or_default();
    let phase = status.phase.unwrap_or_default();
    let work = status.work.unwrap_or_default();
    if let Some(machine) = machine.as_deref().filter(|_| begins) {
        ask_for_reports(context, machine).await;
    }
    let mut sighted =
        machine.as_ref().map(|machine| Sighted::of(context, &Pictures::take(context), machine));
    if let Some(sighted) = &mut sighted {
        sighted.look_closer(context, memory, WHEN_NEAR).await;
    }
    let set = set_of(context, machine.as_deref(), &work);
    // What became due only now is begun by a pass that has the turn.
    let entry = memory.entry(&object.spec.machinelink);
    let entry = entry.filter(|entry| begins || !entry.is_due());
    let are_disks_known = sighted.as_ref().is_none_or(|sighted| sighted.are_disks_known);
    let access = sighted.as_ref().and_then(|sighted| sighted.access.clone());
    let (sighted, facts) = gathered(context, &object, sighted, set.as_ref(), &work);
    let instance = sighted.as_ref().and_then(|sighted| sighted.instance.clone());
    let is_in_place = work.action.is_some_and(|action| action != MaintenanceAction::Replace);
    let acts = matches!(
        phase,
        MaintenancePhase::Acting | MaintenancePhase::Verifying | MaintenancePhase::Undoing
    );
    let cloud = match &machine {
        // Its provider keeps the instance: nothing is done to it here, and nothing is asked.
        _ if is_of_cluster_api => {
            CloudSight::Known(instance.map(|one| Box::new(Instance::clone(&one))))
        }
        Some(machine) if begins || (acts && is_in_place) => {
            confirmed(context, machine, instance).await
        }
        Some(_) | None => match instance {
            Some(instance) => CloudSight::Known(Some(Box::new(Instance::clone(&instance)))),
            None => CloudSight::Unknown(None),
        },
    };
    let node = sighted.as_ref().and_then(|sighted| sighted.node.clone());
    let pods_unknown = sighted.as_ref().and_then(|sighted| sighted.pods_unknown.clone());
    let pods = match (&node, phase) {
        // They leave when the Machine is deleted; here they are only noted.
        (Some(_), MaintenancePhase::Acting) if is_of_cluster_api => {
            sighted.as_ref().map(|sighted| sighted.pods.clone()).unwrap_or_default()
        }
        _ if is_of_cluster_api => Vec::new(),
        (Some(node), MaintenancePhase::Draining | MaintenancePhase::Acting) => {
            pods_on(context, node).await?
        }
        (Some(_) | None, _) => Vec::new(),
    };
    memory.evictions.change(&key, |attempts| {
        attempts.retain(|uid| pods.iter().any(|pod| pod.metadata.uid.as_deref() == Some(uid)));
    });
    let pool = match set {
        Some(set) => {
            let members = members(context, maintenance, &set, &work).await?;
            Some((set, members))
        }
        None => None,
    };
    let replacement = match &work.replacement {
        Some(copy) => {
            let key = ObjectKey::new(namespace, copy.name.as_str());
            match stores.machines.get(&key) {
                Some(machine) => Some(linked(context, maintenance, machine, true).await?),
                None => None,
            }
        }
        None => None,
    };
    let control_plane = if facts.is_control_plane && !is_of_cluster_api {
        control_plane_now(context, memory).await
    } else {
        ControlPlane::default()
    };
    let workloads_missing = match (phase, &work.started_at) {
        (MaintenancePhase::Verifying, Some(since)) => {
            match Home::of(context, name, work.pool.as_deref()) {
                Ok(home) => {
                    closer_look::workloads_missing(context, &home, &work.workloads, since.0).await?
                }
                // Whether they are back is not known, and that is waited for as well.
                Err(_) if work.workloads.is_empty() => Vec::new(),
                Err(error) => vec![error.to_string()],
            }
        }
        _ => Vec::new(),
    };
    let begun = entry.as_ref().filter(|_| begins);
    let doubt = if is_of_cluster_api {
        let (known, now) = (stores.cluster_api.get(), context.env.instant());
        known
            .and_then(|known| known.doubt(object.spec.machinelink.as_str(), now))
            .or_else(|| begun.and(pods_unknown))
            .or_else(|| begun.and_then(|_| stale_reports(context, &facts, &access)))
    } else {
        doubt(context, &facts, begun, are_disks_known, &access)
    };
    Ok(Observation {
        gate: gate(&pool, machine.as_deref(), context.env.now()),
        budgets: budgets_of(context, &pods),
        attempts: memory.evictions.attempts(&key),
        policy: facts.policy.clone(),
        object,
        access,
        machine,
        node,
        facts,
        entry,
        cloud,
        pool,
        replacement,
        control_plane,
        pods,
        workloads_missing,
        doubt,
    })
}

/// Demands that what the provider says of its events is young when work begins.
async fn ask_for_reports(context: &Context, machine: &Machine) {
    let access = if maintained::is_of_cluster_api(machine) {
        Pictures::take(context).access_of(machine)
    } else {
        context.clouds.of(machine).await.ok()
    };
    if let Some(access) = access {
        access.view.reports_within(REPORTS_WITHIN, REPORTS_PATIENCE).await;
    }
}

/// Core gathers the one Machine as it gathers the whole fleet.
fn gathered(
    context: &Context,
    object: &Arc<MachineMaintenance>,
    sighted: Option<Sighted>,
    set: Option<&Arc<MachineSet>>,
    work: &MaintenanceWork,
) -> (Option<Sighted>, Facts) {
    let policies = context.stores.maintenance.policy_set();
    let Some(sighted) = sighted else {
        // Nothing is known anew of what is gone, and what was known stays.
        let known = object.status.as_ref().map(|status| status.reasons.clone());
        let reasons = Merged { reasons: known.unwrap_or_default(), news: Vec::new() };
        let subject = Subject { labels: None, pool: work.pool.as_deref(), role: None };
        let policy = policy_of(&policies, &subject);
        let facts = Facts {
            reasons,
            is_control_plane: work.control_plane,
            zone: work.zone.clone(),
            policy,
            ..Facts::default()
        };
        return (None, facts);
    };
    let policy = policy_of(&policies, &Subject::of(&sighted.machine));
    let fleet = Fleet {
        budgets: budgets_of(context, &sighted.pods),
        machines: vec![sighted],
        sets: set.cloned().into_iter().collect(),
        maintenances: vec![Arc::clone(object)],
        policies,
        durations: Durations::default(),
        state: ClusterState::default(),
    };
    let facts = fleet.gathered(context.env.now(), |mut gathered| {
        let Some(machine) = gathered.fleet.machines.pop() else { return Facts::default() };
        Facts {
            reasons: gathered.reasons.remove(machine.name).unwrap_or_default(),
            need: machine.need,
            traits: machine.traits,
            is_control_plane: machine.is_control_plane,
            zone: machine.zone.map(str::to_owned),
            policy,
        }
    });
    (fleet.machines.into_iter().next(), facts)
}

/// The policy that holds; one that cannot be used leaves what holds without any.
pub(super) fn policy_of(policies: &PolicySet, subject: &Subject<'_>) -> Policy {
    match policies.resolve(subject).policy {
        Chosen::Valid(policy) => policy.clone(),
        Chosen::Invalid { .. } => Policy::default(),
    }
}

/// The pool of the Machine; of one that is gone, that of the record.
fn set_of(
    context: &Context,
    machine: Option<&Machine>,
    work: &MaintenanceWork,
) -> Option<Arc<MachineSet>> {
    let get = |name: &str| context.stores.pool_named(name);
    let owners = machine.and_then(|machine| machine.metadata.owner_references.as_ref());
    let owner = owners.into_iter().flatten().find(|owner| owner.controller == Some(true));
    if let Some(owner) = owner {
        return get(&owner.name).filter(|set| set.metadata.uid.as_ref() == Some(&owner.uid));
    }
    // An orphan has none, but what is gone, or is another Machine of that name, had one.
    let is_worked_on = machine.is_some_and(|machine| machine.metadata.uid == work.machine_uid);
    work.pool.as_deref().filter(|_| !is_worked_on).and_then(get)
}

async fn members(
    context: &Context,
    maintenance: &Maintenance,
    set: &MachineSet,
    work: &MaintenanceWork,
) -> anyhow::Result<Vec<Linked>> {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let owned = match (maintained::parts(name), context.stores.cluster_api.get()) {
        (Some(_), Some(known)) => known.members(name),
        (Some(_), None) => Vec::new(),
        (None, _) => {
            let owner = set.metadata.uid.as_deref().unwrap_or_default();
            context.stores.machines.by_index(index::MACHINE_BY_OWNER, owner)
        }
    };
    let mut members = Vec::with_capacity(owned.len());
    for machine in owned {
        // Those that were there before did their work before.
        let created = machine.metadata.creation_timestamp.as_ref();
        let is_new = created.zip(work.started_at.as_ref()).is_some_and(|(at, from)| at.0 >= from.0);
        members.push(linked(context, maintenance, machine, is_new).await?);
    }
    Ok(members)
}

async fn linked(
    context: &Context,
    maintenance: &Maintenance,
    machine: Arc<Machine>,
    is_new: bool,
) -> anyhow::Result<Linked> {
    let node = context.stores.linked_node(&machine);
    let daemons_run = match &node {
        Some(node) if is_new => {
            let name = machine.metadata.name.as_deref().unwrap_or_default();
            let home = Home::of(context, name, None)?;
            closer_look::daemons_run(context, &maintenance.memory, &home, node).await?
        }
        Some(_) | None => true,
    };
    Ok(Linked { machine, node, daemons_run })
}

/// What the cloud says of the instance at this moment. What a complete list shows is there, even where
/// a single read lacks it.
async fn confirmed(
    context: &Context,
    machine: &Machine,
    listed: Option<Arc<Instance>>,
) -> CloudSight {
    let access = match context.clouds.of(machine).await {
        Ok(access) => access,
        Err(failure) => return CloudSight::Unknown(Some(failure)),
    };
    let Some(id) = machinist_core::machine::observed::bound_instance(machine) else {
        return CloudSight::Known(None);
    };
    if access.view.snapshot().listed_at.is_none() {
        return CloudSight::Unknown(access.view.snapshot().failure.clone());
    }
    match access.view.confirm(BTreeSet::from([id])).await {
        Ok(found) => {
            let found = found.into_iter().next();
            let listed = || listed.map(|instance| Instance::clone(&instance));
            CloudSight::Known(found.or_else(listed).map(Box::new))
        }
        Err(failure) => CloudSight::Unknown(Some(failure)),
    }
}

/// The gate's word. The base is the size without what we added.
fn gate(
    pool: &Option<(Arc<MachineSet>, Vec<Linked>)>,
    machine: Option<&Machine>,
    now: Timestamp,
) -> Result<(), Held> {
    let (Some((set, members)), Some(machine)) = (pool, machine) else { return Ok(()) };
    let uid = machine.metadata.uid.as_deref().unwrap_or_default();
    let all = members.iter().map(|member| (&*member.machine, member.node.as_deref()));
    let counted = without_surplus(Pool::of(set, all, uid));
    let own = machine.metadata.annotations.as_ref();
    let approved = own
        .and_then(|all| all.get(annotation::APPROVED_UNTIL))
        .or_else(|| counted.annotations.get(annotation::APPROVED_UNTIL))
        .and_then(|text| text.parse().ok());
    counted.permit(approved, now)
}

fn budgets_of(context: &Context, pods: &[Arc<Pod>]) -> Vec<Arc<PodDisruptionBudget>> {
    let namespaces: BTreeSet<&str> =
        pods.iter().filter_map(|pod| pod.metadata.namespace.as_deref()).collect();
    let of = |namespace| context.stores.budgets.list_in(namespace);
    namespaces.into_iter().flat_map(of).collect()
}

/// Why what is seen may be the past, or is too little to begin on.
fn doubt(
    context: &Context,
    facts: &Facts,
    begun: Option<&PlanEntry>,
    are_disks_known: bool,
    access: &Option<Arc<CloudAccess>>,
) -> Option<String> {
    let (stores, now) = (&context.stores, context.env.instant());
    if !stores.nodes.is_current(now) {
        return Some("the watch of nodes is interrupted".to_owned());
    }
    if !stores.machines.is_current(now) {
        return Some("the watch of machines is interrupted".to_owned());
    }
    let entry = begun?;
    let stops = |action: &MaintenanceAction| *action == MaintenanceAction::StopStart;
    if !are_disks_known && (stops(&entry.action) || entry.and_then.iter().any(stops)) {
        return Some("it is not known whether its instance has disks on its host".to_owned());
    }
    stale_reports(context, facts, access)
}

/// Where only the provider's list speaks for it, that must be young.
fn stale_reports(
    context: &Context,
    facts: &Facts,
    access: &Option<Arc<CloudAccess>>,
) -> Option<String> {
    let now = context.env.instant();
    let is_of_list = facts.need.as_ref().is_some_and(|need| {
        let of_list = |source: &String| source == Source::Api.as_str();
        need.reasons.iter().all(|reason| reason.sources.iter().any(of_list))
    });
    let reported_at = access.as_ref().and_then(|access| access.view.snapshot().reported_at);
    let is_young = reported_at.is_some_and(|at| now < at + REPORTS_WITHIN + REPORTS_PATIENCE);
    (is_of_list && !is_young)
        .then(|| "the provider could not be asked whether its events still hold".to_owned())
}
