//! What is left of spans of time when some are joined and some are cut out?

use jiff::Timestamp;

/// From the start up to, but not including, the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Interval {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

impl Interval {
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The part within the bounds, if there is one.
    pub(super) fn clipped(&self, bounds: &Self) -> Option<Self> {
        let start = self.start.max(bounds.start);
        let end = self.end.min(bounds.end);
        (start < end).then_some(Self { start, end })
    }
}

/// Sorts, and joins what overlaps or touches.
pub(super) fn merged(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
    for interval in intervals {
        match joined.last_mut() {
            Some(last) if interval.start <= last.end => last.end = last.end.max(interval.end),
            Some(_) | None => joined.push(interval),
        }
    }
    joined
}

/// Cuts the second list out of the first. Both are sorted and disjoint, and so is the result.
pub(super) fn without(kept: &[Interval], cut: &[Interval]) -> Vec<Interval> {
    let mut rest = Vec::with_capacity(kept.len());
    for interval in kept {
        let mut start = interval.start;
        for hole in cut.iter().filter(|hole| hole.overlaps(interval)) {
            if start < hole.start {
                rest.push(Interval { start, end: hole.start });
            }
            start = start.max(hole.end);
        }
        if start < interval.end {
            rest.push(Interval { start, end: interval.end });
        }
    }
    rest
}
