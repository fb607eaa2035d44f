//! Which Kubernetes version is meant, and is it older than another?

use std::fmt;

/// Major, minor and patch of `v1.34.0`; what follows a `-` or `+` is kept for equality only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    rest: String,
}

impl Version {
    /// Reads a semantic version, with or without the leading `v`. Leading zeros are no version.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (core, rest) = text.split_at(end);
        let mut parts = core.split('.').map(number);
        let (major, minor, patch) = (parts.next()??, parts.next()??, parts.next()??);
        let is_whole = parts.next().is_none() && is_rest(rest);
        is_whole.then(|| Self { major, minor, patch, rest: rest.to_owned() })
    }
}

fn number(digits: &str) -> Option<u64> {
    let is_canonical = digits == "0" || !digits.starts_with('0');
    let is_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_canonical && is_digits).then(|| digits.parse().ok()).flatten()
}

/// A pre-release after `-` and a build after `+`, each of dotted words.
fn is_rest(rest: &str) -> bool {
    let is_words = |text: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        text.split('.').all(|word| !word.is_empty() && word.bytes().all(is_letter))
    };
    let (before, build) =
        rest.split_once('+').map_or((rest, None), |(before, build)| (before, Some(build)));
    let is_release_right = match before.strip_prefix('-') {
        Some(words) => is_words(words),
        None => before.is_empty(),
    };
    is_release_right && build.is_none_or(is_words)
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}{}", self.major, self.minor, self.patch, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_strictly() {
        for good in ["v1.34.0", "1.2.3", "v1.34.0-rc.1+build.5", "v1.34.0+k3s1"] {
            assert!(Version::parse(good).is_some(), "{good}");
        }
        for bad in ["", "v1", "v1.34", "1.34.01", "v1.34.0-", "v1.34.0+", "latest", "v1.34.0.0"] {
            assert!(Version::parse(bad).is_none(), "{bad}");
        }
        assert!(Version::parse("v1.9.0") < Version::parse("v1.10.0"));
    }
}
