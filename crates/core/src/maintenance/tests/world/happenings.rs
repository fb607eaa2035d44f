//! What happens in the world as time passes, and what do others do in it?

use super::*;

impl World {
    /// Lets time pass; everything that is due happens, and the pool is kept at its size.
    pub(in crate::maintenance::tests) fn tick(&mut self, by: SignedDuration) {
        self.now = self.now.checked_add(by).unwrap();
        let now = self.now;
        let (due, rest): (Vec<_>, Vec<_>) = self.due.drain(..).partition(|(at, _)| *at <= now);
        self.due = rest;
        for (_, happening) in due {
            self.happen(happening);
        }
        self.keep_size();
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Ready(machine) => {
                if self.machines.contains_key(&machine) {
                    self.make_node(&machine);
                }
            }
            Happening::Rebooted(machine) => {
                if let Some(node) = self.nodes.get_mut(&format!("node-{machine}")) {
                    let info = node.status.as_mut().unwrap().node_info.as_mut().unwrap();
                    info.boot_id.push('+');
                }
                self.set_ready(&machine, "True");
            }
            Happening::Stopped(machine) => {
                if let Some(instance) = self.instances.get_mut(&machine) {
                    instance.state = InstanceState::Stopped;
                }
            }
            Happening::Started(machine) => {
                let now = to_seconds(self.now).0;
                if let Some(instance) = self.instances.get_mut(&machine) {
                    instance.state = InstanceState::Running;
                    instance.launched_at = Some(now);
                    self.later(REBOOT, Happening::Rebooted(machine));
                }
            }
            Happening::Gone(machine) => {
                self.machines.remove(&machine);
                self.instances.remove(&machine);
                self.nodes.remove(&format!("node-{machine}"));
                self.pods.retain(|pod| node_name(pod) != format!("node-{machine}"));
            }
            Happening::PodGone(name) => {
                self.pods.retain(|pod| pod.metadata.name.as_ref() != Some(&name));
            }
            Happening::EventClears => {
                if let Some(event) = self.event.as_mut().filter(|_| self.clears) {
                    event.description = format!("[Completed] {}", event.description);
                }
            }
        }
    }

    fn keep_size(&mut self) {
        if self.set.is_none() {
            return;
        }
        let replicas = usize::try_from(self.replicas()).unwrap();
        let alive: Vec<&Machine> = self
            .machines
            .values()
            .filter(|machine| machine.metadata.deletion_timestamp.is_none())
            .collect();
        let surplus = alive.len().saturating_sub(replicas);
        let gone: Vec<String> = first_to_go(&alive, surplus, None, self.now)
            .into_iter()
            .map(|machine| machine.metadata.name.clone().unwrap())
            .collect();
        let missing = replicas.saturating_sub(alive.len());
        for name in gone {
            self.delete_machine(&name);
        }
        for _ in 0..missing {
            let name = format!("a-new{}", self.next_version());
            self.make_machine(&name, false);
        }
    }

    pub(in crate::maintenance::tests) fn delete_machine(&mut self, name: &str) {
        let now = to_seconds(self.now);
        if let Some(machine) = self.machines.get_mut(name)
            && machine.metadata.deletion_timestamp.is_none()
        {
            machine.metadata.deletion_timestamp = Some(now);
            self.later(GOING, Happening::Gone(name.to_owned()));
        }
    }

    /// People, or an autoscaler, change the size of the pool.
    pub(in crate::maintenance::tests) fn scale(&mut self, by: i32) {
        let version = self.next_version();
        if let Some(set) = &mut self.set {
            let replicas = (set.spec.replicas.unwrap() + by).max(1);
            self.wanted = (self.wanted + replicas - set.spec.replicas.unwrap()).max(1);
            set.spec.replicas = Some(replicas);
            set.metadata.resource_version = Some(version);
        }
    }

    pub(in crate::maintenance::tests) fn set_cordon(&mut self, name: &str, is_cordoned: bool) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.spec.get_or_insert_default().unschedulable = is_cordoned.then_some(true);
        }
    }

    pub(in crate::maintenance::tests) fn cancel_event(&mut self) {
        if let Some(event) = &mut self.event {
            event.description = format!("[Canceled] {}", event.description);
        }
    }

    pub(in crate::maintenance::tests) fn delete_maintenance(&mut self) {
        let now = to_seconds(self.now);
        let own = self.own();
        own.metadata.deletion_timestamp.get_or_insert(now);
        if own.metadata.finalizers.is_none() {
            self.maintenance = None;
        }
    }

    pub(super) fn end_pod(&mut self, name: &str) {
        let at = to_seconds(self.now);
        let pod = self.pods.iter_mut().find(|pod| pod.metadata.name.as_deref() == Some(name));
        if let Some(pod) = pod
            && pod.metadata.deletion_timestamp.is_none()
        {
            pod.metadata.deletion_timestamp = Some(at);
            self.later(SignedDuration::from_secs(40), Happening::PodGone(name.to_owned()));
        }
    }

    pub(in crate::maintenance::tests) fn set_ready(&mut self, machine: &str, status: &str) {
        if let Some(node) = self.nodes.get_mut(&format!("node-{machine}")) {
            let conditions = node.status.as_mut().unwrap().conditions.as_mut().unwrap();
            conditions[0].status = status.to_owned();
        }
    }

    pub(super) fn mark_machine(&mut self, name: &str, key: &str, value: Option<&String>) {
        let version = self.next_version();
        let Some(machine) = self.machines.get_mut(name) else { return };
        let annotations = machine.metadata.annotations.get_or_insert_default();
        match value {
            Some(value) => annotations.insert(key.to_owned(), value.clone()),
            None => annotations.remove(key),
        };
        machine.metadata.resource_version = Some(version);
    }
}
