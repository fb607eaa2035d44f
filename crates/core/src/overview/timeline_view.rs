//! What happened to one machine, as it is shown?

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    instant::Instant,
    timeline::{Sources, timeline},
};
use crate::decision::Severity;

/// How much is shown.
const SHOWN_MAX: usize = 300;

/// What happened to one machine, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    pub machine: String,
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    pub entries: Vec<TimelineItem>,
    /// What is missing, and why.
    pub hidden: Option<String>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TimelineItem {
    #[schemars(with = "Instant")]
    pub time: Timestamp,
    /// cloud, cluster or machinist.
    pub source: &'static str,
    pub severity: Severity,
    pub reason: String,
    pub message: String,
    pub count: u32,
    /// Kind and name.
    pub about: String,
}

pub fn of_machine(name: &str, sources: &Sources<'_>) -> Vec<TimelineItem> {
    let told = timeline(sources).into_iter().rev();
    told.filter(|one| one.machine.as_deref() == Some(name))
        .take(SHOWN_MAX)
        .map(|one| TimelineItem {
            time: one.time,
            source: one.source.as_str(),
            severity: one.severity,
            reason: one.reason,
            message: one.message,
            count: one.count,
            about: one.about,
        })
        .collect()
}
