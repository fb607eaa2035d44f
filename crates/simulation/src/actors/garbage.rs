//! Who removes what lost its owner? The garbage collector's own step, now and then.

use std::time::Duration;

use jiff::Timestamp;

use super::{Actor, Scene, later};

/// How often it looks; the real one is as quick.
const PERIOD: Duration = Duration::from_secs(2);
/// More rounds than owners are nested.
const ROUNDS_MAX: usize = 8;

/// Removes objects whose owners are gone.
#[derive(Debug, Default)]
pub struct GarbageCollector {
    seen: u64,
    due: Option<Timestamp>,
}

impl Actor for GarbageCollector {
    fn step(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp> {
        let deletions = scene.hub.weather().deletions;
        if deletions != self.seen && self.due.is_none() {
            self.due = Some(later(now, PERIOD));
        }
        if self.due.is_some_and(|due| due <= now) {
            self.seen = deletions;
            self.due = None;
            for _ in 0..ROUNDS_MAX {
                if scene.server.collect_garbage("garbage-collector") == 0 {
                    break;
                }
            }
        }
        self.due
    }
}
