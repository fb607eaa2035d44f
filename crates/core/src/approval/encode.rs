//! How a kubelet's request is written in DER: its plain form, out of what was read.

use x509_parser::{
    certification_request::X509CertificationRequestInfo,
    extensions::{GeneralName, SubjectAlternativeName},
    x509::X509Name,
};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const IDENTIFIER: u8 = 0x06;
const OCTETS: u8 = 0x04;
const ATTRIBUTES: u8 = 0xa0;
/// UTF8String, PrintableString and IA5String: what Go and OpenSSL write.
const STRINGS: [u32; 3] = [0x0c, 0x13, 0x16];
/// Version 1, the only one.
const VERSION: [u8; 3] = [0x02, 0x01, 0x00];
const EXTENSION_REQUEST: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];
const ALTERNATIVE_NAMES: [u8; 3] = [0x55, 0x1d, 0x11];

/// The signed part of a request; `None` when something in it has no plain form.
pub fn request_info(
    info: &X509CertificationRequestInfo<'_>,
    names: Option<&SubjectAlternativeName<'_>>,
) -> Option<Vec<u8>> {
    let attributes = match names {
        Some(names) => wrap(
            SEQUENCE,
            &[wrap(IDENTIFIER, &EXTENSION_REQUEST), wrap(SET, &wrap(SEQUENCE, &extension(names)?))]
                .concat(),
        ),
        None => Vec::new(),
    };
    let parts = [
        VERSION.to_vec(),
        subject(&info.subject)?,
        info.subject_pki.raw.to_vec(),
        wrap(ATTRIBUTES, &attributes),
    ];
    Some(wrap(SEQUENCE, &parts.concat()))
}

fn subject(name: &X509Name<'_>) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for part in name.iter_rdn() {
        let mut set = Vec::new();
        for attribute in part.iter() {
            let value = attribute.attr_value();
            let tag = STRINGS.iter().find(|tag| **tag == value.header.tag().0)?;
            let string = wrap(u8::try_from(*tag).ok()?, value.data);
            let identifier = wrap(IDENTIFIER, attribute.attr_type().as_bytes());
            set.extend(wrap(SEQUENCE, &[identifier, string].concat()));
        }
        all.extend(wrap(SET, &set));
    }
    Some(wrap(SEQUENCE, &all))
}

fn extension(names: &SubjectAlternativeName<'_>) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for name in &names.general_names {
        let (tag, content) = match name {
            GeneralName::RFC822Name(text) => (0x81, text.as_bytes()),
            GeneralName::DNSName(text) => (0x82, text.as_bytes()),
            GeneralName::URI(text) => (0x86, text.as_bytes()),
            GeneralName::IPAddress(bytes) => (0x87, *bytes),
            _ => return None,
        };
        all.extend(wrap(tag, content));
    }
    let value = wrap(OCTETS, &wrap(SEQUENCE, &all));
    Some(wrap(SEQUENCE, &[wrap(IDENTIFIER, &ALTERNATIVE_NAMES), value].concat()))
}

/// Tag, length in its shortest form, content.
fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut all = vec![tag];
    let length = content.len().to_be_bytes();
    let significant: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    match significant.as_slice() {
        [] => all.push(0),
        [short] if *short < 0x80 => all.push(*short),
        long => {
            // A length has at most eight bytes.
            all.push(0x80 | u8::try_from(long.len()).unwrap_or(8));
            all.extend(long);
        }
    }
    all.extend(content);
    all
}
