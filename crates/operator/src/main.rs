//! The operator's program: reads the flags, runs, and ends with a clear word.

use clap::Parser;
use machinist_operator::{
    args::{Args, Command, CommandLine},
    logging, termination,
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let line = CommandLine::parse();
    let (format, level) = line.logging();
    logging::init(format, level)?;
    // One TLS provider for the whole process; a second installation is refused and harmless.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    match line.command {
        None => operate(line.operator, shutdown()?).await,
        Some(Command::TerminationHandler(args)) => termination::run(args, shutdown()?).await,
    }
}

#[cfg(feature = "aws")]
async fn operate(args: Args, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
    machinist_operator::run::run(args, shutdown).await
}

#[cfg(not(feature = "aws"))]
async fn operate(_: Args, _: impl Future<Output = ()>) -> anyhow::Result<()> {
    anyhow::bail!("this program was built without any cloud: only its subcommands can be used")
}

/// Completes when the process is asked to stop.
fn shutdown() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
    })
}
