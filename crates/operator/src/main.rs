//! The operator's program: reads the flags, runs, and ends with a clear word.

use clap::Parser;
use machinist_operator::{args::Args, logging, run};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    logging::init(args.log_format, &args.log_level)?;
    // One TLS provider for the whole process; a second installation is refused and harmless.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    run::run(args, shutdown()?).await
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
