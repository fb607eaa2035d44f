//! How is a program started, watched and ended?

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::sync::{oneshot, watch};

use crate::guard::Guard;

/// What to run. The environment starts empty but for `PATH` and a home of its own, so that neither
/// the user's `KUBECONFIG` nor their cloud credentials or proxies reach a child.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Names the log file and the errors.
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(String, OsString)>,
    /// Working directory and `HOME`.
    pub home: PathBuf,
    /// The folder of `<name>.log`, which is appended to.
    pub log_folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("cannot open the log {path} of {name}")]
    Log { name: String, path: PathBuf, source: io::Error },
    #[error("cannot start {name} ({program})")]
    Start { name: String, program: PathBuf, source: io::Error },
    #[error("{name} ended early ({status}); the end of {log}:\n{last_lines}")]
    EndedEarly { name: String, status: ExitStatus, log: PathBuf, last_lines: String },
}

/// A running child. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    child: Arc<Mutex<Reaped>>,
    process_id: u32,
    exit: watch::Receiver<Option<ExitStatus>>,
}

/// The child until it is reaped; then its process id may belong to somebody else and no signal must
/// be sent to it any more.
#[derive(Debug)]
enum Reaped {
    NotYet(Child),
    Done,
}

impl Process {
    /// Starts a guarded child: it ends when this process ends, however that happens.
    pub async fn start(guard: &Guard, launch: Launch) -> Result<Self, ProcessError> {
        let log = launch.log_folder.join(format!("{}.log", launch.name));
        let open = || -> io::Result<(File, File)> {
            let file = OpenOptions::new().create(true).append(true).open(&log)?;
            Ok((file.try_clone()?, file))
        };
        let (stdout, stderr) = open().map_err(|source| ProcessError::Log {
            name: launch.name.clone(),
            path: log.clone(),
            source,
        })?;

        let mut command = guard.command(&launch.program);
        command
            .args(&launch.arguments)
            .env_clear()
            .env("HOME", &launch.home)
            .envs(launch.environment)
            .current_dir(&launch.home)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            // Ctrl-C in a terminal reaches the whole group; the parent ends its children in order.
            .process_group(0);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }

        let child =
            spawn_on_lasting_thread(command).await.map_err(|source| ProcessError::Start {
                name: launch.name.clone(),
                program: launch.program.clone(),
                source,
            })?;
        let process_id = child.id();
        let child = Arc::new(Mutex::new(Reaped::NotYet(child)));
        let (sender, exit) = watch::channel(None);
        reap_on_own_thread(Arc::clone(&child), process_id, sender);
        Ok(Self { name: launch.name, log, child, process_id, exit })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub const fn id(&self) -> u32 {
        self.process_id
    }

    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    #[must_use]
    pub fn is_running(&self) -> bool {
        self.exit.borrow().is_none()
    }

    /// Fails with the end of the log if the program is no longer running.
    pub fn check_running(&self) -> Result<(), ProcessError> {
        let Some(status) = *self.exit.borrow() else { return Ok(()) };
        Err(ProcessError::EndedEarly {
            name: self.name.clone(),
            status,
            log: self.log.clone(),
            last_lines: last_lines(&self.log),
        })
    }

    /// Waits for the program's end.
    pub async fn wait(&self) -> Option<ExitStatus> {
        let mut exit = self.exit.clone();
        exit.wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }

    /// Asks the program to end, and ends it if it has not after `patience`.
    pub async fn stop(&self, patience: Duration) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(patience, self.wait()).await.is_err() {
            self.kill().await;
        }
    }

    /// Ends the program as `kill -9` does and waits until it is gone.
    pub async fn kill(&self) {
        self.signal(Signal::KILL);
        self.wait().await;
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if let Reaped::NotYet(child) = &*child {
            // The only error, "no such process", cannot be: the child is not reaped yet.
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

type SpawnRequest = (Command, oneshot::Sender<io::Result<Child>>);

/// The parent-death signal is sent when the spawning thread ends, and the threads of an async
/// runtime come and go. This one stays.
async fn spawn_on_lasting_thread(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<SpawnRequest>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, requests) = mpsc::channel::<SpawnRequest>();
        thread::spawn(move || {
            for (mut command, answer) in requests {
                // Nobody waits for the answer any more: the child's handle is dropped with it.
                if let Err(Ok(mut orphan)) = answer.send(command.spawn()) {
                    let _ = orphan.kill();
                    let _ = orphan.wait();
                }
            }
        });
        Mutex::new(sender)
    });
    let gone = || io::Error::other("the spawning thread is gone");
    let (answer, spawned) = oneshot::channel();
    spawner
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send((command, answer))
        .map_err(|_| gone())?;
    spawned.await.map_err(|_| gone())?
}

/// Waits without reaping, then reaps under the lock, so that [`Process::signal`] never signals a
/// process id that was given to another process.
fn reap_on_own_thread(
    child: Arc<Mutex<Reaped>>,
    process_id: u32,
    exit: watch::Sender<Option<ExitStatus>>,
) {
    thread::spawn(move || {
        if let Some(pid) = i32::try_from(process_id).ok().and_then(Pid::from_raw) {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
        }
        let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
        if let Reaped::NotYet(running) = &mut *child {
            let status = running.wait();
            *child = Reaped::Done;
            drop(child);
            exit.send_replace(status.ok());
        }
    });
}

fn last_lines(log: &Path) -> String {
    const KEPT_LINES: usize = 15;
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(KEPT_LINES)..).unwrap_or_default().join("\n")
}
