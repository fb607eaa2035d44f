//! Does each instance have a metadata service of its own on the wire?

use super::*;
use crate::cloud::model::{
    InstanceMarketOptions, MetadataOptions, RebalanceRequest, SpotNoticeRequest,
};

struct Guest {
    server: CloudServer,
    id: String,
}

impl Guest {
    async fn ask(&self, method: &str, path: &str, headers: &str) -> (String, String) {
        let (url, below) = self.metadata();
        let answer = exchange(&url, method, &format!("{below}{path}"), headers, "").await;
        let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        (status, body.unwrap_or_default())
    }

    /// The address of its service, and the path below which it is.
    fn metadata(&self) -> (String, String) {
        let url = self.server.metadata_url(&self.id);
        let (base, id) = url.rsplit_once("/_imds/").expect("a path");
        assert_eq!(id, self.id);
        (base.to_owned(), format!("/_imds/{id}"))
    }
}

async fn spot_guest() -> Guest {
    let server = cloud().await;
    let handle = server.handle();
    let request = RunInstances {
        instance_market_options: Some(InstanceMarketOptions {
            market_type: Some("spot".into()),
            spot_options: None,
        }),
        metadata_options: Some(MetadataOptions {
            http_tokens: Some("required".into()),
            ..MetadataOptions::default()
        }),
        ..launch(&handle)
    };
    let request = Request::RunInstances(request.into());
    handle.call(&Caller::default(), request).result.expect("a launch");
    until(&handle, |facts| facts.is_up()).await;
    let id = handle.snapshot()[0].id.clone();
    Guest { server, id }
}

#[tokio::test]
async fn a_guest_gets_a_token_and_sees_what_is_announced() {
    let guest = spot_guest().await;
    let item = "/latest/meta-data/instance-id";
    assert_eq!(guest.ask("GET", item, "").await.0, "401");
    assert_eq!(guest.ask("PUT", "/latest/api/token", "").await.0, "400");
    let wanted = "X-aws-ec2-metadata-token-ttl-seconds: 300\r\n";
    let (status, token) = guest.ask("PUT", "/latest/api/token", wanted).await;
    assert_eq!(status, "200");
    let (url, below) = guest.metadata();
    let raw = exchange(&url, "PUT", &format!("{below}/latest/api/token"), wanted, "").await;
    assert!(raw.contains("x-aws-ec2-metadata-token-ttl-seconds: 300\r\n"), "{raw}");

    let token = format!("X-aws-ec2-metadata-token: {token}\r\n");
    assert_eq!(guest.ask("GET", item, &token).await, ("200".into(), guest.id.clone()));
    let spot = "/latest/meta-data/spot/termination-time";
    assert_eq!(guest.ask("GET", spot, &token).await.0, "404");
    let handle = guest.server.handle();
    handle.spot_notice(&guest.id, &SpotNoticeRequest::default()).expect("a notice");
    handle.rebalance(&guest.id, &RebalanceRequest::default()).expect("a recommendation");
    let (status, time) = guest.ask("GET", spot, &token).await;
    assert!(status == "200" && time.ends_with('Z'), "{status} {time}");
    let rebalance = "/latest/meta-data/events/recommendations/rebalance";
    assert!(guest.ask("GET", rebalance, &token).await.1.contains("noticeTime"));
    // A path of nobody is nobody's service.
    assert_eq!(exchange(&url, "GET", "/_imds/i-0/latest/meta-data/", "", "").await, "");
}

#[tokio::test]
async fn faults_of_the_admin_interface_reach_the_wire() {
    let guest = spot_guest().await;
    let faults = r#"{"metadata": [
        {"kind": "error", "status": 503, "path": "/latest/api/token", "count": 1},
        {"kind": "silence", "path": "/latest/api/token", "count": 1},
        {"kind": "garbage", "path": "/latest/api/*", "count": 1, "after": "1ms"}]}"#;
    let answer = exchange(&guest.server.admin_url(), "POST", "/faults", "", faults).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let token = "/latest/api/token";
    assert_eq!(guest.ask("PUT", token, "").await.0, "503");
    let (url, below) = guest.metadata();
    // Text that is no UTF-8 cannot be read as a String, so the status is looked at apart.
    assert_eq!(exchange(&url, "PUT", &format!("{below}{token}"), "", "").await, "");
    let garbage = exchange_bytes(&url, "PUT", &format!("{below}{token}")).await;
    assert!(garbage.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert!(String::from_utf8(garbage).is_err());
    let path = format!("/instances/{}/rebalance", guest.id);
    let answer = exchange(&guest.server.admin_url(), "POST", &path, "", "").await;
    assert!(answer.contains("rebalanceRecommended\":\"20"), "{answer}");
    let refused = r#"{"metadata": [{"kind": "error", "status": 200}]}"#;
    let answer = exchange(&guest.server.admin_url(), "POST", "/faults", "", refused).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

async fn exchange_bytes(url: &str, method: &str, path: &str) -> Vec<u8> {
    let address = url.strip_prefix("http://").expect("a plain url");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    answer
}
