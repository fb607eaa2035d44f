//! What does one message of EventBridge say?
//!
//! Pure. No message names a cluster, so that a notice about a stranger's instance reads like ours. A
//! message of a kind that nobody here knows is kept as such; only what cannot be read is malformed.

use jiff::{SignedDuration, Timestamp};
use machinist_core::cloud::InstanceId;
use serde::Deserialize;
use serde_json::Value;

use super::super::errors::shortened;
use crate::notice::{Malformed, Notice, NoticeKind};

/// SQS carries no more than this. Somebody else's queue may.
const BYTES_MAX: usize = 1 << 20;

/// EC2 warns of the end of a spot instance this long before.
const SPOT_WARNING: SignedDuration = SignedDuration::from_secs(120);

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "detail-type", default)]
    detail_type: Option<String>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    time: Option<String>,
    #[serde(default)]
    detail: Value,
    /// What Auto Scaling calls its own messages, which come without an envelope.
    #[serde(rename = "Event", default)]
    event: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct InstanceDetail {
    instance_id: String,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    instance_action: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HealthDetail {
    event_type_code: String,
    #[serde(default)]
    event_type_category: String,
    #[serde(default)]
    status_code: String,
    #[serde(default)]
    start_time: Option<String>,
    #[serde(default)]
    end_time: Option<String>,
    #[serde(default)]
    communication_id: String,
    #[serde(default)]
    affected_entities: Vec<AffectedEntity>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AffectedEntity {
    #[serde(default)]
    entity_value: String,
}

/// Reads the body of a message.
pub(super) fn parse(body: &str) -> Result<Notice, Malformed> {
    if body.len() > BYTES_MAX {
        return Err(Malformed(format!("{} bytes are more than {BYTES_MAX}", body.len())));
    }
    let value: Value = serde_json::from_str(body).map_err(malformed)?;
    if !value.is_object() {
        return Err(Malformed("expected an object".to_owned()));
    }
    let envelope: Envelope = serde_json::from_value(value).map_err(malformed)?;
    let at = envelope.time.as_deref().and_then(|time| time.parse::<Timestamp>().ok());
    let source = envelope.source.as_deref().unwrap_or_default();
    let detail_type = envelope.detail_type.as_deref().unwrap_or_default();
    let (instances, kind) = match (source, detail_type) {
        ("aws.ec2", "EC2 Instance State-change Notification") => {
            let (instance, detail) = instance_detail(envelope.detail)?;
            let state = required(detail.state, "state")?;
            (vec![instance], NoticeKind::StateChanged { state })
        }
        ("aws.ec2", "EC2 Spot Instance Interruption Warning") => {
            let (instance, detail) = instance_detail(envelope.detail)?;
            let action = required(detail.instance_action, "instance-action")?;
            let ends_at = at.and_then(|at| at.checked_add(SPOT_WARNING).ok());
            (vec![instance], NoticeKind::SpotInterruption { action, at: ends_at })
        }
        ("aws.ec2", "EC2 Instance Rebalance Recommendation") => {
            let (instance, _) = instance_detail(envelope.detail)?;
            (vec![instance], NoticeKind::RebalanceRecommended)
        }
        ("aws.health", "AWS Health Event") => health(envelope.detail)?,
        (_, detail_type) => {
            let name = match (detail_type, envelope.event) {
                ("", Some(event)) => event,
                (detail_type, _) => detail_type.to_owned(),
            };
            (Vec::new(), NoticeKind::Other { name: shortened(&name) })
        }
    };
    Ok(Notice { instances, kind, at })
}

fn instance_detail(detail: Value) -> Result<(InstanceId, InstanceDetail), Malformed> {
    let detail: InstanceDetail = serde_json::from_value(detail).map_err(malformed)?;
    let id = required(Some(detail.instance_id.clone()), "instance-id")?;
    Ok((InstanceId(id), detail))
}

fn health(detail: Value) -> Result<(Vec<InstanceId>, NoticeKind), Malformed> {
    let detail: HealthDetail = serde_json::from_value(detail).map_err(malformed)?;
    // Hosts, volumes and whole accounts are affected entities too.
    let entities = detail.affected_entities.into_iter().map(|entity| entity.entity_value);
    let instances = entities.filter(|id| id.starts_with("i-")).map(InstanceId).collect();
    let kind = NoticeKind::Health {
        code: required(Some(detail.event_type_code), "eventTypeCode")?,
        category: detail.event_type_category,
        status: detail.status_code,
        starts_at: detail.start_time.as_deref().and_then(health_time),
        ends_at: detail.end_time.as_deref().and_then(health_time),
        communication_id: detail.communication_id,
    };
    Ok((instances, kind))
}

/// A time such as `Sat, 05 Jun 2016 15:10:09 GMT`. AWS's own example has the wrong weekday.
fn health_time(text: &str) -> Option<Timestamp> {
    const PARSER: jiff::fmt::rfc2822::DateTimeParser =
        jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
    PARSER.parse_timestamp(text).ok().or_else(|| text.parse().ok())
}

fn required(value: Option<String>, name: &str) -> Result<String, Malformed> {
    value
        .filter(|value| !value.is_empty())
        .ok_or_else(|| Malformed(format!("detail has no {name}")))
}

fn malformed(error: serde_json::Error) -> Malformed {
    Malformed(shortened(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(source: &str, detail_type: &str, detail: Value) -> String {
        json!({
            "version": "0", "id": "6a7e8feb", "detail-type": detail_type, "source": source,
            "account": "111122223333", "time": "2026-05-01T10:00:00Z", "region": "us-east-1",
            "resources": ["arn:aws:ec2:us-east-1:111122223333:instance/i-1"], "detail": detail,
        })
        .to_string()
    }

    fn time(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn events_of_ec2_name_their_instance() {
        let spot = "EC2 Spot Instance Interruption Warning";
        let table = [
            (
                "EC2 Instance State-change Notification",
                json!({"instance-id": "i-1", "state": "stopping"}),
                NoticeKind::StateChanged { state: "stopping".to_owned() },
            ),
            (
                spot,
                json!({"instance-id": "i-1", "instance-action": "terminate"}),
                NoticeKind::SpotInterruption {
                    action: "terminate".to_owned(),
                    at: time("2026-05-01T10:02:00Z"),
                },
            ),
            (
                "EC2 Instance Rebalance Recommendation",
                json!({"instance-id": "i-1"}),
                NoticeKind::RebalanceRecommended,
            ),
        ];
        for (detail_type, detail, kind) in table {
            let notice = parse(&event("aws.ec2", detail_type, detail)).unwrap();
            assert_eq!(notice.instances, [InstanceId("i-1".to_owned())]);
            assert_eq!(notice.kind, kind);
            assert_eq!(notice.at, time("2026-05-01T10:00:00Z"));
        }
    }

    #[test]
    fn event_of_health_has_its_instances_and_times() {
        let body = event(
            "aws.health",
            "AWS Health Event",
            json!({
                "eventArn": "arn", "service": "EC2", "communicationId": "abc-1",
                "eventTypeCode": "AWS_EC2_INSTANCE_STOP_SCHEDULED",
                "eventTypeCategory": "scheduledChange", "statusCode": "upcoming",
                "startTime": "Sat, 05 Jun 2016 15:10:09 GMT", "endTime": "nonsense",
                "eventDescription": [{"language": "en_US", "latestDescription": "words"}],
                "affectedEntities": [
                    {"entityValue": "i-1", "status": "PENDING"}, {"entityValue": "h-1"}, {},
                    {"entityValue": "i-2"},
                ],
            }),
        );
        let notice = parse(&body).unwrap();
        assert_eq!(notice.instances, ["i-1", "i-2"].map(|id| InstanceId(id.to_owned())));
        let expected = NoticeKind::Health {
            code: "AWS_EC2_INSTANCE_STOP_SCHEDULED".to_owned(),
            category: "scheduledChange".to_owned(),
            status: "upcoming".to_owned(),
            starts_at: time("2016-06-05T15:10:09Z"),
            ends_at: None,
            communication_id: "abc-1".to_owned(),
        };
        assert_eq!(notice.kind, expected);
    }

    #[test]
    fn what_nobody_knows_is_kept_by_its_name() {
        let state_change = "EC2 Instance State-change Notification";
        let lifecycle = "EC2 Instance-terminate Lifecycle Action";
        let test = json!({"Event": "autoscaling:TEST_NOTIFICATION", "Service": "AWS Auto Scaling"});
        let table = [
            (event("aws.autoscaling", lifecycle, json!({"EC2InstanceId": "i-1"})), lifecycle),
            (event("my.app", state_change, json!({"instance-id": "i-1"})), state_change),
            (test.to_string(), "autoscaling:TEST_NOTIFICATION"),
            ("{}".to_owned(), ""),
            (json!({"something": ["else"]}).to_string(), ""),
        ];
        for (body, name) in table {
            let notice = parse(&body).unwrap();
            assert_eq!(notice.kind, NoticeKind::Other { name: name.to_owned() }, "{body}");
            assert_eq!(notice.instances, []);
        }
    }

    #[test]
    fn what_cannot_be_read_is_malformed_and_says_why() {
        let state_change = "EC2 Instance State-change Notification";
        let deep = "[".repeat(100_000);
        let huge = format!("{{\"a\": \"{}\"}}", "x".repeat(BYTES_MAX));
        let table = [
            (String::new(), "EOF"),
            ("not json".to_owned(), "expected ident"),
            ("null".to_owned(), "expected an object"),
            ("[]".to_owned(), "expected an object"),
            ("\"text\"".to_owned(), "expected an object"),
            ("{\"detail-type\": 5}".to_owned(), "invalid type"),
            (deep, "recursion limit"),
            (huge, "bytes are more than"),
            (event("aws.ec2", state_change, json!({})), "missing field `instance-id`"),
            (event("aws.ec2", state_change, json!(null)), "invalid type"),
            (event("aws.ec2", state_change, json!({"instance-id": "i-1"})), "detail has no state"),
            (
                event("aws.ec2", state_change, json!({"instance-id": "", "state": "running"})),
                "detail has no instance-id",
            ),
            (event("aws.health", "AWS Health Event", json!({})), "missing field `eventTypeCode`"),
        ];
        for (body, expected) in table {
            let error = parse(&body).unwrap_err().to_string();
            let start: String = body.chars().take(60).collect();
            assert!(error.contains(expected), "{start}: {error}");
            assert!(error.len() < 2_000);
        }
    }
}
