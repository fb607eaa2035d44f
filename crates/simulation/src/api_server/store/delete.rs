//! How does an object end? At once, after its finalizers, or, for pods, after its grace period.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Answer, Store, Turn, in_namespace, seconds};
use crate::api_server::value_at;
use crate::api_server::{
    failure::{Cause, Failure},
    kinds::{DeleteAnswer, KindRef},
    object::{Object, ObjectRef, finalizers_of, metadata_of, set_finalizers, text_at},
    request::ApiRequest,
    selector::Selector,
};

/// The garbage collector's finalizers.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// The options of a DELETE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub grace_period_seconds: Option<i64>,
    /// `Background`, `Foreground` or `Orphan`.
    pub propagation: Option<String>,
}

/// What the grace period says about a deletion.
enum Grace {
    /// The kind has none, or it is over.
    None,
    /// The object is marked and waits for so long.
    Given { marked: Value, seconds: i64 },
    /// An earlier deletion is under way and this one asks for nothing sooner.
    UnderWay,
}

impl DeleteOptions {
    pub(super) fn read(body: &Value) -> Result<Self, Failure> {
        let text =
            |pointer: &str| value_at(body, pointer).and_then(Value::as_str).map(str::to_owned);
        let options = Self {
            uid: text("/preconditions/uid"),
            resource_version: text("/preconditions/resourceVersion"),
            grace_period_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            propagation: text("/propagationPolicy"),
        };
        match options.propagation.as_deref() {
            None | Some("Background" | "Foreground" | "Orphan") => Ok(options),
            Some(other) => {
                let cause = Cause {
                    reason: "FieldValueNotSupported",
                    field: "propagationPolicy".to_owned(),
                    message: format!(
                        "Unsupported value: \"{other}\": supported values: \"Foreground\", \
                         \"Background\", \"Orphan\", \"nil\""
                    ),
                };
                Err(Failure::invalid_of("meta.k8s.io", "DeleteOptions", "", &[cause]))
            }
        }
    }

    fn check(&self, kind: KindRef, object: &Object) -> Result<(), Failure> {
        let refuse = |why: &str| Err(Failure::delete_conflict(kind.kind, object.name(), why));
        if let Some(uid) = self.uid.as_deref().filter(|uid| *uid != object.uid()) {
            return refuse(&format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The \
                 object might have been deleted and then recreated",
                object.uid()
            ));
        }
        let stored = text_at(object.value(), "/metadata/resourceVersion");
        if let Some(wanted) = self.resource_version.as_deref().filter(|wanted| *wanted != stored) {
            return refuse(&format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the \
                 ResourceVersion in record ({stored}). The object might have been modified"
            ));
        }
        Ok(())
    }
}

impl Store {
    pub(super) fn delete(
        &mut self,
        turn: &Turn<'_>,
        request: &ApiRequest,
    ) -> Result<Answer, Failure> {
        let options = DeleteOptions::read(&request.body)?;
        let found = self.get(request.kind, &request.namespace, &request.name).cloned();
        let object = found.ok_or_else(|| Failure::not_found(request.kind.kind, &request.name))?;
        self.delete_object(turn, request.kind, &object, &options)
    }

    pub(super) fn delete_collection(
        &mut self,
        turn: &Turn<'_>,
        request: &ApiRequest,
    ) -> Result<Answer, Failure> {
        let options = DeleteOptions::read(&request.body)?;
        let selector = Selector::parse(
            request.kind.kind,
            &request.options.label_selector,
            &request.options.field_selector,
        )?;
        let chosen: Vec<ObjectRef> = self
            .objects(request.kind)
            .filter(|object| {
                in_namespace(object, &request.namespace) && selector.matches(object.value())
            })
            .cloned()
            .collect();
        for object in &chosen {
            self.delete_object(turn, request.kind, object, &options)?;
        }
        let items: Vec<&Value> = chosen.iter().map(|object| object.value()).collect();
        let list = json!({
            "kind": format!("{}List", request.kind.kind.kind),
            "apiVersion": request.kind.kind.api_version(),
            "metadata": { "resourceVersion": self.revision().to_string() },
            "items": items,
        });
        Ok(Answer::Value { code: 200, value: list })
    }

    pub(super) fn delete_object(
        &mut self,
        turn: &Turn<'_>,
        kind: KindRef,
        object: &ObjectRef,
        options: &DeleteOptions,
    ) -> Result<Answer, Failure> {
        options.check(kind, object)?;
        let grace = match kind.kind.plural {
            "pods" => grace_of(object, options, turn.now),
            _ => Grace::None,
        };
        let (mut value, seconds) = match grace {
            Grace::UnderWay => return Ok(deleted(kind, object)),
            Grace::Given { marked, seconds } => (marked, Some(seconds)),
            Grace::None => (object.value().clone(), None),
        };
        let finalizers = finalizers_after(object.value(), options);
        set_finalizers(&mut value, &finalizers);
        if finalizers.is_empty() && seconds.is_none() {
            let last = self.remove(turn, kind, object);
            return Ok(deleted(kind, &last));
        }
        if seconds.is_none() {
            mark_as_deleting(&mut value, turn.now);
        }
        let object = if value == *object.value() {
            ObjectRef::clone(object)
        } else {
            self.put(turn, kind, value)
        };
        if !finalizers.is_empty() || seconds.is_some_and(|seconds| seconds > 0) {
            return Ok(Answer::Object { code: 200, object });
        }
        let last = self.remove(turn, kind, &object);
        Ok(deleted(kind, &last))
    }
}

/// The finalizers that a deletion leaves: those of the object, and the garbage collector's.
fn finalizers_after(value: &Value, options: &DeleteOptions) -> Vec<String> {
    let own = finalizers_of(value);
    let has = |name: &str| own.iter().any(|one| one == name);
    let (orphan, foreground) = match options.propagation.as_deref() {
        Some("Orphan") => (true, false),
        Some("Foreground") => (false, true),
        Some(_) => (false, false),
        None => (has(ORPHAN), has(FOREGROUND) && !has(ORPHAN)),
    };
    let mut finalizers: Vec<String> =
        own.iter().filter(|one| !matches!(one.as_str(), ORPHAN | FOREGROUND)).cloned().collect();
    if orphan {
        finalizers.push(ORPHAN.to_owned());
    }
    if foreground {
        finalizers.push(FOREGROUND.to_owned());
    }
    let same = finalizers.len() == own.len() && finalizers.iter().all(|one| own.contains(one));
    if same { own } else { finalizers }
}

fn mark_as_deleting(value: &mut Value, now: Timestamp) {
    let generation = value_at(value, "/metadata/generation").and_then(Value::as_i64);
    let metadata = metadata_of(value);
    if !metadata.contains_key("deletionTimestamp") {
        metadata.insert("deletionTimestamp".to_owned(), seconds(now));
        if let Some(generation) = generation.filter(|generation| *generation > 0) {
            metadata.insert("generation".to_owned(), json!(generation + 1));
        }
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
}

fn grace_of(pod: &Object, options: &DeleteOptions, now: Timestamp) -> Grace {
    let value = pod.value();
    let wanted = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    let Some(end) = value_at(value, "/metadata/deletionTimestamp").and_then(Value::as_str) else {
        return first_grace(value, wanted, now);
    };
    let given = value_at(value, "/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let given = given.unwrap_or_default();
    match wanted {
        _ if given == 0 => Grace::None,
        None => Grace::UnderWay,
        Some(wanted) if wanted >= given => Grace::UnderWay,
        Some(wanted) => {
            let end: Timestamp = end.parse().unwrap_or(now);
            let sooner = SignedDuration::from_secs(given - wanted);
            let end = end.checked_sub(sooner).unwrap_or(now);
            // Never into the past; a grace period that is over but not zero stays graceful.
            let passed = end < now;
            let seconds_left = if passed && wanted != 0 { 1 } else { wanted };
            let end = if passed { now } else { end };
            let mut marked = value.clone();
            let metadata = metadata_of(&mut marked);
            metadata.insert("deletionTimestamp".to_owned(), seconds(end));
            metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(seconds_left));
            Grace::Given { marked, seconds: wanted }
        }
    }
}

fn first_grace(value: &Value, wanted: Option<i64>, now: Timestamp) -> Grace {
    let own = value_at(value, "/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let phase = text_at(value, "/status/phase");
    let unscheduled = text_at(value, "/spec/nodeName").is_empty();
    let period = if unscheduled || matches!(phase, "Failed" | "Succeeded") {
        0
    } else {
        wanted.or(own).map_or(0, |seconds| if seconds < 0 { 1 } else { seconds })
    };
    let end = now.checked_add(SignedDuration::from_secs(period)).unwrap_or(now);
    let mut marked = value.clone();
    let generation = value_at(value, "/metadata/generation").and_then(Value::as_i64);
    let metadata = metadata_of(&mut marked);
    metadata.insert("deletionTimestamp".to_owned(), seconds(end));
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(period));
    if let Some(generation) = generation.filter(|generation| *generation > 0) {
        metadata.insert("generation".to_owned(), json!(generation + 1));
    }
    Grace::Given { marked, seconds: period }
}

fn deleted(kind: KindRef, object: &ObjectRef) -> Answer {
    match kind.kind.delete_answer {
        DeleteAnswer::Object => Answer::Object { code: 200, object: ObjectRef::clone(object) },
        DeleteAnswer::Status => {
            let mut details = json!({
                "name": object.name(),
                "kind": kind.kind.plural,
                "uid": object.uid(),
            });
            if let (Some(fields), false) = (details.as_object_mut(), kind.kind.group.is_empty()) {
                fields.insert("group".to_owned(), Value::from(kind.kind.group));
            }
            let value = json!({
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": details,
            });
            Answer::Value { code: 200, value }
        }
    }
}
