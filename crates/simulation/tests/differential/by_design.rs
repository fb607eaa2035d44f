//! In what may the two servers differ, and why?

use serde_json::Value;

use crate::step::Part;

/// Fields that are not compared.
struct Field {
    kind: &'static str,
    pointer: (&'static str, &'static str),
    #[expect(dead_code, reason = "for the reader of the table")]
    why: &'static str,
}

const FIELDS: [Field; 4] = [asker("username"), asker("groups"), asker("uid"), asker("extra")];

const fn asker(field: &'static str) -> Field {
    let why = "each server knows its client by another name";
    Field { kind: "CertificateSigningRequest", pointer: ("/spec", field), why }
}

/// Refusals whose words are not compared; code, reason, details and the fields of the causes are.
struct Words {
    code: u16,
    reason: &'static str,
    /// What the message contains.
    mark: &'static str,
    #[expect(dead_code, reason = "for the reader of the table")]
    why: &'static str,
}

const WORDS: [Words; 3] = [
    Words {
        code: 422,
        reason: "Invalid",
        mark: "pod updates may not change fields",
        why: "the real one appends a difference of Go values",
    },
    Words {
        code: 400,
        reason: "BadRequest",
        mark: "cannot be handled as",
        why: "the words of Go's JSON decoder",
    },
    Words {
        code: 400,
        reason: "BadRequest",
        mark: "the object provided is unrecognized",
        why: "the words of Go's JSON decoder, and a piece of the body",
    },
];

pub fn drop_fields(part: Part, object: &mut Value) {
    for field in FIELDS.iter().filter(|field| field.kind == part.kind) {
        if let Some(parent) = object.pointer_mut(field.pointer.0).and_then(Value::as_object_mut) {
            parent.remove(field.pointer.1);
        }
    }
}

/// A message with several causes names them in the order of Go's maps, which differs from run to run.
/// The causes themselves are compared.
pub fn lists_causes_in_any_order(status: &Value) -> bool {
    let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
    message.contains("is invalid: [")
}

pub fn ignores_message(code: u16, status: &Value) -> bool {
    let text = |field: &str| status.get(field).and_then(Value::as_str).unwrap_or_default();
    WORDS.iter().any(|words| {
        words.code == code && words.reason == text("reason") && text("message").contains(words.mark)
    })
}
