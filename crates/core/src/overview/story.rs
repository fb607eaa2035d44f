//! What is worth saying of one machine? The story is also what `-o json` prints: names are never changed,
//! only added; times are in UTC.

pub mod help;
pub mod maintenance;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{
    Condition, ConditionStatus, Machine, MachineSet,
    names::{annotation, condition_type, label},
};
use serde::Serialize;

use self::maintenance::MaintenanceStory;
use super::{
    picture::{Picture, Sight, name_of},
    seen::{self, InstanceView, NodeView, Nodes, Waiting},
    waiting,
};
use crate::{
    drift::Class,
    health::{Memory, Target, policy::Policy as HealthPolicy, verdict::Verdict, verdict::judge},
    maintenance::{
        control_plane, outdated,
        policies::{Chosen, Subject},
    },
};

/// One machine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    pub name: String,
    pub namespace: String,
    /// Empty while nobody has looked at the machine.
    pub phase: String,
    pub created_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
    pub role: Option<String>,
    pub pool: Option<String>,
    pub zone: Option<String>,
    pub instance: Option<InstanceView>,
    pub node: Option<NodeView>,
    /// The first thing that holds it up, as `machinist status` says it.
    pub waiting: Option<Waiting>,
    /// Conditions that are not well, in the operator's words.
    pub conditions: Vec<ConditionStory>,
    /// What happened behind the cluster's back.
    pub drift: Option<DriftStory>,
    /// Why nothing is done to it by the operator's own choice.
    pub hold: Option<String>,
    /// The pauses that hold for it.
    pub pauses: Vec<String>,
    /// In what it differs from its pool's template.
    pub outdated: Vec<String>,
    /// What its health checks think of it.
    pub health: Vec<String>,
    /// What holds its deletion.
    pub hooks: Vec<String>,
    /// What is not well with it as a member of the control plane; none where it is no member.
    pub control_plane: Option<Vec<String>>,
    pub maintenance: Option<MaintenanceStory>,
    /// What a person can do.
    pub help: Vec<String>,
}

/// A condition of the Machine or its Node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionStory {
    /// `Machine` or `Node`.
    pub of: &'static str,
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub since: Option<Timestamp>,
}

/// What happened behind the cluster's back and is not over.
#[derive(Debug, Serialize)]
pub struct DriftStory {
    pub class: String,
    /// The class in words.
    pub words: Option<&'static str>,
    pub since: Timestamp,
    /// What is being done about it.
    pub response: String,
    pub failure: Option<String>,
}

/// Tells the story of a machine.
pub fn story(sight: &Sight<'_>, picture: &Picture<'_>) -> Story {
    let machine = sight.machine;
    let name = name_of(machine);
    let nodes = Nodes::new(sight.node);
    let status = machine.status.clone().unwrap_or_default();
    let labels = machine.metadata.labels.as_ref();
    let label_of = |key: &str| labels.and_then(|all| all.get(key)).cloned();
    let fleet_machine = picture.gathered.fleet.machines.iter().find(|one| one.name == name);
    let provider = seen::provider_status(machine);
    let set = picture.objects.set_of(machine);
    let mut story = Story {
        name: name.to_owned(),
        namespace: machine.metadata.namespace.clone().unwrap_or_default(),
        phase: status.phase.clone().unwrap_or_default(),
        created_at: machine.metadata.creation_timestamp.as_ref().map(|time| time.0),
        deleted_at: machine.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        role: label_of(label::MACHINE_ROLE),
        pool: set.and_then(|set| set.metadata.name.clone()),
        zone: label_of(label::ZONE),
        instance: seen::instance(machine),
        node: nodes.view_of(machine),
        waiting: waiting::of_machine(machine, &nodes),
        conditions: conditions(&status.conditions, sight.node),
        drift: provider.drift.map(|drift| DriftStory {
            words: Class::from_reason(&drift.class).map(Class::in_words),
            class: drift.class,
            since: drift.since,
            response: drift.response,
            failure: drift.failure,
        }),
        hold: fleet_machine.and_then(|one| one.hold).map(str::to_owned),
        pauses: pauses(machine, set, picture),
        outdated: set.map_or_else(Vec::new, |set| outdated::differences(machine, set)),
        health: health(sight, picture),
        hooks: hooks(machine),
        control_plane: members_problems(sight, picture),
        maintenance: maintenance::story(sight, picture),
        help: Vec::new(),
    };
    story.help = help::of(&story);
    story
}

fn conditions(of_machine: &[Condition], node: Option<&Node>) -> Vec<ConditionStory> {
    // One condition says by being true that nothing is done.
    let is_bad = |condition: &&Condition| {
        (condition.type_ == condition_type::PAUSED) == (condition.status == ConditionStatus::True)
    };
    let mut told: Vec<ConditionStory> = of_machine
        .iter()
        .filter(is_bad)
        .map(|condition| ConditionStory {
            of: "Machine",
            type_: condition.type_.clone(),
            status: condition.status.as_str().to_owned(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: Some(condition.last_transition_time.0),
        })
        .collect();
    let status = node.and_then(|node| node.status.as_ref());
    let of_node = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    // All conditions of a Node but one say by being true that something is wrong.
    told.extend(
        of_node
            .filter(|condition| (condition.type_ == "Ready") != (condition.status == "True"))
            .filter(|condition| condition.type_ == "Ready" || condition.status == "True")
            .map(|condition| ConditionStory {
                of: "Node",
                type_: condition.type_.clone(),
                status: condition.status.clone(),
                reason: condition.reason.clone(),
                message: condition.message.clone(),
                since: condition.last_transition_time.as_ref().map(|time| time.0),
            }),
    );
    told
}

/// Every pause that holds for a machine, with its reason.
fn pauses(machine: &Machine, set: Option<&MachineSet>, picture: &Picture<'_>) -> Vec<String> {
    let with_why = |what: String, why: &str| {
        if why.is_empty() || why == "true" { what } else { format!("{what}: {why}") }
    };
    let mut pauses = Vec::new();
    if let Some(why) = picture.objects.pause() {
        pauses.push(with_why("the whole cluster".to_owned(), why));
    }
    let policy = policy_of(machine, picture);
    let paused = policy
        .as_deref()
        .and_then(|name| picture.policies.get(Some(name)))
        .and_then(|policy| policy.paused.clone());
    if let (Some(name), Some(why)) = (&policy, paused) {
        pauses.push(with_why(format!("policy {name}"), &why));
    }
    let annotated = |metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
        metadata.annotations.as_ref()?.get(annotation::MAINTENANCE_PAUSED).cloned()
    };
    if let Some((set, why)) = set.and_then(|set| Some((set, annotated(&set.metadata)?))) {
        let name = set.metadata.name.as_deref().unwrap_or_default();
        pauses.push(with_why(format!("pool {name}"), &why));
    }
    if let Some(why) = annotated(&machine.metadata) {
        pauses.push(with_why("this machine".to_owned(), &why));
    }
    pauses
}

/// The name of the policy that holds for a machine; none where no policy selects it.
pub fn policy_of(machine: &Machine, picture: &Picture<'_>) -> Option<String> {
    match picture.policies.resolve(&Subject::of(machine)).policy {
        Chosen::Valid(policy) => policy.name.clone(),
        Chosen::Invalid { name, .. } => Some(name.to_owned()),
    }
}

fn health(sight: &Sight<'_>, picture: &Picture<'_>) -> Vec<String> {
    let mut told = Vec::new();
    for check in &picture.objects.health_checks {
        let name = check.metadata.name.as_deref().unwrap_or_default();
        let policy = match HealthPolicy::read(check) {
            Ok(policy) => policy,
            Err(fault) => {
                told.push(format!("{name} cannot be used: {fault}"));
                continue;
            }
        };
        if !policy.selects(sight.machine.metadata.labels.as_ref()) {
            continue;
        }
        let target = Target::of(sight.machine, sight.node);
        let annotations = check.metadata.annotations.as_ref();
        let is_paused = annotations.is_some_and(|all| all.contains_key(annotation::PAUSED));
        let paused = if is_paused { " (the check is paused)" } else { "" };
        told.push(match judge(&target, &policy, &Memory::default(), picture.now) {
            Verdict::Healthy => format!("{name}: healthy{paused}"),
            Verdict::Deleting => format!("{name}: it is on its way out{paused}"),
            Verdict::Starting { until } => {
                format!("{name}: it starts, and has until {until} for that{paused}")
            }
            Verdict::NeverTimesOut => format!("{name}: it has no node, and no time limit{paused}"),
            Verdict::InRepair => format!("{name}: another controller repairs it{paused}"),
            Verdict::Suspect { cause, until } => {
                format!("{name}: {}; unhealthy from {until} on{paused}", cause.words())
            }
            Verdict::Unhealthy(cause) => format!("{name}: unhealthy, {}{paused}", cause.words()),
        });
        let conditions = check.status.as_ref().map(|status| status.conditions.as_slice());
        let allowed = conditions
            .unwrap_or_default()
            .iter()
            .find(|one| one.type_ == condition_type::REMEDIATION_ALLOWED);
        let restricted = allowed.filter(|one| one.status == ConditionStatus::False);
        if let Some(message) = restricted.and_then(|one| one.message.clone()) {
            told.push(format!("{name}: {message}"));
        }
    }
    told
}

fn hooks(machine: &Machine) -> Vec<String> {
    let hooks = machine.spec.lifecycle_hooks.clone().unwrap_or_default();
    let of = |step: &'static str| {
        move |hook: &machinist_api::LifecycleHook| {
            format!("{} of {} holds {step} until its owner lets go", hook.name, hook.owner)
        }
    };
    let mut told: Vec<String> = hooks.pre_drain.iter().map(of("the drain")).collect();
    told.extend(hooks.pre_terminate.iter().map(of("the termination")));
    told
}

/// None for a machine that is not of the control plane.
fn members_problems(sight: &Sight<'_>, picture: &Picture<'_>) -> Option<Vec<String>> {
    let name = name_of(sight.machine);
    let concerns = |machine: Option<&str>| machine.is_none_or(|machine| machine == name);
    control_plane::is_member(sight.machine, sight.node).then(|| {
        let problems = picture.control_plane.problems.iter();
        problems
            .filter(|problem| concerns(problem.machine.as_deref()))
            .map(|problem| problem.message.clone())
            .collect()
    })
}
