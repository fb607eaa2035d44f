//! What does the report look like? Pure: the terminal's width is given.

use clap::builder::styling::{AnsiColor, Style};
use machinist_core::doctor::{Check, Finding, Level, Report};

use crate::screen::{counted, wrapped};
use crate::table::{self, Cell, Row};

/// A line for each check, below it what it found, and a summary.
pub fn table(report: &Report, width: Option<usize>) -> String {
    let bold = Style::new().bold();
    let header = ["CHECK", "RESULT", "WHAT WAS FOUND"].map(|title| Cell::styled(title, bold));
    let mut rows: Vec<Row> = vec![header.to_vec().into()];
    let names = report.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(names + RESULT).max(20));
    rows.extend(report.checks.iter().flat_map(|check| rows_of(check, room)));
    let mut text = table::lines(&rows, width).join("\n");
    text.push_str("\n\n");
    text.push_str(&summary(report));
    text.push('\n');
    text
}

/// What the second column takes, with the gaps on both sides.
const RESULT: usize = 3 + 7 + 3;

/// What a check says goes on below, where one line is too short.
fn rows_of(check: &Check, room: usize) -> Vec<Row> {
    let says = match check.findings.len() {
        0 => check.says.clone(),
        found => counted(found, "finding"),
    };
    let mut rows: Vec<Row> = wrapped("", &says, room)
        .into_iter()
        .map(|line| vec![Cell::default(), Cell::default(), Cell::plain(line)].into())
        .collect();
    if let Some(first) = rows.first_mut() {
        let level = Cell::styled(check.level.as_str(), style(check.level));
        first.cells.splice(..2, [Cell::plain(check.name), level]);
    }
    if let Some(last) = rows.last_mut() {
        last.notes = check.findings.iter().flat_map(notes).collect();
    }
    rows
}

fn notes(finding: &Finding) -> [Cell; 3] {
    let mark = match finding.level {
        Level::Ok => "-",
        Level::Warning => "!",
        Level::Failed => "✗",
    };
    let what = format!("  {mark} {}: {}", finding.code.as_str(), finding.what);
    [
        Cell::styled(what, style(finding.level)),
        Cell::plain(format!("      seen: {}", finding.seen)),
        Cell::plain(format!("      fix:  {}", finding.fix)),
    ]
}

fn summary(report: &Report) -> String {
    let counts: Vec<String> = [Level::Ok, Level::Warning, Level::Failed]
        .into_iter()
        .map(|level| (report.count(level), level.as_str()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    format!("{}: {}", counted(report.checks.len(), "check"), counts.join(", "))
}

/// What was found, a line each: the code, which scripts know it by.
pub fn names(report: &Report) -> String {
    report.findings().map(|finding| format!("{}\n", finding.code.as_str())).collect()
}

fn style(level: Level) -> Style {
    match level {
        Level::Ok => AnsiColor::Green.on_default(),
        Level::Warning => AnsiColor::Yellow.on_default(),
        Level::Failed => AnsiColor::Red.on_default().bold(),
    }
}
