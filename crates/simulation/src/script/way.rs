//! What goes wrong between the operators and the API server in a script? Faults for a kind and a while,
//! on top of what always may go wrong on the way.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;

use super::{
    kind::is_meant,
    step::{Forbid, ForbiddenVerb, ListFate, ListFault, WatchFate, WatchFault},
};
use crate::{
    actors::later,
    api_server::{
        Age, EventContext, EventFate, Failure, Faults, Loss, RequestContext, RequestFate,
        RequestOutcome, Verb,
    },
    faults::api::ApiFaults,
    hub::lock,
    invariants::is_operator,
};

/// The faults that are on, shared between a script and the way. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Obstacles {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    watches: Vec<(WatchFault, Timestamp)>,
    lists: Vec<(ListFault, Timestamp)>,
    forbidden: Vec<(Forbid, Timestamp)>,
}

impl Obstacles {
    pub fn watches(&self, fault: &WatchFault, now: Timestamp) {
        let until = later(now, fault.lasting.0);
        lock(&self.shared).watches.push((fault.clone(), until));
    }

    pub fn lists(&self, fault: &ListFault, now: Timestamp) {
        let until = later(now, fault.lasting.0);
        lock(&self.shared).lists.push((fault.clone(), until));
    }

    pub fn forbid(&self, fault: &Forbid, now: Timestamp) {
        let until = later(now, fault.lasting.0);
        lock(&self.shared).forbidden.push((fault.clone(), until));
    }

    pub fn clear(&self) {
        *lock(&self.shared) = Shared::default();
    }

    fn of_request(&self, context: &RequestContext<'_>, fate: &mut RequestFate) {
        let shared = lock(&self.shared);
        let request = context.request;
        let kind = request.kind.kind;
        let holds = |until: Timestamp, named: &str| context.now < until && is_meant(named, kind);
        for (fault, until) in &shared.forbidden {
            let is_verb = match fault.verb {
                ForbiddenVerb::Get => request.verb == Verb::Get,
                ForbiddenVerb::List => matches!(request.verb, Verb::List | Verb::Watch),
                ForbiddenVerb::Create => request.verb == Verb::Create,
                ForbiddenVerb::Patch => {
                    matches!(request.verb, Verb::MergePatch | Verb::JsonPatch | Verb::Update)
                }
                ForbiddenVerb::Delete => request.verb == Verb::Delete,
            };
            if is_verb && holds(*until, &fault.kind) {
                let failure = Failure::forbidden(kind.group, kind.plural, &request.name, "RBAC");
                fate.outcome = RequestOutcome::Refuse(failure);
                return;
            }
        }
        for (fault, until) in &shared.lists {
            if request.verb != Verb::List || !holds(*until, &fault.kind) {
                continue;
            }
            let by = fault.by.unwrap_or_default();
            match fault.are {
                // Who asks for no version in particular is answered from the newest state (quorum).
                ListFate::Stale if request.options.resource_version == "0" => {
                    fate.outcome = RequestOutcome::Stale(Age::Time(by.signed()));
                }
                ListFate::Stale => {}
                ListFate::Slow => fate.delay += by.0,
                ListFate::Failing => {
                    let words = "etcdserver: request timed out";
                    let failure = Failure::new(500, "InternalError", words);
                    fate.outcome = RequestOutcome::LoseRequest(Loss::Status(failure));
                }
            }
        }
    }

    fn of_event(&self, context: &EventContext<'_>) -> EventFate {
        let shared = lock(&self.shared);
        let found = shared.watches.iter().find(|(fault, until)| {
            context.now < *until && is_meant(&fault.kind, context.kind.kind)
        });
        let Some((fault, until)) = found else { return EventFate::Deliver };
        match fault.are {
            WatchFate::Silent => EventFate::Freeze,
            WatchFate::Dropped => EventFate::Drop,
            WatchFate::Late => {
                let left = until.duration_since(context.now);
                let left = Duration::try_from(left).unwrap_or_default();
                EventFate::Lag(fault.by.map_or(left, |by| by.0))
            }
            WatchFate::Doubled => EventFate::Duplicate,
            WatchFate::Regressing => EventFate::Regress,
            WatchFate::Expired => EventFate::Expire,
        }
    }
}

/// The usual way with a script's obstacles on it.
#[derive(Debug)]
pub struct Way {
    pub usual: ApiFaults,
    pub obstacles: Obstacles,
}

impl Faults for Way {
    fn on_request(&mut self, context: &RequestContext<'_>) -> RequestFate {
        let mut fate = self.usual.on_request(context);
        if is_operator(context.client) && fate.outcome == RequestOutcome::Deliver {
            self.obstacles.of_request(context, &mut fate);
        }
        fate
    }

    fn on_event(&mut self, context: &EventContext<'_>) -> EventFate {
        match self.usual.on_event(context) {
            EventFate::Deliver if is_operator(context.client) => self.obstacles.of_event(context),
            other => other,
        }
    }
}
