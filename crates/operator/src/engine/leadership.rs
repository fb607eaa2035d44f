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
    /// Of the first lease alone.
    first: latest::Receiver<Claim>,
    /// What is in the way, in words.
    obstacle: latest::Receiver<Option<String>>,
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

/// What the election says to those who ask.
pub(super) struct Told {
    pub claim: latest::Sender<Claim>,
    /// Of the first lease alone.
    pub first_claim: latest::Sender<Claim>,
    /// What is in the way of the first lease that is not held.
    pub obstacle: latest::Sender<Option<String>>,
}

impl Claim {
    fn is_good(self) -> bool {
        match self {
            Self::NotHeld => false,
            Self::HeldUntil(until) => Instant::now() < until,
            Self::Always => true,
        }
    }
}

impl Leadership {
    /// Returns a leadership that is always held: for tests and for runs without election.
    #[must_use]
    pub fn always_held() -> Self {
        let sender = latest::Sender::new(Claim::Always);
        let (claim, first) = (sender.subscribe(), sender.subscribe());
        let obstacle = latest::Sender::default().subscribe();
        Self { claim, first, obstacle, _constant: Some(Arc::new(sender)) }
    }

    /// One that another process has.
    #[cfg(test)]
    pub(crate) fn never_held() -> Self {
        let sender = latest::Sender::new(Claim::NotHeld);
        let (claim, first) = (sender.subscribe(), sender.subscribe());
        let obstacle = latest::Sender::default().subscribe();
        Self { claim, first, obstacle, _constant: Some(Arc::new(sender)) }
    }

    /// With what the election tells.
    pub(super) fn elected() -> (Told, Self) {
        let told = Told {
            claim: latest::Sender::new(Claim::NotHeld),
            first_claim: latest::Sender::new(Claim::NotHeld),
            obstacle: latest::Sender::default(),
        };
        let leadership = Self {
            claim: told.claim.subscribe(),
            first: told.first_claim.subscribe(),
            obstacle: told.obstacle.subscribe(),
            _constant: None,
        };
        (told, leadership)
    }

    /// Why it is not held, in words: who has a lease, or why it cannot be taken. None before that was looked at.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        self.obstacle.get()
    }

    /// Returns whether acting is safe now. Ask again before each effect that others could repeat.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.claim.get().is_good()
    }

    /// Whether the first lease is held, that of the operator: enough to clear the way to the others.
    #[must_use]
    pub fn is_first_held(&self) -> bool {
        self.first.get().is_good()
    }

    /// Waits until something new is said of the first lease.
    pub async fn first_changed(&mut self) {
        if self.first.changed().await.is_err() {
            std::future::pending::<()>().await;
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
