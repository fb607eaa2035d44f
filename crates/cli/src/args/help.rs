//! What stands below the help of every command? Its examples, and what its exit code says.

use clap::{Command, builder::StyledStr};

/// What the process ends with, whichever command it was.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done; what was asked for was shown or changed
  1  failed, or a check found something wrong; standard error says what, and what helps
  2  wrong usage; nothing was done";

/// Adds the exit codes below what each command says already.
pub fn with_exit_codes(command: Command) -> Command {
    let below = |text: Option<&StyledStr>| match text {
        Some(text) => format!("{}\n\n{EXIT_CODES}", text.ansi()),
        None => EXIT_CODES.to_owned(),
    };
    let short = below(command.get_after_help());
    let long = below(command.get_after_long_help().or_else(|| command.get_after_help()));
    command.after_help(short).after_long_help(long).mut_subcommands(with_exit_codes)
}
