//! How does a new object come to be?

use serde_json::{Value, json};

use super::{
    Answer, Store, Turn, seconds,
    validate::{Source, settle_namespace},
};
use crate::api_server::{
    built_in,
    failure::Failure,
    kinds::{Generation, KindRef, Scope},
    object::{ObjectRef, as_object, metadata_of, text_at},
    request::ApiRequest,
    signing_request,
};

/// As the real server: no vowels, and no digits that look like letters.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// The longest base of a generated name: a label's 63 characters less the suffix.
const GENERATED_BASE_MAX: usize = 58;
/// How often the real server tries another suffix.
const NAME_ATTEMPTS: usize = 8;

impl Store {
    pub(super) fn create(
        &mut self,
        turn: &Turn<'_>,
        request: &ApiRequest,
    ) -> Result<Answer, Failure> {
        let kind = request.kind;
        let mut value = self.decode(kind, request.body.clone(), Source::Body)?;
        settle_namespace(kind, &request.namespace, &mut value)?;
        let object = self.create_decoded(turn, kind, value)?;
        Ok(Answer::Object { code: 201, object })
    }

    /// Creates an object that has been read and has its namespace.
    pub(super) fn create_decoded(
        &mut self,
        turn: &Turn<'_>,
        kind: KindRef,
        mut value: Value,
    ) -> Result<ObjectRef, Failure> {
        self.require_namespace(kind, &value)?;
        let uid = self.new_uid();
        let metadata = metadata_of(&mut value);
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.remove(field);
        }
        metadata.insert("uid".to_owned(), Value::from(uid));
        metadata.insert("creationTimestamp".to_owned(), seconds(turn.now));
        let versioned = metadata.remove("resourceVersion");
        let has_version = versioned
            .as_ref()
            .and_then(Value::as_str)
            .is_some_and(|text| !matches!(text, "" | "0"));
        match kind.kind.generation {
            Generation::Counted => {
                metadata.insert("generation".to_owned(), json!(1));
            }
            Generation::Absent => {}
        }
        if kind.kind.is_custom() && kind.kind.has_status {
            as_object(&mut value).remove("status");
        }
        built_in::prepare_create(kind.kind, &mut value);
        signing_request::prepare_create(kind.kind, &turn.origin.client, &mut value);

        let base = text_at(&value, "/metadata/generateName").to_owned();
        let generated = text_at(&value, "/metadata/name").is_empty() && !base.is_empty();
        for attempt in 1..=NAME_ATTEMPTS {
            if generated {
                let name = self.generate_name(&base);
                metadata_of(&mut value).insert("name".to_owned(), Value::from(name));
            }
            let name = text_at(&value, "/metadata/name").to_owned();
            let causes = self.check_object(kind, None, &value);
            if !causes.is_empty() {
                return Err(Failure::invalid(kind.kind, &name, &causes));
            }
            if has_version {
                let message = "resourceVersion should not be set on objects to be created";
                return Err(Failure::new(500, "", message));
            }
            let namespace = text_at(&value, "/metadata/namespace");
            let Some(taken) = self.get(kind, namespace, &name) else { break };
            if !generated || attempt == NAME_ATTEMPTS {
                let mut failure = Failure::already_exists(kind.kind, &name);
                if taken.is_being_deleted() {
                    failure.message = format!("object is being deleted: {}", failure.message);
                }
                return Err(failure);
            }
        }
        Ok(self.put(turn, kind, value))
    }

    fn require_namespace(&self, kind: KindRef, value: &Value) -> Result<(), Failure> {
        let (Scope::Namespaced, Some(namespaces)) =
            (kind.kind.scope, KindRef::find("", "namespaces"))
        else {
            return Ok(());
        };
        let namespace = text_at(value, "/metadata/namespace");
        if self.get(namespaces, "", namespace).is_none() {
            return Err(Failure::not_found(namespaces.kind, namespace));
        }
        Ok(())
    }

    fn new_uid(&mut self) -> String {
        let (high, low) = (self.random(), self.random());
        // Version 4, variant 1.
        let high = (high & !0xf000) | 0x4000;
        let low = (low & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    fn generate_name(&mut self, base: &str) -> String {
        let mut name: String = base.chars().take(GENERATED_BASE_MAX).collect();
        for _ in 0..SUFFIX_LENGTH {
            let index = self.random() % SUFFIX_ALPHABET.len() as u64;
            let letter = usize::try_from(index).ok().and_then(|index| SUFFIX_ALPHABET.get(index));
            name.push(char::from(letter.copied().unwrap_or(b'x')));
        }
        name
    }

    /// Binds a pod to a node, as the scheduler does.
    pub(super) fn bind(
        &mut self,
        turn: &Turn<'_>,
        request: &ApiRequest,
    ) -> Result<Answer, Failure> {
        let missing = || Failure::not_found(request.kind.kind, &request.name);
        let pod = self.get(request.kind, &request.namespace, &request.name).ok_or_else(missing)?;
        let node = text_at(&request.body, "/target/name").to_owned();
        let bound = text_at(pod.value(), "/spec/nodeName");
        let why = if pod.is_being_deleted() {
            format!("pod {} is being deleted, cannot be assigned to a host", request.name)
        } else if !bound.is_empty() {
            format!("pod {} is already assigned to node \"{bound}\"", request.name)
        } else {
            let mut value = pod.value().clone();
            if let Some(spec) = value.get_mut("spec") {
                as_object(spec).insert("nodeName".to_owned(), Value::from(node));
            }
            let condition = json!({
                "type": "PodScheduled",
                "status": "True",
                "lastTransitionTime": seconds(turn.now),
            });
            super::evict::set_condition(&mut value, condition);
            self.put(turn, request.kind, value);
            let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
            return Ok(Answer::Value { code: 201, value: status });
        };
        let message =
            format!("Operation cannot be fulfilled on pods/binding \"{}\": {why}", request.name);
        Err(Failure::new(409, "Conflict", message).about("", "pods/binding", &request.name))
    }
}
