//! Which Node may serve under which names?

use super::super::{Names, request};
use super::*;

fn full() -> Draft {
    Draft::of_node(NAME).dns(NAME).ip("10.0.1.7").ip("fd00::7")
}

fn current(draft: &Draft) -> CurrentCertificate {
    CurrentCertificate::Trusted(request::parse(draft.pem().as_bytes()).unwrap())
}

#[test]
fn names_that_are_all_the_machines_are_approved() {
    let table = [
        ("all", full()),
        ("in capitals", Draft::of_node(NAME).dns("IP-10-0-1-7.EC2.INTERNAL")),
        ("public", Draft::of_node(NAME).dns("ec2-52-1-2-3.amazonaws.com").ip("52.1.2.3")),
        ("mapped into IPv6", Draft::of_node(NAME).ip("::ffff:10.0.1.7")),
    ];
    for (name, draft) in table {
        let answer = decided(&serving_request(&draft), &[joined("m")], Some(&node()));
        assert!(is_approved(&answer), "{name}: {:?}", answer.verdict);
        assert_eq!(answer.verdict.reason(), "AddressesOfMachine");
        assert!(matches!(answer.decision.actions.as_slice(), [Action::Approve { .. }]));
        assert!(!answer.wants_current_certificate);
    }
    for pem in [drafts::BY_GO, drafts::SERVING_BY_OPENSSL] {
        let mut request = serving_request(&full());
        request.spec.request = k8s_openapi::ByteString(pem.as_bytes().to_vec());
        assert!(is_approved(&decided(&request, &[joined("m")], Some(&node()))));
    }
}

#[test]
fn a_request_with_one_thing_wrong_in_itself_is_refused_for_good() {
    let spec = |change: &dyn Fn(
        &mut k8s_openapi::api::certificates::v1::CertificateSigningRequestSpec,
    )| {
        let mut request = serving_request(&full());
        change(&mut request.spec);
        request
    };
    let words =
        |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let draft = |draft: Draft| serving_request(&draft);
    let mut other_groups = full();
    other_groups.subject[0].2 = b"system:masters".to_vec();
    let table = [
        ("no node", spec(&|spec| spec.username = Some("eve".to_owned())), "RequesterNotAllowed"),
        (
            "the bootstrapper",
            spec(&|spec| spec.username = Some(BOOTSTRAPPER.to_owned())),
            "RequesterNotAllowed",
        ),
        (
            "a group too few",
            spec(&|spec| spec.groups = words(&["system:authenticated"])),
            "WrongGroups",
        ),
        (
            "a group too many",
            spec(&|spec| spec.groups = words(&["system:authenticated", "system:nodes", "x"])),
            "WrongGroups",
        ),
        (
            "a client's",
            spec(&|spec| spec.usages = words(&["digital signature", "client auth"])),
            "WrongUsages",
        ),
        ("no usages", spec(&|spec| spec.usages = None), "WrongUsages"),
        ("another node", draft(Draft::of_node("other").dns(NAME)), "WrongCommonName"),
        ("no node's name", draft(Draft::of("x", &["system:nodes"]).dns(NAME)), "WrongCommonName"),
        ("another group", draft(other_groups), "WrongOrganization"),
        ("no names", draft(Draft::of_node(NAME)), "NoNames"),
        ("a wildcard", draft(full().dns("*.ec2.internal")), "WildcardName"),
        ("an email address", draft(full().name(1, b"a@b")), "ForbiddenNames"),
        ("a URI", draft(full().name(6, b"https://x")), "ForbiddenNames"),
        ("a registered id", draft(full().name(8, &[0x2a, 0x03])), "Unreadable"),
        ("nonsense", spec(&|spec| spec.request.0 = vec![0xff]), "Unreadable"),
    ];
    for (name, request, reason) in table {
        let answer = decided_with(&request, &[joined("m")], Some(&node()), current(&full()));
        assert_refused(name, &answer, reason, true);
    }
    let with_encipherment = words(&["server auth", "key encipherment", "digital signature"]);
    let request = spec(&|spec| spec.usages = with_encipherment.clone());
    assert!(is_approved(&decided(&request, &[joined("m")], Some(&node()))));
}

#[test]
fn a_machine_that_does_not_speak_for_it_is_waited_for() {
    let changed = |change: &dyn Fn(&mut Machine)| {
        let mut machine = joined("m");
        change(&mut machine);
        vec![machine]
    };
    let of_machine = |machines| (full(), machines);
    let table = [
        ("none", of_machine(vec![]), "NoMachine"),
        ("not linked yet", of_machine(vec![machine("m")]), "NoMachine"),
        ("two linked", of_machine(vec![joined("m"), joined("n")]), "AmbiguousMachine"),
        (
            "linked to a node before",
            of_machine(changed(&|machine| {
                machine.status.as_mut().unwrap().node_ref.as_mut().unwrap().uid =
                    Some("earlier".to_owned());
            })),
            "AnotherNode",
        ),
        (
            "no addresses yet",
            of_machine(changed(&|machine| machine.status.as_mut().unwrap().addresses.clear())),
            "AddressesUnknown",
        ),
        (
            "a host too many",
            (full().dns("api.example.com"), vec![joined("m")]),
            "NamesNotOfMachine",
        ),
        ("an address too many", (full().ip("10.0.0.1"), vec![joined("m")]), "NamesNotOfMachine"),
        ("an address as a name", (full().dns("10.0.1.7"), vec![joined("m")]), "NamesNotOfMachine"),
        ("a suffix", (full().dns("ec2.internal"), vec![joined("m")]), "NamesNotOfMachine"),
    ];
    for (name, (draft, machines), reason) in table {
        let untrusted = CurrentCertificate::Untrusted("connection refused".to_owned());
        let answer = decided_with(&serving_request(&draft), &machines, Some(&node()), untrusted);
        assert_refused(name, &answer, reason, false);
    }
}

#[test]
fn a_renewal_of_what_the_node_serves_with_is_approved() {
    // An address that the Machine does not have: the network was changed, or there is no Machine.
    let draft = full().ip("10.9.9.9");
    let request = serving_request(&draft);
    let asked = decided(&request, &[joined("m")], Some(&node()));
    assert!(asked.wants_current_certificate && !is_approved(&asked));
    let without_node = decided(&request, &[joined("m")], None);
    assert!(!without_node.wants_current_certificate, "nobody could be asked");

    for machines in [vec![joined("m")], vec![]] {
        let answer = decided_with(&request, &machines, Some(&node()), current(&draft));
        assert!(is_approved(&answer));
        assert_eq!(answer.verdict.reason(), "Renewal");
    }
    let mut other_name = draft.clone();
    other_name.subject[1].2 = b"system:node:other".to_vec();
    for (name, served) in [
        ("fewer names", current(&full())),
        ("more names", current(&draft.clone().dns("x"))),
        ("other names", current(&Draft::of_node(NAME).dns("x"))),
        ("another node", current(&other_name)),
        ("not trusted", CurrentCertificate::Untrusted("unknown issuer".to_owned())),
    ] {
        let answer = decided_with(&request, &[joined("m")], Some(&node()), served);
        assert_refused(name, &answer, "NamesNotOfMachine", false);
    }
}

#[test]
fn the_certificate_that_is_served_is_read_like_a_request() {
    let (_, pem) =
        x509_parser::pem::parse_x509_pem(drafts::CERTIFICATE_BY_OPENSSL.as_bytes()).unwrap();
    let served = request::parse_certificate(&pem.contents).unwrap();
    assert_ne!(served.names, Names::default());
    let current = CurrentCertificate::Trusted(served);
    assert!(is_approved(&decided_with(&serving_request(&full()), &[], Some(&node()), current)));
}

#[test]
fn a_machine_on_its_way_out_keeps_its_server() {
    let mut machine = joined("m");
    machine.metadata.deletion_timestamp = machine.metadata.creation_timestamp.clone();
    assert!(is_approved(&decided(&serving_request(&full()), &[machine], Some(&node()))));
}

#[test]
fn a_failed_machine_does_not_stand_in_the_way_of_the_one_that_has_its_node_now() {
    let mut failed = joined("old");
    failed.status.as_mut().unwrap().phase = Some("Failed".to_owned());
    let request = serving_request(&Draft::of_node(NAME).dns(NAME));
    assert!(is_approved(&decided(&request, &[failed, joined("new")], Some(&node()))));
}
