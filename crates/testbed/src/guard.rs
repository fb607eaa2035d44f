//! How does a child die when its parent is killed?
//!
//! The kernel sends a signal of the child's choice when the thread that made it ends. The choice
//! has to be made in the child, after the fork and before the real program; Rust forbids code
//! there without `unsafe`. So the child first runs a program of ours again, which makes the choice
//! through a safe call and then becomes the real program.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

const SUBCOMMAND: &str = "__guard";
const EXIT_CODE_ON_FAILURE: i32 = 125;

/// The program that becomes a guarded child: any whose `main` begins with [`run_if_asked`].
#[derive(Clone, Debug)]
pub struct Guard {
    program: PathBuf,
}

impl Guard {
    /// For a program that calls [`run_if_asked`] itself. The link leads to the program that runs,
    /// even after a build has put another in its place.
    #[must_use]
    pub fn current_exe() -> Self {
        Self { program: PathBuf::from("/proc/self/exe") }
    }

    /// For tests, whose own program has no `main` to speak of.
    #[must_use]
    pub const fn at(program: PathBuf) -> Self {
        Self { program }
    }

    /// A command that runs `program` guarded by the calling process. It must be spawned by a
    /// thread that lives as long as the process: the kernel watches the thread.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(SUBCOMMAND).arg(std::process::id().to_string()).arg(program);
        command
    }
}

/// Becomes the guarded program if this process was started for that; returns otherwise. The first
/// thing that `main` does.
pub fn run_if_asked() {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == SUBCOMMAND) {
        let error = become_program(arguments);
        eprintln!("{SUBCOMMAND}: {error}");
        std::process::exit(EXIT_CODE_ON_FAILURE);
    }
}

fn become_program(mut arguments: impl Iterator<Item = OsString>) -> io::Error {
    let usage = || io::Error::other("expected the parent's process id and a program");
    let Some(parent) =
        arguments.next().and_then(|text| text.to_str().and_then(|text| text.parse::<i32>().ok()))
    else {
        return usage();
    };
    let Some(program) = arguments.next() else { return usage() };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // A parent that died before the line above left no signal; this process has a new parent then.
    if getppid().is_none_or(|actual| actual.as_raw_nonzero().get() != parent) {
        return io::Error::other("the parent is gone");
    }
    Command::new(program).args(arguments).exec()
}
