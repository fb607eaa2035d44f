//! Which promises must hold whatever fails? Predicates over the true state: what the API server has
//! stored and what the cloud's own books say, never what an operator believes.
//!
//! `cluster` looks at each committed write, `certificates` and `health` at those that let a machine join
//! and that take one away, `cloud` at each call that changes the cloud, `liveness` at the quiet end of a
//! run. `table` lists the promises whose subject does not exist yet.

mod certificates;
mod cloud;
mod cluster;
mod cluster_api;
mod health;
mod liveness;
mod maintenance;
mod table;
mod truth;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use machinist_testbed::cloud::model::{InstanceFacts, InstanceState};

pub(crate) use self::truth::condition as condition_of;
use self::{
    certificates::CertificateTruth,
    cluster_api::FleetTruth,
    health::CheckTruth,
    maintenance::MaintenanceTruth,
    truth::{InstanceTruth, MachineTruth, SetTruth},
};
pub use self::{
    cloud::CloudCall,
    cluster::is_operator,
    liveness::{QuietMark, unsettled},
    table::{CHECKED, ELSEWHERE, PENDING},
};
use crate::api_server::ApiServer;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub id: &'static str,
    /// The Machine that it is about, or empty.
    pub subject: String,
    pub time: Timestamp,
    pub words: String,
}

/// What a run allows to be seen late.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// How far the operator's view of the cluster may be behind; none where it may be for ever.
    pub view_lag: Option<Duration>,
    /// Whether orphans may be terminated, and from which age on.
    pub orphan_age: Option<Duration>,
    /// For how long a process may act after its last renewal of each lease.
    pub renew_deadline: Duration,
    /// Whether the clocks of processes may be wrong, so that they misjudge how long something lasted.
    pub clocks_jump: bool,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            view_lag: Some(Duration::from_secs(5)),
            orphan_age: None,
            renew_deadline: Duration::from_secs(110),
            clocks_jump: false,
        }
    }
}

/// Watches over the promises. It sees everything and is seen by nobody.
#[derive(Debug)]
pub struct Judge {
    allowance: Allowance,
    server: Option<ApiServer>,
    first: Option<Violation>,
    found: Vec<Violation>,
    /// Interesting states that were reached since the last time.
    reached: Vec<&'static str>,
    machines: BTreeMap<String, MachineTruth>,
    /// Machines that are gone, by uid, with their last truth.
    gone: BTreeMap<String, MachineTruth>,
    sets: BTreeMap<String, SetTruth>,
    instances: BTreeMap<String, InstanceTruth>,
    /// Health checks, by uid.
    checks: BTreeMap<String, CheckTruth>,
    certificates: CertificateTruth,
    cluster_api: FleetTruth,
    maintenance: MaintenanceTruth,
    /// When each process last renewed each lease.
    renewals: BTreeMap<(String, String), Timestamp>,
    /// When a life last read a Machine from the API server, by tag and name; the name is empty for all.
    fresh_reads: BTreeMap<(String, String), Timestamp>,
    /// Names that a Machine had before, for the reuse of names.
    names_used: BTreeSet<String>,
    counts: Counts,
}

/// What the budgets of calls and writes are held against.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub launches_asked: BTreeMap<String, u64>,
    pub terminations_asked: BTreeMap<String, u64>,
    pub cloud_changes: u64,
    pub cloud_reads: BTreeMap<&'static str, u64>,
    /// Writes of operators, Lease renewals apart.
    pub writes: u64,
    pub last_write: String,
    pub last_change: String,
}

impl Judge {
    #[must_use]
    pub fn new(allowance: Allowance) -> Self {
        Self {
            allowance,
            server: None,
            first: None,
            found: Vec::new(),
            reached: Vec::new(),
            machines: BTreeMap::new(),
            gone: BTreeMap::new(),
            sets: BTreeMap::new(),
            instances: BTreeMap::new(),
            checks: BTreeMap::new(),
            certificates: CertificateTruth::default(),
            cluster_api: FleetTruth::default(),
            maintenance: MaintenanceTruth::default(),
            renewals: BTreeMap::new(),
            fresh_reads: BTreeMap::new(),
            names_used: BTreeSet::new(),
            counts: Counts::default(),
        }
    }

    /// Lets the judge look at what is stored.
    pub fn look_at(&mut self, server: &ApiServer) {
        self.server = Some(server.clone());
    }

    /// The first promise that was broken.
    #[must_use]
    pub const fn verdict(&self) -> Option<&Violation> {
        self.first.as_ref()
    }

    pub fn record(&mut self, id: &'static str, subject: &str, time: Timestamp, words: String) {
        let violation = Violation { id, subject: subject.to_owned(), time, words };
        self.first.get_or_insert(violation);
    }

    /// What was found since the last time.
    pub fn take_found(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.found)
    }

    /// The interesting states that were reached since the last time.
    pub fn take_reached(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.reached)
    }

    /// When an instance was launched, by the world's own clock.
    #[must_use]
    pub fn launched_at(&self, id: &str) -> Option<Timestamp> {
        self.instances.get(id).map(|one| one.launched_at)
    }

    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The phases of one Machine, or of all of them.
    #[must_use]
    pub fn phases(&self, machine: Option<&str>) -> Vec<&'static str> {
        let all = self.machines.values();
        all.filter(|one| machine.is_none_or(|name| name == one.name)).map(|one| one.phase).collect()
    }

    /// How many Machines there are.
    #[must_use]
    pub fn machines(&self) -> usize {
        self.machines.len()
    }

    /// Names of Machines, those being deleted apart.
    #[must_use]
    pub fn living_machines(&self) -> Vec<String> {
        let living = self.machines.values().filter(|one| one.deleting_since.is_none());
        living.map(|one| one.name.clone()).collect()
    }

    /// Takes note of what the cloud holds.
    pub fn instances_are(&mut self, facts: &[InstanceFacts], now: Timestamp) {
        let present: BTreeSet<&str> = facts.iter().map(|one| one.id.as_str()).collect();
        for (id, known) in &mut self.instances {
            // What the cloud has forgotten is gone.
            if !present.contains(id.as_str()) {
                known.state = InstanceState::Terminated;
            }
        }
        for one in facts {
            match self.instances.get_mut(&one.id) {
                Some(known) => known.update(one, now),
                None => {
                    let mut new = InstanceTruth { launched_at: now, ..InstanceTruth::of(one) };
                    new.update(one, now);
                    self.instances.insert(one.id.clone(), new);
                }
            }
        }
    }

    /// Takes note that a life is shown a Machine as it is stored at that time.
    pub fn read_fresh(&mut self, tag: &str, machine: &str, served_at: Timestamp) {
        self.fresh_reads.insert((tag.to_owned(), machine.to_owned()), served_at);
    }

    pub fn read(&mut self, action: &'static str) {
        *self.counts.cloud_reads.entry(action).or_default() += 1;
    }

    fn find(&mut self, id: &'static str, subject: &str, now: Timestamp, words: impl Into<String>) {
        self.found.push(Violation {
            id,
            subject: subject.to_owned(),
            time: now,
            words: words.into(),
        });
    }

    /// The Machine of an instance, by the uid on it.
    fn machine_of_instance(&self, id: &str) -> Option<&MachineTruth> {
        let uid = self.instances.get(id)?.uid.as_ref()?;
        self.machines.get(uid)
    }

    fn live_instances_of<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a InstanceTruth> {
        self.instances.values().filter(move |one| one.uid.as_deref() == Some(uid) && one.is_live())
    }

    /// Whether something happened so long ago that a view of the cluster must show it.
    fn must_be_seen(&self, happened: Timestamp, now: Timestamp) -> bool {
        let Some(lag) = self.allowance.view_lag else { return false };
        let lag = SignedDuration::try_from(lag).unwrap_or(SignedDuration::MAX);
        now.duration_since(happened) > lag
    }
}
