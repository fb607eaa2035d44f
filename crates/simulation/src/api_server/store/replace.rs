//! How does an object change? By an update or a patch of the object itself or of its status.

use serde_json::{Value, json};

use super::{
    Answer, Store, Turn, seconds,
    validate::{Source, settle_namespace},
};
use crate::api_server::value_at;
use crate::api_server::{
    built_in,
    failure::{Cause, Failure},
    kinds::{Generation, KindRef},
    object::{Object, ObjectRef, as_object, finalizers_of, metadata_of, text_at},
    request::{ApiRequest, Subresource, Verb},
    signing_request,
};

impl Store {
    pub(super) fn update(
        &mut self,
        turn: &Turn<'_>,
        request: &ApiRequest,
    ) -> Result<Answer, Failure> {
        let kind = request.kind;
        let mut value = self.decode(kind, request.body.clone(), Source::Body)?;
        settle_namespace(kind, &request.namespace, &mut value)?;
        check_name(&value, &request.name)?;
        let wanted_uid = text_at(&value, "/metadata/uid").to_owned();
        let Some(existing) = self.get(kind, &request.namespace, &request.name).cloned() else {
            if !kind.kind.create_on_update || request.subresource != Subresource::None {
                return Err(Failure::not_found(kind.kind, &request.name));
            }
            check_uid(kind, request, &wanted_uid, "")?;
            metadata_of(&mut value).remove("resourceVersion");
            let object = self.create_decoded(turn, kind, value)?;
            return Ok(Answer::Object { code: 201, object });
        };
        check_uid(kind, request, &wanted_uid, existing.uid())?;
        let object = self.replace(turn, kind, &existing, value)?;
        Ok(Answer::Object { code: 200, object })
    }

    pub(super) fn patch(
        &mut self,
        turn: &Turn<'_>,
        request: &ApiRequest,
    ) -> Result<Answer, Failure> {
        let kind = request.kind;
        let existing = self.get(kind, &request.namespace, &request.name).cloned();
        let Some(existing) = existing else {
            return Err(Failure::not_found(kind.kind, &request.name));
        };
        let mut value = match kind.kind.shows {
            Some(_) => built_in::show_event(existing.value()),
            None => existing.value().clone(),
        };
        apply_patch(request, &mut value)?;
        let mut value = self.decode(kind, value, Source::Patch)?;
        settle_namespace(kind, &request.namespace, &mut value)?;
        check_name(&value, &request.name)?;
        let object = self.replace(turn, kind, &existing, value)?;
        Ok(Answer::Object { code: 200, object })
    }

    /// Puts a new state in the place of an existing one, as far as the subresource may.
    pub(super) fn replace(
        &mut self,
        turn: &Turn<'_>,
        kind: KindRef,
        existing: &ObjectRef,
        mut new: Value,
    ) -> Result<ObjectRef, Failure> {
        let name = existing.name();
        check_version(kind, existing, &new)?;
        let old = existing.value();
        match turn.subresource {
            Subresource::Status if kind.kind.is_custom() => {
                let status = as_object(&mut new).remove("status");
                new = old.clone();
                set_or_remove(&mut new, "status", status);
            }
            Subresource::Status | Subresource::Eviction | Subresource::Approval => {
                keep_all_but_status(kind, old, &mut new);
            }
            Subresource::None | Subresource::Scale | Subresource::Binding => {
                if kind.kind.has_status {
                    set_or_remove(&mut new, "status", old.get("status").cloned());
                }
            }
        }
        let now = seconds(turn.now);
        signing_request::settle_update(kind.kind, turn.subresource, &now, old, &mut new);
        settle_metadata(kind, turn.subresource, old, &mut new);

        let mut causes = self.check_object(kind, Some(old), &new);
        if turn.subresource == Subresource::None {
            causes.extend(built_in::check_update(kind.kind, old, &new));
        }
        causes.extend(signing_request::check_update(kind.kind, turn.subresource, old, &new));
        if !causes.is_empty() {
            return Err(Failure::invalid(kind.kind, name, &causes));
        }
        if is_finished(old, &new) {
            self.remove(turn, kind, existing);
            return Ok(Object::new(new));
        }
        if new == *old {
            // Nothing is written, so nothing has a new version.
            return Ok(ObjectRef::clone(existing));
        }
        Ok(self.put(turn, kind, new))
    }
}

/// Applies the patch of a request.
pub(super) fn apply_patch(request: &ApiRequest, value: &mut Value) -> Result<(), Failure> {
    match request.verb {
        Verb::JsonPatch => {
            let patch: json_patch::Patch = serde_json::from_value(request.body.clone())
                .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
            json_patch::patch(value, &patch).map_err(|_| {
                let message = "the server rejected our request due to an error in our request";
                let mut failure = Failure::new(422, "Invalid", message);
                failure.details = Some(json!({}));
                failure
            })
        }
        _ if request.body.is_object() => {
            json_patch::merge(value, &request.body);
            Ok(())
        }
        _ => Err(Failure::bad_request("error decoding patch: json: cannot unmarshal")),
    }
}

fn check_name(value: &Value, name: &str) -> Result<(), Failure> {
    let given = text_at(value, "/metadata/name");
    if given.is_empty() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if given != name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// An update names the uid that it means; a patch does not, and is refused by validation instead.
fn check_uid(
    kind: KindRef,
    request: &ApiRequest,
    wanted: &str,
    found: &str,
) -> Result<(), Failure> {
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let group = if kind.kind.is_custom() { format!("{}/", kind.kind.group) } else { String::new() };
    let namespace = if request.namespace.is_empty() {
        String::new()
    } else {
        format!("{}/", request.namespace)
    };
    // Nodes keep their first name in etcd.
    let plural = if kind.kind.plural == "nodes" { "minions" } else { kind.kind.plural };
    let key = format!("/registry/{group}{plural}/{namespace}{}", request.name);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object \
         meta: {found}"
    );
    Err(Failure::conflict(kind.kind, &request.name, &why))
}

fn check_version(kind: KindRef, existing: &Object, new: &Value) -> Result<(), Failure> {
    let wanted = text_at(new, "/metadata/resourceVersion");
    let wanted: u64 = if wanted.is_empty() {
        0
    } else {
        wanted.parse().map_err(|_| {
            let message = format!("strconv.ParseUint: parsing \"{wanted}\": invalid syntax");
            Failure::new(500, "", message)
        })?
    };
    if wanted == 0 {
        if kind.kind.unconditional_update {
            return Ok(());
        }
        let detail = "must be specified for an update";
        let cause = Cause::invalid("metadata.resourceVersion", &json!(0), detail);
        let failure =
            Failure::invalid_of(kind.kind.group, kind.kind.plural, existing.name(), &[cause]);
        return Err(failure);
    }
    if wanted == existing.revision() {
        Ok(())
    } else {
        Err(Failure::modified(kind.kind, existing.name()))
    }
}

/// Through the status of a built-in kind, labels and annotations may change and the spec may not.
fn keep_all_but_status(kind: KindRef, old: &Value, new: &mut Value) {
    let fields = as_object(new);
    let status = fields.remove("status");
    let metadata = fields.remove("metadata");
    *new = old.clone();
    let owners = value_at(old, "/metadata/ownerReferences").cloned();
    set_or_remove(new, "status", status);
    set_or_remove(new, "metadata", metadata);
    if kind.kind.plural == "pods" {
        if let Some(metadata) = new.get_mut("metadata") {
            set_or_remove(metadata, "ownerReferences", owners);
        }
        let quality = value_at(old, "/status/qosClass").cloned();
        if let (Some(status), Some(quality)) = (new.get_mut("status"), quality) {
            as_object(status).entry("qosClass").or_insert(quality);
        }
    }
}

fn settle_metadata(kind: KindRef, subresource: Subresource, old: &Value, new: &mut Value) {
    let generation = value_at(old, "/metadata/generation").and_then(Value::as_i64);
    let own = matches!(subresource, Subresource::None | Subresource::Scale);
    let grown = own && kind.kind.generation == Generation::Counted && spec_differs(kind, old, new);
    let generation = generation.map(|generation| json!(generation + i64::from(grown)));
    let kept = |field: &str| value_at(old, &format!("/metadata/{field}")).cloned();
    let metadata = metadata_of(new);
    match generation {
        Some(generation) => metadata.insert("generation".to_owned(), generation),
        None => metadata.remove("generation"),
    };
    if metadata.get("uid").and_then(Value::as_str).unwrap_or_default().is_empty()
        && let Some(uid) = kept("uid")
    {
        metadata.insert("uid".to_owned(), uid);
    }
    for field in ["creationTimestamp", "deletionTimestamp", "resourceVersion"] {
        if let Some(value) = kept(field) {
            metadata.insert(field.to_owned(), value);
        }
    }
    if let Some(grace) = kept("deletionGracePeriodSeconds") {
        metadata.entry("deletionGracePeriodSeconds").or_insert(grace);
    }
}

fn spec_differs(kind: KindRef, old: &Value, new: &Value) -> bool {
    if !kind.kind.is_custom() {
        return old.get("spec") != new.get("spec");
    }
    let rest = |value: &Value, other: &Value| {
        let fields = value.as_object().into_iter().flatten();
        fields.filter(|(name, _)| *name != "metadata").any(|(name, it)| other.get(name) != Some(it))
    };
    rest(old, new) || rest(new, old)
}

/// Whether the last finalizer of an object that is to go was removed.
fn is_finished(old: &Value, new: &Value) -> bool {
    let grace = value_at(old, "/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    value_at(old, "/metadata/deletionTimestamp").is_some()
        && finalizers_of(new).is_empty()
        && grace.unwrap_or_default() == 0
}

fn set_or_remove(value: &mut Value, field: &str, content: Option<Value>) {
    let fields = as_object(value);
    match content {
        Some(content) => fields.insert(field.to_owned(), content),
        None => fields.remove(field),
    };
}
