//! What do readers of the version before find in `status.deprecated.v1beta1`?

use k8s_openapi::api::core::v1::Node;
use machinist_api::{
    Condition, ConditionSeverity, ConditionStatus,
    cluster_api::names::condition_type::{
        HEALTH_CHECK_SUCCEEDED, INFRASTRUCTURE_READY, NODE_HEALTHY, OWNER_REMEDIATED,
        V1BETA1_BOOTSTRAP_READY, V1BETA1_DRAINING_SUCCEEDED, V1BETA1_PRE_DRAIN_HOOK_SUCCEEDED,
        V1BETA1_PRE_TERMINATE_HOOK_SUCCEEDED, V1BETA1_VOLUME_DETACH_SUCCEEDED,
    },
    condition,
};

use super::{
    conditions::mid_write_until,
    decide::Pass,
    deleting::Stage,
    observed::{Connection, NodeLookup, Reference},
};
use crate::cluster_api::{contract::reading, deprecated};

const WAITING_FOR_DATA_SECRET: &str = "WaitingForDataSecret";
const WAITING_FOR_INFRASTRUCTURE: &str = "WaitingForInfrastructure";
const DELETING: &str = "Deleting";
const DELETED: &str = "Deleted";
const WAITING_FOR_NODE_REF: &str = "WaitingForNodeRef";
const NODE_PROVISIONING: &str = "NodeProvisioning";
const NODE_NOT_FOUND: &str = "NodeNotFound";
const NODE_CONDITIONS_FAILED: &str = "NodeConditionsFailed";
const NODE_INSPECTION_FAILED: &str = "NodeInspectionFailed";
const DRAINING: &str = "Draining";
const WAITING_EXTERNAL_HOOK: &str = "WaitingExternalHook";
const WAITING_FOR_VOLUME_DETACH: &str = "WaitingForVolumeDetach";

/// What Ready is made of, the weightiest first.
const SUMMED_UP: [&str; 5] = [
    INFRASTRUCTURE_READY,
    V1BETA1_BOOTSTRAP_READY,
    HEALTH_CHECK_SUCCEEDED,
    OWNER_REMEDIATED,
    V1BETA1_DRAINING_SUCCEEDED,
];

pub(super) fn all(pass: &mut Pass<'_>, stage: Option<&Stage>) {
    bootstrap(pass, stage);
    infrastructure(pass, stage);
    node(pass);
    if let Some(stage) = stage {
        steps(pass, stage);
    }
    ready(pass);
    deprecated::in_order(&mut pass.deprecated().conditions);
}

fn holds(pass: &mut Pass<'_>, type_: &str) {
    let new = Condition::holds(type_, pass.now);
    condition::set(&mut pass.deprecated().conditions, new);
}

fn fails(
    pass: &mut Pass<'_>,
    type_: &str,
    severity: ConditionSeverity,
    reason: &str,
    message: impl Into<String>,
) {
    let mut new = Condition::fails(type_, severity, reason, message, pass.now);
    new.message = new.message.filter(|message| !message.is_empty());
    condition::set(&mut pass.deprecated().conditions, new);
}

fn bootstrap(pass: &mut Pass<'_>, stage: Option<&Stage>) {
    if pass.observed.machine.spec.bootstrap.config_ref.is_none() {
        return;
    }
    let is_created = pass.status.initialization.bootstrap_data_secret_created == Some(true);
    if pass.observed.machine.spec.bootstrap.data_secret_name.is_some()
        && pass.observed.bootstrap.found().is_some()
    {
        return holds(pass, V1BETA1_BOOTSTRAP_READY);
    }
    let is_gone = stage.is_some_and(|stage| stage.passed.bootstrap);
    mirror(
        pass,
        V1BETA1_BOOTSTRAP_READY,
        pass.observed.bootstrap,
        is_created,
        is_gone,
        WAITING_FOR_DATA_SECRET,
    );
}

fn infrastructure(pass: &mut Pass<'_>, stage: Option<&Stage>) {
    let is_provisioned = pass.status.initialization.infrastructure_provisioned == Some(true);
    let is_gone = stage.is_some_and(|stage| stage.passed.infrastructure);
    mirror(
        pass,
        INFRASTRUCTURE_READY,
        pass.observed.infrastructure,
        is_provisioned,
        is_gone,
        WAITING_FOR_INFRASTRUCTURE,
    );
}

fn mirror(
    pass: &mut Pass<'_>,
    type_: &str,
    known: Reference<'_>,
    was_ready: bool,
    is_gone: bool,
    waiting: &str,
) {
    if is_gone {
        return fails(pass, type_, ConditionSeverity::Info, DELETED, "");
    }
    let Some((object, _)) = known.found() else { return };
    if let Some(mut told) = reading::v1beta1_ready_condition(&object.data) {
        let is_said = condition::find(&pass.deprecated().conditions, type_).is_some();
        let since = Some(told.last_transition_time.0);
        if let Some(until) = mid_write_until(told.status.as_str(), since, pass.now)
            && is_said
            && !was_ready
        {
            return pass.decision.recheck_by(until);
        }
        told.type_ = type_.to_owned();
        condition::set(&mut pass.deprecated().conditions, told);
        return;
    }
    match (was_ready, known.is_deleting()) {
        (true, _) => holds(pass, type_),
        (false, true) => fails(pass, type_, ConditionSeverity::Info, DELETING, ""),
        (false, false) => fails(pass, type_, ConditionSeverity::Info, waiting, ""),
    }
}

fn node(pass: &mut Pass<'_>) {
    let is_deleting = pass.observed.is_deleting();
    let was_linked = pass.status.node_ref.is_some();
    if pass.provider_id().is_none() {
        return fails(pass, NODE_HEALTHY, ConditionSeverity::Info, WAITING_FOR_NODE_REF, "");
    }
    let lookup = match &pass.observed.connection {
        Connection::Up { nodes, .. } => nodes.clone(),
        // What was last known is still said.
        Connection::Down { .. } => return,
    };
    match lookup {
        // While a Machine goes, what was said last stays.
        _ if is_deleting => {}
        NodeLookup::NotFound if was_linked => {
            fails(pass, NODE_HEALTHY, ConditionSeverity::Error, NODE_NOT_FOUND, "");
        }
        NodeLookup::NotFound => fails(
            pass,
            NODE_HEALTHY,
            ConditionSeverity::Warning,
            NODE_PROVISIONING,
            "Waiting for a node with matching ProviderID to exist",
        ),
        NodeLookup::Ambiguous(_) => unknown(
            pass,
            NODE_INSPECTION_FAILED,
            "Failed to get the Node for this Machine by ProviderID",
        ),
        NodeLookup::Found(found) => match node_health(found) {
            (ConditionStatus::True, _) => holds(pass, NODE_HEALTHY),
            (ConditionStatus::False, message) => fails(
                pass,
                NODE_HEALTHY,
                ConditionSeverity::Warning,
                NODE_CONDITIONS_FAILED,
                message,
            ),
            (ConditionStatus::Unknown, message) => unknown(pass, NODE_CONDITIONS_FAILED, &message),
        },
    }
}

/// How the version before summed a Node up: what is not reported counts for nothing, and only four that are
/// unknown make it unknown.
fn node_health(node: &Node) -> (ConditionStatus, String) {
    let (mut bad, mut unknown) = (0, 0);
    let mut words = Vec::new();
    let reported = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    for one in reported.unwrap_or_default() {
        let good = match one.type_.as_str() {
            "Ready" => "True",
            "MemoryPressure" | "DiskPressure" | "PIDPressure" => "False",
            _ => continue,
        };
        if one.status == good {
            continue;
        }
        words.push(format!("Node condition {} is {}", one.type_, one.status));
        match one.status.as_str() {
            "Unknown" => unknown += 1,
            _ => bad += 1,
        }
    }
    let status = match (bad, unknown) {
        (0, 0..4) => ConditionStatus::True,
        (0, _) => ConditionStatus::Unknown,
        _ => ConditionStatus::False,
    };
    (status, words.join(". "))
}

fn unknown(pass: &mut Pass<'_>, reason: &str, message: &str) {
    let severity = ConditionSeverity::Info;
    let mut new = Condition::unknown(NODE_HEALTHY, severity, reason, message, pass.now);
    new.severity = None;
    condition::set(&mut pass.deprecated().conditions, new);
}

fn steps(pass: &mut Pass<'_>, stage: &Stage) {
    let passed = stage.passed;
    let steps = [
        (V1BETA1_PRE_DRAIN_HOOK_SUCCEEDED, passed.pre_drain, WAITING_EXTERNAL_HOOK, ""),
        (V1BETA1_DRAINING_SUCCEEDED, passed.drain, DRAINING, stage.message.as_str()),
        (
            V1BETA1_VOLUME_DETACH_SUCCEEDED,
            passed.volumes,
            WAITING_FOR_VOLUME_DETACH,
            "Waiting for node volumes to be detached",
        ),
        (V1BETA1_PRE_TERMINATE_HOOK_SUCCEEDED, passed.pre_terminate, WAITING_EXTERNAL_HOOK, ""),
    ];
    for (type_, is_done, reason, message) in steps {
        match is_done {
            None => {}
            Some(true) => holds(pass, type_),
            Some(false) => fails(pass, type_, ConditionSeverity::Info, reason, message),
        }
    }
}

fn ready(pass: &mut Pass<'_>) {
    let conditions = pass.deprecated().conditions.clone();
    let found: Vec<_> =
        SUMMED_UP.iter().filter_map(|type_| condition::find(&conditions, type_)).collect();
    let Some(mut new) = deprecated::sum(&found, pass.now) else { return };
    let provisioning = [V1BETA1_BOOTSTRAP_READY, INFRASTRUCTURE_READY];
    let only_provisioning = found.iter().all(|one| provisioning.contains(&one.type_.as_str()));
    let is_provisioning = !pass.observed.is_deleting() && pass.provider_id().is_none();
    if new.status != ConditionStatus::True && is_provisioning && only_provisioning {
        let done = found.iter().filter(|one| one.status == ConditionStatus::True).count();
        new.message = Some(format!("{done} of {} completed", provisioning.len()));
    }
    condition::set(&mut pass.deprecated().conditions, new);
}
