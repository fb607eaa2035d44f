//! What do openings and freezes look like on a person's screen?

use clap::builder::styling::{AnsiColor, Style};
use jiff::Timestamp;
use machinist_core::decision::Severity;

use crate::{
    screen::{counted, wrapped},
    table::{self, Cell, Row},
    zone::{Zone, in_words},
};
use machinist_core::overview::windows::{FreezeView, OpeningView, PolicyView, Report};

const USUAL_WIDTH: usize = 80;

pub(super) fn table(report: &Report, zone: &Zone, width: Option<usize>) -> String {
    let wrap = width.unwrap_or(USUAL_WIDTH);
    let mut lines = wrapped("", &format!("From {} on", zone.whole(report.from)), wrap);
    for policy in &report.policies {
        lines.push(String::new());
        lines.extend(wrapped("", &title(policy), wrap));
        for fault in &policy.faults {
            lines.extend(wrapped("  ", fault, wrap));
        }
        let mut rows = Vec::new();
        if !policy.openings.is_empty() {
            rows.push(header(&["  OPENS", "CLOSES", "FOR", "WINDOW"]));
            let openings = policy.openings.iter();
            rows.extend(openings.map(|one| opening_row(one, report.from, zone, wrap)));
        }
        if !policy.freezes.is_empty() {
            rows.push(header(&["  FROZEN FROM", "TO", "FOR", "FREEZE"]));
            rows.extend(policy.freezes.iter().map(|one| freeze_row(one, report.from, zone)));
        }
        lines.extend(table::lines(&rows, width));
    }
    if !report.notes.is_empty() {
        lines.push(String::new());
    }
    for note in &report.notes {
        let label = match note.severity {
            Severity::Warning => "Warning: ",
            Severity::Normal => "Note: ",
        };
        lines.extend(wrapped(label, &note.message, wrap));
    }
    lines.join("\n") + "\n"
}

fn title(policy: &PolicyView) -> String {
    let machines = counted(policy.machines, "machine");
    let mut title = match &policy.name {
        Some(name) => format!("Policy {name}, {machines}"),
        None => format!("Without a policy, {machines}"),
    };
    if let Some(why) = &policy.paused {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        title.push_str(&format!(" (paused{why})"));
    }
    if !policy.faults.is_empty() {
        title.push_str(": cannot be used, and its machines wait");
    } else if policy.any_hour && policy.freezes.is_empty() {
        title.push_str(": any hour is allowed");
    } else if policy.any_hour {
        title.push_str(": any hour is allowed that is not frozen");
    } else if policy.openings.is_empty() {
        title.push_str(": no window opens within ten years");
    }
    title
}

fn header(titles: &[&str]) -> Row {
    let bold = Style::new().bold();
    titles.iter().map(|title| Cell::styled(*title, bold)).collect::<Vec<_>>().into()
}

fn opening_row(opening: &OpeningView, from: Timestamp, zone: &Zone, width: usize) -> Row {
    let is_open = opening.start <= from;
    let style = if is_open { AnsiColor::Green.on_default() } else { Style::new() };
    let cells = vec![
        Cell::styled(format!("  {}", zone.column(opening.start, from)), style),
        Cell::plain(zone.column(opening.end, from)),
        Cell::plain(in_words(opening.end.duration_since(opening.start))),
        Cell::plain(opening.windows.join(",")),
    ];
    let mut remarks = Vec::new();
    if is_open {
        remarks.push("open now".to_owned());
    }
    if !opening.until.is_empty() {
        remarks.push(format!("cut short by freeze {}", opening.until.join(", ")));
    }
    if let Some(change) = zone.clock_change(opening.start, opening.end) {
        remarks.push(zone.change_in_words(change));
    }
    let notes = if remarks.is_empty() {
        Vec::new()
    } else {
        wrapped("    ", &remarks.join("; "), width).into_iter().map(Cell::plain).collect()
    };
    Row { cells, notes }
}

fn freeze_row(freeze: &FreezeView, from: Timestamp, zone: &Zone) -> Row {
    let is_frozen = freeze.start <= from;
    let style = if is_frozen { AnsiColor::Yellow.on_default() } else { Style::new() };
    let days = freeze.end.duration_since(freeze.start).as_hours() / 24;
    let length = match days {
        0..2 => in_words(freeze.end.duration_since(freeze.start)),
        days => format!("{days}d"),
    };
    vec![
        Cell::styled(format!("  {}", zone.column(freeze.start, from)), style),
        Cell::plain(zone.column(freeze.end, from)),
        Cell::plain(length),
        Cell::plain(&freeze.name),
    ]
    .into()
}
