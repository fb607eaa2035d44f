//! What does the API server refuse to let us do? As far as answers have shown, until the same succeeds or
//! was not refused for a while.
//!
//! A right that is taken away while the operator runs would otherwise show only in the log: each refused
//! call is an error that is tried again, for ever.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Whoever is refused tries again within minutes.
const REMEMBERED: Duration = Duration::from_secs(15 * 60);
/// More than this are not remembered: they would all be the same story.
const REFUSALS_MAX: usize = 100;

/// What was refused, and when last. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    refused: Arc<Mutex<BTreeMap<String, Instant>>>,
}

impl Refusals {
    /// Takes note of an answer: `code` is that of HTTP.
    pub fn note(&self, method: &str, path: &str, is_watch: bool, code: u16) {
        let mut refused = self.lock();
        if code == 403 {
            let Some(right) = right_of(method, path, is_watch) else { return };
            if refused.len() < REFUSALS_MAX || refused.contains_key(&right) {
                refused.insert(right, Instant::now());
            }
        } else if !refused.is_empty()
            && code < 400
            && let Some(right) = right_of(method, path, is_watch)
        {
            refused.remove(&right);
        }
    }

    /// What is refused now, such as `patch nodes` or `create pods/eviction in app`; sorted.
    pub fn list(&self) -> Vec<String> {
        let now = Instant::now();
        let mut refused = self.lock();
        refused.retain(|_, at| now.duration_since(*at) < REMEMBERED);
        refused.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a request, which is no watch, is for all objects of a kind.
pub fn is_list(method: &str, path: &str) -> bool {
    right_of(method, path, false).is_some_and(|right| right.starts_with("list "))
}

/// The right that a request needs, in the words of RBAC.
fn right_of(method: &str, path: &str, is_watch: bool) -> Option<String> {
    let mut parts = path.trim_matches('/').split('/');
    match parts.next()? {
        "api" => drop(parts.next()?),
        "apis" => drop((parts.next()?, parts.next()?)),
        _ => return None,
    }
    let rest: Vec<&str> = parts.collect();
    let (namespace, rest) = match rest.as_slice() {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
        rest => (None, rest),
    };
    let (resource, is_named) = match rest {
        [resource] => ((*resource).to_owned(), false),
        [resource, _] => ((*resource).to_owned(), true),
        [resource, _, subresource] => (format!("{resource}/{subresource}"), true),
        _ => return None,
    };
    let verb = match (method, is_watch, is_named) {
        ("GET", true, _) => "watch",
        ("GET", false, true) => "get",
        ("GET", false, false) => "list",
        ("POST", _, _) => "create",
        ("PUT", _, _) => "update",
        ("PATCH", _, _) => "patch",
        ("DELETE", _, _) => "delete",
        _ => return None,
    };
    Some(match namespace {
        Some(namespace) => format!("{verb} {resource} in {namespace}"),
        None => format!("{verb} {resource}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_called_as_rbac_calls_it() {
        let machines = "/apis/machine.openshift.io/v1beta1/namespaces/ns/machines";
        let table = [
            ("PATCH", "/api/v1/nodes/a", false, Some("patch nodes")),
            ("GET", "/api/v1/nodes", false, Some("list nodes")),
            ("GET", "/api/v1/nodes", true, Some("watch nodes")),
            ("GET", "/api/v1/namespaces/ns", false, Some("get namespaces")),
            (
                "POST",
                "/api/v1/namespaces/app/pods/a/eviction",
                false,
                Some("create pods/eviction in app"),
            ),
            ("POST", machines, false, Some("create machines in ns")),
            ("DELETE", &format!("{machines}/m"), false, Some("delete machines in ns")),
            ("PATCH", &format!("{machines}/m/status"), false, Some("patch machines/status in ns")),
            ("GET", "/version", false, None),
            ("GET", "/apis", false, None),
            ("", "", false, None),
        ];
        for (method, path, is_watch, expected) in table {
            assert_eq!(right_of(method, path, is_watch).as_deref(), expected, "{method} {path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_known_until_the_same_succeeds_or_is_long_ago() {
        let refusals = Refusals::default();
        refusals.note("PATCH", "/api/v1/nodes/a", false, 403);
        refusals.note("POST", "/api/v1/namespaces/ns/events", false, 403);
        refusals.note("PATCH", "/api/v1/nodes/a", false, 409);
        refusals.note("GET", "/api/v1/nodes/a", false, 200);
        assert_eq!(refusals.list(), ["create events in ns", "patch nodes"]);
        refusals.note("PATCH", "/api/v1/nodes/another", false, 200);
        assert_eq!(refusals.list(), ["create events in ns"]);
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(refusals.list(), [""; 0]);
        for number in 0..1000 {
            refusals.note("POST", &format!("/api/v1/namespaces/{number}/pods"), false, 403);
        }
        assert_eq!(refusals.list().len(), REFUSALS_MAX);
    }
}
