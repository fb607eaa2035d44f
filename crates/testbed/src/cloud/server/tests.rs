//! Does the shell carry the model faithfully? Raw HTTP against a served cloud, and the wire's details.

mod metadata;

use proptest::prelude::*;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{query::Parameters, requests::read_request, xml::Xml, *};
use crate::cloud::model::{
    Caller, ChangedBy, InstanceState, LedgerQuery, Request, RunInstances, Service,
};

fn pairs(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

#[test]
fn parameters_become_the_request() {
    let request = read_request(
        Service::Ec2,
        "DescribeInstances",
        pairs(
            "Action=DescribeInstances&Version=2016-11-15&Filter.2.Name=b&Filter.2.Value.1=x\
             &Filter.10.Name=c&Filter.10.Value.2=z&Filter.10.Value.1=y&Filter.1.Name=a\
             &Filter.1.Value.1=w&MaxResults=7&NextToken=",
        ),
    );
    let Ok(Request::DescribeInstances(request)) = request else { panic!("{request:?}") };
    let filters: Vec<(String, Vec<String>)> =
        request.filters.into_iter().map(|filter| (filter.name, filter.values)).collect();
    assert_eq!(
        filters,
        [
            ("a".into(), vec!["w".into()]),
            ("b".into(), vec!["x".into()]),
            ("c".into(), vec!["y".into(), "z".into()]),
        ]
    );
    assert_eq!((request.page.max_results, request.page.next_token), (Some(7), None));
}

#[test]
fn unreadable_parameters_are_named() {
    for (query, code, word) in [
        ("Action=Fly", "InvalidAction", "Fly"),
        ("Version=1", "MissingAction", "action"),
        ("Action=DescribeVpcs&Foo=1", "UnknownParameter", "Foo"),
        ("Action=DescribeVpcs&VpcId.1.Foo=1", "UnknownParameter", "VpcId.1"),
        ("Action=DescribeVpcs&VpcId=1", "UnknownParameter", "VpcId"),
        ("Action=DescribeVpcs&VpcId.x=1", "UnknownParameter", "VpcId.x"),
        ("Action=DescribeVpcs&Filter.1.Value.1=1", "MissingParameter", "Filter.1.Name"),
        ("Action=DescribeVpcs&MaxResults=many", "InvalidParameterValue", "MaxResults"),
        ("Action=DescribeVpcs&DryRun=perhaps", "InvalidParameterValue", "DryRun"),
        ("Action=DescribeVpcs&VpcId.1=a&VpcId.1=b", "MalformedQueryString", "VpcId.1"),
        ("Action=RunInstances&MaxCount=1", "MissingParameter", "MinCount"),
        (
            "Action=RunInstances&MinCount=1&MaxCount=1&UserData=%25%25",
            "InvalidParameterValue",
            "BASE64",
        ),
        (
            "Action=RunInstances&MinCount=1&MaxCount=1&LaunchTemplate.Version=1",
            "UnsupportedOperation",
            "LaunchTemplate",
        ),
        (
            "Action=RunInstances&MinCount=1&MaxCount=1&Placement.Moon=1",
            "UnknownParameter",
            "Placement.Moon",
        ),
        ("Action=DescribeVpcs&a.b.c.d.e.f.g.h.i=1", "UnknownParameter", "a.b.c"),
    ] {
        let pairs = pairs(query);
        let action = pairs.iter().find(|(name, _)| name == "Action");
        let action = action.map(|(_, action)| action.clone()).unwrap_or_default();
        let error = read_request(Service::Ec2, &action, pairs).expect_err(query);
        assert_eq!(error.code, code, "{query}");
        assert!(error.message.contains(word), "{query}: {}", error.message);
    }
}

proptest! {
    #[test]
    fn no_parameters_can_break_the_reader(
        action in prop_oneof![Just("RunInstances".to_owned()), Just("DescribeInstances".to_owned())],
        pairs in proptest::collection::vec(("[A-Za-z.0-9]{0,20}", any::<String>()), 0..12),
    ) {
        Parameters::from_pairs(pairs.clone()).ok();
        read_request(Service::Ec2, &action, pairs).ok();
    }

    #[test]
    fn text_is_always_escaped(value in any::<String>()) {
        let mut xml = Xml::document();
        xml.text("a", &value);
        let document = xml.finish();
        let inner = document
            .split_once("<a>")
            .and_then(|(_, rest)| rest.strip_suffix("</a>"))
            .expect("one element");
        prop_assert!(!inner.contains(['<', '>', '"', '\'']));
        prop_assert!(inner.chars().all(|character| character >= ' ' || "\t\n".contains(character)));
        let read = inner
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&apos;", "'")
            .replace("&#13;", "\r")
            .replace("&amp;", "&");
        let expected: String = value
            .chars()
            .map(|character| match character {
                '\t' | '\n' | '\r' => character,
                control if control < ' ' || matches!(control, '\u{fffe}' | '\u{ffff}') => '\u{fffd}',
                other => other,
            })
            .collect();
        prop_assert_eq!(read, expected);
    }
}

/// Sends one request on a connection of its own and returns all that comes back.
async fn exchange(url: &str, method: &str, path: &str, headers: &str, body: &str) -> String {
    let address = url.strip_prefix("http://").expect("a plain url");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

async fn cloud() -> CloudServer {
    serve(CloudConfig::fast(), None).await.expect("a cloud")
}

fn launch(handle: &CloudHandle) -> RunInstances {
    let world = handle.world();
    RunInstances {
        image_id: world.images.get("x86_64").cloned(),
        instance_type: Some("m5.large".into()),
        min_count: 1,
        max_count: 1,
        subnet_id: world.private_subnets.get("us-east-1a").cloned(),
        ..RunInstances::default()
    }
}

/// Waits on the cloud's own notice until its only instance is as wanted.
async fn until(handle: &CloudHandle, wanted: impl Fn(&crate::cloud::InstanceFacts) -> bool) {
    let mut changes = handle.watch();
    let reached = async {
        while !handle.snapshot().iter().any(&wanted) {
            changes.changed().await.expect("a living cloud");
        }
    };
    let deadline = std::time::Duration::from_secs(60);
    tokio::time::timeout(deadline, reached).await.expect("within the deadline");
}

#[tokio::test]
async fn get_and_post_answer_with_ec2s_xml() {
    let server = cloud().await;
    let query = "Action=DescribeVpcs&Version=2016-11-15";
    for (method, path, body) in [("GET", format!("/?{query}"), ""), ("POST", "/".into(), query)] {
        let answer = exchange(&server.ec2_url(), method, &path, "", body).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("text/xml"), "{answer}");
        assert!(answer.contains("<DescribeVpcsResponse xmlns="), "{answer}");
    }
    let answer = exchange(&server.ec2_url(), "POST", "/", "", "Action=Fly").await;
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert!(
        answer.contains("<Response><Errors><Error><Code>InvalidAction</Code><Message>"),
        "{answer}"
    );
    let answer = exchange(&server.ec2_url(), "PUT", "/", "", query).await;
    assert!(answer.contains("<Code>InvalidRequest</Code>"), "{answer}");
}

#[tokio::test]
async fn ledger_names_the_caller_and_hides_user_data_that_could_not_be_read() {
    let server = cloud().await;
    let headers = "user-agent: tester/1\r\nauthorization: AWS4-HMAC-SHA256 \
                   Credential=AKIATEST/20260601/us-east-1/ec2/aws4_request, SignedHeaders=host, \
                   Signature=00\r\n";
    let body = "Action=RunInstances&UserData=c2VjcmV0&Nonsense=1&MinCount=1&MaxCount=1";
    exchange(&server.ec2_url(), "POST", "/", headers, body).await;
    let ledger = server.handle().ledger(&LedgerQuery::default());
    let call = ledger.calls.first().expect("a call");
    assert_eq!(call.access_key_id.as_deref(), Some("AKIATEST"));
    assert_eq!(&*call.user_agent, "tester/1");
    assert_eq!(call.result, "UnknownParameter");
    let text = serde_json::to_string(&ledger).expect("json");
    assert!(text.contains("6 bytes") && !text.contains("c2VjcmV0"), "{text}");
}

#[tokio::test]
async fn lost_answer_closes_the_connection_after_the_effect() {
    let server = cloud().await;
    let faults = r#"{"timeouts": [{"action": "DescribeVpcs", "count": 1}]}"#;
    let answer = exchange(&server.admin_url(), "POST", "/faults", "", faults).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let query = "Action=DescribeVpcs";
    assert_eq!(exchange(&server.ec2_url(), "POST", "/", "", query).await, "");
    let answer = exchange(&server.ec2_url(), "POST", "/", "", query).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn watchers_learn_of_changes_that_only_time_makes() {
    let server = cloud().await;
    let handle = server.handle();
    let request = Request::RunInstances(launch(&handle).into());
    handle.call(&Caller::default(), request).result.expect("a launch");
    until(&handle, |facts| facts.is_up() && facts.boot_generation == 1).await;
    let id = handle.snapshot()[0].id.clone();
    handle.reboot(&id, ChangedBy::User).expect("a reboot");
    until(&handle, |facts| facts.is_up() && facts.boot_generation == 2).await;
    handle.stop(&id, ChangedBy::User).expect("a stop");
    until(&handle, |facts| facts.state == InstanceState::Stopped).await;
    handle.start(&id).expect("a start");
    until(&handle, |facts| facts.is_up() && facts.boot_generation == 3).await;
    handle.terminate(&id, ChangedBy::User).expect("a termination");
    until(&handle, |facts| facts.state == InstanceState::Terminated).await;
}

#[tokio::test]
async fn admin_says_clearly_what_is_wrong() {
    let server = cloud().await;
    for (method, path, body, status, word) in [
        ("POST", "/instances/i-1/stop", "", "404", "i-1"),
        ("POST", "/instances/i-1/stop", r#"{"by": "gremlins"}"#, "400", "gremlins"),
        ("POST", "/instances/i-1/jump", "", "404", "jump"),
        ("POST", "/events", "{", "400", "body"),
        ("PATCH", "/events/instance-event-1", "{}", "404", "instance-event-1"),
        ("POST", "/faults", r#"{"gravity": false}"#, "400", "gravity"),
        ("GET", "/ledger?colour=red", "", "400", "colour"),
        ("PUT", "/faults", "", "405", "method"),
        ("GET", "/else", "", "404", "no such path"),
    ] {
        let answer = exchange(&server.admin_url(), method, path, "", body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
        assert!(answer.contains("\"error\"") && answer.contains(word), "{path}: {answer}");
    }
}

#[tokio::test]
async fn dropped_server_frees_its_ports() {
    let server = cloud().await;
    let url = server.ec2_url();
    let address = url.strip_prefix("http://").expect("a plain url").to_owned();
    drop(server);
    let closed = async { while TcpStream::connect(&address).await.is_ok() {} };
    let deadline = std::time::Duration::from_secs(60);
    tokio::time::timeout(deadline, closed).await.expect("within the deadline");
}

#[tokio::test]
async fn load_balancing_calls_are_told_apart_by_their_version() {
    let server = cloud().await;
    for (version, wanted) in [
        ("2012-06-01", "<DescribeLoadBalancersResult><LoadBalancerDescriptions></LoadBalancer"),
        ("2015-12-01", "<DescribeLoadBalancersResult><LoadBalancers></LoadBalancers></Describe"),
    ] {
        let query = format!("Action=DescribeLoadBalancers&Version={version}");
        let answer = exchange(&server.ec2_url(), "POST", "/", "", &query).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains(wanted), "{answer}");
        assert!(answer.contains("</ResponseMetadata></DescribeLoadBalancersResponse>"), "{answer}");
        let query = format!("Action=Fly&Version={version}");
        let answer = exchange(&server.ec2_url(), "POST", "/", "", &query).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(
            answer.contains("<Error><Type>Sender</Type><Code>InvalidAction</Code>"),
            "{answer}"
        );
    }
    let query = "Action=DescribeLoadBalancers&Version=2016-11-15";
    let answer = exchange(&server.ec2_url(), "POST", "/", "", query).await;
    assert!(answer.contains("<Response><Errors><Error><Code>InvalidAction</Code>"), "{answer}");
    let ledger = server.handle().ledger(&LedgerQuery::default());
    let actions: Vec<&str> = ledger.calls.iter().map(|call| call.action.as_str()).collect();
    assert_eq!(
        actions,
        [
            "elb:DescribeLoadBalancers",
            "elb:Fly",
            "elbv2:DescribeLoadBalancers",
            "elbv2:Fly",
            "DescribeLoadBalancers"
        ]
    );
}

#[tokio::test]
async fn a_held_call_gets_no_answer_until_its_breakpoint_is_removed() {
    let server = cloud().await;
    let handle = server.handle();
    let wanted = r#"{"action": "DescribeVpcs", "nth": 2, "when": "before"}"#;
    let breakpoint =
        handle.add_breakpoint(serde_json::from_str(wanted).expect("json")).expect("a breakpoint");
    let query = "Action=DescribeVpcs";
    let first = exchange(&server.ec2_url(), "POST", "/", "", query).await;
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{first}");
    let url = server.ec2_url();
    let held = exchange(&url, "POST", "/", "", query);
    let removed = async {
        let call = breakpoint.wait_until_hit().await.expect("a hit");
        assert_eq!((call.sequence, call.result.as_str()), (2, "Held"));
        // Others pass while it is held.
        let other = exchange(&server.ec2_url(), "POST", "/", "", query).await;
        assert!(other.starts_with("HTTP/1.1 200 OK\r\n"), "{other}");
        let shown = exchange(&server.admin_url(), "GET", "/breakpoints", "", "").await;
        assert!(shown.contains(r#""hit":true"#) && shown.contains(r#""sequence":2"#), "{shown}");
        let gone = exchange(&server.admin_url(), "DELETE", "/breakpoints", "", "").await;
        assert!(gone.starts_with("HTTP/1.1 204"), "{gone}");
    };
    let deadline = std::time::Duration::from_secs(60);
    let (answer, ()) = tokio::time::timeout(deadline, async { tokio::join!(held, removed) })
        .await
        .expect("within the deadline");
    assert_eq!(answer, "");
    assert!(breakpoint.wait_until_hit().await.is_err());
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_held() {
    let server = cloud().await;
    let handle = server.handle();
    let wanted = r#"{"action": "*", "when": "after", "mutatingOnly": true}"#;
    let breakpoint =
        handle.add_breakpoint(serde_json::from_str(wanted).expect("json")).expect("a breakpoint");
    let address = server.ec2_url().strip_prefix("http://").expect("a plain url").to_owned();
    let world = handle.world();
    let body = format!(
        "Action=RunInstances&MinCount=1&MaxCount=1&InstanceType=m5.large&ImageId={}&SubnetId={}",
        world.images["x86_64"], world.private_subnets["us-east-1a"]
    );
    let mut stream = TcpStream::connect(&address).await.expect("a connection");
    let request = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("a request");
    let deadline = std::time::Duration::from_secs(60);
    let call = tokio::time::timeout(deadline, breakpoint.wait_until_hit())
        .await
        .expect("within the deadline")
        .expect("a hit");
    assert_eq!((call.result.as_str(), call.instance_ids.len()), ("ok", 1));
    drop(stream);
    assert_eq!(handle.snapshot().len(), 1);
    let answer = exchange(&server.ec2_url(), "POST", "/", "", "Action=DescribeVpcs").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}
