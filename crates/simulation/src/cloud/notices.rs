//! What does the cloud tell by itself? Changes of state and spot notices, through a queue that is late,
//! repeats itself and loses things.

use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use machinist_core::cloud::InstanceId;
use machinist_providers::{
    ProviderError,
    notice::{Notice, NoticeKind, NoticeQueue, Received},
};
use machinist_testbed::cloud::model::{InstanceFacts, InstanceState};
use tokio::time::Instant;

use super::SimulatedCloud;
use crate::{chance::Chance, hub::lock, process::Incarnation};

/// As with SQS: how long a call waits, how many it brings, how long what was brought stays hidden.
const WAIT: Duration = Duration::from_secs(20);
const BATCH_MAX: usize = 10;
const HIDDEN: SignedDuration = SignedDuration::from_secs(30);
/// What nobody takes is dropped.
const MESSAGES_MAX: usize = 200;

/// The messages and how they travel.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    messages: VecDeque<Message>,
    posted: u64,
    known: BTreeMap<String, (InstanceState, bool)>,
    late_up_to: Duration,
    doubled: f64,
    lost: f64,
}

#[derive(Clone, Debug)]
struct Message {
    receipt: String,
    notice: Notice,
    visible_at: Timestamp,
}

impl Mailbox {
    pub(super) fn disturb(&mut self, late_up_to: Duration, doubled: f64, lost: f64) {
        (self.late_up_to, self.doubled, self.lost) = (late_up_to, doubled, lost);
    }

    /// Posts what is different now.
    pub(super) fn post(&mut self, facts: &[InstanceFacts], now: Timestamp, chance: &mut Chance) {
        for one in facts {
            let current = (one.state, one.spot_notice.is_some());
            let before = self.known.insert(one.id.clone(), current);
            if before == Some(current) {
                continue;
            }
            if before.map(|before| before.0) != Some(one.state) {
                let state = one.state.name().to_owned();
                self.send(one, NoticeKind::StateChanged { state }, now, chance);
            }
            if let (Some(notice), false) = (&one.spot_notice, before.is_some_and(|it| it.1)) {
                let kind = NoticeKind::SpotInterruption {
                    action: "terminate".to_owned(),
                    at: Some(notice.time),
                };
                self.send(one, kind, now, chance);
            }
        }
    }

    fn send(&mut self, about: &InstanceFacts, kind: NoticeKind, now: Timestamp, by: &mut Chance) {
        if by.hits(self.lost) {
            return;
        }
        let copies = if by.hits(self.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            self.posted += 1;
            let late = by.millis(0, u64::try_from(self.late_up_to.as_millis()).unwrap_or(0));
            let late = SignedDuration::try_from(late).unwrap_or_default();
            let notice = Notice {
                instances: vec![InstanceId(about.id.clone())],
                kind: kind.clone(),
                at: Some(now),
            };
            self.messages.push_back(Message {
                receipt: self.posted.to_string(),
                notice,
                visible_at: now.saturating_add(late).unwrap_or(Timestamp::MAX),
            });
        }
        while self.messages.len() > MESSAGES_MAX {
            self.messages.pop_front();
        }
    }

    fn take(&mut self, now: Timestamp) -> Vec<Received> {
        let visible = self.messages.iter_mut().filter(|message| message.visible_at <= now);
        visible
            .take(BATCH_MAX)
            .map(|message| {
                message.visible_at = now.saturating_add(HIDDEN).unwrap_or(Timestamp::MAX);
                Received { receipt: message.receipt.clone(), content: Ok(message.notice.clone()) }
            })
            .collect()
    }

    fn next_visible(&self) -> Option<Timestamp> {
        self.messages.iter().map(|message| message.visible_at).min()
    }
}

/// The queue as one life of a process reads it.
pub(super) struct SimulatedQueue {
    pub cloud: SimulatedCloud,
    pub incarnation: Arc<Incarnation>,
}

#[async_trait]
impl NoticeQueue for SimulatedQueue {
    async fn receive(&self) -> Result<Vec<Received>, ProviderError> {
        let shared = &self.cloud.shared;
        let deadline = Instant::now() + WAIT;
        loop {
            if self.incarnation.is_dead() {
                return pending().await;
            }
            let held = self.incarnation.held_for();
            if !held.is_zero() {
                tokio::time::sleep(held).await;
                continue;
            }
            let found = lock(&shared.mailbox).take(shared.hub.clock.now());
            if !found.is_empty() || Instant::now() >= deadline {
                return Ok(found);
            }
            let next = lock(&shared.mailbox).next_visible();
            let next = next.map_or(deadline, |at| shared.hub.clock.instant(at)).min(deadline);
            // Whatever is posted meanwhile is found at the next look.
            let soon = (Instant::now() + Duration::from_secs(2)).min(deadline);
            tokio::time::sleep_until(next.max(Instant::now()).min(soon)).await;
        }
    }

    async fn delete(&self, receipts: &[String]) -> Result<(), ProviderError> {
        let mut mailbox = lock(&self.cloud.shared.mailbox);
        mailbox.messages.retain(|message| !receipts.contains(&message.receipt));
        Ok(())
    }
}
