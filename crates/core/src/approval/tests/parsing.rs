//! Is a request read as it was written, and is everything unusual refused?

use std::{collections::BTreeSet, net::IpAddr};

use super::drafts::{
    self, BY_GO, CERTIFICATE_BY_OPENSSL, CLIENT_BY_OPENSSL, Draft, ORGANIZATIONAL_UNIT,
    SERVING_BY_OPENSSL,
};
use super::{super::request::*, NAME};

fn node_certificate(with_names: bool) -> RequestedCertificate {
    let mut certificate = RequestedCertificate {
        common_name: format!("system:node:{NAME}"),
        organizations: BTreeSet::from(["system:nodes".to_owned()]),
        ..RequestedCertificate::default()
    };
    if with_names {
        let addresses: [IpAddr; 2] = ["10.0.1.7".parse().unwrap(), "fd00::7".parse().unwrap()];
        certificate.names =
            Names { dns: BTreeSet::from([NAME.to_owned()]), ip: BTreeSet::from(addresses) };
    }
    certificate
}

/// What was read, whatever the key; each has one.
fn without_key(read: Result<RequestedCertificate, Unreadable>) -> RequestedCertificate {
    let read = read.unwrap();
    assert_eq!(read.key.len(), 64, "{}", read.key);
    RequestedCertificate { key: String::new(), ..read }
}

#[test]
fn requests_of_other_programs_are_read() {
    for (pem, with_names) in [(BY_GO, true), (SERVING_BY_OPENSSL, true), (CLIENT_BY_OPENSSL, false)]
    {
        assert_eq!(without_key(parse(pem.as_bytes())), node_certificate(with_names));
        let with_returns = pem.replace('\n', "\r\n");
        assert_eq!(without_key(parse(with_returns.as_bytes())), node_certificate(with_names));
    }
    let (_, pem) = x509_parser::pem::parse_x509_pem(CERTIFICATE_BY_OPENSSL.as_bytes()).unwrap();
    assert_eq!(without_key(parse_certificate(&pem.contents)), node_certificate(true));
    let key = |pem: &str| parse(pem.as_bytes()).unwrap().key;
    assert_eq!(key(CLIENT_BY_OPENSSL), key(SERVING_BY_OPENSSL), "one key, two requests");
    assert_eq!(key(CLIENT_BY_OPENSSL), parse_certificate(&pem.contents).unwrap().key);
    assert_ne!(key(CLIENT_BY_OPENSSL), key(BY_GO));
    assert_eq!(parse_certificate(&pem.contents[1..]), Err(Unreadable::NotDer));
}

#[test]
fn a_request_made_by_hand_is_read_too() {
    let draft = Draft::of_node(NAME).dns("IP-10-0-1-7.ec2.internal").ip("10.0.1.7").ip("fd00::7");
    assert_eq!(without_key(parse(draft.pem().as_bytes())), node_certificate(true));
    let mapped = Draft::of_node(NAME).ip("::ffff:10.0.1.7");
    let read = parse(mapped.pem().as_bytes()).unwrap();
    assert_eq!(read.names.ip, BTreeSet::from(["10.0.1.7".parse().unwrap()]));
    let others = Draft::of_node(NAME).name(1, b"a@b").name(6, b"https://x");
    assert_eq!(parse(others.pem().as_bytes()).unwrap().other_names.len(), 2);
}

#[test]
fn whatever_two_readers_could_see_differently_is_refused() {
    let plain = || Draft::of_node(NAME).dns(NAME);
    let with = |change: &dyn Fn(&mut Draft)| {
        let mut draft = plain();
        change(&mut draft);
        draft.pem()
    };
    let names_of_another = || drafts::alternative_names("another");
    let table = [
        (
            "two common names",
            with(&|draft| draft.subject.push(draft.subject[1].clone())),
            Unreadable::Subject,
        ),
        ("no common name", with(&|draft| drop(draft.subject.pop())), Unreadable::Subject),
        (
            "an organizational unit",
            with(&|draft| draft.subject.push((ORGANIZATIONAL_UNIT, 0x0c, b"x".to_vec()))),
            Unreadable::Subject,
        ),
        ("a common name in UTF-16", with(&|draft| draft.subject[1].1 = 0x1e), Unreadable::Subject),
        (
            "bytes that are no text",
            with(&|draft| draft.subject[1].2 = vec![0xff]),
            Unreadable::Subject,
        ),
        // Go skips a string of a tag that it does not know; the parser below us looks past the class.
        (
            "a string of another class",
            with(&|draft| draft.subject[1].1 = 0x4c),
            Unreadable::NotPlain,
        ),
        (
            "alternative names twice",
            with(&|draft| draft.extensions.push(names_of_another())),
            Unreadable::Extensions,
        ),
        (
            "another extension",
            with(&|draft| draft.extensions.push(drafts::key_usage())),
            Unreadable::Extensions,
        ),
        (
            "another attribute",
            with(&|draft| {
                let value = drafts::sequence(&[names_of_another()]);
                draft.attributes.push(drafts::attribute(&[value]));
            }),
            Unreadable::Extensions,
        ),
        (
            "two values in one attribute",
            with(&|draft| {
                draft.names = None;
                let value = |name| drafts::sequence(&[drafts::alternative_names(name)]);
                draft.attributes.push(drafts::attribute(&[value(NAME), value("another")]));
            }),
            Unreadable::NotPlain,
        ),
        ("an empty name", plain().dns("").pem(), Unreadable::Extensions),
        ("a name that is not ASCII", plain().dns("höst").pem(), Unreadable::Extensions),
        ("an address of three bytes", plain().name(7, &[1, 2, 3]).pem(), Unreadable::Extensions),
        ("a name of no kind", plain().name(9, b"x").pem(), Unreadable::Extensions),
        (
            "something behind it",
            drafts::pem(&[plain().der(), vec![0]].concat()),
            Unreadable::NotDer,
        ),
        ("cut off", drafts::pem(&plain().der()[..60]), Unreadable::NotDer),
        ("two blocks", plain().pem() + &plain().pem(), Unreadable::NotPem),
        ("something before", format!("x\n{}", plain().pem()), Unreadable::NotPem),
        ("something after", format!("{}x\n", plain().pem()), Unreadable::NotPem),
        ("headers", plain().pem().replacen("-----\n", "-----\nA: b\n\n", 1), Unreadable::NotPem),
        ("spaces", plain().pem().replacen("\nM", "\n M", 1), Unreadable::NotPem),
        ("a certificate", CERTIFICATE_BY_OPENSSL.to_owned(), Unreadable::NotPem),
        ("nothing", String::new(), Unreadable::NotPem),
        ("very much", "A".repeat(70_000), Unreadable::TooLarge),
    ];
    for (name, pem, expected) in table {
        assert_eq!(parse(pem.as_bytes()), Err(expected), "{name}");
    }
    assert!(parse(plain().pem().as_bytes()).is_ok());
}
