//! May this process act right now?
//!
//! The election publishes until when its leases are safely held; everyone who is about to act asks here. The
//! answer depends on the monotonic clock at the moment of asking, so a process that was
//! stopped for minutes and resumed sees that its time is over before any task noticed (invariant S25).

use std::sync::Arc;

use tokio::time::Instant;

use super::latest;

/// Tells whether this process holds all of its leases.
#[derive(Clone, Debug)]
pub struct Leadership {
    claim: latest::Receiver<Claim>,
    /// Keeps the channel of a leadership without election open.
    _constant: Option<Arc<latest::Sender<Claim>>>,
}

/// What the election last said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// At least one lease is not held.
    NotHeld,
    /// All are held; acting is safe before this time.
    HeldUntil(Instant),
    /// There is no election.
    Always,
}

impl Leadership {
    /// Returns a leadership that is always held: for tests and for runs without election.
    #[must_use]
    pub fn always_held() -> Self {
        let sender = latest::Sender::new(Claim::Always);
        Self { claim: sender.subscribe(), _constant: Some(Arc::new(sender)) }
    }

    pub(super) fn elected() -> (latest::Sender<Claim>, Self) {
        let sender = latest::Sender::new(Claim::NotHeld);
        let claim = sender.subscribe();
        (sender, Self { claim, _constant: None })
    }

    /// Returns whether acting is safe now. Ask again before each effect that others could repeat.
    #[must_use]
    pub fn is_held(&self) -> bool {
        match self.claim.get() {
            Claim::NotHeld => false,
            Claim::HeldUntil(until) => Instant::now() < until,
            Claim::Always => true,
        }
    }

    /// Waits until it is held. Never returns when the election has ended.
    pub async fn held(&mut self) {
        while !self.is_held() {
            self.changed().await;
        }
    }

    /// Waits until the election says something new: gained, lost or prolonged.
    pub async fn changed(&mut self) {
        if self.claim.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
