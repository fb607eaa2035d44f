//! What was said last, and who waits for more?
//!
//! One value, one sender, any number of receivers that each see the newest. tokio's `watch` does the
//! same but wakes its receivers in an order that it draws by chance, so a run could not be replayed;
//! here they are woken in the order in which they began to wait.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

/// The one who speaks.
#[derive(Debug)]
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

/// One of those who listen.
#[derive(Debug)]
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    seen: u64,
}

#[derive(Debug)]
struct Shared<T> {
    said: Mutex<Said<T>>,
    is_over: AtomicBool,
    changed: Notify,
}

#[derive(Debug)]
struct Said<T> {
    value: T,
    version: u64,
}

/// The sender is gone: nothing new will come.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("nothing more will be said")]
pub struct Over;

impl<T: Clone> Sender<T> {
    #[must_use]
    pub fn new(value: T) -> Self {
        let said = Mutex::new(Said { value, version: 0 });
        let shared = Shared { said, is_over: AtomicBool::new(false), changed: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    /// A receiver that has seen what was said so far.
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T> {
        let seen = self.shared.lock().version;
        Receiver { shared: Arc::clone(&self.shared), seen }
    }

    #[must_use]
    pub fn get(&self) -> T {
        self.shared.lock().value.clone()
    }

    /// Says something new and returns what was said before.
    pub fn send_replace(&self, value: T) -> T {
        let before = {
            let mut said = self.shared.lock();
            said.version += 1;
            std::mem::replace(&mut said.value, value)
        };
        self.shared.changed.notify_waiters();
        before
    }
}

impl<T: Clone + Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.changed.notify_waiters();
    }
}

impl<T: Clone> Receiver<T> {
    #[must_use]
    pub fn get(&self) -> T {
        self.shared.lock().value.clone()
    }

    /// What was said last, which counts as seen.
    pub fn get_and_see(&mut self) -> T {
        let said = self.shared.lock();
        self.seen = said.version;
        said.value.clone()
    }

    /// Waits for something that was not seen yet, which then counts as seen. Cancelling the wait loses
    /// nothing.
    ///
    /// # Errors
    /// Fails when nothing new will come.
    pub async fn changed(&mut self) -> Result<(), Over> {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            // Before looking: what is said in between must not be missed.
            changed.as_mut().enable();
            let version = self.shared.lock().version;
            if version != self.seen {
                self.seen = version;
                return Ok(());
            }
            if self.shared.is_over.load(Ordering::Relaxed) {
                return Err(Over);
            }
            changed.await;
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), seen: self.seen }
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Said<T>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn receivers_see_the_newest_and_then_the_end() {
        let sender = Sender::new(1);
        let mut receiver = sender.subscribe();
        assert_eq!(sender.send_replace(2), 1);
        sender.send_replace(3);
        receiver.changed().await.unwrap();
        assert_eq!((receiver.get(), sender.get()), (3, 3));
        let waiting = receiver.clone();
        let waits = async move {
            let mut waiting = waiting;
            waiting.changed().await
        };
        let (result, ()) = tokio::join!(waits, async { drop(sender) });
        result.unwrap_err();
    }

    #[tokio::test]
    async fn receivers_are_woken_in_the_order_of_their_waits() {
        let sender = Sender::new(0);
        let order = Mutex::new(Vec::new());
        let wait = |number: usize| {
            let mut receiver = sender.subscribe();
            let order = &order;
            async move {
                receiver.changed().await.unwrap();
                order.lock().unwrap().push(number);
            }
        };
        let waits = futures::future::join_all((0..20).map(wait));
        tokio::join!(waits, async {
            let _ = sender.send_replace(1);
        });
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }
}
