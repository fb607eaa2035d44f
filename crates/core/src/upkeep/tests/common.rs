//! What the tests have in common.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::super::{
    History, Kept, Object, Observed, TerminationHandler, UpkeepDecision, decide,
    desired::{default_kubelet_config, mutating_webhooks, validating_webhooks},
    termination_check, termination_handler,
};
use crate::{
    admission::configuration::{self, Client},
    proxy::ProxySettings,
};

pub fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

pub fn minutes_ago(minutes: i64) -> Timestamp {
    now().checked_sub(SignedDuration::from_mins(minutes)).unwrap()
}

pub const KEPT: [Kept; 4] = [
    Kept::MutatingWebhooks,
    Kept::ValidatingWebhooks,
    Kept::TerminationHandler,
    Kept::TerminationCheck,
];

pub fn handler() -> TerminationHandler {
    TerminationHandler {
        namespace: "ns".to_owned(),
        image: "image-1".to_owned(),
        proxy: ProxySettings::default(),
        kubelet_config: default_kubelet_config(true).to_owned(),
    }
}

pub fn wanted(kept: Kept) -> Value {
    let client = Client::default();
    match kept {
        Kept::MutatingWebhooks => mutating_webhooks(&configuration::mutating(&client)),
        Kept::ValidatingWebhooks => validating_webhooks(&configuration::validating(&client)),
        Kept::TerminationHandler => termination_handler(&handler()),
        Kept::TerminationCheck => termination_check("ns"),
    }
}

/// As the API server has it: with a uid, a version, and what others added.
pub fn stored(kept: Kept) -> Value {
    let mut object = wanted(kept);
    object["metadata"]["uid"] = "uid".into();
    object["metadata"]["resourceVersion"] = "7".into();
    object["metadata"]["annotations"]["theirs"] = "kept".into();
    object
}

pub fn decided(objects: Vec<Object>, history: &History) -> UpkeepDecision {
    decide(&Observed { objects, old_controllers: None, history }, now())
}

pub fn of(kept: Kept, stored: Option<Value>) -> Object {
    Object { kept, stored, wanted: wanted(kept) }
}
