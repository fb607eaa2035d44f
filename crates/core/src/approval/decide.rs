//! Whether a signing request is approved: the request against the Machines and the Node.

use std::{collections::BTreeSet, net::IpAddr};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition},
    apimachinery::pkg::apis::meta::v1::Time,
};
use machinist_api::{
    Machine,
    names::{annotation, certificate, event},
};

use super::{
    binding::Binding,
    observed::{CurrentCertificate, Observed},
    reading::{Policy, Reading, read},
    refusal::{Refusal, quoted},
    request::RequestedCertificate,
};
use crate::{
    decision::{Announcement, Decision, Wait},
    health::{started_at, verdict::is_failed},
    node,
};

/// The clocks of two API servers may differ by so much.
const SKEW: SignedDuration = SignedDuration::from_secs(10);
/// How long after its start a machine may ask for its first certificate. Bootstrap credentials are
/// shared by a whole fleet, so a machine that is known must be new as well.
const WINDOW: SignedDuration = SignedDuration::from_hours(2);
/// How soon it is looked whether a flood is over: requests leave the count by their age alone.
const FLOOD_RECHECK: SignedDuration = SignedDuration::from_mins(1);

#[derive(Clone, Debug, PartialEq)]
#[must_use = "a decision that nobody carries out is lost"]
pub struct ApprovalDecision {
    pub verdict: Verdict,
    pub decision: Decision<Action, ()>,
    /// Whether the certificate that the kubelet serves with may speak for the request and was not
    /// asked for: then ask the Node at its internal address and decide again.
    pub wants_current_certificate: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    NotOurs,
    Decided,
    Approve(Grounds),
    /// Never right; left pending.
    Refuse(Refusal),
    /// Not right now; looked at again when Machines or Nodes change.
    Wait(Refusal),
}

impl Verdict {
    /// A stable word for the label of a metric: what was decided, or why not.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotOurs => "NotOurs",
            Self::Decided => "Decided",
            Self::Approve(grounds) => grounds.reason(),
            Self::Refuse(refusal) | Self::Wait(refusal) => refusal.reason(),
        }
    }
}

/// What speaks for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// A new machine of that name has no certificate yet.
    NewMachine { machine: String },
    /// All its names and addresses are the machine's.
    AddressesOfMachine { machine: String },
    /// The Node has such a certificate and wants a younger one.
    Renewal { node: String },
}

impl Grounds {
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NewMachine { .. } => "NewMachine",
            Self::AddressesOfMachine { .. } => "AddressesOfMachine",
            Self::Renewal { .. } => "Renewal",
        }
    }
}

impl std::fmt::Display for Grounds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NewMachine { machine } => write!(formatter, "machine {machine} is new"),
            Self::AddressesOfMachine { machine } => {
                write!(formatter, "its names are those of machine {machine}")
            }
            Self::Renewal { node } => {
                write!(formatter, "node {node} renews the certificate that it serves with")
            }
        }
    }
}

/// In order; the second only when the first was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Binds a Machine to this one request, by an annotation, on the uid and resourceVersion that
    /// this was decided on. Two leaders with two requests can then approve only one (S28).
    BindMachine {
        namespace: String,
        name: String,
        uid: String,
        resource_version: String,
        annotation: &'static str,
        value: String,
    },
    /// Adds the condition `Approved`, with `approved_condition`, on the request's resourceVersion.
    Approve { name: String, uid: String, resource_version: String, message: String },
}

/// The condition of an approval.
pub fn approved_condition(message: &str, now: Timestamp) -> CertificateSigningRequestCondition {
    let at = Some(Time(now));
    CertificateSigningRequestCondition {
        last_transition_time: at.clone(),
        last_update_time: at,
        message: Some(message.to_owned()),
        reason: Some(certificate::APPROVED_REASON.to_owned()),
        status: "True".to_owned(),
        type_: "Approved".to_owned(),
    }
}

pub fn decide(observed: &Observed<'_>, policy: &Policy, now: Timestamp) -> ApprovalDecision {
    let reading = read(observed.request, policy);
    let is_flood = || {
        let (pending, max) = (observed.limits.pending, observed.limits.max());
        (pending > max).then_some(Refusal::TooManyPending { pending, max })
    };
    match reading {
        Reading::NotOurs => settled(Verdict::NotOurs),
        Reading::Decided => settled(Verdict::Decided),
        Reading::Refused(refusal) => refused(observed, refusal, now),
        Reading::Client { node, key } => {
            match is_flood().map_or_else(|| new_machine(observed, &node, &key), Err) {
                Ok(machine) => approved_client(observed.request, machine, &key),
                Err(refusal) => refused(observed, refusal, now),
            }
        }
        Reading::Serving { node, certificate } => match is_flood() {
            Some(refusal) => refused(observed, refusal, now),
            None => match addresses_of_machine(observed, &node, &certificate) {
                Ok(machine) => {
                    let machine = machine_name(machine);
                    approved(observed.request, Grounds::AddressesOfMachine { machine }, Vec::new())
                }
                Err(refusal) => renewed(observed, node, &certificate, refusal, now),
            },
        },
    }
}

/// The one new Machine that may become this Node.
fn new_machine<'a>(observed: &Observed<'a>, node: &str, key: &str) -> Result<&'a Machine, Refusal> {
    let machine = only(observed, node, |machine| {
        let addresses = machine.status.iter().flat_map(|status| &status.addresses);
        addresses
            .into_iter()
            .any(|known| known.type_ == "InternalDNS" && known.address.eq_ignore_ascii_case(node))
    })?;
    if observed.node.is_some() {
        return Err(Refusal::NodeExists { node: node.to_owned() });
    }
    let name = machine_name(machine);
    let status = machine.status.as_ref();
    if let Some(known) = status.and_then(|status| status.node_ref.as_ref()) {
        let node = known.name.clone().unwrap_or_default();
        return Err(Refusal::MachineHasNode { machine: name, node });
    }
    if machine.metadata.deletion_timestamp.is_some() {
        return Err(Refusal::MachineDeleting { machine: name });
    }
    if is_failed(machine) {
        return Err(Refusal::MachineFailed { machine: name });
    }
    is_in_window(observed.request, machine)?;
    if let Some(bound) = Binding::of(machine)
        && !bound.admits(request_uid(observed.request), key)
        && !observed.void_requests.contains(bound.request)
    {
        return Err(Refusal::AnotherRequest { machine: name });
    }
    Ok(machine)
}

fn request_uid(request: &CertificateSigningRequest) -> Option<&str> {
    request.metadata.uid.as_deref()
}

fn is_in_window(request: &CertificateSigningRequest, machine: &Machine) -> Result<(), Refusal> {
    let created = machine.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let asked = request.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let (created, started) = match (created, started_at(machine)) {
        (Some(created), Some(started)) => (created, started),
        _ => (Timestamp::MAX, Timestamp::MAX),
    };
    let from = created.checked_sub(SKEW).unwrap_or(Timestamp::MIN);
    let until = started.checked_add(WINDOW).unwrap_or(Timestamp::MAX);
    if asked.is_some_and(|asked| from < asked && asked < until) {
        return Ok(());
    }
    Err(Refusal::OutsideWindow { machine: machine_name(machine), from, until })
}

/// The one Machine of this Node, if all that is asked for is its own.
fn addresses_of_machine<'a>(
    observed: &Observed<'a>,
    node: &str,
    certificate: &RequestedCertificate,
) -> Result<&'a Machine, Refusal> {
    let reference =
        |machine: &'a Machine| machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
    let machine = only(observed, node, |machine| {
        reference(machine).and_then(|known| known.name.as_deref()) == Some(node)
    })?;
    let name = machine_name(machine);
    let linked = reference(machine).and_then(|known| known.uid.as_deref());
    let present = observed.node.map(node::uid);
    if let (Some(linked), Some(present)) = (linked, present)
        && linked != present
    {
        return Err(Refusal::AnotherNode { machine: name, node: node.to_owned() });
    }
    let known = machine.status.as_ref().map_or(&[][..], |status| &status.addresses);
    if known.is_empty() {
        return Err(Refusal::AddressesUnknown { machine: name });
    }
    let (mut dns, mut ip) = (BTreeSet::new(), BTreeSet::new());
    for address in known {
        match address.type_.as_str() {
            "InternalDNS" | "ExternalDNS" | "Hostname" => {
                dns.insert(address.address.to_ascii_lowercase());
            }
            "InternalIP" | "ExternalIP" => {
                ip.extend(address.address.parse::<IpAddr>().map(|ip| ip.to_canonical()));
            }
            _ => {}
        }
    }
    let asked = &certificate.names;
    let foreign: Vec<String> = asked
        .dns
        .difference(&dns)
        .map(|name| quoted(name))
        .chain(asked.ip.difference(&ip).map(IpAddr::to_string))
        .take(5)
        .collect();
    if foreign.is_empty() {
        return Ok(machine);
    }
    Err(Refusal::NamesNotOfMachine { machine: name, names: foreign.join(", ") })
}

/// The one Machine that matches. With two there is none: nobody can tell which one asks (C32). One that
/// is Failed has lost its instance, and its address is the next one's.
fn only<'a>(
    observed: &Observed<'a>,
    node: &str,
    matches: impl Fn(&'a Machine) -> bool,
) -> Result<&'a Machine, Refusal> {
    let mut found: Vec<&Machine> =
        observed.machines.iter().copied().filter(|machine| matches(machine)).collect();
    if found.len() > 1 {
        found.retain(|machine| !is_failed(machine));
    }
    found.sort_by_key(|machine| machine_name(machine));
    match found.as_slice() {
        [] => Err(Refusal::NoMachine { node: node.to_owned() }),
        [machine] => Ok(machine),
        several => Err(Refusal::AmbiguousMachine {
            machines: several.iter().map(|machine| machine_name(machine)).take(5).collect(),
        }),
    }
}

/// What no Machine speaks for may still be a renewal of what the Node has.
fn renewed(
    observed: &Observed<'_>,
    node: String,
    certificate: &RequestedCertificate,
    refusal: Refusal,
    now: Timestamp,
) -> ApprovalDecision {
    match &observed.current {
        CurrentCertificate::Trusted(current)
            if current.common_name == certificate.common_name
                && current.names == certificate.names =>
        {
            approved(observed.request, Grounds::Renewal { node }, Vec::new())
        }
        // Without the Node there is nobody to be asked.
        CurrentCertificate::NotAsked if observed.node.is_some() => {
            ApprovalDecision { wants_current_certificate: true, ..refused(observed, refusal, now) }
        }
        CurrentCertificate::NotAsked
        | CurrentCertificate::Trusted(_)
        | CurrentCertificate::Untrusted(_) => refused(observed, refusal, now),
    }
}

fn approved_client(
    request: &CertificateSigningRequest,
    machine: &Machine,
    key: &str,
) -> ApprovalDecision {
    let mut first = Vec::new();
    if Binding::of(machine).map(|bound| bound.request) != request_uid(request) {
        let machine_uid = machine.metadata.uid.clone().unwrap_or_default();
        let request_uid = request_uid(request).unwrap_or_default();
        first.push(Action::BindMachine {
            namespace: machine.metadata.namespace.clone().unwrap_or_default(),
            name: machine.metadata.name.clone().unwrap_or_default(),
            value: Binding::text(&machine_uid, request_uid, key),
            uid: machine_uid,
            resource_version: machine.metadata.resource_version.clone().unwrap_or_default(),
            annotation: annotation::CLIENT_CERTIFICATE_REQUEST,
        });
    }
    approved(request, Grounds::NewMachine { machine: machine_name(machine) }, first)
}

fn approved(
    request: &CertificateSigningRequest,
    grounds: Grounds,
    first: Vec<Action>,
) -> ApprovalDecision {
    let mut decision = Decision::settled(());
    decision.actions = first;
    decision.actions.push(Action::Approve {
        name: request.metadata.name.clone().unwrap_or_default(),
        uid: request.metadata.uid.clone().unwrap_or_default(),
        resource_version: request.metadata.resource_version.clone().unwrap_or_default(),
        message: format!("{}: {grounds}", certificate::APPROVED_MESSAGE),
    });
    ApprovalDecision {
        verdict: Verdict::Approve(grounds),
        decision,
        wants_current_certificate: false,
    }
}

fn refused(observed: &Observed<'_>, refusal: Refusal, now: Timestamp) -> ApprovalDecision {
    let (reason, words) = (refusal.reason(), refusal.to_string());
    let mut decision = Decision::settled(());
    let is_flood = matches!(refusal, Refusal::TooManyPending { .. });
    // In a flood an event for each would be a flood of events.
    if !is_flood && observed.told != Some(reason) {
        let message = format!("{reason}: {words}");
        decision.announcements.push(Announcement::warning(event::REQUEST_NOT_APPROVED, message));
    }
    if is_flood {
        decision.recheck = now.checked_add(FLOOD_RECHECK).ok();
    }
    decision.waiting.push(Wait::on(reason, words));
    let verdict =
        if refusal.is_final() { Verdict::Refuse(refusal) } else { Verdict::Wait(refusal) };
    ApprovalDecision { verdict, decision, wants_current_certificate: false }
}

fn settled(verdict: Verdict) -> ApprovalDecision {
    ApprovalDecision { verdict, decision: Decision::settled(()), wants_current_certificate: false }
}

fn machine_name(machine: &Machine) -> String {
    format!(
        "{}/{}",
        machine.metadata.namespace.as_deref().unwrap_or_default(),
        machine.metadata.name.as_deref().unwrap_or_default()
    )
}
