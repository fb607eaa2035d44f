//! How wide is the terminal, what fits on a line of it, and how is a picture drawn over the one before?

use std::io::{IsTerminal, Write};

use anyhow::Context;
use jiff::Timestamp;
use machinist_core::{decision::Severity, maintenance::Note};

use crate::zone::Zone;

/// Where no terminal says how wide it is.
pub const USUAL_WIDTH: usize = 80;

/// For whom an answer is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    pub zone: &'a Zone,
    /// None where the output goes to a file or another program.
    pub width: Option<usize>,
    pub is_wide: bool,
}

impl<'a> Layout<'a> {
    pub fn detect(zone: &'a Zone, is_wide: bool) -> Self {
        Self { zone, width: width(), is_wide }
    }

    /// How long a line of text may be.
    pub fn text_width(&self) -> usize {
        self.width.unwrap_or(USUAL_WIDTH)
    }

    /// How long a row may be; none where nothing is cut.
    pub fn table_width(&self) -> Option<usize> {
        self.width.filter(|_| !self.is_wide)
    }

    /// Whether one line says everything of a thing, for `grep` and other programs.
    pub fn is_one_line(&self) -> bool {
        self.table_width().is_none()
    }
}

pub fn joined(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

/// Warnings and what else there is to say, for the end.
pub fn notes(notes: &[Note], now: Timestamp, layout: &Layout<'_>) -> String {
    let mut text = String::new();
    for note in notes {
        let label = match note.severity {
            Severity::Warning => "Warning: ",
            Severity::Normal => "Note: ",
        };
        if text.is_empty() {
            text.push('\n');
        }
        let message = layout.zone.localize(&note.message, now);
        text.push_str(&joined(&wrapped(label, &message, layout.text_width())));
    }
    text
}

/// A clear screen to draw on.
pub fn clear() {
    print!("\x1b[2J");
}

/// Draws a picture over the one before: home, then each line over the old one, then nothing below. No
/// flicker.
pub fn draw_over(mut terminal: impl Write, picture: &str) -> std::io::Result<()> {
    let lines = fitting(picture);
    write!(terminal, "\x1b[H{}\x1b[J", lines.join("\x1b[K\n") + "\x1b[K")
}

/// The lines that fit the terminal's height: what scrolls away cannot be drawn over.
fn fitting(picture: &str) -> Vec<String> {
    let lines: Vec<&str> = picture.trim_end().lines().collect();
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let height = size.map_or(0, |size| usize::from(size.ws_row));
    if width().is_none() || height < 3 || lines.len() < height {
        return lines.into_iter().map(str::to_owned).collect();
    }
    // The summary is the last line and stays.
    let kept = height - 2;
    let hidden = lines.len() - kept - 1;
    let mut fitting: Vec<String> = lines.iter().take(kept).map(|line| (*line).to_owned()).collect();
    fitting.push(format!("… {hidden} more lines; {}", lines.last().copied().unwrap_or_default()));
    fitting
}

/// None where the output goes to a file or another program.
pub fn width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    // A terminal that does not know its size says zero.
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Who pipes into `head` has read enough; that is no failure.
pub fn ignore_closed_pipe(written: std::io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// A text on lines of a width: the first begins with `first`, the others with as many spaces. A word
/// that is longer than a line is broken.
pub fn wrapped(first: &str, text: &str, width: usize) -> Vec<String> {
    let indent = first.chars().count();
    let room = width.saturating_sub(indent).max(1);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        let used = line.chars().count();
        if used > 0 && used + 1 + word.len() > room {
            lines.push(std::mem::take(&mut line));
        }
        while word.len() > room {
            let rest = word.split_off(room);
            lines.push(word.into_iter().collect());
            word = rest;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word);
    }
    lines.push(line);
    let hanging = " ".repeat(indent);
    let begin = |index: usize| if index == 0 { first } else { hanging.as_str() };
    let lines = lines.into_iter().enumerate();
    lines.map(|(index, line)| format!("{}{line}", begin(index)).trim_end().to_owned()).collect()
}

/// A name that is too long loses its middle: names differ at both ends.
pub fn shortened(name: &str, room: usize) -> String {
    let length = name.chars().count();
    if length <= room {
        return name.to_owned();
    }
    let kept = room.saturating_sub(1);
    let tail = kept / 2;
    let head: String = name.chars().take(kept - tail).collect();
    let tail: String = name.chars().skip(length - tail).collect();
    format!("{head}…{tail}")
}

/// `1 machine`, `2 machines`.
pub fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_goes_on_below_its_beginning() {
        assert_eq!(wrapped("- ", "one two three", 9), ["- one two", "  three"]);
        assert_eq!(wrapped("- ", "one", 80), ["- one"]);
        assert_eq!(wrapped("", "abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("> ", "", 4), [">"]);
    }

    #[test]
    fn no_line_is_longer_than_the_width() {
        let text = "a-very-long-name-that-nobody-likes and short ones, ä ö ü, in between";
        for width in 8..60 {
            for line in wrapped("  ! ", text, width) {
                assert!(line.chars().count() <= width, "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn a_name_keeps_both_of_its_ends() {
        assert_eq!(shortened("worker-eu-west-1a-7xk2p", 11), "worke…7xk2p");
        assert_eq!(shortened("short", 5), "short");
        for room in 1..30 {
            let name = shortened("worker-eu-west-1a-7xk2p", room);
            assert!(name.chars().count() <= room, "{room}: {name}");
        }
    }
}
