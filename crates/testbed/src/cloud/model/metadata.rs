//! What does the metadata service of an instance answer to its guest? Tokens, the items below
//! `meta-data`, and faults of its own.
//!
//! The service is not EC2's API: nobody signs, nothing is throttled, and nothing of it is in the
//! ledger, which a poll every few seconds would fill.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Cloud,
    events::{EventState, ScheduledEvent},
    faults::{concerns, strikes},
    instance::{Instance, InstanceState, SpotAction},
    response::Delivery,
    time::later,
};

/// The longest life of a token, in seconds.
const TOKEN_SECONDS_MAX: i64 = 21_600;
const TOKEN_PATH: &str = "/latest/api/token";
const ITEMS_PATH: &str = "/latest/meta-data";

/// One request of a guest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataRequest {
    /// `GET`, `PUT` or another.
    pub method: String,
    /// From `/latest` on.
    pub path: String,
    pub token: Option<String>,
    /// How long a new token is to last, as the header says.
    pub token_seconds: Option<String>,
    /// Whether a proxy sent it on; the service gives no token to proxies.
    pub forwarded: bool,
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataAnswer {
    pub status: u16,
    pub body: Vec<u8>,
    /// How long the new token lasts.
    pub token_seconds: Option<i64>,
    pub delivery: Delivery,
}

/// Lets the metadata service fail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetadataFault {
    pub kind: MetadataFaultKind,
    /// Whose service; none means everybody's.
    #[serde(default)]
    pub instance_id: Option<String>,
    /// A path from `/latest` on; `*` is every path, and may end one.
    #[serde(default = "every_path")]
    pub path: String,
    /// The HTTP status of an `error`; 500 where absent.
    #[serde(default)]
    pub status: Option<u16>,
    /// How much later the answer comes, or the connection ends.
    #[serde(default)]
    pub after: SignedDuration,
    /// How many times at most; without it, until the faults are cleared.
    #[serde(default)]
    pub count: Option<u32>,
    #[serde(default = "super::faults::always")]
    pub probability: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataFaultKind {
    Error,
    /// Success, and a body that means nothing.
    Garbage,
    /// The connection ends without an answer.
    Silence,
    /// The right answer, only late.
    Slow,
}

/// The tokens that were given, with whose they are and when they end.
#[derive(Debug, Clone, Default)]
pub(super) struct MetadataTokens(BTreeMap<String, (String, Timestamp)>);

impl MetadataFault {
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(status) = self.status.filter(|status| !(300..600).contains(status)) {
            return Err(format!("status {status} is not that of a failure"));
        }
        let is_path = self.path == "*" || self.path.starts_with("/latest");
        if is_path { Ok(()) } else { Err(format!("path {} is not below /latest", self.path)) }
    }
}

fn every_path() -> String {
    "*".into()
}

impl MetadataAnswer {
    fn plain(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), token_seconds: None, delivery: Delivery::AT_ONCE }
    }

    /// There is nobody to answer: the instance does not run, or there is none.
    fn nobody() -> Self {
        Self {
            delivery: Delivery { lost: true, ..Delivery::AT_ONCE },
            ..Self::plain(503, Vec::new())
        }
    }
}

impl Cloud {
    /// Answers the guest of an instance.
    pub fn metadata(
        &mut self,
        now: Timestamp,
        instance_id: &str,
        request: &MetadataRequest,
    ) -> MetadataAnswer {
        self.advance(now);
        let strike = self.strike_metadata(instance_id, &request.path);
        let (kind, status, after) = match strike {
            None => return self.answer_metadata(now, instance_id, request),
            Some(fault) => (fault.kind, fault.status.unwrap_or(500), fault.after),
        };
        let answer = match kind {
            MetadataFaultKind::Error => MetadataAnswer::plain(status, "An injected fault"),
            MetadataFaultKind::Garbage => {
                MetadataAnswer::plain(200, b"<!DOCTYPE garbage \xff\xfe>".to_vec())
            }
            MetadataFaultKind::Silence => MetadataAnswer::nobody(),
            MetadataFaultKind::Slow => self.answer_metadata(now, instance_id, request),
        };
        MetadataAnswer { delivery: Delivery { after, ..answer.delivery }, ..answer }
    }

    fn strike_metadata(&mut self, instance_id: &str, path: &str) -> Option<MetadataFault> {
        let randomness = &mut self.randomness;
        self.faults.metadata.iter_mut().find_map(|fault| {
            let strikes = fault.instance_id.as_deref().is_none_or(|id| id == instance_id)
                && concerns(&fault.path, path)
                && strikes(&mut fault.count, fault.probability, randomness);
            strikes.then(|| fault.clone())
        })
    }

    fn answer_metadata(
        &mut self,
        now: Timestamp,
        instance_id: &str,
        request: &MetadataRequest,
    ) -> MetadataAnswer {
        let Some(instance) = self.instances.get(instance_id).filter(|one| is_powered(one)) else {
            return MetadataAnswer::nobody();
        };
        let options = instance.parameters.metadata_options.clone().unwrap_or_default();
        if options.http_endpoint.as_deref() == Some("disabled") {
            return MetadataAnswer::plain(403, "Forbidden");
        }
        let path = request.path.trim_end_matches('/');
        if path == TOKEN_PATH {
            return self.give_token(now, instance_id, request);
        }
        if request.method != "GET" {
            return MetadataAnswer::plain(405, "Method Not Allowed");
        }
        let is_admitted = match &request.token {
            Some(token) => self.metadata_tokens.is_valid(now, instance_id, token),
            None => options.http_tokens.as_deref() != Some("required"),
        };
        if !is_admitted {
            return MetadataAnswer::plain(401, "Unauthorized");
        }
        let shows_tags = options.instance_metadata_tags.as_deref() == Some("enabled");
        let items = items(&self.config.region, instance, shows_tags);
        match path.strip_prefix(ITEMS_PATH).and_then(|item| find(&items, item.trim_matches('/'))) {
            Some(body) => MetadataAnswer::plain(200, body),
            None => MetadataAnswer::plain(404, "Not Found"),
        }
    }

    fn give_token(
        &mut self,
        now: Timestamp,
        instance_id: &str,
        request: &MetadataRequest,
    ) -> MetadataAnswer {
        if request.method != "PUT" {
            return MetadataAnswer::plain(405, "Method Not Allowed");
        }
        if request.forwarded {
            return MetadataAnswer::plain(403, "Forbidden");
        }
        let seconds = request.token_seconds.as_deref().and_then(|text| text.parse().ok());
        let Some(seconds) = seconds.filter(|seconds| (1..=TOKEN_SECONDS_MAX).contains(seconds))
        else {
            return MetadataAnswer::plain(400, "Bad Request");
        };
        let token = format!("AQAE{}==", self.randomness.request_id().replace('-', ""));
        let ends = later(now, SignedDuration::from_secs(seconds));
        self.metadata_tokens.0.retain(|_, (_, ends)| *ends > now);
        self.metadata_tokens.0.insert(token.clone(), (instance_id.to_owned(), ends));
        MetadataAnswer { token_seconds: Some(seconds), ..MetadataAnswer::plain(200, token) }
    }
}

impl MetadataTokens {
    fn is_valid(&self, now: Timestamp, instance_id: &str, token: &str) -> bool {
        self.0.get(token).is_some_and(|(whose, ends)| whose == instance_id && now < *ends)
    }
}

/// Whether a guest could ask: it is up until the very end of a shutdown.
fn is_powered(instance: &Instance) -> bool {
    matches!(
        instance.state,
        InstanceState::Running | InstanceState::Stopping | InstanceState::ShuttingDown
    )
}

/// An item's text, or the names in a folder, a line each; folders end with a slash.
fn find(items: &BTreeMap<String, String>, wanted: &str) -> Option<String> {
    if let Some(text) = items.get(wanted) {
        return Some(text.clone());
    }
    let prefix = if wanted.is_empty() { String::new() } else { format!("{wanted}/") };
    let mut names: Vec<&str> = items
        .keys()
        .filter_map(|path| path.strip_prefix(&prefix))
        .map(|rest| rest.find('/').and_then(|end| rest.get(..=end)).unwrap_or(rest))
        .collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join("\n"))
}

/// Everything below `meta-data`.
fn items(region: &str, instance: &Instance, shows_tags: bool) -> BTreeMap<String, String> {
    let mut items = BTreeMap::new();
    let mut put = |path: &str, text: String| {
        items.insert(path.to_owned(), text);
    };
    put("ami-id", instance.image_id.clone());
    put("ami-launch-index", instance.launch_index.to_string());
    put("hostname", instance.private_dns_name.clone());
    put("instance-id", instance.id.clone());
    put("instance-life-cycle", if instance.is_spot() { "spot" } else { "on-demand" }.to_owned());
    put("instance-type", instance.instance_type.clone());
    put("local-hostname", instance.private_dns_name.clone());
    put("placement/availability-zone", instance.availability_zone.clone());
    put("placement/availability-zone-id", instance.availability_zone_id.clone());
    put("placement/region", region.to_owned());
    put("reservation-id", instance.reservation_id.clone());
    if let Some(address) = instance.private_address() {
        put("local-ipv4", address.to_string());
    }
    if let Some(address) = instance.public_address() {
        put("public-ipv4", address.to_string());
    }
    if let Some(interface) = instance.primary_interface() {
        put("mac", interface.mac_address.clone());
    }
    if shows_tags {
        for (key, value) in &instance.tags {
            put(&format!("tags/instance/{key}"), value.clone());
        }
    }
    if let Some(spot) = &instance.spot {
        if let Some(notice) = &spot.notice {
            if notice.action == SpotAction::Terminate {
                put("spot/termination-time", whole_seconds(notice.time));
            }
            let action = json!({ "action": notice.action, "time": whole_seconds(notice.time) });
            put("spot/instance-action", action.to_string());
        }
        if let Some(since) = spot.rebalance {
            let notice = json!({ "noticeTime": whole_seconds(since) });
            put("events/recommendations/rebalance", notice.to_string());
        }
    }
    let (scheduled, history): (Vec<&ScheduledEvent>, Vec<_>) =
        instance.events.values().partition(|event| event.state == EventState::Active);
    put("events/maintenance/scheduled", event_list(&scheduled));
    put("events/maintenance/history", event_list(&history));
    items
}

fn event_list(events: &[&ScheduledEvent]) -> String {
    let mut list = Vec::new();
    for event in events {
        let mut entry = json!({
            "Code": event.code,
            "Description": event.wire_description(),
            "EventId": event.event_id,
            "NotBefore": spelled_out(event.not_before),
            "State": event.state,
        });
        if let Some(end) = event.not_after {
            entry["NotAfter"] = spelled_out(end).into();
        }
        if let Some(deadline) = event.not_before_deadline {
            entry["NotBeforeDeadline"] = spelled_out(deadline).into();
        }
        list.push(entry);
    }
    serde_json::Value::from(list).to_string()
}

fn whole_seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// As `21 Jan 2019 09:00:43 GMT`.
fn spelled_out(time: Timestamp) -> String {
    time.strftime("%-d %b %Y %H:%M:%S GMT").to_string()
}
