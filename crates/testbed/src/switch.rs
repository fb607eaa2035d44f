//! How is a part of the testbed turned on and off while the cluster runs?

use tokio::sync::watch;
use tokio::task::JoinSet;

/// Runs a piece of work while it is on. Dropping it ends the work.
pub struct Switch {
    on: watch::Sender<bool>,
    #[expect(dead_code, reason = "held for its Drop, which ends the task")]
    task: JoinSet<()>,
}

impl Switch {
    /// `work` starts anew each time the switch is turned on, and is dropped when it is turned off.
    pub(crate) fn new<Work>(on: bool, work: impl Fn() -> Work + Send + 'static) -> Self
    where
        Work: Future<Output = ()> + Send + 'static,
    {
        let (sender, mut receiver) = watch::channel(on);
        let mut task = JoinSet::new();
        task.spawn(async move {
            while receiver.wait_for(|on| *on).await.is_ok() {
                let work = work();
                tokio::select! {
                    biased;
                    off = receiver.wait_for(|on| !*on) => if off.is_err() { return },
                    () = work => return,
                }
            }
        });
        Self { on: sender, task }
    }

    pub fn set(&self, on: bool) {
        self.on.send_replace(on);
    }
}
