//! Which machines may be taken away because they do not work? S20: what must hold when a Machine under a
//! health check is remediated.
//!
//! How the machines of a check were is remembered, because who remediates has looked a moment before.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use machinist_api::names::annotation;
use serde_json::Value;

use super::{
    Judge,
    truth::{MachineTruth, condition},
};
use crate::api_server::{Commit, KindRef, Object, text_at, value_at};

/// Kubernetes keeps whole seconds.
const ROUNDING: SignedDuration = SignedDuration::from_secs(1);
/// How long a Node must be missing before that is held against its Machine.
const MISSING_GRACE: SignedDuration = SignedDuration::from_secs(30);
/// How much of a pool may be out of work where nobody chose.
const USUAL_SHARE_PERCENT: usize = 40;
/// A view is never older than this: every fault that blinds ends before.
const FORGOTTEN: SignedDuration = SignedDuration::from_hours(1);

/// A health check as it is stored.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckTruth {
    pub name: String,
    selector: BTreeMap<String, String>,
    max: MaxUnhealthy,
    /// Type, status and how long it may last.
    bad: Vec<(String, String, SignedDuration)>,
    startup: Option<SignedDuration>,
    is_active: bool,
    /// How its machines were, from when on, oldest first.
    history: VecDeque<(Timestamp, Vec<Member>)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MaxUnhealthy {
    /// Nobody chose.
    #[default]
    Unsaid,
    Number(usize),
    Percent(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    uid: String,
    name: String,
    /// The pool that it is of.
    owner: Option<String>,
    /// Whether it does its work, whatever the check says.
    works: bool,
    state: State,
}

/// The pool of a machine: which, and how many it wants at least and at most.
struct PoolTruth<'a> {
    owner: &'a str,
    wanted: (usize, usize),
}

/// How a machine under a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Healthy,
    /// Not healthy, and not to be remediated: on its way out, or in another's hands.
    Out,
    /// Without a Node. May be called bad from `due` on, and is from `until` on: who does not know yet that
    /// the instance is gone counts from its launch.
    Starting {
        due: Timestamp,
        until: Timestamp,
    },
    /// Not healthy; may be remediated from then on.
    Bad {
        due: Timestamp,
    },
}

impl MaxUnhealthy {
    fn read(value: Option<&Value>) -> Option<Self> {
        let number = |text: &str| text.parse::<usize>().ok();
        match value {
            None | Some(Value::Null) => Some(Self::Unsaid),
            Some(Value::Number(count)) => {
                Some(Self::Number(usize::try_from(count.as_u64()?).ok()?))
            }
            Some(Value::String(text)) if text == "100%" => Some(Self::Unsaid),
            Some(Value::String(text)) => match text.strip_suffix('%') {
                Some(percent) => Some(Self::Percent(number(percent)?)),
                None => Some(Self::Number(number(text)?)),
            },
            Some(_) => None,
        }
    }

    const fn of(self, machines: usize) -> usize {
        match self {
            Self::Unsaid => machines,
            Self::Number(number) => number,
            Self::Percent(percent) => machines * percent / 100,
        }
    }
}

impl CheckTruth {
    /// Reads what is stored. One that cannot be read allows nothing.
    fn read(object: &Object, before: Option<&Self>) -> Self {
        let value = object.value();
        let selector = value_at(value, "/spec/selector/matchLabels").and_then(Value::as_object);
        let conditions = value_at(value, "/spec/unhealthyConditions").and_then(Value::as_array);
        let bad: Option<Vec<_>> = conditions
            .into_iter()
            .flatten()
            .map(|one| {
                let text = |field: &str| one.get(field).and_then(Value::as_str).unwrap_or_default();
                let timeout = duration(one.get("timeout"))?;
                Some((text("type").to_owned(), text("status").to_owned(), timeout))
            })
            .collect();
        let startup = duration(value_at(value, "/spec/nodeStartupTimeout"));
        let max = MaxUnhealthy::read(value_at(value, "/spec/maxUnhealthy"));
        let annotations = value_at(value, "/metadata/annotations");
        let is_paused = annotations.is_some_and(|all| all.get(annotation::PAUSED).is_some());
        Self {
            name: object.name().to_owned(),
            selector: selector
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            max: max.unwrap_or_default(),
            is_active: bad.is_some()
                && startup.is_some()
                && max.is_some()
                && !is_paused
                && !object.is_being_deleted(),
            bad: bad.unwrap_or_default(),
            startup: startup.filter(|startup| !startup.is_zero()),
            history: before.map(|before| before.history.clone()).unwrap_or_default(),
        }
    }

    fn selects(&self, machine: &MachineTruth) -> bool {
        self.selector.iter().all(|(key, value)| machine.labels.get(key) == Some(value))
    }

    /// The states that a look between two times may have shown, newest first.
    fn shown(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, &[Member])> {
        let mut ended = to;
        self.history.iter().rev().map_while(move |(began, members)| {
            let at = ended;
            ended = *began;
            // The last moment at which it was so.
            (at >= from).then_some((at, members.as_slice()))
        })
    }

    /// Whether the arithmetic lets anything be remediated: machines that are still in time to get a Node
    /// are left out, and of the others no more than the share may be unhealthy.
    fn allows(
        &self,
        members: &[Member],
        pool: &PoolTruth<'_>,
        at: Timestamp,
    ) -> Result<(), String> {
        // What is stored has whole seconds: whether time is up in this one is open.
        self.allows_share(members, at)
            .or_else(|words| self.allows_share(members, later(at, -ROUNDING)).map_err(|_| words))?;
        if self.max != MaxUnhealthy::Unsaid {
            return Ok(());
        }
        // Where nobody chose a share, the gate's own holds: two in five of the pool, or one.
        let of_pool = members.iter().filter(|one| one.owner.as_deref() == Some(pool.owner));
        let working = of_pool.filter(|one| one.works).count();
        let is_open = |wanted: usize| {
            wanted.saturating_sub(working) <= (wanted * USUAL_SHARE_PERCENT / 100).max(1)
        };
        let (least, most) = pool.wanted;
        if is_open(least) || is_open(most) {
            return Ok(());
        }
        Err(format!("only {working} of {most} machines of its pool work"))
    }

    fn allows_share(&self, members: &[Member], at: Timestamp) -> Result<(), String> {
        let is_starting =
            |one: &&Member| matches!(one.state, State::Starting { until, .. } if at <= until);
        let counted = members.len() - members.iter().filter(is_starting).count();
        let healthy = members.iter().filter(|one| one.state == State::Healthy).count();
        let (unhealthy, most) = (counted - healthy, self.max.of(counted));
        if unhealthy > most {
            let is_ill = |one: &&Member| one.state != State::Healthy && !is_starting(one);
            let ill: Vec<&str> =
                members.iter().filter(is_ill).map(|one| one.name.as_str()).collect();
            let ill = ill.join(", ");
            return Err(format!(
                "{unhealthy} of {counted} are unhealthy ({ill}), and {most} may be"
            ));
        }
        Ok(())
    }
}

fn duration(value: Option<&Value>) -> Option<SignedDuration> {
    match value {
        None | Some(Value::Null) => Some(SignedDuration::ZERO),
        Some(Value::String(text)) if text == "0" => Some(SignedDuration::ZERO),
        Some(Value::String(text)) => text.parse().ok(),
        Some(_) => None,
    }
}

impl Judge {
    pub(super) fn check_changed(&mut self, commit: &Commit, by_operator: bool) {
        let uid = commit.object().uid().to_owned();
        match &commit.after {
            None => {
                self.checks.remove(&uid);
            }
            Some(object) => {
                let check = CheckTruth::read(object, self.checks.get(&uid));
                self.checks.insert(uid, check);
                let allowed = condition(object.value(), "RemediationAllowed");
                let reason = allowed.map(|it| text_at(it, "/reason")).unwrap_or_default();
                if matches!(reason, "TooManyUnhealthy" | "DisruptionHeld") {
                    self.reached.push("a health check restricts remediation");
                }
                if by_operator {
                    self.check_transition_times(commit, "");
                }
            }
        }
        self.note_health(commit.time);
    }

    /// Takes note of how the machines of all checks are.
    pub(super) fn note_health(&mut self, now: Timestamp) {
        if self.checks.is_empty() {
            return;
        }
        let mut checks = std::mem::take(&mut self.checks);
        for check in checks.values_mut() {
            let members: Vec<Member> = self
                .machines
                .values()
                .filter(|machine| check.selects(machine))
                .map(|machine| Member {
                    uid: machine.uid.clone(),
                    name: machine.name.clone(),
                    owner: machine.owner.clone(),
                    works: self.works(machine),
                    state: self.state_of(machine, check, now),
                })
                .collect();
            if check.history.back().is_none_or(|(_, last)| *last != members) {
                check.history.push_back((now, members));
            }
            let forgotten = now.checked_sub(FORGOTTEN).unwrap_or(Timestamp::MIN);
            // The one before is what was so until then.
            while check.history.get(1).is_some_and(|(began, _)| *began < forgotten) {
                check.history.pop_front();
            }
        }
        self.checks = checks;
    }

    pub(super) fn works(&self, machine: &MachineTruth) -> bool {
        machine.deleting_since.is_none()
            && machine.phase == "Running"
            && self.has_ready_node(machine)
    }

    /// Whether the Node that a Machine is linked to is Ready.
    pub(super) fn has_ready_node(&self, machine: &MachineTruth) -> bool {
        let node = machine.node.as_ref().and_then(|name| {
            self.server.as_ref()?.get_object(KindRef::find("", "nodes")?, "", name)
        });
        node.is_some_and(|node| {
            condition(node.value(), "Ready").is_some_and(|it| text_at(it, "/status") == "True")
        })
    }

    fn state_of(&self, machine: &MachineTruth, check: &CheckTruth, now: Timestamp) -> State {
        if machine.deleting_since.is_some() {
            return State::Out;
        }
        if machine.phase == "Failed" {
            return State::Bad { due: Timestamp::MIN };
        }
        let Some(name) = &machine.node else {
            let Some(startup) = check.startup else { return State::Out };
            // A launch that nobody has recorded yet is known to none.
            let launched = self.live_instances_of(&machine.uid).map(|one| one.launched_at).min();
            let launched = launched.filter(|_| machine.instance.is_some());
            let recorded = machine.instance.as_ref().and_then(|id| self.instances.get(id));
            let recorded = recorded.map(|instance| instance.launched_at).or(launched);
            let from = |start: Option<Timestamp>| {
                later(start.unwrap_or(machine.created).max(machine.created), startup)
            };
            return State::Starting { due: from(launched), until: from(recorded) };
        };
        let node = KindRef::find("", "nodes")
            .and_then(|kind| self.server.as_ref()?.get_object(kind, "", name));
        let Some(node) = node.filter(|node| machine.node_uid.as_deref() == Some(node.uid())) else {
            // It is missing since some time that nobody noted: from when it is first seen to be.
            let known = check.history.back().and_then(|(_, members)| {
                let before = members.iter().find(|member| member.uid == machine.uid)?;
                match before.state {
                    State::Bad { due } => Some(due),
                    _ => None,
                }
            });
            // A Node that was bad and has gone is bad as one that is missing, even if that is sooner.
            let due = later(now, MISSING_GRACE);
            return State::Bad { due: known.map_or(due, |known| known.min(due)) };
        };
        let due = check.bad.iter().filter_map(|(type_, status, timeout)| {
            let found = condition(node.value(), type_)?;
            let since: Timestamp = text_at(found, "/lastTransitionTime").parse().ok()?;
            (text_at(found, "/status") == status).then(|| later(since, *timeout))
        });
        match due.min() {
            Some(due) => State::Bad { due },
            None if machine.is_in_repair => State::Out,
            None => State::Healthy,
        }
    }

    /// S20, for a Machine that an operator takes away. Says whether that is a remediation: a machine of
    /// a pool that is not surplus, and that is bad.
    pub(super) fn check_remediation(
        &mut self,
        machine: &MachineTruth,
        client: &str,
        now: Timestamp,
    ) -> bool {
        let Some(set) = machine.owner.as_ref().and_then(|owner| self.sets.get(owner)) else {
            return false;
        };
        let (least, most) = set.wanted_since(self.seen_since(now));
        let owned = self.machines.values().filter(|one| one.owner == machine.owner);
        let left =
            owned.filter(|one| one.deleting_since.is_none() && one.uid != machine.uid).count();
        if machine.is_adrift || left >= least || set.deleting_since.is_some() {
            return false;
        }
        let pool = PoolTruth {
            owner: machine.owner.as_deref().unwrap_or_default(),
            wanted: (least, most),
        };
        // What it was decided on: the last complete look at all Machines, or what a view must show.
        let read = self.fresh_reads.get(&(client.to_owned(), String::new())).copied();
        let since = read.or_else(|| self.seen_since(now));
        let from = since.unwrap_or(Timestamp::MIN);
        let mut is_remediation = false;
        let mut refusals = Vec::new();
        for check in self.checks.values().filter(|check| check.is_active && check.selects(machine))
        {
            let mut is_right = Err("it is healthy".to_owned());
            for (at, members) in check.shown(from, now) {
                let member = members.iter().find(|member| member.uid == machine.uid);
                let due = match member.map(|member| member.state) {
                    Some(State::Bad { due }) => due,
                    Some(State::Starting { due, .. }) => due,
                    _ => continue,
                };
                is_remediation = true;
                let is_late = later(due, -ROUNDING) <= at || self.allowance.clocks_jump;
                is_right = if is_late {
                    check.allows(members, &pool, at)
                } else {
                    Err(format!("it may be bad until {due}"))
                };
                if is_right.is_ok() {
                    break;
                }
            }
            match is_right {
                Ok(()) => {
                    self.reached.push("an unhealthy machine is remediated");
                    return true;
                }
                Err(words) => refusals.push(format!("check {}: {words}", check.name)),
            }
        }
        // Whose view is the past for ever can be held to nothing.
        if is_remediation && since.is_some() {
            let words = format!("remediated, but {}", refusals.join("; "));
            self.find("S20", &machine.name, now, words);
        }
        is_remediation
    }

    /// What is bad by now and still not remediated, though every rule allows it, with its check.
    pub(super) fn left_unremediated(&self, now: Timestamp) -> Vec<(String, String)> {
        let mut left = Vec::new();
        for check in self.checks.values().filter(|check| check.is_active) {
            let Some((_, members)) = check.history.back() else { continue };
            for member in members {
                let is_due = match member.state {
                    State::Bad { due } => later(due, ROUNDING) < now,
                    State::Starting { until, .. } => later(until, ROUNDING) < now,
                    State::Healthy | State::Out => false,
                };
                let Some(machine) = self.machines.get(&member.uid) else { continue };
                let set = machine.owner.as_ref().and_then(|owner| self.sets.get(owner));
                let Some(set) = set.filter(|set| set.deleting_since.is_none()) else { continue };
                let pool = PoolTruth {
                    owner: machine.owner.as_deref().unwrap_or_default(),
                    wanted: set.wanted_since(Some(now)),
                };
                let is_allowed = check.allows(members, &pool, now).is_ok() && !machine.is_adrift;
                if is_due && is_allowed && machine.deleting_since.is_none() {
                    left.push((machine.name.clone(), check.name.clone()));
                }
            }
        }
        left
    }
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    let furthest = if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    at.checked_add(by).unwrap_or(furthest)
}
