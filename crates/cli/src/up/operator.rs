//! How is the operator kept running? As a process; when it ends, a person is told and it is started
//! again.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use machinist_testbed::Cluster;
use machinist_testbed::operator_process::{OperatorConfig, OperatorProcess, find_program};
use tokio::time::{Instant, sleep};

use super::SharedState;
use super::progress::Progress;

/// From the start of the process to its open port, on a busy machine.
const START_PATIENCE: Duration = Duration::from_secs(60);
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// Between two looks at the cluster's programs.
const CHECK_PERIOD: Duration = Duration::from_secs(1);
/// The pause before a restart doubles from the first to the last while the operator dies young.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(15);
const GROWN_UP: Duration = Duration::from_secs(10);

/// A port that nobody has.
const FREE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A running operator and where it answers.
pub struct Operator {
    pub process: OperatorProcess,
    addresses: Addresses,
    flags: Vec<String>,
    files: AddressFiles,
}

/// Where an operator answers, or is to.
#[derive(Clone, Copy)]
struct Addresses {
    metrics: SocketAddr,
    /// None where the operator has no page.
    page: Option<SocketAddr>,
}

/// The files to which it writes where it answers.
struct AddressFiles {
    metrics: PathBuf,
    page: PathBuf,
}

impl Operator {
    /// Starts it on a free port and waits until it answers there.
    pub async fn start(cluster: &Cluster, flags: Vec<String>) -> anyhow::Result<Self> {
        let files = AddressFiles {
            metrics: cluster.folder().join("operator-address"),
            page: cluster.folder().join("page-address"),
        };
        let page = has_page().then_some(FREE);
        let wanted = Addresses { metrics: FREE, page };
        let (process, addresses) = launch(cluster, &flags, &files, wanted).await?;
        Ok(Self { process, addresses, flags, files })
    }

    /// Starts it again on the same ports, or on others where one of them is taken.
    async fn restart(&mut self, cluster: &Cluster) -> anyhow::Result<()> {
        let same = launch(cluster, &self.flags, &self.files, self.addresses).await;
        let (process, addresses) = match same {
            Ok(started) => started,
            Err(_) => {
                let page = self.addresses.page.map(|_| FREE);
                launch(cluster, &self.flags, &self.files, Addresses { metrics: FREE, page }).await?
            }
        };
        self.process = process;
        self.addresses = addresses;
        Ok(())
    }

    pub fn metrics_url(&self) -> String {
        format!("http://{}/metrics", self.addresses.metrics)
    }

    pub fn page_url(&self) -> Option<String> {
        self.addresses.page.map(|address| format!("http://{address}/"))
    }
}

/// Whether the operator serves a page: `MACHINIST_OPERATOR` may name one of another version.
fn has_page() -> bool {
    let help =
        find_program().and_then(|program| Ok(Command::new(program).arg("--help").output()?));
    help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--page-address "))
}

async fn launch(
    cluster: &Cluster,
    flags: &[String],
    files: &AddressFiles,
    wanted: Addresses,
) -> anyhow::Result<(OperatorProcess, Addresses)> {
    // An address of the one before would be taken for the new one's.
    std::fs::remove_file(&files.metrics).ok();
    std::fs::remove_file(&files.page).ok();
    let mut arguments: Vec<OsString> = flags.iter().map(OsString::from).collect();
    arguments.push(format!("--http-address={}", wanted.metrics).into());
    arguments.push(format!("--http-address-file={}", files.metrics.display()).into());
    if let Some(page) = wanted.page {
        arguments.push(format!("--page-address={page}").into());
        arguments.push(format!("--page-address-file={}", files.page.display()).into());
        // It is this machine's alone, and whoever has the token of `up` may approve.
        arguments.extend(["--page-plain-http".into(), "--page-writes".into()]);
    }
    // The default port would be in the way of another cluster on this host.
    arguments.push("--webhook-address=127.0.0.1:0".into());
    let process = cluster.start_operator(OperatorConfig::find(arguments)?).await?;
    let deadline = Instant::now() + START_PATIENCE;
    loop {
        process.process().check_running()?;
        let page = written_address(&files.page);
        if let Some(metrics) = written_address(&files.metrics)
            && page.is_some() == wanted.page.is_some()
        {
            return Ok((process, Addresses { metrics, page }));
        }
        if Instant::now() > deadline {
            bail!(
                "the operator does not open its port; its log is {}",
                process.process().log().display()
            );
        }
        sleep(LOOK_PERIOD).await;
    }
}

/// The first line, once it is whole.
fn written_address(file: &Path) -> Option<SocketAddr> {
    let text = std::fs::read_to_string(file).ok()?;
    let (line, _) = text.split_once('\n')?;
    line.trim().parse().ok()
}

/// Watches over the cluster's programs and the operator, if there is one.
pub struct Keeper<'a> {
    pub cluster: &'a Cluster,
    pub state: &'a SharedState,
    pub progress: &'a Progress,
    pub operator: Option<Operator>,
}

impl Keeper<'_> {
    /// Writes down where the operator is.
    pub fn publish(&self) -> anyhow::Result<()> {
        let operator = self.operator.as_ref();
        self.state.change(|state| {
            state.operator_metrics = operator.map(Operator::metrics_url);
            state.page = operator.and_then(Operator::page_url);
            state.operator_process = operator.map(|operator| operator.process.process().id());
        })
    }

    /// Returns only when a program of the cluster itself has ended.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let mut pause = FIRST_PAUSE;
        loop {
            let begun = Instant::now();
            let how = tokio::select! {
                biased;
                how = ended(self.operator.as_ref()) => how,
                broken = broken(self.cluster) => return broken,
            };
            pause = if begun.elapsed() < GROWN_UP { pause } else { FIRST_PAUSE };
            let Some(operator) = &mut self.operator else { continue };
            self.progress.warn(&format!(
                "the operator ended ({how}) and is started again in {} s; its log is {}",
                pause.as_secs(),
                operator.process.process().log().display()
            ));
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
            match operator.restart(self.cluster).await {
                Ok(()) => self.publish()?,
                // The loop sees that it does not run and tries again.
                Err(error) => self.progress.warn(&format!("{error:#}")),
            }
        }
    }
}

/// Completes when the operator ends; never without one.
async fn ended(operator: Option<&Operator>) -> String {
    match operator {
        Some(operator) => {
            let status = operator.process.process().wait().await;
            status.map_or_else(|| "its status is not known".to_owned(), |status| status.to_string())
        }
        None => std::future::pending().await,
    }
}

/// Completes when a program of the cluster has ended.
async fn broken(cluster: &Cluster) -> anyhow::Result<()> {
    loop {
        cluster.check_running().context("the cluster is broken")?;
        sleep(CHECK_PERIOD).await;
    }
}
