//! Is each fault named, with how it was seen and what to do, and nothing else?

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use machinist_api::names::lease;

use super::*;
use crate::{
    lease::LeaseRecord,
    operator_status::{CloudProblem, CloudState, OperatorStatus, ProblemKind, condition_type},
};

/// Good all through 2026.
const CERTIFICATE: &[u8] = include_bytes!("tests/good-in-2026.pem");

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    at("2026-06-01T12:00:00Z")
}

fn held_by(holder: &str, renewed: Timestamp) -> LeaseState {
    let record = LeaseRecord {
        holder: holder.to_owned(),
        duration_seconds: 120,
        acquired: Some(at("2026-05-01T00:00:00Z")),
        renewed: Some(renewed),
        transitions: 3,
    };
    LeaseState { record, written: Some(renewed) }
}

fn webhook() -> WebhookState {
    WebhookState {
        configuration: "ValidatingWebhookConfiguration machine-api".to_owned(),
        name: "validation.machine.machine.openshift.io".to_owned(),
        target: "Service ns/machine-api-operator-webhook".to_owned(),
        reach: Ok(Reach::Answers),
        ca_bundle: CERTIFICATE.to_vec(),
        fails_closed: false,
    }
}

fn cloud() -> CloudState {
    CloudState {
        name: "demo in eu-west-1 by ns/keys".to_owned(),
        endpoint: Some("https://ec2.example".to_owned()),
        problem: None,
    }
}

/// A cluster in which all is well.
fn healthy() -> Observed {
    let renewed = at("2026-06-01T11:59:50Z");
    let definitions = machinist_api::crd::all().into_iter().map(|shipped| DefinitionState {
        installed: Ok(Definition::Installed(Box::new(shipped.clone()))),
        shipped,
    });
    Observed {
        namespace: "ns".to_owned(),
        now: now(),
        definitions: definitions.collect(),
        own_rights: Ok(OwnRights { asked: 6, missing: Vec::new() }),
        rights: Ok(Rights {
            user: "system:serviceaccount:ns:machinist-operator".to_owned(),
            asked: 150,
            missing: Vec::new(),
        }),
        leases: Ok(lease::ALL
            .into_iter()
            .map(|name| (name.to_owned(), held_by("pod-a_1", renewed)))
            .collect()),
        deployed: Some(Deployed { name: "machinist-operator".to_owned(), wanted: 2, available: 2 }),
        status: Ok(Some(OperatorStatus { clouds: vec![cloud()], ..OperatorStatus::default() })),
        clocks: Clocks { here: Some(Stamp { by_it: now(), by_server: now() }) },
        webhooks: Ok(vec![webhook()]),
        serving_certificate: Ok(Some(CERTIFICATE.to_vec())),
        quotas: Ok(Vec::new()),
        said_quotas: Ok(Vec::new()),
    }
}

fn definition<'a>(observed: &'a mut Observed, plural: &str) -> &'a mut DefinitionState {
    let mut all = observed.definitions.iter_mut();
    all.find(|one| one.shipped.spec.names.plural == plural).unwrap()
}

fn installed<'a>(observed: &'a mut Observed, plural: &str) -> &'a mut CustomResourceDefinition {
    match definition(observed, plural).installed.as_mut().unwrap() {
        Definition::Installed(installed) => installed,
        other => panic!("{other:?}"),
    }
}

fn with_problem(observed: &mut Observed, kind: ProblemKind, message: &str) {
    let problem = CloudProblem { kind, message: message.to_owned() };
    let status = observed.status.as_mut().unwrap().as_mut().unwrap();
    status.clouds[0].problem = Some(problem);
}

/// The one finding of a cluster with one fault.
fn check(fault: impl FnOnce(&mut Observed), code: Code, level: Level, texts: [&str; 3]) {
    let mut observed = healthy();
    fault(&mut observed);
    let report = examine(&observed);
    let found: Vec<&Finding> = report.findings().collect();
    let [finding] = found.as_slice() else { panic!("{}: {found:#?}", code.as_str()) };
    assert_eq!((finding.code, finding.level), (code, level), "{finding:#?}");
    assert_eq!(report.level, level);
    let [what, seen, fix] = texts;
    assert!(finding.what.contains(what), "{finding:#?}");
    assert!(finding.seen.contains(seen), "{finding:#?}");
    assert!(finding.fix.contains(fix), "{finding:#?}");
}

fn fails(fault: impl FnOnce(&mut Observed), code: Code, texts: [&str; 3]) {
    check(fault, code, Level::Failed, texts);
}

fn warns(fault: impl FnOnce(&mut Observed), code: Code, texts: [&str; 3]) {
    check(fault, code, Level::Warning, texts);
}

#[test]
fn nothing_is_found_where_all_is_well() {
    let report = examine(&healthy());
    assert_eq!(report.findings().collect::<Vec<_>>(), [] as [&Finding; 0]);
    assert_eq!(report.level, Level::Ok);
    assert_eq!(report.count(Level::Ok), report.checks.len());
    for check in &report.checks {
        assert!(!check.says.is_empty(), "{}", check.name);
    }
}

#[test]
fn a_missing_definition_is_named() {
    fails(
        |observed| definition(observed, "machinesets").installed = Ok(Definition::Missing),
        Code::MissingCrd,
        [
            "machinesets.machine.openshift.io is missing",
            "does not serve it",
            "kubectl apply -f deploy/crds/machine.openshift.io_machinesets.yaml",
        ],
    );
}

#[test]
fn a_definition_of_an_older_version_is_named() {
    let name = "maintenancepolicies.machinist.dev is of another version";
    let fix = "kubectl apply -f deploy/crds/machinist.dev_maintenancepolicies.yaml";
    fails(
        |observed| {
            installed(observed, "maintenancepolicies").spec.versions[0].name = "v1alpha0".into()
        },
        Code::OldCrdVersion,
        [name, "v1alpha1 is not served, only v1alpha0", fix],
    );
    fails(
        |observed| {
            let versions = &mut installed(observed, "maintenancepolicies").spec.versions;
            let schema = versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
            let spec = schema.properties.as_mut().unwrap().get_mut("spec").unwrap();
            spec.properties.as_mut().unwrap().remove("freezes").unwrap();
        },
        Code::OldCrdVersion,
        [name, "v1alpha1 does not know spec.freezes", fix],
    );
    fails(
        |observed| installed(observed, "maintenancepolicies").spec.versions[0].subresources = None,
        Code::OldCrdVersion,
        [name, "v1alpha1 has no status subresource", fix],
    );
    // What others add is theirs, and one whose contents are hidden counts as there.
    let mut observed = healthy();
    definition(&mut observed, "machines").installed = Ok(Definition::Served);
    let versions = &mut installed(&mut observed, "machinesets").spec.versions;
    let schema = versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    schema.properties.as_mut().unwrap().insert("further".to_owned(), Default::default());
    assert_eq!(examine(&observed).level, Level::Ok);
}

#[test]
fn each_right_that_the_operator_lacks_is_named() {
    let lack = |right: Right| {
        move |observed: &mut Observed| observed.rights.as_mut().unwrap().missing.push(right)
    };
    let text = |text: &str| text.to_owned();
    let fix = "apply deploy/kustomize/base/rbac.yaml";
    let seen = "the user system:serviceaccount:ns:machinist-operator";
    let nodes = Right { verb: text("patch"), resource: text("nodes"), ..Right::default() };
    fails(lack(nodes), Code::MissingRbacVerb, ["the operator may not patch nodes", seen, fix]);
    let status = Right {
        verb: text("patch"),
        group: text("machine.openshift.io"),
        resource: text("machines/status"),
        name: text("a"),
        namespace: text("ns"),
    };
    let what = "the operator may not patch machines.machine.openshift.io/status a in ns";
    fails(lack(status), Code::MissingRbacVerb, [what, seen, fix]);
}

#[test]
fn what_a_person_may_not_do_is_only_a_warning() {
    let right = Right { verb: "list".into(), resource: "nodes".into(), ..Right::default() };
    warns(
        |observed| observed.own_rights.as_mut().unwrap().missing.push(right),
        Code::OwnRightMissing,
        ["you may not list nodes", "SelfSubjectAccessReview", "ask for the right"],
    );
}

#[test]
fn what_the_operator_says_of_clouds_is_named() {
    fails(
        |observed| {
            with_problem(observed, ProblemKind::CredentialsRefused, "AuthFailure: no such key")
        },
        Code::WrongCredentials,
        ["demo in eu-west-1 by ns/keys are refused", "AuthFailure: no such key", "working keys"],
    );
    fails(
        |observed| with_problem(observed, ProblemKind::Unreachable, "connection refused"),
        Code::UnreachableEndpoint,
        ["does not answer at https://ec2.example", "connection refused", "serviceEndpoints"],
    );
    fails(
        |observed| {
            with_problem(observed, ProblemKind::Unreachable, "no route");
            let status = observed.status.as_mut().unwrap().as_mut().unwrap();
            status.clouds[0].endpoint = None;
        },
        Code::UnreachableEndpoint,
        ["demo in eu-west-1 by ns/keys does not answer", "no route", "DNS, proxy"],
    );
    fails(
        |observed| {
            // The list itself was refused for it: that is one fault, not two.
            let words = "permission ec2:DescribeInstances is missing";
            with_problem(observed, ProblemKind::PermissionMissing, words);
            let status = observed.status.as_mut().unwrap().as_mut().unwrap();
            status.missing_permissions = vec!["ec2:DescribeInstances".to_owned()];
        },
        Code::MissingIamAction,
        [
            "does not allow ec2:DescribeInstances",
            "machinist-operator-status",
            "deploy/iam/policy.json",
        ],
    );
    warns(
        |observed| with_problem(observed, ProblemKind::Throttled, "slow down"),
        Code::CloudRefuses,
        ["asks us to slow down", "slow down", "higher limit"],
    );
    fails(
        |observed| with_problem(observed, ProblemKind::Other, "the region is wrong"),
        Code::CloudRefuses,
        ["cannot be used", "the region is wrong", "put right"],
    );
}

#[test]
fn an_expired_certificate_is_named_wherever_it_is() {
    let late = |observed: &mut Observed| {
        let before = observed.now;
        observed.now = at("2027-01-01T00:00:00Z");
        // Everything else is of that time too.
        let by = observed.now.duration_since(before);
        for state in observed.leases.as_mut().unwrap().values_mut() {
            for time in [&mut state.record.renewed, &mut state.written] {
                *time = time.map(|time| time.checked_add(by).unwrap());
            }
        }
    };
    fails(
        |observed| {
            late(observed);
            observed.serving_certificate = Ok(None);
        },
        Code::ExpiredWebhookCertificate,
        [
            "the authority in ValidatingWebhookConfiguration machine-api has expired",
            "good until 2027-01-01T00:00:00Z",
            "cert-manager",
        ],
    );
    let mut observed = healthy();
    late(&mut observed);
    let report = examine(&observed);
    let whats: Vec<&str> = report.findings().map(|finding| finding.what.as_str()).collect();
    assert_eq!(
        whats,
        [
            "the authority in ValidatingWebhookConfiguration machine-api has expired",
            "the certificate in Secret machine-api-operator-webhook-cert has expired",
        ]
    );
    warns(
        |observed| {
            late(observed);
            observed.now = observed.now.checked_sub(SignedDuration::from_hours(24)).unwrap();
            observed.serving_certificate = Ok(None);
        },
        Code::ExpiredWebhookCertificate,
        ["expires soon", "2027-01-01T00:00:00Z", "cert-manager"],
    );
    fails(
        |observed| observed.serving_certificate = Ok(Some(b"no certificate".to_vec())),
        Code::WebhookWithoutAuthority,
        ["cannot be read", "no certificate in PEM", "Secret"],
    );
}

#[test]
fn a_webhook_that_points_nowhere_is_named_once() {
    let table = [
        (Reach::NoSuchService, Level::Failed, "the Service does not exist", "services.yaml"),
        (Reach::NoSuchPort, Level::Failed, "the Service has no such port", "services.yaml"),
        (Reach::NoEndpoint, Level::Failed, "no Pod of the Service is ready", "get pods"),
        (Reach::NobodyListens, Level::Warning, "from here was refused", "--keep-webhooks"),
    ];
    for (reach, level, seen, fix) in table {
        check(
            |observed| {
                let lost = WebhookState { reach: Ok(reach), ..webhook() };
                let another = WebhookState { name: "another".to_owned(), ..lost.clone() };
                observed.webhooks = Ok(vec![lost, another]);
            },
            Code::WebhookPointingNowhere,
            level,
            ["machine-api points to Service ns/machine-api-operator-webhook", seen, fix],
        );
    }
    fails(
        |observed| {
            let reach = Ok(Reach::NoEndpoint);
            observed.webhooks = Ok(vec![WebhookState { reach, fails_closed: true, ..webhook() }]);
        },
        Code::WebhookPointingNowhere,
        ["where nobody answers", "objects are refused meanwhile", "get pods"],
    );
    warns(
        |observed| {
            observed.webhooks = Ok(vec![WebhookState { ca_bundle: Vec::new(), ..webhook() }]);
        },
        Code::WebhookWithoutAuthority,
        ["names no authority", "caBundle is empty", "cainjector"],
    );
    let none = Observed { webhooks: Ok(Vec::new()), ..healthy() };
    assert_eq!(examine(&none).level, Level::Ok);
}

#[test]
fn clocks_that_disagree_are_named() {
    let shifted = |seconds: i64| {
        move |observed: &mut Observed| {
            for state in observed.leases.as_mut().unwrap().values_mut() {
                let renewed = state.record.renewed.unwrap();
                let by = SignedDuration::from_secs(seconds);
                state.record.renewed = Some(renewed.checked_add(by).unwrap());
            }
        }
    };
    fails(
        shifted(3 * 3600),
        Code::ClockSkew,
        ["pod-a_1 is 3 hours ahead of the API server's", "renewal of a lease", "chrony"],
    );
    warns(shifted(-45), Code::ClockSkew, ["45 seconds behind", "2026-06-01T11:59:05Z", "chrony"]);
    let mut observed = healthy();
    shifted(8)(&mut observed);
    assert_eq!(examine(&observed).level, Level::Ok);
    fails(
        |observed| {
            let by_it = at("2026-06-01T11:50:00Z");
            observed.clocks.here = Some(Stamp { by_it, by_server: now() });
        },
        Code::ClockSkew,
        ["this machine is 10 minutes behind", "its answer's date", "chrony"],
    );
}

fn leases(observed: &mut Observed) -> &mut std::collections::BTreeMap<String, LeaseState> {
    observed.leases.as_mut().unwrap()
}

#[test]
fn a_second_controller_is_named_with_its_lease() {
    let fresh = at("2026-06-01T11:59:55Z");
    fails(
        |observed| {
            drop(leases(observed).insert(lease::MACHINE_SET.into(), held_by("old_7", fresh)))
        },
        Code::SecondController,
        [
            "cluster-api-provider-machineset-leader is held by old_7",
            "while pod-a_1 holds 4 of the 5",
            "stop old_7",
        ],
    );
    // It holds the first one, and ours waits for it with none.
    fails(
        |observed| leases(observed).retain(|name, _| name == lease::OPERATOR),
        Code::SecondController,
        [
            "lease machine-api-operator is held by pod-a_1, which is another controller",
            "nobody holds cluster-api-provider-machineset-leader",
            "stop pod-a_1",
        ],
    );
    // One that is gone holds nothing.
    let long_ago = at("2026-06-01T11:00:00Z");
    let mut observed = healthy();
    leases(&mut observed).insert("another".to_owned(), held_by("old_7", fresh));
    assert_eq!(examine(&observed).level, Level::Ok, "a lease that is not ours");
    leases(&mut observed).insert(lease::AWS.into(), held_by("old_7", long_ago));
    let report = examine(&observed);
    let found: Vec<(Code, Level)> = report.findings().map(|one| (one.code, one.level)).collect();
    assert_eq!(found, [(Code::OperatorNotRunning, Level::Warning)], "ours is about to take it");
}

#[test]
fn without_an_operator_its_words_are_called_old() {
    let gone = |observed: &mut Observed| {
        for state in leases(observed).values_mut() {
            *state = held_by("pod-a_1", at("2026-06-01T11:00:00Z"));
        }
    };
    fails(
        gone,
        Code::OperatorNotRunning,
        [
            "no operator runs",
            "last renewed at 2026-06-01T11:00:00Z",
            "kubectl -n ns describe deployment",
        ],
    );
    let released = |observed: &mut Observed| {
        for state in leases(observed).values_mut() {
            state.record.holder.clear();
        }
        observed.deployed = None;
    };
    fails(
        released,
        Code::OperatorNotRunning,
        ["no operator runs", "there is no Deployment of it in ns", "docs/operate/install.md"],
    );
    let mut observed = healthy();
    gone(&mut observed);
    with_problem(&mut observed, ProblemKind::CredentialsRefused, "AuthFailure");
    let report = examine(&observed);
    let refused = report.findings().find(|one| one.code == Code::WrongCredentials).unwrap();
    assert!(refused.seen.contains("nobody keeps true"), "{refused:#?}");
    let endpoints =
        report.checks.iter().find(|check| check.name == super::cloud::ENDPOINTS).unwrap();
    assert_eq!(endpoints.says, "every cloud answers, by the last words of an operator");
}

#[test]
fn what_the_operator_says_besides_is_repeated() {
    let condition = |type_: &str, status: &str| Condition {
        last_transition_time: Time(now()),
        message: "its words".to_owned(),
        observed_generation: None,
        reason: "Reason".to_owned(),
        status: status.to_owned(),
        type_: type_.to_owned(),
    };
    let says = |one: Condition| {
        move |observed: &mut Observed| {
            observed.status.as_mut().unwrap().as_mut().unwrap().conditions = vec![one];
        }
    };
    warns(
        says(condition(condition_type::HELD, "True")),
        Code::OperatorNeedsAttention,
        ["the operator says Held: its words", "condition Held", "machinist-operator-hold"],
    );
    warns(
        says(condition(condition_type::CLUSTER_API_LEASE, "False")),
        Code::OperatorNeedsAttention,
        [
            "the operator says ClusterApiLease: its words",
            "condition ClusterApiLease",
            "migrate-cluster-api.md",
        ],
    );
    for quiet in [
        condition(condition_type::HELD, "False"),
        // The checks of the cloud tell of this.
        condition(condition_type::CLOUD_REACHABLE, "False"),
    ] {
        let mut observed = healthy();
        says(quiet)(&mut observed);
        assert_eq!(examine(&observed).level, Level::Ok);
    }
}

#[test]
fn quotas_that_are_used_up_are_named() {
    warns(
        |observed| {
            observed.quotas = Ok(vec![FullQuota {
                name: "small".into(),
                resource: "count/machines".into(),
                used: "3".into(),
                hard: "3".into(),
            }]);
        },
        Code::QuotaUsedUp,
        ["small leaves no room for count/machines", "3 of 3", "edit resourcequota small"],
    );
    fails(
        |observed| {
            let (object, message) = ("machine a".to_owned(), "VcpuLimitExceeded: 32".to_owned());
            observed.said_quotas = Ok(vec![SaidQuota { object, message }]);
        },
        Code::QuotaUsedUp,
        ["keeps machine a from running", "VcpuLimitExceeded", "higher quota"],
    );
}

#[test]
fn what_could_not_be_looked_at_is_never_called_well() {
    let why = || "you may not list them".to_owned();
    let hidden = Observed {
        definitions: healthy()
            .definitions
            .into_iter()
            .map(|one| DefinitionState { installed: Err(why()), ..one })
            .collect(),
        own_rights: Err(why()),
        rights: Err(why()),
        leases: Err(why()),
        status: Err(why()),
        webhooks: Err(why()),
        quotas: Err(why()),
        clocks: Clocks::default(),
        ..healthy()
    };
    let report = examine(&hidden);
    assert_eq!(report.level, Level::Warning);
    let well: Vec<&str> = report
        .checks
        .iter()
        .filter(|check| check.level == Level::Ok)
        .map(|check| check.name)
        .collect();
    assert_eq!(well, [clocks::NAME], "which says that there was none to compare");
    assert!(report.findings().all(|finding| finding.code == Code::NotChecked));
}

#[test]
fn codes_have_one_name_each_on_the_wire_and_on_the_screen() {
    let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(names.len(), Code::ALL.len());
    for code in Code::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
    for level in [Level::Ok, Level::Warning, Level::Failed] {
        assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
    }
}
