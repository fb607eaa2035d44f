//! What happens at every single effect? Each reference scenario is run once for each of its effects and
//! each of crash before, crash after, answer lost and conflict.

use std::path::{Path, PathBuf};

use crate::recording::{Disturbance, Recipe};

/// A scenario and how many effects it has undisturbed.
#[derive(Clone, Debug)]
pub struct Reference {
    pub path: PathBuf,
    pub effects: u64,
    /// The promise that even the undisturbed run breaks.
    pub broken: Option<String>,
}

/// The scripts of a folder, in the order of their names.
///
/// # Errors
/// Fails when the folder cannot be read.
pub fn scripts_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Runs a scenario undisturbed to count its effects.
#[must_use]
pub fn measure(path: &Path) -> Reference {
    let report = Recipe::Script { path: path.to_owned() }.run(false);
    let broken = report.violation.map(|violation| format!("{} {}", violation.id, violation.words));
    Reference { path: path.to_owned(), effects: report.effects, broken }
}

/// Every run that a scenario asks for.
pub fn recipes(reference: &Reference) -> impl Iterator<Item = Recipe> + Send + '_ {
    (1..=reference.effects).flat_map(move |effect| {
        Disturbance::ALL.into_iter().map(move |fate| Recipe::Disturbed {
            path: reference.path.clone(),
            effect,
            fate,
        })
    })
}
