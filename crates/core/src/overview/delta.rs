//! What has changed since somebody last looked?

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    fleet::FleetView, instant::Instant, plan_view::PlanView, policies::PolicyList, row::MachineRow,
};

/// From one version to the next.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    pub version: String,
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    pub machines: Option<MachineChanges>,
    /// The whole fleet in short, where that has changed.
    pub fleet: Option<FleetView>,
    /// Whether the plan, the policies or what happened behind the cluster's back are to be asked for again.
    pub plan: bool,
    pub policies: bool,
    pub drift: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MachineChanges {
    pub changed: Vec<MachineRow>,
    /// The names of those that are gone.
    pub removed: Vec<String>,
}

/// What is compared.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    pub rows: &'a BTreeMap<String, MachineRow>,
    pub fleet: &'a FleetView,
    pub plan: &'a PlanView,
    pub policies: &'a PolicyList,
}

impl Change {
    /// What is new; `None` where nothing is but the time.
    pub fn between(before: Seen<'_>, after: Seen<'_>) -> Option<Self> {
        let machines = machines(before.rows, after.rows);
        let timeless = |fleet: &FleetView| FleetView {
            version: String::new(),
            as_of: Timestamp::UNIX_EPOCH,
            ..fleet.clone()
        };
        let is_fleet_new = timeless(before.fleet) != timeless(after.fleet);
        let plan = !says_the_same(before.plan, after.plan);
        let policies = before.policies.policies != after.policies.policies;
        let is_drift = |row: &MachineRow| row.drift.is_some();
        let drift = machines.as_ref().is_some_and(|machines| {
            let is_told = |row: &MachineRow| {
                is_drift(row) || before.rows.get(&row.name).is_some_and(is_drift)
            };
            let was_told = |name: &String| before.rows.get(name).is_some_and(is_drift);
            machines.changed.iter().any(is_told) || machines.removed.iter().any(was_told)
        });
        if machines.is_none() && !is_fleet_new && !plan && !policies {
            return None;
        }
        Some(Self {
            version: String::new(),
            as_of: after.fleet.as_of,
            machines,
            fleet: is_fleet_new.then(|| after.fleet.clone()),
            plan,
            policies,
            drift,
        })
    }
}

fn machines(
    before: &BTreeMap<String, MachineRow>,
    after: &BTreeMap<String, MachineRow>,
) -> Option<MachineChanges> {
    let changed: Vec<MachineRow> = after
        .iter()
        .filter(|(name, row)| before.get(*name) != Some(*row))
        .map(|(_, row)| row.clone())
        .collect();
    let removed: Vec<String> =
        before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
    (!changed.is_empty() || !removed.is_empty()).then_some(MachineChanges { changed, removed })
}

fn says_the_same(before: &PlanView, after: &PlanView) -> bool {
    before.entries.len() == after.entries.len()
        && before.notes == after.notes
        && before.entries.iter().zip(&after.entries).all(|(old, new)| old.says_the_same(new))
}
