//! Every row of the table of warnings for AWS.

use super::*;

fn warnings_of(overrides: &Value, secret: &SecretKnowledge) -> Vec<String> {
    let machine = machine(with(whole_spec(), overrides));
    let change = Change {
        kind: Kind::Machine,
        object: &machine,
        old: None,
        namespace: "openshift-machine-api",
    };
    let verdict = validate(&change, &openshift(), secret);
    assert_eq!(verdict.faults, [], "{overrides}");
    verdict.warnings
}

#[test]
fn what_is_most_likely_not_meant() {
    let rows: &[(Value, &[&str])] = &[
        (json!({}), &[]),
        (json!({"apiVersion": "awsproviderconfig.openshift.io/v1beta1"}), &[]),
        (json!({"apiVersion": "machine.openshift.io/v1"}), &[]),
        (
            json!({"typo": 1, "placement": {"Region": "us-east-1"}, "blockDevices": [{"ebs": {"iop": 3}}]}),
            &[
                "providerSpec.placement.Region: unknown field, it has no effect",
                "providerSpec.blockDevices[0].ebs.iop: unknown field, it has no effect",
                "providerSpec.typo: unknown field, it has no effect",
            ],
        ),
        (
            json!({"kind": "GCPMachineProviderSpec"}),
            &[
                "providerSpec: expected kind AWSMachineProviderConfig of awsproviderconfig.openshift.io/v1beta1 or machine.openshift.io/v1beta1, not kind \"GCPMachineProviderSpec\" of \"machine.openshift.io/v1beta1\"",
            ],
        ),
        (
            json!({"apiVersion": "machine.openshift.io/v1alpha1"}),
            &[
                "providerSpec: expected kind AWSMachineProviderConfig of awsproviderconfig.openshift.io/v1beta1 or machine.openshift.io/v1beta1, not kind \"AWSMachineProviderConfig\" of \"machine.openshift.io/v1alpha1\"",
            ],
        ),
        (
            json!({"apiVersion": null, "kind": null}),
            &[
                "providerSpec: expected kind AWSMachineProviderConfig of awsproviderconfig.openshift.io/v1beta1 or machine.openshift.io/v1beta1, not kind \"\" of \"\"",
            ],
        ),
        (json!({"ami": {"arn": "arn:a"}}), &["providerSpec.ami.arn: has no effect, use id"]),
        (
            json!({"ami": {"filters": [{"name": "a"}]}}),
            &["providerSpec.ami.filters: has no effect, use id"],
        ),
        (
            json!({"subnet": null}),
            &[
                "providerSpec.subnet: no subnet is named, so the instance is launched in whichever is found first",
            ],
        ),
        (
            json!({"subnet": {"id": ""}}),
            &[
                "providerSpec.subnet: no subnet is named, so the instance is launched in whichever is found first",
            ],
        ),
        (json!({"subnet": {"id": null, "filters": [{"name": "a"}]}}), &[]),
        (
            json!({"subnet": {"id": null, "arn": "arn:a"}}),
            &["providerSpec.subnet.arn: has no effect, use id or filters"],
        ),
        (
            json!({"iamInstanceProfile": null}),
            &[
                "providerSpec.iamInstanceProfile: no profile is named, so the instance has no permissions of its own",
            ],
        ),
        (
            json!({"iamInstanceProfile": {"arn": "arn:a", "filters": [{"name": "a"}]}}),
            &[
                "providerSpec.iamInstanceProfile.arn: has no effect, use id",
                "providerSpec.iamInstanceProfile.filters: has no effect, use id",
            ],
        ),
        (json!({"tags": [{"name": "a", "value": "1"}, {"name": "A", "value": "2"}]}), &[]),
        (
            json!({"tags": [{"name": "b"}, {"name": "a"}, {"name": "a"}, {"name": "b"}, {"name": "b"}]}),
            &["providerSpec.tags: only the first value is used of what is named twice: a, b"],
        ),
    ];
    for (overrides, expected) in rows {
        assert_eq!(warnings_of(overrides, &SecretKnowledge::Found), *expected, "{overrides}");
    }
}

#[test]
fn a_secret_that_is_not_there_is_told() {
    assert_eq!(
        warnings_of(&json!({}), &SecretKnowledge::Missing),
        [
            "providerSpec.credentialsSecret: secret openshift-machine-api/aws-cloud-credentials was not found"
        ]
    );
    assert_eq!(
        warnings_of(&json!({}), &SecretKnowledge::Unreadable("no answer".to_owned())),
        [
            "providerSpec.credentialsSecret: secret openshift-machine-api/aws-cloud-credentials could not be read: no answer"
        ]
    );
    assert_eq!(warnings_of(&json!({}), &SecretKnowledge::NotAsked), Vec::<String>::new());
    let nameless = json!({"credentialsSecret": {"name": ""}});
    assert_eq!(warnings_of(&nameless, &SecretKnowledge::Missing), Vec::<String>::new());
}

#[test]
fn unknown_fields_are_told_after_defaulting_and_on_update_too() {
    let machine = machine(with(whole_spec(), &json!({"typo": 1, "instanceType": null})));
    let defaulted = mutate(Kind::Machine, &machine, &openshift()).unwrap().object;
    let expected = ["providerSpec.typo: unknown field, it has no effect"];
    assert_eq!(verdict(Kind::Machine, &defaulted, None).warnings, expected);
    assert_eq!(verdict(Kind::Machine, &defaulted, Some(&defaulted)).warnings, expected);
}

#[test]
fn a_refusal_is_warned_about_as_well() {
    let spec = with(whole_spec(), &json!({"typo": 1, "ami": null}));
    let verdict = verdict(Kind::MachineSet, &machine_set(spec), None);
    assert_eq!(verdict.faults.len(), 1);
    assert_eq!(verdict.warnings, ["providerSpec.typo: unknown field, it has no effect"]);
}

#[test]
fn a_flood_of_warnings_is_cut() {
    let many: serde_json::Map<String, Value> =
        (0..50_000).map(|index| (format!("{index}-{}", "x".repeat(20)), json!(1))).collect();
    let long = json!({"y".repeat(10_000): 1});
    for spec in [with(whole_spec(), &Value::Object(many)), with(whole_spec(), &long)] {
        let warnings = verdict(Kind::Machine, &machine(spec), None).warnings;
        assert!(warnings.len() <= 21, "{}", warnings.len());
        assert!(warnings.iter().all(|warning| warning.len() < 256));
    }
}
