//! Is a Machine Ready, all in all?

use jiff::SignedDuration;
use machinist_api::cluster_api::{
    condition,
    names::{condition_type, reason},
};

use super::decide::Pass;

/// After so long a deletion is worth a word, and a drain the reasons of its delay.
const STALE_DELETION: SignedDuration = SignedDuration::from_mins(15);
const STALE_DRAIN: SignedDuration = SignedDuration::from_mins(5);

/// What Ready is made of, in the order in which it is told; whether True is bad, and whether it may be missing.
const INPUTS: [(&str, bool, bool); 6] = [
    (condition_type::DELETING, true, false),
    (condition_type::UPDATING, true, false),
    (condition_type::BOOTSTRAP_CONFIG_READY, false, false),
    (condition_type::INFRASTRUCTURE_READY, false, false),
    (condition_type::NODE_HEALTHY, false, false),
    (condition_type::HEALTH_CHECK_SUCCEEDED, false, true),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Issue,
    Unknown,
    Info,
}

pub(super) fn ready(pass: &mut Pass<'_>) {
    let gates = pass.observed.machine.spec.readiness_gates.iter().map(|gate| {
        (gate.condition_type.as_str(), gate.polarity.as_deref() == Some("Negative"), false)
    });
    let inputs: Vec<_> = INPUTS.into_iter().chain(gates).collect();
    let (mut issues, mut unknown) = (0, 0);
    let (mut bad, mut infos) = (Vec::new(), Vec::new());
    for (type_, is_negative, may_be_missing) in inputs {
        let found = condition::find(&pass.status.conditions, type_).cloned();
        let (status, reason, message) = match found {
            Some(one) if type_ == condition_type::DELETING && one.status == condition::TRUE => {
                let message = deletion(pass, &one.reason, &one.message);
                (one.status, reason::DELETING.to_owned(), message)
            }
            Some(one) => (one.status, one.reason, one.message),
            None if may_be_missing => continue,
            None => (
                condition::UNKNOWN.to_owned(),
                reason::NOT_YET_REPORTED.to_owned(),
                format!("Condition {type_} not yet reported"),
            ),
        };
        let line = format!("* {type_}:{}", indented(&message, &reason));
        match weigh(pass, type_, &status, &reason, is_negative) {
            Weight::Issue => {
                issues += 1;
                bad.push(line);
            }
            Weight::Unknown => {
                unknown += 1;
                bad.push(line);
            }
            Weight::Info if message.is_empty() => {}
            Weight::Info => infos.push(line),
        }
    }
    let (status, reason, lines) = match (issues, unknown) {
        (0, 0) => (condition::TRUE, reason::READY, infos),
        (0, _) => (condition::UNKNOWN, reason::READY_UNKNOWN, bad),
        _ => (condition::FALSE, reason::NOT_READY, bad),
    };
    pass.set(condition_type::READY, status, reason, together(lines).join("\n"));
}

fn weigh(pass: &Pass<'_>, type_: &str, status: &str, why: &str, is_negative: bool) -> Weight {
    let is_gone = match type_ {
        condition_type::BOOTSTRAP_CONFIG_READY | condition_type::INFRASTRUCTURE_READY => {
            matches!(why, reason::OBJECT_DELETED | reason::OBJECT_DOES_NOT_EXIST)
        }
        condition_type::NODE_HEALTHY => {
            matches!(why, reason::NODE_DELETED | reason::NODE_DOES_NOT_EXIST)
        }
        _ => false,
    };
    // What goes with a Machine is no fault of it.
    if pass.observed.is_deleting() && is_gone {
        return Weight::Info;
    }
    match (status, is_negative) {
        (condition::TRUE, false) | (condition::FALSE, true) => Weight::Info,
        (condition::FALSE, false) | (condition::TRUE, true) => Weight::Issue,
        _ => Weight::Unknown,
    }
}

/// A few different sentences only, so that those of many Machines can be told as one.
fn deletion(pass: &mut Pass<'_>, stage: &str, details: &str) -> String {
    let deleted = pass.observed.machine.metadata.deletion_timestamp.as_ref();
    let since = deleted.map_or(pass.now, |time| time.0);
    if pass.now.duration_since(since) <= STALE_DELETION {
        let at = since.checked_add(STALE_DELETION + SignedDuration::from_secs(1));
        if let Ok(at) = at {
            pass.decision.recheck_by(at);
        }
        return format!("Machine deletion in progress, stage: {stage}");
    }
    let mut message = format!("Machine deletion in progress since more than 15m, stage: {stage}");
    let drained = pass.status.deletion.as_ref().and_then(|all| all.node_drain_start_time.as_ref());
    let is_slow = drained.is_some_and(|time| pass.now.duration_since(time.0) > STALE_DRAIN);
    if stage == reason::DRAINING_NODE && is_slow {
        let causes = [
            (
                "cannot evict pod as it would violate the pod's disruption budget.",
                "PodDisruptionBudgets",
            ),
            ("deletionTimestamp set, but still not removed from the Node", "Pods not terminating"),
            ("failed to evict Pod", "Pod eviction errors"),
            ("waiting for completion", "Pods not completed yet"),
        ];
        let found: Vec<_> = causes
            .into_iter()
            .filter(|(words, _)| details.contains(words))
            .map(|(_, cause)| cause)
            .collect();
        if !found.is_empty() {
            message.push_str(", delay likely due to ");
            message.push_str(&found.join(", "));
        }
    }
    message
}

fn indented(message: &str, reason: &str) -> String {
    if message.is_empty() {
        return format!(" {reason}");
    }
    if !message.contains('\n') && !message.starts_with("* ") {
        return format!(" {message}");
    }
    message.lines().map(|line| format!("\n  {line}")).collect()
}

/// The parts of a control plane are told in one line where they say the same.
fn together(lines: Vec<String>) -> Vec<String> {
    let is_part = |line: &str| {
        let name = line.split(':').next().unwrap_or_default();
        ["* APIServer", "* ControllerManager", "* Scheduler"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || name == "* EtcdPodHealthy"
    };
    let said = |line: &str| line.split_once(':').map(|(_, said)| said.to_owned());
    let parts: Vec<_> = lines.iter().filter(|line| is_part(line)).map(|line| said(line)).collect();
    if parts.len() < 2 || parts.iter().any(|part| *part != parts[0]) {
        return lines;
    }
    let mut all = Vec::new();
    let mut is_told = false;
    for line in lines {
        if !is_part(&line) {
            all.push(line);
        } else if !is_told {
            is_told = true;
            all.push(format!("* Control plane components:{}", said(&line).unwrap_or_default()));
        }
    }
    all
}
