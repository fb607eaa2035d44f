//! What is there to say of each machine of a fleet, in one line?

use std::collections::BTreeMap;

use jiff::Timestamp;
use machinist_api::{Machine, MachineMaintenance, MaintenanceAction, names::maintenance_reason};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    drift,
    instant::Instant,
    picture::Picture,
    seen::{self, InstanceView, NodeView, Nodes, Waiting},
    state::MachineState,
    waiting,
};
use crate::maintenance::{PlanEntry, plan::Standing};

/// One machine in one line.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineRow {
    pub name: String,
    pub pool: Option<String>,
    pub zone: Option<String>,
    pub role: Option<String>,
    pub state: MachineState,
    /// Empty while nobody has looked at the machine.
    pub phase: String,
    #[schemars(with = "Option<Instant>")]
    pub created_at: Option<Timestamp>,
    pub instance: Option<InstanceView>,
    pub node: Option<NodeView>,
    /// The first thing that holds it up.
    pub waiting: Option<Waiting>,
    pub maintenance: Option<RowMaintenance>,
    /// What happened behind the cluster's back, for a sentence that begins with the instance.
    pub drift: Option<String>,
    /// Why maintenance is paused for it or its pool.
    pub paused: Option<String>,
    /// Changes when something of the machine may have changed that is not in this line.
    pub revision: String,
    /// What else is searched.
    #[serde(skip)]
    pub addresses: Vec<String>,
}

/// What is planned for a machine, in short.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RowMaintenance {
    pub standing: StandingWord,
    pub action: MaintenanceAction,
    #[schemars(with = "Option<Instant>")]
    pub start: Option<Timestamp>,
    #[schemars(with = "Option<Instant>")]
    pub deadline: Option<Timestamp>,
    pub is_late: bool,
    pub needs_approval: bool,
}

/// How a planned maintenance stands, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StandingWord {
    UnderWay,
    Due,
    Planned,
    MovesEvent,
    Blocked,
    LeftAlone,
}

impl StandingWord {
    pub fn of(standing: &Standing) -> Self {
        match standing {
            Standing::UnderWay { .. } => Self::UnderWay,
            Standing::Due => Self::Due,
            Standing::Planned => Self::Planned,
            Standing::MovesEvent { .. } => Self::MovesEvent,
            Standing::Blocked => Self::Blocked,
            Standing::LeftAlone => Self::LeftAlone,
        }
    }
}

/// Whether a planned maintenance waits for a person.
pub fn needs_approval(entry: &PlanEntry) -> bool {
    entry.waits_on.iter().any(|wait| wait.reason == maintenance_reason::APPROVAL_MISSING)
}

/// All machines, by name.
pub fn rows(picture: &Picture<'_>) -> BTreeMap<String, MachineRow> {
    let machines = picture.gathered.fleet.machines.iter();
    machines
        .filter_map(|one| {
            let sight = picture.sights.get(one.name)?;
            let (machine, entry) = (sight.machine, picture.plan.entry(one.name));
            let nodes = Nodes::new(sight.node);
            let waiting = waiting::of_machine(machine, &nodes);
            let status = machine.status.as_ref();
            let addresses = status.map(|status| status.addresses.as_slice()).unwrap_or_default();
            let row = MachineRow {
                name: one.name.to_owned(),
                pool: one.pool.map(str::to_owned),
                zone: one.zone.map(str::to_owned).or_else(|| zone_to_be(one.pool, picture)),
                role: one.role.map(str::to_owned),
                state: MachineState::of(machine, waiting.as_ref(), entry),
                phase: status.and_then(|status| status.phase.clone()).unwrap_or_default(),
                created_at: machine.metadata.creation_timestamp.as_ref().map(|time| time.0),
                instance: seen::instance(machine),
                node: nodes.view_of(machine),
                waiting,
                maintenance: entry.map(maintenance),
                drift: drift::open(machine).map(|class| class.in_words().to_owned()),
                paused: one.paused.map(str::to_owned),
                revision: revision(machine, picture.records.get(one.name).copied()),
                addresses: addresses.iter().map(|one| one.address.clone()).collect(),
            };
            Some((row.name.clone(), row))
        })
        .collect()
}

/// Where its pool makes machines: one that is not launched yet has no zone of its own.
fn zone_to_be(pool: Option<&str>, picture: &Picture<'_>) -> Option<String> {
    picture.gathered.fleet.pools.get(pool?)?.zone.clone()
}

fn maintenance(entry: &PlanEntry) -> RowMaintenance {
    RowMaintenance {
        standing: StandingWord::of(&entry.standing),
        action: entry.action,
        // What is due begins now, whenever now is: that alone is nothing new.
        start: entry.start.filter(|_| !entry.is_due()),
        deadline: entry.deadline,
        is_late: entry.is_late,
        needs_approval: needs_approval(entry),
    }
}

fn revision(machine: &Machine, record: Option<&MachineMaintenance>) -> String {
    let mut hash = Sha256::new();
    let versions = [
        machine.metadata.uid.as_deref(),
        machine.metadata.resource_version.as_deref(),
        record.and_then(|record| record.metadata.uid.as_deref()),
        record.and_then(|record| record.metadata.resource_version.as_deref()),
    ];
    for version in versions {
        hash.update(version.unwrap_or("-").as_bytes());
        hash.update(b"/");
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
