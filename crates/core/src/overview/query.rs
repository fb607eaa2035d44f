//! Which machines are asked for, in which order, and which page of them?

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::{instant::Instant, row::MachineRow, state::MachineState};

/// How many machines a page has at most, and unless it is said.
pub const LIMIT_MAX: usize = 500;
pub const LIMIT_USUAL: usize = 100;

/// How many values of one filter, and how many letters of the search, are looked at.
const VALUES_MAX: usize = 100;
const SEARCH_MAX: usize = 200;

/// Stands for "none" where a machine may have no pool or zone.
const NONE: &str = "-";

/// Which machines are asked for. Values of one filter are alternatives, filters narrow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub search: String,
    pub pools: Vec<String>,
    pub zones: Vec<String>,
    pub states: Vec<MachineState>,
    pub roles: Vec<String>,
    /// Only those that are down or need attention.
    pub attention: bool,
}

/// Which of them, in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub sort: Sort,
    pub is_descending: bool,
    /// 0: as many as usual.
    pub limit: usize,
    /// The name of the last one of the page before.
    pub after: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Name,
    /// The worst first.
    State,
    /// The oldest first.
    Age,
    Pool,
    Zone,
}

/// One page.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MachineList {
    pub version: String,
    #[serde(rename = "asOf")]
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    /// How many match, on all pages.
    pub total: usize,
    pub machines: Vec<MachineRow>,
    /// Gives the next page, where there is one.
    pub next: Option<String>,
}

/// All machines that match, as short as it can be said.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetMap {
    pub version: String,
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    pub total: usize,
    /// What the numbers of the machines stand for.
    pub pools: Vec<Option<String>>,
    pub zones: Vec<Option<String>>,
    pub states: Vec<MachineState>,
    /// Name, and the numbers of pool, zone and state; by pool, then by name.
    pub machines: Vec<(String, usize, usize, usize)>,
}

/// What is wrong with a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {problem}")]
pub struct BadQuestion {
    pub name: String,
    pub problem: String,
}

/// Reads a question out of names and values, as they stand in an address. What is not known is refused.
pub fn read<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(Filter, Page), BadQuestion> {
    let (mut filter, mut page) = (Filter::default(), Page::default());
    for (name, value) in pairs {
        let bad = |problem: &str| BadQuestion {
            name: name.chars().take(SEARCH_MAX).collect(),
            problem: problem.to_owned(),
        };
        if value.chars().count() > SEARCH_MAX {
            return Err(bad("Too long"));
        }
        let list = match name {
            "pool" => Some(&mut filter.pools),
            "zone" => Some(&mut filter.zones),
            "role" => Some(&mut filter.roles),
            _ => None,
        };
        if let Some(list) = list {
            if list.len() >= VALUES_MAX {
                return Err(bad("Too many"));
            }
            list.push(value.to_owned());
            continue;
        }
        match name {
            "search" => filter.search = value.trim().to_lowercase(),
            "state" => {
                let state = MachineState::ALL.into_iter().find(|one| one.as_str() == value);
                filter.states.push(state.ok_or_else(|| bad("no state of a machine"))?);
                filter.states.dedup();
            }
            "attention" => {
                filter.attention = value.parse().map_err(|_| bad("true or false"))?;
            }
            "sort" => {
                page.sort = match value {
                    "name" => Sort::Name,
                    "state" => Sort::State,
                    "age" => Sort::Age,
                    "pool" => Sort::Pool,
                    "zone" => Sort::Zone,
                    _ => return Err(bad("name, state, age, pool or zone")),
                };
            }
            "order" => {
                page.is_descending = match value {
                    "asc" => false,
                    "desc" => true,
                    _ => return Err(bad("asc or desc")),
                };
            }
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                page.limit = limit.ok_or_else(|| bad("a number from 1 to 500"))?;
            }
            "cursor" => page.after = Some(value.to_owned()),
            _ => return Err(bad("unknown")),
        }
    }
    Ok((filter, page))
}

impl Filter {
    pub fn matches(&self, row: &MachineRow) -> bool {
        let is_of = |wanted: &[String], value: Option<&str>| {
            wanted.is_empty() || wanted.iter().any(|one| one == value.unwrap_or(NONE))
        };
        is_of(&self.pools, row.pool.as_deref())
            && is_of(&self.zones, row.zone.as_deref())
            && is_of(&self.roles, row.role.as_deref())
            && (self.states.is_empty() || self.states.contains(&row.state))
            && (!self.attention || row.state >= MachineState::Attention)
            && self.finds(row)
    }

    fn finds(&self, row: &MachineRow) -> bool {
        if self.search.is_empty() {
            return true;
        }
        let instance = row.instance.as_ref().map(|instance| instance.id.as_str());
        let node = row.node.as_ref().map(|node| node.name.as_str());
        [Some(row.name.as_str()), row.pool.as_deref(), row.zone.as_deref(), instance, node]
            .into_iter()
            .flatten()
            .chain(row.addresses.iter().map(String::as_str))
            .any(|text| text.to_lowercase().contains(&self.search))
    }
}

/// The machines of one page, and the name after which the next one begins.
pub fn page<'a>(
    rows: &'a BTreeMap<String, MachineRow>,
    filter: &Filter,
    page: &Page,
) -> (usize, Vec<&'a MachineRow>, Option<String>) {
    let mut found: Vec<&MachineRow> = rows.values().filter(|row| filter.matches(row)).collect();
    // They are in the order of their names, and an equal order keeps that.
    match page.sort {
        Sort::Name => {}
        Sort::State => found.sort_by_key(|row| std::cmp::Reverse(row.state)),
        Sort::Age => found.sort_by_key(|row| row.created_at),
        Sort::Pool => found.sort_by_key(|row| row.pool.as_deref()),
        Sort::Zone => found.sort_by_key(|row| row.zone.as_deref()),
    }
    if page.is_descending {
        found.reverse();
    }
    let total = found.len();
    // Where the last one is gone meanwhile, its name still has a place in the order of names; in another
    // order it has none, and what is shown begins again rather than nowhere.
    let from = page.after.as_deref().map_or(0, |after| {
        let place = found.iter().position(|row| row.name == after).map(|index| index + 1);
        let by_name = || match (page.sort, page.is_descending) {
            (Sort::Name, false) => found.partition_point(|row| row.name.as_str() <= after),
            (Sort::Name, true) => found.partition_point(|row| row.name.as_str() >= after),
            _ => 0,
        };
        place.unwrap_or_else(by_name)
    });
    let limit = if page.limit == 0 { LIMIT_USUAL } else { page.limit };
    let rest = found.get(from..).unwrap_or_default();
    let shown: Vec<&MachineRow> = rest.iter().take(limit).copied().collect();
    let next = (rest.len() > shown.len()).then(|| shown.last().map(|row| row.name.clone()));
    (total, shown, next.flatten())
}

/// Lays all machines that match on the map.
pub fn map(
    rows: &BTreeMap<String, MachineRow>,
    filter: &Filter,
    version: String,
    as_of: Timestamp,
) -> FleetMap {
    let mut found: Vec<&MachineRow> = rows.values().filter(|row| filter.matches(row)).collect();
    found.sort_by_key(|row| row.pool.as_deref());
    let numbered = |of: fn(&MachineRow) -> Option<&str>| {
        let mut all: Vec<Option<&str>> = found.iter().map(|row| of(row)).collect();
        all.sort_unstable();
        all.dedup();
        let numbers: BTreeMap<Option<&str>, usize> =
            all.iter().enumerate().map(|(number, value)| (*value, number)).collect();
        let names = all.into_iter().map(|value| value.map(str::to_owned)).collect();
        (names, numbers)
    };
    let (pools, pool_numbers): (Vec<Option<String>>, _) = numbered(|row| row.pool.as_deref());
    let (zones, zone_numbers): (Vec<Option<String>>, _) = numbered(|row| row.zone.as_deref());
    let machines = found
        .iter()
        .map(|row| {
            let number = |of: &BTreeMap<Option<&str>, usize>, value: Option<&str>| {
                of.get(&value).copied().unwrap_or(0)
            };
            let state = MachineState::ALL.iter().position(|state| *state == row.state);
            (
                row.name.clone(),
                number(&pool_numbers, row.pool.as_deref()),
                number(&zone_numbers, row.zone.as_deref()),
                state.unwrap_or(0),
            )
        })
        .collect();
    let states = MachineState::ALL.to_vec();
    FleetMap { version, as_of, total: found.len(), pools, zones, states, machines }
}
