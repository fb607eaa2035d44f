//! Since when a machine has had the chance to become a Node.

use jiff::Timestamp;
use machinist_api::{Machine, condition, condition::ConditionStatus, names::condition_type};

use crate::machine::observed::provider_status;

/// When the machine's instance came to be, or else when the Machine did. Two records bear witness to
/// the first: the last start of the instance, and since when it is known to exist. Neither can be
/// before the truth, and one may be moved by a restart or an outage of the cloud's API, so the
/// earlier counts. `status.lastUpdated`, which moves with every change, is no start (D12).
pub fn started_at(machine: &Machine) -> Option<Timestamp> {
    let created = machine.metadata.creation_timestamp.as_ref()?.0;
    let conditions = machine.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let exists_since = condition::find(conditions, condition_type::INSTANCE_EXISTS)
        .filter(|condition| condition.status == ConditionStatus::True)
        .map(|condition| condition.last_transition_time.0);
    let launched = provider_status(machine).launch_time;
    let instance = launched.into_iter().chain(exists_since).min();
    Some(instance.map_or(created, |instance| instance.max(created)))
}
