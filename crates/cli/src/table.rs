//! How do rows become columns that line up? As kubectl does it: padded with spaces, no lines.

use clap::builder::styling::Style;

use crate::screen;

/// Between two columns, as in kubectl.
const GAP: &str = "   ";

/// One cell: its text and how it looks. The style does not count for the width.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    pub style: Style,
}

impl Cell {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: Style::new() }
    }

    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

/// A row, and the lines below it that do not follow the columns.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub cells: Vec<Cell>,
    pub notes: Vec<Cell>,
}

impl From<Vec<Cell>> for Row {
    fn from(cells: Vec<Cell>) -> Self {
        Self { cells, notes: Vec::new() }
    }
}

/// Lays out the rows, a line each, and their notes. With a `width` no line is longer: rows end in
/// `…`, notes are wrapped.
pub fn lines(rows: &[Row], width: Option<usize>) -> Vec<String> {
    let widths = column_widths(rows);
    let mut lines = Vec::new();
    for row in rows {
        lines.push(line(&row.cells, &widths, width));
        for note in &row.notes {
            lines.extend(note_lines(note, width));
        }
    }
    lines
}

/// How wide the widest row is, notes apart.
pub fn width(rows: &[Row]) -> usize {
    let widths = column_widths(rows);
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

fn column_widths(rows: &[Row]) -> Vec<usize> {
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.cells.get(column));
            cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0)
        })
        .collect()
}

fn line(cells: &[Cell], widths: &[usize], width: Option<usize>) -> String {
    // Blank cells at the end would only leave spaces there.
    let used = cells.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |last| last + 1);
    let mut room = width.unwrap_or(usize::MAX);
    let mut line = String::new();
    for (index, (cell, column)) in cells.iter().zip(widths).take(used).enumerate() {
        let gap = if index == 0 { "" } else { GAP };
        let is_last = index + 1 == used;
        let wanted = cell.text.chars().count();
        if room <= gap.len() {
            break;
        }
        room -= gap.len();
        let text = cut(&cell.text, room);
        line.push_str(gap);
        let style = cell.style;
        line.push_str(&format!("{style}{text}{style:#}"));
        let padding = if is_last { 0 } else { column.saturating_sub(wanted) };
        line.push_str(&" ".repeat(padding.min(room.saturating_sub(wanted))));
        room = room.saturating_sub(wanted.max(if is_last { 0 } else { *column }));
    }
    // Padding before a column that had no room left.
    line.truncate(line.trim_end_matches(' ').len());
    line
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut shortened: String = text.chars().take(room.saturating_sub(1)).collect();
    shortened.push('…');
    shortened
}

/// Wraps at spaces; later lines hang two further in than the first.
fn note_lines(note: &Cell, width: Option<usize>) -> Vec<String> {
    let text = note.text.trim_start();
    let indent = " ".repeat(note.text.chars().count() - text.chars().count());
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent.len() + 2).max(20));
    let style = note.style;
    let hanging = |index: usize| if index == 0 { "" } else { "  " };
    let lines = screen::wrapped("", text, room).into_iter().enumerate();
    lines.map(|(index, line)| format!("{indent}{}{style}{line}{style:#}", hanging(index))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Row {
        cells.iter().map(|text| Cell::plain(*text)).collect::<Vec<_>>().into()
    }

    #[test]
    fn columns_line_up_and_no_line_ends_in_spaces() {
        let rows =
            [row(&["NAME", "PHASE", "AGE"]), row(&["a-long-name", "", ""]), row(&["b", "x", "1s"])];
        assert_eq!(
            lines(&rows, None),
            ["NAME          PHASE   AGE", "a-long-name", "b             x       1s"]
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_with_an_ellipsis() {
        let rows = [row(&["NAME", "NODE"]), row(&["machine", "ip-10-0-0-1.ec2.internal"])];
        for width in 1..40 {
            for line in lines(&rows, Some(width)) {
                assert!(line.chars().count() <= width, "{width}: {line:?}");
            }
        }
        assert_eq!(lines(&rows, Some(16)), ["NAME      NODE", "machine   ip-10…"]);
    }

    #[test]
    fn notes_are_wrapped_and_keep_their_indent() {
        let mut noted = row(&["m"]);
        noted.notes = vec![Cell::plain("    one two three four five six")];
        assert_eq!(
            lines(&[noted.clone()], Some(26)),
            ["m", "    one two three four", "      five six"]
        );
        assert_eq!(lines(&[noted], None), ["m", "    one two three four five six"]);
    }
}
