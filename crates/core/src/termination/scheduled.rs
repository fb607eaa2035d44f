//! The provider's scheduled events as a Node carries them: an annotation for whoever plans
//! maintenance, who knows some of them from other sources already.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::names::annotation;
use serde::{Deserialize, Serialize};

/// More than any instance has at once. Beyond it the list is cut, so that a Node never grows
/// without bound.
pub const EVENTS_MAX: usize = 32;

/// One event. Its id, by which the same event from other sources is recognized, is the key under
/// which it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledEvent {
    /// The provider's word, such as `system-reboot`. The list of them is open.
    pub code: String,
    pub state: EventState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_deadline: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventState {
    Active,
    Completed,
    Canceled,
}

/// The events of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledEvents {
    pub by_id: BTreeMap<String, ScheduledEvent>,
    /// Whether an entry could not be read: then one that is missing is not known to be gone.
    pub is_partial: bool,
}

/// The events that a Node carries, by id. An annotation that cannot be read holds none.
pub fn on_node(node: &Node) -> BTreeMap<String, ScheduledEvent> {
    annotation_of(node).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

pub(super) fn annotation_of(node: &Node) -> Option<&str> {
    let annotations = node.metadata.annotations.as_ref()?;
    annotations.get(annotation::SCHEDULED_EVENTS).map(String::as_str)
}

/// What the annotation is to hold: compact and in the order of the ids, so that the same events are
/// the same text; none for no events.
pub(super) fn annotation_for(mut events: BTreeMap<String, ScheduledEvent>) -> Option<String> {
    while events.len() > EVENTS_MAX {
        events.pop_last();
    }
    if events.is_empty() { None } else { serde_json::to_string(&events).ok() }
}
