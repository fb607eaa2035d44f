//! What OpenShift's version operator is told: the conditions, versions and related objects of the
//! ClusterOperator `machine-api`, word for word as they always were.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use machinist_api::openshift_config::{
    ClusterOperatorCondition, ClusterOperatorStatus, OperandVersion, RelatedObject,
};

use super::mode::Mode;
use crate::decision::Announcement;

/// The name of our ClusterOperator.
pub const NAME: &str = "machine-api";

pub mod condition_type {
    pub const AVAILABLE: &str = "Available";
    pub const DEGRADED: &str = "Degraded";
    pub const PROGRESSING: &str = "Progressing";
    pub const UPGRADEABLE: &str = "Upgradeable";
}

pub mod reason {
    pub const AS_EXPECTED: &str = "AsExpected";
    pub const INITIALIZING: &str = "Initializing";
    pub const SYNCING_FAILED: &str = "SyncingFailed";
    pub const SYNCING_RESOURCES: &str = "SyncingResources";
}

pub mod event {
    pub const STATUS_DEGRADED: &str = "Status degraded";
    pub const STATUS_UPGRADE: &str = "Status upgrade";
}

const INITIALIZING_MESSAGE: &str = "Operator is initializing";

/// While an upgrade goes on, what fails is not bad news for this long.
const UPGRADE_PATIENCE: SignedDuration = SignedDuration::from_mins(20);

/// How the last pass went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as it should be.
    Done,
    /// Something is on its way.
    Waiting,
    Failed(String),
}

/// What the status is made from.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    pub mode: Mode,
    pub namespace: &'a str,
    pub release: &'a str,
    pub outcome: Outcome,
    /// What else there is to know, said where the contract says nothing.
    pub note: Option<&'a str>,
}

/// A status, what is to be told of it, and when it changes by time alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub status: ClusterOperatorStatus,
    pub announcements: Vec<Announcement>,
    pub recheck: Option<Timestamp>,
}

/// Whether the operator was never available yet.
pub fn is_initializing(stored: Option<&ClusterOperatorStatus>) -> bool {
    let available = stored.and_then(|status| find(&status.conditions, condition_type::AVAILABLE));
    available.is_none_or(|condition| condition.reason == reason::INITIALIZING)
}

/// The status after a pass. `stored` is the one before; conditions of others in it are kept.
pub fn judge(stored: Option<&ClusterOperatorStatus>, facts: &Facts<'_>, now: Timestamp) -> Judged {
    let before = stored.cloned().unwrap_or_default();
    let mut draft = Draft { status: before.clone(), now };
    draft.initialize();
    draft.status.related_objects = related_objects(facts.namespace);
    let wanted =
        vec![OperandVersion { name: "operator".to_owned(), version: facts.release.to_owned() }];
    let versions = format!("operator: {}", facts.release);
    let is_upgrade = draft.status.versions != wanted;
    if is_upgrade {
        let message = format!("Progressing towards {versions}");
        draft.set(condition_type::PROGRESSING, "True", reason::SYNCING_RESOURCES, &message);
    } else {
        let note = facts.note.unwrap_or_default();
        draft.set(condition_type::PROGRESSING, "False", reason::AS_EXPECTED, note);
    }
    draft.set(condition_type::UPGRADEABLE, "True", "", "");
    let mut recheck = None;
    match &facts.outcome {
        Outcome::Done => {
            let message = match facts.mode {
                Mode::NoOp => "Cluster Machine API Operator is in NoOp mode".to_owned(),
                Mode::Managed => {
                    format!("Cluster Machine API Operator is available at {versions}")
                }
            };
            let note = facts.note.unwrap_or_default();
            draft.set(condition_type::AVAILABLE, "True", reason::AS_EXPECTED, &message);
            draft.set(condition_type::PROGRESSING, "False", reason::AS_EXPECTED, note);
            draft.set(condition_type::DEGRADED, "False", reason::AS_EXPECTED, "");
            draft.status.versions = wanted;
        }
        Outcome::Waiting => {}
        Outcome::Failed(error) if is_upgrade => {
            let due = draft.progressing_since().checked_add(UPGRADE_PATIENCE);
            let due = due.unwrap_or(Timestamp::MAX);
            if now < due {
                recheck = Some(due);
            } else {
                draft.degrade(&format!(
                    "Failed when progressing towards {versions} because {error}"
                ));
            }
        }
        Outcome::Failed(error) => {
            draft.degrade(&format!("Failed to resync for {versions} because {error}"));
        }
    }
    let mut announcements = Vec::new();
    let is_told = |type_: &str, message: &str| {
        let known = find(&before.conditions, type_);
        known.is_some_and(|known| known.status == "True" && known.message == message)
    };
    // Told also where one pass is all it takes.
    let upgrade = format!("Progressing towards {versions}");
    if is_upgrade && !is_told(condition_type::PROGRESSING, &upgrade) {
        announcements.push(Announcement::normal(event::STATUS_UPGRADE, upgrade));
    }
    let degraded = find(&draft.status.conditions, condition_type::DEGRADED);
    if let Some(degraded) = degraded.filter(|condition| condition.status == "True")
        && !is_told(condition_type::DEGRADED, &degraded.message)
    {
        announcements.push(Announcement::warning(event::STATUS_DEGRADED, &degraded.message));
    }
    Judged { status: draft.status, announcements, recheck }
}

fn find<'a>(
    conditions: &'a [ClusterOperatorCondition],
    type_: &str,
) -> Option<&'a ClusterOperatorCondition> {
    conditions.iter().find(|one| one.type_ == type_)
}

struct Draft {
    status: ClusterOperatorStatus,
    now: Timestamp,
}

impl Draft {
    /// The conditions of an operator that nobody heard of yet.
    fn initialize(&mut self) {
        let first = [
            (condition_type::PROGRESSING, "True", reason::INITIALIZING, INITIALIZING_MESSAGE),
            (condition_type::DEGRADED, "False", reason::AS_EXPECTED, ""),
            (condition_type::AVAILABLE, "False", reason::INITIALIZING, INITIALIZING_MESSAGE),
        ];
        for (type_, status, reason, message) in first {
            if find(&self.status.conditions, type_).is_none() {
                self.set(type_, status, reason, message);
            }
        }
    }

    fn degrade(&mut self, message: &str) {
        self.set(condition_type::DEGRADED, "True", reason::SYNCING_FAILED, message);
    }

    fn progressing_since(&self) -> Timestamp {
        let progressing = find(&self.status.conditions, condition_type::PROGRESSING);
        progressing.map_or(self.now, |condition| condition.last_transition_time.0)
    }

    /// The time is that of the last change of the status.
    fn set(&mut self, type_: &str, status: &str, reason: &str, message: &str) {
        let conditions = &mut self.status.conditions;
        let known = conditions.iter_mut().find(|one| one.type_ == type_);
        let changed = Time(Timestamp::from_second(self.now.as_second()).unwrap_or(self.now));
        match known {
            Some(condition) => {
                if condition.status != status {
                    condition.last_transition_time = changed;
                }
                status.clone_into(&mut condition.status);
                reason.clone_into(&mut condition.reason);
                message.clone_into(&mut condition.message);
            }
            None => conditions.push(ClusterOperatorCondition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                last_transition_time: changed,
                reason: reason.to_owned(),
                message: message.to_owned(),
            }),
        }
    }
}

fn related_objects(namespace: &str) -> Vec<RelatedObject> {
    let machine_api = "machine.openshift.io";
    let access = "rbac.authorization.k8s.io";
    [
        ("", "namespaces", "", namespace),
        (machine_api, "machines", namespace, ""),
        (machine_api, "machinesets", namespace, ""),
        (machine_api, "machinehealthchecks", namespace, ""),
        (access, "roles", namespace, ""),
        (access, "clusterroles", "", "machinist-operator"),
        (access, "clusterroles", "", "machine-api-operator"),
        (access, "clusterroles", "", "machine-api-controllers"),
        ("metal3.io", "baremetalhosts", namespace, ""),
    ]
    .map(|(group, resource, namespace, name)| RelatedObject {
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
    .into()
}
