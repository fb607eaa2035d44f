//! What does a person see while a cluster starts? A spinner on a terminal, lines in a log.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::builder::styling::AnsiColor;
use indicatif::{ProgressBar, ProgressStyle};

/// Everything goes to standard error; standard output is for the answer.
pub struct Progress {
    /// None where nobody watches.
    spinner: Option<ProgressBar>,
    /// So that a log does not repeat itself.
    last_line: Mutex<String>,
}

impl Progress {
    pub fn detect() -> Self {
        let spinner = std::io::stderr().is_terminal().then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {wide_msg} {elapsed}")
            {
                spinner.set_style(style);
            }
            spinner
        });
        Self { spinner, last_line: Mutex::default() }
    }

    /// Says what is being done now.
    pub fn start(&self, what: &str) {
        match &self.spinner {
            Some(spinner) => {
                // Also after an end: the next step is another run of the same spinner.
                spinner.reset();
                spinner.set_message(what.to_owned());
                spinner.enable_steady_tick(Duration::from_millis(120));
            }
            None => self.line(what),
        }
    }

    /// Says how far it is.
    pub fn update(&self, what: &str) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(what.to_owned()),
            None => self.line(what),
        }
    }

    /// Says what is done; it stays on the screen.
    pub fn done(&self, what: &str) {
        let green = AnsiColor::Green.on_default();
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| anstream::eprintln!("{green}✓{green:#} {what}")),
            None => self.line(what),
        }
    }

    /// Says what a person should know although nobody asked; it stays on the screen.
    pub fn warn(&self, what: &str) {
        let yellow = AnsiColor::Yellow.on_default();
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| anstream::eprintln!("{yellow}!{yellow:#} {what}")),
            None => self.line(what),
        }
    }

    /// Takes the spinner away.
    pub fn clear(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.disable_steady_tick();
            spinner.finish_and_clear();
        }
    }

    fn line(&self, what: &str) {
        let mut last = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != what {
            eprintln!("{what}");
            last.clear();
            last.push_str(what);
        }
    }
}
