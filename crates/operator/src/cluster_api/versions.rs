//! Do the installed CRDs know `status.versions`?
//!
//! Older ones of Cluster API do not, and the API server drops the field in silence. It would be written again with every pass.

use std::sync::atomic::{AtomicBool, Ordering};

use machinist_api::cluster_api::StatusVersion;

/// What was learnt from the answers to our writes.
#[derive(Debug, Default)]
pub struct Versions {
    are_dropped: AtomicBool,
}

impl Versions {
    /// Leaves the field as it is stored where the API server drops it.
    pub fn adapt(&self, wanted: &mut Vec<StatusVersion>, stored: Option<&Vec<StatusVersion>>) {
        if self.are_dropped.load(Ordering::Relaxed) {
            *wanted = stored.cloned().unwrap_or_default();
        }
    }

    pub fn learn(&self, sent: &[StatusVersion], written: Option<&Vec<StatusVersion>>) {
        if !sent.is_empty() && written.is_none_or(Vec::is_empty) {
            self.are_dropped.store(true, Ordering::Relaxed);
        }
    }
}
