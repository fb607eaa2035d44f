//! Which answers of the cloud may be used again?
//!
//! Three hundred launches from one providerSpec need the same image, subnet and groups. An answer is
//! asked for once, shared by all who ask while it is under way, and kept for a while. Failures are
//! shared by those who wait and never kept.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use tokio::time::Instant;

use crate::ProviderError;

/// How many answers are kept. More distinct questions than this within a few minutes means that
/// nearly every Machine is unlike the others; then keeping answers saves little.
const ANSWERS_MAX: usize = 1_024;

pub(super) struct Memory<Question, Answer> {
    kept: Mutex<Kept<Question, Answer>>,
}

struct Kept<Question, Answer> {
    entries: BTreeMap<Question, Entry<Answer>>,
    next_serial: u64,
}

struct Entry<Answer> {
    answer: Shared<BoxFuture<'static, Result<Answer, ProviderError>>>,
    serial: u64,
    fresh_until: Instant,
}

impl<Question, Answer> Default for Memory<Question, Answer> {
    fn default() -> Self {
        Self { kept: Mutex::new(Kept { entries: BTreeMap::new(), next_serial: 0 }) }
    }
}

impl<Question: Ord + Clone, Answer: Clone> Memory<Question, Answer> {
    /// Returns the kept answer, or joins the lookup under way, or begins one.
    pub async fn ask<Lookup>(
        &self,
        question: Question,
        keep_for: Duration,
        lookup: impl FnOnce() -> Lookup,
    ) -> Result<Answer, ProviderError>
    where
        Lookup: Future<Output = Result<Answer, ProviderError>> + Send + 'static,
    {
        let (answer, serial) = {
            let mut kept = self.lock();
            let now = Instant::now();
            match kept.entries.get(&question) {
                Some(entry) if entry.fresh_until > now => (entry.answer.clone(), entry.serial),
                Some(_) | None => {
                    if kept.entries.len() >= ANSWERS_MAX {
                        kept.entries.clear();
                    }
                    let serial = kept.next_serial;
                    kept.next_serial += 1;
                    let answer = lookup().boxed().shared();
                    let entry =
                        Entry { answer: answer.clone(), serial, fresh_until: now + keep_for };
                    kept.entries.insert(question.clone(), entry);
                    (answer, serial)
                }
            }
        };
        let result = answer.await;
        if result.is_err() {
            let mut kept = self.lock();
            if kept.entries.get(&question).is_some_and(|entry| entry.serial == serial) {
                kept.entries.remove(&question);
            }
        }
        result
    }

    pub fn forget_all(&self) {
        self.lock().entries.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Kept<Question, Answer>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use super::*;
    use crate::ErrorClass;

    const LONG: Duration = Duration::from_secs(600);

    async fn ask(
        memory: &Memory<&'static str, u32>,
        lookups: &Arc<AtomicU32>,
        keep_for: Duration,
        class: Option<ErrorClass>,
    ) -> Result<u32, ProviderError> {
        let lookups = Arc::clone(lookups);
        let lookup = || async move {
            // Longer than one round of polls, so that all who ask at once find it under way.
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            let count = lookups.fetch_add(1, Ordering::SeqCst) + 1;
            match class {
                None => Ok(count),
                Some(class) => Err(ProviderError::new(class, "failed")),
            }
        };
        memory.ask("subnet-1", keep_for, lookup).await
    }

    #[tokio::test]
    async fn one_lookup_serves_all_who_wait_and_all_who_come_later() {
        let memory = Memory::default();
        let lookups = Arc::default();
        let asked = (0..300).map(|_| ask(&memory, &lookups, LONG, None));
        for answer in futures::future::join_all(asked).await {
            assert_eq!(answer.unwrap(), 1);
        }
        assert_eq!(ask(&memory, &lookups, LONG, None).await.unwrap(), 1);
        memory.forget_all();
        assert_eq!(ask(&memory, &lookups, LONG, None).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn failure_is_shared_by_those_who_wait_and_not_kept() {
        let memory = Memory::default();
        let lookups = Arc::default();
        let asked = || ask(&memory, &lookups, LONG, Some(ErrorClass::Throttled));
        let (first, second, third) = tokio::join!(asked(), asked(), asked());
        for answer in [first, second, third] {
            assert_eq!(answer.unwrap_err().class, ErrorClass::Throttled);
        }
        assert_eq!(lookups.load(Ordering::SeqCst), 1);
        assert_eq!(ask(&memory, &lookups, LONG, None).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn stale_answer_is_asked_for_again() {
        let memory = Memory::default();
        let lookups = Arc::default();
        assert_eq!(ask(&memory, &lookups, Duration::ZERO, None).await.unwrap(), 1);
        assert_eq!(ask(&memory, &lookups, LONG, None).await.unwrap(), 2);
    }
}
