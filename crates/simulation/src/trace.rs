//! What happened, in words? A timeline of virtual time, machine by machine: what was written, done,
//! decided and waited on.
//!
//! Only so many lines are kept, the newest; all of them go into a fingerprint, which tells whether two
//! runs were the same.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde_json::Value;

use crate::api_server::value_at;
use crate::{
    api_server::{Commit, Subresource},
    certificates::BOOTSTRAPPER,
    chance::fingerprint,
    clock::Clock,
};

#[derive(Clone, Debug)]
struct Line {
    time: Timestamp,
    subject: String,
    text: String,
}

/// The timeline of one run.
#[derive(Debug)]
pub struct Trace {
    clock: Clock,
    lines: VecDeque<Line>,
    lines_max: usize,
    dropped: u64,
    fingerprint: u64,
}

impl Trace {
    #[must_use]
    pub fn new(clock: Clock, lines_max: usize) -> Self {
        Self { clock, lines: VecDeque::new(), lines_max, dropped: 0, fingerprint: 0 }
    }

    pub fn note(&mut self, time: Timestamp, subject: &str, text: &str) {
        let since = self.clock.since_start(time).as_millis();
        let hashed = fingerprint(format!("{since} {subject} {text}").as_bytes());
        self.fingerprint = self.fingerprint.rotate_left(5) ^ hashed;
        self.lines.push_back(Line { time, subject: subject.to_owned(), text: text.to_owned() });
        if self.lines.len() > self.lines_max {
            self.lines.pop_front();
            self.dropped += 1;
        }
    }

    /// The same for two runs only if every line was the same.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Everything that is kept, or what concerns one subject and nobody in particular.
    #[must_use]
    pub fn render(&self, only: Option<&str>) -> String {
        let mut text = String::new();
        if self.dropped > 0 {
            text.push_str(&format!("({} earlier lines are not kept)\n", self.dropped));
        }
        for line in &self.lines {
            if only.is_some_and(|only| !line.subject.is_empty() && line.subject != only) {
                continue;
            }
            let subject = if line.subject.is_empty() { "-" } else { &line.subject };
            text.push_str(&format!("{}  {subject:<22} {}\n", self.stamp(line.time), line.text));
        }
        text
    }

    fn stamp(&self, time: Timestamp) -> String {
        let millis = self.clock.since_start(time).as_millis();
        let (seconds, millis) = (millis / 1000, millis % 1000);
        format!("{:02}:{:02}:{:02}.{millis:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

/// What a commit changed, in words, and whom it is about; none where nobody would care.
#[must_use]
pub fn describe(commit: &Commit) -> Option<(String, String)> {
    let object = commit.object();
    let who = match &*commit.origin.client {
        BOOTSTRAPPER => "bootstrapper",
        who => who,
    };
    let name = object.name();
    let plural = commit.kind.kind.plural;
    let subject = match plural {
        "machines" | "simmachines" | "simconfigs" => name.to_owned(),
        "machinemaintenances" => text_at(object.value(), "/spec/machinelink").unwrap_or_default(),
        "events" => text_at(object.value(), "/regarding/name")
            .or_else(|| text_at(object.value(), "/involvedObject/name"))
            .unwrap_or_default(),
        _ => String::new(),
    };
    let what = match plural {
        "leases" => holder_change(commit)?,
        "events" => {
            let value = object.value();
            let reason = text_at(value, "/reason").unwrap_or_default();
            let note = text_at(value, "/note").or_else(|| text_at(value, "/message"));
            format!("event {reason}: {}", note.unwrap_or_default())
        }
        _ => {
            let verb = match (&commit.before, &commit.after, commit.subresource) {
                (None, _, _) => "creates",
                (_, None, _) => "removes",
                (_, _, Subresource::Status) => "status of",
                (_, _, Subresource::Eviction) => "evicts",
                (_, _, Subresource::Approval) => "approves",
                _ => "changes",
            };
            let changes = changes(commit, plural);
            if changes.is_empty() && verb == "status of" && plural == "nodes" {
                return None;
            }
            format!("{verb} {plural}/{name} {}", changes.join(", "))
        }
    };
    Some((subject, format!("{who}: {}", what.trim_end())))
}

fn holder_change(commit: &Commit) -> Option<String> {
    let holder = |object: Option<&Value>| {
        object.and_then(|value| text_at(value, "/spec/holderIdentity")).unwrap_or_default()
    };
    let before = holder(commit.before.as_ref().map(|object| object.value()));
    let after = holder(commit.after.as_ref().map(|object| object.value()));
    (before != after)
        .then(|| format!("lease {} goes from {before:?} to {after:?}", commit.object().name()))
}

/// The fields that tell a story, by kind.
fn changes(commit: &Commit, plural: &str) -> Vec<String> {
    let fields: &[(&str, &str)] = match plural {
        "machines" => &[
            ("phase", "/status/phase"),
            ("providerID", "/spec/providerID"),
            ("instance", "/status/providerStatus/instanceId"),
            ("state", "/status/providerStatus/instanceState"),
            ("token", "/status/providerStatus/launch/clientToken"),
            ("refused", "/status/providerStatus/launch/refused"),
            ("drift", "/status/providerStatus/drift/response"),
            ("node", "/status/nodeRef/name"),
            ("error", "/status/errorMessage"),
            ("deleted", "/metadata/deletionTimestamp"),
            ("finalizers", "/metadata/finalizers"),
            ("owner", "/metadata/ownerReferences/0/name"),
        ],
        "machinesets" => &[
            ("replicas", "/spec/replicas"),
            ("surge", "/metadata/annotations/machinist.dev~1surge"),
            ("status.replicas", "/status/replicas"),
            ("ready", "/status/readyReplicas"),
            ("available", "/status/availableReplicas"),
            ("deleted", "/metadata/deletionTimestamp"),
            ("error", "/status/errorMessage"),
        ],
        "machinedeployments" => &[
            ("replicas", "/spec/replicas"),
            ("status.replicas", "/status/replicas"),
            ("available", "/status/availableReplicas"),
            ("upToDate", "/status/upToDateReplicas"),
            ("deleted", "/metadata/deletionTimestamp"),
        ],
        "simmachines" | "simconfigs" => &[
            ("owner", "/metadata/ownerReferences/0/kind"),
            ("providerID", "/spec/providerID"),
            ("secret", "/status/dataSecretName"),
            ("deleted", "/metadata/deletionTimestamp"),
            ("finalizers", "/metadata/finalizers"),
        ],
        "nodes" => &[
            ("providerID", "/spec/providerID"),
            ("unschedulable", "/spec/unschedulable"),
            ("cordonedFor", "/metadata/annotations/machinist.dev~1cordoned-for"),
            ("boot", "/status/nodeInfo/bootID"),
        ],
        "pods" => &[
            ("node", "/spec/nodeName"),
            ("phase", "/status/phase"),
            ("deleted", "/metadata/deletionTimestamp"),
        ],
        "machinemaintenances" => &[
            ("phase", "/status/phase"),
            ("action", "/status/work/action"),
            ("effect", "/status/work/effect/kind"),
            ("attempt", "/status/work/effect/attempt"),
            ("start", "/status/plan/start"),
            ("waitsOn", "/status/plan/waitsOn/0/message"),
            ("says", "/status/message"),
            ("deleted", "/metadata/deletionTimestamp"),
            ("approved", "/metadata/annotations/machinist.dev~1maintenance-approved"),
        ],
        "maintenancepolicies" => &[("spec", "/spec")],
        "poddisruptionbudgets" => &[("allowed", "/status/disruptionsAllowed")],
        "machinehealthchecks" => &[
            ("max", "/spec/maxUnhealthy"),
            ("expected", "/status/expectedMachines"),
            ("healthy", "/status/currentHealthy"),
            ("allowed", "/status/remediationsAllowed"),
        ],
        // Never what it asks for or got: that is another in every process.
        "certificatesigningrequests" => &[("signer", "/spec/signerName")],
        _ => &[],
    };
    let before = commit.before.as_ref().map(|object| object.value());
    let after = commit.after.as_ref().map(|object| object.value());
    let mut found = Vec::new();
    for (name, pointer) in fields {
        // Only names with a slash in them need the slower way.
        let at = |value| match pointer.contains('~') {
            true => Value::pointer(value, pointer),
            false => value_at(value, pointer),
        };
        let (old, new) = (before.and_then(at), after.and_then(at));
        if old != new && after.is_some() {
            found.push(format!("{name} {} -> {}", shown(old), shown(new)));
        }
    }
    let tells_conditions = matches!(
        plural,
        "machines"
            | "machinesets"
            | "machinedeployments"
            | "clusters"
            | "nodes"
            | "machinehealthchecks"
            | "certificatesigningrequests"
    );
    if tells_conditions {
        found.extend(condition_changes(before, after));
    }
    found
}

fn condition_changes(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    fn conditions(value: Option<&Value>) -> &[Value] {
        let list = value.and_then(|value| value_at(value, "/status/conditions"));
        list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
    let old = conditions(before);
    conditions(after)
        .iter()
        .filter_map(|condition| {
            let type_ = condition.get("type")?.as_str()?;
            let known = old.iter().find(|one| one.get("type") == condition.get("type"));
            let same =
                |field: &str| known.and_then(|known| known.get(field)) == condition.get(field);
            if same("status") && same("reason") && same("message") {
                return None;
            }
            let part = |field: &str| text_at(condition, &format!("/{field}")).unwrap_or_default();
            let words =
                format!("{type_}={} {} {}", part("status"), part("reason"), part("message"));
            Some(words.trim_end().to_owned())
        })
        .collect()
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn text_at(value: &Value, pointer: &str) -> Option<String> {
    value_at(value, pointer).and_then(Value::as_str).map(str::to_owned)
}
