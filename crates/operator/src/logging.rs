//! What is written to the log, and in which form?
//!
//! JSON for machines, text for a terminal. Details (debug and trace) exist for our own code only: libraries print request
//! headers and whole bodies there, and those hold tokens and user data (Rule 13).

use std::io::IsTerminal;

use anyhow::Context as _;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer, filter::filter_fn, fmt, layer::SubscriberExt, registry::LookupSpan,
    util::SubscriberInitExt,
};

/// The default of `--log-level`.
pub const DEFAULT_LEVEL: &str = "info,kube_client=warn,kube_runtime=error";

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// One JSON object in a line.
    Json,
    /// Text for people.
    Text,
}

/// Starts logging to standard error.
///
/// # Errors
/// Fails when the level is not a valid filter, or when logging was started before.
pub fn init(format: LogFormat, level: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(level)
        .with_context(|| format!("--log-level {level} is not a valid filter"))?;
    let json = match format {
        LogFormat::Auto => !std::io::stderr().is_terminal(),
        LogFormat::Json => true,
        LogFormat::Text => false,
    };
    let registry = tracing_subscriber::registry().with(filter);
    if json {
        let layer = fmt::layer().json().flatten_event(true).with_writer(std::io::stderr);
        registry.with(discreet(layer)).try_init()
    } else {
        let layer = fmt::layer().with_ansi(std::io::stderr().is_terminal());
        registry.with(discreet(layer.with_writer(std::io::stderr))).try_init()
    }
    .context("failed to start logging")
}

fn discreet<S, L>(layer: L) -> impl Layer<S>
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    L: Layer<S>,
{
    layer.with_filter(filter_fn(may_be_logged))
}

/// Returns whether a line of this origin and level can be trusted not to hold a secret.
fn may_be_logged(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    if target.starts_with("machinist") {
        return true;
    }
    // This module logs the whole body of an answer that does not parse, as a warning.
    target != "kube_client::client" && *metadata.level() <= Level::INFO
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn libraries_cannot_log_what_may_hold_secrets_even_at_trace() {
        let captured = Captured::default();
        let writer = captured.clone();
        let layer = fmt::layer().json().flatten_event(true).with_writer(move || writer.clone());
        let subscriber =
            tracing_subscriber::registry().with(EnvFilter::new("trace")).with(discreet(layer));
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "kube_client::client", "canary-body");
            tracing::debug!(target: "h2::codec", "canary-header");
            tracing::trace!(target: "aws_smithy_runtime", "canary-request");
            tracing::info!(target: "hyper", "connected");
            tracing::debug!(machine = "ns/a", "looked at");
        });
        let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
        assert!(!text.contains("canary"), "{text}");
        assert!(text.contains(r#""machine":"ns/a""#) && text.contains("connected"), "{text}");
    }
}
