//! How does a shell learn the commands and flags?

mod kubectl;

use std::io::Write;

use clap_complete::{Shell, generate};

use crate::{
    args::{self, CompleteArgs, CompletionArgs, ShellName},
    screen,
};

pub fn run(args: &CompletionArgs) -> anyhow::Result<()> {
    screen::ignore_closed_pipe(std::io::stdout().write_all(&script(args.shell)))
}

/// Answers kubectl, which asks for what may come next.
pub fn complete(args: &CompleteArgs) -> anyhow::Result<()> {
    let answer = kubectl::answer(args::definition(), &args.words);
    screen::ignore_closed_pipe(std::io::stdout().write_all(answer.as_bytes()))
}

fn script(shell: ShellName) -> Vec<u8> {
    let shell = match shell {
        ShellName::Kubectl => return kubectl::SCRIPT.as_bytes().to_vec(),
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
        ShellName::PowerShell => Shell::PowerShell,
    };
    let mut script = Vec::new();
    generate(shell, &mut args::definition(), "machinist", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_learns_every_command_that_is_shown() {
        for shell in [ShellName::Bash, ShellName::Zsh, ShellName::Fish, ShellName::PowerShell] {
            let script = String::from_utf8(script(shell)).unwrap();
            for command in args::definition().get_subcommands().filter(|one| !one.is_hide_set()) {
                assert!(script.contains(command.get_name()), "{shell:?}: {}", command.get_name());
            }
            assert!(script.contains("kubeconfig"), "{shell:?}");
        }
    }
}
