//! How long a duration of the Machine API is: Go's notation, such as `1.5h` or `2h45m`.

use jiff::SignedDuration;

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    // Both spellings of micro that Unicode has.
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads an unsigned duration; `None` for anything else. A bare `0` is one, as in Go.
pub fn parse(text: &str) -> Option<SignedDuration> {
    if text == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut rest = text;
    let mut nanoseconds: i128 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => {
                let (fraction, after) = digits(after);
                (Some(fraction).filter(|fraction| !fraction.is_empty())?, after)
            }
            None => ("", after),
        };
        let unit_end = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let whole: i128 = whole.parse().ok()?;
        nanoseconds = nanoseconds
            .checked_add(whole.checked_mul(*scale)?)?
            .checked_add(fraction_of(fraction, *scale)?)?;
        rest = after;
    }
    if text.is_empty() {
        return None;
    }
    let seconds = i64::try_from(nanoseconds / 1_000_000_000).ok()?;
    let rest = i32::try_from(nanoseconds % 1_000_000_000).ok()?;
    // Go's own limit; what is longer can never be meant.
    (seconds <= i64::MAX / 1_000_000_000).then(|| SignedDuration::new(seconds, rest))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// The digits after the point, in nanoseconds, cut off where they no longer matter.
fn fraction_of(digits: &str, scale: i128) -> Option<i128> {
    if digits.is_empty() {
        return Some(0);
    }
    let digits = digits.get(..digits.len().min(15))?;
    let number: i128 = digits.parse().ok()?;
    let base = 10_i128.checked_pow(u32::try_from(digits.len()).ok()?)?;
    Some(number.checked_mul(scale)? / base)
}
