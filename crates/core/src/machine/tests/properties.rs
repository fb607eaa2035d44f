//! What holds for every Machine and every cloud.

use super::*;

fn any_state() -> impl Strategy<Value = InstanceState> {
    prop_oneof![
        Just(InstanceState::Pending),
        Just(InstanceState::Running),
        Just(InstanceState::Stopping),
        Just(InstanceState::Stopped),
        Just(InstanceState::ShuttingDown),
        Just(InstanceState::Terminated),
    ]
}

fn any_machine() -> impl Strategy<Value = Machine> {
    let launch = prop_oneof![
        Just(json!({})),
        (1..4_u32, 0..200_i64).prop_map(|(attempt, ago)| {
            json!({"status": {"providerStatus": {"launch": intent(attempt, seconds_ago(ago))}}})
        }),
        Just(recorded("running")),
    ];
    (launch, any::<bool>(), any::<bool>()).prop_map(|(overrides, goes, has_finalizer)| {
        let mut machine = if goes { deleting(overrides) } else { machine(overrides) };
        if !has_finalizer {
            machine.metadata.finalizers = None;
        }
        machine
    })
}

proptest! {
    /// Publishing a decision and deciding again on the same facts changes nothing more.
    #[test]
    fn a_published_status_is_a_fixpoint(
        mut machine in any_machine(),
        states in proptest::collection::vec(any_state(), 0..2),
    ) {
        let instances: Vec<_> = states.into_iter().map(instance).collect();
        let first = decided(&machine, instances.clone());
        machine.status = Some(first.status.clone());
        let second = decided(&machine, instances);
        prop_assert_eq!(first.status, second.status);
    }

    /// The order of what the cloud lists decides nothing (Rule 2).
    #[test]
    fn the_order_of_instances_does_not_matter(
        machine in any_machine(),
        states in proptest::collection::vec(any_state(), 0..4),
    ) {
        let mut instances: Vec<_> = states
            .into_iter()
            .enumerate()
            .map(|(index, state)| {
                let mut one = instance(state);
                one.id = InstanceId(format!("i-{}", index + 1));
                one
            })
            .collect();
        let forward = decided(&machine, instances.clone());
        instances.reverse();
        let backward = decided(&machine, instances);
        prop_assert_eq!(forward, backward);
    }

    /// S3, S4, S6: no launch without a durable finalizer or for a deleting Machine, no terminate for
    /// a living one, no release while anything of the uid is live.
    #[test]
    fn effects_keep_their_preconditions(
        machine in any_machine(),
        states in proptest::collection::vec(any_state(), 0..3),
    ) {
        let instances: Vec<_> = states
            .into_iter()
            .enumerate()
            .map(|(index, state)| {
                let mut one = instance(state);
                one.id = InstanceId(format!("i-{}", index + 1));
                one
            })
            .collect();
        let decision = decided(&machine, instances.clone());
        let goes = machine.metadata.deletion_timestamp.is_some();
        let has_finalizer = machine.metadata.finalizers.is_some();
        let live = instances.iter().any(|one| one.state.is_live());
        for action in &decision.actions {
            match action {
                Action::Launch { .. } => prop_assert!(!goes && has_finalizer && !live),
                Action::Terminate { .. } | Action::Detach { .. } => {
                    prop_assert!(goes && has_finalizer);
                }
                Action::DeleteNode { .. } | Action::RemoveFinalizer | Action::ReleaseHosts => {
                    prop_assert!(goes && !live);
                }
                Action::Start { .. } | Action::Attach { .. } => prop_assert!(!goes && live),
                Action::Replace => prop_assert!(!goes),
                Action::AddFinalizer => prop_assert!(!has_finalizer && !goes),
                Action::StoreIntent(_) | Action::TagInstance { .. } | Action::ChangeMetadata(_) => {}
            }
        }
        let effects = decision
            .actions
            .iter()
            .filter(|action| {
                matches!(
                    action,
                    Action::Launch { .. } | Action::Terminate { .. } | Action::Start { .. }
                )
            })
            .count();
        prop_assert!(effects <= 1, "one effect in a pass");
    }
}
