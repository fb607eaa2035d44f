//! How fast may an account be called, and whose turn is it?
//!
//! A token bucket for each group of calls. It starts at the figures that AWS publishes, grows while
//! it is what holds calls back and nothing is refused, and halves when the provider refuses a call.
//! Pure: time is passed in, as the time since any fixed moment of a clock that never goes back.

mod line;

use std::{collections::BTreeMap, time::Duration};

use self::line::Line;

/// The longest that a caller should wait on the spot. Doubled, twice as many workers are held by
/// callers who only wait.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// The longest time after which a caller is told to come back: the pace may have changed by then.
/// Doubled, a pace that grew quickly finds nobody there for that much longer.
const RETURN_MAX: Duration = Duration::from_secs(30);

/// Growth for each success as long as nothing was ever refused. An account with the published
/// limits refuses about one call on the way; one without limits is at ten times after 47 calls.
const GROWTH_AT_FIRST: f64 = 1.05;
/// Growth for each success once something was refused: about seventy calls from half to whole, so
/// one or two calls in a hundred are refused where the limit is reached all the time.
const GROWTH: f64 = 1.01;
/// Of the published rate. Beyond it the cloud is no longer what is waited for.
const FACTOR_MAX: f64 = 10.0;
/// Of the published rate: other programs may use the account too, but they do not use all of it.
const FACTOR_MIN: f64 = 0.05;

/// Refusals within this time are answers to calls that were sent before the first was heard.
const ONE_REFUSAL: Duration = Duration::from_secs(1);

/// Calls that share their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    Reads,
    Changes,
    Launches,
    Starts,
    Stops,
    Terminations,
    Tags,
    LoadBalancerReads,
    LoadBalancerChanges,
    /// Messages: no limit that one reader could reach.
    Messages,
}

/// Size and refill for each second.
#[derive(Clone, Copy, Debug)]
struct Limit {
    size: f64,
    refill: f64,
}

const READS: Limit = Limit { size: 100.0, refill: 20.0 };
const CHANGES: Limit = Limit { size: 50.0, refill: 5.0 };
const LAUNCHES: Limit = Limit { size: 5.0, refill: 2.0 };
const TERMINATIONS: Limit = Limit { size: 100.0, refill: 5.0 };
const TAGS: Limit = Limit { size: 100.0, refill: 10.0 };
const INSTANCES_STARTED: Limit = Limit { size: 1000.0, refill: 2.0 };
const INSTANCES_STOPPED: Limit = Limit { size: 1000.0, refill: 20.0 };
const MESSAGES: Limit = Limit { size: 1000.0, refill: 1000.0 };

impl Lane {
    /// The group of an action; those of other services than EC2 have a prefix: `elb:`, `sqs:`.
    pub fn of(action: &str) -> Self {
        let (service, operation) = action.split_once(':').unwrap_or(("ec2", action));
        let is_read = ["Describe", "Get", "List"].iter().any(|verb| operation.starts_with(verb));
        match (service, operation) {
            ("sqs", _) => Self::Messages,
            ("elb" | "elbv2", _) if is_read => Self::LoadBalancerReads,
            ("elb" | "elbv2", _) => Self::LoadBalancerChanges,
            (_, "RunInstances") => Self::Launches,
            (_, "StartInstances") => Self::Starts,
            (_, "StopInstances") => Self::Stops,
            (_, "TerminateInstances") => Self::Terminations,
            (_, "CreateTags") => Self::Tags,
            (_, _) if is_read => Self::Reads,
            (_, _) => Self::Changes,
        }
    }

    /// "Request throttling for the Amazon EC2 API". Where there are two limits, the first counts
    /// requests and the second instances; every call of ours is for one instance. Load balancing
    /// has limits that are not published; the same figures are where the search for them begins.
    fn limits(self) -> &'static [Limit] {
        match self {
            Self::Reads | Self::LoadBalancerReads => &[READS],
            Self::Changes | Self::LoadBalancerChanges => &[CHANGES],
            Self::Launches | Self::Starts => &[LAUNCHES, INSTANCES_STARTED],
            Self::Stops => &[CHANGES, INSTANCES_STOPPED],
            Self::Terminations => &[TERMINATIONS, INSTANCES_STOPPED],
            Self::Tags => &[TAGS],
            Self::Messages => &[MESSAGES],
        }
    }
}

/// What an answer says about the pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call was let through, whatever came of it.
    Admitted,
    /// The provider asked to be called more slowly.
    Refused,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The caller's, after this wait. It has been counted.
    Mine { after: Duration },
    /// Not soon: nothing was counted. The place in line is kept.
    ComeBack { after: Duration },
}

/// The pace of one account and region.
#[derive(Clone, Debug, Default)]
pub struct Pacing {
    lanes: BTreeMap<Lane, Pace>,
}

impl Pacing {
    /// Asks for a turn to change something. Whoever has to come back keeps a place under their
    /// name, so that nobody is overtaken for ever and asking twice does not lengthen the line.
    pub fn ask(&mut self, lane: Lane, name: &str, now: Duration) -> Turn {
        self.lane(lane, now).ask(name, now)
    }

    /// Takes a turn, however long the wait for it is: for callers who cannot come back.
    pub fn reserve(&mut self, lane: Lane, now: Duration) -> Duration {
        self.lane(lane, now).take()
    }

    pub fn learn(&mut self, lane: Lane, answer: Answer, now: Duration) {
        self.lane(lane, now).learn(answer, now);
    }

    /// Calls for each second at which the lane's first bucket is refilled.
    pub fn rate(&self, lane: Lane) -> f64 {
        let factor = self.lanes.get(&lane).map_or(1.0, |pace| pace.factor);
        lane.limits().first().map_or(0.0, |limit| limit.refill * factor)
    }

    /// Whether the provider refused a call of any group within this time.
    pub fn was_refused_within(&self, period: Duration, now: Duration) -> bool {
        let refused = self.lanes.values().filter_map(|pace| pace.refused_at).max();
        refused.is_some_and(|at| now <= at + period)
    }

    fn lane(&mut self, lane: Lane, now: Duration) -> &mut Pace {
        let pace = self.lanes.entry(lane).or_insert_with(|| Pace::new(lane, now));
        pace.refill(now);
        pace
    }
}

#[derive(Clone, Debug)]
struct Pace {
    buckets: Vec<Bucket>,
    /// What the published rates are multiplied with.
    factor: f64,
    refused_at: Option<Duration>,
    filled_at: Duration,
    line: Line,
}

/// Tokens below zero are turns that were given and are still waited for.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    limit: Limit,
    tokens: f64,
}

impl Pace {
    fn new(lane: Lane, now: Duration) -> Self {
        let buckets =
            lane.limits().iter().map(|limit| Bucket { limit: *limit, tokens: limit.size });
        Self {
            buckets: buckets.collect(),
            factor: 1.0,
            refused_at: None,
            filled_at: now,
            line: Line::default(),
        }
    }

    fn refill(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.filled_at).as_secs_f64();
        for bucket in &mut self.buckets {
            let refill = elapsed * bucket.limit.refill * self.factor;
            bucket.tokens = (bucket.tokens + refill).min(bucket.limit.size);
        }
        self.filled_at = self.filled_at.max(now);
    }

    fn ask(&mut self, name: &str, now: Duration) -> Turn {
        let ahead = self.line.ahead_of(name, now);
        let wait = self.wait(ahead);
        if wait <= PATIENCE {
            self.line.leave(name);
            return Turn::Mine { after: self.take() };
        }
        // Back a little before the turn: what is left is waited for on the spot.
        let after = (wait - PATIENCE / 2).min(RETURN_MAX);
        self.line.keep(name, now + after, now);
        Turn::ComeBack { after }
    }

    /// Takes a token from each bucket and returns when they will have been there.
    fn take(&mut self) -> Duration {
        let wait =
            self.buckets.iter().map(|bucket| bucket.wait(1.0, self.factor)).fold(0.0, f64::max);
        for bucket in &mut self.buckets {
            bucket.tokens -= 1.0;
        }
        seconds(wait)
    }

    /// The wait of somebody with so many before them, if the pace goes on growing: should it not,
    /// they come back early and are told anew, while a growing pace must not find nobody there.
    fn wait(&self, ahead: usize) -> Duration {
        let wait = |bucket: &Bucket| {
            let missing = 1.0 + ahead as f64 - bucket.tokens;
            if missing <= 0.0 {
                return 0.0;
            }
            let rate = bucket.limit.refill * self.factor;
            let growth = self.growth() - 1.0;
            // Calls until the pace cannot grow any more, and the time that they take: a geometric
            // series, each interval shorter than the last by the growth.
            let growing = (FACTOR_MAX / self.factor).ln() / growth.ln_1p();
            let grown = missing.min(growing.max(0.0));
            let while_growing = (1.0 - (-grown * growth.ln_1p()).exp()) / (growth * rate);
            while_growing + (missing - grown) / (bucket.limit.refill * FACTOR_MAX)
        };
        // On the spot nothing is hoped for: a short wait is reckoned with the pace of now.
        let now = |bucket: &Bucket| bucket.wait(1.0 + ahead as f64, self.factor);
        let hoped = self.buckets.iter().map(wait).fold(0.0, f64::max);
        let certain = self.buckets.iter().map(now).fold(0.0, f64::max);
        if seconds(certain) <= PATIENCE {
            seconds(certain)
        } else {
            seconds(hoped).max(PATIENCE * 2)
        }
    }

    fn learn(&mut self, answer: Answer, now: Duration) {
        match answer {
            Answer::Admitted => {
                // A pace that held nobody back has proved nothing.
                let is_limit = self.buckets.iter().any(|bucket| bucket.tokens < 1.0);
                if is_limit {
                    self.factor = (self.factor * self.growth()).min(FACTOR_MAX);
                }
            }
            Answer::Refused => {
                for bucket in &mut self.buckets {
                    bucket.tokens = bucket.tokens.min(0.0);
                }
                let is_new = self.refused_at.is_none_or(|at| now >= at + ONE_REFUSAL);
                if is_new {
                    self.factor = (self.factor / 2.0).max(FACTOR_MIN);
                    self.refused_at = Some(now);
                }
            }
        }
    }

    fn growth(&self) -> f64 {
        if self.refused_at.is_none() { GROWTH_AT_FIRST } else { GROWTH }
    }
}

impl Bucket {
    fn wait(&self, needed: f64, factor: f64) -> f64 {
        ((needed - self.tokens) / (self.limit.refill * factor)).max(0.0)
    }
}

fn seconds(seconds: f64) -> Duration {
    // A day is longer than anybody waits; the bound keeps the conversion from failing.
    Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0))
}

#[cfg(test)]
mod tests;
