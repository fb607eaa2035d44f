//! Which MachineMaintenance objects there are to be: one for each Machine that has a reason, with the
//! event as the original wrote it; and none for what was over long ago.

use std::collections::BTreeMap;

use jiff::Timestamp;
use machinist_api::{
    Condition, ConditionSeverity, Machine, MachineMaintenance, MachineMaintenanceSpec,
    MachineMaintenanceStatus, MaintenanceReasonKind,
    condition::{self, to_seconds},
    names::{annotation, condition_type, maintenance_of, reason},
};

use super::{policy::Policy, reason::Need};
use crate::cloud::Instance;

/// The object for a Machine that has a reason and none.
pub fn new_for(
    machine: &Machine,
    need: &Need,
    instance: Option<&Instance>,
    namespace: &str,
) -> MachineMaintenance {
    let name = machine.metadata.name.clone().unwrap_or_default();
    let empty = MachineMaintenanceSpec { machinelink: name.clone(), ..Default::default() };
    let mut maintenance =
        MachineMaintenance::new(&maintenance_of(&name), spec_for(&empty, need, instance));
    maintenance.metadata.namespace = Some(namespace.to_owned());
    maintenance.metadata.annotations =
        Some([(annotation::MAINTENANCE_OURS.to_owned(), "true".to_owned())].into());
    maintenance
}

/// The spec for what is to be done now: the riskiest event, as the original wrote it.
pub fn spec_for(
    spec: &MachineMaintenanceSpec,
    need: &Need,
    instance: Option<&Instance>,
) -> MachineMaintenanceSpec {
    let event = need.reasons.iter().find(|reason| reason.kind == MaintenanceReasonKind::Event);
    let mut wanted = MachineMaintenanceSpec {
        machineid: instance.map_or_else(|| spec.machineid.clone(), |one| one.id.0.clone()),
        maintenancescheduled: false,
        ..spec.clone()
    };
    match event {
        Some(event) => {
            wanted.eventcode = Some(event.code.clone());
            wanted.eventid = Some(event.id.clone());
            wanted.notbefore = event.not_before.clone();
            wanted.notbeforedeadline = event.not_before_deadline.clone();
        }
        None => {
            wanted.eventcode = None;
            wanted.eventid = None;
            wanted.notbeforedeadline = None;
        }
    }
    wanted
}

/// The object that counts for each Machine, by the Machine's name: what is under way before what is
/// not, then the one with the usual name, then the first by namespace and name.
pub fn counting<'a>(
    maintenances: impl IntoIterator<Item = &'a MachineMaintenance>,
) -> BTreeMap<&'a str, &'a MachineMaintenance> {
    let mut counting: BTreeMap<&str, &MachineMaintenance> = BTreeMap::new();
    for one in maintenances {
        let known = counting.entry(one.spec.machinelink.as_str()).or_insert(one);
        if rank(one) < rank(known) {
            *known = one;
        }
    }
    counting
}

fn rank(maintenance: &MachineMaintenance) -> (bool, bool, Option<&str>, Option<&str>) {
    let metadata = &maintenance.metadata;
    let phase = maintenance.status.as_ref().and_then(|status| status.phase);
    let is_under_way = phase.is_some_and(|phase| phase.is_under_way());
    let has_usual_name =
        metadata.name.as_deref() == Some(maintenance_of(&maintenance.spec.machinelink).as_str());
    (!is_under_way, !has_usual_name, metadata.namespace.as_deref(), metadata.name.as_deref())
}

/// The status of an object about a Machine that another object counts for.
pub fn not_counting(
    maintenance: &MachineMaintenance,
    counting: &MachineMaintenance,
    now: Timestamp,
) -> MachineMaintenanceStatus {
    let mut status = maintenance.status.clone().unwrap_or_default();
    status.observed_generation = maintenance.metadata.generation;
    let of = |one: &MachineMaintenance| {
        let metadata = &one.metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        format!("{namespace}/{}", metadata.name.as_deref().unwrap_or_default())
    };
    let message = format!(
        "spec.machinelink: Duplicate value: {} is about machine {} too, and counts",
        of(counting),
        maintenance.spec.machinelink
    );
    let condition = Condition::fails(
        condition_type::VALID,
        ConditionSeverity::Error,
        reason::INVALID_CONFIGURATION,
        &message,
        now,
    );
    condition::set(&mut status.conditions, condition);
    status.message = Some(message);
    status
}

/// When a finished record may be removed; `None` while it is not finished.
pub fn expires_at(maintenance: &MachineMaintenance, policy: &Policy) -> Option<Timestamp> {
    let status = maintenance.status.as_ref()?;
    let is_over = status.phase.is_some_and(|phase| phase.is_over());
    let finished = status.finished_at.as_ref().filter(|_| is_over)?;
    to_seconds(finished.0).0.checked_add(policy.retention).ok()
}

/// Whether the object is of the Machine as it is now: one of the same name may have come after it.
pub fn is_about(maintenance: &MachineMaintenance, machine: &Machine) -> bool {
    let known = maintenance.status.as_ref().and_then(|status| status.machine_uid.as_deref());
    known.is_none() || known == machine.metadata.uid.as_deref()
}
