//! Whom must a client trust to believe that our servers are us?

use std::{future::pending, sync::Arc};

use machinist_core::admission::configuration::Trust;

use crate::engine::latest;

/// What is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authorities {
    /// Not known yet.
    Pending,
    /// Somebody else tells clients: OpenShift's service-ca.
    ToldByOthers,
    /// These, in PEM. During a change both the old and the new.
    Bundle(Arc<[u8]>),
}

/// Follows whom to trust. Clones follow the same.
#[derive(Clone, Debug)]
pub struct CaBundle {
    authorities: latest::Receiver<Authorities>,
}

/// The one who knows.
#[derive(Debug)]
pub struct CaBundleSource {
    authorities: latest::Sender<Authorities>,
}

impl CaBundle {
    /// One that never changes, for where nothing is served.
    #[must_use]
    pub fn fixed(authorities: Authorities) -> Self {
        CaBundleSource { authorities: latest::Sender::new(authorities) }.bundle()
    }

    #[must_use]
    pub fn get(&self) -> Authorities {
        self.authorities.get()
    }

    /// The same in the words of a webhook configuration; none while it is not known yet.
    #[must_use]
    pub fn trust(&self) -> Option<Trust> {
        match self.get() {
            Authorities::Pending => None,
            Authorities::ToldByOthers => Some(Trust::ServiceCa),
            Authorities::Bundle(pem) => Some(Trust::Bundle(pem.to_vec())),
        }
    }

    /// Waits for something that this one has not seen; for ever, if nothing will come.
    pub async fn changed(&mut self) {
        if self.authorities.changed().await.is_err() {
            pending().await
        }
    }
}

impl CaBundleSource {
    #[must_use]
    pub fn new() -> Self {
        Self { authorities: latest::Sender::new(Authorities::Pending) }
    }

    #[must_use]
    pub fn bundle(&self) -> CaBundle {
        CaBundle { authorities: self.authorities.subscribe() }
    }

    /// Tells it, if it is new.
    pub fn tell(&self, authorities: Authorities) {
        if self.authorities.get() != authorities {
            self.authorities.send_replace(authorities);
        }
    }
}

impl Default for CaBundleSource {
    fn default() -> Self {
        Self::new()
    }
}
