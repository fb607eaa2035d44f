//! Whether anything may be remediated at all: too many unhealthy machines at once are usually one
//! broken thing that is no machine.

use super::{policy::MaxUnhealthy, verdict::Verdict};

/// The machines of one check, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All of them.
    pub expected: usize,
    /// Those that are still in time to get a Node. They are left out of what follows: a pool that
    /// grows or is being repaired would else keep its broken machines.
    pub starting: usize,
    pub healthy: usize,
}

impl Tally {
    pub fn of<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        let mut tally = Self::default();
        for verdict in verdicts {
            tally.expected += 1;
            match verdict {
                Verdict::Healthy => tally.healthy += 1,
                Verdict::Starting { .. } => tally.starting += 1,
                Verdict::Deleting
                | Verdict::NeverTimesOut
                | Verdict::InRepair
                | Verdict::Suspect { .. }
                | Verdict::Unhealthy(_) => {}
            }
        }
        tally
    }

    /// The machines of which `maxUnhealthy` is a share.
    pub fn counted(&self) -> usize {
        self.expected.saturating_sub(self.starting)
    }

    pub fn unhealthy(&self) -> usize {
        self.counted().saturating_sub(self.healthy)
    }

    /// How many more may become unhealthy; `None` when there are too many already.
    pub fn remediations_allowed(&self, max: MaxUnhealthy) -> Option<usize> {
        max.of(self.counted()).checked_sub(self.unhealthy())
    }

    /// The figures, as the messages of the original have them.
    pub fn figures(&self, max: MaxUnhealthy) -> String {
        format!("(total: {}, unhealthy: {}, maxUnhealthy: {max})", self.counted(), self.unhealthy())
    }
}
