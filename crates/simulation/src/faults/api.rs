//! What goes wrong between the operators and the API server?

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use super::FaultKind;
use crate::{
    actors::later,
    api_server::{
        Age, ApiRequest, EventContext, EventFate, Failure, Faults, Loss, RequestContext,
        RequestFate, RequestOutcome, Subresource, Verb,
    },
    chance::Chance,
    effects::{EffectFate, Place},
    hub::{Hub, lock},
};

/// The longest silence on a connection of the operator's real client.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(310);

/// The page size by which watches of the operator list.
const WATCH_PAGE: usize = 200;

/// What goes wrong for a while, set by the storm.
#[derive(Debug, Default)]
pub struct Outages {
    /// Nobody reaches the API server.
    pub unreachable_until: Option<Timestamp>,
    /// One life cannot reach it.
    pub cut_off: BTreeMap<String, Timestamp>,
    pub throttled_until: Option<Timestamp>,
    /// One verb on one kind is forbidden.
    pub forbidden: Option<(Verb, &'static str, Timestamp)>,
}

/// Decides about each request and event of the operators' clients.
#[derive(Debug)]
pub struct ApiFaults {
    pub hub: Arc<Hub>,
    pub chance: Chance,
    /// Probabilities for each request or event; an absent kind is off.
    pub rates: BTreeMap<FaultKind, f64>,
    pub outages: Arc<Mutex<Outages>>,
    /// The longest ordinary travel time of a request, in milliseconds.
    pub latency_max: u64,
    /// When all this ends.
    pub until: Timestamp,
    /// Whether every request, and every event that is not simply delivered, is told in the timeline.
    pub tells: bool,
}

impl ApiFaults {
    fn hits(&mut self, kind: FaultKind, now: Timestamp) -> bool {
        let rate = self.rates.get(&kind).copied().unwrap_or_default();
        now < self.until && self.chance.hits(rate)
    }

    fn count(&self, kind: FaultKind, request: &ApiRequest) {
        let is_machine = request.kind.kind.plural == "machines" && !request.name.is_empty();
        self.hub.count_fault(kind, is_machine.then_some(request.name.as_str()));
    }

    /// What lasts for a while.
    fn outage(&self, context: &RequestContext<'_>) -> Option<(FaultKind, RequestOutcome)> {
        let now = context.now;
        let outages = lock(&self.outages);
        let holds = |until: Option<Timestamp>| until.is_some_and(|until| now < until);
        let lost = RequestOutcome::LoseRequest(Loss::Disconnect);
        if holds(outages.unreachable_until) {
            return Some((FaultKind::F06, lost));
        }
        if holds(outages.cut_off.get(context.client).copied()) {
            return Some((FaultKind::F33, lost));
        }
        if holds(outages.throttled_until) {
            let words = "the server is currently unable to handle the request";
            let mut failure = Failure::new(429, "TooManyRequests", words);
            failure.retry_after_seconds = Some(1);
            return Some((FaultKind::F04, RequestOutcome::Refuse(failure)));
        }
        let request = context.request;
        if let Some((verb, plural, until)) = outages.forbidden
            && now < until
            && request.verb == verb
            && request.kind.kind.plural == plural
        {
            let failure =
                Failure::forbidden(request.kind.kind.group, plural, &request.name, "RBAC");
            return Some((FaultKind::F05, RequestOutcome::Refuse(failure)));
        }
        None
    }

    /// A write of the operator, apart from Leases and Events.
    fn effect(&self, context: &RequestContext<'_>) -> EffectFate {
        let request = context.request;
        let plural = request.kind.kind.plural;
        if !request.verb.is_write() || matches!(plural, "leases" | "events" | "configmaps") {
            return EffectFate::Pass;
        }
        let part = match request.subresource {
            Subresource::None => String::new(),
            other => format!("/{other:?}").to_lowercase(),
        };
        let what = format!("{:?} {plural}{part}", request.verb);
        self.hub.fate_of_effect(context.client, Place::Cluster, &what, &request.name)
    }

    fn random_outcome(&mut self, context: &RequestContext<'_>) -> RequestOutcome {
        let (now, request) = (context.now, context.request);
        if request.verb.is_write() {
            if self.is_conditional(request) && self.hits(FaultKind::F01, now) {
                self.count(FaultKind::F01, request);
                return RequestOutcome::Refuse(Failure::modified(request.kind.kind, &request.name));
            }
            if self.hits(FaultKind::F03, now) {
                self.count(FaultKind::F03, request);
                return RequestOutcome::LoseAnswer(self.loss());
            }
        }
        if self.hits(FaultKind::F02, now) {
            self.count(FaultKind::F02, request);
            return RequestOutcome::LoseRequest(self.loss());
        }
        // What fills a store; a question about one Node's pods or one pool's Machines is a quorum read.
        let is_relist = request.verb == Verb::List
            && request.options.limit == WATCH_PAGE
            && request.options.field_selector.is_empty()
            && request.options.label_selector.is_empty();
        if is_relist && self.hits(FaultKind::F07, now) {
            self.count(FaultKind::F07, request);
            let age = self.chance.seconds(1, 600);
            let age = SignedDuration::try_from(age).unwrap_or_default();
            return RequestOutcome::Stale(Age::Time(age));
        }
        RequestOutcome::Deliver
    }

    /// Whether a conflict is a possible answer: evictions and creations have other refusals.
    fn is_conditional(&self, request: &ApiRequest) -> bool {
        matches!(request.verb, Verb::Update | Verb::MergePatch | Verb::JsonPatch)
            && request.subresource != Subresource::Eviction
    }

    fn loss(&mut self) -> Loss {
        match self.chance.below(3) {
            0 => Loss::Disconnect,
            1 => Loss::Silence,
            _ => Loss::Status(Failure::new(
                500,
                "InternalError",
                "etcdserver: request timed out, possibly due to connection lost",
            )),
        }
    }
}

impl Faults for ApiFaults {
    fn on_request(&mut self, context: &RequestContext<'_>) -> RequestFate {
        let fate = self.fate_of_request(context);
        let ApiRequest { verb, kind, name, subresource, options, .. } = context.request;
        let plural = kind.kind.plural;
        if self.tells && plural != "leases" {
            let from = &options.resource_version;
            self.hub.note(
                "",
                format!(
                    "{} asks {verb:?} {plural}/{name} {subresource:?} {from}: {fate:?}",
                    context.client
                ),
            );
        }
        fate
    }

    fn on_event(&mut self, context: &EventContext<'_>) -> EventFate {
        let fate = self.fate_of_event(context);
        if self.tells && fate != EventFate::Deliver {
            let (plural, name) = (context.kind.kind.plural, context.object.name());
            let words = format!("{} hears of {plural}/{name}: {fate:?}", context.client);
            self.hub.note("", words);
        }
        fate
    }
}

impl ApiFaults {
    fn fate_of_request(&mut self, context: &RequestContext<'_>) -> RequestFate {
        self.hub.tally().api_requests += 1;
        let Some(incarnation) = self.hub.incarnation(context.client) else {
            return RequestFate::default();
        };
        if incarnation.is_dead() {
            return RequestOutcome::LoseRequest(Loss::Silence).into();
        }
        let request = context.request;
        if let Some((kind, outcome)) = self.outage(context) {
            self.count(kind, request);
            return outcome.into();
        }
        let mut fate = RequestFate::default();
        match self.effect(context) {
            EffectFate::Pass => fate.outcome = self.random_outcome(context),
            EffectFate::CrashBefore => {
                incarnation.crash();
                return RequestOutcome::LoseRequest(Loss::Silence).into();
            }
            EffectFate::CrashAfter => {
                incarnation.crash();
                return RequestOutcome::LoseAnswer(Loss::Silence).into();
            }
            EffectFate::LoseAnswer => return RequestOutcome::LoseAnswer(Loss::Disconnect).into(),
            EffectFate::Refuse if self.is_conditional(request) => {
                let failure = Failure::modified(request.kind.kind, &request.name);
                return RequestOutcome::Refuse(failure).into();
            }
            EffectFate::Refuse => {
                let failure = Failure::new(500, "InternalError", "an injected fault refused it");
                return RequestOutcome::Refuse(failure).into();
            }
            EffectFate::Delay(delay) => fate.delay = delay,
        }
        let now = context.now;
        if now < self.until {
            fate.delay += self.chance.millis(0, self.latency_max);
            if request.verb == Verb::List && self.hits(FaultKind::F16, now) {
                self.count(FaultKind::F16, request);
                fate.delay += self.chance.seconds(1, 20);
            }
            if request.verb.is_write() && self.hits(FaultKind::F17, now) {
                self.count(FaultKind::F17, request);
                fate.answer_delay = self.chance.seconds(1, 20);
            }
        }
        fate.delay += incarnation.held_for();
        if request.verb == Verb::Watch && fate.outcome == RequestOutcome::LoseRequest(Loss::Silence)
        {
            // The real client ends a connection that is silent for so long; it has no such layer here.
            fate.delay += SILENCE_TIMEOUT;
            fate.outcome = RequestOutcome::LoseRequest(Loss::Disconnect);
        }
        let served_at = later(now, fate.delay);
        if request.verb == Verb::Get && request.kind.kind.plural == "machines" {
            self.hub.judge().read_fresh(context.client, &request.name, served_at);
        }
        // Who asks for all Nodes themselves, without a watch, wants to know how everything is.
        if request.verb == Verb::List
            && request.kind.kind.plural == "nodes"
            && request.options.limit != WATCH_PAGE
            && request.options.continue_token.is_empty()
        {
            self.hub.judge().read_fresh(context.client, "", served_at);
        }
        fate
    }

    fn fate_of_event(&mut self, context: &EventContext<'_>) -> EventFate {
        let now = context.now;
        let Some(incarnation) = self.hub.incarnation(context.client) else {
            return EventFate::Deliver;
        };
        if incarnation.is_dead() {
            return EventFate::Freeze;
        }
        let held = incarnation.held_for();
        if !held.is_zero() {
            return EventFate::Lag(held);
        }
        {
            let outages = lock(&self.outages);
            let unreachable = outages.unreachable_until.is_some_and(|until| now < until);
            let cut = outages.cut_off.get(context.client).is_some_and(|until| now < *until);
            if unreachable || cut {
                return EventFate::End;
            }
        }
        let machine = (context.kind.kind.plural == "machines").then(|| context.object.name());
        let mut drawn = None;
        for kind in [
            FaultKind::F14,
            FaultKind::F12,
            FaultKind::F09,
            FaultKind::F10,
            FaultKind::F08,
            FaultKind::F11,
        ] {
            if drawn.is_none() && self.hits(kind, now) {
                drawn = Some(kind);
            }
        }
        let Some(kind) = drawn else { return EventFate::Deliver };
        self.hub.count_fault(kind, machine);
        match kind {
            FaultKind::F14 => EventFate::Freeze,
            FaultKind::F12 => EventFate::Regress,
            FaultKind::F09 => EventFate::Drop,
            FaultKind::F10 => EventFate::Duplicate,
            FaultKind::F08 => EventFate::Lag(self.lag()),
            _ => EventFate::Defer {
                events: u32::try_from(self.chance.between(1, 5)).unwrap_or(1),
                at_most: self.chance.seconds(1, 10),
            },
        }
    }
}

impl ApiFaults {
    /// Mostly seconds, rarely minutes.
    fn lag(&mut self) -> Duration {
        if self.chance.hits(0.01) {
            self.chance.seconds(60, 600)
        } else {
            self.chance.seconds(0, 60)
        }
    }
}
