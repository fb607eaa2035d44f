//! Which resources does a Describe call mean? EC2's filters and paging, the same for every kind.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use super::{
    error::Ec2Error,
    request::{Filter, Page},
    response::Paged,
    tags::Tags,
};

/// EC2 takes at most 200 values over all filters of a call.
const FILTER_VALUES_MAX: usize = 200;
/// What a call without MaxResults gets at once, and the most that MaxResults may ask for.
const PAGE_SIZE_MAX: i64 = 1000;
const PAGE_SIZE_MIN: i64 = 5;

/// A resource that filters can select.
pub trait Filterable {
    /// The filters that EC2 has for this kind, without `tag:<key>` and `tag-key`.
    const FILTERS: &'static [&'static str];

    /// Returns what pages are ordered by and what their tokens name.
    fn page_key(&self) -> &str;

    fn tags(&self) -> Option<&Tags>;

    /// Returns the values that the filter of this name is compared with.
    fn filter_values(&self, name: &str) -> Vec<String>;
}

/// Refuses filters that EC2 does not have: a filter that is ignored would select everything.
pub fn check_filters<T: Filterable>(filters: &[Filter]) -> Result<(), Ec2Error> {
    let mut values = 0;
    for filter in filters {
        let is_tag = filter.name.starts_with("tag:") || filter.name == "tag-key";
        if !(is_tag || T::FILTERS.contains(&filter.name.as_str())) {
            return Err(Ec2Error::invalid_filter(&filter.name));
        }
        if filter.values.is_empty() {
            return Err(Ec2Error::invalid_value(format!(
                "The filter '{}' must have at least one value",
                filter.name
            )));
        }
        values += filter.values.len();
    }
    if values > FILTER_VALUES_MAX {
        return Err(Ec2Error::new(
            "FilterLimitExceeded",
            "The maximum number of filter values specified on a single call is 200",
        ));
    }
    Ok(())
}

/// Returns whether every filter has a value that the resource matches.
pub fn matches_filters<T: Filterable>(resource: &T, filters: &[Filter]) -> bool {
    filters.iter().all(|filter| {
        let actual = values_of(resource, &filter.name);
        filter
            .values
            .iter()
            .any(|pattern| actual.iter().any(|value| matches_pattern(pattern, value)))
    })
}

fn values_of<T: Filterable>(resource: &T, name: &str) -> Vec<String> {
    if let Some(key) = name.strip_prefix("tag:") {
        return resource.tags().and_then(|tags| tags.get(key)).cloned().into_iter().collect();
    }
    if name == "tag-key" {
        return resource.tags().map(|tags| tags.keys().cloned().collect()).unwrap_or_default();
    }
    resource.filter_values(name)
}

/// Cuts one page out of all matching resources, which must be in the order of their ids.
pub fn cut_page<T: Filterable>(
    action: &str,
    page: &Page,
    matching: impl Iterator<Item = T>,
) -> Result<Paged<T>, Ec2Error> {
    cut_short_page(action, page, None, matching)
}

/// Cuts a page that may be shorter than was asked for, as EC2 reserves the right to do.
pub fn cut_short_page<T: Filterable>(
    action: &str,
    page: &Page,
    at_most: Option<usize>,
    matching: impl Iterator<Item = T>,
) -> Result<Paged<T>, Ec2Error> {
    let size = match page.max_results {
        None => PAGE_SIZE_MAX,
        Some(size) if (PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&size) => size,
        Some(size) => {
            return Err(Ec2Error::invalid_value(format!(
                "Value ( {size} ) for parameter maxResults is invalid. Expecting a value between \
                 {PAGE_SIZE_MIN} and {PAGE_SIZE_MAX}."
            )));
        }
    };
    let place = page.next_token.as_deref().map(|token| Place::decode(action, token)).transpose()?;
    let place = place.unwrap_or_default();
    let mut rest = matching.filter(|item| item.page_key() > place.after.as_str());
    let size = usize::try_from(size).unwrap_or(usize::MAX).min(at_most.unwrap_or(usize::MAX));
    let items: Vec<T> = rest.by_ref().take(size).collect();
    let next = rest.next().map(|_| match items.last() {
        Some(last) => Place { after: last.page_key().to_owned(), empty_pages: 0 },
        None => Place { empty_pages: place.empty_pages + 1, ..place },
    });
    Ok(Paged { items, next_token: next.map(|next| next.encode(action)) })
}

/// Where the next page begins. It names the last id of the page, not a position: launches and
/// terminations between two pages must neither repeat nor skip an instance that lives through both.
#[derive(Debug, Default)]
struct Place {
    after: String,
    /// Clients take the same token twice in a row for an endless loop, so each empty page counts.
    empty_pages: u32,
}

impl Place {
    fn encode(&self, action: &str) -> String {
        URL_SAFE_NO_PAD.encode(format!("1:{action}:{}:{}", self.empty_pages, self.after))
    }

    fn decode(action: &str, token: &str) -> Result<Self, Ec2Error> {
        let text =
            URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.as_deref()
            .and_then(|text| text.strip_prefix("1:")?.strip_prefix(action)?.strip_prefix(':'))
            .and_then(|rest| rest.split_once(':'))
            .and_then(|(empty_pages, after)| {
                Some(Self { after: after.to_owned(), empty_pages: empty_pages.parse().ok()? })
            })
            .ok_or_else(|| {
                Ec2Error::new("InvalidNextToken", "The specified NextToken is not valid.")
            })
    }
}

/// Compares as EC2 does: `*` is any text, `?` is one character, a backslash makes the next literal.
pub fn matches_pattern(pattern: &str, value: &str) -> bool {
    let pattern = tokens(pattern);
    let value: Vec<char> = value.chars().collect();
    // The classic two-pointer walk: on a mismatch, the last star takes one character more. It is
    // linear in practice and cannot run away on many stars as a recursive match would.
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < value.len() {
        match pattern.get(at) {
            Some(Token::AnyText) => {
                star = Some((at, from));
                at += 1;
                continue;
            }
            Some(Token::AnyCharacter) => {
                at += 1;
                from += 1;
                continue;
            }
            Some(Token::Literal(expected)) if value.get(from) == Some(expected) => {
                at += 1;
                from += 1;
                continue;
            }
            Some(Token::Literal(_)) | None => {}
        }
        match star {
            Some((star_at, star_from)) => {
                at = star_at + 1;
                from = star_from + 1;
                star = Some((star_at, star_from + 1));
            }
            None => return false,
        }
    }
    pattern.iter().skip(at).all(|token| matches!(token, Token::AnyText))
}

enum Token {
    Literal(char),
    AnyText,
    AnyCharacter,
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '*' => Token::AnyText,
            '?' => Token::AnyCharacter,
            '\\' => Token::Literal(characters.next().unwrap_or('\\')),
            literal => Token::Literal(literal),
        });
    }
    tokens
}
