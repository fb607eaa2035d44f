//! How is the manual written? From the same definitions as the help.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;

use crate::{
    args::{self, ManArgs},
    screen,
};

pub fn run(args: &ManArgs) -> anyhow::Result<()> {
    match &args.folder {
        None => {
            let mut page = Vec::new();
            Man::new(whole()).render(&mut page).context("cannot write the manual")?;
            screen::ignore_closed_pipe(std::io::stdout().write_all(&page))
        }
        Some(folder) => {
            for page in write(folder)? {
                println!("{}", page.display());
            }
            Ok(())
        }
    }
}

/// One page for each command that is shown, and their files.
fn write(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut files = Vec::new();
    for (name, page) in pages(&whole(), "")? {
        let file = folder.join(format!("{name}.1"));
        std::fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
        files.push(file);
    }
    Ok(files)
}

/// The definition with what clap adds when it runs.
fn whole() -> Command {
    let mut command = args::definition().disable_help_subcommand(true);
    command.build();
    command
}

/// The pages of a command and of those below it, by name.
fn pages(command: &Command, before: &str) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let name = format!("{before}{}", command.get_name());
    let mut page = Vec::new();
    Man::new(command.clone())
        .title(name.clone())
        .render(&mut page)
        .with_context(|| format!("cannot write the page of {name}"))?;
    let mut pages = vec![(name.clone(), page)];
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        pages.extend(self::pages(below, &format!("{name}-"))?);
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_for_each_command_that_is_shown() {
        let pages = pages(&whole(), "").unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["machinist", "machinist-plan", "machinist-maintenance-pause"] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(!names.contains(&"machinist-bench"), "{names:?}");
        for (name, page) in &pages {
            let page = String::from_utf8_lossy(page);
            assert!(page.starts_with(".ie ") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
            assert!(page.contains("Exit codes:"), "{name}");
        }
    }
}
