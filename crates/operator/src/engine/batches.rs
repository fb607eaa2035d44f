//! How are many requests of one kind made: side by side, but not all at once?

use futures::future::join_all;

use crate::write::WriteError;

/// The first batch of creations; each that succeeds whole doubles the next. A template that the API server refuses then costs
/// one request, not hundreds.
const FIRST_BATCH: usize = 1;
/// How many requests for one object are under way at once, of each kind.
const LARGEST_BATCH: usize = 32;

/// An action that failed, and why.
pub type Failure<'a, A> = (&'a A, anyhow::Error);

/// Tries every action, whatever happens to the others.
pub async fn all_tried<'a, A, F>(
    actions: &[&'a A],
    perform: impl Fn(&'a A) -> F,
) -> Vec<Failure<'a, A>>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let mut failures = Vec::new();
    for batch in actions.chunks(LARGEST_BATCH) {
        failures.extend(side_by_side(batch, &perform).await);
    }
    failures
}

/// Tries in growing batches and stops after one with a failure: whatever refuses one object of a template refuses them all.
/// `permit` says how many of so many may be tried now, with something to hold meanwhile; also tells whether it stopped it.
pub async fn slowly_started<'a, A, P, F>(
    actions: &[&'a A],
    permit: impl Fn(usize) -> (usize, P),
    perform: impl Fn(&'a A) -> F,
) -> (Vec<Failure<'a, A>>, bool)
where
    F: Future<Output = anyhow::Result<()>>,
{
    let mut batch = FIRST_BATCH;
    let mut rest = actions;
    let mut failures = Vec::new();
    while !rest.is_empty() && failures.iter().all(|(_, error)| is_superseded(error)) {
        let (count, _held) = permit(batch.min(rest.len()));
        if count == 0 {
            return (failures, true);
        }
        let (now, later) = rest.split_at(count.min(rest.len()));
        failures.extend(side_by_side(now, &perform).await);
        rest = later;
        batch = (batch * 2).min(LARGEST_BATCH);
    }
    (failures, false)
}

async fn side_by_side<'a, A, F>(
    actions: &[&'a A],
    perform: &impl Fn(&'a A) -> F,
) -> Vec<Failure<'a, A>>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let results = join_all(actions.iter().map(|action| perform(action))).await;
    let tried = actions.iter().copied().zip(results);
    tried.filter_map(|(action, result)| Some((action, result.err()?))).collect()
}

/// Whether somebody else's write came first.
pub fn is_superseded(error: &anyhow::Error) -> bool {
    error.downcast_ref::<WriteError>().is_some_and(WriteError::is_superseded)
}
