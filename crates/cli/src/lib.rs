//! What can a person do with Machinist from a shell? One module for each subcommand.
//!
//! `status`, `plan`, `explain`, `drift`, `events`, `dump`, `approve`, `maintenance`, `windows` and `doctor`
//! need a cluster and nothing else; `completion` and `man` not even that. The rest stands on the testbed, behind the
//! feature `up`.

#![expect(
    clippy::disallowed_methods,
    reason = "a command lives in the real world: its clock is the machine's"
)]

mod age;
mod annotate;
mod approve;
mod args;
#[cfg(feature = "up")]
mod bench;
#[cfg(feature = "up")]
mod cloud;
mod cluster_api;
mod completion;
mod doctor;
mod document;
mod done;
#[cfg(feature = "up")]
mod down;
mod drift;
mod dump;
mod events;
mod explain;
mod failure;
mod fleet;
#[cfg(feature = "up")]
mod home;
#[cfg(test)]
mod krew;
mod kubeconfig;
mod maintenance;
mod man;
mod plan;
#[cfg(feature = "up")]
mod programs;
mod progress;
mod reader;
mod screen;
#[cfg(feature = "up")]
mod shutdown;
mod snapshot;
mod state_file;
mod status;
mod table;
mod target;
#[cfg(test)]
mod testing;
#[cfg(feature = "up")]
mod up;
mod watching;
mod windows;
mod zone;

use std::process::ExitCode;

use args::Command;

/// The whole program. What its exit codes say is in `args::help`.
pub fn main() -> ExitCode {
    #[cfg(feature = "up")]
    machinist_testbed::guard::run_if_asked();
    let args = args::read();
    // One TLS provider for the whole process; a second installation is refused and harmless.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            failure::print(&anyhow::Error::new(error).context("cannot start the async runtime"));
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(args.command)) {
        Ok(code) => code,
        Err(error) => {
            failure::print(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Status(args) => status::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Windows(args) => windows::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Approve(args) => approve::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Maintenance(args) => maintenance::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Explain(args) => explain::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Plan(args) => plan::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Drift(args) => drift::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Events(args) => events::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Dump(args) => dump::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Completion(args) => completion::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Complete(args) => completion::complete(&args).map(|()| ExitCode::SUCCESS),
        Command::Man(args) => man::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Doctor(args) => doctor::run(args).await,
        #[cfg(feature = "up")]
        Command::Up(args) => up::run(args).await.map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "up")]
        Command::Down => down::run().await.map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "up")]
        Command::Cloud(args) => cloud::run(args).await.map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "up")]
        Command::Programs => programs::run().await.map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "up")]
        Command::Bench(args) => bench::run(args).await,
    }
}
