//! What may come next in `kubectl machinist …`? kubectl asks a program `kubectl_complete-machinist` for it, with
//! the words so far, of which the last is not finished. It expects a line for each candidate and, last, a number
//! that says what else the shell may offer.

use clap::{Arg, Command, ValueHint};

/// Names of files, besides: what is completed is one, or may be.
const WITH_FILES: u8 = 0;
/// Nothing besides.
const NO_FILES: u8 = 4;

/// The program that kubectl looks for. It asks the plugin itself, so it never gets old.
pub(super) const SCRIPT: &str = "\
#!/bin/sh
# Completion of `kubectl machinist`: kubectl runs this if it is in the PATH as kubectl_complete-machinist.
exec kubectl-machinist complete -- \"$@\"
";

/// What is printed for the words so far.
pub(super) fn answer(mut command: Command, words: &[String]) -> String {
    command.build();
    let (before, last) = match words {
        [before @ .., last] => (before, last.as_str()),
        [] => (&[][..], ""),
    };
    let place = Place::after(&command, before);
    let (candidates, directive) = place.candidates(last);
    let mut text = String::new();
    for (word, help) in candidates {
        text.push_str(&word);
        if !help.is_empty() {
            text.push_str(&format!("\t{help}"));
        }
        text.push('\n');
    }
    text + &format!(":{directive}\n")
}

/// Where in the definition the finished words lead.
struct Place<'a> {
    command: &'a Command,
    /// A flag that still wants its value.
    open: Option<&'a Arg>,
}

impl<'a> Place<'a> {
    fn after(root: &'a Command, words: &[String]) -> Self {
        let mut place = Self { command: root, open: None };
        for word in words {
            if place.open.take().is_some() {
                continue;
            }
            if word.starts_with('-') {
                let has_value = word.contains('=');
                place.open = place.flag(word).filter(|flag| takes_value(flag) && !has_value);
            } else if let Some(next) = place.command.find_subcommand(word) {
                place.command = next;
            }
        }
        place
    }

    fn flag(&self, word: &str) -> Option<&'a Arg> {
        let word = word.split('=').next().unwrap_or_default();
        let mut flags = self.command.get_arguments();
        match word.strip_prefix("--") {
            Some(long) => flags.find(|flag| flag.get_long() == Some(long)),
            None => {
                let short = word.strip_prefix('-')?.chars().next();
                flags.find(|flag| flag.get_short() == short)
            }
        }
    }

    fn candidates(&self, last: &str) -> (Vec<(String, String)>, u8) {
        if let Some(flag) = self.open {
            return (values(flag, last, ""), directive(flag));
        }
        if let (Some((name, begun)), Some(flag)) = (last.split_once('='), self.flag(last)) {
            return (values(flag, begun, &format!("{name}=")), directive(flag));
        }
        if last.starts_with('-') {
            let flags = self.command.get_arguments().filter(|flag| !flag.is_hide_set());
            let named =
                flags.filter_map(|flag| Some((format!("--{}", flag.get_long()?), help(flag))));
            return (named.filter(|(name, _)| name.starts_with(last)).collect(), NO_FILES);
        }
        let commands = self.command.get_subcommands().filter(|one| !one.is_hide_set());
        let named = commands.map(|one| {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            (one.get_name().to_owned(), about)
        });
        let mut found: Vec<(String, String)> =
            named.filter(|(name, _)| name.starts_with(last)).collect();
        for positional in self.command.get_positionals() {
            found.extend(values(positional, last, ""));
        }
        (found, self.command.get_positionals().map(directive).min().unwrap_or(NO_FILES))
    }
}

fn takes_value(flag: &Arg) -> bool {
    flag.get_num_args().is_some_and(|count| count.takes_values())
}

fn values(flag: &Arg, begun: &str, before: &str) -> Vec<(String, String)> {
    let all = if takes_value(flag) { flag.get_possible_values() } else { Vec::new() };
    let shown = all.iter().filter(|value| !value.is_hide_set());
    shown
        .filter(|value| value.get_name().starts_with(begun))
        .map(|value| {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            (format!("{before}{}", value.get_name()), help)
        })
        .collect()
}

fn help(flag: &Arg) -> String {
    flag.get_help().map(|help| help.to_string().replace('\n', " ")).unwrap_or_default()
}

fn directive(flag: &Arg) -> u8 {
    let is_file = matches!(
        flag.get_value_hint(),
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath
    );
    if is_file { WITH_FILES } else { NO_FILES }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    fn asked(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        answer(args::definition(), &words).lines().map(str::to_owned).collect()
    }

    fn names(lines: &[String]) -> Vec<&str> {
        lines.iter().map(|line| line.split('\t').next().unwrap()).collect()
    }

    #[test]
    fn commands_flags_and_values_come_next_where_they_may() {
        let first = asked(&[""]);
        assert!(names(&first).contains(&"status") && names(&first).contains(&"plan"), "{first:?}");
        assert!(!names(&first).contains(&"bench"), "what is hidden stays hidden: {first:?}");
        assert_eq!(names(&asked(&["ex"])), ["explain", ":4"]);
        assert_eq!(names(&asked(&["maintenance", ""])), ["pause", "resume", "help", ":4"]);
        assert_eq!(names(&asked(&["plan", "--what"])), ["--what-if", ":4"]);
        let formats = ["table", "wide", "json", "yaml", "name", ":4"];
        assert_eq!(names(&asked(&["status", "-o", ""])), formats);
        assert_eq!(names(&asked(&["status", "-n", "ns", "--output", "j"])), ["json", ":4"]);
        assert_eq!(names(&asked(&["plan", "--output=y"])), ["--output=yaml", ":4"]);
        assert_eq!(names(&asked(&["completion", "k"])), ["kubectl", ":4"]);
    }

    #[test]
    fn files_are_left_to_the_shell() {
        assert_eq!(asked(&["plan", "--kubeconfig", ""]), [":0"]);
        assert_eq!(asked(&["plan", "-f", ""]), [":0"]);
        assert_eq!(asked(&["plan", "--what-if", ""]), [":4"]);
    }

    #[test]
    fn a_candidate_is_one_line_with_its_meaning() {
        for line in asked(&["plan", "--"]) {
            assert!(line == ":4" || line.starts_with("--") && line.contains('\t'), "{line}");
        }
    }
}
