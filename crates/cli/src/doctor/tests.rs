//! Does a person read at once what is wrong and what to do?

use machinist_api::names::lease;
use machinist_core::doctor::{
    Clocks, Code, Definition, DefinitionState, Deployed, LeaseState, Observed, OwnRights, Reach,
    Right, Rights, Stamp, WebhookState, examine,
};
use machinist_core::lease::LeaseRecord;
use machinist_core::operator_status::{CloudProblem, CloudState, OperatorStatus, ProblemKind};

use super::*;
use crate::testing::{at, golden, longest_line};

fn lease_of(holder: &str) -> LeaseState {
    let renewed = at("2026-06-01T11:59:50Z");
    let record = LeaseRecord {
        holder: holder.to_owned(),
        duration_seconds: 120,
        acquired: Some(at("2026-05-01T00:00:00Z")),
        renewed: Some(renewed),
        transitions: 1,
    };
    LeaseState { record, written: Some(renewed) }
}

fn well() -> Observed {
    let now = at("2026-06-01T12:00:00Z");
    let cloud = CloudState {
        name: "demo-x7k2p in eu-west-1 by openshift-machine-api/aws-cloud-credentials".to_owned(),
        endpoint: None,
        problem: None,
    };
    let definitions = machinist_api::crd::all().into_iter().map(|shipped| DefinitionState {
        installed: Ok(Definition::Installed(Box::new(shipped.clone()))),
        shipped,
    });
    Observed {
        namespace: "openshift-machine-api".to_owned(),
        now,
        definitions: definitions.collect(),
        own_rights: Ok(OwnRights { asked: 6, missing: Vec::new() }),
        rights: Ok(Rights {
            user: "system:serviceaccount:openshift-machine-api:machinist-operator".to_owned(),
            asked: 150,
            missing: Vec::new(),
        }),
        leases: Ok(lease::ALL
            .map(|name| (name.to_owned(), lease_of("machinist-operator-6f7d8-x2x4p_91f3")))
            .into()),
        deployed: Some(Deployed { name: "machinist-operator".to_owned(), wanted: 2, available: 2 }),
        status: Ok(Some(OperatorStatus { clouds: vec![cloud], ..OperatorStatus::default() })),
        clocks: Clocks { here: Some(Stamp { by_it: now, by_server: now }) },
        webhooks: Ok(Vec::new()),
        serving_certificate: Ok(None),
        quotas: Ok(Vec::new()),
        said_quotas: Ok(Vec::new()),
    }
}

/// The ten things that go wrong in practice, at once.
fn unwell() -> Observed {
    let mut observed = well();
    for state in &mut observed.definitions {
        match state.shipped.spec.names.plural.as_str() {
            "machinemaintenances" => state.installed = Ok(Definition::Missing),
            "maintenancepolicies" => {
                let mut old = state.shipped.clone();
                old.spec.versions[0].name = "v1alpha0".to_owned();
                state.installed = Ok(Definition::Installed(Box::new(old)));
            }
            _ => {}
        }
    }
    let right = |verb: &str, resource: &str| Right {
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        ..Right::default()
    };
    observed.rights.as_mut().unwrap().missing = vec![right("patch", "nodes")];
    let leases = observed.leases.as_mut().unwrap();
    let mut old = lease_of("machine-api-controllers-5c6b7-qqz8n_4e1a");
    old.record.renewed = Some(at("2026-06-01T09:59:50Z"));
    leases.insert(lease::MACHINE_SET.to_owned(), old);
    let cloud = |name: &str, endpoint: Option<&str>, kind, message: &str| CloudState {
        name: format!("demo-x7k2p in {name}"),
        endpoint: endpoint.map(str::to_owned),
        problem: Some(CloudProblem { kind, message: message.to_owned() }),
    };
    let status = observed.status.as_mut().unwrap().as_mut().unwrap();
    status.clouds = vec![
        cloud(
            "eu-west-1 by openshift-machine-api/aws-cloud-credentials",
            None,
            ProblemKind::CredentialsRefused,
            "failed to list instances: AuthFailure: AWS was not able to validate the provided access \
             credentials",
        ),
        cloud(
            "eu-west-2 by openshift-machine-api/others",
            Some("https://ec2.internal.example"),
            ProblemKind::Unreachable,
            "failed to list instances: dispatch failure: tcp connect error: Connection refused",
        ),
    ];
    status.missing_permissions = vec!["ec2:StartInstances".to_owned()];
    observed.webhooks = Ok(vec![WebhookState {
        configuration: "ValidatingWebhookConfiguration machine-api".to_owned(),
        name: "validation.machine.machine.openshift.io".to_owned(),
        target: "Service openshift-machine-api/machine-api-operator-webhook".to_owned(),
        reach: Ok(Reach::NoSuchService),
        ca_bundle: include_bytes!("../../testdata/doctor/expired.pem").to_vec(),
        fails_closed: false,
    }]);
    observed
}

#[test]
fn a_healthy_cluster_is_a_short_table() {
    let report = examine(&well());
    golden("../doctor/well.txt", &text(&report, Output::Table, Some(100)).unwrap());
    assert_eq!(exit_code(&report), ExitCode::SUCCESS);
    assert_eq!(text(&report, Output::Name, None).unwrap(), "");
}

#[test]
fn what_is_wrong_is_below_its_check_with_what_to_fix() {
    let report = examine(&unwell());
    golden("../doctor/unwell.txt", &text(&report, Output::Table, Some(100)).unwrap());
    golden("../doctor/unwell.json", &text(&report, Output::Json, None).unwrap());
    golden("../doctor/unwell.yaml", &text(&report, Output::Yaml, None).unwrap());
    golden("../doctor/unwell-names.txt", &text(&report, Output::Name, None).unwrap());
    assert_eq!(exit_code(&report), ExitCode::FAILURE);
    let named: Vec<&str> = report.findings().map(|finding| finding.code.as_str()).collect();
    for code in [
        Code::MissingCrd,
        Code::OldCrdVersion,
        Code::MissingRbacVerb,
        Code::WrongCredentials,
        Code::MissingIamAction,
        Code::UnreachableEndpoint,
        Code::ExpiredWebhookCertificate,
        Code::WebhookPointingNowhere,
        Code::ClockSkew,
        Code::SecondController,
    ] {
        assert!(named.contains(&code.as_str()), "{}: {named:?}", code.as_str());
    }
}

#[test]
fn a_warning_is_no_failure() {
    let mut observed = well();
    observed.own_rights = Err("you may not ask".to_owned());
    let report = examine(&observed);
    assert_eq!(report.level, Level::Warning);
    assert_eq!(exit_code(&report), ExitCode::SUCCESS);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let report = examine(&unwell());
    for width in [40, 60, 80, 120] {
        let (longest, line) = longest_line(&text(&report, Output::Table, Some(width)).unwrap());
        assert!(longest <= width, "{width}: {line}");
    }
    let wide = text(&report, Output::Wide, Some(40)).unwrap();
    assert!(!wide.contains('…'), "{wide}");
}

#[test]
fn every_code_has_its_paragraph_in_the_documentation() {
    let page = include_str!("../../../../docs/operate/doctor.md");
    for code in Code::ALL {
        let title = format!("`{}`", code.as_str());
        assert!(page.contains(&title), "docs/operate/doctor.md does not tell of {title}");
    }
}
