//! What does one happening look like? Two lines on a terminal, one elsewhere, the same whether it is one of
//! many or has just come.

use clap::builder::styling::{AnsiColor, Style};
use jiff::Timestamp;
use machinist_core::{
    decision::Severity,
    overview::timeline::{Happening, Source},
};

use crate::screen::{Layout, counted, joined, wrapped};

/// Room for the longest of the sources.
const SOURCE: usize = 9;
/// Between time, source, name and reason.
const GAPS: usize = 6;
/// How far in the message is, below the rest.
const INDENT: &str = "    ";

pub(super) fn happening(one: &Happening, now: Timestamp, layout: &Layout<'_>) -> String {
    let time = layout.zone.second(one.time, now);
    let source = one.source.as_str();
    let style = source_style(one.source);
    let is_warning = one.severity == Severity::Warning;
    let reason_style = if is_warning { AnsiColor::Yellow.on_default() } else { Style::new() };
    let reason = &one.reason;
    let times = if one.count > 1 { format!(" ({} times)", one.count) } else { String::new() };
    // A sentence of several lines would break the list.
    let message = one.message.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = layout.zone.localize(&message, now);
    let padding = " ".repeat(SOURCE.saturating_sub(source.len()));
    let head = format!(
        "{time}  {style}{source}{style:#}{padding}  {}  {reason_style}{reason}{reason_style:#}{times}",
        one.about
    );
    let Some(width) = layout.table_width() else { return format!("{head}  {message}\n") };
    // A long name goes below, where the message is; what may be longer than a terminal is broken there.
    let taken = [time.as_str(), &one.about, reason, &times].map(|text| text.chars().count());
    let is_long = taken.iter().sum::<usize>() + SOURCE + GAPS > width;
    let (head, message) = match is_long {
        true => {
            let head = format!(
                "{time}  {style}{source}{style:#}{padding}  {reason_style}{reason}{reason_style:#}{times}"
            );
            (head, format!("{}: {message}", one.about))
        }
        false => (head, message),
    };
    format!("{head}\n{}", joined(&wrapped(INDENT, &message, width)))
}

/// Older ones that are not shown.
pub(super) fn left_out(count: usize, layout: &Layout<'_>) -> String {
    if count == 0 {
        return String::new();
    }
    let text = format!("{} left out; --limit shows more.", counted(count, "older one"));
    joined(&wrapped("", &text, layout.text_width()))
}

fn source_style(source: Source) -> Style {
    match source {
        Source::Cloud => AnsiColor::Cyan.on_default(),
        Source::Cluster => AnsiColor::Blue.on_default(),
        Source::Machinist => AnsiColor::Magenta.on_default(),
    }
}
