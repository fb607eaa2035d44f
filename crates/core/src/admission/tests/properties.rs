//! What holds for every object and whatever the bytes are. `PROPTEST_CASES` makes them run for longer.

use proptest::{collection, option, prelude::*, sample::select};

use super::*;

/// Names that mean something somewhere, so that what is generated meets the rules.
const NAMES: &str = "metadata labels finalizers deletionTimestamp spec selector matchLabels template replicas \
    deletePolicy lifecycleHooks preDrain providerSpec value kind ami id arn filters \
    instanceType placement region tenancy host affinity dedicatedHost allocationStrategy \
    dynamicHostAllocation tags name blockDevices ebs throughputMib volumeType marketType \
    spotMarketOptions capacityReservationId cpuOptions confidentialCompute userDataSecret \
    credentialsSecret subnet iamInstanceProfile placementGroupPartition";

fn any_name() -> impl Strategy<Value = String> {
    select(NAMES.split(' ').collect::<Vec<_>>()).prop_map(str::to_owned)
}

const WORDS: &[&str] = &[
    "",
    "x",
    "AWSMachineProviderConfig",
    "host",
    "Dynamic",
    "UserProvided",
    "AnyAvailable",
    "DedicatedHost",
    "Spot",
    "CapacityBlock",
    "gp3",
    "h-01234567",
    "us-east-1",
    "cr-0123456789abcdef0",
];

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0..2000_i64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        let key = prop_oneof![9 => any_name(), 1 => any::<String>()];
        prop_oneof![
            collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            collection::btree_map(key, inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A whole object in which some things were replaced by anything.
fn any_object() -> impl Strategy<Value = (Kind, Value)> {
    let overrides = collection::btree_map(any_name(), any_value(), 0..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()));
    let kind = select(&[Kind::Machine, Kind::MachineSet][..]);
    prop_oneof![
        4 => (kind.clone(), overrides, any::<bool>()).prop_map(|(kind, overrides, inside)| {
            let (spec, outer) = match inside {
                true => (with(whole_spec(), &overrides), json!({})),
                false => (whole_spec(), overrides),
            };
            (kind, with(object_of(kind, spec), &outer))
        }),
        1 => (kind, any_value()),
    ]
}

fn object_of(kind: Kind, spec: Value) -> Value {
    match kind {
        Kind::Machine => machine(spec),
        Kind::MachineSet => machine_set(spec),
    }
}

/// A providerSpec that is right, with any of its defaults left out.
fn any_right_spec() -> impl Strategy<Value = Value> {
    let left_out = collection::btree_set(
        select(&["instanceType", "userDataSecret", "credentialsSecret", "placement", "subnet"][..]),
        0..5,
    );
    let market = select(vec![
        json!({}),
        json!({"marketType": "Spot"}),
        json!({"spotMarketOptions": {"maxPrice": "0.1"}}),
        json!({"marketType": "CapacityBlock", "capacityReservationId": "cr-0123456789abcdef0"}),
    ]);
    let placement = select(vec![
        json!({}),
        json!({"placement": {"tenancy": "dedicated"}}),
        json!({"placement": {"tenancy": "host", "host": {"affinity": "AnyAvailable"}}}),
        json!({"placement": {"tenancy": "host", "host": {
            "affinity": "DedicatedHost", "dedicatedHost": {"allocationStrategy": "Dynamic"}}}}),
        json!({"placementGroupName": "g", "placementGroupPartition": 7}),
    ]);
    let throughput = option::of(125..=2000_i32).prop_map(|throughput| match throughput {
        Some(mib) => {
            json!({"blockDevices": [{"ebs": {"volumeType": "gp3", "throughputMib": mib}}]})
        }
        None => json!({}),
    });
    let unknown = option::of(any_value()).prop_map(|value| match value {
        Some(value) => json!({"somethingNew": value}),
        None => json!({}),
    });
    (left_out, market, placement, throughput, unknown).prop_map(|(left_out, a, b, c, d)| {
        let mut spec = whole_spec();
        for field in left_out {
            spec.as_object_mut().unwrap().remove(field);
        }
        [a, b, c, d].iter().fold(spec, with)
    })
}

/// What was said is still said.
fn is_kept(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Null, _) => true,
        (Value::String(text), Value::String(_)) if text.is_empty() => true,
        (Value::Object(before), Value::Object(after)) => before
            .iter()
            .all(|(key, value)| after.get(key).is_some_and(|other| is_kept(value, other))),
        (before, after) => before == after,
    }
}

fn any_context() -> impl Strategy<Value = Context> {
    let platform = select(vec![None, Some(Platform::Aws), Some(Platform::Other)]);
    let text = option::of("[a-z]{1,5}");
    (platform, text.clone(), text).prop_map(|(platform, cluster_id, region)| Context {
        platform,
        cluster_id,
        region,
        architecture: Architecture::Arm64,
    })
}

/// The bytes of a question about an object, with some of them replaced.
fn any_question() -> impl Strategy<Value = Vec<u8>> {
    let operation = select(&["CREATE", "UPDATE", "DELETE"][..]);
    let damage = collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (operation, any_object(), any_object(), damage).prop_map(
        |(operation, (_, object), (_, old), damage)| {
            let mut bytes = serde_json::to_vec(&json!({
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "request": {
                    "uid": "u-1", "operation": operation, "object": object, "oldObject": old,
                },
            }))
            .unwrap();
            for (index, byte) in damage {
                let place = index.index(bytes.len());
                bytes[place] = byte;
            }
            bytes
        },
    )
}

fn ask_all(bytes: &[u8], context: &Context) {
    for webhook in Webhook::ALL {
        match Review::read(webhook, bytes) {
            Ok(review) => {
                let knowledge = match review.wanted_secret(context) {
                    Some(_) => SecretKnowledge::Missing,
                    None => SecretKnowledge::NotAsked,
                };
                let answer = review.answer(context, &knowledge);
                let json: Value = serde_json::from_slice(&answer.to_json().unwrap()).unwrap();
                assert_eq!(json["response"]["uid"], review.uid);
                assert_eq!(json["response"]["allowed"], answer.is_allowed());
            }
            Err(error) => assert!(matches!(error.http_status(), 400 | 413)),
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered_or_an_error(
        bytes in collection::vec(any::<u8>(), 0..512),
        context in any_context(),
    ) {
        ask_all(&bytes, &context);
    }

    #[test]
    fn any_question_is_answered_or_an_error(bytes in any_question(), context in any_context()) {
        ask_all(&bytes, &context);
    }

    #[test]
    fn defaults_are_given_once_and_change_nothing_that_was_said(
        (kind, object) in any_object(),
        context in any_context(),
    ) {
        let Ok(first) = mutate(kind, &object, &context) else { return Ok(()) };
        prop_assert!(is_kept(&object, &first.object));
        prop_assert_eq!(&patched(object, &first.patch), &first.object);
        let second = mutate(kind, &first.object, &context).unwrap();
        prop_assert_eq!(second.patch, []);
        prop_assert_eq!(second.object, first.object);
    }

    #[test]
    fn what_is_right_is_admitted_with_its_defaults(
        spec in any_right_spec(),
        kind in select(&[Kind::Machine, Kind::MachineSet][..]),
    ) {
        let defaulted = mutate(kind, &object_of(kind, spec), &openshift()).unwrap().object;
        prop_assert_eq!(faults(&verdict(kind, &defaulted, None)), Vec::<String>::new());
    }

    /// Whatever is stored, a change that touches nothing is never refused.
    #[test]
    fn what_is_stored_may_stay((kind, object) in any_object(), context in any_context()) {
        let change = Change { kind, object: &object, old: Some(&object), namespace: "ns" };
        let verdict = validate(&change, &context, &SecretKnowledge::NotAsked);
        prop_assert_eq!(verdict.faults, []);
    }
}
