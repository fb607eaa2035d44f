//! What is true of Machines, pools and instances, as far as the promises need it?

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use machinist_api::names::{annotation, finalizer, tag};
use machinist_testbed::cloud::model::{InstanceFacts, InstanceState};
use serde_json::Value;

use crate::api_server::value_at;
use crate::{api_server::Object, tally::PHASES};

/// A Machine as it is stored.
#[derive(Clone, Debug, Default)]
pub(super) struct MachineTruth {
    pub name: String,
    pub uid: String,
    pub phase: &'static str,
    pub deleting_since: Option<Timestamp>,
    pub finalizers: usize,
    pub owner: Option<String>,
    pub pre_drain_hooks: usize,
    pub pre_terminate_hooks: usize,
    pub is_drain_excluded: bool,
    /// Since when another API owns it.
    pub paused_since: Option<Timestamp>,
    pub node: Option<String>,
    pub node_uid: Option<String>,
    /// Since when it is linked to a Node.
    pub linked_since: Option<Timestamp>,
    pub created: Timestamp,
    pub labels: BTreeMap<String, String>,
    /// Names and addresses that it has ever shown, and its internal names now with the time of the first.
    pub addresses: BTreeSet<String>,
    pub internal_names: BTreeSet<String>,
    pub named_since: Option<Timestamp>,
    /// Whether it is to be replaced for what became of its instance.
    pub is_adrift: bool,
    /// Whether another controller was asked to repair it.
    pub is_in_repair: bool,
    /// The instance that is recorded as its own.
    pub instance: Option<String>,
    /// Pods that a completed drain was allowed to leave behind.
    pub pods_left: Vec<String>,
    pub is_drained: bool,
    /// Whether the drain was skipped, so that pods may be left.
    pub is_drain_skipped: bool,
    /// Since when it does not do its work.
    pub broken_since: Option<Timestamp>,
    /// Since when it is marked as the one that its pool deletes first.
    pub marked_since: Option<Timestamp>,
    /// The maintenance that it was made for, as a copy of another.
    pub replaces_for: Option<String>,
}

impl MachineTruth {
    /// Reads what is stored, keeping what only history tells.
    pub fn read(object: &Object, before: Option<&Self>, now: Timestamp) -> Self {
        let value = object.value();
        let text = |pointer: &str| value_at(value, pointer).and_then(Value::as_str);
        let count =
            |pointer: &str| value_at(value, pointer).and_then(Value::as_array).map_or(0, Vec::len);
        let phase = text("/status/phase").unwrap_or("none");
        let phase = PHASES.iter().find(|known| **known == phase).copied().unwrap_or("none");
        let finalizers = value_at(value, "/metadata/finalizers").and_then(Value::as_array);
        let finalizers = finalizers.into_iter().flatten();
        let owners = value_at(value, "/metadata/ownerReferences").and_then(Value::as_array);
        let owner = owners
            .into_iter()
            .flatten()
            .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
        let authority = text("/status/authoritativeAPI").or_else(|| text("/spec/authoritativeAPI"));
        let is_paused = authority.is_some_and(|authority| authority != "MachineAPI");
        let annotations = value_at(value, "/metadata/annotations");
        let annotation = |key: &str| {
            let found = annotations.and_then(|all| all.get(key)).and_then(Value::as_str);
            found.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let drained = condition(value, "Drained");
        let is_drained =
            drained.is_some_and(|it| it.get("status").and_then(Value::as_str) == Some("True"));
        let message = drained.and_then(|it| it.get("message")).and_then(Value::as_str);
        let node = text("/status/nodeRef/name").map(str::to_owned);
        let mut addresses = before.map(|before| before.addresses.clone()).unwrap_or_default();
        let mut internal_names = BTreeSet::new();
        let shown = value_at(value, "/status/addresses").and_then(Value::as_array);
        for one in shown.into_iter().flatten() {
            let part = |field: &str| one.get(field).and_then(Value::as_str).unwrap_or_default();
            if part("type") == "InternalDNS" {
                internal_names.insert(part("address").to_ascii_lowercase());
            }
            addresses.insert(part("address").to_ascii_lowercase());
        }
        let labels = value_at(value, "/metadata/labels").and_then(Value::as_object);
        let since = |holds: bool, known: Option<Timestamp>| holds.then(|| known.unwrap_or(now));
        Self {
            linked_since: since(node.is_some(), before.and_then(|before| before.linked_since)),
            created: text("/metadata/creationTimestamp")
                .and_then(|time| time.parse().ok())
                .unwrap_or(now),
            labels: labels
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            addresses,
            named_since: since(
                !internal_names.is_empty(),
                before.and_then(|before| before.named_since),
            ),
            internal_names,
            is_adrift: text("/status/providerStatus/drift/class").is_some(),
            is_in_repair: annotations
                .is_some_and(|all| all.get(annotation::EXTERNAL_REMEDIATION).is_some()),
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            phase,
            deleting_since: object
                .is_being_deleted()
                .then(|| before.and_then(|before| before.deleting_since).unwrap_or(now)),
            finalizers: finalizers.filter(|name| name.as_str() == Some(finalizer::MACHINE)).count(),
            owner: owner
                .and_then(|owner| owner.get("uid"))
                .and_then(Value::as_str)
                .map(str::to_owned),
            pre_drain_hooks: count("/spec/lifecycleHooks/preDrain"),
            pre_terminate_hooks: count("/spec/lifecycleHooks/preTerminate"),
            is_drain_excluded: annotations
                .is_some_and(|all| all.get(annotation::EXCLUDE_NODE_DRAINING).is_some()),
            paused_since: is_paused
                .then(|| before.and_then(|before| before.paused_since).unwrap_or(now)),
            node,
            node_uid: text("/status/nodeRef/uid").map(str::to_owned),
            instance: text("/status/providerStatus/instanceId").map(str::to_owned),
            pods_left: before.map(|before| before.pods_left.clone()).unwrap_or_default(),
            is_drained,
            broken_since: before.and_then(|before| before.broken_since),
            marked_since: since(
                annotation(annotation::DELETE_MACHINE).is_some(),
                before.and_then(|before| before.marked_since),
            ),
            replaces_for: annotation(annotation::REPLACES_FOR),
            is_drain_skipped: message.is_some_and(|words| words.contains("skipped")),
        }
    }
}

/// A condition of an object, as JSON.
pub(crate) fn condition<'a>(value: &'a Value, type_: &str) -> Option<&'a Value> {
    let conditions = value_at(value, "/status/conditions").and_then(Value::as_array)?;
    conditions.iter().find(|one| one.get("type").and_then(Value::as_str) == Some(type_))
}

/// A pool as it is stored, and how many it wanted before.
#[derive(Clone, Debug, Default)]
pub(super) struct SetTruth {
    pub name: String,
    pub deleting_since: Option<Timestamp>,
    /// What was wanted from when on, oldest first.
    wanted: VecDeque<(Timestamp, usize)>,
    /// How many machines it has above its size for maintenance.
    surplus: usize,
    /// When somebody else than an operator last made, deleted or edited one of its Machines.
    pub meddled_at: Option<Timestamp>,
}

impl SetTruth {
    pub fn update(&mut self, object: &Object, now: Timestamp) {
        object.name().clone_into(&mut self.name);
        if object.is_being_deleted() {
            self.deleting_since.get_or_insert(now);
        }
        let annotations = value_at(object.value(), "/metadata/annotations");
        let mark = annotations.and_then(|all| all.get(annotation::SURGE)).and_then(Value::as_str);
        let marked = mark.and_then(|mark| mark.split_once("for=")).map(|(_, uids)| uids);
        self.surplus = marked.map_or(0, |uids| uids.split(',').filter(|it| !it.is_empty()).count());
        let wanted =
            value_at(object.value(), "/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        if self.wanted.back().is_none_or(|(_, last)| *last != wanted) {
            self.wanted.push_back((now, wanted));
        }
    }

    /// How many machines it has above its size for maintenance.
    pub const fn surplus(&self) -> usize {
        self.surplus
    }

    /// Every number that was wanted since then, the one before included.
    pub fn wanted_since(&self, since: Option<Timestamp>) -> (usize, usize) {
        let mut least = usize::MAX;
        let mut most = 0;
        let mut next_began: Option<Timestamp> = None;
        for (began, wanted) in self.wanted.iter().rev() {
            let is_over = match (since, next_began) {
                (Some(since), Some(next)) => next < since,
                _ => false,
            };
            if is_over {
                break;
            }
            least = least.min(*wanted);
            most = most.max(*wanted);
            next_began = Some(*began);
        }
        (least, most)
    }
}

/// An instance, alive or gone.
#[derive(Clone, Debug)]
pub(super) struct InstanceTruth {
    pub id: String,
    pub uid: Option<String>,
    pub token: Option<String>,
    pub state: InstanceState,
    pub launched_at: Timestamp,
    /// Since when it does not run.
    pub down_since: Option<Timestamp>,
}

impl InstanceTruth {
    pub fn of(facts: &InstanceFacts) -> Self {
        Self {
            id: facts.id.clone(),
            uid: facts.tags.get(tag::MACHINE_UID).cloned(),
            token: None,
            state: facts.state,
            launched_at: facts.launch_time,
            down_since: None,
        }
    }

    pub fn update(&mut self, facts: &InstanceFacts, now: Timestamp) {
        let owner = facts.tags.get(tag::MACHINE_UID);
        if owner.is_some() && owner != self.uid.as_ref() {
            self.uid = owner.cloned();
        }
        self.state = facts.state;
        match facts.state {
            InstanceState::Running => self.down_since = None,
            _ => {
                self.down_since.get_or_insert(now);
            }
        }
    }

    pub fn is_live(&self) -> bool {
        self.state != InstanceState::Terminated
    }
}
