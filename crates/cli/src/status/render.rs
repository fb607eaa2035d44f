//! What does the report look like? Pure: the clock and the terminal's width are given.

use clap::builder::styling::{AnsiColor, Style};
use jiff::Timestamp;
use machinist_api::names::phase;
use machinist_core::cluster_api::maintained::parts;

use super::judge::{
    InstanceView, MachineView, NO_PHASE, NodeState, NodeView, PoolView, Report, Waiting,
};
use crate::age;
use crate::document::machine_name;
use crate::screen::shortened;
use crate::table::{self, Cell, Row};
use crate::zone::Zone;

/// kubectl's word for a cell without a value.
const NONE: &str = "<none>";
const NO_POOL: &str = "(no pool)";

/// For whom it is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    pub is_wide: bool,
    pub with_namespaces: bool,
    /// None where the output goes to a file or another program: nothing is cut then.
    pub terminal_width: Option<usize>,
    /// In which the times of sentences are written.
    pub zone: &'a Zone,
    pub now: Timestamp,
}

/// How much room JSON and YAML take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    Indented,
    /// One line, or one document, for each report of many.
    OneLine,
}

impl Layout<'_> {
    /// On a terminal what a machine waits for is below it, whole. In a file it is the last column,
    /// so that one line says everything of a machine.
    const fn has_waiting_column(&self) -> bool {
        self.is_wide || self.terminal_width.is_none()
    }

    const fn width(&self) -> Option<usize> {
        if self.is_wide { None } else { self.terminal_width }
    }
}

/// The table, the summary below it.
pub fn table(report: &Report, layout: &Layout<'_>) -> String {
    if report.pools.is_empty() && report.machines_without_pool.is_empty() {
        return "No machines and no pools found.\n".to_owned();
    }
    let rows = rows(report, layout, room(report, layout));
    let mut text = table::lines(&rows, layout.width()).join("\n");
    text.push_str("\n\n");
    text.push_str(&summary(report));
    text.push('\n');
    text
}

fn rows(report: &Report, layout: &Layout<'_>, room: Room) -> Vec<Row> {
    let mut rows = vec![header(layout, room)];
    for pool in &report.pools {
        rows.push(pool_row(pool, layout, room));
        rows.extend(pool.machines.iter().map(|machine| machine_row(machine, layout, room)));
    }
    if !report.machines_without_pool.is_empty() {
        if !report.pools.is_empty() {
            let mut cells = namespace_cell("", layout);
            cells.push(Cell::styled(NO_POOL, Style::new().dimmed()));
            rows.push(cells.into());
        }
        let machines = report.machines_without_pool.iter();
        rows.extend(machines.map(|machine| machine_row(machine, layout, room)));
    }
    rows
}

/// What a row may take. A narrow terminal costs, in this order: the domain, which all nodes share; the age; the
/// middle of long names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    has_domains: bool,
    has_age: bool,
    name: usize,
}

impl Room {
    pub const PLENTY: Self = Self { has_domains: true, has_age: true, name: usize::MAX };
}

/// Names are not made shorter than this: they would say nothing.
const NAME_MIN: usize = 16;
/// How far in a machine is, below its pool.
const INDENT: usize = 2;

fn room(report: &Report, layout: &Layout<'_>) -> Room {
    let mut room = Room::PLENTY;
    let Some(width) = layout.width() else { return room };
    let lacking = |room: Room| table::width(&rows(report, layout, room)).saturating_sub(width);
    if lacking(room) > 0 {
        room.has_domains = false;
    }
    if lacking(room) > 0 {
        room.has_age = false;
    }
    let lack = lacking(room);
    if lack > 0 {
        let machines = report.machines().map(|machine| machine.name.chars().count() + INDENT);
        let pools = report.pools.iter().map(|pool| pool.name.chars().count());
        let longest = machines.chain(pools).max().unwrap_or(0);
        room.name = longest.saturating_sub(lack).max(NAME_MIN);
    }
    room
}

pub fn summary(report: &Report) -> String {
    let summary = &report.summary;
    let phases: Vec<String> =
        summary.by_phase.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    let phases = if phases.is_empty() { "none".to_owned() } else { phases.join(", ") };
    let counted = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    let waiting: Vec<String> =
        [(summary.waiting_pools, "pool"), (summary.waiting_machines, "machine")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, noun)| counted(count, noun))
            .collect();
    let verb = if summary.waiting_pools + summary.waiting_machines == 1 { "waits" } else { "wait" };
    let waiting = match waiting.as_slice() {
        [] => "nothing waits".to_owned(),
        who => format!("{} {verb}", who.join(" and ")),
    };
    format!("{}: {phases}; {waiting}", counted(summary.machines, "machine"))
}

/// kubectl's `-o name`.
pub fn names(report: &Report) -> String {
    let pools = report.pools.iter().map(|pool| match parts(&pool.name) {
        // Of a set or a deployment: `machinist explain` takes this word for both.
        Some(_) => format!("pool/{}\n", pool.name),
        None => format!("machineset.machine.openshift.io/{}\n", pool.name),
    });
    pools.chain(report.machines().map(|machine| machine_name(&machine.name))).collect()
}

fn namespace_cell(namespace: &str, layout: &Layout<'_>) -> Vec<Cell> {
    if layout.with_namespaces { vec![Cell::plain(namespace)] } else { Vec::new() }
}

fn header(layout: &Layout<'_>, room: Room) -> Row {
    let mut titles = Vec::new();
    if layout.with_namespaces {
        titles.push("NAMESPACE");
    }
    titles.extend(["NAME", "PHASE"]);
    if room.has_age {
        titles.push("AGE");
    }
    titles.extend(["INSTANCE", "NODE"]);
    if layout.is_wide {
        titles.extend(["TYPE", "ZONE"]);
    }
    if layout.has_waiting_column() {
        titles.push("WAITING FOR");
    }
    let bold = Style::new().bold();
    titles.into_iter().map(|title| Cell::styled(title, bold)).collect::<Vec<_>>().into()
}

fn pool_row(pool: &PoolView, layout: &Layout<'_>, room: Room) -> Row {
    let bold = Style::new().bold();
    let ready = format!("{}/{} ready", pool.ready, pool.desired);
    let style = if pool.waiting.is_some() { attention() } else { Style::new() };
    let mut cells = namespace_cell(&pool.namespace, layout);
    cells.push(Cell::styled(shortened(&pool.name, room.name), bold));
    cells.push(Cell::styled(ready, style));
    cells.extend(age_cell(pool.created_at, layout, room));
    cells.extend([Cell::default(), Cell::default()]);
    if layout.is_wide {
        cells.extend([Cell::default(), Cell::default()]);
    }
    with_waiting(cells, pool.waiting.as_ref(), "  ", layout)
}

pub fn machine_row(machine: &MachineView, layout: &Layout<'_>, room: Room) -> Row {
    let phase = if machine.phase.is_empty() { NO_PHASE } else { &machine.phase };
    let mut cells = namespace_cell(&machine.namespace, layout);
    let name = shortened(&machine.name, room.name.saturating_sub(INDENT));
    cells.push(Cell::plain(format!("{}{name}", " ".repeat(INDENT))));
    cells.push(Cell::styled(phase, phase_style(machine)));
    cells.extend(age_cell(machine.created_at, layout, room));
    cells.push(machine.instance.as_ref().map_or_else(none, instance_cell));
    cells.push(machine.node.as_ref().map_or_else(none, |node| node_cell(node, room)));
    if layout.is_wide {
        let instance = machine.instance.as_ref();
        let word = |text: Option<&String>| text.map_or_else(none, Cell::plain);
        cells.push(word(instance.and_then(|instance| instance.type_.as_ref())));
        cells.push(word(instance.and_then(|instance| instance.zone.as_ref())));
    }
    with_waiting(cells, machine.waiting.as_ref(), "    ", layout)
}

fn with_waiting(
    mut cells: Vec<Cell>,
    waiting: Option<&Waiting>,
    indent: &str,
    layout: &Layout<'_>,
) -> Row {
    let Some(waiting) = waiting else { return cells.into() };
    let since = waiting.since.map(|since| format!(" (for {})", age::since(since, layout.now)));
    let message = layout.zone.localize(&waiting.message, layout.now);
    let text = format!("{message}{}", since.unwrap_or_default());
    if layout.has_waiting_column() {
        // A sentence of several lines would break the table.
        cells
            .push(Cell::styled(text.split_whitespace().collect::<Vec<_>>().join(" "), attention()));
        return cells.into();
    }
    Row { cells, notes: vec![Cell::styled(format!("{indent}↳ {text}"), attention())] }
}

fn age_cell(created: Option<Timestamp>, layout: &Layout<'_>, room: Room) -> Option<Cell> {
    let age = || created.map_or_else(none, |at| Cell::plain(age::since(at, layout.now)));
    room.has_age.then(age)
}

fn instance_cell(instance: &InstanceView) -> Cell {
    match instance.state.as_deref() {
        None | Some("running") => Cell::plain(&instance.id),
        Some(state) => Cell::styled(format!("{} ({state})", instance.id), attention()),
    }
}

fn node_cell(node: &NodeView, room: Room) -> Cell {
    let name = match room.has_domains {
        true => node.name.as_str(),
        false => node.name.split('.').next().unwrap_or_default(),
    };
    let state = match node.state {
        NodeState::Ready | NodeState::NotVisible if node.is_cordoned => "cordoned",
        NodeState::Ready | NodeState::NotVisible => return Cell::plain(name),
        NodeState::NotReady => "not ready",
        NodeState::Unknown => "silent",
        NodeState::Missing => "gone",
    };
    Cell::styled(format!("{name} ({state})"), attention())
}

fn none() -> Cell {
    Cell::styled(NONE, Style::new().dimmed())
}

fn phase_style(machine: &MachineView) -> Style {
    match machine.phase.as_str() {
        phase::FAILED => AnsiColor::Red.on_default().bold(),
        phase::RUNNING if machine.waiting.is_none() => AnsiColor::Green.on_default(),
        _ => attention(),
    }
}

const fn attention() -> Style {
    AnsiColor::Yellow.on_default()
}
