//! Is the page of the operator's flags that of the code? `UPDATE=1` (or `make reference`) writes it anew.

use std::{fs, path::Path};

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::CommandLine;

const HEAD: &str =
    "# Flags of the operator\n\nWritten by `make reference` from the program's own help.\n";

#[test]
fn the_page_of_the_flags_is_that_of_the_program() {
    let mut command = CommandLine::command();
    command.build();
    let mut text = HEAD.to_owned();
    text.push_str(&section("machinist-operator", &command));
    for handler in command.get_subcommands().filter(|one| one.get_name() != "help") {
        text.push_str(&section(&format!("machinist-operator {}", handler.get_name()), handler));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/operator.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "docs/reference/operator.md is old: run `make reference`");
}

fn section(title: &str, command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let mut text = format!(
        "\n## {title}\n\n{}\n\n| flag | default | meaning |\n|---|---|---|\n",
        cell(&about)
    );
    let is_told =
        |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    let mut flags: Vec<&Arg> = command.get_arguments().filter(is_told).collect();
    flags.sort_by_key(|arg| arg.get_long());
    text.extend(flags.into_iter().map(row));
    text
}

fn row(arg: &Arg) -> String {
    let long = arg.get_long().unwrap_or_else(|| arg.get_id().as_str());
    let names = arg.get_value_names().unwrap_or_default();
    let takes_one = !matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::Count);
    let value = match names.first() {
        Some(name) if takes_one => format!("={name}"),
        Some(_) | None => String::new(),
    };
    // What is found out on the machine would make another page on each.
    let defaults =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy()));
    let defaults = defaults.filter(|_| takes_one).collect::<Vec<_>>().join(", ");
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let mut words = sentence(&help.map(ToString::to_string).unwrap_or_default());
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|_| takes_one)
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        words.push_str(&format!(" One of {}.", values.join(", ")));
    }
    if let Some(variable) = arg.get_env() {
        words.push_str(&format!(" Also by the variable `{}`.", variable.to_string_lossy()));
    }
    format!("| `--{long}{value}` | {} | {words} |\n", cell(&defaults))
}

/// The full stop is left out of help by clap.
fn sentence(text: &str) -> String {
    let words = cell(text);
    if words.ends_with('.') { words } else { format!("{words}.") }
}

fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|").replace('<', "&lt;")
}
