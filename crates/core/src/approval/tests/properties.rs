//! What holds whatever the bytes are.

use proptest::prelude::*;

use super::super::request::{parse, parse_certificate};
use super::*;

fn names() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    proptest::collection::vec((0_u8..10, proptest::collection::vec(any::<u8>(), 0..20)), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        parse(&bytes).ok();
        parse(drafts::pem(&bytes).as_bytes()).ok();
        parse_certificate(&bytes).ok();
    }

    #[test]
    fn no_damage_panics_and_none_makes_a_stranger_a_node(
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<proptest::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut der = Draft::of_node(NAME).dns(NAME).ip("10.0.1.7").der();
        for (index, value) in &flips {
            let at = index.index(der.len());
            der[at] = *value;
        }
        if is_cut {
            der.truncate(cut.index(der.len()));
        }
        let mut request = serving_request(&Draft::of_node(NAME));
        request.spec.request = k8s_openapi::ByteString(drafts::pem(&der).into_bytes());
        let answer = decided(&request, &[joined("m")], Some(&node()));
        if is_approved(&answer) {
            let read = parse(drafts::pem(&der).as_bytes()).unwrap();
            prop_assert_eq!(read.common_name, format!("system:node:{NAME}"));
            prop_assert!(read.other_names.is_empty());
            let known = [NAME, "ec2-52-1-2-3.amazonaws.com"];
            prop_assert!(read.names.dns.iter().all(|name| known.contains(&name.as_str())));
        }
        parse_certificate(&der).ok();
    }

    #[test]
    fn only_names_of_the_machine_are_ever_approved(
        names in names(),
        good in any::<bool>(),
    ) {
        let mut draft = Draft::of_node(NAME);
        if good {
            draft = draft.dns(NAME);
        }
        for (tag, content) in &names {
            draft = draft.name(*tag, content);
        }
        let answer = decided(&serving_request(&draft), &[joined("m")], Some(&node()));
        prop_assert_eq!(is_approved(&answer), good && names.is_empty());
    }

    #[test]
    fn untrusted_text_stays_on_one_line_and_short(
        user in ".{0,300}", name in ".{0,300}", host in "[ -~]{1,100}",
    ) {
        let mut request = serving_request(&Draft::of_node(&name).dns(&host));
        for username in [user, format!("system:node:{name}")] {
            request.spec.username = Some(username);
            let answer = decided(&request, &[joined("m")], Some(&node()));
            for told in &answer.decision.announcements {
                let is_plain = !told.message.contains(['\n', '\r', '\u{1b}']);
                prop_assert!(is_plain && told.message.len() < 2048, "{:?}", told.message);
            }
        }
    }
}
