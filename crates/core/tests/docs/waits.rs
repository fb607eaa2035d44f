//! Has every reason to wait its page, and every page its reason?

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use machinist_core::drift::Class;

use crate::{
    golden::{self, cell, docs},
    source::{Constant, File, arguments, body, constants, file, quoted, shipped},
};

const NAMES: &str = "crates/api/src/names.rs";

/// Functions that make a wait of an argument, besides `Wait::on` itself.
const MAKERS: [(&str, &str, usize); 1] = [("crates/core/src/machine/deleting.rs", " waiting(", 2)];

#[test]
fn every_reason_to_wait_has_its_page_and_every_page_its_reason() {
    let reasons = reasons();
    assert!(reasons.len() > 80, "the source was not understood: {reasons:?}");
    let mut told = BTreeSet::new();
    for page in pages() {
        for reason in &page.reasons {
            assert!(told.insert(reason.clone()), "{reason} has two pages");
        }
    }
    let missing: Vec<&String> = reasons.difference(&told).collect();
    assert!(missing.is_empty(), "without a page in docs/operate/waiting: {missing:?}");
    let left_over: Vec<&String> = told.difference(&reasons).collect();
    assert!(left_over.is_empty(), "nothing waits for this any more: {left_over:?}");
}

#[test]
fn every_page_says_how_to_see_more_and_what_to_do() {
    for folder in ["operate/waiting", "operate/alerts"] {
        for page in golden::pages_below(&docs().join(folder)) {
            let text = fs::read_to_string(docs().join(folder).join(&page)).unwrap();
            let mut parts = text.split("\n\n");
            let begins =
                |part: Option<&str>, word: &str| part.unwrap_or_default().starts_with(word);
            assert!(begins(parts.next(), "# "), "{}", page.display());
            assert!(!begins(parts.next(), "**"), "{}: what does it mean?", page.display());
            for word in ["**See more:**", "**What to do:**"] {
                assert!(text.contains(&format!("\n\n{word} ")), "{}: no {word}", page.display());
            }
        }
    }
}

#[test]
fn the_list_of_reasons_is_that_of_the_pages() {
    let mut text = "# What does it wait on?\n\n\
        Whatever waits says why: one word for programs and a sentence for people. The word is the reason of a\n\
        condition, the label `reason` of `machinist_waiting` and `machinist_maintenance_waiting`, and stands in\n\
        `machinist status`, `plan` and `explain`. Each word has a page: what it means, how to see more, and what to do.\n\
        Machines of `cluster.x-k8s.io` have the reasons that Cluster API gives them.\n\n\
        | reason | |\n|---|---|\n"
        .to_owned();
    let mut rows = BTreeMap::new();
    for page in pages() {
        for reason in &page.reasons {
            let row =
                format!("| [{reason}](waiting/{}) | {} |\n", page.file, cell(&page.first_words));
            rows.insert(reason.to_lowercase(), row);
        }
    }
    text.extend(rows.into_values());
    golden::assert_is("operate/waiting.md", &text);
}

struct Page {
    file: String,
    reasons: Vec<String>,
    first_words: String,
}

fn pages() -> Vec<Page> {
    let folder = docs().join("operate/waiting");
    let pages = golden::pages_below(&folder).into_iter().map(|path| {
        let text = fs::read_to_string(folder.join(&path)).unwrap();
        let (title, rest) = text.split_once("\n\n").unwrap();
        let reasons = title.trim_start_matches("# ").split(", ").map(str::to_owned);
        let file = path.to_str().unwrap().to_owned();
        let reasons: Vec<String> = reasons.collect();
        assert_eq!(file, format!("{}.md", reasons[0]), "a page is named for its first reason");
        let paragraph = rest.split("\n\n").next().unwrap().replace('\n', " ");
        let first_words = match paragraph.split_once(". ") {
            Some((first, _)) => format!("{first}."),
            None => paragraph.clone(),
        };
        Page { file, reasons, first_words }
    });
    pages.collect()
}

/// Every reason that the code gives for a wait.
fn reasons() -> BTreeSet<String> {
    let names = constants(&file(NAMES));
    // What a maintenance waits on passes through its own helpers, and all of it has these names.
    let mut found: BTreeSet<String> = of_module(&names, "maintenance_reason").collect();
    // Machines of Cluster API have that project's own reasons, whose meaning is its contract.
    let files = shipped(&["core", "operator"]).into_iter();
    for file in files.filter(|file| !file.path.contains("/src/cluster_api")) {
        let makers = MAKERS.iter().filter(|(path, ..)| *path == file.path);
        let makers = makers.map(|(_, callee, index)| (*callee, *index));
        for (callee, index) in makers.chain([("Wait::on(", 0)]) {
            for argument in arguments(&file.text, callee, index) {
                found.extend(meant(&file, &argument, &names));
            }
        }
    }
    found
}

fn of_module<'a>(names: &'a [Constant], module: &'a str) -> impl Iterator<Item = String> + 'a {
    names.iter().filter(move |one| one.module == module).map(|one| one.value.clone())
}

/// The reasons that an argument can be.
fn meant(file: &File, argument: &str, names: &[Constant]) -> Vec<String> {
    if argument.starts_with('"') {
        return quoted(argument);
    }
    if let Some(value) = constant(file, argument, names) {
        return vec![value];
    }
    chosen_elsewhere(file, argument, names).unwrap_or_else(|| {
        panic!(
            "{}: which reasons can `{argument}` be? Say so in chosen_elsewhere of this test",
            file.path
        )
    })
}

/// The value of a constant: one of the same file, or one of the names on the wire.
fn constant(at: &File, path: &str, names: &[Constant]) -> Option<String> {
    let mut parts: Vec<&str> = path.split("::").collect();
    let name = parts.pop()?;
    let is_upper = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    if name.is_empty() || !name.chars().all(is_upper) {
        return None;
    }
    let module = parts.pop().unwrap_or_default();
    let find = |all: &[Constant], module: &str| {
        all.iter().find(|one| one.name == name && one.module == module).map(|one| one.value.clone())
    };
    if let Some(owner) = parts.pop().filter(|owner| *owner == "operator_status") {
        let there = file(&format!("crates/core/src/{owner}.rs"));
        return find(&constants(&there), module);
    }
    let is_renamed = module == "reason" && at.text.contains("maintenance_reason as reason");
    let on_the_wire = if is_renamed { "maintenance_reason" } else { module };
    find(&constants(at), module).or_else(|| find(names, on_the_wire))
}

/// Reasons that are chosen in another place than where the wait is made.
fn chosen_elsewhere(at: &File, argument: &str, names: &[Constant]) -> Option<Vec<String>> {
    let of_cloud = || {
        quoted(body(
            &file("crates/core/src/cloud.rs"),
            "fn as_str(self) -> &'static str {\n        match self {\n            Self::Transient",
        ))
    };
    let of_drift = || {
        let is_down =
            |class: &Class| class.is_stop() || class.is_termination() || *class == Class::Vanished;
        Class::ALL.into_iter().filter(is_down).map(|class| class.as_str().to_owned()).collect()
    };
    // The constants that stand behind a word, such as `reason: reason::DRAINING`.
    let written = |path: &str, before: &str| -> Vec<String> {
        let file = file(path);
        let after = file.text.match_indices(before).map(|(at, _)| &file.text[at + before.len()..]);
        let paths = after.map(|rest| {
            let is_of_path = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
            rest.split(|letter| !is_of_path(letter)).next().unwrap_or_default()
        });
        paths.filter_map(|path| constant(&file, path, names)).collect()
    };
    let path = at.path.strip_prefix("crates/core/src/")?;
    Some(match (path, argument) {
        // The signature of the helper itself, and the wait that it makes.
        ("machine/deleting.rs", "reason" | "reason: &'static str") => Vec::new(),
        ("machine/deleting.rs", "word") => {
            let wanted = ["TERMINATION_FAILED", "TERMINATING"];
            let of = |name: &str| constant(at, &format!("reason::{name}"), names).unwrap();
            wanted.map(of).to_vec()
        }
        (_, "failure.class.as_str()") => of_cloud(),
        ("machine/down.rs", "down.class.as_str()") => of_drift(),
        ("machine/down.rs", "wait") => {
            let mut all = written(&at.path, "Kind::Held => ");
            all.extend(of_drift());
            all
        }
        ("machineset/decide.rs", "refusal.reason") => {
            let path = "crates/core/src/machineset/ceiling.rs";
            let mut all = written(path, "            0,\n            ");
            all.extend(written(path, "refused(paced.count, "));
            all
        }
        ("machineset/capacity.rs", "reason_of(failure.class)") => {
            let mut all = written(&at.path, "=> ");
            all.retain(|one| !one.is_empty());
            all
        }
        ("health/decide.rs", "reason") => {
            written("crates/core/src/health/remediate.rs", "Choice::Leave { reason: ")
        }
        ("health/decide.rs", "restriction.reason") => {
            written(&at.path, "Some(Restriction {\n                reason: ")
                .into_iter()
                .chain(written(&at.path, "Some(Restriction {\n                    reason: "))
                .collect()
        }
        ("approval/decide.rs", "reason") => {
            quoted(body(&file("crates/core/src/approval/refusal.rs"), "pub fn reason(&self)"))
        }
        // All of them are maintenance's own, which are counted whole.
        ("maintenance/decide.rs", "reason") | (_, "late.reason") => Vec::new(),
        _ => return None,
    })
}
