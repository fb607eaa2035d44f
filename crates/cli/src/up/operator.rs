//! How is the operator kept running? As a process; when it ends, a person is told and it is started
//! again.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use machinist_testbed::Cluster;
use machinist_testbed::operator_process::{OperatorConfig, OperatorProcess};
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

/// A running operator and where it answers.
pub struct Operator {
    pub process: OperatorProcess,
    pub address: SocketAddr,
    flags: Vec<String>,
    address_file: PathBuf,
}

impl Operator {
    /// Starts it on a free port and waits until it answers there.
    pub async fn start(cluster: &Cluster, flags: Vec<String>) -> anyhow::Result<Self> {
        let address_file = cluster.folder().join("operator-address");
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let (process, address) = launch(cluster, &flags, &address_file, free).await?;
        Ok(Self { process, address, flags, address_file })
    }

    /// Starts it again on the same port, or on another where that one is taken.
    async fn restart(&mut self, cluster: &Cluster) -> anyhow::Result<()> {
        let same = launch(cluster, &self.flags, &self.address_file, self.address).await;
        let (process, address) = match same {
            Ok(started) => started,
            Err(_) => {
                let free = SocketAddr::new(self.address.ip(), 0);
                launch(cluster, &self.flags, &self.address_file, free).await?
            }
        };
        self.process = process;
        self.address = address;
        Ok(())
    }

    pub fn metrics_url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }
}

async fn launch(
    cluster: &Cluster,
    flags: &[String],
    address_file: &Path,
    address: SocketAddr,
) -> anyhow::Result<(OperatorProcess, SocketAddr)> {
    // An address of the one before would be taken for the new one's.
    std::fs::remove_file(address_file).ok();
    let mut arguments: Vec<OsString> = flags.iter().map(OsString::from).collect();
    arguments.push(format!("--http-address={address}").into());
    arguments.push(format!("--http-address-file={}", address_file.display()).into());
    // The default port would be in the way of another cluster on this host.
    arguments.push("--webhook-address=127.0.0.1:0".into());
    let process = cluster.start_operator(OperatorConfig::find(arguments)?).await?;
    let deadline = Instant::now() + START_PATIENCE;
    loop {
        process.process().check_running()?;
        if let Some(address) = written_address(address_file) {
            return Ok((process, address));
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
