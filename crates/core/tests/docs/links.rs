//! Does every link lead somewhere, and is every page in the book?

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

use crate::golden::{docs, pages_below, repository};

const SUMMARY: &str = "SUMMARY.md";

/// Pages outside the book that lead into it.
const OUTSIDE: [&str; 4] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "deploy/iam/README.md"];

#[test]
fn every_link_leads_somewhere() {
    let mut faults = Vec::new();
    let inside = pages_below(&docs()).into_iter().map(|page| Path::new("docs").join(page));
    for page in inside.chain(OUTSIDE.map(PathBuf::from)) {
        let text = fs::read_to_string(repository().join(&page)).unwrap();
        for link in links(&text) {
            if let Err(why) = check(&page, &text, &link) {
                faults.push(format!("{}: {link}: {why}", page.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_is_in_the_book_once() {
    let summary = fs::read_to_string(docs().join(SUMMARY)).unwrap();
    // A heading of the table of contents has no page of its own.
    let listed: Vec<String> = links(&summary).into_iter().filter(|link| !link.is_empty()).collect();
    let once: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), once.len(), "a page is listed twice");
    let pages = pages_below(&docs()).into_iter().map(|page| page.to_str().unwrap().to_owned());
    let pages: BTreeSet<String> = pages.filter(|page| page != SUMMARY).collect();
    let missing: Vec<&String> = pages.difference(&once).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
    let left_over: Vec<&String> = once.difference(&pages).collect();
    assert!(left_over.is_empty(), "in docs/SUMMARY.md, and not there: {left_over:?}");
}

/// A title is what the reader of a single page, and of a search's result, has to go by.
#[test]
fn every_page_begins_with_its_title() {
    let pages = pages_below(&docs()).into_iter();
    for page in pages.filter(|page| page != Path::new(SUMMARY)) {
        let text = fs::read_to_string(docs().join(&page)).unwrap();
        assert!(text.starts_with("# "), "{}", page.display());
        let titles = prose(&text).filter(|line| line.starts_with("# ")).count();
        assert_eq!(titles, 1, "{}", page.display());
    }
}

fn check(page: &Path, text: &str, link: &str) -> Result<(), String> {
    if link.starts_with("http://") || link.starts_with("https://") {
        return Ok(());
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = normal(&page.parent().unwrap().join(file));
    let is_inside = |path: &Path| path.starts_with("docs");
    if !file.is_empty() && is_inside(page) && !is_inside(&target) {
        return Err("a page of the book leads out of it; name the path instead".to_owned());
    }
    if !file.is_empty() && !repository().join(&target).exists() {
        return Err("there is no such file".to_owned());
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let read = if file.is_empty() {
        text.to_owned()
    } else {
        fs::read_to_string(repository().join(&target)).map_err(|error| error.to_string())?
    };
    let has_it = prose(&read).filter_map(heading).any(|title| anchor_of(title) == anchor);
    if has_it { Ok(()) } else { Err("there is no such heading".to_owned()) }
}

/// The targets of all links and images, but for what is code.
fn links(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for line in prose(text) {
        let line = without_code(line);
        for rest in line.split("](").skip(1) {
            targets.extend(rest.split_once(')').map(|(target, _)| target.to_owned()));
        }
    }
    targets
}

/// The lines outside of fenced code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence {
            is_code = !is_code;
        }
        !is_code && !is_fence
    })
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    (title.len() < line.len()).then(|| title.strip_prefix(' ')).flatten()
}

/// The anchor of a heading, as mdBook and GitHub make it.
fn anchor_of(title: &str) -> String {
    let kept = |letter: char| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        _ => None,
    };
    title.trim().chars().filter_map(kept).collect()
}

fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts
}
