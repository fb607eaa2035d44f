//! What happened to an instance: from its state and the provider's reason, and from what was
//! recorded of its last start and boot.

use k8s_openapi::api::core::v1::Node;
use machinist_api::{names::annotation, provider_status::ProviderStatus};

use super::Class;
use crate::{
    cloud::{Instance, InstanceState, StateReason},
    node,
};

/// Why an instance does not run; `None` while it runs or is coming up.
pub fn why_down(instance: &Instance) -> Option<Class> {
    let code = instance.state_reason.code.as_str();
    match instance.state {
        InstanceState::Pending | InstanceState::Running => None,
        InstanceState::Stopping | InstanceState::Stopped => Some(match code {
            "Client.UserInitiatedShutdown" | "Client.UserInitiatedHibernate" => {
                Class::StoppedByUser
            }
            "Client.InstanceInitiatedShutdown" => Class::StoppedByGuest,
            // The provider's own faults, and those of its client-side services: a volume or a key
            // that could not be had when the instance was to start.
            code if code.starts_with("Server.") || code.starts_with("Client.") => {
                Class::StoppedByProvider
            }
            _ => Class::Stopped,
        }),
        InstanceState::ShuttingDown | InstanceState::Terminated => Some(match code {
            "Client.UserInitiatedShutdown" => Class::TerminatedByUser,
            "Client.InstanceInitiatedShutdown" => Class::TerminatedByGuest,
            "Server.SpotInstanceTermination" | "Server.SpotInstanceShutdown" => {
                Class::SpotInterruption
            }
            code if code.starts_with("Server.") || code.starts_with("Client.") => {
                Class::TerminatedByProvider
            }
            _ => Class::Terminated,
        }),
    }
}

/// What a running instance did since it was last recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    Nothing,
    /// It was started: by us where a start of ours is recorded.
    Started {
        by_us: bool,
    },
    /// It booted without a start. `expected` where the cluster announced it.
    Rebooted {
        expected: bool,
    },
}

/// Compares a running instance and its Node with the record.
pub fn since_recorded(record: &ProviderStatus, instance: &Instance, node: Option<&Node>) -> Since {
    let was_down = record
        .drift
        .as_ref()
        .filter(|drift| Class::from_reason(&drift.class).is_some_and(Class::is_stop));
    if let Some(drift) = was_down {
        return Since::Started { by_us: drift.attempts > 0 };
    }
    let is_another_start = match (record.launch_time, instance.launched_at) {
        (Some(recorded), Some(seen)) => recorded != seen,
        _ => false,
    };
    if is_another_start {
        return Since::Started { by_us: false };
    }
    let Some(node) = node else { return Since::Nothing };
    match (record.boot_id.as_deref(), node::boot_id(node)) {
        (Some(recorded), Some(seen)) if recorded != seen && !record.boot_pending => {
            let is_other_config = record.booted_config.is_some()
                && record.booted_config.as_deref() != current_config(node);
            Since::Rebooted { expected: is_other_config || is_reboot_announced(node) }
        }
        _ => Since::Nothing,
    }
}

/// Whether the Node's boot id tells of a boot that the record does not know: worth asking the cloud
/// by id whether it was a start.
pub fn is_boot_unexplained(record: &ProviderStatus, node: &Node) -> bool {
    let seen = node::boot_id(node);
    record.boot_id.is_some() && seen.is_some() && record.boot_id.as_deref() != seen
}

/// Whether the cluster itself was about to reboot the Node: it is cordoned, or is being given
/// another machine configuration.
fn is_reboot_announced(node: &Node) -> bool {
    let desired = annotation_of(node, annotation::DESIRED_MACHINE_CONFIG);
    node::is_unschedulable(node) || (desired.is_some() && current_config(node) != desired)
}

/// The machine configuration that the Node runs.
pub fn current_config(node: &Node) -> Option<&str> {
    annotation_of(node, annotation::CURRENT_MACHINE_CONFIG)
}

fn annotation_of<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The provider's words in parentheses, for the end of a sentence.
pub fn cause(reason: &StateReason) -> String {
    match (reason.message.as_str(), reason.code.as_str()) {
        ("", "") => String::new(),
        ("", words) | (words, _) => format!(" ({words})"),
    }
}
