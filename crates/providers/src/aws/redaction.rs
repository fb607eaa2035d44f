//! What of an error must nobody read? What we sent in secret and the cloud repeats.

use base64::{Engine, engine::general_purpose::STANDARD};

/// Fewer characters in a row are chance. Doubled, parts of a secret that long are told.
const RUN_MIN: usize = 12;

const MARK: &str = "[redacted]";

/// Returns the words without any part of the secret, as it is or in base64.
pub(super) fn without(words: &str, secret: &[u8]) -> String {
    let forms = [String::from_utf8_lossy(secret).into_owned(), STANDARD.encode(secret)];
    let mut told = String::with_capacity(words.len());
    let mut rest = words;
    while let Some(first) = rest.chars().next() {
        let run = run_in(rest, &forms);
        if run > 0 {
            told.push_str(MARK);
            rest = rest.get(run..).unwrap_or_default();
        } else {
            told.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    told
}

/// How many bytes at the beginning are part of a form; zero where they are too few to matter.
fn run_in(words: &str, forms: &[String]) -> usize {
    let ends = || words.char_indices().map(|(at, letter)| at + letter.len_utf8());
    let Some(least) = ends().nth(RUN_MIN - 1) else { return 0 };
    let is_part = |end: usize| {
        words.get(..end).is_some_and(|run| forms.iter().any(|form| form.contains(run)))
    };
    if !is_part(least) {
        return 0;
    }
    ends().skip(RUN_MIN - 1).take_while(|end| is_part(*end)).last().unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = r#"{"ignition":{"token":"swordfish-0123456789"}}"#;

    #[test]
    fn a_secret_is_left_out_whole_in_part_and_encoded() {
        let encoded = STANDARD.encode(SECRET);
        let table = [
            (format!("user data {SECRET} is bad"), "user data [redacted] is bad"),
            (format!("user data {encoded} is bad"), "user data [redacted] is bad"),
            (format!("user data {}...", &encoded[..30]), "user data [redacted]..."),
            ("near 'swordfish-0123456789'".to_owned(), "near '[redacted]'"),
            ("nothing of it, but \u{e9}t\u{e9}".to_owned(), "nothing of it, but \u{e9}t\u{e9}"),
            ("a token is wrong".to_owned(), "a token is wrong"),
            (String::new(), ""),
        ];
        for (words, expected) in table {
            assert_eq!(without(&words, SECRET.as_bytes()), expected, "{words}");
        }
    }

    #[test]
    fn an_empty_secret_hides_nothing() {
        assert_eq!(without("a long enough sentence", b""), "a long enough sentence");
    }
}
