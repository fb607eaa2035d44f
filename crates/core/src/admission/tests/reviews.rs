//! Questions in bytes, and their answers in bytes.

use super::*;

fn question(operation: &str, object: &Value, old: &Value) -> Vec<u8> {
    question_of("machines", operation, &object.to_string(), &old.to_string())
}

fn question_of(resource: &str, operation: &str, object: &str, old: &str) -> Vec<u8> {
    format!(
        r#"{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{
            "uid": "u-1", "operation": "{operation}", "namespace": "openshift-machine-api",
            "resource": {{"group": "machine.openshift.io", "version": "v1beta1", "resource": "{resource}"}},
            "userInfo": {{"username": "admin"}}, "dryRun": false,
            "object": {object}, "oldObject": {old}}}}}"#
    )
    .into_bytes()
}

fn answer(webhook: Webhook, body: &[u8]) -> Answer {
    let review = Review::read(webhook, body).unwrap();
    review.answer(&openshift(), &SecretKnowledge::NotAsked)
}

fn denial(answer: &Answer) -> (u16, &str) {
    let denial = answer.denial.as_ref().unwrap();
    (denial.code, &denial.message)
}

#[test]
fn a_default_is_answered_with_a_patch() {
    let object = machine(with(whole_spec(), &json!({"instanceType": null})));
    let answer = answer(Webhook::DefaultMachine, &question("CREATE", &object, &Value::Null));
    let json: Value = serde_json::from_slice(&answer.to_json().unwrap()).unwrap();
    assert_eq!(json["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(json["kind"], "AdmissionReview");
    let response = &json["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(true)));
    assert_eq!(response["patchType"], "JSONPatch");
    let k8s_openapi::ByteString(patch) = serde_json::from_value(response["patch"].clone()).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&patch).unwrap(),
        json!([{"op": "add", "path": "/spec/providerSpec/value/instanceType", "value": "m5.large"}])
    );
}

#[test]
fn nothing_to_fill_in_is_no_patch() {
    let object = machine(whole_spec());
    let answer = answer(Webhook::DefaultMachine, &question("CREATE", &object, &Value::Null));
    let json: Value = serde_json::from_slice(&answer.to_json().unwrap()).unwrap();
    assert_eq!(json["response"], json!({"uid": "u-1", "allowed": true}));
}

#[test]
fn a_refusal_carries_the_message_and_the_warnings() {
    let object = machine(with(whole_spec(), &json!({"ami": null, "typo": 1})));
    let answer = answer(Webhook::ValidateMachine, &question("CREATE", &object, &Value::Null));
    let json: Value = serde_json::from_slice(&answer.to_json().unwrap()).unwrap();
    assert_eq!(
        json["response"],
        json!({
            "uid": "u-1",
            "allowed": false,
            "status": {
                "status": "Failure", "code": 403, "reason": "Forbidden",
                "message": "providerSpec.ami: Required value: expected providerSpec.ami.id to be populated",
            },
            "warnings": ["providerSpec.typo: unknown field, it has no effect"],
        })
    );
}

#[test]
fn a_set_without_a_provider_spec_is_refused_when_it_is_defaulted() {
    let set = machine_set(Value::Null).to_string();
    let answer =
        answer(Webhook::DefaultMachineSet, &question_of("machinesets", "CREATE", &set, "null"));
    assert_eq!(
        denial(&answer),
        (403, "providerSpec.value: Required value: a value must be provided")
    );
}

#[test]
fn what_nobody_asked_to_be_asked_about_is_allowed() {
    let broken = machine(Value::Null);
    for (webhook, operation) in [
        (Webhook::DefaultMachine, "UPDATE"),
        (Webhook::DefaultMachine, "DELETE"),
        (Webhook::ValidateMachine, "DELETE"),
        (Webhook::ValidateMachine, "CONNECT"),
    ] {
        assert!(
            answer(webhook, &question(operation, &broken, &broken)).is_allowed(),
            "{operation}"
        );
    }
    let body = String::from_utf8(question("UPDATE", &broken, &Value::Null)).unwrap();
    let body = body.replace("\"dryRun\": false", "\"subResource\": \"status\"");
    assert!(answer(Webhook::ValidateMachine, body.as_bytes()).is_allowed());
}

#[test]
fn a_change_is_held_against_what_is_stored() {
    let old = machine(with(whole_spec(), &json!({"ami": null})));
    let body = question("UPDATE", &old, &old);
    assert!(answer(Webhook::ValidateMachine, &body).is_allowed());
    // The same pair at creation is a lie about what is stored.
    let body = question("CREATE", &old, &old);
    assert!(!answer(Webhook::ValidateMachine, &body).is_allowed());
}

#[test]
fn what_is_no_object_is_refused_by_name() {
    for (object, expected) in [
        ("[1]", "object: Invalid value: [1]: must be an object"),
        ("\"text\"", "object: Invalid value: \"text\": must be an object"),
        ("null", "object: Required value: an object must be sent"),
        (
            r#"{"spec": {"providerSpec": {"value": {"deviceIndex": 1e999}}}}"#,
            "spec.providerSpec.value.deviceIndex: Invalid value: cannot be read: number out of range",
        ),
    ] {
        for webhook in [Webhook::DefaultMachine, Webhook::ValidateMachine] {
            let answer = answer(webhook, &question_of("machines", "CREATE", object, "null"));
            assert_eq!(denial(&answer), (400, expected));
        }
    }
}

fn nested(depth: usize) -> String {
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    format!(r#"{{"spec": {{"providerSpec": {{"value": {{"tags": {open}{close}}}}}}}}}"#)
}

#[test]
fn what_is_nested_too_deeply_is_refused_by_name() {
    for depth in [200, 100_000] {
        let body = question_of("machines", "CREATE", &nested(depth), "null");
        assert_eq!(
            denial(&answer(Webhook::ValidateMachine, &body)),
            (
                400,
                "spec.providerSpec.value.tags: Invalid value: cannot be read: recursion limit exceeded"
            )
        );
    }
}

#[test]
fn what_is_stored_too_deeply_nested_can_still_be_deleted() {
    let body = question_of("machines", "UPDATE", &nested(200), &nested(300));
    let answer = answer(Webhook::ValidateMachine, &body);
    assert!(answer.is_allowed());
    assert_eq!(answer.warnings.len(), 1);
    let body = question_of("machines", "UPDATE", &nested(200), &nested(3));
    assert!(!super::reviews::answer(Webhook::ValidateMachine, &body).is_allowed());
}

#[test]
fn bytes_that_are_no_question_are_an_error() {
    let read = |body: &[u8]| Review::read(Webhook::ValidateMachine, body).unwrap_err();
    let large = vec![b' '; review::REVIEW_BYTES_MAX + 1];
    let deep = format!("{{\"request\": {}", "[".repeat(1_000_000));
    let other_version = question("CREATE", &json!({}), &Value::Null);
    let other_version =
        String::from_utf8(other_version).unwrap().replace("k8s.io/v1\"", "k8s.io/v1beta1\"");
    let nameless =
        r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {}}"#;
    let empty = r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#;
    let rows: [(&[u8], u16, &str); 8] = [
        (&large, 413, "the request has 8388609 bytes, more than 8388608"),
        (b"{\"a\": \"\xff\"}", 400, "the request is not UTF-8 text"),
        (b"", 400, "the request is no AdmissionReview: EOF"),
        (b"[]", 400, "the request is no AdmissionReview: "),
        (deep.as_bytes(), 400, "the request is no AdmissionReview: "),
        (
            other_version.as_bytes(),
            400,
            "the request is no AdmissionReview: expected AdmissionReview of admission.k8s.io/v1, not",
        ),
        (
            nameless.as_bytes(),
            400,
            "the request is no AdmissionReview: request.uid: Required value",
        ),
        (empty.as_bytes(), 400, "the request is no AdmissionReview: request: Required value"),
    ];
    for (body, status, expected) in rows {
        let error = read(body);
        assert_eq!(error.http_status(), status);
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn objects_of_another_resource_are_not_refused_but_not_answered() {
    let error = Review::read(
        Webhook::ValidateMachineSet,
        &question("CREATE", &machine(whole_spec()), &Value::Null),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the request is about machines.machine.openshift.io, but machinesets are looked at here"
    );
}

#[test]
fn a_flood_of_faults_is_cut() {
    let spec = with(whole_spec(), &json!({"tags": vec![1; 500_000]}));
    let body = question("CREATE", &machine(spec), &Value::Null);
    let answer = answer(Webhook::ValidateMachine, &body);
    let (_, message) = denial(&answer);
    assert!(message.len() < 4096, "{}", message.len());
    assert!(message.ends_with("and 80 more]"), "{message}");
}

#[test]
fn the_secret_is_asked_for_by_the_validating_webhook_only() {
    let body = question("CREATE", &machine(whole_spec()), &Value::Null);
    let wanted = |webhook| Review::read(webhook, &body).unwrap().wanted_secret(&openshift());
    assert_eq!(
        wanted(Webhook::ValidateMachine).map(|secret| (secret.namespace, secret.name)),
        Some(("openshift-machine-api".to_owned(), "aws-cloud-credentials".to_owned()))
    );
    assert_eq!(wanted(Webhook::DefaultMachine), None);
}
