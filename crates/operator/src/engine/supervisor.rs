//! Who owns the tasks?
//!
//! Every task of the operator lives in one [`Supervisor`]. It ends the process when one of them panics
//! or fails, stops them in order on a graceful shutdown, and dropping it drops all of them whole,
//! which is what a crash looks like to the rest of the world. Nothing else may spawn.

use std::{
    any::Any,
    collections::BTreeMap,
    future::poll_fn,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::Poll,
    time::Duration,
};

use futures::FutureExt;
use tokio::{
    runtime::Handle,
    sync::Notify,
    task::{AbortHandle, JoinSet},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

/// How long graceful tasks may take to finish what they are doing after a shutdown was asked for. A
/// pod has 30 s between SIGTERM and SIGKILL by default; the leases are released within the rest.
pub const STOP_GRACE: Duration = Duration::from_secs(15);

/// Owner of every task.
#[derive(Debug)]
pub struct Supervisor {
    tasks: Arc<Tasks>,
}

/// Starts tasks in a [`Supervisor`]. Once that is gone, starting a task does nothing.
#[derive(Clone, Debug)]
pub struct Spawner {
    tasks: Weak<Tasks>,
    runtime: Handle,
    stop: [CancellationToken; 2],
}

/// When a task is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Does work that must not be cut in the middle: told first, then waited for.
    Graceful,
    /// Told once every graceful task has ended: the holder of the leases.
    Last,
    /// Never told: aborted when all others have ended.
    Background,
}

#[derive(Debug)]
struct Tasks {
    running: Mutex<Running>,
    spawned: Notify,
    stop: [CancellationToken; 2],
}

#[derive(Debug)]
struct Running {
    set: JoinSet<Ended>,
    counts: BTreeMap<Stage, usize>,
    graceful: Vec<AbortHandle>,
}

#[derive(Debug)]
struct Ended {
    name: String,
    stage: Stage,
    result: anyhow::Result<()>,
}

impl Supervisor {
    /// Makes a supervisor that owns nothing yet.
    #[must_use]
    pub fn new() -> Self {
        let running =
            Running { set: JoinSet::new(), counts: BTreeMap::new(), graceful: Vec::new() };
        Self {
            tasks: Arc::new(Tasks {
                running: Mutex::new(running),
                spawned: Notify::new(),
                stop: [CancellationToken::new(), CancellationToken::new()],
            }),
        }
    }

    /// Returns a handle that starts tasks here. Must be called inside the runtime they shall run on.
    #[must_use]
    pub fn spawner(&self) -> Spawner {
        Spawner {
            tasks: Arc::downgrade(&self.tasks),
            runtime: Handle::current(),
            stop: self.tasks.stop.clone(),
        }
    }

    /// Watches over the tasks until `shutdown` completes, then stops them in order: graceful ones
    /// first, then the last ones; the rest is dropped.
    ///
    /// # Errors
    /// Fails, naming the task, as soon as one panics or returns an error.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                ended = self.next_ended() => ended.check()?,
                () = &mut shutdown => break,
            }
        }
        for (stage, stop) in [Stage::Graceful, Stage::Last].into_iter().zip(&self.tasks.stop) {
            stop.cancel();
            let deadline = Instant::now() + STOP_GRACE;
            while self.count(stage) > 0 {
                let Ok(ended) = timeout_at(deadline, self.next_ended()).await else {
                    tracing::warn!(?stage, "tasks did not stop in time and are dropped");
                    self.abort_graceful();
                    break;
                };
                ended.check()?;
            }
        }
        Ok(())
    }

    /// Drops the workers that would not stop, before the leases go: a worker without them must not act.
    fn abort_graceful(&self) {
        for task in self.tasks.lock().graceful.drain(..) {
            task.abort();
        }
    }

    fn count(&self, stage: Stage) -> usize {
        self.tasks.lock().counts.get(&stage).copied().unwrap_or_default()
    }

    /// Waits for the next task to end. Cancelling the wait loses nothing.
    async fn next_ended(&self) -> Ended {
        loop {
            let spawned = self.tasks.spawned.notified();
            let mut spawned = std::pin::pin!(spawned);
            let joined = poll_fn(|context| {
                let mut running = self.tasks.lock();
                match running.set.poll_join_next(context) {
                    Poll::Ready(Some(joined)) => Poll::Ready(Some(joined)),
                    // No task at all: the set would not wake us for the first one.
                    Poll::Ready(None) | Poll::Pending => {
                        drop(running);
                        spawned.as_mut().poll(context).map(|()| None)
                    }
                }
            })
            .await;
            // A panic is caught inside the task, so a join error can only be an abort, and only the
            // supervisor's own end aborts.
            if let Some(Ok(ended)) = joined {
                let mut running = self.tasks.lock();
                if let Some(count) = running.counts.get_mut(&ended.stage) {
                    *count = count.saturating_sub(1);
                }
                return ended;
            }
        }
    }
}

impl Default for Supervisor {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.tasks.lock().set.abort_all();
    }
}

impl Spawner {
    /// Starts a task that runs as long as the process and is dropped with it.
    pub fn spawn(
        &self,
        name: impl Into<String>,
        future: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.start(name.into(), Stage::Background, future);
    }

    /// Starts a task that ends by itself, work finished, soon after [`Spawner::stopping`] is cancelled.
    pub fn spawn_graceful(
        &self,
        name: impl Into<String>,
        future: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.start(name.into(), Stage::Graceful, future);
    }

    /// Starts a task that ends by itself soon after [`Spawner::stopping_last`] is cancelled, which happens
    /// when every graceful task has ended.
    pub fn spawn_last(
        &self,
        name: impl Into<String>,
        future: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.start(name.into(), Stage::Last, future);
    }

    /// Returns the token that tells graceful tasks to stop starting work.
    #[must_use]
    pub fn stopping(&self) -> CancellationToken {
        let [graceful, _] = &self.stop;
        graceful.clone()
    }

    /// Returns the token that tells the last tasks that all work has stopped.
    #[must_use]
    pub fn stopping_last(&self) -> CancellationToken {
        let [_, last] = &self.stop;
        last.clone()
    }

    fn start(
        &self,
        name: String,
        stage: Stage,
        future: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        let Some(tasks) = self.tasks.upgrade() else {
            tracing::debug!(task = name, "not started: the supervisor is gone");
            return;
        };
        let task = async move {
            let result = match AssertUnwindSafe(future).catch_unwind().await {
                Ok(result) => result.map_err(|error| error.context(format!("task {name} failed"))),
                Err(panic) => Err(anyhow::anyhow!("task {name} panicked: {}", panic_text(&*panic))),
            };
            Ended { name, stage, result }
        };
        let mut running = tasks.lock();
        *running.counts.entry(stage).or_default() += 1;
        let handle = running.set.spawn_on(task, &self.runtime);
        if stage == Stage::Graceful {
            running.graceful.push(handle);
        }
        drop(running);
        tasks.spawned.notify_one();
    }
}

impl Tasks {
    fn lock(&self) -> std::sync::MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ended {
    fn check(self) -> anyhow::Result<()> {
        if self.result.is_ok() {
            tracing::debug!(task = self.name, "ended");
        }
        self.result
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown cause")
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_panic_in_one_task_ends_the_run_and_names_the_task() {
        let supervisor = Supervisor::new();
        let spawner = supervisor.spawner();
        spawner.spawn("bystander", pending());
        spawner.spawn("culprit", async { panic!("broken invariant {}", 7) });
        let error = supervisor.run(pending()).await.unwrap_err();
        assert_eq!(error.to_string(), "task culprit panicked: broken invariant 7");
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_in_a_task_started_later_ends_the_run() {
        let supervisor = Supervisor::new();
        let spawner = supervisor.spawner();
        let inner = spawner.clone();
        spawner.spawn("parent", async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            inner.spawn("child", async { Err(anyhow::anyhow!("no route")) });
            Ok(())
        });
        let error = supervisor.run(pending()).await.unwrap_err();
        assert_eq!(format!("{error:#}"), "task child failed: no route");
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_the_supervisor_drops_every_task() {
        let supervisor = Supervisor::new();
        let spawner = supervisor.spawner();
        let (sender, mut receiver) = mpsc::channel::<()>(1);
        spawner.spawn("holder", async move {
            let _held = sender;
            pending().await
        });
        tokio::task::yield_now().await;
        drop(supervisor);
        assert_eq!(receiver.recv().await, None, "the task's state was dropped");
        spawner.spawn("too late", async { panic!("must not run") });
        tokio::task::yield_now().await;
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_stops_graceful_tasks_before_the_last_ones() {
        let supervisor = Supervisor::new();
        let spawner = supervisor.spawner();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let (stopping, stopping_last) = (spawner.stopping(), spawner.stopping_last());
        let last = sender.clone();
        spawner.spawn_last("leases", async move {
            stopping_last.cancelled().await;
            last.send("leases released")?;
            Ok(())
        });
        spawner.spawn_graceful("queue", async move {
            stopping.cancelled().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            sender.send("queue drained")?;
            Ok(())
        });
        spawner.spawn("watch", pending());
        supervisor.run(tokio::time::sleep(Duration::from_secs(1))).await.unwrap();
        assert_eq!(receiver.recv().await, Some("queue drained"));
        assert_eq!(receiver.recv().await, Some("leases released"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_worker_does_not_keep_the_leases_from_being_released() {
        let supervisor = Supervisor::new();
        let spawner = supervisor.spawner();
        let stopping_last = spawner.stopping_last();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        spawner.spawn_graceful("stuck", pending());
        spawner.spawn_last("leases", async move {
            stopping_last.cancelled().await;
            sender.send("released")?;
            Ok(())
        });
        supervisor.run(async {}).await.unwrap();
        assert_eq!(receiver.recv().await, Some("released"));
    }
}
