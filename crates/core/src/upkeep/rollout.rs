//! Whether a DaemonSet is on every node that it should be on.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rollout {
    Finished,
    /// Not yet, and why.
    Unfinished(String),
    /// It is not even there, or about to go.
    Missing(String),
}

/// Looks at a DaemonSet as it is stored.
pub(super) fn of_daemon_set(stored: Option<&Value>) -> Rollout {
    let Some(stored) = stored else { return Rollout::Missing("it does not exist".to_owned()) };
    if stored.pointer("/metadata/deletionTimestamp").is_some() {
        return Rollout::Missing("it is being deleted".to_owned());
    }
    let number = |path: &str| stored.pointer(path).and_then(Value::as_i64);
    let status = |field: &str| number(&format!("/status/{field}")).unwrap_or_default();
    let wanted = status("desiredNumberScheduled");
    let (updated, unavailable) = (status("updatedNumberScheduled"), status("numberUnavailable"));
    if number("/metadata/generation") > number("/status/observedGeneration") {
        Rollout::Unfinished("its last change was not seen yet".to_owned())
    } else if updated < wanted {
        Rollout::Unfinished(format!("{updated} of {wanted} pods are of the last change"))
    } else if unavailable > 0 {
        Rollout::Unfinished(format!("{unavailable} of {wanted} pods are unavailable"))
    } else {
        Rollout::Finished
    }
}
