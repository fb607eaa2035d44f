//! Is what is written of the commands what they are? The reference and the help of each command, out of the
//! definitions, held by files.

use std::path::Path;

use clap::{Arg, Command};

use super::definition;
use crate::testing::golden;

const HEADING: &str = "\
# The command line

Written by `make reference` out of the definitions in `crates/cli/src/args`; change those.

`machinist` and `kubectl machinist` are the same program. `machinist completion` prints what a shell needs
to complete its words, `machinist man` its manual. kubectl completes the words of a plugin by a program
`kubectl_complete-machinist` in the path, which `machinist completion kubectl` prints; it works in every shell
in which kubectl itself is completed.

Colours are used on a terminal only, and not where `NO_COLOR` is set. What is printed for programs (`-o json`,
`-o yaml`) has names that are never changed, only added, and times in UTC. Messages and progress go to
standard error.
";

/// Every command that is shown, with those below it, by the words that call it.
fn commands() -> Vec<(String, Command)> {
    fn below(command: &Command, before: &str, found: &mut Vec<(String, Command)>) {
        let name = format!("{before}{}", command.get_name());
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            if one.get_name() != "help" {
                below(one, &format!("{name} "), found);
            }
        }
        found.push((name, command.clone()));
    }
    let mut command = definition().term_width(100);
    command.build();
    let mut found = Vec::new();
    below(&command, "", &mut found);
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    found
}

#[test]
fn the_help_of_every_command_is_known() {
    for (name, mut command) in commands() {
        let name = name.replace(' ', "-");
        golden(&format!("../help/{name}.txt"), &command.render_long_help().to_string());
    }
}

#[test]
fn the_reference_is_what_the_commands_are() {
    let mut text = HEADING.to_owned();
    let commands = commands();
    for (name, command) in &commands {
        text.push_str(&section(name, command));
    }
    golden("../../../../docs/reference/cli.md", &text);
}

/// A command that nobody explains is not finished.
#[test]
fn every_command_and_every_flag_says_what_it_is_for() {
    for (name, command) in commands() {
        assert!(command.get_about().is_some(), "{name}");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{name} {}", argument.get_id());
        }
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Exit codes:"), "{name}");
    }
}

fn section(name: &str, command: &Command) -> String {
    let mut text = format!("\n## {name}\n");
    let about = command.get_long_about().or_else(|| command.get_about());
    text.push_str(&format!("\n{}\n", about.map(ToString::to_string).unwrap_or_default()));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    text.push_str(&format!("\n```\n{usage}\n```\n"));
    let below: Vec<&Command> = command
        .get_subcommands()
        .filter(|one| !one.is_hide_set() && one.get_name() != "help")
        .collect();
    if !below.is_empty() {
        text.push_str("\n| command | what it does |\n|---|---|\n");
        for one in below {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            let anchor = format!("{name} {}", one.get_name()).replace(' ', "-");
            text.push_str(&format!("| [`{}`](#{anchor}) | {} |\n", one.get_name(), cell(&about)));
        }
    }
    let arguments: Vec<&Arg> = command.get_arguments().filter(|one| is_told(one)).collect();
    if !arguments.is_empty() {
        text.push_str("\n| word | meaning | default |\n|---|---|---|\n");
        for argument in arguments {
            text.push_str(&row(argument));
        }
    }
    // What it ends with is the same for all, and said once.
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let after = match name {
        "machinist" => after,
        _ => after.split("Exit codes:").next().unwrap_or_default().trim().to_owned(),
    };
    if !after.is_empty() {
        text.push_str(&format!("\n```\n{after}\n```\n"));
    }
    text
}

fn is_told(argument: &Arg) -> bool {
    !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
}

fn row(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let takes = argument.get_num_args().is_none_or(|count| count.takes_values());
    let value = names.first().map(ToString::to_string).filter(|_| takes).unwrap_or_default();
    let word = match (argument.get_short(), argument.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long} {value}"),
        (None, Some(long)) => format!("--{long} {value}"),
        (Some(short), None) => format!("-{short} {value}"),
        (None, None) => value,
    };
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string);
    let mut help = help.unwrap_or_default();
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| takes && !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        help.push_str(&format!(" One of {}.", values.join(", ")));
    }
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    let default = if defaults.is_empty() || !takes {
        String::new()
    } else {
        format!("`{}`", defaults.join(","))
    };
    format!("| `{}` | {} | {default} |\n", word.trim(), cell(&help))
}

/// What would end a cell of a table is written otherwise.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The folder of goldens has no file of a command that is gone.
#[test]
fn no_help_is_kept_of_what_is_gone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/help");
    let known: Vec<String> =
        commands().iter().map(|(name, _)| format!("{}.txt", name.replace(' ', "-"))).collect();
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().to_string_lossy().into_owned();
        assert!(known.contains(&name), "{name} is the help of no command");
    }
}
