//! What does the code say? Constants, the words of a function, and the arguments of calls, read from
//! the source: what is generated of them cannot be forgotten when somebody adds one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::golden::repository;

/// A constant of text.
#[derive(Clone, Debug)]
pub struct Constant {
    /// The module inside the file; empty at its top.
    pub module: String,
    pub name: String,
    pub value: String,
    /// Its doc comment, on one line.
    pub words: String,
}

/// A file of the code that ships.
pub struct File {
    /// Relative to the repository.
    pub path: String,
    pub text: String,
}

/// The code of these folders of crates/ that ships: no tests, and no helpers of tests.
pub fn shipped(crates: &[&str]) -> Vec<File> {
    let mut files = Vec::new();
    for one in crates {
        let mut folders = vec![repository().join("crates").join(one).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap();
                if name == "tests" || name == "testing" {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    files.push(read(&path));
                }
            }
        }
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    files
}

pub fn file(path: &str) -> File {
    read(&repository().join(path))
}

fn read(path: &Path) -> File {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
    let root = repository();
    let relative: PathBuf = path.strip_prefix(&root).unwrap().to_owned();
    File { path: relative.to_str().unwrap().to_owned(), text }
}

/// All constants of text in a file, in order.
pub fn constants(file: &File) -> Vec<Constant> {
    let (mut found, mut module, mut words) = (Vec::new(), String::new(), Vec::new());
    let mut lines = file.text.lines().peekable();
    while let Some(line) = lines.next() {
        let bare = line.trim();
        if let Some(name) = line.strip_prefix("pub mod ").and_then(|rest| rest.strip_suffix(" {")) {
            module = name.to_owned();
        } else if line == "}" {
            module.clear();
        }
        if let Some(word) = bare.strip_prefix("///") {
            words.push(word.trim());
            continue;
        }
        let declared = bare.strip_prefix("pub const ").or_else(|| bare.strip_prefix("const "));
        if let Some((name, rest)) = declared.and_then(|rest| rest.split_once(": &str =")) {
            let rest = match rest.trim() {
                "" => lines.next().unwrap_or_default().trim(),
                here => here,
            };
            let value = rest.trim_matches(|letter| letter == '"' || letter == ';').to_owned();
            let words = words.join(" ");
            found.push(Constant { module: module.clone(), name: name.to_owned(), value, words });
        }
        if !bare.starts_with("#[") {
            words.clear();
        }
    }
    found
}

/// The text of a function, from its signature to the end of its body.
pub fn body<'a>(file: &'a File, signature: &str) -> &'a str {
    let begin = file.text.find(signature);
    let begin = begin.unwrap_or_else(|| panic!("{} has no {signature}", file.path));
    let rest = &file.text[begin..];
    let line = file.text[..begin].rfind('\n').map_or(0, |at| at + 1);
    let indent = &file.text[line..begin];
    let indent: String = indent.chars().take_while(|letter| *letter == ' ').collect();
    let end = rest.find(&format!("\n{indent}}}")).unwrap_or(rest.len());
    &rest[..end]
}

/// The quoted words of a text.
pub fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The argument number `index` of each call whose text ends with `callee`, such as `Wait::on(`.
pub fn arguments(text: &str, callee: &str, index: usize) -> Vec<String> {
    let calls = text.match_indices(callee).map(|(at, _)| &text[at + callee.len()..]);
    calls.filter_map(|rest| argument(rest, index)).collect()
}

fn argument(rest: &str, index: usize) -> Option<String> {
    let (mut depth, mut is_quoted, mut seen, mut begin) = (0_usize, false, 0, 0);
    for (at, letter) in rest.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            ',' | ')' if depth == 0 => {
                if seen == index {
                    return Some(rest[begin..at].trim().to_owned());
                }
                if letter == ')' {
                    return None;
                }
                seen += 1;
                begin = at + 1;
            }
            _ => {}
        }
    }
    None
}
