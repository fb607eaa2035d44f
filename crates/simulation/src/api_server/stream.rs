//! How do the events of a watch reach its client?
//!
//! A response body that pulls from the store when it is polled. It sleeps until a commit of its kind,
//! a timer of its own, or the server's end; in between it costs nothing.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{
    Shared,
    failure::Failure,
    faults::{EventContext, EventFate},
    object::key_of,
    watcher::{EventType, Step, WatchEvent, Watcher, error_line},
};

/// How long before its end a watch sends a last bookmark, as the real server does.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// The running side of one watch.
pub(super) struct WatchStream {
    id: u64,
    client: Arc<str>,
    shared: Arc<Shared>,
    watcher: Watcher,
    ready: VecDeque<Line>,
    deferred: Vec<Deferred>,
    /// Nothing is sent before this time.
    held_until: Instant,
    ends_at: Instant,
    bookmark_at: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// What is ready is still sent.
    Ending,
    Frozen,
}

struct Line {
    text: Bytes,
    due: Instant,
}

/// An event that others may overtake.
struct Deferred {
    key: String,
    lines: Vec<Bytes>,
    events_left: u32,
    until: Instant,
}

impl WatchStream {
    pub(super) fn new(id: u64, client: Arc<str>, shared: Arc<Shared>, watcher: Watcher) -> Self {
        let now = Instant::now();
        let ends_at = now + watcher.timeout;
        let mut stream = Self {
            id,
            client,
            shared,
            watcher,
            ready: VecDeque::new(),
            deferred: Vec::new(),
            held_until: now,
            ends_at,
            bookmark_at: None,
            timer: Box::pin(sleep_until(ends_at)),
            phase: Phase::Running,
        };
        stream.bookmark_at = stream.next_bookmark(now);
        stream
    }

    pub(super) fn poll_line(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let now = Instant::now();
            if self.phase == Phase::Frozen {
                // Dropped by the client when it loses patience.
                return Poll::Pending;
            }
            if let Some(line) = self.ready.pop_front() {
                if line.due <= now {
                    return Poll::Ready(Some(line.text));
                }
                self.ready.push_front(line);
            }
            if self.phase == Phase::Ending && self.ready.is_empty() {
                return Poll::Ready(None);
            }
            if self.phase == Phase::Running && (self.pull(context) || self.fire(now)) {
                continue;
            }
            let deadline = self.next_deadline();
            if self.timer.deadline() != deadline {
                self.timer.as_mut().reset(deadline);
            }
            if self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Takes what the store has for this watch. False when there is nothing.
    fn pull(&mut self, context: &Context<'_>) -> bool {
        let step = {
            let mut state = self.shared.lock();
            if state.is_watch_ended(self.id) {
                self.phase = Phase::Ending;
                return true;
            }
            let step = self.watcher.next(&state.store);
            if matches!(step, Step::Idle) {
                state.wake_on_commit(self.id, context.waker());
            }
            step
        };
        match step {
            Step::Idle => false,
            Step::InitialEnd(line) => {
                self.send(vec![line]);
                true
            }
            Step::Expired(line) => {
                self.send(vec![line]);
                self.phase = Phase::Ending;
                true
            }
            Step::Event(event) => {
                self.take(&event);
                true
            }
        }
    }

    fn take(&mut self, event: &WatchEvent) {
        let fate = self.shared.fate_of_event(&EventContext {
            watch: self.id,
            client: &self.client,
            kind: self.watcher.kind(),
            event_type: event.event_type,
            object: &event.object,
            now: self.shared.now(),
        });
        let key = key_of(event.object.namespace(), event.object.name());
        let line = self.watcher.line(event.event_type, &event.object);
        match fate {
            EventFate::Deliver => self.deliver(&key, vec![line]),
            EventFate::Drop => {}
            EventFate::Duplicate => self.deliver(&key, vec![line.clone(), line]),
            EventFate::Regress => {
                let mut lines = vec![line];
                if let Some(before) = &event.before {
                    lines.push(self.watcher.line(EventType::Modified, before));
                }
                self.deliver(&key, lines);
            }
            EventFate::Lag(duration) => {
                self.held_until = self.held_until.max(Instant::now() + duration);
                self.deliver(&key, vec![line]);
            }
            EventFate::Defer { events, at_most } => {
                self.release(|deferred| deferred.key == key);
                let until = Instant::now() + at_most;
                let lines = vec![line];
                self.deferred.push(Deferred { key, lines, events_left: events, until });
            }
            EventFate::End => self.phase = Phase::Ending,
            EventFate::Expire => {
                let failure = Failure::expired("too old resource version: 1 (2)");
                self.send(vec![error_line(&failure)]);
                self.phase = Phase::Ending;
            }
            EventFate::Freeze => self.phase = Phase::Frozen,
        }
    }

    /// Sends the lines of one object: never before an earlier event of the same object.
    fn deliver(&mut self, key: &str, lines: Vec<Bytes>) {
        self.release(|deferred| deferred.key == key);
        self.send(lines);
        for deferred in &mut self.deferred {
            deferred.events_left = deferred.events_left.saturating_sub(1);
        }
        self.release(|deferred| deferred.events_left == 0);
    }

    fn release(&mut self, chosen: impl Fn(&Deferred) -> bool) {
        let (released, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.deferred).into_iter().partition(|one| chosen(one));
        self.deferred = kept;
        for deferred in released {
            self.send(deferred.lines);
        }
    }

    fn send(&mut self, lines: Vec<Bytes>) {
        let due = self.held_until;
        self.ready.extend(lines.into_iter().map(|text| Line { text, due }));
    }

    /// Does what is due. False when nothing is.
    fn fire(&mut self, now: Instant) -> bool {
        if self.ends_at <= now {
            self.release(|_| true);
            self.phase = Phase::Ending;
            return true;
        }
        if self.deferred.iter().any(|deferred| deferred.until <= now) {
            self.release(|deferred| deferred.until <= now);
            return true;
        }
        if self.bookmark_at.is_some_and(|at| at <= now) {
            self.bookmark_at = self.next_bookmark(now);
            // A bookmark says that everything before it was sent.
            self.release(|_| true);
            let line = self.watcher.bookmark_line(None);
            self.send(vec![line]);
            return true;
        }
        false
    }

    fn next_bookmark(&self, now: Instant) -> Option<Instant> {
        let last = self.ends_at - BOOKMARK_BEFORE_END.min(self.watcher.timeout);
        let next = self.shared.bookmark_every.map_or(last, |every| last.min(now + every));
        (self.watcher.allow_bookmarks && next > now).then_some(next)
    }

    fn next_deadline(&self) -> Instant {
        let due = self.ready.front().map(|line| line.due);
        if self.phase == Phase::Ending {
            return due.unwrap_or(self.ends_at);
        }
        let deferred = self.deferred.iter().map(|deferred| deferred.until);
        deferred.chain(due).chain(self.bookmark_at).fold(self.ends_at, Instant::min)
    }
}

impl Drop for WatchStream {
    fn drop(&mut self) {
        self.shared.lock().forget_watch(self.id);
    }
}
