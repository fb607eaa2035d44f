//! What a providerSpec for AWS is given, what is wrong with it, and what is worth a warning.
//!
//! The paths in the messages are a contract, also where they are odd (`spec.placement.host`). Whether
//! what is named exists in AWS is for the provider to find out.

mod defaults;
mod market;
mod placement;
mod rules;
mod spec_shape;
mod warnings;

use serde_json::{Map, Value};

pub use defaults::{CREDENTIALS_SECRET, USER_DATA_SECRET, default_instance_type, defaults};
pub use rules::faults;
pub use warnings::warnings;

use super::shape::{self, Findings};

/// The kind that a providerSpec for AWS has.
pub const KIND: &str = "AWSMachineProviderConfig";

/// The groups and versions that it may be of.
pub const GROUPS: [&str; 2] = ["awsproviderconfig.openshift.io", "machine.openshift.io"];
pub const VERSIONS: [&str; 2] = ["v1beta1", "v1"];

/// Whether a value is one of a host's or reservation's ids: a prefix and so many hexadecimal digits.
fn is_id(text: &str, prefix: &str, lengths: &[usize]) -> bool {
    let is_lower_hexadecimal = |character: char| matches!(character, '0'..='9' | 'a'..='f');
    text.strip_prefix(prefix).is_some_and(|digits| {
        lengths.contains(&digits.len()) && digits.chars().all(is_lower_hexadecimal)
    })
}

fn object<'a>(spec: &'a Map<String, Value>, key: &str) -> Option<&'a Map<String, Value>> {
    spec.get(key)?.as_object()
}

fn list<'a>(spec: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    spec.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn shape_findings(spec: &Map<String, Value>) -> Findings {
    shape::check_fields(spec, spec_shape::FIELDS, super::object::PROVIDER_SPEC)
}
