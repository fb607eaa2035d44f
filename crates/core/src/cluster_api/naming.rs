//! How are sets and machines named, and how does a name read as a label's value?

use sha2::{Digest, Sha256};

use crate::selector::is_subdomain;

/// Letters that cannot spell a word or be taken for one another, as in Kubernetes' own names.
pub const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// How long the random part is.
pub const RANDOM_LENGTH: usize = 5;
/// A name may be so long, so that it is a valid value of a label.
const NAME_LENGTH_MAX: usize = 63;
const BASE_LENGTH_MAX: usize = NAME_LENGTH_MAX - RANDOM_LENGTH;
/// The template of a name where a set says nothing.
pub const USUAL_TEMPLATE: &str = "{{ .machineSet.name }}-{{ .random }}";

/// A name as the value of a label: itself, or a hash where it would be none.
pub fn label_value(name: &str) -> String {
    if is_label_value(name) {
        return name.to_owned();
    }
    format!("hash_{}_z", base64_of(fnv32a(name.as_bytes())))
}

/// Whether Kubernetes takes this as the value of a label.
pub fn is_label_value(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.is_empty()
        || (bytes.len() <= NAME_LENGTH_MAX
            && bytes.iter().copied().all(is_inner)
            && is_end(bytes.first())
            && is_end(bytes.last()))
}

/// The URL-safe base64 of four bytes, without padding.
fn base64_of(word: u32) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // Six digits of six bits hold the word and four bits of nothing after it.
    let bits = u64::from(word) << 4;
    (0..6)
        .rev()
        .map(|place| usize::try_from((bits >> (place * 6)) & 0x3f).unwrap_or(0))
        .map(|digit| char::from(DIGITS.get(digit).copied().unwrap_or(b'A')))
        .collect()
}

fn fnv32a(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Why a template of names cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    #[error("{{{{ .random }}}} is missing: every machine would have the same name")]
    NotRandom,
    #[error("{0:?} is no variable: .cluster.name, .machineSet.name and .random are")]
    UnknownVariable(String),
    #[error("a pair of braces is not closed")]
    NotClosed,
    #[error(
        "a machine would be named {0:?}, and names are of lower case letters, digits, '-' and '.' only, and begin and end \
         with a letter or digit"
    )]
    NoName(String),
}

/// Whether machines can be named by this template.
pub fn check_template(template: &str) -> Result<(), TemplateFault> {
    let name = machine_name(template, "cluster", "set", "bcdfg")?;
    if is_subdomain(&name) { Ok(()) } else { Err(TemplateFault::NoName(name)) }
}

/// The name of a new Machine. `random` are letters of the alphabet; one that grows too long is cut and ends in them.
pub fn machine_name(
    template: &str,
    cluster: &str,
    set: &str,
    random: &str,
) -> Result<String, TemplateFault> {
    let mut name = String::new();
    let mut rest = template;
    let mut is_random = false;
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, after) = after.split_once("}}").ok_or(TemplateFault::NotClosed)?;
        name.push_str(before);
        match inside.trim() {
            ".cluster.name" => name.push_str(cluster),
            ".machineSet.name" => name.push_str(set),
            ".random" => {
                is_random = true;
                name.push_str(random);
            }
            other => return Err(TemplateFault::UnknownVariable(other.to_owned())),
        }
        rest = after;
    }
    name.push_str(rest);
    if !is_random {
        return Err(TemplateFault::NotRandom);
    }
    if name.len() > NAME_LENGTH_MAX {
        let base: String = name.chars().take(BASE_LENGTH_MAX).collect();
        name = format!("{base}{random}");
    }
    Ok(name)
}

/// Letters that depend on what is given and on nothing else. The same question gets the same name, so that asking twice
/// makes one object.
pub fn letters_of(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let digest = hasher.finalize();
    digest
        .iter()
        .take(RANDOM_LENGTH)
        .map(|byte| ALPHABET.get(usize::from(*byte) % ALPHABET.len()).copied().unwrap_or(b'x'))
        .map(char::from)
        .collect()
}

/// The name of a set of a deployment.
pub fn set_name(deployment: &str, letters: &str) -> String {
    let base: String = deployment.chars().take(BASE_LENGTH_MAX - 1).collect();
    format!("{base}-{letters}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_template() {
        let name = |template| machine_name(template, "c", "ms", "abcde");
        assert_eq!(name(USUAL_TEMPLATE).unwrap(), "ms-abcde");
        assert_eq!(name("{{.cluster.name}}-x-{{  .random }}").unwrap(), "c-x-abcde");
        assert_eq!(name("{{ .machineSet.name }}"), Err(TemplateFault::NotRandom));
        assert_eq!(name("{{ .random }"), Err(TemplateFault::NotClosed));
        let unknown = TemplateFault::UnknownVariable(".node".to_owned());
        assert_eq!(name("{{ .node }}-{{ .random }}"), Err(unknown));
        let long = "m".repeat(70);
        let cut = machine_name(USUAL_TEMPLATE, "c", &long, "abcde").unwrap();
        assert_eq!((cut.len(), cut.ends_with("mabcde")), (63, true));
    }

    #[test]
    fn a_template_gives_names_that_objects_may_have() {
        for right in [USUAL_TEMPLATE, "{{ .random }}", "a.b-{{.cluster.name}}{{ .random }}9"] {
            assert_eq!(check_template(right), Ok(()), "{right}");
        }
        for wrong in ["M-{{ .random }}", "{{ .random }}-", "a_{{ .random }}", "a..{{ .random }}"] {
            let fault = check_template(wrong).unwrap_err();
            assert!(matches!(fault, TemplateFault::NoName(_)), "{wrong}: {fault}");
        }
    }

    /// What Cluster API gives for the same names.
    #[test]
    fn a_name_that_is_no_label_value_becomes_a_hash() {
        assert_eq!(label_value("ms-1"), "ms-1");
        assert_eq!(label_value(""), "");
        let long = label_value(&"a".repeat(64));
        assert!(long.starts_with("hash_") && long.ends_with("_z") && is_label_value(&long));
        // fnv32a of the empty string and of "a", from the definition of the hash.
        assert_eq!((fnv32a(b""), fnv32a(b"a")), (0x811c_9dc5, 0xe40c_292c));
        assert_eq!(base64_of(0x0102_03ff), "AQID_w");
    }

    #[test]
    fn the_same_question_gets_the_same_letters() {
        assert_eq!(letters_of(&["a", "b"]), letters_of(&["a", "b"]));
        assert_ne!(letters_of(&["a", "b"]), letters_of(&["ab", ""]));
        assert_eq!(set_name(&"d".repeat(80), "abcde").len(), 63);
    }
}
