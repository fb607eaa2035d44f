//! How is the cloud's own word heard? From a queue of notices to an immediate look at the instances
//! they are about.
//!
//! A notice is a reason to look, never the truth: it may be late, doubled or about somebody else's
//! instance. What is about others is left for them; what cannot be read is dropped, and counted.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use machinist_core::{
    cloud::InstanceId,
    maintenance::event::{HealthNotice, Sighting},
};
use machinist_providers::{
    ProviderError,
    notice::{Notice, NoticeKind, NoticeQueue, Received},
};

use super::{connection::Connection, view::CloudView};
use crate::{
    engine::{backoff::Backoff, env::Env},
    metrics::{Metrics, NoticeResult},
};

/// After failures, so that a queue that is gone is not asked in a loop.
const RETRY: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(60) };

/// A queue that answers at once with nothing for us is not asked more often than this. Messages
/// for others are handed out again and again, so this bounds their cost as well.
const PAUSE: Duration = Duration::from_secs(1);

/// The category of notices about what the provider will do at a certain time.
const SCHEDULED_CHANGE: &str = "scheduledChange";

/// Reads notices for as long as the process runs.
pub(super) async fn run(
    connection: Arc<Connection>,
    env: Env,
    metrics: Metrics,
) -> anyhow::Result<()> {
    let mut failures = 0_u32;
    loop {
        // Asked for each time: the connection may have been renewed.
        let Some(queue) = connection.notices().await else {
            env.sleep(RETRY.cap).await;
            continue;
        };
        let begun_at = env.instant();
        match read(&*queue, &connection, &env, &metrics).await {
            Ok(heard) => {
                failures = 0;
                if heard == Heard::NothingOfOurs {
                    tokio::time::sleep_until(begun_at + PAUSE).await;
                }
            }
            Err(error) => {
                connection.note(Some(&error));
                failures = failures.saturating_add(1);
                tracing::warn!(
                    cloud = %connection.key,
                    class = error.class.as_str(),
                    error = %error,
                    "reading notices failed"
                );
                env.sleep(RETRY.delay(failures, &env)).await;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Ours,
    NothingOfOurs,
}

/// Takes what the queue holds, looks, and deletes what is dealt with.
async fn read(
    queue: &dyn NoticeQueue,
    connection: &Connection,
    env: &Env,
    metrics: &Metrics,
) -> Result<Heard, ProviderError> {
    let mut done = Vec::new();
    let mut ours: Vec<(String, Notice)> = Vec::new();
    let views = connection.views();
    for Received { receipt, content } in queue.receive().await? {
        match content {
            Err(malformed) => {
                tracing::warn!(cloud = %connection.key, error = %malformed, "dropped a notice");
                metrics.count_notice(NoticeResult::Malformed);
                done.push(receipt);
            }
            Ok(notice) if is_known(&views, &notice) => {
                metrics.count_notice(NoticeResult::Ours);
                ours.push((receipt, notice));
            }
            Ok(_) => metrics.count_notice(NoticeResult::Others),
        }
    }
    let heard = if ours.is_empty() { Heard::NothingOfOurs } else { Heard::Ours };
    for (_, notice) in &ours {
        take(&views, notice, env);
    }
    let ids: BTreeSet<InstanceId> =
        ours.iter().flat_map(|(_, notice)| notice.instances.iter().cloned()).collect();
    let looked = look(&views, &ids).await;
    if looked.is_ok() {
        done.extend(ours.into_iter().map(|(receipt, _)| receipt));
    }
    if !done.is_empty() {
        queue.delete(&done).await?;
    }
    looked.map(|()| heard)
}

fn is_known(views: &[CloudView], notice: &Notice) -> bool {
    views.iter().any(|view| {
        let snapshot = view.snapshot();
        notice.instances.iter().any(|id| snapshot.get(id).is_some())
    })
}

/// What a look would not show.
fn take(views: &[CloudView], notice: &Notice, env: &Env) {
    match &notice.kind {
        NoticeKind::SpotInterruption { at, .. } => {
            let at = at.or(notice.at).unwrap_or_else(|| env.now());
            for view in views {
                for id in &notice.instances {
                    view.interrupt(id, at);
                }
            }
        }
        NoticeKind::Health { category, .. } => {
            views.iter().for_each(CloudView::ask_for_reports);
            if category == SCHEDULED_CHANGE {
                hear(views, notice);
            }
        }
        NoticeKind::StateChanged { .. }
        | NoticeKind::RebalanceRecommended
        | NoticeKind::Other { .. } => {}
    }
}

/// Keeps what a notice tells of a scheduled event until the provider's own list has it.
fn hear(views: &[CloudView], notice: &Notice) {
    let NoticeKind::Health { code, status, starts_at, ends_at, communication_id, .. } =
        &notice.kind
    else {
        return;
    };
    for id in &notice.instances {
        let sighting = Sighting::noticed(&HealthNotice {
            arn: communication_id,
            type_code: code,
            status,
            description: "",
            start: *starts_at,
            end: *ends_at,
            instance: id.clone(),
        });
        for view in views.iter().filter(|_| !sighting.id.is_empty()) {
            view.hear(sighting.clone());
        }
    }
}

async fn look(views: &[CloudView], ids: &BTreeSet<InstanceId>) -> Result<(), ProviderError> {
    for view in views {
        let snapshot = view.snapshot();
        let known: BTreeSet<InstanceId> =
            ids.iter().filter(|id| snapshot.get(id).is_some()).cloned().collect();
        if known.is_empty() {
            continue;
        }
        let found = view
            .confirm(known)
            .await
            .map_err(|failure| ProviderError::new(failure.class, failure.message))?;
        // A state that will change by itself is followed to its end.
        for instance in found.iter().filter(|instance| instance.state.is_transitional()) {
            view.watch_closely(instance.id.clone());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
