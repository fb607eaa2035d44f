//! What did the operator ask of the API server? Read from its audit log, by user.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub user: String,
    pub at: Timestamp,
    pub answered_at: Timestamp,
    pub verb: String,
    /// `machines`, or `machines/status` for a subresource.
    pub resource: String,
    /// Namespace and name, as far as there are any.
    pub object: String,
    pub code: u16,
    /// Whether it was sent by the part that approves certificates.
    pub is_approval: bool,
}

/// By what its patches tell the approval of certificates from everything else.
const APPROVAL_MANAGER: &str = "fieldManager=machinist-operator-approval";

/// Requests by verb and resource, as `patch machines/status`.
pub type Counts = BTreeMap<String, usize>;

/// The requests of one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// Every request.
    pub by_verb_and_resource: Counts,
    /// Reads, watches included.
    pub reads: usize,
    /// Writes that were accepted, without those below.
    pub writes: usize,
    /// Writes that were refused (conflicts and the like), without those below.
    pub refused_writes: usize,
    /// Of the refused ones, by verb, resource and code.
    pub refused: Counts,
    pub event_writes: usize,
    pub lease_writes: usize,
    /// Approvals, each with the note on the Machine that binds it to its request.
    pub certificate_approvals: usize,
}

impl Requests {
    /// Writes that the limits speak of: Events, Leases and approvals apart.
    pub const fn all_writes(&self) -> usize {
        self.writes + self.refused_writes
    }

    /// Counts the requests of the half-open span `from..until`.
    pub fn between(requests: &[Request], from: Timestamp, until: Timestamp) -> Self {
        let mut counted = Self::default();
        for request in requests.iter().filter(|one| from <= one.at && one.at < until) {
            counted.add(request);
        }
        counted
    }

    fn add(&mut self, request: &Request) {
        let name = format!("{} {}", request.verb, request.resource);
        *self.by_verb_and_resource.entry(name.clone()).or_default() += 1;
        if !is_write(&request.verb) {
            self.reads += 1;
            return;
        }
        let kind = request.resource.split('/').next().unwrap_or_default();
        match kind {
            "events" => self.event_writes += 1,
            "leases" => self.lease_writes += 1,
            _ if request.is_approval => self.certificate_approvals += 1,
            _ if request.code < 400 => self.writes += 1,
            _ => {
                self.refused_writes += 1;
                let refusal = format!("{name} {}", request.code);
                *self.refused.entry(refusal).or_default() += 1;
            }
        }
    }
}

impl Request {
    pub fn is_write(&self) -> bool {
        is_write(&self.verb)
    }
}

fn is_write(verb: &str) -> bool {
    matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection")
}

/// Reads the requests of `user`, in the order of their arrival.
pub fn requests_of(user: &str, log: &Path) -> anyhow::Result<Vec<Request>> {
    // Most lines are of others; parsing them all would take longer than the benchmark.
    let mut requests = read(log, |line| line.contains(user))?;
    requests.retain(|request| request.user == user);
    Ok(requests)
}

/// Reads the requests of the lines that may matter, in the order of their arrival.
pub fn read(log: &Path, matters: impl Fn(&str) -> bool) -> anyhow::Result<Vec<Request>> {
    let mut requests = Vec::new();
    for path in files_of(log)? {
        let describe = || format!("cannot read the audit log {}", path.display());
        let file = File::open(&path).with_context(describe)?;
        for line in BufReader::new(file).lines() {
            let line = line.with_context(describe)?;
            if matters(&line)
                && let Some(request) = read_line(&line).with_context(describe)?
            {
                requests.push(request);
            }
        }
    }
    requests.sort_by_key(|request| request.at);
    Ok(requests)
}

/// The log and what was split off from it: the API server starts another file at 100 MB.
fn files_of(log: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = log.parent().context("the audit log has no folder")?;
    let stem = log.file_stem().context("the audit log has no name")?.to_string_lossy();
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(&*stem) && name.ends_with(".log") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditEvent {
    stage: String,
    verb: String,
    user: AuditUser,
    object_ref: Option<AuditObject>,
    #[serde(rename = "requestURI")]
    request_uri: String,
    response_status: Option<AuditStatus>,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct AuditUser {
    username: String,
}

#[derive(Default, Deserialize)]
struct AuditObject {
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct AuditStatus {
    code: Option<u16>,
}

fn read_line(line: &str) -> anyhow::Result<Option<Request>> {
    let event: AuditEvent = serde_json::from_str(line)?;
    // A watch is logged when it begins and when it ends, everything else when it is answered.
    let counted_stage = if event.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
    if event.stage != counted_stage {
        return Ok(None);
    }
    let is_approval = event.request_uri.contains(APPROVAL_MANAGER);
    let object = event.object_ref.unwrap_or_default();
    let resource = match (object.resource, object.subresource) {
        (Some(resource), Some(subresource)) => format!("{resource}/{subresource}"),
        (Some(resource), None) => resource,
        // Discovery and the like have no object.
        (None, _) => event.request_uri,
    };
    let (namespace, name) = (object.namespace.unwrap_or_default(), object.name.unwrap_or_default());
    Ok(Some(Request {
        user: event.user.username,
        at: event.request_received_timestamp,
        answered_at: event.stage_timestamp,
        verb: event.verb,
        resource,
        object: format!("{namespace}/{name}"),
        code: event.response_status.and_then(|status| status.code).unwrap_or(0),
        is_approval,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(user: &str, stage: &str, verb: &str, object: &str, code: u16, second: u8) -> String {
        format!(
            r#"{{"stage":"{stage}","verb":"{verb}","user":{{"username":"{user}"}},"objectRef":{object},
               "requestURI":"/x","responseStatus":{{"code":{code}}},
               "requestReceivedTimestamp":"2026-11-15T12:00:{second:02}.000000Z",
               "stageTimestamp":"2026-11-15T12:00:{second:02}.100000Z"}}"#
        )
        .replace('\n', "")
    }

    #[test]
    fn requests_are_counted_by_user_phase_verb_and_resource() {
        let folder = tempfile::tempdir().unwrap();
        let machines = r#"{"resource":"machines"}"#;
        let status = r#"{"resource":"machines","subresource":"status"}"#;
        let old = [
            line("operator", "ResponseComplete", "create", machines, 201, 1),
            line("someone-else", "ResponseComplete", "create", machines, 201, 1),
            line("operator", "ResponseStarted", "watch", machines, 200, 2),
            line("operator", "ResponseComplete", "watch", machines, 200, 2),
        ];
        let new = [
            line("operator", "ResponseComplete", "patch", status, 200, 3),
            line("operator", "ResponseComplete", "patch", status, 409, 3),
            line("operator", "ResponseComplete", "create", r#"{"resource":"events"}"#, 201, 4),
            line("operator", "ResponseComplete", "update", r#"{"resource":"leases"}"#, 200, 4),
            line("operator", "ResponseComplete", "patch", machines, 200, 5)
                .replace("/x", "/x?&fieldManager=machinist-operator-approval"),
            line("operator", "ResponseComplete", "patch", status, 200, 9),
        ];
        let log = folder.path().join("audit.log");
        std::fs::write(folder.path().join("audit-2026-11-15T12-00-02.log"), old.join("\n"))
            .unwrap();
        std::fs::write(&log, new.join("\n")).unwrap();

        let requests = requests_of("operator", &log).unwrap();
        let at = |second: i64| {
            "2026-11-15T12:00:00Z".parse::<Timestamp>().unwrap()
                + jiff::SignedDuration::from_secs(second)
        };
        let counted = Requests::between(&requests, at(0), at(9));
        assert_eq!(counted.reads, 1);
        assert_eq!((counted.writes, counted.refused_writes), (2, 1));
        assert_eq!((counted.event_writes, counted.lease_writes), (1, 1));
        assert_eq!(counted.certificate_approvals, 1);
        assert_eq!(counted.by_verb_and_resource["patch machines/status"], 2);
        assert_eq!(counted.refused["patch machines/status 409"], 1);
        assert_eq!(Requests::between(&requests, at(9), at(10)).writes, 1);
    }
}
