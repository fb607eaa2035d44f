//! Is the fleet well, what will happen next, and what is stuck?

use std::collections::BTreeMap;

use jiff::Timestamp;
use machinist_api::{MachineSet, names::label};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    instant::Instant,
    picture::Picture,
    row::{MachineRow, StandingWord},
    seen::Waiting,
    state::{MachineState, State},
    waiting,
    wish::pause::{self, Place},
};
use crate::maintenance::Note;

/// How many machines that need attention are named; the rest are counted.
const NAMED_MAX: usize = 20;
/// How many pauses and notes are told.
const TOLD_MAX: usize = 50;

/// The whole fleet in short.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetView {
    pub version: String,
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    pub namespace: String,
    /// All of it in one sentence.
    pub headline: String,
    pub counts: Counts,
    /// What the words for states mean, in the order of the legend.
    pub states: Vec<State>,
    pub zones: Vec<ZoneView>,
    /// By name.
    pub pools: Vec<PoolView>,
    /// Machines that no pool keeps.
    pub poolless: Counts,
    /// The worst first; not all of them.
    pub attention: Vec<MachineRow>,
    pub attention_total: usize,
    pub maintenance: MaintenanceCounts,
    /// Machines to which something happened behind the cluster's back that is not over.
    pub drift: usize,
    pub pauses: Vec<PauseView>,
    pub notes: Vec<Note>,
}

/// How many machines are in which state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub machines: usize,
    pub by_state: BTreeMap<&'static str, usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ZoneView {
    pub name: Option<String>,
    pub counts: Counts,
}

/// A MachineSet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolView {
    pub name: String,
    pub zone: Option<String>,
    pub role: Option<String>,
    pub instance_type: Option<String>,
    pub desired: i32,
    pub current: i32,
    pub ready: i32,
    pub available: i32,
    pub counts: Counts,
    /// What holds it up.
    pub waiting: Option<Waiting>,
    /// Why maintenance of its machines is paused.
    pub paused: Option<String>,
}

/// How many maintenances there are, by how they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceCounts {
    pub under_way: usize,
    pub due: usize,
    pub planned: usize,
    pub blocked: usize,
    pub late: usize,
    pub left_alone: usize,
    pub need_approval: usize,
    #[schemars(with = "Option<Instant>")]
    pub next_start: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PauseView {
    pub place: PlaceWord,
    pub name: Option<String>,
    pub why: String,
}

/// What can be paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PlaceWord {
    Cluster,
    Policy,
    Pool,
    Machine,
}

impl Default for Counts {
    fn default() -> Self {
        let none = MachineState::ALL.into_iter().map(|state| (state.as_str(), 0));
        Self { machines: 0, by_state: none.collect() }
    }
}

impl Counts {
    fn add(&mut self, state: MachineState) {
        self.machines += 1;
        *self.by_state.entry(state.as_str()).or_default() += 1;
    }

    pub fn of(&self, state: MachineState) -> usize {
        self.by_state.get(state.as_str()).copied().unwrap_or(0)
    }
}

/// The list of pools.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolList {
    pub version: String,
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    pub pools: Vec<PoolView>,
}

/// Says how the fleet is.
pub fn fleet(picture: &Picture<'_>, rows: &BTreeMap<String, MachineRow>) -> FleetView {
    let mut counts = Counts::default();
    let mut poolless = Counts::default();
    let mut by_pool: BTreeMap<&str, (Counts, Option<&MachineRow>)> = BTreeMap::new();
    let mut by_zone: BTreeMap<Option<&str>, Counts> = BTreeMap::new();
    let mut maintenance = MaintenanceCounts::default();
    let mut drift = 0;
    for row in rows.values() {
        counts.add(row.state);
        by_zone.entry(row.zone.as_deref()).or_default().add(row.state);
        match row.pool.as_deref() {
            Some(pool) => {
                let (counts, first) = by_pool.entry(pool).or_default();
                counts.add(row.state);
                first.get_or_insert(row);
            }
            None => poolless.add(row.state),
        }
        drift += usize::from(row.drift.is_some());
        if let Some(planned) = &row.maintenance {
            match planned.standing {
                StandingWord::UnderWay => maintenance.under_way += 1,
                StandingWord::Due => maintenance.due += 1,
                StandingWord::Planned | StandingWord::MovesEvent => {
                    maintenance.planned += 1;
                    let next = maintenance.next_start.into_iter().chain(planned.start).min();
                    maintenance.next_start = next;
                }
                StandingWord::Blocked => maintenance.blocked += 1,
                StandingWord::LeftAlone => maintenance.left_alone += 1,
            }
            maintenance.late += usize::from(planned.is_late);
            maintenance.need_approval += usize::from(planned.needs_approval);
        }
    }
    let mut attention: Vec<&MachineRow> =
        rows.values().filter(|row| row.state >= MachineState::Attention).collect();
    attention.sort_by_key(|row| std::cmp::Reverse(row.state));
    let attention_total = attention.len();
    let pools = picture
        .objects
        .sets
        .iter()
        .map(|set| {
            let name = set.metadata.name.as_deref().unwrap_or_default();
            let (counts, first) = by_pool.remove(name).unwrap_or_default();
            pool(set, counts, first, picture)
        })
        .collect();
    FleetView {
        version: String::new(),
        as_of: picture.now,
        namespace: picture.objects.namespace.to_owned(),
        headline: headline(&counts, &maintenance),
        counts,
        states: MachineState::ALL.into_iter().map(MachineState::explained).collect(),
        zones: by_zone
            .into_iter()
            .map(|(name, counts)| ZoneView { name: name.map(str::to_owned), counts })
            .collect(),
        pools,
        poolless,
        attention: attention.into_iter().take(NAMED_MAX).cloned().collect(),
        attention_total,
        maintenance,
        drift,
        pauses: pause::all(picture.objects).into_iter().take(TOLD_MAX).map(pause_view).collect(),
        notes: picture.plan.notes.iter().take(TOLD_MAX).cloned().collect(),
    }
}

fn pool(
    set: &MachineSet,
    counts: Counts,
    first: Option<&MachineRow>,
    picture: &Picture<'_>,
) -> PoolView {
    let name = set.metadata.name.clone().unwrap_or_default();
    let status = set.status.clone().unwrap_or_default();
    let instance = first.and_then(|row| row.instance.as_ref());
    PoolView {
        zone: picture.gathered.fleet.pools.get(name.as_str()).and_then(|pool| pool.zone.clone()),
        role: set.spec.template.metadata.labels.get(label::MACHINE_ROLE).cloned(),
        instance_type: instance.and_then(|instance| instance.type_.clone()),
        desired: set.spec.replicas.unwrap_or(1),
        current: status.replicas.unwrap_or(0),
        ready: status.ready_replicas.unwrap_or(0),
        available: status.available_replicas.unwrap_or(0),
        counts,
        waiting: waiting::of_pool(set),
        paused: pause::of(&set.metadata),
        name,
    }
}

fn pause_view((place, why): (Place, String)) -> PauseView {
    let (place, name) = match place {
        Place::Cluster => (PlaceWord::Cluster, None),
        Place::Policy(name) => (PlaceWord::Policy, Some(name)),
        Place::Pool(name) => (PlaceWord::Pool, Some(name)),
        Place::Machine(name) => (PlaceWord::Machine, Some(name)),
    };
    PauseView { place, name, why }
}

fn headline(counts: &Counts, maintenance: &MaintenanceCounts) -> String {
    if counts.machines == 0 {
        return "There is no machine.".to_owned();
    }
    let well = counts.of(MachineState::Well);
    let mut parts = vec![if well == counts.machines {
        match well {
            1 => "The only machine is well".to_owned(),
            all => format!("All {all} machines are well"),
        }
    } else {
        format!("{well} of {} machines are well", counts.machines)
    }];
    let are = |count: usize| if count == 1 { "is" } else { "are" };
    for (state, words) in [
        (MachineState::Down, "down"),
        (MachineState::Attention, "not as they should be"),
        (MachineState::Starting, "starting"),
        (MachineState::Leaving, "leaving"),
        (MachineState::Maintenance, "in maintenance"),
    ] {
        let count = counts.of(state);
        let words = match (state, count) {
            (MachineState::Attention, 1) => "not as it should be",
            _ => words,
        };
        if count > 0 {
            parts.push(format!("{count} {} {words}", are(count)));
        }
    }
    if maintenance.need_approval > 0 {
        let count = maintenance.need_approval;
        let wait = if count == 1 { "maintenance waits" } else { "maintenances wait" };
        parts.push(format!("{count} {wait} for an approval"));
    }
    if let Some(start) = maintenance.next_start {
        parts.push(format!("the next maintenance begins at {start}"));
    }
    format!("{}.", parts.join("; "))
}
