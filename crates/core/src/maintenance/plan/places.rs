//! Which budgets a machine takes a place of, and how full they are already: with what is under way,
//! with what is broken or missing for whatever reason, and with what was finished a moment ago.

use std::{collections::BTreeMap, fmt};

use jiff::{SignedDuration, Timestamp};

use super::{
    capacity::{NO_LIMIT, Profile, Taker},
    fleet::{Fleet, FleetMachine, Home},
};
use crate::maintenance::{policies::Subject, policy::Policy};

/// Nobody knows when a broken machine recovers; what is planned after it is planned this much later,
/// and planned anew when it lasts.
const ASSUMED_RECOVERY: SignedDuration = SignedDuration::from_mins(30);

/// Something that has a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place<'a> {
    ControlPlane(Home<'a>),
    Pool(&'a str),
    Zone(Home<'a>, &'a str),
    Cluster(Home<'a>),
}

/// A place that a machine takes, and how many it tolerates there in all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat<'a> {
    pub(super) place: Place<'a>,
    pub(super) limit: usize,
}

/// All budgets.
pub(super) struct Places<'a> {
    profiles: BTreeMap<Place<'a>, Profile<'a>>,
    /// How many machines there are of each, for shares.
    sizes: BTreeMap<Place<'a>, usize>,
    /// Up to when what is broken takes its places.
    recovery: Timestamp,
    now: Timestamp,
}

/// What is counted of a pool.
#[derive(Default)]
struct Count<'a> {
    available: usize,
    under_way: usize,
    /// Present, but out of work, by cluster and zone.
    broken: BTreeMap<(Home<'a>, Option<&'a str>), usize>,
    /// The zones of its machines.
    zones: BTreeMap<Option<&'a str>, usize>,
}

impl<'a> Places<'a> {
    /// The budgets with everything that takes a place already, but for what is under way.
    pub(super) fn new(fleet: &'a Fleet<'a>, now: Timestamp) -> Self {
        let recovery = rounded_up(now.checked_add(ASSUMED_RECOVERY).unwrap_or(Timestamp::MAX));
        let mut places = Self { profiles: BTreeMap::new(), sizes: BTreeMap::new(), recovery, now };
        let mut counts: BTreeMap<Option<&str>, Count<'a>> = BTreeMap::new();
        for machine in &fleet.machines {
            let count = counts.entry(machine.pool).or_default();
            *count.zones.entry(machine.zone).or_default() += 1;
            if machine.under_way.is_some() {
                count.under_way += 1;
            } else if machine.is_available {
                count.available += 1;
            } else if !machine.is_deleting || machine.pool.is_none() {
                *count.broken.entry((machine.home, machine.zone)).or_default() += 1;
            }
            *places.sizes.entry(Place::Cluster(machine.home)).or_default() += 1;
            if let Some(zone) = machine.zone {
                *places.sizes.entry(Place::Zone(machine.home, zone)).or_default() += 1;
            }
        }
        for (name, pool) in &fleet.pools {
            counts.entry(Some(*name)).or_default();
            places.sizes.insert(Place::Pool(name), pool.desired);
        }
        for (name, count) in &counts {
            places.count_in(fleet, *name, count);
        }
        for finished in &fleet.finished {
            let policy = fleet.policies.get(finished.policy);
            let cool_down = policy.map_or(SignedDuration::ZERO, |policy| policy.budgets.cool_down);
            let end = finished.at.checked_add(cool_down).unwrap_or(Timestamp::MAX);
            let taker = Taker { name: finished.machine, from: now, to: end };
            let home = finished.home;
            let all = [
                finished.pool.map(Place::Pool),
                home.zip(finished.zone).map(|(home, zone)| Place::Zone(home, zone)),
                home.map(Place::Cluster),
                home.filter(|_| finished.is_control_plane).map(Place::ControlPlane),
            ];
            for place in all.into_iter().flatten() {
                places.profiles.entry(place).or_default().take(taker, NO_LIMIT);
            }
        }
        places
    }

    /// Counts what is out of work in a pool, or among the machines without one, besides what is under
    /// way. The base is the desired count: what is missing is out of work too.
    fn count_in(&mut self, fleet: &'a Fleet<'a>, name: Option<&'a str>, count: &Count<'a>) {
        let pool = name.and_then(|name| Some((name, fleet.pools.get(name)?)));
        let Some((name, pool)) = pool else {
            for ((home, zone), broken) in &count.broken {
                self.take(Place::Cluster(*home), *broken);
                if let Some(zone) = zone {
                    self.take(Place::Zone(*home, zone), *broken);
                }
            }
            return;
        };
        let out_of_work = pool.desired.saturating_sub(count.available + count.under_way);
        self.take(Place::Pool(name), out_of_work);
        self.take(Place::Cluster(pool.home), out_of_work);
        let only_zone = match count.zones.keys().next() {
            Some(zone) if count.zones.len() == 1 => *zone,
            Some(_) | None => pool.zone.as_deref(),
        };
        match only_zone {
            Some(zone) => self.take(Place::Zone(pool.home, zone), out_of_work),
            // Which zone a missing machine would be in is not known; a broken one is somewhere.
            None => {
                for ((home, zone), broken) in &count.broken {
                    if let Some(zone) = zone {
                        self.take(Place::Zone(*home, zone), *broken);
                    }
                }
            }
        }
    }

    fn take(&mut self, place: Place<'a>, count: usize) {
        if count > 0 {
            let (now, recovery) = (self.now, self.recovery);
            self.profiles.entry(place).or_default().take_nameless(now, recovery, count);
        }
    }

    /// The places that a machine takes under its policy.
    pub(super) fn seats(
        &self,
        fleet: &Fleet<'a>,
        machine: &FleetMachine<'a>,
        policy: &Policy,
    ) -> Vec<Seat<'a>> {
        let size = |place: Place<'a>| self.sizes.get(&place).copied().unwrap_or(0);
        let mut seats = Vec::new();
        if machine.is_control_plane {
            seats.push(Seat { place: Place::ControlPlane(machine.home), limit: 1 });
        }
        if let Some(pool) = machine.pool {
            let place = Place::Pool(pool);
            let gate = fleet.pools.get(pool).and_then(|pool| pool.gate).unwrap_or(NO_LIMIT);
            let limit = policy.budgets.pool.of(size(place)).min(gate);
            seats.push(Seat { place, limit });
        }
        if let Some(zone) = machine.zone {
            let place = Place::Zone(machine.home, zone);
            let limit = policy.budgets.zone.map_or(NO_LIMIT, |limit| limit.of(size(place)));
            seats.push(Seat { place, limit });
        }
        let place = Place::Cluster(machine.home);
        let limit = policy.budgets.cluster.map_or(NO_LIMIT, |limit| limit.of(size(place)));
        seats.push(Seat { place, limit });
        seats
    }

    /// Takes the places for a machine.
    pub(super) fn sit(&mut self, seats: &[Seat<'a>], taker: Taker<'a>) {
        for seat in seats {
            self.profiles.entry(seat.place).or_default().take(taker, seat.limit);
        }
    }

    /// Lets a machine that is out of work stand up: it takes no further place by being worked on.
    /// Returns the seats that it had: a surplus machine is missed by nobody, and has none.
    pub(super) fn stand_up(&mut self, seats: &[Seat<'a>]) -> Vec<Seat<'a>> {
        let (now, recovery) = (self.now, self.recovery);
        let mut had = Vec::new();
        for seat in seats {
            if self.profiles.entry(seat.place).or_default().give_back(now, recovery) {
                had.push(*seat);
            }
        }
        had
    }

    /// Takes its places again, up to its work.
    pub(super) fn sit_again(&mut self, seats: &[Seat<'a>], until: Option<Timestamp>) {
        let until = until.unwrap_or(self.recovery).min(self.recovery);
        let now = self.now;
        for seat in seats {
            self.profiles.entry(seat.place).or_default().take_nameless(now, until, 1);
        }
    }

    /// The earliest time at which all places have room for so long.
    pub(super) fn earliest(
        &self,
        seats: &[Seat<'a>],
        from: Timestamp,
        length: SignedDuration,
    ) -> Option<Timestamp> {
        let mut start = from;
        for seat in seats {
            start = match self.profiles.get(&seat.place) {
                Some(profile) => profile.earliest(start, length, seat.limit)?,
                None if seat.limit == 0 => return None,
                None => start,
            };
        }
        Some(start)
    }

    /// The latest time between the two at which all places have room for so long.
    pub(super) fn latest(
        &self,
        seats: &[Seat<'a>],
        from: Timestamp,
        until: Timestamp,
        length: SignedDuration,
    ) -> Option<Timestamp> {
        let mut start = until;
        for seat in seats {
            start = match self.profiles.get(&seat.place) {
                Some(profile) => profile.latest(from, start, length, seat.limit)?,
                None if seat.limit == 0 => return None,
                None => start,
            };
        }
        Some(start)
    }

    /// Why there is no room at an instant, in words: the first place that has none.
    pub(super) fn crowded(
        &self,
        seats: &[Seat<'a>],
        at: Timestamp,
        length: SignedDuration,
    ) -> Option<String> {
        seats.iter().find_map(|seat| {
            if seat.limit == 0 {
                return Some(format!("the budget of {} is 0", seat.place));
            }
            let profile = self.profiles.get(&seat.place)?;
            let first_room = profile.earliest(at, length, seat.limit);
            if first_room == Some(at) {
                return None;
            }
            Some(in_words(seat, profile, at, length))
        })
    }
}

fn in_words(
    seat: &Seat<'_>,
    profile: &Profile<'_>,
    at: Timestamp,
    length: SignedDuration,
) -> String {
    let end = at.checked_add(length).unwrap_or(Timestamp::MAX);
    let takers = profile.takers_until(at, end);
    let (taken, limit) = profile.fullest(at, end);
    let limit = limit.min(seat.limit);
    let names: Vec<&str> = takers.iter().take(3).map(|taker| taker.name).collect();
    let who = match (names.as_slice(), takers.len()) {
        ([], _) => String::new(),
        (names, count) if count > 3 => format!(" ({} and {} more)", names.join(", "), count - 3),
        (names, _) => format!(" ({})", names.join(", ")),
    };
    format!("{taken} of {} are out of work{who}, and {limit} may be at once", seat.place)
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ControlPlane(Home::Here) => formatter.write_str("the control plane"),
            Self::ControlPlane(Home::Workload(cluster)) => {
                write!(formatter, "the control plane of cluster {cluster}")
            }
            Self::Pool(name) => write!(formatter, "pool {name}"),
            Self::Zone(Home::Here, name) => write!(formatter, "zone {name}"),
            Self::Zone(Home::Workload(cluster), name) => {
                write!(formatter, "zone {name} of cluster {cluster}")
            }
            Self::Cluster(Home::Here) => formatter.write_str("the cluster"),
            Self::Cluster(Home::Workload(name)) => write!(formatter, "cluster {name}"),
        }
    }
}

/// The next whole half hour. What is only assumed must not move with each look, or each look would be
/// another plan to be stored.
pub(super) fn rounded_up(instant: Timestamp) -> Timestamp {
    let step = ASSUMED_RECOVERY.as_secs();
    let seconds = instant.as_second();
    let rest = seconds.rem_euclid(step);
    let seconds = if rest == 0 { seconds } else { seconds.saturating_add(step - rest) };
    Timestamp::from_second(seconds).unwrap_or(instant)
}

/// What a policy is chosen by.
pub(super) fn subject<'a>(machine: &FleetMachine<'a>) -> Subject<'a> {
    Subject { labels: machine.labels, pool: machine.maker, role: machine.role }
}
