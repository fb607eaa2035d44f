//! What do incidents look like in rows?

use clap::builder::styling::{AnsiColor, Style};
use machinist_core::overview::drift::Incident;

use super::Report;
use crate::{
    screen::{self, Layout, counted, shortened, wrapped},
    table::{self, Cell, Row},
};

/// kubectl's word for a cell without a value.
const NONE: &str = "<none>";
/// A machine's name is not cut to less than this.
const NAME_MIN: usize = 12;

pub(super) fn table(report: &Report, layout: &Layout<'_>) -> String {
    let title = format!("Behind our back, as of {}", layout.zone.whole(report.as_of));
    let mut text = screen::joined(&wrapped("", &title, layout.text_width())) + "\n";
    if report.incidents.is_empty() {
        let nothing = format!(
            "Nothing happened that is not over and forgotten ({} looked at).",
            counted(report.machines, "machine")
        );
        return text + &screen::joined(&wrapped("", &nothing, layout.text_width()));
    }
    text.push_str(&screen::joined(&rows_that_fit(report, layout)));
    text.push('\n');
    text.push_str(&screen::joined(&wrapped("", &summary(report), layout.text_width())));
    text
}

/// Names are cut where the terminal is too narrow for all of them.
fn rows_that_fit(report: &Report, layout: &Layout<'_>) -> Vec<String> {
    let Some(width) = layout.table_width() else {
        return table::lines(&rows(report, layout, usize::MAX), None);
    };
    let whole = table::width(&rows(report, layout, usize::MAX));
    let longest = report.incidents.iter().map(|one| one.machine.chars().count()).max();
    let name = longest.unwrap_or(0).saturating_sub(whole.saturating_sub(width)).max(NAME_MIN);
    table::lines(&rows(report, layout, name), Some(width))
}

fn rows(report: &Report, layout: &Layout<'_>, name: usize) -> Vec<Row> {
    let bold = Style::new().bold();
    let mut titles = vec!["SINCE", "MACHINE", "WHAT HAPPENED", "NOW"];
    if layout.is_one_line() {
        titles.extend(["POOL", "ZONE", "INSTANCE", "CAUSE", "DONE", "NEXT"]);
    }
    let header = titles.into_iter().map(|title| Cell::styled(title, bold)).collect::<Vec<_>>();
    let incidents = report.incidents.iter().map(|one| row(one, report, layout, name));
    std::iter::once(header.into()).chain(incidents).collect()
}

fn row(one: &Incident, report: &Report, layout: &Layout<'_>, name: usize) -> Row {
    let mut what = one.words.to_owned();
    if one.times > 1 {
        what.push_str(&format!(" ({} times)", one.times));
    }
    let mut cells = vec![
        Cell::plain(layout.zone.column(one.since, report.as_of)),
        Cell::plain(shortened(&one.machine, name)),
        Cell::plain(what),
        standing(one, report, layout),
    ];
    let done: Vec<String> = one
        .done
        .iter()
        .map(|deed| {
            let words = layout.zone.localize(&deed.words, report.as_of);
            format!("{}: {words}", layout.zone.words(deed.at, report.as_of))
        })
        .collect();
    let next = one.next.as_ref().map(|next| layout.zone.localize(next, report.as_of));
    let cause = one.cause.as_ref().map(|cause| layout.zone.localize(cause, report.as_of));
    if layout.is_one_line() {
        let word = |text: Option<String>| text.map_or_else(none, Cell::plain);
        cells.push(word(one.pool.clone()));
        cells.push(word(one.zone.clone()));
        cells.push(word(one.instance.clone()));
        cells.push(word(cause));
        cells.push(word(Some(done.join("; ")).filter(|done| !done.is_empty())));
        cells.push(word(next));
        return cells.into();
    }
    let mut notes = Vec::new();
    notes.extend(cause.map(|cause| format!("    cause: {cause}")));
    notes.extend(done.iter().map(|done| format!("    {done}")));
    notes.extend(next.map(|next| format!("    → {next}")));
    notes.extend(one.failure.as_ref().map(|why| format!("    the last attempt failed: {why}")));
    let style = if one.is_over { Style::new().dimmed() } else { Style::new() };
    Row { cells, notes: notes.into_iter().map(|note| Cell::styled(note, style)).collect() }
}

fn standing(one: &Incident, report: &Report, layout: &Layout<'_>) -> Cell {
    if one.needs_a_person {
        return Cell::styled("needs you", AnsiColor::Red.on_default().bold());
    }
    if !one.is_over {
        return Cell::styled("open", AnsiColor::Yellow.on_default());
    }
    let at = one.over_at.map(|at| format!(" {}", near(at, one, report, layout)));
    Cell::styled(format!("over{}", at.unwrap_or_default()), AnsiColor::Green.on_default())
}

/// The time alone, where the day is that of the beginning.
fn near(at: jiff::Timestamp, one: &Incident, report: &Report, layout: &Layout<'_>) -> String {
    if layout.zone.date(at) == layout.zone.date(one.since) {
        layout.zone.clock(at)
    } else {
        layout.zone.words(at, report.as_of)
    }
}

fn summary(report: &Report) -> String {
    let count = |is: fn(&&Incident) -> bool| report.incidents.iter().filter(is).count();
    let parts: Vec<String> = [
        (count(|one| one.needs_a_person), "for you to decide"),
        (count(|one| !one.is_over && !one.needs_a_person), "open"),
        (count(|one| one.is_over), "over"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, words)| format!("{count} {words}"))
    .collect();
    format!("{}: {}", counted(report.incidents.len(), "incident"), parts.join(", "))
}

fn none() -> Cell {
    Cell::styled(NONE, Style::new().dimmed())
}
