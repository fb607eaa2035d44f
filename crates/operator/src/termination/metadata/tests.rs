//! Is every answer of the service understood, and every failure of it survived? Against a server in
//! this process that misbehaves as it is told.

use machinist_core::termination::Action;

use super::*;
use crate::termination::tests::service::{Reply, Service};

fn env() -> Env {
    Env::simulated("2026-01-01T00:00:00Z".parse().unwrap(), 1)
}

async fn metadata(service: &Service) -> Metadata {
    Metadata::new(service.endpoint(), env())
}

/// The one trouble of every question that was asked.
fn kinds(look: &Look) -> Vec<&'static str> {
    let kind = |trouble: &MetadataError| match trouble {
        MetadataError::Unreachable { .. } => "unreachable",
        MetadataError::TimedOut { .. } => "timed out",
        MetadataError::BrokenOff { .. } => "broken off",
        MetadataError::Unusable { .. } => "unusable",
        MetadataError::Refused { .. } => "refused",
        MetadataError::BadToken => "bad token",
        MetadataError::Unreadable(_) => "unreadable",
        MetadataError::UnreadableEvents => "unreadable events",
    };
    look.troubles.iter().map(kind).collect()
}

#[test]
fn an_endpoint_is_a_host_and_perhaps_a_port_and_a_path() {
    for (text, host, port, path) in [
        (Endpoint::DEFAULT, "169.254.169.254", 80, ""),
        ("http://127.0.0.1:8080/_imds/i-1/", "127.0.0.1", 8080, "/_imds/i-1"),
        ("http://[fd00:ec2::254]", "fd00:ec2::254", 80, ""),
    ] {
        let endpoint: Endpoint = text.parse().unwrap();
        assert_eq!(
            (endpoint.host.as_str(), endpoint.port, endpoint.path.as_str()),
            (host, port, path)
        );
    }
    for text in ["", "169.254.169.254", "https://a", "http://", "http://u@a", "http://a?b", "/a"] {
        text.parse::<Endpoint>().unwrap_err();
    }
}

#[tokio::test]
async fn all_questions_are_asked_with_a_token_below_the_endpoints_path() {
    let service = Service::start().await;
    let mut metadata = metadata(&service).await;
    let look = metadata.look().await;
    assert_eq!(kinds(&look), [""; 0]);
    assert_eq!(look.observed.termination, Answer::Nothing);
    assert_eq!(look.observed.action, Answer::Nothing);
    assert_eq!(look.observed.rebalance, Answer::Nothing);
    assert_eq!(look.observed.events.announced().map(|events| events.by_id.len()), Some(0));
    let mut requests = service.requests();
    requests[1..].sort();
    assert_eq!(
        requests,
        [
            "PUT /base/latest/api/token",
            "GET /base/latest/meta-data/events/maintenance/scheduled",
            "GET /base/latest/meta-data/events/recommendations/rebalance",
            "GET /base/latest/meta-data/spot/instance-action",
            "GET /base/latest/meta-data/spot/termination-time",
        ]
    );

    service.set("spot/termination-time", Reply::ok("2026-06-01T12:02:00Z"));
    service.set(
        "spot/instance-action",
        Reply::ok(r#"{"action":"terminate","time":"2026-06-01T12:02:00Z"}"#),
    );
    service.set(
        "events/recommendations/rebalance",
        Reply::ok(r#"{"noticeTime":"2026-06-01T12:00:00Z"}"#),
    );
    let look = metadata.look().await;
    assert!(look.observed.is_terminating());
    assert_eq!(look.observed.action.announced().map(|it| it.action), Some(Action::Terminate));
    assert!(look.observed.rebalance.announced().is_some_and(Option::is_some));
}

#[tokio::test]
async fn every_failure_is_an_unknown_answer_and_passes() {
    let service = Service::start().await;
    let mut metadata = metadata(&service).await;
    let item = "spot/termination-time";
    for (reply, expected) in [
        (Reply::status(500), "refused"),
        (Reply::status(503), "refused"),
        (Reply::status(403), "refused"),
        (Reply::status(400), "refused"),
        (Reply::redirect("http://127.0.0.1:1/elsewhere"), "refused"),
        (Reply::ok("<html>welcome</html>"), "unreadable"),
        (Reply::ok("\u{0}\u{fffd}"), "unreadable"),
        (Reply::bytes(vec![0xff; 100]), "unreadable"),
        (Reply::bytes(vec![b'x'; BODY_BYTES_MAX + 1]), "unusable"),
        (Reply::Close, "broken off"),
        (Reply::Raw(b"SSH-2.0-nonsense\r\n\r\n".to_vec()), "broken off"),
        (Reply::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nshort".to_vec()), "unusable"),
        (Reply::Silence, "timed out"),
    ] {
        service.set(item, reply.clone());
        let look = metadata.look().await;
        assert_eq!(kinds(&look), [expected], "{reply:?}");
        assert_eq!(look.observed.termination, Answer::Unknown, "{reply:?}");
        assert_eq!(look.observed.rebalance, Answer::Nothing, "the others are answered: {reply:?}");
    }
    service.set("events/maintenance/scheduled", Reply::ok(r#"[{"EventId": 5}]"#));
    service.set(item, Reply::status(404));
    assert_eq!(kinds(&metadata.look().await), ["unreadable events"]);
    service.set("events/maintenance/scheduled", Reply::ok("[]"));
    assert_eq!(kinds(&metadata.look().await), [""; 0]);
    // Neither a retry nor a step towards the redirect's target.
    let asked = service.requests().iter().filter(|one| one.ends_with(item)).count();
    assert_eq!(asked, 15);
}

#[tokio::test]
async fn without_a_token_nothing_is_asked() {
    let service = Service::start().await;
    let mut metadata = metadata(&service).await;
    for (reply, expected) in [
        (Reply::status(500), "refused"),
        (Reply::status(403), "refused"),
        (Reply::status(404), "refused"),
        (Reply::ok(""), "bad token"),
        (Reply::ok("two\r\nlines"), "bad token"),
        (Reply::Close, "broken off"),
        (Reply::Silence, "timed out"),
    ] {
        service.set_token(reply.clone());
        let look = metadata.look().await;
        assert_eq!(kinds(&look), [expected], "{reply:?}");
        assert!(look.observed.is_unknown());
    }
    assert!(service.requests().iter().all(|request| request.starts_with("PUT ")));
    let nobody: Endpoint = "http://127.0.0.1:1".parse().unwrap();
    let mut metadata = Metadata::new(nobody, env());
    assert_eq!(kinds(&metadata.look().await), ["unreachable"]);
}

#[tokio::test]
async fn a_token_is_used_until_shortly_before_its_end() {
    let service = Service::start().await;
    let mut metadata = metadata(&service).await;
    let tokens = |service: &Service| {
        service.requests().iter().filter(|request| request.starts_with("PUT ")).count()
    };
    metadata.look().await;
    let hours = Duration::from_secs(3600);
    for (passed, expected) in [(hours * 5, 1), (hours / 2, 2), (hours, 2)] {
        tokio::time::pause();
        tokio::time::advance(passed).await;
        tokio::time::resume();
        assert_eq!(kinds(&metadata.look().await), [""; 0]);
        assert_eq!(tokens(&service), expected);
    }
}

#[tokio::test]
async fn a_refused_token_is_replaced_at_once_and_only_once() {
    let service = Service::start().await;
    let mut metadata = metadata(&service).await;
    metadata.look().await;
    // As after a restart of the service: the old token means nothing to it.
    service.forget_tokens();
    let look = metadata.look().await;
    assert_eq!(kinds(&look), [""; 0]);
    let tokens = |service: &Service| {
        service.requests().iter().filter(|request| request.starts_with("PUT ")).count()
    };
    assert_eq!(tokens(&service), 2);
    // A service that refuses whatever it gave is asked no more than twice.
    service.refuse_tokens();
    assert_eq!(kinds(&metadata.look().await), ["refused"; 4]);
    assert_eq!(tokens(&service), 3);
    assert_eq!(kinds(&metadata.look().await), ["refused"; 4]);
    assert_eq!(tokens(&service), 4);
}
