//! What must hold when somebody changes the cloud?

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use machinist_api::names::{lease, tag};
use machinist_core::drain::decide::must_go;
use machinist_testbed::cloud::model::{InstanceFacts, InstanceState, Outcome, Request};

use super::{Judge, truth::MachineTruth};

/// A call, as far as the promises care.
#[derive(Clone, Debug)]
pub struct CloudCall {
    /// The life of the process that calls.
    pub tag: String,
    pub action: &'static str,
    pub time: Timestamp,
    /// Of a launch: for whom, and by which token.
    machine_uid: Option<String>,
    machine_name: Option<String>,
    token: Option<String>,
    /// Of any other call: which instances.
    ids: Vec<String>,
    /// Of tagging: which tags.
    tags: Vec<(String, String)>,
}

impl CloudCall {
    #[must_use]
    pub fn of(caller: &str, request: &Request, time: Timestamp) -> Self {
        let mut call = Self {
            tag: caller.to_owned(),
            action: request.action(),
            time,
            machine_uid: None,
            machine_name: None,
            token: None,
            ids: Vec::new(),
            tags: Vec::new(),
        };
        match request {
            Request::RunInstances(launch) => {
                let tags = launch.tag_specifications.first().map(|of| of.tags.as_slice());
                let value = |key: &str| {
                    let found = tags.unwrap_or_default().iter().find(|one| one.key == key);
                    found.map(|one| one.value.clone())
                };
                call.machine_uid = value(tag::MACHINE_UID);
                call.machine_name = value(tag::NAME);
                call.token = launch.client_token.clone();
            }
            Request::TerminateInstances(on)
            | Request::StopInstances(on)
            | Request::StartInstances(on)
            | Request::RebootInstances(on) => call.ids = on.instance_ids.clone(),
            Request::ModifyInstanceEventStartTime(on) => call.ids.push(on.instance_id.clone()),
            Request::ModifyInstanceMaintenanceOptions(on) => call.ids.push(on.instance_id.clone()),
            Request::CreateTags(on) => {
                call.ids = on.resources.clone();
                call.tags =
                    on.tags.iter().map(|one| (one.key.clone(), one.value.clone())).collect();
            }
            _ => {}
        }
        call
    }

    /// The instances that it is about; none of a launch.
    #[must_use]
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// Whom it is about: a Machine's name or an instance.
    #[must_use]
    pub fn target(&self) -> String {
        self.machine_name.clone().or_else(|| self.ids.first().cloned()).unwrap_or_default()
    }
}

impl fmt::Display for CloudCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.action)?;
        if let Some(token) = &self.token {
            let end = token.rsplit('-').next().unwrap_or_default();
            write!(formatter, " attempt {end}")?;
        }
        for id in &self.ids {
            write!(formatter, " {id}")?;
        }
        Ok(())
    }
}

impl Judge {
    /// At the moment at which a process sends a call that changes the cloud.
    pub fn invoked(&mut self, call: &CloudCall, identity: &str) {
        let now = call.time;
        self.check_leases(call, identity, now);
        if call.action == "RunInstances" {
            let uid = call.machine_uid.clone().unwrap_or_default();
            *self.counts.launches_asked.entry(uid).or_default() += 1;
            self.check_launch_allowed(call, now);
        }
        self.check_asked(call, now);
    }

    /// S25: whoever changes the cloud has renewed every lease within its deadline.
    fn check_leases(&mut self, call: &CloudCall, identity: &str, now: Timestamp) {
        let deadline = SignedDuration::try_from(self.allowance.renew_deadline).unwrap_or_default();
        for name in lease::ALL {
            let renewed = self.renewals.get(&(identity.to_owned(), name.to_owned()));
            let is_held = renewed.is_some_and(|at| now.duration_since(*at) <= deadline);
            if !is_held {
                let words = format!(
                    "{} sends {call} without the lease {name}, which it last renewed {}",
                    call.tag,
                    renewed.map_or_else(|| "never".to_owned(), ToString::to_string)
                );
                let subject = self.subject_of(call);
                self.find("S25", &subject, now, words);
                return;
            }
        }
    }

    /// S2 and S3: for whom a launch is sent. A deletion counts that was stored before the caller
    /// last read the Machine: nobody can know what is stored after that.
    fn check_launch_allowed(&mut self, call: &CloudCall, now: Timestamp) {
        let name = call.machine_name.clone().unwrap_or_default();
        let uid = call.machine_uid.clone().unwrap_or_default();
        let read_at = self.fresh_reads.get(&(call.tag.clone(), name.clone())).copied();
        let known_until = read_at.unwrap_or(now);
        let Some(machine) = self.machines.get(&uid).cloned() else {
            let ended = self.gone.get(&uid).and_then(|machine| machine.deleting_since);
            if ended.is_none_or(|ended| ended < known_until) {
                self.find("S2", &name, now, "a launch is sent for a Machine that does not exist");
            }
            return;
        };
        if machine.deleting_since.is_some_and(|since| since < known_until) {
            let since = machine.deleting_since.map(|at| at.to_string()).unwrap_or_default();
            let words =
                format!("a launch is sent for a Machine that is being deleted since {since}");
            self.find("S2", &name, now, words);
        }
        if machine.finalizers == 0 {
            self.find("S3", &name, now, "a launch is sent for a Machine without our finalizer");
        }
        let set = machine.owner.as_ref().and_then(|owner| self.sets.get(owner));
        if let Some(since) = set.and_then(|set| set.deleting_since)
            && self.must_be_seen(since, now)
        {
            let words = format!("a launch is sent though its pool is being deleted since {since}");
            self.find("S2", &name, now, words);
        }
        self.check_not_paused(&machine, call, now);
    }

    /// When a call has had its effect, or was refused.
    pub fn called(&mut self, call: &CloudCall, outcome: &Outcome, after: &[InstanceFacts]) {
        let now = call.time;
        let is_new = |facts: &InstanceFacts, judge: &Self| !judge.instances.contains_key(&facts.id);
        let launched: Vec<String> = after
            .iter()
            .filter(|facts| is_new(facts, self))
            .map(|facts| facts.id.clone())
            .collect();
        if outcome.result.is_ok() || !launched.is_empty() {
            self.counts.cloud_changes += 1;
            self.counts.last_change = format!("{} {call}", call.tag);
        }
        if call.action == "RunInstances" && outcome.result.is_ok() && launched.is_empty() {
            self.reached.push("a launch whose answer was lost is healed by its token");
        }
        if call.action == "StartInstances" && outcome.result.is_ok() {
            self.reached.push("a stopped instance is started again");
        }
        if call.action == "ModifyInstanceEventStartTime" && outcome.result.is_ok() {
            self.reached.push("the provider's event is moved");
        }
        if call.action == "TerminateInstances" && outcome.result.is_ok() {
            for id in &call.ids {
                self.check_termination(call, id, now);
            }
        }
        if call.action == "CreateTags" && outcome.result.is_ok() {
            self.check_tags(call, now);
        }
        self.instances_are(after, now);
        for id in launched {
            self.check_launched(call, &id, now);
        }
    }

    /// S1, S1b: a new instance.
    fn check_launched(&mut self, call: &CloudCall, id: &str, now: Timestamp) {
        let subject = call.machine_name.clone().unwrap_or_default();
        let uid = call.machine_uid.clone().unwrap_or_default();
        let twin = self
            .instances
            .values()
            .find(|one| one.id != id && one.token.is_some() && one.token == call.token);
        if let Some(twin) = twin {
            let words = format!("instances {} and {id} have the same client token", twin.id);
            self.find("S1b", &subject, now, words);
        }
        if let Some(instance) = self.instances.get_mut(id) {
            instance.token.clone_from(&call.token);
            instance.launched_at = now;
        }
        let live: Vec<String> = self.live_instances_of(&uid).map(|one| one.id.clone()).collect();
        if live.len() > 1 {
            let words = format!("live instances of one Machine: {}", live.join(", "));
            self.find("S1", &subject, now, words);
        }
    }

    fn check_termination(&mut self, call: &CloudCall, id: &str, now: Timestamp) {
        *self.counts.terminations_asked.entry(id.to_owned()).or_default() += 1;
        let Some(instance) = self.instances.get(id).cloned() else { return };
        // Asked for again: it is on its way out already.
        if matches!(instance.state, InstanceState::ShuttingDown | InstanceState::Terminated) {
            return;
        }
        let subject = self.subject_of(call);
        let Some(uid) = instance.uid.clone() else {
            self.find("S6", &subject, now, format!("instance {id} is nobody's and is terminated"));
            return;
        };
        let Some(machine) = self.machines.get(&uid).cloned() else {
            let age = now.duration_since(instance.launched_at);
            let is_orphan = self.allowance.orphan_age.is_some_and(|least| {
                age >= SignedDuration::try_from(least).unwrap_or(SignedDuration::MAX)
            });
            if !is_orphan {
                let words = format!("instance {id} of a Machine that is gone is terminated");
                self.find("S6", &subject, now, words);
            }
            return;
        };
        if machine.deleting_since.is_none() {
            let words =
                format!("instance {id} is terminated, and its Machine is not being deleted");
            self.find("S6", &subject, now, words);
        }
        if machine.pre_terminate_hooks > 0 {
            let words = format!("instance {id} is terminated despite a preTerminate hook");
            self.find("S14", &subject, now, words);
        }
        self.check_not_paused(&machine, call, now);
        self.check_drained(&machine, id, now);
    }

    /// S8 at the termination: nothing is left but what the completed drain could leave.
    fn check_drained(&mut self, machine: &MachineTruth, id: &str, now: Timestamp) {
        if machine.is_drain_excluded || machine.is_drain_skipped {
            return;
        }
        let left: Vec<String> = self
            .pods_on_instance(id)
            .into_iter()
            .filter(|pod| {
                let uid = pod.metadata.uid.as_ref();
                !uid.is_some_and(|uid| machine.pods_left.contains(uid))
            })
            .filter(|pod| {
                let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
                !node.is_some_and(|node| self.is_just_uncordoned(node, now))
            })
            .filter_map(|pod| pod.metadata.name)
            .collect();
        if !left.is_empty() {
            let words = format!("instance {id} is terminated under pods {}", left.join(", "));
            self.find("S8", &machine.name, now, words);
        }
    }

    /// The pods that must go before an instance may.
    pub(super) fn pods_on_instance(&self, id: &str) -> Vec<Pod> {
        let Some(server) = &self.server else { return Vec::new() };
        let nodes = server.list::<k8s_openapi::api::core::v1::Node>();
        let node = nodes.into_iter().find(|node| {
            let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
            provider_id.is_some_and(|provider_id| provider_id.ends_with(id))
        });
        let Some(name) = node.and_then(|node| node.metadata.name) else { return Vec::new() };
        let pods = server.list::<Pod>().into_iter();
        pods.filter(|pod| {
            let on = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            on == Some(name.as_str()) && must_go(pod)
        })
        .collect()
    }

    /// S27: whose an instance is is not overwritten.
    fn check_tags(&mut self, call: &CloudCall, now: Timestamp) {
        for (key, value) in &call.tags {
            if key != tag::MACHINE_UID {
                continue;
            }
            for id in &call.ids {
                let owner = self.instances.get(id).and_then(|one| one.uid.clone());
                if owner.as_ref().is_some_and(|owner| owner != value) {
                    let words = format!("instance {id} is given to Machine uid {value}");
                    let subject = self.subject_of(call);
                    self.find("S27", &subject, now, words);
                }
            }
        }
    }

    /// S23: long enough ago to be seen, another API took the Machine.
    fn check_not_paused(&mut self, machine: &MachineTruth, call: &CloudCall, now: Timestamp) {
        if let Some(since) = machine.paused_since
            && self.must_be_seen(since, now)
        {
            let words = format!("{call} is sent for a Machine that another API owns since {since}");
            self.find("S23", &machine.name, now, words);
        }
    }

    fn subject_of(&self, call: &CloudCall) -> String {
        let of_instance = || {
            let id = call.ids.first()?;
            let uid = self.instances.get(id)?.uid.as_ref()?;
            let machine = self.machines.get(uid).or_else(|| self.gone.get(uid))?;
            Some(machine.name.clone())
        };
        call.machine_name.clone().or_else(of_instance).unwrap_or_default()
    }

    /// The Machine that a call is about, for the timeline.
    #[must_use]
    pub fn machine_of_call(&self, call: &CloudCall) -> String {
        self.subject_of(call)
    }
}
