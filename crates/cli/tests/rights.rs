//! Were the shipped rights enough for the end-to-end tests, and were they all needed?
//!
//! Reads the audit log that the run of tests/e2e before this one has left: cargo runs them in the order
//! of their names. Every operator of that run had exactly the rules of deploy/kustomize/base.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy takes the helpers of an integration test for production code"
)]

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use machinist_testbed::{manifests::documents, permissions::SHIPPED_RULES};
use serde_json::Value;

/// The operators of the end-to-end tests are known by the name of their namespace, which begins so.
const USERS: &str = "e2e-";

/// Somebody without any right, who was refused in tests/e2e/rbac.rs.
const REFUSED: &str = "refused-on-purpose";

/// Rights that a run of the tests need not use, and why they are there. `verb group/resource name`, where
/// an empty name is any; `*` stands for the rest of the line.
const NOT_IN_EVERY_RUN: [(&str, &str); 24] = [
    ("approve certificates.k8s.io/signers *", "asked for by the API server, inside an approval"),
    (
        "update machine.openshift.io/machinesets/finalizers",
        "asked for by OpenShift's API server only",
    ),
    ("get policy/poddisruptionbudgets", "asks for one only when a list left it out"),
    (
        "get certificates.k8s.io/certificatesigningrequests",
        "asks for one only when a list left it out",
    ),
    ("get machine.openshift.io/machinesets", "asks for one only when a list left it out"),
    ("get machine.openshift.io/machinehealthchecks", "asks for one only when a list left it out"),
    ("get /pods", "asks for one only when a list left it out"),
    ("get /nodes", "asks for one only when a list left it out"),
    ("get /configmaps csr-controller-ca", "renewals that no Machine speaks for"),
    ("patch /events", "an event that happens again within an hour"),
    ("get config.openshift.io/*", "asks for one only when a list left it out"),
    ("get admissionregistration.k8s.io/*", "asks for one only when a list left it out"),
    ("get apps/*", "asks for one only when a list left it out"),
    ("list apps/deployments machine-approver", "on OpenShift"),
    ("watch apps/deployments machine-approver", "on OpenShift"),
    ("patch config.openshift.io/clusteroperators machine-api", "an annotation, once"),
    ("patch apps/deployments machine-api-controllers", "a take-over"),
    ("patch apps/daemonsets machine-api-termination-handler", "somebody changed it"),
    (
        "patch machine.openshift.io/machinehealthchecks machine-api-termination-handler",
        "somebody changed it",
    ),
    ("update /secrets machine-api-operator-webhook-cert", "renewal of a certificate"),
    ("get machinist.dev/maintenancepolicies", "asks for one only when a list left it out"),
    ("get upgrade.managed.openshift.io/*", "asks for one only when a list left it out"),
    ("watch upgrade.managed.openshift.io/*", "where the managed-upgrade-operator is"),
    ("get /namespaces", "asks for one only when a list left it out"),
];

/// One verb on one resource, for everything or for one name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grant {
    is_of_namespace: bool,
    verb: String,
    /// `group/resource` or `group/resource/subresource`.
    resource: String,
    name: Option<String>,
}

impl Grant {
    fn words(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        format!("{} {} {name}", self.verb, self.resource).trim_end().to_owned()
    }

    fn covers(&self, request: &Request) -> bool {
        self.verb == request.verb
            && self.resource == request.resource
            && (!self.is_of_namespace || request.namespace == request.user)
            && self.name.as_ref().is_none_or(|name| *name == request.name)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    user: String,
    verb: String,
    resource: String,
    namespace: String,
    name: String,
    is_forbidden: bool,
}

fn shipped() -> BTreeSet<Grant> {
    let mut grants = BTreeSet::new();
    let strings = |rule: &Value, field: &str| -> Vec<String> {
        serde_json::from_value(rule[field].clone()).unwrap_or_default()
    };
    for role in documents(SHIPPED_RULES).unwrap() {
        let is_of_namespace = role["kind"] == "Role";
        for rule in role["rules"].as_array().into_iter().flatten() {
            let names = strings(rule, "resourceNames");
            let names =
                if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
            for group in strings(rule, "apiGroups") {
                for resource in strings(rule, "resources") {
                    for verb in strings(rule, "verbs") {
                        for name in &names {
                            grants.insert(Grant {
                                is_of_namespace,
                                verb: verb.clone(),
                                resource: format!("{group}/{resource}"),
                                name: name.clone(),
                            });
                        }
                    }
                }
            }
        }
    }
    grants
}

/// The newest folder of a run of tests/e2e.
fn last_run() -> PathBuf {
    let runs = fs::read_dir(env!("CARGO_TARGET_TMPDIR")).unwrap().map(|entry| entry.unwrap());
    let runs = runs.filter(|entry| entry.file_name().to_string_lossy().starts_with("e2e-"));
    let newest = runs.max_by_key(|entry| entry.metadata().unwrap().modified().unwrap());
    newest.expect("no run of the end-to-end tests is there: cargo test --test e2e").path()
}

fn audit_logs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(audit_logs(&path));
        } else if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("audit"))
            && path.extension().is_some_and(|extension| extension == "log")
        {
            found.push(path);
        }
    }
    found
}

fn requests(folder: &Path) -> BTreeSet<Request> {
    let mut requests = BTreeSet::new();
    for log in audit_logs(folder) {
        for line in BufReader::new(File::open(log).unwrap()).lines() {
            let line = line.unwrap();
            let is_of = |user: &str| line.contains(&format!(r#""username":"{user}"#));
            if !is_of(USERS) && !is_of(REFUSED) {
                continue;
            }
            // The API server may have been killed in the middle of the last line.
            let Ok(entry) = serde_json::from_str::<Value>(&line) else { continue };
            let text = |pointer| {
                entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let mut resource =
                format!("{}/{}", text("/objectRef/apiGroup"), text("/objectRef/resource"));
            let part = text("/objectRef/subresource");
            if !part.is_empty() {
                resource = format!("{resource}/{part}");
            }
            // An admission's refusal has the same code, but was allowed by RBAC.
            let decision = text("/annotations/authorization.k8s.io~1decision");
            requests.insert(Request {
                user: text("/user/username"),
                verb: text("/verb"),
                resource,
                namespace: text("/objectRef/namespace"),
                name: text("/objectRef/name"),
                is_forbidden: decision == "forbid",
            });
        }
    }
    requests
}

fn is_excused(grant: &Grant) -> bool {
    NOT_IN_EVERY_RUN.iter().any(|(words, _)| match words.strip_suffix('*') {
        Some(beginning) => grant.words().starts_with(beginning.trim_end()),
        None => grant.words() == *words,
    })
}

#[test]
fn the_operators_were_refused_nothing_and_needed_what_they_were_given() {
    let (others, requests): (Vec<_>, Vec<_>) =
        requests(&last_run()).into_iter().partition(|request| request.user == REFUSED);
    assert!(others.iter().any(|request| request.is_forbidden), "refusals are not seen");
    let users: BTreeSet<_> = requests.iter().map(|request| &request.user).collect();
    assert!(users.len() > 5, "only {} operators are in the audit log", users.len());

    let refused: Vec<_> = requests.iter().filter(|request| request.is_forbidden).collect();
    assert!(refused.is_empty(), "refused: {refused:#?}");

    let shipped = shipped();
    let is_used = |grant: &&Grant| requests.iter().any(|request| grant.covers(request));
    let unused: Vec<String> = shipped
        .iter()
        .filter(|grant| !is_used(grant) && !is_excused(grant))
        .map(Grant::words)
        .collect();
    assert!(unused.is_empty(), "granted and never used: {unused:#?}");
}

#[test]
fn every_excuse_is_for_something_that_is_shipped() {
    let shipped = shipped();
    for (words, _) in NOT_IN_EVERY_RUN {
        let excused = shipped.iter().any(|grant| match words.strip_suffix('*') {
            Some(beginning) => grant.words().starts_with(beginning.trim_end()),
            None => grant.words() == words,
        });
        assert!(excused, "{words} is not granted");
    }
}
