//! What can go wrong between a client and the server, and who decides?
//!
//! The server asks for the fate of each request and of each event of each watch. Both calls are made
//! without the server's lock, so the one who answers may look at the server's state.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{
    failure::Failure, kinds::KindRef, object::Object, request::ApiRequest, watcher::EventType,
};

/// Decides what goes wrong. By default nothing does.
pub trait Faults: Send {
    fn on_request(&mut self, _: &RequestContext<'_>) -> RequestFate {
        RequestFate::default()
    }

    fn on_event(&mut self, _: &EventContext<'_>) -> EventFate {
        EventFate::Deliver
    }
}

/// Nothing goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFaults;

impl Faults for NoFaults {}

/// A request that has come in and has had no effect yet.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext<'a> {
    /// Counts the requests of all clients.
    pub number: u64,
    pub client: &'a str,
    pub request: &'a ApiRequest,
    pub now: Timestamp,
    pub revision: u64,
    pub oldest_revision: u64,
}

/// What happens to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFate {
    /// The time before it reaches the server.
    pub delay: Duration,
    pub outcome: RequestOutcome,
    /// The time that the answer takes.
    pub answer_delay: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequestOutcome {
    #[default]
    Deliver,
    /// A read is answered from an earlier state. Writes are delivered as usual.
    Stale(Age),
    /// Refused before it has any effect.
    Refuse(Failure),
    /// Lost on the way to the server: no effect.
    LoseRequest(Loss),
    /// Carried out, and the answer is lost.
    LoseAnswer(Loss),
}

/// What the client sees instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The connection breaks.
    Disconnect,
    /// Nothing, for ever.
    Silence,
    /// A refusal by something in between.
    Status(Failure),
}

/// How far back. What is no longer remembered reads as the oldest state that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    Revision(u64),
    Time(SignedDuration),
}

impl From<RequestOutcome> for RequestFate {
    fn from(outcome: RequestOutcome) -> Self {
        Self { outcome, ..Self::default() }
    }
}

/// An event that a watch is about to send.
#[derive(Clone, Copy, Debug)]
pub struct EventContext<'a> {
    /// The watch, by the order of their beginnings.
    pub watch: u64,
    pub client: &'a str,
    pub kind: KindRef,
    pub event_type: EventType,
    pub object: &'a Object,
    pub now: Timestamp,
}

/// What happens to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFate {
    Deliver,
    /// Never sent on this watch.
    Drop,
    Duplicate,
    /// Sent, and then the version before it once more.
    Regress,
    /// Held back, and with it everything after it on this watch.
    Lag(Duration),
    /// Overtaken by so many later events of other objects, or until the time is over.
    Defer {
        events: u32,
        at_most: Duration,
    },
    /// The watch ends before it.
    End,
    /// The watch ends with "too old resource version".
    Expire,
    /// The watch goes silent: neither events nor its end come.
    Freeze,
}
