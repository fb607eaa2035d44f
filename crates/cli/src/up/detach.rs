//! How does a cluster stay when the command returns? A second process, in a session of its own, has
//! it; this one waits until it is ready, shows what it says, and goes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

use crate::args::UpArgs;
use crate::home::Home;
use crate::shutdown::Shutdown;
use crate::state_file::UpState;

const LOOK_PERIOD: Duration = Duration::from_millis(100);

pub async fn run(args: &UpArgs) -> anyhow::Result<()> {
    let home = Home::here()?;
    // Fails with advice where a cluster runs; the background process locks for itself.
    drop(home.lock()?);
    // A file, not a pipe: nobody reads a pipe once this process is gone.
    let answer = tempfile::tempfile().context("cannot create a temporary file")?;
    let mut child = spawn(args, &home, &answer)?;
    let mut progress = File::open(home.log()).context("cannot read the background's log")?;
    let mut shutdown = Shutdown::listen()?;
    tokio::select! {
        biased;
        () = shutdown.requested() => {
            stop(&mut child).await?;
            repeat(&mut progress)?;
            bail!("interrupted; the cluster is gone");
        }
        ready = until_ready(&mut child, &home, &mut progress) => ready?,
    }
    println!("{}", whole(&answer)?.trim_end());
    Ok(())
}

fn spawn(args: &UpArgs, home: &Home, answer: &File) -> anyhow::Result<Child> {
    let log = home.log();
    let describe = || format!("cannot write {}", log.display());
    let output = File::create(&log).with_context(describe)?;
    // The link leads to the program that runs, even after a build has put another in its place.
    Command::new("/proc/self/exe")
        .args(background_arguments(args))
        .stdin(Stdio::null())
        .stdout(answer.try_clone().context("cannot share the temporary file")?)
        .stderr(output)
        .spawn()
        .context("cannot start the background process")
}

fn background_arguments(args: &UpArgs) -> Vec<String> {
    let UpArgs {
        workers,
        control_plane,
        no_operator,
        fast,
        audit_log,
        detach: _,
        background: _,
        experiment: _,
    } = args;
    let mut arguments = vec![
        "up".to_owned(),
        "--background".to_owned(),
        format!("--workers={workers}"),
        format!("--control-plane={control_plane}"),
    ];
    for (flag, is_set) in
        [("--no-operator", no_operator), ("--fast", fast), ("--audit-log", audit_log)]
    {
        if *is_set {
            arguments.push(flag.to_owned());
        }
    }
    arguments
}

/// Repeats what the background process says until its cluster is ready.
async fn until_ready(child: &mut Child, home: &Home, progress: &mut File) -> anyhow::Result<()> {
    loop {
        let ended = child.try_wait().context("cannot watch the background process")?;
        repeat(progress)?;
        if let Some(status) = ended {
            bail!("the background process ended ({status})");
        }
        let state = UpState::read(home.folder())?;
        if state.is_some_and(|state| state.process == child.id() && state.ready) {
            return repeat(progress);
        }
        sleep(LOOK_PERIOD).await;
    }
}

/// Prints what was added to the log since the last time.
fn repeat(progress: &mut File) -> anyhow::Result<()> {
    let mut added = Vec::new();
    progress.read_to_end(&mut added).context("cannot read the background's log")?;
    std::io::stderr().write_all(&added).context("cannot write to standard error")
}

/// Both processes share the position in the file, so it is read by offset.
fn whole(answer: &File) -> anyhow::Result<String> {
    let length = answer.metadata().context("cannot read the answer")?.len();
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    answer.read_exact_at(&mut bytes, 0).context("cannot read the answer")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn stop(child: &mut Child) -> anyhow::Result<()> {
    // The child is not reaped yet, so its id is its own; the error can only be that it has ended.
    kill_process(Pid::from_child(child), Signal::TERM).ok();
    while child.try_wait().context("cannot watch the background process")?.is_none() {
        sleep(LOOK_PERIOD).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command as Subcommand};
    use clap::Parser;

    #[test]
    fn the_background_process_is_told_everything() {
        let words = [
            "machinist",
            "up",
            "--detach",
            "--workers",
            "5",
            "--control-plane",
            "1",
            "--fast",
            "--no-operator",
            "--audit-log",
        ];
        let Subcommand::Up(args) = Args::parse_from(words).command else { panic!() };
        let mut again = vec!["machinist".to_owned()];
        again.extend(background_arguments(&args));
        let Subcommand::Up(told) = Args::parse_from(again).command else { panic!() };
        assert!(told.background && !told.detach);
        assert!(told.fast && told.no_operator && told.audit_log);
        assert_eq!((told.workers, told.control_plane), (5, 1));
    }
}
