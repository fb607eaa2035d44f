//! How is a run done again? By its recipe: a seed and its level, or a script and what came between one of
//! its effects and its record. A recording is a recipe with what came of it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::{
    effects::{Effect, EffectFate, Interference},
    faults::Level,
    script,
    swarm::Plan,
    world::{self, RunReport},
};

/// Everything that a run follows from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Recipe {
    Seed {
        seed: u64,
        level: Level,
    },
    Script {
        path: PathBuf,
    },
    /// A script with one disturbance, at the effect of that number.
    Disturbed {
        path: PathBuf,
        effect: u64,
        fate: Disturbance,
    },
}

/// What the exhaustive mode does at each effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum Disturbance {
    CrashBefore,
    CrashAfter,
    AnswerLost,
    /// A conflict of the API server, an internal error of the cloud.
    Conflict,
}

impl Disturbance {
    pub const ALL: [Self; 4] =
        [Self::CrashBefore, Self::CrashAfter, Self::AnswerLost, Self::Conflict];

    const fn fate(self) -> EffectFate {
        match self {
            Self::CrashBefore => EffectFate::CrashBefore,
            Self::CrashAfter => EffectFate::CrashAfter,
            Self::AnswerLost => EffectFate::LoseAnswer,
            Self::Conflict => EffectFate::Refuse,
        }
    }

    #[must_use]
    pub const fn flag(self) -> &'static str {
        match self {
            Self::CrashBefore => "crash-before",
            Self::CrashAfter => "crash-after",
            Self::AnswerLost => "answer-lost",
            Self::Conflict => "conflict",
        }
    }
}

/// Disturbs the effect of one number.
#[derive(Debug)]
struct AtEffect {
    number: u64,
    fate: EffectFate,
}

impl Interference for AtEffect {
    fn on_effect(&mut self, effect: &Effect) -> EffectFate {
        if effect.number == self.number { self.fate } else { EffectFate::Pass }
    }
}

impl Recipe {
    /// Runs it. A script that cannot be read is a broken promise of its own.
    #[must_use]
    pub fn run(&self, keep_timeline: bool) -> RunReport {
        let never_ran = |error| RunReport::never_ran(format!("{error:#}"));
        match self {
            Self::Seed { seed, level } => world::run(&Plan::draw(*seed, *level), keep_timeline),
            Self::Script { path } => match script::load(path) {
                Ok(script) => script::run(&script, keep_timeline),
                Err(error) => never_ran(error),
            },
            Self::Disturbed { path, effect, fate } => {
                let by = AtEffect { number: *effect, fate: fate.fate() };
                match script::load(path) {
                    Ok(script) => script::run_disturbed(&script, by, keep_timeline),
                    Err(error) => never_ran(error),
                }
            }
        }
    }

    /// The words that run it again.
    #[must_use]
    pub fn command(&self) -> String {
        match self {
            Self::Seed { seed, level } => {
                format!("machinist-sim seed {seed} --level {}", level.as_str())
            }
            Self::Script { path } => format!("machinist-sim run {}", path.display()),
            Self::Disturbed { path, effect, fate } => {
                let (path, fate) = (path.display(), fate.flag());
                format!("machinist-sim run {path} --at-effect {effect} --fate {fate}")
            }
        }
    }
}

/// A run that can be held against another of the same recipe.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Recording {
    pub recipe: Recipe,
    /// The promise that was broken, if one was.
    pub violation: Option<String>,
    pub fingerprint: String,
}

impl Recording {
    #[must_use]
    pub fn of(recipe: &Recipe, report: &RunReport) -> Self {
        Self {
            recipe: recipe.clone(),
            violation: report.violation.as_ref().map(|it| format!("{} {}", it.id, it.words)),
            fingerprint: format!("{:016x}", report.fingerprint),
        }
    }

    /// # Errors
    /// Fails when the file is not there or is no recording.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Writes it into a folder and returns where.
    ///
    /// # Errors
    /// Fails when the folder cannot be written to.
    pub fn save(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let name = match &self.recipe {
            Recipe::Seed { seed, level } => format!("{}-{seed}.json", level.as_str()),
            Recipe::Script { path } => format!("{}.json", stem(path)),
            Recipe::Disturbed { path, effect, fate } => {
                format!("{}-{effect}-{}.json", stem(path), fate.flag())
            }
        };
        let path = folder.join(name);
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(&path, text + "\n").with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
