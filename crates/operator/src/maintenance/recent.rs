//! What was asked for a moment ago, and is young enough to be used again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::engine::env::Env;

/// Nobody takes an answer that is older.
const FORGOTTEN: Duration = Duration::from_mins(15);

/// Answers, by what was asked for.
pub struct Recent<T, K = ()> {
    known: Mutex<BTreeMap<K, (Instant, Arc<T>)>>,
}

impl<T, K> Default for Recent<T, K> {
    fn default() -> Self {
        Self { known: Mutex::default() }
    }
}

impl<T, K: Ord> Recent<T, K> {
    /// Asks anew the next time.
    pub fn forget(&self) {
        self.lock().clear();
    }

    /// The answer, not older than this.
    pub async fn get(
        &self,
        env: &Env,
        key: K,
        within: Duration,
        ask: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<Arc<T>> {
        if let Some(known) = self.known(env, &key, within) {
            return Ok(known);
        }
        let asked_at = env.instant();
        let answer = ask.await?;
        Ok(self.keep(asked_at, key, answer))
    }

    /// The answer that is there, if it is not older than this.
    pub fn known(&self, env: &Env, key: &K, within: Duration) -> Option<Arc<T>> {
        let known = self.lock();
        let (at, answer) = known.get(key)?;
        (env.instant() < *at + within).then(|| Arc::clone(answer))
    }

    pub fn put(&self, env: &Env, key: K, answer: T) {
        self.keep(env.instant(), key, answer);
    }

    fn keep(&self, at: Instant, key: K, answer: T) -> Arc<T> {
        let answer = Arc::new(answer);
        let mut known = self.lock();
        known.retain(|_, (kept_at, _)| at < *kept_at + FORGOTTEN);
        known.insert(key, (at, Arc::clone(&answer)));
        answer
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, (Instant, Arc<T>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
