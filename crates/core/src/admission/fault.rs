//! How a wrong field is put into words: the API server's own form, `path: Required value: detail`.
//!
//! Whatever is quoted from the input is cut, and so is the number of faults that are listed: an
//! answer is never larger than a person can read, whatever the question was.

use serde_json::Value;

use crate::decision::FieldError;

/// Faults and warnings that are spelled out in one answer; the rest is counted.
const LISTED_MAX: usize = 20;

/// The API server cuts a warning at 256 characters, so a longer quote would hide what is wrong.
const QUOTED_CHARACTERS_MAX: usize = 120;

/// Room for a list of cut quotes; only a fault that quotes without cutting is longer.
const SENTENCE_CHARACTERS_MAX: usize = 3000;

pub fn required(path: impl Into<String>, detail: &str) -> FieldError {
    FieldError::new(path, format!("Required value: {detail}"))
}

/// The words that every field has which must not be empty.
pub fn unpopulated(path: &str) -> FieldError {
    required(path, &format!("expected {path} to be populated"))
}

pub fn invalid(path: impl Into<String>, value: &Value, detail: &str) -> FieldError {
    FieldError::new(path, format!("Invalid value: {}: {detail}", quoted(value)))
}

pub fn forbidden(path: impl Into<String>, detail: &str) -> FieldError {
    FieldError::new(path, format!("Forbidden: {detail}"))
}

pub fn unsupported(path: impl Into<String>, value: &str, supported: &[&str]) -> FieldError {
    let supported: Vec<String> = supported.iter().map(|one| format!("\"{one}\"")).collect();
    FieldError::new(
        path,
        format!(
            "Unsupported value: {}: supported values: {}",
            quoted(&Value::from(value)),
            supported.join(", ")
        ),
    )
}

/// A value as JSON, cut where it is long.
pub fn quoted(value: &Value) -> String {
    cut(&value.to_string())
}

pub fn cut(text: &str) -> String {
    cut_at(text, QUOTED_CHARACTERS_MAX)
}

fn cut_at(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Several faults as one message: alone as it is, otherwise `[a, b]`.
pub fn message(faults: &[FieldError]) -> String {
    let sentences = listed(faults.iter().map(ToString::to_string));
    match sentences.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// The first sentences, and how many there are besides.
pub fn listed(sentences: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut sentences = sentences.into_iter().map(|one| cut_at(&one, SENTENCE_CHARACTERS_MAX));
    let mut listed: Vec<String> = sentences.by_ref().take(LISTED_MAX).collect();
    match sentences.count() {
        0 => {}
        more => listed.push(format!("and {more} more")),
    }
    listed
}
