//! What happened, in the order in which it happened? A script: a small YAML file that names a cluster
//! and what befalls it, and what must be so then.
//!
//! `cluster` is what it begins with, `step` what can happen, `expectation` what can be expected;
//! `stage` plays it, `act` does what people and faults do, `check` compares. All promises are watched
//! over as in every run; what is not as a script expects is one more, `EXPECT`.

mod act;
mod aim;
mod check;
mod cluster;
mod cluster_api;
mod expectation;
mod kind;
mod stage;
mod step;
mod values;
mod way;
mod witness;

#[cfg(test)]
mod tests;

use std::{fs, io, path::Path};

use serde::Deserialize;
use serde_saphyr::Spanned;

pub use self::{cluster::Cluster, expectation::Expectation, step::Step};
use crate::{
    effects::{Interference, NoInterference},
    world::{self, Extras, RunReport},
};

/// A script.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Script {
    pub title: String,
    /// Where the bug that it keeps away is described.
    #[serde(default)]
    pub reference: String,
    /// What the implementation with that bug did.
    #[serde(default)]
    pub why: String,
    #[serde(default)]
    pub world: Cluster,
    pub steps: Vec<Spanned<Step>>,
    /// The file, line by line, for the timeline.
    #[serde(skip)]
    lines: Vec<String>,
}

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: String, source: io::Error },
    #[error("{path}: {source}")]
    Invalid { path: String, source: Box<serde_saphyr::Error> },
}

/// Reads a script.
///
/// # Errors
/// Fails when the file cannot be read or is no script; the error names file and line.
pub fn load(path: &Path) -> Result<Script, ScriptError> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|source| ScriptError::Unreadable { path: shown.clone(), source })?;
    parse(&text, &shown)
}

/// Reads a script from its text; the path is for errors.
///
/// # Errors
/// Fails when it is no script.
pub fn parse(text: &str, path: &str) -> Result<Script, ScriptError> {
    let mut script: Script = serde_saphyr::from_str(text).map_err(|source| {
        ScriptError::Invalid { path: path.to_owned(), source: Box::new(source) }
    })?;
    script.lines = text.lines().map(str::to_owned).collect();
    Ok(script)
}

/// Plays a script to its end, or to the first promise that is broken.
#[must_use]
pub fn run(script: &Script, keep_timeline: bool) -> RunReport {
    play(script, &script.world.extras(), NoInterference, keep_timeline)
}

/// How long everything must stay as it is after a single disturbance. The same script is played
/// undisturbed as well, and rests for the usual time then.
const BRIEF_REST_MINUTES: u64 = 3;

/// Plays a script while somebody else interferes with the effects that the script itself lets pass,
/// up to the very end: a script's own calm does not end that.
#[must_use]
pub fn run_disturbed(
    script: &Script,
    interference: impl Interference + 'static,
    keep_timeline: bool,
) -> RunReport {
    let extras = Extras { rest_minutes: Some(BRIEF_REST_MINUTES), ..script.world.extras() };
    play(script, &extras, interference, keep_timeline)
}

fn play(
    script: &Script,
    extras: &Extras,
    interference: impl Interference + 'static,
    keep_timeline: bool,
) -> RunReport {
    let plan = script.world.plan();
    let beyond: Box<dyn Interference> = Box::new(interference);
    world::run_script_with(&plan, extras, keep_timeline, async |world| {
        stage::play(world, script, beyond).await;
    })
}
