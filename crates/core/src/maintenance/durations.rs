//! How long a maintenance takes: learnt from those that went well, with a floor under it.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use machinist_api::{
    MachineMaintenance, MaintenanceAction, MaintenanceHistoryEntry, MaintenancePhase,
};

/// What maintenances of this fleet took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// By action and pool; the empty pool is that of all pools together.
    learnt: BTreeMap<(MaintenanceAction, String), SignedDuration>,
}

/// Fewer say nothing about the next one.
const SAMPLES_MIN: usize = 3;
/// One that took longer was stuck, and must not keep others from ever fitting into a window.
const LONGEST: SignedDuration = SignedDuration::from_hours(6);

impl Durations {
    /// Learns from the records of finished maintenances: nine of ten took no longer.
    pub fn learn<'a>(maintenances: impl IntoIterator<Item = &'a MachineMaintenance>) -> Self {
        let mut samples: BTreeMap<(MaintenanceAction, String), Vec<SignedDuration>> =
            BTreeMap::new();
        for maintenance in maintenances {
            let Some(status) = &maintenance.status else { continue };
            let current = super::record::as_history(status);
            for entry in status.history.iter().chain(current.as_ref()) {
                let Some((action, duration)) = sample(entry) else { continue };
                for pool in [Some(String::new()), entry.pool.clone()].into_iter().flatten() {
                    samples.entry((action, pool)).or_default().push(duration);
                }
            }
        }
        let learnt = samples
            .into_iter()
            .filter(|(_, samples)| samples.len() >= SAMPLES_MIN)
            .filter_map(|(key, mut samples)| {
                samples.sort_unstable();
                let index = (samples.len() * 9).div_ceil(10).saturating_sub(1);
                samples.get(index).map(|duration| (key, *duration))
            })
            .collect();
        Self { learnt }
    }

    /// How long it is expected to take.
    pub fn expected(&self, action: MaintenanceAction, pool: Option<&str>) -> SignedDuration {
        let of = |pool: &str| self.learnt.get(&(action, pool.to_owned())).copied();
        let learnt = pool.and_then(of).or_else(|| of(""));
        learnt.map_or_else(|| floor(action), |learnt| learnt.max(floor(action)))
    }
}

/// What it takes at least. The original measured seven minutes until a new machine runs; a drain and
/// a boot come on top.
fn floor(action: MaintenanceAction) -> SignedDuration {
    SignedDuration::from_mins(match action {
        MaintenanceAction::Nothing => 0,
        MaintenanceAction::Reboot => 10,
        MaintenanceAction::RebootMigrate | MaintenanceAction::StopStart => 15,
        MaintenanceAction::Replace => 20,
    })
}

fn sample(entry: &MaintenanceHistoryEntry) -> Option<(MaintenanceAction, SignedDuration)> {
    if entry.outcome != MaintenancePhase::Succeeded {
        return None;
    }
    let duration = entry.finished_at.0.duration_since(entry.started_at.as_ref()?.0);
    (duration.is_positive() && duration <= LONGEST).then_some((entry.action?, duration))
}
