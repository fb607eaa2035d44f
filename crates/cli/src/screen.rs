//! How wide is the terminal, and what fits on a line of it?

use std::io::IsTerminal;

use anyhow::Context;

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
