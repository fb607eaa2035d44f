//! What is to be seen of one machine: the three views of it, what differs, why it waits, and what may be
//! done?

use jiff::Timestamp;
use machinist_api::{
    Condition, Machine, MaintenanceReasonKind, MaintenanceReasonState, condition::ConditionStatus,
    names::condition_type,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    drift_view::{self, DriftEntry},
    instant::Instant,
    picture::{Picture, Sight, name_of},
    plan_view::EntryView,
    pods::{PodsView, pods},
    row::MachineRow,
    seen::Waiting,
    state::State,
    story::{self, Story},
    views::{ViewsView, views},
    wish::{approve, pause, postpone},
};
use crate::cluster_api::maintained::is_of_cluster_api;

/// Why no pods are shown of a machine of Cluster API: a right in this cluster is none in that one.
const PODS_ELSEWHERE: &str = "its pods are in its own cluster, which is to be asked for them";

/// What may be shown of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sees<'a> {
    /// Why the Node may not be seen.
    pub no_node: Option<&'a str>,
    /// Why pods may not be seen.
    pub no_pods: Option<&'a str>,
}

impl Sees<'_> {
    /// What this user may see of this machine. Of the Node of another cluster only what the Machine itself says is
    /// known here, and that whoever sees the Machine may see.
    fn of(self, machine: &Machine) -> Self {
        match is_of_cluster_api(machine) {
            true => Self { no_node: None, no_pods: Some(PODS_ELSEWHERE) },
            false => self,
        }
    }
}

/// All of one machine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDetail {
    pub version: String,
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    pub row: MachineRow,
    pub state: State,
    pub views: ViewsView,
    /// Those that are not well first.
    pub conditions: Vec<ConditionView>,
    /// Why it waits, all of it.
    pub waits: Vec<WaitView>,
    pub drift: Option<DriftEntry>,
    /// Why nothing is done to it by the operator's own choice.
    pub hold: Option<String>,
    pub pauses: Vec<String>,
    /// The fields in which it differs from its pool's template.
    pub outdated: Vec<String>,
    pub health: Vec<String>,
    pub hooks: Vec<String>,
    pub control_plane: Option<Vec<String>>,
    pub maintenance: Option<MaintenanceDetail>,
    pub pods: PodsView,
    /// What a person can do.
    pub help: Vec<String>,
    pub actions: Actions,
}

/// A wait, whoever told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaitView {
    pub reason: String,
    pub message: String,
}

/// A condition in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionView {
    /// Machine, Node or Maintenance.
    pub of: &'static str,
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    pub is_bad: bool,
    pub title: String,
    pub reason: Option<String>,
    pub message: Option<String>,
    #[schemars(with = "Option<Instant>")]
    pub since: Option<Timestamp>,
}

/// The maintenance of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MaintenanceDetail {
    pub phase: Option<String>,
    pub message: Option<String>,
    pub policy: Option<String>,
    pub reasons: Vec<ReasonView>,
    pub entry: Option<EntryView>,
    pub waits: Vec<WaitView>,
    /// Pods and budgets that the drain would meet.
    pub drain: Vec<String>,
    /// Earlier ones, newest first.
    pub history: Vec<String>,
}

/// Why a machine needs maintenance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasonView {
    pub title: String,
    pub description: Option<String>,
    pub kind: MaintenanceReasonKind,
    pub code: String,
    pub state: MaintenanceReasonState,
    #[schemars(with = "Instant")]
    pub since: Timestamp,
    pub sources: Vec<String>,
    #[schemars(with = "Option<Instant>")]
    pub not_before: Option<Timestamp>,
    #[schemars(with = "Option<Instant>")]
    pub not_before_deadline: Option<Timestamp>,
}

/// What can be done now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Actions {
    pub approve: Action,
    pub postpone: Action,
    pub pause: Action,
    pub resume: Action,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Action {
    pub possible: bool,
    /// Why not.
    pub why: Option<String>,
}

impl Action {
    pub fn not(why: impl Into<String>) -> Self {
        Self { possible: false, why: Some(why.into()) }
    }

    fn of(obstacle: Option<String>) -> Self {
        Self { possible: obstacle.is_none(), why: obstacle }
    }
}

/// Shows all of a machine; `None` where there is none of the name.
pub fn machine(
    name: &str,
    row: &MachineRow,
    picture: &Picture<'_>,
    sees: Sees<'_>,
) -> Option<MachineDetail> {
    let sight = picture.sights.get(name)?;
    let sees = sees.of(sight.machine);
    let told = story::story(sight, picture);
    let mut row = row.clone();
    if sees.no_node.is_some() {
        row.node = None;
    }
    Some(MachineDetail {
        version: String::new(),
        as_of: picture.now,
        state: row.state.explained(),
        views: views(sight, sees.no_node),
        conditions: conditions(sight, picture, sees),
        waits: waits(row.waiting.as_ref(), &told),
        drift: drift_of(sight, picture),
        hold: told.hold.clone(),
        pauses: told.pauses.clone(),
        outdated: told.outdated.clone(),
        health: told.health.clone(),
        hooks: told.hooks.clone(),
        control_plane: told.control_plane.clone(),
        maintenance: maintenance(name, &told, picture),
        pods: pods(sight, &picture.objects.budgets, sees.no_pods),
        help: told.help.clone(),
        actions: actions(name, picture),
        row,
    })
}

fn drift_of(sight: &Sight<'_>, picture: &Picture<'_>) -> Option<DriftEntry> {
    let record = picture.records.get(name_of(sight.machine)).copied();
    drift_view::of_machine(sight.machine, record)
}

fn actions(name: &str, picture: &Picture<'_>) -> Actions {
    let how = approve::How { any_reason: false, until: picture.now };
    let approval = match approve::machine(name, how, picture) {
        Ok(change) if change.write.is_some() => None,
        Ok(change) => Some(change.sentence),
        Err(refusal) => Some(refusal.what),
    };
    let later = picture.now.checked_add(jiff::SignedDuration::from_hours(1)).ok();
    let postponement = postpone::machine(name, later, picture).err().map(|refusal| refusal.what);
    let pause = pause::Place::Machine(name.to_owned()).pause(picture.objects);
    Actions {
        approve: Action::of(approval),
        postpone: Action::of(postponement),
        pause: Action::of(pause.as_ref().map(|why| format!("it is paused already: {why}"))),
        resume: Action::of(pause.is_none().then(|| "it is not paused".to_owned())),
    }
}

fn waits(first: Option<&Waiting>, told: &Story) -> Vec<WaitView> {
    let mut waits: Vec<WaitView> = first
        .map(|waiting| WaitView {
            reason: waiting.reason.clone(),
            message: waiting.message.clone(),
        })
        .into_iter()
        .collect();
    let of_maintenance = told.maintenance.iter().flat_map(|maintenance| &maintenance.waits);
    for wait in of_maintenance {
        let view = WaitView { reason: wait.reason.clone(), message: wait.message.clone() };
        if !waits.contains(&view) {
            waits.push(view);
        }
    }
    waits
}

fn maintenance(name: &str, told: &Story, picture: &Picture<'_>) -> Option<MaintenanceDetail> {
    let story = told.maintenance.as_ref()?;
    let merged = picture.gathered.reasons.get(name);
    let reasons = merged.map(|merged| merged.reasons.as_slice()).unwrap_or_default();
    let words = |wait: &story::maintenance::WaitStory| WaitView {
        reason: wait.reason.clone(),
        message: wait.message.clone(),
    };
    Some(MaintenanceDetail {
        phase: story.phase.clone(),
        message: story.message.clone(),
        policy: story.policy.clone(),
        reasons: story
            .reasons
            .iter()
            .zip(reasons)
            .map(|(story, reason)| ReasonView {
                title: story.title.clone(),
                description: story.description.clone(),
                kind: reason.kind,
                code: reason.code.clone(),
                state: story.state,
                since: story.since,
                sources: story.sources.clone(),
                not_before: story.not_before,
                not_before_deadline: story.not_before_deadline,
            })
            .collect(),
        entry: picture.plan.entry(name).map(|entry| EntryView::of(entry, picture)),
        waits: story.waits.iter().map(words).collect(),
        drain: story.drain.clone(),
        history: story.history.clone(),
    })
}

fn conditions(sight: &Sight<'_>, picture: &Picture<'_>, sees: Sees<'_>) -> Vec<ConditionView> {
    let of_machine = sight.machine.status.iter().flat_map(|status| &status.conditions);
    let mut told: Vec<ConditionView> =
        of_machine.map(|condition| condition_view("Machine", condition)).collect();
    let record = picture.records.get(name_of(sight.machine)).copied();
    let status = record.and_then(|record| record.status.as_ref());
    let of_record = status.into_iter().flat_map(|status| &status.conditions);
    told.extend(of_record.map(|condition| condition_view("Maintenance", condition)));
    let node = sight.node.filter(|_| sees.no_node.is_none());
    let of_node = node
        .and_then(|node| node.status.as_ref())
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten();
    told.extend(of_node.map(|condition| {
        // All conditions of a Node but one say by being true that something is wrong.
        let is_bad = if condition.type_ == "Ready" {
            condition.status != "True"
        } else {
            condition.status == "True"
        };
        ConditionView {
            of: "Node",
            type_: condition.type_.clone(),
            status: condition.status.clone(),
            is_bad,
            title: title(&condition.type_, is_bad),
            reason: condition.reason.clone().filter(|text| !text.is_empty()),
            message: condition.message.clone().filter(|text| !text.is_empty()),
            since: condition.last_transition_time.as_ref().map(|time| time.0),
        }
    }));
    told.sort_by_key(|condition| !condition.is_bad);
    told
}

fn condition_view(of: &'static str, condition: &Condition) -> ConditionView {
    // These say by being true that something is not done.
    let says_it_by_being_true =
        [condition_type::PAUSED, condition_type::OVERRULED].contains(&condition.type_.as_str());
    let is_bad = says_it_by_being_true == (condition.status == ConditionStatus::True);
    ConditionView {
        of,
        type_: condition.type_.clone(),
        status: condition.status.as_str().to_owned(),
        is_bad,
        title: title(&condition.type_, is_bad),
        reason: condition.reason.clone().filter(|text| !text.is_empty()),
        message: condition.message.clone().filter(|text| !text.is_empty()),
        since: Some(condition.last_transition_time.0),
    }
}

/// What a condition says, in words.
fn title(type_: &str, is_bad: bool) -> String {
    let (well, bad) = match type_ {
        condition_type::INSTANCE_EXISTS => ("The instance exists", "The instance is not known"),
        condition_type::INSTANCE_RUNNING => ("The instance runs", "The instance does not run"),
        condition_type::INSTANCE_HEALTHY => {
            ("The provider's checks pass", "The provider's checks do not pass")
        }
        condition_type::DRAINABLE => ("Its node may be drained", "Its drain is held"),
        condition_type::DRAINED => ("Its node is drained", "Its node is not drained"),
        condition_type::TERMINABLE => ("Its instance may be terminated", "Its termination is held"),
        condition_type::LOAD_BALANCERS_ATTACHED => {
            ("It is behind its load balancers", "It is not behind all load balancers")
        }
        condition_type::PAUSED => ("Nobody else owns it", "Another API owns it"),
        condition_type::SCHEDULED => ("Its maintenance has a time", "Its maintenance has no time"),
        condition_type::ON_TIME => ("It will be done in time", "It will not be done in time"),
        condition_type::VERIFIED => (
            "It was well after its maintenance",
            "It is not known to be well after its maintenance",
        ),
        "Ready" => ("Its node is ready", "Its node is not ready"),
        "MemoryPressure" => ("Its node has memory left", "Its node is short of memory"),
        "DiskPressure" => ("Its node has room on its disks", "Its node is short of disk space"),
        "PIDPressure" => ("Its node has process ids left", "Its node is short of process ids"),
        "NetworkUnavailable" => ("Its node has a network", "Its node has no network"),
        condition_type::NODE_TERMINATING => {
            ("Nobody terminates it", "The provider is about to terminate it")
        }
        other => {
            return if is_bad { format!("{other}: not well") } else { format!("{other}: well") };
        }
    };
    (if is_bad { bad } else { well }).to_owned()
}
