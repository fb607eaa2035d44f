//! What has happened? Every call, and every instance ever launched, for tests to hold us to.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Caller, Cloud,
    error::Ec2Error,
    instance::{Instance, InstanceState, StateReason},
    request::{Request, RunInstances, shared},
    response::{Delivery, Response},
    tags::Tags,
};

#[derive(Debug, Clone)]
pub(super) struct Ledger {
    calls: VecDeque<LedgerCall>,
    calls_max: usize,
    next_sequence: u64,
    dropped_calls: u64,
    /// Instances that can no longer be described.
    archive: Vec<LedgerInstance>,
}

/// One call. `result` is `ok`, the error code, or `Held` where a breakpoint kept it from happening.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerCall {
    pub sequence: u64,
    pub time: Timestamp,
    /// The action's name: EC2's as it is, the others with `elb:` or `elbv2:` in front.
    pub action: String,
    #[serde(serialize_with = "shared")]
    pub user_agent: Arc<str>,
    pub access_key_id: Option<String>,
    pub parameters: Parameters,
    pub result: String,
    pub message: Option<String>,
    /// The instances that the call launched or changed.
    pub instance_ids: Vec<String>,
    /// False when the connection ended without an answer, or a breakpoint holds it.
    pub delivered: bool,
}

/// The parameters of a call, without secrets: user data shows its length and hash only.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Parameters {
    Read(Box<Request>),
    /// A call that could not be read, as it came.
    Unread(BTreeMap<String, String>),
}

/// One instance, alive or gone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerInstance {
    pub id: String,
    pub state: InstanceState,
    pub state_reason: Option<StateReason>,
    pub tags: Tags,
    pub client_token: Option<String>,
    pub instance_type: String,
    pub availability_zone: String,
    pub reservation_id: String,
    pub launch_time: Timestamp,
    pub termination_time: Option<Timestamp>,
    pub boot_generation: u64,
    /// The parameters of the RunInstances call that launched it.
    #[serde(serialize_with = "shared")]
    pub parameters: Arc<RunInstances>,
}

/// What `GET /ledger` answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerView {
    pub calls: Vec<LedgerCall>,
    /// How many old calls no longer fit.
    pub dropped_calls: u64,
    pub instances: Vec<LedgerInstance>,
}

/// Which part of the ledger is wanted; by default all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LedgerQuery {
    /// Only calls of this action.
    pub action: Option<String>,
    /// Only calls after this sequence number.
    pub after: Option<u64>,
}

impl Ledger {
    pub(super) fn new(calls_max: usize) -> Self {
        Self {
            calls: VecDeque::new(),
            calls_max,
            next_sequence: 1,
            dropped_calls: 0,
            archive: Vec::new(),
        }
    }

    pub(super) fn record(
        &mut self,
        now: Timestamp,
        caller: &Caller,
        request: &Request,
        result: &Result<Response, Ec2Error>,
        delivery: Delivery,
    ) -> Option<&LedgerCall> {
        let instance_ids = match result {
            Ok(response) => response.changed_instance_ids(),
            Err(_) => Vec::new(),
        };
        let error = result.as_ref().err();
        let parameters = Parameters::Read(Box::new(request.clone()));
        self.push(now, caller, request.action(), parameters, error, instance_ids, delivery);
        self.calls.back()
    }

    pub(super) fn record_unread(
        &mut self,
        now: Timestamp,
        caller: &Caller,
        action: &str,
        parameters: BTreeMap<String, String>,
        error: &Ec2Error,
    ) {
        let parameters = Parameters::Unread(parameters);
        let delivery = Delivery::AT_ONCE;
        self.push(now, caller, action, parameters, Some(error), Vec::new(), delivery);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one private function that lists the columns of the ledger"
    )]
    fn push(
        &mut self,
        time: Timestamp,
        caller: &Caller,
        action: &str,
        parameters: Parameters,
        error: Option<&Ec2Error>,
        instance_ids: Vec<String>,
        delivery: Delivery,
    ) {
        let call = LedgerCall {
            sequence: self.next_sequence,
            time,
            action: action.to_owned(),
            user_agent: self.shared_user_agent(caller),
            access_key_id: caller.access_key_id.clone(),
            parameters,
            result: error.map_or_else(|| "ok".into(), |error| error.code.clone()),
            message: error.map(|error| error.message.clone()),
            instance_ids,
            delivered: !delivery.lost && delivery.held.is_none(),
        };
        self.next_sequence += 1;
        self.calls.push_back(call);
        while self.calls.len() > self.calls_max {
            self.calls.pop_front();
            self.dropped_calls += 1;
        }
    }

    /// Shares the text with the call before: one client makes most calls, and SDKs send long agents.
    fn shared_user_agent(&self, caller: &Caller) -> Arc<str> {
        match self.calls.back() {
            Some(last) if *last.user_agent == *caller.user_agent => Arc::clone(&last.user_agent),
            Some(_) | None => Arc::from(caller.user_agent.as_str()),
        }
    }

    pub(super) fn archive(&mut self, instance: LedgerInstance) {
        self.archive.push(instance);
    }
}

impl Cloud {
    pub fn ledger(&self, query: &LedgerQuery) -> LedgerView {
        let calls = self
            .ledger
            .calls
            .iter()
            .filter(|call| query.after.is_none_or(|after| call.sequence > after))
            .filter(|call| query.action.as_ref().is_none_or(|action| call.action == *action))
            .cloned()
            .collect();
        let mut instances: Vec<LedgerInstance> = self
            .ledger
            .archive
            .iter()
            .cloned()
            .chain(self.instances.values().map(LedgerInstance::from))
            .collect();
        instances.sort_by(|a, b| (a.launch_time, &a.id).cmp(&(b.launch_time, &b.id)));
        LedgerView { calls, dropped_calls: self.ledger.dropped_calls, instances }
    }
}

impl From<&Instance> for LedgerInstance {
    fn from(instance: &Instance) -> Self {
        Self {
            id: instance.id.clone(),
            state: instance.state,
            state_reason: instance.state_reason.clone(),
            tags: instance.tags.clone(),
            client_token: instance.parameters.client_token.clone(),
            instance_type: instance.instance_type.clone(),
            availability_zone: instance.availability_zone.clone(),
            reservation_id: instance.reservation_id.clone(),
            launch_time: instance.created_at,
            termination_time: instance.terminated_at,
            boot_generation: instance.boot_generation,
            parameters: Arc::clone(&instance.parameters),
        }
    }
}
