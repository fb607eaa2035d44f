//! What does a Kubernetes Event tell, whoever wrote it and in whichever of its two forms?

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use machinist_api::cluster_api;

use crate::{cluster_api::maintained, decision::Severity};

/// Components under which we write Events.
const OURS: [&str; 2] = ["machinist", "machineapioperator"];

/// One Event, with what may be missing made plain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told<'a> {
    /// When it was told first, and last.
    pub first: Timestamp,
    pub last: Timestamp,
    pub times: u32,
    pub severity: Severity,
    pub is_ours: bool,
    pub kind: &'a str,
    pub namespace: &'a str,
    /// As it is shown: an object of Cluster API has its namespace in it.
    pub name: Cow<'a, str>,
    pub uid: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

impl<'a> Told<'a> {
    /// None for an Event that carries no time at all.
    pub fn of(event: &'a Event) -> Option<Self> {
        let series = event.series.as_ref();
        let micro = event.event_time.as_ref().map(|time| time.0);
        let created = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let first = event.first_timestamp.as_ref().map(|time| time.0);
        let first = first.or(micro).or(created)?;
        let of_series = series.and_then(|series| Some(series.last_observed_time.as_ref()?.0));
        let last =
            of_series.or_else(|| event.last_timestamp.as_ref().map(|time| time.0)).unwrap_or(first);
        let count = series.and_then(|series| series.count).or(event.count).unwrap_or(1);
        let component = event.source.as_ref().and_then(|source| source.component.as_deref());
        let component = component.or(event.reporting_component.as_deref()).unwrap_or_default();
        let about = &event.involved_object;
        let text = |text: &'a Option<String>| text.as_deref().unwrap_or_default();
        Some(Self {
            first,
            last: last.max(first),
            times: u32::try_from(count).unwrap_or(1).max(1),
            severity: match event.type_.as_deref() {
                Some("Warning") => Severity::Warning,
                _ => Severity::Normal,
            },
            is_ours: OURS.contains(&component),
            kind: text(&about.kind),
            namespace: text(&about.namespace),
            name: match is_of_cluster_api(about.api_version.as_deref()) {
                true => maintained::join(text(&about.namespace), text(&about.name)).into(),
                false => text(&about.name).into(),
            },
            uid: text(&about.uid),
            reason: text(&event.reason),
            message: text(&event.message),
        })
    }
}

/// In whichever of its versions.
fn is_of_cluster_api(api_version: Option<&str>) -> bool {
    let group = api_version.and_then(|version| version.split_once('/')).map(|(group, _)| group);
    group == Some(cluster_api::GROUP)
}
