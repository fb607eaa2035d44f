//! What must hold when something is written to the cluster?

use jiff::{SignedDuration, Timestamp};
use machinist_core::cloud::InstanceId;
use machinist_testbed::cloud::model::InstanceState;
use serde_json::Value;

use super::{
    Judge, cluster_api,
    truth::{MachineTruth, condition},
};
use crate::api_server::value_at;
use crate::api_server::{Commit, Object, Subresource, Verb};

fn waits_for_budget(machine: &Object) -> bool {
    let drained = condition(machine.value(), "Drained");
    let words = drained.and_then(|drained| drained.get("message")).and_then(Value::as_str);
    words.is_some_and(|words| words.contains("disruption budget"))
}

/// Whether a client is a life of an operator process.
#[must_use]
pub fn is_operator(client: &str) -> bool {
    client.contains('#')
}

impl Judge {
    /// At each committed write, in order.
    pub fn committed(&mut self, commit: &Commit) {
        let by_operator = is_operator(&commit.origin.client);
        let plural = commit.kind.kind.plural;
        if by_operator && plural != "leases" {
            self.counts.writes += 1;
            self.counts.last_write = format!(
                "{} {:?} {plural}/{}",
                commit.origin.client,
                commit.verb,
                commit.object().name()
            );
        }
        if cluster_api::is_about(commit) {
            return self.cluster_api_changed(commit, by_operator);
        }
        if plural == "nodes" {
            self.cordon_changed(commit, by_operator);
        }
        if plural == "nodes" && by_operator {
            self.check_workload_node(commit);
        }
        match plural {
            "leases" => self.note_renewal(commit),
            "machines" => self.machine_changed(commit, by_operator),
            "machinemaintenances" => self.maintenance_changed(commit, by_operator),
            "maintenancepolicies" => self.policy_changed(commit),
            "namespaces" => self.namespace_changed(commit),
            "machinesets" => self.set_changed(commit, by_operator),
            "events" if by_operator => self.event_told(commit),
            "machinehealthchecks" => self.check_changed(commit, by_operator),
            "certificatesigningrequests" => self.request_changed(commit, by_operator),
            "nodes" if by_operator => self.node_changed(commit),
            "pods" if by_operator => self.pod_changed(commit),
            _ => {}
        }
        if matches!(plural, "machines" | "nodes") {
            let machine = match plural {
                "machines" => Some(commit.object().uid().to_owned()),
                _ => self.machine_of_node(commit.object().name()),
            };
            if let Some(uid) = machine {
                self.note_work(&uid, commit.time);
            }
            self.note_health(commit.time);
        }
    }

    fn event_told(&mut self, commit: &Commit) {
        let reason = value_at(commit.object().value(), "/reason").and_then(Value::as_str);
        if reason == Some(machinist_api::names::event::REQUEST_NOT_APPROVED) {
            self.reached.push("a certificate request is refused");
        }
    }

    fn note_renewal(&mut self, commit: &Commit) {
        let Some(after) = &commit.after else { return };
        let holder = value_at(after.value(), "/spec/holderIdentity").and_then(Value::as_str);
        match holder.filter(|holder| !holder.is_empty()) {
            Some(holder) => {
                let key = (holder.to_owned(), after.name().to_owned());
                self.renewals.insert(key, commit.time);
            }
            None => self.reached.push("a process that stops gives its leases back"),
        }
    }

    fn machine_changed(&mut self, commit: &Commit, by_operator: bool) {
        let now = commit.time;
        let uid = commit.object().uid().to_owned();
        let before = self.machines.get(&uid).cloned();
        let Some(object) = &commit.after else {
            if let Some(machine) = self.machines.remove(&uid) {
                self.check_let_go(&machine, by_operator, now);
                self.gone.insert(uid, machine);
            }
            return;
        };
        let mut after = MachineTruth::read(object, before.as_ref(), now);
        if after.finalizers > 1 {
            let words = format!("our finalizer is there {} times", after.finalizers);
            self.find("S5", &after.name, now, words);
        }
        if let Some(before) = &before {
            if before.finalizers > 0 && after.finalizers == 0 {
                self.check_let_go(before, by_operator, now);
            }
            if by_operator && !before.is_drained && after.is_drained && !after.is_drain_skipped {
                after.pods_left = self.check_drain_complete(&after, now);
            }
            if by_operator && before.deleting_since.is_none() && after.deleting_since.is_some() {
                if self.live_instances_of(&uid).next().is_none() {
                    self.reached.push("a terminated instance's machine is replaced");
                }
                let is_explained = self.check_maintained_deletion(&after, now)
                    || self.check_remediation(&after, &commit.origin.client, now);
                if !is_explained {
                    self.check_deletion(&after, now);
                }
            }
        }
        if by_operator && before.as_ref().is_none_or(|before| before.node != after.node) {
            self.check_node_link(&after, now);
        }
        if by_operator {
            self.check_transition_times(commit, &after.name);
        }
        if waits_for_budget(object) {
            self.reached.push("a drain waits for a disruption budget");
        }
        let meddles = !by_operator;
        if let Some(set) = after.owner.as_ref().and_then(|owner| self.sets.get_mut(owner))
            && meddles
        {
            set.meddled_at = Some(now);
        }
        let is_new = before.is_none();
        self.machines.insert(uid.clone(), after.clone());
        if is_new {
            self.names_used.insert(after.name.clone());
            if by_operator {
                self.check_pool_size(&after, now);
            }
        }
    }

    /// S4, S5: the finalizer goes, or the Machine does.
    fn check_let_go(&mut self, machine: &MachineTruth, by_operator: bool, now: Timestamp) {
        let live: Vec<String> =
            self.live_instances_of(&machine.uid).map(|one| one.id.clone()).collect();
        if !live.is_empty() && by_operator {
            let words = format!("the finalizer goes while {} lives", live.join(", "));
            self.find("S4", &machine.name, now, words);
        }
        if by_operator && machine.deleting_since.is_none() {
            let words = "the finalizer goes from a Machine that is not being deleted";
            self.find("S5", &machine.name, now, words);
        }
    }

    /// S8 at the end of the drain. Returns the pods that may be left: on a Node that nobody reaches,
    /// those whose time is over.
    fn check_drain_complete(&mut self, machine: &MachineTruth, now: Timestamp) -> Vec<String> {
        let Some(id) = machine.instance.clone() else { return Vec::new() };
        let is_unreachable = self.node_of_instance(&id).is_some_and(|node| {
            let ready = condition(node.value(), "Ready");
            ready.and_then(|ready| ready.get("status")).and_then(Value::as_str) == Some("Unknown")
        });
        if is_unreachable {
            self.reached.push("a drain of an unreachable node completes");
        }
        let mut allowed = Vec::new();
        let mut left = Vec::new();
        for pod in self.pods_on_instance(&id) {
            let deleted = pod.metadata.deletion_timestamp.as_ref().map(|time| time.0);
            // Its clock and ours may differ; the pod was told to go in any case.
            if is_unreachable && deleted.is_some() {
                allowed.extend(pod.metadata.uid);
            } else {
                left.extend(pod.metadata.name);
            }
        }
        if !left.is_empty() {
            let words = format!("the drain is called complete with pods {}", left.join(", "));
            self.find("S8", &machine.name, now, words);
        }
        allowed
    }

    pub(super) fn node_of_instance(&self, id: &str) -> Option<crate::api_server::ObjectRef> {
        let server = self.server.as_ref()?;
        let kind = crate::api_server::KindRef::find("", "nodes")?;
        server.objects(kind).into_iter().find(|node| {
            let provider_id = value_at(node.value(), "/spec/providerID").and_then(Value::as_str);
            provider_id.is_some_and(|provider_id| provider_id.ends_with(id))
        })
    }

    fn instance_of_node(&self, name: &str) -> Option<String> {
        let kind = crate::api_server::KindRef::find("", "nodes")?;
        let node = self.server.as_ref()?.get_object(kind, "", name)?;
        let provider_id = value_at(node.value(), "/spec/providerID").and_then(Value::as_str)?;
        InstanceId::from_provider_id(provider_id).map(|id| id.0)
    }

    /// S19: a healthy Machine of a pool is deleted by the operator only where it is surplus.
    fn check_deletion(&mut self, machine: &MachineTruth, now: Timestamp) {
        let is_healthy = self.instances.values().any(|one| {
            one.uid.as_ref() == Some(&machine.uid)
                && one.state == InstanceState::Running
                && one.down_since.is_none()
                && self.must_be_seen(one.launched_at, now)
        });
        let Some(set) = machine.owner.as_ref().and_then(|owner| self.sets.get(owner)) else {
            return;
        };
        let Some(since) = self.seen_since(now) else { return };
        let is_meddled = set.meddled_at.is_some_and(|at| at >= since);
        if !is_healthy || is_meddled || set.deleting_since.is_some() {
            return;
        }
        let (least, _) = set.wanted_since(Some(since));
        let left = self
            .machines
            .values()
            .filter(|one| {
                one.owner == machine.owner && one.deleting_since.is_none() && one.uid != machine.uid
            })
            .count();
        if left < least {
            let words = format!("deleted, and pool {} keeps {left} of {least}", set.name);
            self.find("S19", &machine.name, now, words);
        }
    }

    /// S17: no more than the pool wanted at any time that a view may still show.
    fn check_pool_size(&mut self, machine: &MachineTruth, now: Timestamp) {
        let Some(set) = machine.owner.as_ref().and_then(|owner| self.sets.get(owner)) else {
            return;
        };
        let since = self.seen_since(now);
        let (_, most) = set.wanted_since(since);
        let owned = self
            .machines
            .values()
            .filter(|one| one.owner == machine.owner && one.deleting_since.is_none());
        // A Machine that somebody else deleted a moment ago may still be missed in the view, and one
        // that was made by hand is surplus at once.
        let is_meddled = set.meddled_at.is_some_and(|at| since.is_none_or(|since| at >= since));
        let count = owned.count();
        if count > most && !is_meddled {
            let words = format!("made as number {count} of pool {}, which wants {most}", set.name);
            self.find("S17", &machine.name, now, words);
        }
    }

    /// From when on everything may still be unseen; none means from the beginning.
    pub(super) fn seen_since(&self, now: Timestamp) -> Option<Timestamp> {
        let lag = SignedDuration::try_from(self.allowance.view_lag?).ok()?;
        now.checked_sub(lag).ok()
    }

    /// S26: a Machine is linked to the Node of its own instance.
    fn check_node_link(&mut self, machine: &MachineTruth, now: Timestamp) {
        let (Some(name), Some(server)) = (&machine.node, &self.server) else { return };
        let Some(kind) = crate::api_server::KindRef::find("", "nodes") else { return };
        let Some(node) = server.get_object(kind, "", name) else { return };
        // The link is to a former Node of that name, which a view may still show.
        if machine.node_uid.as_deref().is_some_and(|uid| uid != node.uid()) {
            return;
        }
        let provider_id = value_at(node.value(), "/spec/providerID").and_then(Value::as_str);
        let Some(id) = provider_id.and_then(InstanceId::from_provider_id) else { return };
        let owner = self.instances.get(&id.0).and_then(|one| one.uid.clone());
        if owner.is_some_and(|owner| owner != machine.uid) {
            let words = format!("linked to node {name} of instance {id}, which is another's");
            self.find("S26", &machine.name, now, words);
        }
    }

    /// T3: the time of a condition moves only with what it says. The Machine API counts the reason,
    /// the severity and the message as part of that.
    pub(super) fn check_transition_times(&mut self, commit: &Commit, subject: &str) {
        let (Some(before), Some(after)) = (&commit.before, &commit.after) else { return };
        let list = value_at(after.value(), "/status/conditions").and_then(Value::as_array);
        for new in list.into_iter().flatten() {
            let type_ = new.get("type").and_then(Value::as_str).unwrap_or_default();
            let Some(old) = condition(before.value(), type_) else { continue };
            let same = |field: &str| old.get(field) == new.get(field);
            let says_the_same = ["status", "reason", "severity", "message"].into_iter().all(same);
            if says_the_same && !same("lastTransitionTime") {
                let words = format!("condition {type_} says the same and moved its time");
                self.find("T3", subject, commit.time, words);
            }
        }
    }

    fn set_changed(&mut self, commit: &Commit, by_operator: bool) {
        let uid = commit.object().uid().to_owned();
        match &commit.after {
            Some(object) => {
                self.sets.entry(uid).or_default().update(object, commit.time);
                if by_operator {
                    self.check_resize(commit);
                    self.check_transition_times(commit, "");
                }
            }
            None => {
                // Its Machines may outlive it for a while.
                if let Some(set) = self.sets.get_mut(&uid) {
                    set.deleting_since.get_or_insert(commit.time);
                }
            }
        }
    }

    fn node_changed(&mut self, commit: &Commit) {
        let object = commit.object();
        let provider_id = value_at(object.value(), "/spec/providerID").and_then(Value::as_str);
        let Some(id) = provider_id.and_then(InstanceId::from_provider_id) else { return };
        let now = commit.time;
        let machine = self.machine_of_instance(&id.0).cloned();
        let subject = machine.as_ref().map(|machine| machine.name.clone()).unwrap_or_default();
        if commit.after.is_none() || commit.verb == Verb::Delete {
            let state = self.instances.get(&id.0).map(|one| one.state);
            if matches!(state, Some(InstanceState::Running | InstanceState::Pending)) {
                let words = format!("node {} is deleted while instance {id} runs", object.name());
                self.find("S9", &subject, now, words);
            }
            // The Node of an instance that ended before the Machine recorded it is nobody's.
            let is_its_own = |machine: &MachineTruth| machine.instance.as_deref() == Some(&id.0);
            if machine
                .as_ref()
                .is_some_and(|machine| machine.deleting_since.is_none() && is_its_own(machine))
            {
                let words = format!("node {} is deleted, and its Machine stays", object.name());
                self.find("S26", &subject, now, words);
            }
            return;
        }
        let is_cordoned = |object: Option<&Object>| {
            let flag = object.and_then(|object| value_at(object.value(), "/spec/unschedulable"));
            flag.and_then(Value::as_bool) == Some(true)
        };
        let is_new = is_cordoned(commit.after.as_deref()) && !is_cordoned(commit.before.as_deref());
        if is_new {
            self.check_drain_allowed(machine.as_ref(), object.name(), now);
            if let Some(machine) = machine.filter(|one| one.deleting_since.is_none()) {
                self.check_taken_out(&machine, "its node is cordoned", now);
            }
        }
    }

    fn pod_changed(&mut self, commit: &Commit) {
        let object = commit.object();
        let now = commit.time;
        let on = value_at(object.value(), "/spec/nodeName").and_then(Value::as_str);
        let Some(node) = on.map(str::to_owned) else { return };
        // By the instance behind the Node: its name may be another's by now.
        let id = self.instance_of_node(&node);
        let machine = id.and_then(|id| self.machine_of_instance(&id).cloned());
        if commit.subresource != Subresource::Eviction {
            let is_deleted = commit.after.is_none() || commit.verb == Verb::Delete;
            let is_forced = machine.as_ref().is_some_and(|machine| self.may_force(machine, now));
            if is_deleted && !is_forced {
                let words = format!("pod {} is deleted without an eviction", object.name());
                self.find("S11", "", now, words);
            }
            return;
        }
        self.check_drain_allowed(machine.as_ref(), &node, now);
    }

    /// S14, and S6's sibling: only the Node of a Machine being deleted is drained, or one that a
    /// maintenance drains.
    fn check_drain_allowed(&mut self, machine: Option<&MachineTruth>, node: &str, now: Timestamp) {
        let Some(machine) = machine else { return };
        let is_going = machine.deleting_since.is_some();
        if machine.pre_drain_hooks > 0 && is_going {
            let words = format!("node {node} is drained despite a preDrain hook");
            self.find("S14", &machine.name, now, words);
        }
        if !is_going && !self.is_drained_for_maintenance(machine) {
            let words = format!("node {node} is drained, and its Machine is not being deleted");
            self.find("S26", &machine.name, now, words);
        }
    }
}
