//! How do tests and `machinist up` run the operator? As a process of its own, from its own program.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::guard::Guard;
use crate::process::{Launch, Process};

const PROGRAM: &str = "machinist-operator";
const PROGRAM_VARIABLE: &str = "MACHINIST_OPERATOR";

/// Long enough to hand over the leases.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct OperatorConfig {
    /// Names the log file; operators that run side by side differ in it.
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(String, OsString)>,
}

impl OperatorConfig {
    /// The operator's program beside this one, or the one that `MACHINIST_OPERATOR` names.
    pub fn find(arguments: Vec<OsString>) -> anyhow::Result<Self> {
        Ok(Self {
            name: PROGRAM.to_owned(),
            program: find_program()?,
            arguments,
            environment: Vec::new(),
        })
    }
}

/// A running operator, or one that was killed and can be started again. Dropping it kills it.
pub struct OperatorProcess {
    guard: Guard,
    launch: Launch,
    process: Process,
}

impl OperatorProcess {
    pub async fn start(
        guard: &Guard,
        config: OperatorConfig,
        home: &Path,
        log_folder: &Path,
    ) -> anyhow::Result<Self> {
        let mut environment = config.environment;
        for variable in ["RUST_LOG", "RUST_BACKTRACE"] {
            if let Some(value) = env::var_os(variable) {
                environment.push((variable.to_owned(), value));
            }
        }
        let launch = Launch {
            name: config.name,
            program: config.program,
            arguments: config.arguments,
            environment,
            home: home.to_owned(),
            log_folder: log_folder.to_owned(),
        };
        let process = Process::start(guard, launch.clone()).await?;
        Ok(Self { guard: guard.clone(), launch, process })
    }

    /// The process, for its id, its log and whether it still runs.
    #[must_use]
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// Ends it as `kill -9` does.
    pub async fn kill(&self) {
        self.process.kill().await;
    }

    /// Asks it to end, and insists after a while.
    pub async fn stop(&self) {
        self.process.stop(PATIENCE).await;
    }

    /// Starts it again with the same arguments, ending it first where it still runs.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.process.stop(PATIENCE).await;
        self.process = Process::start(&self.guard, self.launch.clone()).await?;
        Ok(())
    }
}

/// The operator's program beside this one, or the one that `MACHINIST_OPERATOR` names.
pub fn find_program() -> anyhow::Result<PathBuf> {
    if let Some(path) = env::var_os(PROGRAM_VARIABLE) {
        return Ok(path.into());
    }
    let this = env::current_exe().context("cannot tell where this program is")?;
    // A test's program is one folder further down, in `deps`.
    let folders = this.ancestors().skip(1).take(2);
    let candidates: Vec<PathBuf> = folders.map(|folder| folder.join(PROGRAM)).collect();
    match candidates.iter().find(|candidate| candidate.is_file()) {
        Some(found) => Ok(found.clone()),
        None => bail!(
            "there is no {PROGRAM} beside {}; build it, or name it in {PROGRAM_VARIABLE}",
            this.display()
        ),
    }
}
