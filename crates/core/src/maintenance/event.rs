//! What a provider's scheduled event is, whoever told of it: the provider's API, its queue of
//! notices, or the metadata of the machine itself.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use crate::{
    cloud::{InstanceId, ScheduledEvent},
    termination,
};

/// The codes that are understood. Others are kept visible and nothing is done for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// Degraded hardware: the instance is stopped, or terminated where its root is not on the network.
    InstanceRetirement,
    /// The instance is stopped.
    InstanceStop,
    /// The host reboots, and the instance with it.
    SystemReboot,
    /// Power or network of the host.
    SystemMaintenance,
    /// The guest is rebooted; the host stays.
    InstanceReboot,
}

impl Code {
    pub const ALL: [Self; 5] = [
        Self::InstanceRetirement,
        Self::InstanceStop,
        Self::SystemReboot,
        Self::SystemMaintenance,
        Self::InstanceReboot,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::InstanceRetirement => "instance-retirement",
            Self::InstanceStop => "instance-stop",
            Self::SystemReboot => "system-reboot",
            Self::SystemMaintenance => "system-maintenance",
            Self::InstanceReboot => "instance-reboot",
        }
    }

    pub fn of(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == code)
    }
}

/// Who told of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The provider's list of events: the truth, where it was asked.
    Api,
    /// The machine's own metadata.
    Metadata,
    /// A notice, which says nothing by its absence.
    Queue,
}

impl Source {
    pub const ALL: [Self; 3] = [Self::Api, Self::Metadata, Self::Queue];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "API",
            Self::Metadata => "Metadata",
            Self::Queue => "Queue",
        }
    }
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventState {
    Active,
    Completed,
    Cancelled,
}

/// An event as one source told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub source: Source,
    pub id: String,
    pub instance: InstanceId,
    pub code: String,
    pub description: String,
    pub state: EventState,
    pub not_before: Option<Timestamp>,
    pub not_after: Option<Timestamp>,
    pub not_before_deadline: Option<Timestamp>,
}

/// A notice of the provider's health service, as its message has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthNotice<'a> {
    pub arn: &'a str,
    /// Such as `AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED`.
    pub type_code: &'a str,
    /// `upcoming`, `open` or `closed`.
    pub status: &'a str,
    pub description: &'a str,
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    pub instance: InstanceId,
}

impl Sighting {
    /// An event of the provider's list. That it is listed does not mean that it is to come: finished
    /// ones stay for a week, with a word before their description.
    pub fn listed(event: &ScheduledEvent) -> Self {
        let (state, description) = state_of(&event.description);
        Self {
            source: Source::Api,
            id: event.id.clone(),
            instance: event.instance.clone(),
            code: event.code.clone(),
            description: description.to_owned(),
            state,
            not_before: event.not_before,
            not_after: event.not_after,
            not_before_deadline: event.not_before_deadline,
        }
    }

    /// An event of the machine's metadata, which has a word of its own for the state.
    pub fn in_metadata(event: &ScheduledEvent, state: &str) -> Self {
        let listed = Self::listed(event);
        let state = match state.to_ascii_lowercase().as_str() {
            "completed" => EventState::Completed,
            "canceled" | "cancelled" => EventState::Cancelled,
            _ => listed.state,
        };
        Self { source: Source::Metadata, state, ..listed }
    }

    /// The events that the Node of an instance carries: its machine's own metadata told of them.
    pub fn on_node(node: &Node, instance: &InstanceId) -> Vec<Self> {
        let events = termination::on_node(node).into_iter();
        let sighting = |(id, event): (String, termination::ScheduledEvent)| {
            let state = match event.state {
                termination::EventState::Active => "active",
                termination::EventState::Completed => "completed",
                termination::EventState::Canceled => "canceled",
            };
            let listed = ScheduledEvent {
                id,
                instance: instance.clone(),
                code: event.code,
                description: event.description,
                not_before: event.not_before,
                not_after: event.not_after,
                not_before_deadline: event.not_before_deadline,
            };
            Self::in_metadata(&listed, state)
        };
        events.map(sighting).collect()
    }

    /// A notice from the queue.
    pub fn noticed(notice: &HealthNotice<'_>) -> Self {
        let (state, description) = state_of(notice.description);
        let is_closed = notice.status.eq_ignore_ascii_case("closed");
        Self {
            source: Source::Queue,
            id: notice.arn.to_owned(),
            instance: notice.instance.clone(),
            code: code_of_notice(notice.type_code)
                .map_or_else(|| notice.type_code.to_owned(), |code| code.as_str().to_owned()),
            description: if description.is_empty() {
                notice.type_code.to_owned()
            } else {
                description.to_owned()
            },
            state: if is_closed { EventState::Completed } else { state },
            not_before: notice.start,
            not_after: notice.end,
            not_before_deadline: None,
        }
    }
}

/// Whether a maintenance of the system concerns only its network.
pub fn is_network_only(description: &str) -> bool {
    let lower = description.to_lowercase();
    lower.contains("network") && !lower.contains("power") && !lower.contains("reboot")
}

/// The state that the provider writes before a description, and the description.
fn state_of(description: &str) -> (EventState, &str) {
    let text = description.trim_start();
    for (word, state) in [
        ("[completed]", EventState::Completed),
        ("[canceled]", EventState::Cancelled),
        ("[cancelled]", EventState::Cancelled),
    ] {
        let prefix = text.get(..word.len());
        if prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(word)) {
            return (state, text.get(word.len()..).unwrap_or_default().trim_start());
        }
    }
    (EventState::Active, text)
}

/// The list of the health service's codes is open, so words in them are looked for.
fn code_of_notice(type_code: &str) -> Option<Code> {
    let has = |word: &str| type_code.contains(word);
    if has("RETIREMENT") || has("TERMINATION") {
        Some(Code::InstanceRetirement)
    } else if has("STOP") {
        Some(Code::InstanceStop)
    } else if has("SYSTEM_REBOOT") {
        Some(Code::SystemReboot)
    } else if has("REBOOT") {
        Some(Code::InstanceReboot)
    } else if has("NETWORK_MAINTENANCE") || has("POWER_MAINTENANCE") {
        Some(Code::SystemMaintenance)
    } else {
        None
    }
}
