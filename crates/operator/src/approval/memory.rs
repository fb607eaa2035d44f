//! What people were last told of a signing request, and how large a flood is. Losing it costs an
//! event told twice.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use machinist_core::approval::Limits;
use tokio::time::Instant;

use crate::engine::store::ObjectKey;

#[derive(Debug, Default)]
pub struct Memory {
    told: Mutex<BTreeMap<ObjectKey, Told>>,
    /// How many requests a flood has, and until when that is believed.
    flood: Mutex<Option<(Instant, Limits)>>,
}

#[derive(Debug)]
struct Told {
    /// Another request of the same name is told of anew.
    uid: Option<String>,
    reason: &'static str,
}

impl Memory {
    /// The reason that was last told of this request.
    pub fn told(&self, request: &CertificateSigningRequest) -> Option<&'static str> {
        let told = self.lock();
        let known = told.get(&ObjectKey::of(request))?;
        (known.uid == request.metadata.uid).then_some(known.reason)
    }

    pub fn note_told(
        &self,
        key: &ObjectKey,
        request: &CertificateSigningRequest,
        reason: &'static str,
    ) {
        let told = Told { uid: request.metadata.uid.clone(), reason };
        self.lock().insert(key.clone(), told);
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    /// The flood that there was a moment ago, if there was one.
    pub fn flood(&self, now: Instant) -> Option<Limits> {
        let flood = *self.flood.lock().unwrap_or_else(PoisonError::into_inner);
        flood.filter(|(until, _)| now < *until).map(|(_, limits)| limits)
    }

    pub fn note_flood(&self, until: Instant, limits: Limits) {
        *self.flood.lock().unwrap_or_else(PoisonError::into_inner) = Some((until, limits));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
