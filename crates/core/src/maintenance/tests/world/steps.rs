//! What does a step do to the world?

use super::*;

impl World {
    pub(super) fn survives(&mut self) -> bool {
        self.writes += 1;
        self.dies_before != Some(self.writes)
    }

    pub(super) fn publish(&mut self, status: MachineMaintenanceStatus) {
        let version = self.next_version();
        if let Some(maintenance) = &mut self.maintenance
            && maintenance.status.as_ref() != Some(&status)
        {
            maintenance.status = Some(status);
            maintenance.metadata.resource_version = Some(version);
        }
    }

    /// Carries a step out; false where the object is not as it was decided on.
    pub(super) fn carry_out(&mut self, step: &Step) -> bool {
        let version = self.next_version();
        match step {
            Step::AddFinalizer => {
                self.own().metadata.finalizers = Some(vec![finalizer::MAINTENANCE.to_owned()]);
            }
            Step::RemoveFinalizer => {
                self.own().metadata.finalizers = None;
                if self.own().metadata.deletion_timestamp.is_some() {
                    self.maintenance = None;
                }
            }
            Step::MarkScheduled => self.own().spec.maintenancescheduled = true,
            Step::SetSpec(spec) => self.own().spec = (**spec).clone(),
            Step::ClearApproval => {
                self.own()
                    .metadata
                    .annotations
                    .get_or_insert_default()
                    .remove(annotation::MAINTENANCE_APPROVED);
            }
            Step::ResizePool { resource_version, replicas, mark, .. } => {
                assert!(*replicas >= self.wanted, "the pool gets smaller than people want it");
                let set = self.set.as_mut().unwrap();
                if set.metadata.resource_version.as_ref() != Some(resource_version) {
                    return false;
                }
                set.spec.replicas = Some(*replicas);
                let annotations = set.metadata.annotations.get_or_insert_default();
                match mark {
                    Some(mark) => annotations.insert(annotation::SURGE.to_owned(), mark.clone()),
                    None => annotations.remove(annotation::SURGE),
                };
                set.metadata.resource_version = Some(version);
            }
            Step::CreateMachine(machine) => {
                let name = machine.metadata.name.clone().unwrap();
                if !self.machines.contains_key(&name) {
                    self.make_machine(&name, false);
                    let made = self.machines.get_mut(&name).unwrap();
                    made.metadata.annotations.clone_from(&machine.metadata.annotations);
                }
            }
            Step::ProtectNode(node) => {
                let node = self.nodes.get_mut(&node.name).unwrap();
                annotate(node, annotation::SCALE_DOWN_DISABLED, Some("true"));
                annotate(node, annotation::PROTECTED_FOR, Some(UID));
            }
            Step::UnprotectNode(node) => {
                let node = self.nodes.get_mut(&node.name).unwrap();
                annotate(node, annotation::SCALE_DOWN_DISABLED, None);
                annotate(node, annotation::PROTECTED_FOR, None);
            }
            Step::Cordon(node) => {
                let node = self.nodes.get_mut(&node.name).unwrap();
                node.spec.get_or_insert_default().unschedulable = Some(true);
                annotate(node, annotation::CORDONED_FOR, Some(UID));
            }
            Step::Uncordon(node) => {
                let node = self.nodes.get_mut(&node.name).unwrap();
                assert!(is_annotated(node, annotation::CORDONED_FOR), "the cordon is not ours");
                node.spec.get_or_insert_default().unschedulable = None;
                annotate(node, annotation::CORDONED_FOR, None);
            }
            Step::DisownCordon(node) => {
                annotate(self.nodes.get_mut(&node.name).unwrap(), annotation::CORDONED_FOR, None);
            }
            Step::Evict(drain::Action::Evict { pod, .. }) => {
                if !self.stuck_pods.contains(pod) {
                    self.end_pod(pod);
                }
            }
            Step::Evict(drain::Action::Cordon { .. }) => panic!("the cordon is a step of its own"),
            Step::DeletePod { pod, .. } => self.end_pod(pod),
            Step::AddOutOfServiceTaint(node) => {
                let node = self.nodes.get_mut(&node.name).unwrap();
                node.spec.get_or_insert_default().taints.get_or_insert_default().push(Taint {
                    key: taint::OUT_OF_SERVICE.to_owned(),
                    effect: "NoExecute".to_owned(),
                    ..Taint::default()
                });
                self.pods.clear();
            }
            Step::RemoveOutOfServiceTaint(node) => {
                let node = self.nodes.get_mut(&node.name).unwrap();
                node.spec.get_or_insert_default().taints = None;
            }
            Step::Hold { machine, value } => {
                self.mark_machine(&machine.name, annotation::HOLD, Some(value))
            }
            Step::ReleaseHold(machine) => self.mark_machine(&machine.name, annotation::HOLD, None),
            Step::MarkForDeletion { machine, value } => {
                self.mark_machine(&machine.name, annotation::DELETE_MACHINE, Some(value));
            }
            Step::UnmarkForDeletion(machine) => {
                self.mark_machine(&machine.name, annotation::DELETE_MACHINE, None);
            }
            Step::ClearRequest(machine) => {
                self.mark_machine(&machine.name, annotation::MAINTENANCE_REQUESTED, None);
            }
            Step::DeleteMachine(machine) => self.delete_machine(&machine.name),
            Step::EnableMigration(_) => {
                self.traits.reboot_migration = crate::cloud::RebootMigration::Enabled;
            }
            Step::Reboot(_) => {
                if self.reboots {
                    self.set_ready(TARGET, "False");
                    self.later(REBOOT, Happening::Rebooted(TARGET.to_owned()));
                    self.later(EVENT_CLEARS, Happening::EventClears);
                }
            }
            Step::Stop(_) => {
                let instance = self.instances.get_mut(TARGET).unwrap();
                if instance.state == InstanceState::Running {
                    instance.state = InstanceState::Stopping;
                    self.set_ready(TARGET, "Unknown");
                    self.later(STOPPING, Happening::Stopped(TARGET.to_owned()));
                }
            }
            Step::Start(_) => {
                let instance = self.instances.get_mut(TARGET).unwrap();
                if instance.state == InstanceState::Stopped {
                    instance.state = InstanceState::Pending;
                    self.later(REBOOT, Happening::Started(TARGET.to_owned()));
                    self.later(EVENT_CLEARS, Happening::EventClears);
                }
            }
            Step::MoveEvent { to, .. } => {
                if let Some(event) = &mut self.event {
                    event.not_before = Some(*to);
                }
            }
        }
        true
    }
}
