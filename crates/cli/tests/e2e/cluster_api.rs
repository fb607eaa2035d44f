//! Does a Cluster API cluster live the same life with Machinist as with Cluster API's own core manager?
//!
//! Both run the same scripts on the same API server, each in a namespace of its own, with Cluster API's
//! definitions and its in-memory provider, unmodified. What comes out is compared field by field.

mod accepted;
mod bad_input;
mod compare;
mod drain;
mod life;
mod stage;

use stage::Stage;

use crate::cluster_api::compare::{Outcome, assert_same};

/// Who controls the Machines of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Cluster API's own manager.
    Core,
    Machinist,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Machinist => "machinist",
        }
    }
}

/// Runs a script on one side after the other and compares what comes out. Cluster API's manager keeps to no
/// namespace (see `ClusterApi::start_core`): what the provider writes to objects of another place has it act there too.
async fn on_both_sides(name: &str, script: impl AsyncFn(&mut Stage) -> Outcome) {
    let play = async |side| {
        let mut stage = Stage::new(side, name).await;
        script(&mut stage).await
    };
    let core = play(Side::Core).await;
    assert_same(name, &core, &play(Side::Machinist).await);
}
