//! What holds whatever is called, and whenever?

use proptest::prelude::*;

use super::*;

/// One thing that somebody does, with small numbers that pick instances and tokens.
#[derive(Debug, Clone)]
enum Step {
    Launch { token: Option<u8>, zone: u8, count: i64 },
    Terminate(u8),
    Stop(u8),
    Start(u8),
    Reboot(u8),
    Impair(u8),
    Event(u8, u8),
    Faults(u8),
    Balance(u8),
    Vanish(u8),
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (proptest::option::of(0_u8..4), 0_u8..3, 1_i64..4)
            .prop_map(|(token, zone, count)| Step::Launch { token, zone, count }),
        2 => any::<u8>().prop_map(Step::Terminate),
        2 => any::<u8>().prop_map(Step::Stop),
        2 => any::<u8>().prop_map(Step::Start),
        1 => any::<u8>().prop_map(Step::Reboot),
        1 => any::<u8>().prop_map(Step::Impair),
        1 => (any::<u8>(), 0_u8..5).prop_map(|(instance, code)| Step::Event(instance, code)),
        1 => (0_u8..10).prop_map(Step::Faults),
        1 => any::<u8>().prop_map(Step::Balance),
        1 => any::<u8>().prop_map(Step::Vanish),
        4 => (0_i64..90_000).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..60)
}

fn pick(bench: &Bench, number: u8) -> String {
    let count = bench.cloud.instances.len().max(1);
    bench
        .cloud
        .instances
        .keys()
        .nth(usize::from(number) % count)
        .cloned()
        .unwrap_or_else(|| "i-00000000000000000".into())
}

fn apply(bench: &mut Bench, step: &Step) {
    match step {
        Step::Launch { token, zone, count } => {
            let world = bench.world();
            let zone = &world.availability_zones[usize::from(*zone)];
            let launch = RunInstances {
                client_token: token.map(|token| format!("token-{token}")),
                subnet_id: world.private_subnets.get(zone).cloned(),
                max_count: *count,
                ..bench.launch_parameters()
            };
            bench.try_launch(launch).ok();
        }
        Step::Terminate(number) => {
            let id = pick(bench, *number);
            bench.call(Request::TerminateInstances(ids(&[&id])));
        }
        Step::Stop(number) => {
            let id = pick(bench, *number);
            bench.call(Request::StopInstances(ids(&[&id])));
        }
        Step::Start(number) => {
            let id = pick(bench, *number);
            bench.call(Request::StartInstances(ids(&[&id])));
        }
        Step::Reboot(number) => {
            let id = pick(bench, *number);
            bench.call(Request::RebootInstances(ids(&[&id])));
        }
        Step::Impair(number) => {
            let id = pick(bench, *number);
            bench.cloud.console_impair(bench.now, &id, &Impair::default()).ok();
        }
        Step::Event(number, code) => {
            let codes = [
                EventCode::InstanceStop,
                EventCode::InstanceRetirement,
                EventCode::InstanceReboot,
                EventCode::SystemReboot,
                EventCode::SystemMaintenance,
            ];
            let event = NewEvent {
                instance_id: pick(bench, *number),
                code: codes[usize::from(*code)],
                description: None,
                not_before: time::later(bench.now, SignedDuration::from_secs(20)),
                not_after: None,
                not_before_deadline: None,
            };
            bench.cloud.schedule_event(bench.now, event).ok();
        }
        Step::Faults(kind) => {
            let json = match kind {
                0 => {
                    r#"{"errors": [{"action": "*", "code": "InternalError", "probability": 0.3, "effect": true}]}"#
                }
                1 => r#"{"timeouts": [{"action": "*", "probability": 0.3}]}"#,
                2 => r#"{"launchVisibility": {"lag": "10s", "probability": 0.5}}"#,
                3 => r#"{"throttling": true}"#,
                4 => r#"{"omissions": {"byId": 0.2, "byFilter": 0.2}}"#,
                5 => r#"{"staleReads": {"lag": "10s", "probability": 0.3}}"#,
                6 => {
                    r#"{"launchFates": [{"kind": "dies", "probability": 0.3},
                        {"kind": "stuck", "probability": 0.3}], "launchTimeSkew": "5m"}"#
                }
                7 => r#"{"lingeringTerminations": [{"for": "20s", "probability": 0.5}]}"#,
                8 => r#"{"pages": {"short": true, "shuffled": true}}"#,
                _ => {
                    bench.cloud.clear_faults();
                    return;
                }
            };
            bench
                .cloud
                .add_faults(bench.now, serde_json::from_str(json).expect("faults"))
                .expect("faults");
        }
        Step::Balance(number) => {
            let load_balancer_name = "api".to_owned();
            let create = CreateClassicLoadBalancer {
                load_balancer_name: load_balancer_name.clone(),
                listeners: vec![ClassicListener::default()],
                availability_zones: vec!["us-east-1a".into()],
                ..CreateClassicLoadBalancer::default()
            };
            bench.call(Request::Elb(ElbRequest::CreateLoadBalancer(create)));
            let instances = vec![ClassicInstance { instance_id: pick(bench, *number) }];
            let register = ClassicInstances { load_balancer_name, instances };
            bench.call(Request::Elb(ElbRequest::RegisterInstancesWithLoadBalancer(register)));
        }
        Step::Vanish(number) => {
            let id = pick(bench, *number);
            bench.cloud.console_vanish(bench.now, &id).ok();
        }
        Step::Wait(milliseconds) => bench.wait(SignedDuration::from_millis(*milliseconds)),
    }
}

fn check_invariants(bench: &Bench) {
    let mut addresses = BTreeSet::new();
    let mut tokens: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for instance in bench.cloud.instances.values() {
        for interface in &instance.interfaces {
            for address in &interface.private_addresses {
                assert!(addresses.insert(*address), "{address} is given out twice");
            }
        }
        assert_eq!(
            instance.state == InstanceState::Terminated,
            instance.terminated_at.is_some(),
            "{}",
            instance.id
        );
        assert_eq!(instance.state == InstanceState::Terminated, instance.interfaces.is_empty());
        let is_settled = matches!(
            instance.state,
            InstanceState::Running | InstanceState::Stopped | InstanceState::Terminated
        );
        assert_eq!(instance.transition_due.is_none(), is_settled, "{}", instance.id);
        if let (Some(token), false) =
            (&instance.parameters.client_token, instance.state.is_ending())
        {
            let key = (token.clone(), instance.availability_zone.clone());
            tokens.entry(key).or_default().insert(instance.reservation_id.clone());
        }
    }
    for (token, reservations) in tokens {
        assert_eq!(reservations.len(), 1, "{token:?} launched twice");
    }
    let used: usize = bench.cloud.world().subnets.values().map(|subnet| subnet.used.len()).sum();
    assert_eq!(used, addresses.len(), "addresses leak");
    for balancer in bench.cloud.load_balancer_facts(bench.now).classic {
        for target in balancer.instances {
            let is_known = bench.cloud.instances.contains_key(&target.id);
            assert!(is_known, "{} is gone and still registered", target.id);
        }
    }
    if let Some(next) = bench.cloud.next_transition() {
        assert!(next > bench.now, "something due was left undone");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_called_the_cloud_stays_sound(steps in steps()) {
        let mut bench = Bench::new();
        let mut generations: BTreeMap<String, u64> = BTreeMap::new();
        let mut ever = BTreeSet::new();
        for step in &steps {
            apply(&mut bench, step);
            bench.cloud.advance(bench.now);
            check_invariants(&bench);
            for facts in bench.cloud.snapshot() {
                ever.insert(facts.id.clone());
                let last = generations.insert(facts.id, facts.boot_generation).unwrap_or(0);
                prop_assert!(facts.boot_generation >= last);
            }
        }
        let ledger = bench.cloud.ledger(&LedgerQuery::default());
        let recorded: BTreeSet<String> =
            ledger.instances.into_iter().map(|instance| instance.id).collect();
        prop_assert_eq!(recorded, ever);
    }

    #[test]
    fn the_same_seed_and_steps_give_the_same_cloud(steps in steps()) {
        let run = || {
            let mut bench = Bench::new();
            for step in &steps {
                apply(&mut bench, step);
            }
            let ledger = bench.cloud.ledger(&LedgerQuery::default());
            (
                serde_json::to_string(&ledger).expect("json"),
                serde_json::to_string(&bench.cloud.snapshot()).expect("json"),
            )
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn advancing_at_once_or_step_by_step_ends_the_same(steps in steps()) {
        let mut at_once = Bench::new();
        for step in &steps {
            apply(&mut at_once, step);
        }
        let mut stepwise = Bench { cloud: at_once.cloud.clone(), now: at_once.now };
        let end = time::later(at_once.now, SignedDuration::from_hours(48));
        at_once.cloud.advance(end);
        while let Some(next) = stepwise.cloud.next_transition().filter(|next| *next <= end) {
            stepwise.cloud.advance(next);
        }
        prop_assert_eq!(at_once.cloud.snapshot(), stepwise.cloud.snapshot());
    }
}
