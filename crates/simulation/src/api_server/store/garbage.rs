//! Which objects go because their owners are gone?
//!
//! One round of the garbage collector, for an actor to call. Owners of kinds that the server does not
//! know count as present.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    CommitRef, Origin, Store, Turn,
    delete::{DeleteOptions, FOREGROUND, ORPHAN},
};
use crate::api_server::{
    kinds::{KindRef, Scope},
    object::{Object, ObjectRef, finalizers_of, metadata_of, set_finalizers, text_at},
    request::{Subresource, Verb},
};

/// What one round did.
#[derive(Debug)]
pub struct Collected {
    pub commits: Vec<CommitRef>,
}

/// What is to be done with an object.
enum Fate {
    Keep,
    Delete,
    /// Some owners are gone: the references to them go.
    Forget(BTreeSet<String>),
}

impl Store {
    /// One round over all objects, in the order of kinds and keys. What it deletes may be an owner
    /// itself, so it takes as many rounds as there are generations.
    pub fn collect_garbage(&mut self, origin: &Origin, now: Timestamp) -> Collected {
        let turn = |verb| Turn { now, origin, verb, subresource: Subresource::None };
        for kind in KindRef::stored() {
            let objects: Vec<ObjectRef> = self.objects(kind).cloned().collect();
            for listed in objects {
                // What this round has done so far may have changed it.
                let current = |store: &Self| {
                    let found = store.get(kind, listed.namespace(), listed.name());
                    found.filter(|found| found.uid() == listed.uid()).cloned()
                };
                if let Some(object) = current(self).filter(|object| object.is_being_deleted()) {
                    self.release_dependents(&turn(Verb::Update), kind, &object);
                }
                let Some(object) = current(self) else { continue };
                match self.fate_of(&object) {
                    Fate::Keep => {}
                    Fate::Delete if object.is_being_deleted() => {}
                    Fate::Delete => {
                        let options = DeleteOptions {
                            uid: Some(object.uid().to_owned()),
                            propagation: Some("Background".to_owned()),
                            ..DeleteOptions::default()
                        };
                        // Refused only where somebody was faster.
                        self.delete_object(&turn(Verb::Delete), kind, &object, &options).ok();
                    }
                    Fate::Forget(owners) => {
                        self.drop_owners(&turn(Verb::MergePatch), kind, &object, &owners);
                    }
                }
            }
        }
        Collected { commits: std::mem::take(&mut self.commits) }
    }

    fn fate_of(&self, object: &Object) -> Fate {
        let mut gone = BTreeSet::new();
        let mut present = 0_usize;
        let mut waiting_owner = false;
        for owner in owners_of(object) {
            let Some(kind) =
                KindRef::of_names(text_at(owner, "/apiVersion"), text_at(owner, "/kind"))
            else {
                present += 1;
                continue;
            };
            let namespace = match kind.kind.scope {
                Scope::Namespaced => object.namespace(),
                Scope::Cluster => "",
            };
            let uid = text_at(owner, "/uid");
            let found = self.get(kind, namespace, text_at(owner, "/name"));
            match found.filter(|found| found.uid() == uid) {
                None => {
                    gone.insert(uid.to_owned());
                }
                Some(owner) if is_waiting(owner) => waiting_owner = true,
                Some(_) => present += 1,
            }
        }
        match (gone.is_empty(), waiting_owner, present) {
            (true, false, _) => Fate::Keep,
            (_, _, 0) => Fate::Delete,
            (false, _, _) => Fate::Forget(gone),
            (true, true, _) => Fate::Keep,
        }
    }

    /// Does the work of the garbage collector's own finalizers on an object that is to go.
    fn release_dependents(&mut self, turn: &Turn<'_>, kind: KindRef, owner: &ObjectRef) {
        let finalizers = finalizers_of(owner.value());
        let orphans = finalizers.iter().any(|one| one == ORPHAN);
        let waits = finalizers.iter().any(|one| one == FOREGROUND);
        if !orphans && !waits {
            return;
        }
        let dependents = self.dependents_of(owner);
        if orphans {
            let uids = BTreeSet::from([owner.uid().to_owned()]);
            for (kind, dependent) in &dependents {
                self.drop_owners(turn, *kind, dependent, &uids);
            }
        } else if dependents.iter().any(|(_, dependent)| blocks(dependent, owner)) {
            return;
        }
        let done = if orphans { ORPHAN } else { FOREGROUND };
        let rest: Vec<String> = finalizers.into_iter().filter(|one| one != done).collect();
        let mut value = owner.value().clone();
        set_finalizers(&mut value, &rest);
        self.replace(turn, kind, owner, value).ok();
    }

    fn dependents_of(&self, owner: &Object) -> Vec<(KindRef, ObjectRef)> {
        let mut dependents = Vec::new();
        for kind in KindRef::stored() {
            for object in self.objects(kind) {
                if owners_of(object).any(|one| text_at(one, "/uid") == owner.uid()) {
                    dependents.push((kind, ObjectRef::clone(object)));
                }
            }
        }
        dependents
    }

    fn drop_owners(
        &mut self,
        turn: &Turn<'_>,
        kind: KindRef,
        object: &ObjectRef,
        uids: &BTreeSet<String>,
    ) {
        let kept: Vec<Value> = owners_of(object)
            .filter(|owner| !uids.contains(text_at(owner, "/uid")))
            .cloned()
            .collect();
        let mut value = object.value().clone();
        let metadata = metadata_of(&mut value);
        if kept.is_empty() {
            metadata.remove("ownerReferences");
        } else {
            metadata.insert("ownerReferences".to_owned(), Value::from(kept));
        }
        self.replace(turn, kind, object, value).ok();
    }
}

fn owners_of(object: &Object) -> impl Iterator<Item = &Value> {
    object
        .value()
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Whether an owner waits for its dependents to go first.
fn is_waiting(owner: &Object) -> bool {
    owner.is_being_deleted() && finalizers_of(owner.value()).iter().any(|one| one == FOREGROUND)
}

fn blocks(dependent: &Object, owner: &Object) -> bool {
    owners_of(dependent).any(|one| {
        let blocking = one.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or_default();
        blocking && text_at(one, "/uid") == owner.uid()
    })
}
