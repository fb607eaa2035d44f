//! How long is nothing said of a new Machine?
//!
//! Until its provider has said something there is nothing to tell but that it has not, and providers usually have their first
//! word within seconds. It saves a write for every machine, and a look of its provider at what was written.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    conditions::mid_write_until,
    observed::{Observed, Reference},
};
use crate::cluster_api::contract::{Contract, reading};

/// By then a person who looks wants to read something.
const SILENCE_MAX: SignedDuration = SignedDuration::from_secs(10);

/// Until when nothing is said of the Machine. Whatever went wrong, whatever a provider tells, and everything that concerns a
/// Machine of which something was said before, is said at once.
pub(super) fn silent_until(observed: &Observed<'_>, now: Timestamp) -> Option<Timestamp> {
    let machine = observed.machine;
    let is_new = machine.status.as_ref().is_none_or(|status| status.conditions.is_empty());
    // One that came back from a backup may have its Node before its provider says anything.
    let has_word = observed.connection.node().is_some()
        || tells(observed.infrastructure, reading::is_provisioned, now)
        || match machine.spec.bootstrap.config_ref {
            None => false,
            Some(_) => tells(observed.bootstrap, reading::is_data_secret_created, now),
        };
    let created = machine.metadata.creation_timestamp.as_ref()?.0;
    let is_young = (SignedDuration::ZERO..SILENCE_MAX).contains(&now.duration_since(created));
    let is_silent = is_new && is_young && !observed.is_deleting() && !has_word;
    is_silent.then(|| created.checked_add(SILENCE_MAX).unwrap_or(Timestamp::MAX))
}

/// Whether there is something to say of a provider's object, besides that it has said nothing yet.
fn tells(known: Reference<'_>, is_made: fn(&Value, Contract) -> bool, now: Timestamp) -> bool {
    let Reference::Found { object, contract } = known else { return true };
    let (reason, message) = reading::terminal_failure(&object.data);
    let says = match reading::ready_condition(&object.data) {
        Err(_) => true,
        Ok(None) => false,
        Ok(Some(told)) => mid_write_until(&told.status, told.since, now).is_none(),
    };
    says || reason.is_some()
        || message.is_some()
        || is_made(&object.data, contract)
        || object.metadata.deletion_timestamp.is_some()
}
