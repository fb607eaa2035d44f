//! How is a generated page compared with the stored one, and written anew?

use std::{
    fs,
    path::{Path, PathBuf},
};

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn docs() -> PathBuf {
    repository().join("docs")
}

/// Compares a page of docs/ with what it should be; with `UPDATE` set it is written.
pub fn assert_is(page: &str, text: &str) {
    let path = docs().join(page);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "docs/{page} is old: run `make reference` and read the difference");
}

/// Text inside a cell of a table: one line, and nothing that Markdown takes for its own.
pub fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|").replace('<', "&lt;")
}

/// All Markdown files below a folder, sorted, as paths relative to it.
pub fn pages_below(folder: &Path) -> Vec<PathBuf> {
    let (mut pages, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    pages.sort();
    pages
}
