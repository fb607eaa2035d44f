//! Who becomes a Node?

use serde_json::json;

use super::super::{Bootstrapper, reading::Reading};
use super::*;

fn good() -> CertificateSigningRequest {
    client_request(&Draft::of_node(NAME))
}

#[test]
fn a_new_machine_gets_its_certificate_and_is_bound_to_the_request_first() {
    let answer = decided(&good(), &[machine("m"), joined("other")][..1], None);
    assert!(is_approved(&answer));
    let [Action::BindMachine { name, uid, resource_version, annotation, value, .. }, approve] =
        answer.decision.actions.as_slice()
    else {
        panic!("{:?}", answer.decision.actions)
    };
    assert_eq!((name.as_str(), uid.as_str(), resource_version.as_str()), ("m", "uid-m", "9"));
    assert_eq!(
        (*annotation, value.as_str()),
        (
            "machinist.dev/client-certificate-request",
            &*format!("uid-m/csr-uid/{}", key_of(&good()))
        )
    );
    let Action::Approve { name, resource_version, message, .. } = approve else { panic!() };
    assert_eq!((name.as_str(), resource_version.as_str()), ("csr-1", "5"));
    assert_eq!(message, "This CSR was approved by the Node CSR Approver: machine ns/m is new");

    // The binding was stored and the approval was not: it is repeated.
    let mut bound = machine("m");
    bound.metadata.annotations = serde_json::from_value(
        json!({"machinist.dev/client-certificate-request": "uid-m/csr-uid"}),
    )
    .unwrap();
    let answer = decided(&good(), &[bound], None);
    assert!(matches!(answer.decision.actions.as_slice(), [Action::Approve { .. }]));
    // Made out of the text of another Machine, which was bound to another request.
    let mut copied = machine("m");
    copied.metadata.annotations =
        serde_json::from_value(json!({"machinist.dev/client-certificate-request": "uid-n/other"}))
            .unwrap();
    let answer = decided(&good(), &[copied], None);
    assert!(matches!(answer.decision.actions.as_slice(), [Action::BindMachine { .. }, _]));
}

fn key_of(request: &CertificateSigningRequest) -> String {
    super::super::request::parse(&request.spec.request.0).unwrap().key
}

/// A Machine with this binding.
fn bound(binding: &str) -> Machine {
    let mut machine = machine("m");
    machine.metadata.annotations =
        serde_json::from_value(json!({"machinist.dev/client-certificate-request": binding}))
            .unwrap();
    machine
}

/// What it is decided when these requests were denied or failed.
fn decided_when_void(machine: &Machine, void: &[&str]) -> ApprovalDecision {
    let request = good();
    let observed = Observed {
        request: &request,
        machines: vec![machine],
        node: None,
        current: CurrentCertificate::NotAsked,
        void_requests: void.iter().copied().collect(),
        limits: ROOM,
        told: None,
    };
    decide(&observed, &Policy::default(), now())
}

#[test]
fn a_machine_whose_request_came_to_nothing_may_ask_again() {
    let own = key_of(&good());
    let table = [
        // The kubelet keeps its key, whatever became of the request that it was in.
        ("the same key", format!("uid-m/earlier/{own}"), &[][..], true),
        ("another key", "uid-m/earlier/other".to_owned(), &[][..], false),
        ("no key", "uid-m/earlier".to_owned(), &[][..], false),
        ("an empty key", "uid-m/earlier/".to_owned(), &[][..], false),
        ("another key, denied", "uid-m/earlier/other".to_owned(), &["earlier"][..], true),
        ("no key, denied", "uid-m/earlier".to_owned(), &["earlier"][..], true),
        ("another was denied", "uid-m/earlier/other".to_owned(), &["others"][..], false),
    ];
    for (name, binding, void, expected) in table {
        let answer = decided_when_void(&bound(&binding), void);
        if expected {
            assert!(is_approved(&answer), "{name}");
            let [Action::BindMachine { value, .. }, _] = answer.decision.actions.as_slice() else {
                panic!("{name}: {answer:?}")
            };
            assert_eq!(*value, format!("uid-m/csr-uid/{own}"), "{name}: the newest is bound");
        } else {
            assert_refused(name, &answer, "AnotherRequestApproved", false);
        }
        // A machine that has joined never asks again, with whatever key.
        let mut machine = bound(&binding);
        machine.status = joined("m").status;
        let answer = decided_when_void(&machine, void);
        assert_refused(name, &answer, "MachineHasNode", false);
    }
}

#[test]
fn only_what_can_never_be_issued_is_void() {
    let table = [
        (json!({}), false),
        (json!({"conditions": [{"type": "Approved", "status": "True"}]}), false),
        (json!({"conditions": [{"type": "Denied", "status": "True"}]}), true),
        (json!({"conditions": [{"type": "Failed", "status": "True"}]}), true),
        (json!({"conditions": [{"type": "Failed", "status": "False"}]}), false),
        (
            json!({"conditions": [
                {"type": "Approved", "status": "True"}, {"type": "Failed", "status": "True"},
            ]}),
            true,
        ),
        (
            json!({"certificate": "Yw==", "conditions": [{"type": "Failed", "status": "True"}]}),
            false,
        ),
    ];
    for (status, expected) in table {
        let mut request = good();
        request.status = serde_json::from_value(status.clone()).unwrap();
        assert_eq!(super::super::is_void(&request), expected, "{status}");
    }
    assert!(!super::super::is_void(&good()));
}

#[test]
fn a_request_with_one_thing_wrong_in_itself_is_refused_for_good() {
    let spec = |change: &dyn Fn(
        &mut k8s_openapi::api::certificates::v1::CertificateSigningRequestSpec,
    )| {
        let mut request = good();
        change(&mut request.spec);
        request
    };
    let words =
        |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let draft = |draft: Draft| client_request(&draft);
    let table = [
        (
            "another user",
            spec(&|spec| spec.username = Some("eve".to_owned())),
            "RequesterNotAllowed",
        ),
        ("nobody", spec(&|spec| spec.username = None), "RequesterNotAllowed"),
        (
            "a like-named account",
            spec(&|spec| spec.username = Some(format!("{BOOTSTRAPPER}2"))),
            "RequesterNotAllowed",
        ),
        (
            "a bootstrap token",
            spec(&|spec| spec.username = Some("system:bootstrap:abcdef".to_owned())),
            "RequesterNotAllowed",
        ),
        ("no groups", spec(&|spec| spec.groups = None), "WrongGroups"),
        ("a group too few", spec(&|spec| spec.groups.as_mut().unwrap().truncate(2)), "WrongGroups"),
        (
            "a group too many",
            spec(&|spec| spec.groups.as_mut().unwrap().push("system:masters".to_owned())),
            "WrongGroups",
        ),
        ("no usages", spec(&|spec| spec.usages = None), "WrongUsages"),
        (
            "a server's",
            spec(&|spec| spec.usages = words(&["digital signature", "server auth"])),
            "WrongUsages",
        ),
        (
            "both",
            spec(&|spec| spec.usages = words(&["digital signature", "server auth", "client auth"])),
            "WrongUsages",
        ),
        ("no signature", spec(&|spec| spec.usages = words(&["client auth"])), "WrongUsages"),
        ("nonsense", spec(&|spec| spec.request.0 = b"nonsense".to_vec()), "Unreadable"),
        ("no node", draft(Draft::of("admin", &["system:nodes"])), "WrongCommonName"),
        ("a namesake", draft(Draft::of("System:Node:x", &["system:nodes"])), "WrongCommonName"),
        ("no group", draft(Draft::of("system:node:x", &[])), "WrongOrganization"),
        (
            "another group",
            draft(Draft::of("system:node:x", &["system:masters"])),
            "WrongOrganization",
        ),
        (
            "a second group",
            draft(Draft::of("system:node:x", &["system:nodes", "system:masters"])),
            "WrongOrganization",
        ),
        ("an empty name", draft(Draft::of_node("")), "InvalidNodeName"),
        ("a name in capitals", draft(Draft::of_node("HOST")), "InvalidNodeName"),
        ("a name with a line end", draft(Draft::of_node("host\nx")), "InvalidNodeName"),
        ("a name with an empty part", draft(Draft::of_node("a..b")), "InvalidNodeName"),
        ("a long name", draft(Draft::of_node(&"a".repeat(254))), "InvalidNodeName"),
        ("a host name", draft(Draft::of_node(NAME).dns(NAME)), "UnexpectedNames"),
        ("an address", draft(Draft::of_node(NAME).ip("10.0.1.7")), "UnexpectedNames"),
        ("an email address", draft(Draft::of_node(NAME).name(1, b"a@b")), "ForbiddenNames"),
        ("a URI", draft(Draft::of_node(NAME).name(6, b"https://x")), "ForbiddenNames"),
    ];
    for (name, request, reason) in table {
        assert_refused(name, &decided(&request, &[machine("m")], None), reason, true);
    }
    let without_encipherment =
        spec(&|spec| spec.usages = words(&["client auth", "digital signature"]));
    assert!(is_approved(&decided(&without_encipherment, &[machine("m")], None)));
}

#[test]
fn a_machine_that_does_not_speak_for_it_is_waited_for() {
    let changed = |change: &dyn Fn(&mut Machine)| {
        let mut machine = machine("m");
        change(&mut machine);
        vec![machine]
    };
    let status = |machine: &mut Machine| machine.status.clone().unwrap();
    let created = |seconds: i64| {
        changed(&|machine| {
            machine.metadata.creation_timestamp =
                serde_json::from_value(json!(ago(seconds))).unwrap();
        })
    };
    let table = [
        ("none", vec![], "NoMachine"),
        (
            "no addresses yet",
            changed(&|machine| machine.status.as_mut().unwrap().addresses.clear()),
            "NoMachine",
        ),
        (
            "another name",
            changed(&|machine| {
                machine.status.as_mut().unwrap().addresses[2].address = "x".to_owned()
            }),
            "NoMachine",
        ),
        (
            "the name, but public",
            changed(&|machine| {
                machine.status.as_mut().unwrap().addresses[2].type_ = "ExternalDNS".to_owned();
            }),
            "NoMachine",
        ),
        ("two of a name", vec![machine("m"), machine("n")], "AmbiguousMachine"),
        ("joined before", vec![joined("m")], "MachineHasNode"),
        (
            "going",
            changed(&|machine| {
                machine.metadata.deletion_timestamp = machine.metadata.creation_timestamp.clone();
            }),
            "MachineDeleting",
        ),
        (
            "failed",
            changed(&|machine| {
                let failed = Some("Failed".to_owned());
                machine.status =
                    Some(machinist_api::MachineStatus { phase: failed, ..status(machine) });
            }),
            "MachineFailed",
        ),
        ("made after the request", created(19), "OutsideWindow"),
        ("made just after the request", created(20), "OutsideWindow"),
        ("old", created(7230), "OutsideWindow"),
        (
            "of no known age",
            changed(&|machine| machine.metadata.creation_timestamp = None),
            "OutsideWindow",
        ),
        (
            "bound to another request",
            changed(&|machine| {
                machine.metadata.annotations = serde_json::from_value(
                    json!({"machinist.dev/client-certificate-request": "uid-m/earlier"}),
                )
                .unwrap();
            }),
            "AnotherRequestApproved",
        ),
    ];
    for (name, machines, reason) in table {
        assert_refused(name, &decided(&good(), &machines, None), reason, false);
    }
    for seconds in [21, 7229] {
        assert!(is_approved(&decided(&good(), &created(seconds), None)), "{seconds}");
    }
    // The Machine waited for capacity; its instance is new.
    let launched_late = changed(&|machine| {
        machine.metadata.creation_timestamp = serde_json::from_value(json!(ago(90_000))).unwrap();
        machine.status.as_mut().unwrap().provider_status =
            Some(machinist_api::RawObject::from_value(&json!({"launchTime": ago(100)})).unwrap());
    });
    assert!(is_approved(&decided(&good(), &launched_late, None)));
}

#[test]
fn a_node_that_exists_has_its_certificate() {
    let answer = decided(&good(), &[machine("m")], Some(&node()));
    assert_refused("node", &answer, "NodeExists", false);
    // The Node was deleted, and the old bootstrap credentials are used again.
    assert_refused("replay", &decided(&good(), &[joined("m")], None), "MachineHasNode", false);
}

#[test]
fn what_is_not_ours_or_is_decided_is_left_alone() {
    let changed = |change: &dyn Fn(&mut CertificateSigningRequest)| {
        let mut request = good();
        change(&mut request);
        decided(&request, &[machine("m")], None)
    };
    let condition = |type_: &str| {
        let status = json!({"conditions": [{"type": type_, "status": "True"}]});
        changed(&|request| request.status = Some(serde_json::from_value(status.clone()).unwrap()))
    };
    let table = [
        (
            "another signer",
            changed(&|request| request.spec.signer_name = "example.com/x".to_owned()),
            Verdict::NotOurs,
        ),
        (
            "a node that renews",
            changed(&|request| request.spec.username = Some(format!("system:node:{NAME}"))),
            Verdict::NotOurs,
        ),
        ("approved", condition("Approved"), Verdict::Decided),
        ("denied", condition("Denied"), Verdict::Decided),
        ("failed", condition("Failed"), Verdict::Decided),
    ];
    for (name, answer, expected) in table {
        assert_eq!(answer.verdict, expected, "{name}");
        assert_eq!((answer.decision.actions.len(), answer.decision.announcements.len()), (0, 0));
    }
}

#[test]
fn other_bootstrap_credentials_are_a_matter_of_policy() {
    let policy = Policy { bootstrappers: vec![Bootstrapper::kubeadm_token()] };
    let reading = |username: &str, groups: &[&str]| {
        let mut request = good();
        request.spec.username = Some(username.to_owned());
        request.spec.groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
        super::super::read(&request, &policy)
    };
    let groups = [
        "system:bootstrappers",
        "system:bootstrappers:kubeadm:default-node-token",
        "system:authenticated",
    ];
    let client = Reading::Client { node: NAME.to_owned(), key: key_of(&good()) };
    assert_eq!(reading("system:bootstrap:abc123", &groups), client);
    for bad in
        ["system:bootstrap:", "system:bootstrap:abc1234", "system:bootstrap:ABC123", BOOTSTRAPPER]
    {
        assert_ne!(reading(bad, &groups), client, "{bad}");
    }
    assert_ne!(reading("system:bootstrap:abc123", &groups[..2]), client);
}

/// Seed 16 of the simulator: the address of a terminated instance was given to the next one.
#[test]
fn a_failed_machine_does_not_stand_in_the_way_of_the_next_one_with_its_name() {
    let mut failed = joined("old");
    failed.status.as_mut().unwrap().phase = Some("Failed".to_owned());
    assert!(is_approved(&decided(&good(), &[failed.clone(), machine("new")], None)));
    let alone = decided(&good(), &[failed.clone()], None);
    assert_refused("alone", &alone, "MachineHasNode", false);
    let both = [failed.clone(), failed, machine("new"), machine("newer")];
    assert_refused("two others", &decided(&good(), &both, None), "AmbiguousMachine", false);
}
