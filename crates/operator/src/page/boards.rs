//! Who looks at which board, and when is one looked at anew?
//!
//! All who may see the same machines look at the same one, so that what is costly is done once for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    audience::Audience,
    board::{AT_LEAST, AT_MOST, Board},
};
use crate::{
    context::{Context, Stores},
    engine::{env::Env, store::Store, watch::Watched},
};

/// How many may listen at once, at all boards.
const LISTENERS_MAX: usize = 256;
/// Boards that are kept though nobody listens.
const BOARDS_MAX: usize = 16;

/// What is heard of the stores, and by how many.
#[derive(Clone, Default)]
pub(super) struct Ears {
    /// Counts what changed in the stores.
    changes: Arc<AtomicU64>,
    changed: Arc<Notify>,
    listeners: Arc<AtomicUsize>,
}

impl Ears {
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    fn hear(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Counts somebody who listens, who is to leave later; says whether there is room.
    pub fn join(&self) -> bool {
        let count = self.listeners.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        count < LISTENERS_MAX
    }

    pub fn leave(&self) {
        self.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One for each audience.
pub(super) struct Boards {
    stores: Arc<Stores>,
    env: Env,
    namespace: String,
    ears: Ears,
    kept: Mutex<BTreeMap<Audience, Arc<Board>>>,
}

impl Boards {
    pub fn new(context: &Context, namespace: &str) -> Self {
        Self {
            stores: Arc::clone(&context.stores),
            env: context.env.clone(),
            namespace: namespace.to_owned(),
            ears: Ears::default(),
            kept: Mutex::default(),
        }
    }

    /// Hears of what changes. Pods and budgets change all the time and move little: they are looked at when
    /// the rest is.
    pub fn listen(&self) {
        let stores = &self.stores;
        self.hear(&stores.machines);
        self.hear(&stores.machine_sets);
        self.hear(&stores.nodes);
        self.hear(&stores.health_checks);
        let maintenance = &stores.maintenance;
        self.hear(&maintenance.policies);
        self.hear(&maintenance.upgrades);
        self.hear(&maintenance.admin_freezes);
        self.hear(&maintenance.customer_freezes);
        self.hear(&maintenance.preferred_starts);
        self.hear(&maintenance.namespaces);
        let ears = self.ears.clone();
        maintenance.on_change(move |_| ears.hear());
        if let Some(known) = stores.cluster_api.get() {
            self.hear(&known.stores.clusters);
            self.hear(&known.stores.machines);
            self.hear(&known.stores.machine_sets);
            self.hear(&known.stores.deployments);
        }
    }

    fn hear<K: Watched>(&self, store: &Store<K>) {
        let ears = self.ears.clone();
        store.on_change(move |_| ears.hear());
    }

    /// Looks anew at each board as long as somebody listens to it.
    pub async fn run(self: Arc<Self>, stopping: CancellationToken) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                () = self.ears.changed.notified() => {}
                () = self.env.sleep(AT_LEAST) => {}
            }
            for board in self.listened_to() {
                board.current().await.ok();
            }
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                () = self.env.sleep(AT_MOST) => {}
            }
        }
    }

    fn listened_to(&self) -> Vec<Arc<Board>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let boards = kept.values().filter(|board| board.is_listened_to() && board.is_ready());
        boards.cloned().collect()
    }

    /// The board of those who see this.
    pub fn of(&self, audience: &Audience) -> Arc<Board> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(board) = kept.get(audience) {
            return Arc::clone(board);
        }
        // Whoever comes back to one that is forgotten is shown everything again.
        if kept.len() >= BOARDS_MAX {
            kept.retain(|_, board| board.is_listened_to());
        }
        let (stores, ears) = (&self.stores, self.ears.clone());
        let board = Board::new(stores, &self.env, &self.namespace, audience.clone(), ears);
        let board = Arc::new(board);
        kept.insert(audience.clone(), Arc::clone(&board));
        board
    }

    /// Where there are machines or pools of Cluster API.
    pub fn namespaces_of_cluster_api(&self) -> BTreeSet<String> {
        self.stores.cluster_api.get().map(|known| known.namespaces()).unwrap_or_default()
    }
}
