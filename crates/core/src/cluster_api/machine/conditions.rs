//! Which conditions does a Machine have, and why?

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::Condition};
use machinist_api::cluster_api::{
    MachineStatus, condition,
    names::{annotation, condition_type, reason},
};

use super::{
    decide::Pass,
    deleting::Stage,
    node::claimed,
    observed::{
        Connection, NodeLookup, Observed, Reference, control_plane_initialized_at,
        is_infrastructure_provisioned,
    },
    summary,
};
use crate::{
    cluster_api::{contract::reading, deployment::current, template},
    node,
};

/// So often it must fail before a cluster that was never reached is said to be down.
const FAILURES_TO_TELL: u32 = 5;

/// A provider whose writes do not come together by then means what it says.
const MID_WRITE_MAX: SignedDuration = SignedDuration::from_secs(5);

/// The conditions that this controller writes; all others are of others and stay as they are.
pub const OWNED: [&str; 10] = [
    condition_type::PAUSED,
    condition_type::AVAILABLE,
    condition_type::READY,
    condition_type::UP_TO_DATE,
    condition_type::BOOTSTRAP_CONFIG_READY,
    condition_type::INFRASTRUCTURE_READY,
    condition_type::NODE_READY,
    condition_type::NODE_HEALTHY,
    condition_type::DELETING,
    condition_type::UPDATING,
];

/// Says of a status that was decided at one generation that it holds at another: our own write of the spec has made that.
pub fn at_generation(status: &mut MachineStatus, before: Option<i64>, after: Option<i64>) {
    if status.observed_generation == before {
        status.observed_generation = after;
    }
    for known in &mut status.conditions {
        if OWNED.contains(&known.type_.as_str()) && known.observed_generation == before {
            known.observed_generation = after;
        }
    }
}

pub(super) fn all(pass: &mut Pass<'_>, stage: Option<&Stage>) {
    bootstrap(pass);
    infrastructure(pass);
    nodes(pass);
    match stage {
        None => pass.set(condition_type::DELETING, condition::FALSE, reason::NOT_DELETING, ""),
        Some(stage) => {
            pass.set(condition_type::DELETING, condition::TRUE, stage.reason, &stage.message);
        }
    }
    updating(pass);
    up_to_date(pass);
    summary::ready(pass);
    available(pass);
}

fn bootstrap(pass: &mut Pass<'_>) {
    const TYPE: &str = condition_type::BOOTSTRAP_CONFIG_READY;
    let Some(reference) = &pass.observed.machine.spec.bootstrap.config_ref else {
        return pass.set(TYPE, condition::TRUE, reason::DATA_SECRET_PROVIDED, "");
    };
    let is_created = pass.status.initialization.bootstrap_data_secret_created == Some(true);
    let kind = &reference.kind;
    match pass.observed.bootstrap {
        Reference::Found { object, contract } => {
            let field = reading::data_secret_created_field(contract);
            mirror(pass, TYPE, &object.data, is_created, &format!("{kind} {field} is false"));
        }
        Reference::Missing if pass.observed.is_deleting() && is_created => {
            let message = format!("{kind} has been deleted");
            pass.set(TYPE, condition::FALSE, reason::OBJECT_DELETED, message);
        }
        Reference::Missing => {
            let message = format!("{kind} does not exist");
            pass.set(TYPE, condition::FALSE, reason::OBJECT_DOES_NOT_EXIST, message);
        }
        Reference::Unreadable(why) => {
            pass.set(TYPE, condition::UNKNOWN, reason::INTERNAL_ERROR, why);
        }
        Reference::NotDefined => {}
    }
}

fn infrastructure(pass: &mut Pass<'_>) {
    const TYPE: &str = condition_type::INFRASTRUCTURE_READY;
    let kind = &pass.observed.machine.spec.infrastructure_ref.kind;
    let is_provisioned = pass.status.initialization.infrastructure_provisioned == Some(true);
    let is_deleting = pass.observed.is_deleting();
    match pass.observed.infrastructure {
        Reference::Found { object, contract } => {
            let field = reading::provisioned_field(contract);
            mirror(pass, TYPE, &object.data, is_provisioned, &format!("{kind} {field} is false"));
        }
        Reference::Missing if is_provisioned => {
            let message = match is_deleting {
                true => format!("{kind} has been deleted"),
                false => format!("{kind} has been deleted while the Machine still exists"),
            };
            pass.set(TYPE, condition::FALSE, reason::OBJECT_DELETED, message);
        }
        Reference::Missing | Reference::NotDefined => {
            let message = format!("{kind} does not exist");
            pass.set(TYPE, condition::FALSE, reason::OBJECT_DOES_NOT_EXIST, message);
        }
        Reference::Unreadable(why) => {
            pass.set(TYPE, condition::UNKNOWN, reason::INTERNAL_ERROR, why);
        }
    }
}

/// What the object says of itself, or else whether it was ready once.
fn mirror(
    pass: &mut Pass<'_>,
    type_: &str,
    object: &serde_json::Value,
    was_ready: bool,
    not: &str,
) {
    match reading::ready_condition(object) {
        Err(why) => {
            pass.set(type_, condition::UNKNOWN, reason::INVALID_CONDITION_REPORTED, why);
        }
        Ok(Some(told)) => {
            let is_said = condition::find(&pass.status.conditions, type_).is_some();
            if let Some(until) = mid_write_until(&told.status, told.since, pass.now)
                && is_said
                && !was_ready
            {
                return pass.decision.recheck_by(until);
            }
            let mut new = condition::new(type_, &told.status, &told.reason, told.message, pass.now);
            if let Some(since) = told.since {
                new.last_transition_time = machinist_api::condition::to_seconds(since);
            }
            place(pass, new);
        }
        Ok(None) if was_ready => pass.set(type_, condition::TRUE, reason::READY, ""),
        Ok(None) => pass.set(type_, condition::FALSE, reason::NOT_READY, not),
    }
}

/// Until when a provider that says that its object is ready may be in the middle of its writes: they say this in one, and in
/// another, a moment later, what it means. Between the two nothing new is told: it would cost every machine a write, and the
/// provider a look at it.
pub(super) fn mid_write_until(
    status: &str,
    since: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    let since = since.filter(|_| status == condition::TRUE)?;
    let is_fresh = (SignedDuration::ZERO..MID_WRITE_MAX).contains(&now.duration_since(since));
    is_fresh.then(|| since.checked_add(MID_WRITE_MAX).unwrap_or(Timestamp::MAX))
}

/// Sets a condition that brings its own time.
fn place(pass: &mut Pass<'_>, new: Condition) {
    let since = new.last_transition_time.clone();
    let type_ = new.type_.clone();
    let generation = pass.observed.machine.metadata.generation;
    condition::set(&mut pass.status.conditions, new, generation);
    let known = pass.status.conditions.iter_mut().find(|one| one.type_ == type_);
    if let Some(known) = known {
        known.last_transition_time = since;
    }
}

fn nodes(pass: &mut Pass<'_>) {
    let (status, reason, message) = match look(pass) {
        Look::Node(found) => {
            let ready = node_ready(found, pass.now);
            place(pass, ready);
            let (status, reason, message) = node_health(found);
            return pass.set(condition_type::NODE_HEALTHY, status, reason, message);
        }
        Look::Keep => return,
        Look::Says(status, reason, message) => (status, reason, message),
    };
    for type_ in [condition_type::NODE_READY, condition_type::NODE_HEALTHY] {
        pass.set(type_, status, reason, &message);
    }
}

/// What can be said of the Node.
enum Look<'a> {
    Node(&'a Node),
    /// What was last known is still said.
    Keep,
    Says(&'static str, &'static str, String),
}

fn look<'a>(pass: &mut Pass<'a>) -> Look<'a> {
    let observed: &'a Observed<'a> = pass.observed;
    let failed = |message: &str| {
        Look::Says(condition::UNKNOWN, reason::INSPECTION_FAILED, message.to_owned())
    };
    if !is_infrastructure_provisioned(observed.cluster) {
        return failed(
            "Waiting for Cluster status.initialization.infrastructureProvisioned to be true",
        );
    }
    let Some(initialized) = control_plane_initialized_at(observed.cluster) else {
        return failed("Waiting for Cluster control plane to be initialized");
    };
    let found = match &observed.connection {
        Connection::Up { nodes, .. } => nodes,
        Connection::Down { last_success, failures, .. } => {
            return down(pass, *last_success, *failures, initialized);
        }
    };
    match found {
        NodeLookup::Found(found) if is_anothers(pass, found) => {
            return failed(&claimed(observed, node::name(found)));
        }
        NodeLookup::Found(found) => return Look::Node(found),
        NodeLookup::Ambiguous(names) => {
            return Look::Says(
                condition::UNKNOWN,
                reason::INTERNAL_ERROR,
                format!("Nodes {} have the same spec.providerID", names.join(", ")),
            );
        }
        NodeLookup::NotFound => {}
    }
    let kind = &observed.machine.spec.infrastructure_ref.kind;
    match (&pass.status.node_ref, observed.is_deleting(), pass.provider_id()) {
        (Some(known), true, _) => Look::Says(
            condition::FALSE,
            reason::NODE_DELETED,
            format!("Node {} has been deleted", known.name),
        ),
        (None, true, _) => Look::Says(
            condition::UNKNOWN,
            reason::NODE_DOES_NOT_EXIST,
            "Node does not exist".to_owned(),
        ),
        (Some(known), false, _) => Look::Says(
            condition::FALSE,
            reason::NODE_DELETED,
            format!("Node {} has been deleted while the Machine still exists", known.name),
        ),
        (None, false, Some(id)) => {
            failed(&format!("Waiting for a Node with spec.providerID {id} to exist"))
        }
        (None, false, None) => failed(&format!("Waiting for {kind} to report spec.providerID")),
    }
}

fn is_anothers(pass: &Pass<'_>, found: &Node) -> bool {
    let is_linked =
        pass.status.node_ref.as_ref().is_some_and(|known| known.name == node::name(found));
    !is_linked && pass.observed.shares_node()
}

fn down<'a>(
    pass: &mut Pass<'_>,
    last_success: Option<Timestamp>,
    failures: u32,
    initialized: Timestamp,
) -> Look<'a> {
    let conditions = &pass.status.conditions;
    let is_said = [condition_type::NODE_READY, condition_type::NODE_HEALTHY]
        .iter()
        .all(|type_| condition::find(conditions, type_).is_some());
    let says = |message: String| Look::Says(condition::UNKNOWN, reason::CONNECTION_DOWN, message);
    if last_success.is_none() && failures < FAILURES_TO_TELL {
        return match is_said {
            true => Look::Keep,
            false => says("Remote connection not established yet".to_owned()),
        };
    }
    let message = match last_success {
        Some(at) => {
            format!("Last successful probe at {}", machinist_api::condition::to_seconds(at).0)
        }
        None => String::new(),
    };
    let since = last_success.map_or(initialized, |at| at.max(initialized));
    let grace = pass.policy.remote_conditions_grace;
    if pass.now.duration_since(since) > grace || !is_said {
        return says(message);
    }
    let told_at = since.checked_add(grace).unwrap_or(Timestamp::MAX);
    pass.decision.recheck_by(told_at.checked_add(SignedDuration::from_secs(1)).unwrap_or(told_at));
    Look::Keep
}

fn node_ready(found: &Node, now: Timestamp) -> Condition {
    const TYPE: &str = condition_type::NODE_READY;
    let Some(told) = node_condition(found, "Ready") else {
        let message = "* Node.Ready: Condition not yet reported";
        return condition::new(TYPE, condition::UNKNOWN, reason::NODE_READY_UNKNOWN, message, now);
    };
    let (status, reason) = match told.status.as_str() {
        "True" => (condition::TRUE, reason::NODE_READY),
        "False" => (condition::FALSE, reason::NODE_NOT_READY),
        _ => (condition::UNKNOWN, reason::NODE_READY_UNKNOWN),
    };
    let message = match told.message.as_deref() {
        Some(message) if status != condition::TRUE && !message.is_empty() => {
            format!("* Node.Ready: {message}")
        }
        _ => String::new(),
    };
    let since = told.last_transition_time.as_ref().map_or(now, |time| time.0);
    condition::new(TYPE, status, reason, message, since)
}

/// Ready and the three pressures in one.
fn node_health(found: &Node) -> (&'static str, &'static str, String) {
    let (mut bad, mut unknown) = (0, 0);
    let (mut lines, mut said) = (Vec::new(), Vec::new());
    for (type_, good) in [
        ("Ready", "True"),
        ("MemoryPressure", "False"),
        ("DiskPressure", "False"),
        ("PIDPressure", "False"),
    ] {
        let Some(told) = node_condition(found, type_) else {
            lines.push(format!("* Node.{type_}: Condition not yet reported"));
            unknown += 1;
            continue;
        };
        if told.status == good {
            continue;
        }
        let message = told.message.clone().filter(|message| !message.is_empty());
        let message = message.unwrap_or_else(|| format!("Condition is {}", told.status));
        lines.push(format!("* Node.{type_}: {message}"));
        said.push(message);
        match told.status.as_str() {
            "Unknown" => unknown += 1,
            _ => bad += 1,
        }
    }
    if said.len() > 1 && said.iter().all(|message| *message == said[0]) {
        lines = vec![format!("* Node.AllConditions: {}", said[0])];
    }
    match (bad, unknown) {
        (0, 0) => (condition::TRUE, reason::NODE_HEALTHY, String::new()),
        (0, _) => (condition::UNKNOWN, reason::NODE_HEALTH_UNKNOWN, lines.join("\n")),
        _ => (condition::FALSE, reason::NODE_NOT_HEALTHY, lines.join("\n")),
    }
}

fn node_condition<'a>(
    found: &'a Node,
    type_: &str,
) -> Option<&'a k8s_openapi::api::core::v1::NodeCondition> {
    found.status.as_ref()?.conditions.as_ref()?.iter().find(|one| one.type_ == type_)
}

/// Updates in place are the work of extensions, which we do not call; one that others began is shown.
fn updating(pass: &mut Pass<'_>) {
    let annotations = pass.observed.machine.metadata.annotations.as_ref();
    match annotations.is_some_and(|all| all.contains_key(annotation::UPDATE_IN_PROGRESS)) {
        true => pass.set(
            condition_type::UPDATING,
            condition::TRUE,
            reason::IN_PLACE_UPDATING,
            "In-place update in progress",
        ),
        false => {
            pass.set(condition_type::UPDATING, condition::FALSE, reason::NOT_UPDATING, "");
        }
    }
}

/// Compares the templates of set and deployment; a Machine without a deployment has no such condition from us.
fn up_to_date(pass: &mut Pass<'_>) {
    const TYPE: &str = condition_type::UP_TO_DATE;
    let (Some(set), Some(deployment)) = (pass.observed.set, pass.observed.deployment) else {
        return;
    };
    let mut differences =
        template::differences(&set.spec.template.spec, &deployment.spec.template.spec);
    let after = deployment.spec.rollout.after.as_ref().map(|after| after.0);
    match after.filter(|after| !current::is_since(set, *after)) {
        Some(after) if after > pass.now => pass.decision.recheck_by(after),
        Some(_) => differences.push("MachineDeployment spec.rolloutAfter expired".to_owned()),
        None => {}
    }
    if !differences.is_empty() {
        let lines: Vec<_> = differences.iter().map(|line| format!("* {line}")).collect();
        return pass.set(TYPE, condition::FALSE, reason::NOT_UP_TO_DATE, lines.join("\n"));
    }
    if condition::is_true(&pass.status.conditions, condition_type::UPDATING) {
        let message = "* In-place update in progress";
        return pass.set(TYPE, condition::FALSE, reason::UPDATING, message);
    }
    let kubelet = pass.status.node_info.as_ref().map(|info| info.kubelet_version.clone());
    let version = pass.observed.machine.spec.version.clone().unwrap_or_default();
    if let Some(kubelet) = kubelet.filter(|kubelet| !kubelet.is_empty() && *kubelet != version) {
        let message =
            format!("* Node.status.nodeInfo.kubeletVersion {kubelet}, {version} required");
        return pass.set(TYPE, condition::FALSE, reason::UPDATING, message);
    }
    pass.set(TYPE, condition::TRUE, reason::UP_TO_DATE, "");
}

fn available(pass: &mut Pass<'_>) {
    const TYPE: &str = condition_type::AVAILABLE;
    let ready = condition::find(&pass.status.conditions, condition_type::READY);
    let since = ready
        .filter(|ready| ready.status == condition::TRUE)
        .map(|ready| ready.last_transition_time.0);
    let Some(since) = since else {
        return pass.set(TYPE, condition::FALSE, reason::NOT_READY, "");
    };
    let wanted = i64::from(pass.observed.machine.spec.min_ready_seconds.unwrap_or_default());
    let at = since.checked_add(SignedDuration::from_secs(wanted)).unwrap_or(Timestamp::MAX);
    if pass.now >= at {
        return pass.set(TYPE, condition::TRUE, reason::AVAILABLE, "");
    }
    pass.decision.recheck_by(at);
    pass.set(TYPE, condition::FALSE, reason::WAITING_FOR_MIN_READY_SECONDS, "");
}
