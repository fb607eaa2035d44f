//! How does the cluster of `machinist up` end from outside?

use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::home::Home;

/// Longer than an orderly end takes on a busy machine; then it is ended as `kill -9` does, and the
/// kernel ends its children.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_PERIOD: Duration = Duration::from_millis(100);

pub async fn run() -> anyhow::Result<()> {
    let home = Home::here()?;
    let was_there = home.folder().exists();
    let ended = match home.holder()? {
        Some(process) => {
            end(&home, process).await?;
            true
        }
        None => false,
    };
    if !was_there {
        println!("no cluster of `machinist up` is in this folder");
        return Ok(());
    }
    // What is left after a process that was killed; nothing after an orderly end.
    if home.folder().exists() {
        let lock = home.lock()?;
        home.remove(lock)?;
    }
    if ended {
        println!("the cluster is gone");
    } else {
        println!("nothing was running; what was left of an earlier cluster is removed");
    }
    Ok(())
}

/// Asks the holder to end and waits until its lock is free. While the lock is held, the process
/// lives, so its id belongs to nobody else.
async fn end(home: &Home, process: u32) -> anyhow::Result<()> {
    send(process, Signal::TERM)?;
    let deadline = Instant::now() + PATIENCE;
    while home.holder()? == Some(process) {
        if Instant::now() > deadline {
            eprintln!("process {process} does not end; ending it now");
            send(process, Signal::KILL)?;
            break;
        }
        sleep(LOOK_PERIOD).await;
    }
    while home.holder()? == Some(process) {
        if Instant::now() > deadline + PATIENCE {
            bail!("process {process} cannot be ended");
        }
        sleep(LOOK_PERIOD).await;
    }
    Ok(())
}

fn send(process: u32, signal: Signal) -> anyhow::Result<()> {
    let target = i32::try_from(process).ok().and_then(Pid::from_raw);
    let target = target.with_context(|| format!("{process} is no process id"))?;
    match kill_process(target, signal) {
        // It ended by itself in the meantime.
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot end process {process}")),
    }
}
