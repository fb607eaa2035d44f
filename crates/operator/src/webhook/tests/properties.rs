//! What holds for every request, whatever the bytes are. `PROPTEST_CASES` makes them run for longer.

use proptest::{collection, prelude::*, sample::select};

use super::*;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        select(vec!["AdmissionReview", "admission.k8s.io/v1", "CREATE", "UPDATE", "machines"])
            .prop_map(Value::from),
    ];
    let names = "apiVersion kind request uid operation namespace resource group subResource object \
        oldObject metadata labels spec providerSpec value credentialsSecret name selector template";
    let names: Vec<&str> = names.split_whitespace().collect();
    leaf.prop_recursive(8, 96, 8, move |inner| {
        let key = prop_oneof![
            9 => select(names.clone()).prop_map(str::to_owned),
            1 => any::<String>(),
        ];
        prop_oneof![
            collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            collection::btree_map(key, inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Asks on a runtime of its own, as a test of bytes has none.
fn ask(path: &str, body: Vec<u8>) -> (u16, String) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async { World::new().post(path, body).await })
}

/// An answer is a review, or words for people.
fn check(status: u16, text: &str) -> Result<(), TestCaseError> {
    match status {
        200 => {
            let answer: Value = serde_json::from_str(text).unwrap();
            prop_assert_eq!(&answer["kind"], "AdmissionReview");
            prop_assert!(answer["response"]["allowed"].is_boolean());
        }
        400 | 413 => prop_assert!(text.len() < 1000, "{}", text),
        other => prop_assert!(false, "{} {}", other, text),
    }
    Ok(())
}

fn any_path() -> impl Strategy<Value = &'static str> {
    select(Webhook::ALL.map(Webhook::path).to_vec())
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(path in any_path(), bytes in collection::vec(any::<u8>(), 0..2000)) {
        let (status, text) = ask(path, bytes);
        check(status, &text)?;
    }

    #[test]
    fn any_json_gets_an_answer(path in any_path(), json in any_json()) {
        let (status, text) = ask(path, json.to_string().into_bytes());
        check(status, &text)?;
    }

    #[test]
    fn the_answer_is_to_the_question_that_was_asked(
        path in any_path(),
        uid in ".{1,80}",
        operation in select(vec!["CREATE", "UPDATE", "DELETE", "CONNECT", ""]),
        object in any_json(),
        old in any_json(),
    ) {
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": uid, "operation": operation, "namespace": "ns", "object": object,
                "oldObject": old,
            },
        });
        let (status, text) = ask(path, review.to_string().into_bytes());
        prop_assert_eq!(status, 200, "{}", text);
        check(status, &text)?;
        let answer: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&answer["response"]["uid"], &Value::from(uid));
    }
}
