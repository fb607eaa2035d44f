//! How does a snapshot become a plan? As core makes it, for the operator's page too.

use jiff::Timestamp;
pub use machinist_core::overview::picture::{Picture, name_of, supposed};
use machinist_core::{maintenance::event::Sighting, overview::picture};

use crate::snapshot::Snapshot;

/// Gathers and plans, with events that are only supposed besides those that are known.
pub fn with_plan<R>(
    snapshot: &Snapshot,
    supposed: &[Sighting],
    now: Timestamp,
    look: impl FnOnce(&Picture<'_>) -> R,
) -> R {
    picture::with_plan(&snapshot.objects(), supposed, now, look)
}
