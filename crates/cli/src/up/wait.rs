//! When do the machines run, and what holds them up until then?

use std::time::Duration;

use anyhow::bail;
use machinist_api::names::phase;
use machinist_testbed::Cluster;
use machinist_testbed::singletons::MACHINE_NAMESPACE;
use tokio::time::{Instant, sleep};

use super::progress::Progress;
use crate::status::{MachineView, Report, Scope, fetch, report};

const LOOK_PERIOD: Duration = Duration::from_millis(500);
/// Without news for so long a person is told what the machines wait for.
const SILENCE: Duration = Duration::from_secs(20);
/// Longer than a slow laptop takes with delays as in life. A script that waits for the background
/// process gets an error after it; a person in front of the screen may look on.
const PATIENCE: Duration = Duration::from_secs(600);

/// Waits until all machines run, their nodes are Ready and their pools say so.
pub async fn until_running(
    cluster: &Cluster,
    machines: usize,
    is_background: bool,
    progress: &Progress,
) -> anyhow::Result<()> {
    let scope = Scope::Namespace(MACHINE_NAMESPACE.to_owned());
    let begun = Instant::now();
    let mut last = usize::MAX;
    let mut news_at = Instant::now();
    progress.start(&format!("0 of {machines} machines run"));
    loop {
        let report = report(&fetch(cluster.admin(), &scope).await?);
        let running = report.machines().filter(|machine| is_up(machine)).count();
        let is_counted = report.pools.iter().all(|pool| pool.waiting.is_none());
        if running >= machines && is_counted {
            progress.done(&format!("all {machines} machines run"));
            return Ok(());
        }
        if running != last {
            last = running;
            news_at = Instant::now();
        }
        let counted = format!("{running} of {machines} machines run");
        if news_at.elapsed() > SILENCE {
            progress.update(&format!("{counted}: {}", first_reason(&report)));
        } else {
            progress.update(&counted);
        }
        if is_background && begun.elapsed() > PATIENCE {
            bail!(
                "after {} minutes only {counted}: {}",
                PATIENCE.as_secs() / 60,
                first_reason(&report)
            );
        }
        sleep(LOOK_PERIOD).await;
    }
}

fn is_up(machine: &MachineView) -> bool {
    machine.phase == phase::RUNNING && machine.waiting.is_none()
}

fn first_reason(report: &Report) -> String {
    let pool = report.pools.iter().filter(|pool| pool.machines.is_empty()).find_map(|pool| {
        pool.waiting.as_ref().map(|waiting| format!("{}: {}", pool.name, waiting.message))
    });
    let machine = report.machines().find_map(|machine| {
        machine.waiting.as_ref().map(|waiting| format!("{}: {}", machine.name, waiting.message))
    });
    pool.or(machine).unwrap_or_else(|| "the machines are not there yet".to_owned())
}
