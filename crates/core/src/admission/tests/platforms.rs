//! Which rules hold where: OpenShift on AWS, on another cloud, and plain Kubernetes.

use machinist_api::openshift_config::InfrastructureStatus;

use super::*;

fn infrastructure(value: Value) -> InfrastructureStatus {
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_context_is_what_the_infrastructure_says() {
    let aws = infrastructure(json!({
        "infrastructureName": "cluster-x7k2p",
        "platformStatus": {"type": "AWS", "aws": {"region": "us-east-1"}},
    }));
    assert_eq!(Context::of_infrastructure(&aws, Architecture::Amd64), openshift());
    let gcp = infrastructure(json!({"infrastructureName": "c", "platformStatus": {"type": "GCP"}}));
    let context = Context::of_infrastructure(&gcp, Architecture::Arm64);
    assert_eq!(context.platform, Some(Platform::Other));
    assert_eq!((context.cluster_id.as_deref(), context.region), (Some("c"), None));
    let empty = infrastructure(json!({}));
    assert_eq!(Context::of_infrastructure(&empty, Architecture::Amd64), Context::default());
}

#[test]
fn other_platforms_are_admitted_as_they_are() {
    let context = Context { platform: Some(Platform::Other), ..openshift() };
    for spec in [json!({"kind": "GCPMachineProviderSpec", "zone": 7}), Value::Null, json!("text")] {
        let machine = machine(spec.clone());
        let defaulted = mutate(Kind::Machine, &machine, &context).unwrap();
        assert_eq!(defaulted, Defaulted { object: machine.clone(), patch: Vec::new() });
        let change =
            Change { kind: Kind::Machine, object: &machine, old: None, namespace: "anywhere" };
        assert_eq!(validate(&change, &context, &SecretKnowledge::Missing), Verdict::default());
        assert_eq!(validate::wanted_secret(&change, &context), None);
        let set = machine_set(spec);
        assert_eq!(mutate(Kind::MachineSet, &set, &context).unwrap().patch, []);
    }
}

#[test]
fn what_is_common_holds_on_other_platforms_too() {
    let context = Context { platform: Some(Platform::Other), ..openshift() };
    let old = machine_set(json!({}));
    let new = with(old.clone(), &json!({"spec": {"selector": {"matchLabels": {"more": "x"}}}}));
    let change =
        Change { kind: Kind::MachineSet, object: &new, old: Some(&old), namespace: "anywhere" };
    let verdict = validate(&change, &context, &SecretKnowledge::NotAsked);
    assert!(
        faults(&verdict).contains(&"spec.selector: Forbidden: selector is immutable".to_owned())
    );
    let unnamed = json!({"metadata": {}, "spec": {"providerSpec": {}}});
    let defaulted = mutate(Kind::Machine, &unnamed, &context).unwrap().object;
    let label = "machine.openshift.io/cluster-api-cluster";
    assert_eq!(defaulted["metadata"]["labels"][label], "cluster-x7k2p");
}

#[test]
fn on_plain_kubernetes_the_kind_decides() {
    let context = Context::default();
    let faults_of = |spec: Value| {
        let machine = machine(spec);
        let change =
            Change { kind: Kind::Machine, object: &machine, old: None, namespace: "anywhere" };
        faults(&validate(&change, &context, &SecretKnowledge::NotAsked))
    };
    assert_eq!(faults_of(json!({"kind": "GCPMachineProviderSpec"})), Vec::<String>::new());
    assert_eq!(faults_of(json!({"kind": "AWSMachineProviderConfig"})).len(), 5);
    assert_eq!(faults_of(whole_spec()), Vec::<String>::new());
    // As the controllers read it: without a kind it is AWS's if it has an image of AWS's.
    assert_eq!(faults_of(json!({"ami": {"id": "ami-1"}})).len(), 4);
    assert_eq!(faults_of(json!({"kind": "", "ami": {"id": "ami-1"}})).len(), 4);
    assert_eq!(faults_of(json!({"zone": "a"})), Vec::<String>::new());
    assert_eq!(faults_of(json!({"kind": 7, "ami": {}})), Vec::<String>::new());
    let context = Context { region: Some("r-1".to_owned()), ..Context::default() };
    let unkind = mutate(Kind::Machine, &machine(json!({"ami": {"id": "ami-1"}})), &context);
    let patch = serde_json::to_value(unkind.unwrap().patch).unwrap().to_string();
    assert!(patch.contains("r-1") && patch.contains("worker-user-data"), "{patch}");
    assert_eq!(
        faults_of(Value::Null),
        ["providerSpec.value: Required value: a value must be provided"]
    );
}

#[test]
fn the_secret_is_asked_for_when_the_spec_is_new_or_changed() {
    let wanted = |object: &Value, old: Option<&Value>| {
        let change = Change { kind: Kind::Machine, object, old, namespace: "ns" };
        validate::wanted_secret(&change, &openshift()).map(|secret| (secret.namespace, secret.name))
    };
    let named = machine(whole_spec());
    let secret = Some(("ns".to_owned(), "aws-cloud-credentials".to_owned()));
    assert_eq!(wanted(&named, None), secret);
    assert_eq!(wanted(&named, Some(&named)), None);
    assert_eq!(wanted(&named, Some(&machine(json!({})))), secret);
    assert_eq!(wanted(&machine(json!({"credentialsSecret": {"name": ""}})), None), None);
    assert_eq!(wanted(&machine(json!({})), None), None);
    assert_eq!(wanted(&json!(7), None), None);
}
