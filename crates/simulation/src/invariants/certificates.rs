//! Who may become a Node, and who may serve? S28: what must hold when a certificate is approved.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use machinist_api::names::{
    annotation,
    certificate::{CLIENT_SIGNER, NODES_GROUP, SERVING_SIGNER},
};

use super::{Judge, truth::MachineTruth};
use crate::{
    api_server::{Commit, KindRef, Object, text_at, value_at},
    certificates::{self, Asked, BOOTSTRAPPER, Purpose, user_of},
    invariants::condition_of,
};

/// How far the clocks of two API servers may be apart, and the rounding of a stored time.
const SKEW: SignedDuration = SignedDuration::from_secs(11);
/// How long after its launch a machine may ask for its first certificate, and a moment for the launch
/// itself.
const WINDOW: SignedDuration = SignedDuration::from_mins(125);

/// What is true of certificates.
#[derive(Debug, Default)]
pub(super) struct CertificateTruth {
    /// Requests that nobody may approve, by uid, with the uid of the Machine that makes them so, if one
    /// does: while it has an instance, their name is its own.
    forbidden: BTreeMap<String, Option<String>>,
    /// The requests for a first certificate that were approved for a Machine, by its uid. By their names,
    /// which stand for the keys in them: a kubelet whose request was deleted asks again for the same.
    clients: BTreeMap<String, BTreeSet<String>>,
    /// Machines whose one certificate went to an earlier bearer of their name, by uid. No rule of ours
    /// can tell them apart; a health check's startup timeout replaces the machine (L5).
    taken: BTreeSet<String>,
    /// What Nodes were allowed to serve with, by the Node's name.
    served: BTreeMap<String, Vec<Asked>>,
    /// What each instance holds.
    held: BTreeSet<(String, Purpose)>,
}

impl Judge {
    /// Takes note of a request that must not be approved: whatever happens, or while the Machine of this
    /// uid has an instance.
    pub fn must_not_be_approved(&mut self, request: &str, because_of: Option<&str>) {
        let because_of = because_of.map(str::to_owned);
        self.certificates.forbidden.insert(request.to_owned(), because_of);
    }

    fn is_forbidden(&self, request: &str) -> bool {
        self.certificates.forbidden.get(request).is_some_and(|because_of| {
            // The name of an instance that is gone is the next one's, and nobody can tell who asks for it.
            because_of
                .as_ref()
                .is_none_or(|machine| self.live_instances_of(machine).next().is_some())
        })
    }

    /// Takes note that the kubelet of an instance has a certificate.
    pub fn holds_certificate(&mut self, instance: &str, purpose: Purpose) {
        self.certificates.held.insert((instance.to_owned(), purpose));
    }

    /// Whether the kubelet of an instance has all that it needs.
    #[must_use]
    pub fn has_certificates(&self, instance: &str) -> bool {
        [Purpose::Client, Purpose::Serving]
            .into_iter()
            .all(|purpose| self.certificates.held.contains(&(instance.to_owned(), purpose)))
    }

    /// Whether the only certificate of a Machine is an earlier bearer's of its name.
    #[must_use]
    pub fn certificate_is_taken(&self, machine: &str) -> bool {
        self.certificates.taken.contains(machine)
    }

    /// Whether a first certificate was approved for the Machine of this uid.
    #[must_use]
    pub fn may_join(&self, machine: &str) -> bool {
        self.certificates.clients.contains_key(machine)
    }

    pub(super) fn request_changed(&mut self, commit: &Commit, by_operator: bool) {
        let Some(after) = &commit.after else { return };
        let is_approved = |object: &Object| condition_of(object.value(), "Approved").is_some();
        if !by_operator || !is_approved(after) || commit.before.as_deref().is_some_and(is_approved)
        {
            return;
        }
        self.reached.push("a certificate request is approved");
        if self.is_forbidden(after.uid()) {
            let words = format!("request {} is a stranger's and is approved", after.name());
            self.find("S28", "", commit.time, words);
            return;
        }
        let asked = certificates::asked(text_at(after.value(), "/spec/request"));
        let found = match (text_at(after.value(), "/spec/signerName"), asked) {
            (CLIENT_SIGNER, Some(asked)) => self.check_client(after, &asked, commit.time),
            (SERVING_SIGNER, Some(asked)) => self.check_serving(after, asked),
            (signer, _) => Err(format!("nobody here asks {signer} for it")),
        };
        if let Err(words) = found {
            let words = format!("request {} is approved: {words}", after.name());
            self.find("S28", "", commit.time, words);
        }
    }

    /// A first certificate: one for each Machine that exists, is new and has this name.
    fn check_client(
        &mut self,
        request: &Object,
        asked: &Asked,
        now: Timestamp,
    ) -> Result<(), String> {
        let node = asked.node().unwrap_or_default().to_owned();
        let username = text_at(request.value(), "/spec/username");
        if username != BOOTSTRAPPER || *asked != (Asked { key: asked.key, ..Asked::client(&node) })
        {
            return Err(format!("{username} asks for {asked:?}"));
        }
        let recently =
            |at: Option<Timestamp>, judge: &Self| at.is_some_and(|at| !judge.must_be_seen(at, now));
        let is_named = |machine: &&MachineTruth| machine.internal_names.contains(&node);
        let gone = self.gone.values().filter(is_named);
        let was_there = gone.into_iter().any(|machine| recently(machine.deleting_since, self));
        let mut named: Vec<MachineTruth> =
            self.machines.values().filter(is_named).cloned().collect();
        if named.len() > 1 {
            // The address of an instance that is gone is the next one's.
            named.retain(|machine| self.live_instances_of(&machine.uid).next().is_some());
        }
        let machine = match named.as_slice() {
            [] if was_there => return Ok(()),
            [] => return Err(format!("no Machine has the name {node}")),
            [machine] => machine,
            several => match several.iter().find(|one| self.is_bound(one, request.uid())) {
                Some(bound) => bound,
                None => return Err(format!("several Machines have the name {node}")),
            },
        };
        let others = named.iter().filter(|one| one.uid != machine.uid);
        if others
            .into_iter()
            .any(|one| one.named_since.is_some() && !recently(one.named_since, self))
        {
            return Err(format!("several Machines have had the name {node} for long"));
        }
        if machine.deleting_since.is_some() && !recently(machine.deleting_since, self) {
            return Err(format!("Machine {} is being deleted", machine.name));
        }
        if machine.linked_since.is_some() && !recently(machine.linked_since, self) {
            return Err(format!("Machine {} became a Node before", machine.name));
        }
        if self.node_since(&node).is_some_and(|since| self.must_be_seen(since, now)) {
            return Err(format!("Node {node} exists"));
        }
        self.check_window(request, machine)?;
        let mut instances = self.instances.values();
        let asking =
            instances.find(|one| certificates::client_request_of(&one.id) == request.name());
        if asking.is_none_or(|one| one.uid.as_ref() != Some(&machine.uid)) {
            self.certificates.taken.insert(machine.uid.clone());
        }
        let approved = self.certificates.clients.entry(machine.uid.clone()).or_default();
        approved.insert(request.name().to_owned());
        if approved.len() > 1 {
            return Err(format!("as number {} for Machine {}", approved.len(), machine.name));
        }
        Ok(())
    }

    fn check_window(&self, request: &Object, machine: &MachineTruth) -> Result<(), String> {
        let asked: Option<Timestamp> =
            text_at(request.value(), "/metadata/creationTimestamp").parse().ok();
        let launched = self
            .live_instances_of(&machine.uid)
            .map(|one| one.launched_at)
            .min()
            .unwrap_or(machine.created);
        let from = machine.created.checked_sub(SKEW).unwrap_or(Timestamp::MIN);
        let until = launched.max(machine.created).checked_add(WINDOW).unwrap_or(Timestamp::MAX);
        match asked {
            Some(asked) if from <= asked && asked <= until => Ok(()),
            _ => Err(format!("Machine {} may ask from {from} to {until}", machine.name)),
        }
    }

    /// Whether the Machine carries this request as its own.
    fn is_bound(&self, machine: &MachineTruth, request: &str) -> bool {
        let Some(server) = &self.server else { return false };
        let Some(kind) = KindRef::find("machine.openshift.io", "machines") else { return false };
        server.objects(kind).iter().any(|stored| {
            let annotations = value_at(stored.value(), "/metadata/annotations");
            let bound = annotations.and_then(|all| all.get(annotation::CLIENT_CERTIFICATE_REQUEST));
            let bound = bound.and_then(serde_json::Value::as_str).unwrap_or_default();
            stored.uid() == machine.uid && bound.ends_with(request)
        })
    }

    fn node_since(&self, name: &str) -> Option<Timestamp> {
        let kind = KindRef::find("", "nodes")?;
        let node = self.server.as_ref()?.get_object(kind, "", name)?;
        text_at(node.value(), "/metadata/creationTimestamp").parse().ok()
    }

    /// A certificate to serve with: for nothing but what the Node's Machine has shown as its own, or what
    /// it served with before.
    fn check_serving(&mut self, request: &Object, asked: Asked) -> Result<(), String> {
        let username = text_at(request.value(), "/spec/username");
        let node = asked.node().unwrap_or_default().to_owned();
        if username != user_of(&node) || asked.organizations != [NODES_GROUP] {
            return Err(format!("{username} asks for {asked:?}"));
        }
        let names = asked.dns.iter().cloned().chain(asked.ip.iter().map(ToString::to_string));
        let names: Vec<String> = names.collect();
        let all = self.machines.values().chain(self.gone.values());
        let mut of_node = all.filter(|machine| machine.node.as_ref() == Some(&node));
        let is_own = of_node.any(|machine| names.iter().all(|it| machine.addresses.contains(it)));
        let served = self.certificates.served.entry(node.clone()).or_default();
        let is_renewal =
            served.iter().any(|before| before.dns == asked.dns && before.ip == asked.ip);
        served.push(asked);
        if names.is_empty() || !(is_own || is_renewal) {
            return Err(format!("{} is not what Machines of node {node} have", names.join(", ")));
        }
        Ok(())
    }
}
