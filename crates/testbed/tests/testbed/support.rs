//! What do the tests share? One cluster, a way to wait, and the cloud's doors.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use machinist_testbed::cluster::folder_of_this_process;
use machinist_testbed::guard::Guard;
use machinist_testbed::programs::Progress;
use machinist_testbed::{Cluster, ClusterConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

/// Generous: the cores may be busy with something else.
const PATIENCE: Duration = Duration::from_secs(180);

/// The cluster's tasks live on this runtime, so it must outlive every test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();

pub fn guard() -> Guard {
    Guard::at(PathBuf::from(env!("CARGO_BIN_EXE_testbed-guard")))
}

pub fn run(test: impl Future<Output = ()>) {
    RUNTIME.block_on(test);
}

/// The cluster is never dropped; its programs end with this process.
pub async fn cluster() -> &'static Cluster {
    CLUSTER
        .get_or_init(|| async {
            let config = ClusterConfig {
                guard: guard(),
                folder: Some(
                    folder_of_this_process(Path::new(env!("CARGO_TARGET_TMPDIR")), "testbed-")
                        .unwrap(),
                ),
                progress: Progress::Lines,
                audit: true,
                approve_kubelets: true,
                ..ClusterConfig::fast()
            };
            Cluster::start(config).await.unwrap()
        })
        .await
}

/// Repeats `look` until it finds something.
pub async fn eventually<T, Look: Future<Output = Option<T>>>(
    what: &str,
    look: impl Fn() -> Look,
) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Launches an instance through the wire and returns its id.
pub async fn launch(cluster: &Cluster, name: &str) -> String {
    launch_with(cluster, name, "").await
}

/// Launches a spot instance.
pub async fn launch_spot(cluster: &Cluster, name: &str) -> String {
    let options = "&InstanceMarketOptions.MarketType=spot&MetadataOptions.HttpTokens=required";
    launch_with(cluster, name, options).await
}

async fn launch_with(cluster: &Cluster, name: &str, options: &str) -> String {
    let fitting = "Action=DescribeImages&Filter.1.Name=architecture&Filter.1.Value.1=x86_64";
    let images = ec2(cluster, fitting).await;
    let subnets = ec2(cluster, "Action=DescribeSubnets").await;
    let query = format!(
        "Action=RunInstances&ImageId={}&SubnetId={}&InstanceType=m5.xlarge&MinCount=1&MaxCount=1\
         &TagSpecification.1.ResourceType=instance\
         &TagSpecification.1.Tag.1.Key=Name&TagSpecification.1.Tag.1.Value={name}{options}",
        element(&images, "imageId"),
        element(&subnets, "subnetId"),
    );
    element(&ec2(cluster, &query).await, "instanceId").to_owned()
}

/// Presses a button of the cloud's console.
pub async fn console(cluster: &Cluster, instance: &str, verb: &str) {
    let path = format!("/instances/{instance}/{verb}");
    http_post(cluster.cloud_admin(), &path, "application/json", "{}").await;
}

async fn ec2(cluster: &Cluster, query: &str) -> String {
    let body = format!("{query}&Version=2016-11-15");
    let kind = "application/x-www-form-urlencoded";
    http_post(cluster.ec2_endpoint(), "/", kind, &body).await
}

/// The first `<name>` element's text.
fn element<'a>(xml: &'a str, name: &str) -> &'a str {
    let (_, rest) = xml.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("{name}: {xml}"));
    rest.split_once('<').unwrap().0
}

async fn http_post(url: &str, path: &str, kind: &str, body: &str) -> String {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap_or_default();
    assert!(status.starts_with('2'), "POST {path} {body}: {answer}");
    answer
}

/// The Node of an instance.
pub async fn node_of(cluster: &Cluster, instance: &str) -> Option<Node> {
    let nodes: Api<Node> = Api::all(cluster.admin().clone());
    let list = nodes.list(&Default::default()).await.unwrap();
    list.items.into_iter().find(|node| {
        let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        provider_id.is_some_and(|provider_id| provider_id.ends_with(&format!("/{instance}")))
    })
}

/// The Node of an instance once its Ready condition is as wanted.
pub async fn node_with_ready(cluster: &Cluster, instance: &str, wanted: &str) -> Node {
    eventually(&format!("{instance}: Ready {wanted}"), || async {
        node_of(cluster, instance).await.filter(|node| ready(node) == wanted)
    })
    .await
}

pub fn ready(node: &Node) -> &str {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .filter(|condition| condition.type_ == "Ready")
        .map(|condition| condition.status.as_str())
        .next()
        .unwrap_or_default()
}
