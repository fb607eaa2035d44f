//! What do readers of the version before find in `status.deprecated.v1beta1`?

use machinist_api::{
    Condition, ConditionSeverity, ConditionStatus,
    cluster_api::names::condition_type::{
        HEALTH_CHECK_SUCCEEDED, INFRASTRUCTURE_READY, NODE_HEALTHY, OWNER_REMEDIATED, READY,
        V1BETA1_BOOTSTRAP_READY, V1BETA1_DRAINING_SUCCEEDED, V1BETA1_PRE_DRAIN_HOOK_SUCCEEDED,
        V1BETA1_PRE_TERMINATE_HOOK_SUCCEEDED, V1BETA1_VOLUME_DETACH_SUCCEEDED,
    },
    condition,
};

use super::{
    conditions::node_health,
    decide::Pass,
    deleting::Stage,
    observed::{Connection, NodeLookup, Reference},
};
use crate::cluster_api::contract::reading;

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
    let conditions = &mut pass.deprecated().conditions;
    // As Cluster API has it: the sum first.
    conditions.sort_by_key(|one| (one.type_ != READY, one.type_.clone()));
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
    let Some((object, contract)) = known.found() else { return };
    if let Some(mut told) = reading::v1beta1_ready_condition(&object.data, contract) {
        told.type_ = type_.to_owned();
        condition::set(&mut pass.deprecated().conditions, told);
        return;
    }
    match (was_ready, known.is_deleting()) {
        (true, false) => holds(pass, type_),
        (_, true) => fails(pass, type_, ConditionSeverity::Info, DELETING, ""),
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
        NodeLookup::NotFound if is_deleting => {}
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
        NodeLookup::Found(_) if is_deleting => {
            fails(pass, NODE_HEALTHY, ConditionSeverity::Info, DELETING, "");
        }
        NodeLookup::Found(found) => match node_health(found) {
            ("True", _, _) => holds(pass, NODE_HEALTHY),
            ("False", _, message) => fails(
                pass,
                NODE_HEALTHY,
                ConditionSeverity::Warning,
                NODE_CONDITIONS_FAILED,
                message,
            ),
            (_, _, message) => unknown(pass, NODE_CONDITIONS_FAILED, &message),
        },
    }
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
    if found.is_empty() {
        return;
    }
    let weight = |one: &Condition| match (one.status, one.severity) {
        (ConditionStatus::False, Some(ConditionSeverity::Error)) => 0,
        (ConditionStatus::False, Some(ConditionSeverity::Warning)) => 1,
        (ConditionStatus::False, _) => 2,
        (ConditionStatus::True, _) => 3,
        (ConditionStatus::Unknown, _) => 4,
    };
    let Some(first) = found.iter().copied().min_by_key(|one| weight(one)) else { return };
    let mut new = Condition { type_: READY.to_owned(), ..first.clone() };
    new.last_transition_time = condition::to_seconds(pass.now);
    let provisioning = [V1BETA1_BOOTSTRAP_READY, INFRASTRUCTURE_READY];
    let only_provisioning = found.iter().all(|one| provisioning.contains(&one.type_.as_str()));
    if new.status == ConditionStatus::True {
        (new.reason, new.message, new.severity) = (None, None, None);
    } else if !pass.observed.is_deleting() && pass.provider_id().is_none() && only_provisioning {
        let done = found.iter().filter(|one| one.status == ConditionStatus::True).count();
        new.message = Some(format!("{done} of {} completed", provisioning.len()));
    }
    condition::set(&mut pass.deprecated().conditions, new);
}
