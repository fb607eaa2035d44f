//! How does a person learn what went wrong, and what to do about it?

use std::error::Error;

use clap::builder::styling::{AnsiColor, Style};
use jiff::Timestamp;
use machinist_core::overview::wish::Refusal;

use crate::zone::Zone;

/// A failure with advice. The advice is printed on a line of its own, last.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Hinted {
    what: String,
    hint: String,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Hinted {
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into(), source: None }
    }

    /// A refusal of core, with its times in the person's zone. The hint stays as it is: it names commands.
    pub fn refused(refusal: Refusal, zone: &Zone, now: Timestamp) -> Self {
        Self::new(zone.localize(&refusal.what, now), refusal.hint)
    }

    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// Prints the failure, its causes and the advice to standard error.
pub fn print(error: &anyhow::Error) {
    anstream::eprint!("{}", text(error));
}

/// The failure, its causes and the advice, a line each.
pub fn text(error: &anyhow::Error) -> String {
    let label = AnsiColor::Red.on_default().bold();
    let mut text = format!("{label}error:{label:#} {error:#}\n");
    if let Some(hinted) = error.downcast_ref::<Hinted>() {
        let label = Style::new().bold();
        text.push_str(&format!("{label}hint:{label:#} {}\n", hinted.hint));
    }
    text
}
