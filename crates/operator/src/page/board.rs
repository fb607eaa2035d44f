//! What is shown to all who may see the same: computed once, told as differences, kept for those who come back.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use machinist_core::overview::{
    delta::{Change, Seen},
    fleet::{FleetView, fleet},
    picture::{Picture, with_plan},
    plan_view::{PlanView, plan},
    policies::{PolicyList, policies},
    row::{MachineRow, rows},
};
use tokio::time::Instant;

use super::{answer::Refused, audience::Audience, boards::Ears, snapshot::Snapshot};
use crate::{
    context::Stores,
    engine::{
        env::Env,
        latest::{Receiver, Sender},
    },
};

/// The fleet is looked at anew at most this often, however much changes.
pub(super) const AT_MOST: Duration = Duration::from_secs(1);
/// And at least this often while somebody looks: windows open, and pods come and go.
pub(super) const AT_LEAST: Duration = Duration::from_secs(10);
/// What is kept for those who come back.
const CHANGES_MAX: usize = 256;
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// What is shown at one instant.
pub(super) struct Shown {
    number: u64,
    pub version: String,
    pub now: Timestamp,
    pub snapshot: Arc<Snapshot>,
    pub rows: BTreeMap<String, MachineRow>,
    pub fleet: FleetView,
    pub plan: PlanView,
    pub policies: PolicyList,
}

/// The one place where it is computed.
pub(super) struct Board {
    stores: Arc<Stores>,
    env: Env,
    namespace: String,
    audience: Audience,
    /// Another process, and another board, counts its versions anew.
    epoch: String,
    ears: Ears,
    kept: Mutex<Kept>,
    /// One computation at a time.
    computing: tokio::sync::Mutex<()>,
    news: Sender<u64>,
    listeners: AtomicUsize,
}

#[derive(Default)]
struct Kept {
    shown: Option<Fresh>,
    history: VecDeque<(u64, Arc<str>)>,
    bytes: usize,
}

#[derive(Clone)]
struct Fresh {
    shown: Arc<Shown>,
    at: Instant,
    changes: u64,
}

/// What somebody who comes back has missed.
pub(super) enum Missed {
    /// Each with its version, oldest first.
    These(Vec<(String, Arc<str>)>),
    /// More than is kept.
    TooMuch,
}

/// Somebody who listens; counted as long as it lives.
pub(super) struct Listening {
    board: Arc<Board>,
    pub news: Receiver<u64>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.board.listeners.fetch_sub(1, Ordering::Relaxed);
        self.board.ears.leave();
    }
}

impl Board {
    pub fn new(
        stores: &Arc<Stores>,
        env: &Env,
        namespace: &str,
        audience: Audience,
        ears: Ears,
    ) -> Self {
        Self {
            stores: Arc::clone(stores),
            env: env.clone(),
            namespace: namespace.to_owned(),
            audience,
            epoch: format!("{:08x}", env.random_u64() >> 32),
            ears,
            kept: Mutex::default(),
            computing: tokio::sync::Mutex::default(),
            news: Sender::new(0),
            listeners: AtomicUsize::new(0),
        }
    }

    /// Whether somebody listens.
    pub fn is_listened_to(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0
    }

    /// Who looks at it.
    pub fn audience(&self) -> &Audience {
        &self.audience
    }

    /// Whether the stores were read.
    pub fn is_ready(&self) -> bool {
        let stores = &self.stores;
        stores.machines.is_synced()
            && stores.machine_sets.is_synced()
            && stores.nodes.is_synced()
            && stores.pods.is_synced()
            && stores.budgets.is_synced()
    }

    /// What the stores have at this instant.
    pub fn snapshot(&self) -> Result<Snapshot, Refused> {
        if !self.is_ready() {
            return Err(Refused::not_ready());
        }
        Ok(Snapshot::take(&self.stores, &self.namespace, &self.audience))
    }

    /// What is shown now, computed anew where it is old and something changed.
    pub async fn current(&self) -> Result<Arc<Shown>, Refused> {
        if !self.is_ready() {
            return Err(Refused::not_ready());
        }
        let _turn = self.computing.lock().await;
        let known = self.kept().shown.clone();
        let changes = self.ears.changes();
        let now = self.env.instant();
        if let Some(known) = &known {
            let age = now.saturating_duration_since(known.at);
            if age < AT_MOST || (age < AT_LEAST && known.changes == changes) {
                return Ok(Arc::clone(&known.shown));
            }
        }
        let before = known.map(|known| known.shown);
        let snapshot = Snapshot::take(&self.stores, &self.namespace, &self.audience);
        let (at, epoch) = (self.env.now(), self.epoch.clone());
        let computed = tokio::task::spawn_blocking(move || {
            compute(Arc::new(snapshot), at, before.as_deref(), &epoch)
        });
        let Ok((shown, news)) = computed.await else { return Err(Refused::failed()) };
        let shown = Arc::new(shown);
        let mut kept = self.kept();
        kept.shown = Some(Fresh { shown: Arc::clone(&shown), at: now, changes });
        if let Some(news) = news {
            kept.bytes += news.len();
            kept.history.push_back((shown.number, news.into()));
            while kept.history.len() > CHANGES_MAX || kept.bytes > BYTES_MAX {
                let Some((_, oldest)) = kept.history.pop_front() else { break };
                kept.bytes -= oldest.len();
            }
            drop(kept);
            self.news.send_replace(shown.number);
        }
        Ok(shown)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to listen; `None` where too many do.
    pub fn join(self: &Arc<Self>) -> Option<Listening> {
        let is_room = self.ears.join();
        self.listeners.fetch_add(1, Ordering::Relaxed);
        let listening = Listening { board: Arc::clone(self), news: self.news.subscribe() };
        is_room.then_some(listening)
    }

    /// What came after a version.
    pub fn since(&self, version: &str) -> Missed {
        let Some(number) = self.number(version) else { return Missed::TooMuch };
        let kept = self.kept();
        let newest = kept.shown.as_ref().map_or(0, |fresh| fresh.shown.number);
        let oldest = kept.history.front().map_or(newest + 1, |(number, _)| *number);
        if number > newest || number + 1 < oldest {
            return Missed::TooMuch;
        }
        let missed = kept.history.iter().filter(|(one, _)| *one > number);
        Missed::These(missed.map(|(one, text)| (self.version(*one), Arc::clone(text))).collect())
    }

    /// The newest version, where anything was shown.
    pub fn newest(&self) -> Option<String> {
        self.kept().shown.as_ref().map(|fresh| fresh.shown.version.clone())
    }

    fn version(&self, number: u64) -> String {
        version(&self.epoch, number)
    }

    fn number(&self, version: &str) -> Option<u64> {
        let (epoch, number) = version.split_once('-')?;
        (epoch == self.epoch).then(|| number.parse().ok()).flatten()
    }
}

fn version(epoch: &str, number: u64) -> String {
    format!("{epoch}-{number}")
}

/// What is shown, and what of it is new, written out.
fn compute(
    snapshot: Arc<Snapshot>,
    now: Timestamp,
    before: Option<&Shown>,
    epoch: &str,
) -> (Shown, Option<String>) {
    let objects = snapshot.objects();
    let look = |picture: &Picture<'_>| {
        let rows = rows(picture);
        (fleet(picture, &rows), rows, plan(picture), policies(picture))
    };
    let (fleet, rows, plan, policies) = with_plan(&objects, &[], now, look);
    drop(objects);
    let mut shown =
        Shown { number: 0, version: String::new(), now, snapshot, rows, fleet, plan, policies };
    let change = before.and_then(|before| Change::between(before.seen(), shown.seen()));
    let is_new = before.is_none() || change.is_some();
    shown.number = before.map_or(0, |before| before.number) + u64::from(is_new);
    shown.version = version(epoch, shown.number);
    for place in [&mut shown.fleet.version, &mut shown.plan.version, &mut shown.policies.version] {
        place.clone_from(&shown.version);
    }
    let news = change.and_then(|mut change| {
        change.version.clone_from(&shown.version);
        if let Some(fleet) = &mut change.fleet {
            fleet.version.clone_from(&shown.version);
        }
        serde_json::to_string(&change).ok()
    });
    (shown, news)
}

impl Shown {
    fn seen(&self) -> Seen<'_> {
        Seen { rows: &self.rows, fleet: &self.fleet, plan: &self.plan, policies: &self.policies }
    }
}
