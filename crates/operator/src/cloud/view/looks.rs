//! Which instances are looked at by id, and when? Those that somebody asks about, and those that are
//! changing; all of them in as few calls as possible.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use machinist_core::cloud::{CloudFailure, Instance, InstanceId};
use tokio::{sync::oneshot, time::Instant};

use super::{CloudView, ViewTimings, failure_of, unanswered};

/// Questions that come within this time share one call.
const GATHER: Duration = Duration::from_millis(50);
/// How fast the pause between looks at one instance grows.
const LOOK_GROWTH: f64 = 1.5;
/// A look takes along the instances that are due before the next beat is half over: many launches
/// make many looks, each due at its own moment.
const LOOK_AHEAD: f64 = 0.5;
/// Questions that come while others were just answered wait for this part of a beat, so that a whole
/// pool that is deleted asks by the page; the first one of all is answered at once.
const QUESTION_BEAT: f64 = 0.25;

type Answer = Result<Vec<Instance>, CloudFailure>;

#[derive(Default)]
pub(super) struct Looks {
    looks: BTreeMap<InstanceId, Look>,
    questions: Vec<Question>,
    /// When the cloud was last asked. All looks keep one beat from there: their number depends on the
    /// time that passes, not on how many instances change.
    last_call: Option<Instant>,
}

struct Look {
    /// When the instance was acted on: only what was asked for after that can show what came of it.
    since: Instant,
    due: Instant,
    pause: Duration,
}

struct Question {
    ids: BTreeSet<InstanceId>,
    answer: oneshot::Sender<Answer>,
}

impl CloudView {
    /// What the cloud says of these ids now; what it does not know is left out. Questions of many
    /// machines at once share one call.
    pub async fn confirm(&self, ids: BTreeSet<InstanceId>) -> Answer {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, receiver) = oneshot::channel();
        self.looks().questions.push(Question { ids, answer });
        self.shared.look_soon.notify_one();
        receiver.await.unwrap_or_else(|_| Err(unanswered()))
    }

    /// Looks soon at an instance that was just acted on.
    pub fn watch_closely(&self, id: InstanceId) {
        let pause = self.shared.timings.first_look;
        let since = self.shared.env.instant();
        self.looks().looks.insert(id, Look { since, due: since + pause, pause });
        self.shared.look_soon.notify_one();
    }

    pub(super) async fn keep_looking(&self) {
        let shared = &self.shared;
        loop {
            self.answer_questions().await;
            let now = shared.env.instant();
            match self.next_call(now) {
                // Something was asked while the last answer was on its way.
                Some(next) if next <= now => {}
                Some(next) => {
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep_until(next) => {}
                        () = shared.look_soon.notified() => shared.env.sleep(GATHER).await,
                    }
                }
                None => {
                    shared.look_soon.notified().await;
                    // Others are about to ask the same.
                    shared.env.sleep(GATHER).await;
                }
            }
        }
    }

    /// Describes, in one go, everything that was asked for and every instance due for a look; nothing
    /// before its time has come.
    async fn answer_questions(&self) {
        let shared = &self.shared;
        let now = shared.env.instant();
        let (questions, mut ids) = self.take_due(now);
        ids.extend(questions.iter().flat_map(|question| question.ids.iter().cloned()));
        if ids.is_empty() {
            return;
        }
        let asked: Vec<InstanceId> = ids.iter().cloned().collect();
        let answer = shared.provider.describe(&asked).await;
        self.plan_next_looks(&ids, answer.as_deref().ok(), now);
        let answer = answer.map_err(|error| failure_of(&error));
        if let Ok(found) = &answer {
            self.change(|snapshot| snapshot.update(found.clone(), now));
        }
        for question in questions {
            let part = answer.clone().map(|found| {
                found.into_iter().filter(|one| question.ids.contains(&one.id)).collect()
            });
            // Whoever asked may be gone.
            question.answer.send(part).ok();
        }
    }

    /// Every question, and the instances that are due or nearly so, once the time for a call has
    /// come.
    fn take_due(&self, now: Instant) -> (Vec<Question>, BTreeSet<InstanceId>) {
        if self.next_call(now).is_none_or(|next| now < next) {
            return (Vec::new(), BTreeSet::new());
        }
        let ahead = self.beat().mul_f64(LOOK_AHEAD);
        let mut looks = self.looks();
        looks.last_call = Some(now);
        let questions = std::mem::take(&mut looks.questions);
        let due = looks
            .looks
            .iter()
            .filter(|(_, look)| look.due <= now + ahead)
            .map(|(id, _)| id.clone())
            .collect();
        (questions, due)
    }

    /// A list is a look at all that it shows: what is due, or nearly so, is not asked for once more.
    pub(super) fn skip_looks(&self, listed: &[Instance], begun_at: Instant) {
        let now = self.shared.env.instant();
        let ahead = self.beat().mul_f64(LOOK_AHEAD);
        let shown: BTreeSet<&InstanceId> = listed.iter().map(|instance| &instance.id).collect();
        let seen: BTreeSet<InstanceId> = {
            let mut looks = self.looks();
            let due = looks
                .looks
                .iter()
                .filter(|(_, look)| look.since <= begun_at && look.due <= now + ahead);
            let seen: BTreeSet<_> =
                due.map(|(id, _)| id).filter(|id| shown.contains(id)).cloned().collect();
            if !seen.is_empty() {
                looks.last_call = Some(now);
            }
            seen
        };
        self.plan_next_looks(&seen, Some(listed), begun_at);
    }

    /// What is still changing is looked at again, after a longer pause each time. What was acted on
    /// after the question was asked keeps its look: the answer may show it as it was.
    fn plan_next_looks(
        &self,
        asked: &BTreeSet<InstanceId>,
        found: Option<&[Instance]>,
        begun_at: Instant,
    ) {
        let now = self.shared.env.instant();
        let by_id: Option<BTreeMap<&InstanceId, &Instance>> =
            found.map(|found| found.iter().map(|instance| (&instance.id, instance)).collect());
        let mut looks = self.looks();
        for id in asked {
            if looks.looks.get(id).is_some_and(|look| look.since > begun_at) {
                continue;
            }
            let instance = by_id.as_ref().and_then(|found| found.get(id));
            let is_changing = match instance {
                Some(instance) => instance.state.is_transitional(),
                // Not visible yet, or no answer: only worth another look if it was being watched.
                None => looks.looks.contains_key(id),
            };
            let known = looks.looks.remove(id);
            if is_changing {
                let first = self.shared.timings.first_look;
                let pause = known.as_ref().map_or(first, |look| look.pause.mul_f64(LOOK_GROWTH));
                let since = known.map_or(begun_at, |look| look.since);
                // Past the list's period the list itself is enough.
                if pause < self.shared.timings.list_period {
                    looks.looks.insert(id.clone(), Look { since, due: now + pause, pause });
                }
            }
        }
    }

    /// Between looks. A cloud that refuses calls is where everything takes longer: its launches then
    /// come over minutes, and looks at the usual beat would be many times as many for as many
    /// instances.
    fn beat(&self) -> Duration {
        let ViewTimings { first_look, list_period, .. } = self.shared.timings;
        if self.shared.pace.is_throttled() { first_look.max(list_period / 2) } else { first_look }
    }

    /// When the cloud is asked next, if there is anything to ask. `now` is the caller's: a clock read
    /// here would be later than the caller's, and a question never due.
    fn next_call(&self, now: Instant) -> Option<Instant> {
        let first_look = self.shared.timings.first_look;
        let looks = self.looks();
        let not_before = |pause: Duration| looks.last_call.map(|last| last + pause);
        let for_questions = (!looks.questions.is_empty()).then(|| {
            not_before(first_look.mul_f64(QUESTION_BEAT)).map_or(now, |beat| beat.max(now))
        });
        let due = looks.looks.values().map(|look| look.due).min();
        let for_looks = due.map(|due| not_before(self.beat()).map_or(due, |beat| beat.max(due)));
        [for_questions, for_looks].into_iter().flatten().min()
    }
}
