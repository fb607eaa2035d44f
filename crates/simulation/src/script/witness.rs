//! What was seen since the beginning? Everything that a script may ask about and that the stored
//! objects no longer tell.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use jiff::Timestamp;
use machinist_api::cluster_api::names::label;
use serde_json::Value;

use super::values::{Designation, MachineName};
use crate::{
    actors::{Scene, text},
    api_server::{Commit, Object, ObjectRef, Subresource},
    hub::lock,
    invariants::is_operator,
    template::cluster_api::GROUP,
};

/// Sees every committed write. Clones see the same.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    seen: Arc<Mutex<Seen>>,
}

/// All that was seen, in order.
#[derive(Debug, Default)]
pub struct Seen {
    pub machines: Vec<MachineSeen>,
    pub events: Vec<EventSeen>,
    pub conditions: Vec<ConditionSeen>,
    pub evictions: Vec<Timestamp>,
    pub cordons: Vec<Timestamp>,
    /// How many Nodes were cordoned from a time on.
    pub cordoned_at_once: Vec<(Timestamp, usize)>,
    cordoned: BTreeSet<String>,
    /// Writes of operators, Leases apart, with the plural.
    pub writes: Vec<(Timestamp, &'static str)>,
}

/// One Machine, from its creation to its end.
#[derive(Clone, Debug)]
pub struct MachineSeen {
    pub name: String,
    pub uid: String,
    /// The set that made it, or the deployment of that.
    pub pool: Option<String>,
    pub made_at: Timestamp,
    /// When and by whom it was marked for deletion.
    pub deleted: Option<(Timestamp, String)>,
    pub is_gone: bool,
}

#[derive(Clone, Debug)]
pub struct EventSeen {
    pub at: Timestamp,
    pub reason: String,
    /// The uid of whom it is about.
    pub uid: String,
    pub words: String,
}

/// What a condition said from a time on.
#[derive(Clone, Debug)]
pub struct ConditionSeen {
    pub at: Timestamp,
    pub uid: String,
    pub condition: Value,
}

impl Witness {
    /// Begins to look.
    #[must_use]
    pub fn of(scene: &Scene) -> Self {
        let witness = Self::default();
        for group in ["machine.openshift.io", GROUP] {
            for machine in scene.objects(group, "machines") {
                let made_at = scene.hub.clock.now();
                lock(&witness.seen).machines.push(MachineSeen::new(&machine, made_at));
            }
        }
        let seen = Arc::clone(&witness.seen);
        scene.server.observe(move |commit| lock(&seen).note(commit));
        witness
    }

    pub fn look<T>(&self, at: impl FnOnce(&Seen) -> T) -> T {
        at(&lock(&self.seen))
    }

    /// The Machine that a script names, if there ever was one.
    #[must_use]
    pub fn machine(&self, name: &MachineName) -> Option<MachineSeen> {
        self.look(|seen| {
            let mut all = seen.machines.iter();
            let found = match &name.0 {
                Designation::Newest(name) => all.rfind(|one| one.name == *name),
                Designation::OfName(name, number) => {
                    all.filter(|one| one.name == *name).nth(number - 1)
                }
                Designation::OfPool(pool, number) => {
                    all.filter(|one| one.pool.as_deref() == Some(pool)).nth(number - 1)
                }
            };
            found.cloned()
        })
    }
}

impl MachineSeen {
    fn new(object: &Object, made_at: Timestamp) -> Self {
        let owner = object.value().pointer("/metadata/ownerReferences/0");
        let labels = object.value().pointer("/metadata/labels");
        let deployment =
            labels.and_then(|all| all.get(label::DEPLOYMENT_NAME)).and_then(Value::as_str);
        let owner = owner.map(|owner| text(owner, "/name"));
        let pool = deployment.or(owner).map(str::to_owned);
        Self {
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            pool,
            made_at,
            deleted: None,
            is_gone: false,
        }
    }
}

impl Seen {
    fn note(&mut self, commit: &Commit) {
        let by_operator = is_operator(&commit.origin.client);
        let plural = commit.kind.kind.plural;
        if by_operator && plural != "leases" {
            self.writes.push((commit.time, plural));
        }
        match plural {
            "machines" => self.note_machine(commit),
            "machinesets" | "machinedeployments" | "machinehealthchecks" => {
                self.note_conditions(commit);
            }
            "events" => self.note_event(commit),
            "pods" if by_operator && commit.subresource == Subresource::Eviction => {
                // An eviction is more than one write; by one of them the pod begins to go.
                let goes = |object: Option<&ObjectRef>| {
                    object.is_none_or(|object| object.is_being_deleted())
                };
                if commit.before.is_some()
                    && !goes(commit.before.as_ref())
                    && goes(commit.after.as_ref())
                {
                    self.evictions.push(commit.time);
                }
            }
            "nodes" => self.note_node(commit, by_operator),
            _ => {}
        }
    }

    fn note_node(&mut self, commit: &Commit, by_operator: bool) {
        let flag =
            commit.after.as_ref().and_then(|node| node.value().pointer("/spec/unschedulable"));
        let is_cordoned = flag.and_then(Value::as_bool) == Some(true);
        let name = commit.object().name().to_owned();
        let has_changed =
            if is_cordoned { self.cordoned.insert(name) } else { self.cordoned.remove(&name) };
        if has_changed {
            self.cordoned_at_once.push((commit.time, self.cordoned.len()));
        }
        if has_changed && is_cordoned && by_operator {
            self.cordons.push(commit.time);
        }
    }

    fn note_machine(&mut self, commit: &Commit) {
        let object = commit.object();
        if commit.before.is_none() {
            self.machines.push(MachineSeen::new(object, commit.time));
        }
        let known = self.machines.iter_mut().rfind(|one| one.uid == object.uid());
        if let Some(known) = known {
            if (object.is_being_deleted() || commit.after.is_none()) && known.deleted.is_none() {
                known.deleted = Some((commit.time, commit.origin.client.to_string()));
            }
            known.is_gone = commit.after.is_none();
        }
        self.note_conditions(commit);
    }

    fn note_conditions(&mut self, commit: &Commit) {
        let list = |object: Option<&ObjectRef>| {
            let found = object.and_then(|object| object.value().pointer("/status/conditions"));
            found.and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let before = list(commit.before.as_ref());
        for condition in list(commit.after.as_ref()) {
            if !before.contains(&condition) {
                self.conditions.push(ConditionSeen {
                    at: commit.time,
                    uid: commit.object().uid().to_owned(),
                    condition,
                });
            }
        }
    }

    fn note_event(&mut self, commit: &Commit) {
        let Some(object) = commit.after.as_ref() else { return };
        let value = object.value();
        let either = |one: &str, other: &str| {
            let found = text(value, one);
            if found.is_empty() { text(value, other).to_owned() } else { found.to_owned() }
        };
        self.events.push(EventSeen {
            at: commit.time,
            reason: text(value, "/reason").to_owned(),
            uid: either("/regarding/uid", "/involvedObject/uid"),
            words: either("/note", "/message"),
        });
    }
}
