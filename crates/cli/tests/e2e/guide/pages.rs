//! Which commands are on a page of the guide?

use std::path::PathBuf;

use crate::install::manifests::repository;

/// The pages, in the order in which they are read and run.
pub const ORDER: [&str; 7] = [
    "install.md",
    "first-pool.md",
    "first-window.md",
    "upgrade.md",
    "uninstall.md",
    "migrate-machine-api.md",
    CLUSTER_API,
];

/// Run by a test of its own, which needs Cluster API's programs.
pub const CLUSTER_API: &str = "migrate-cluster-api.md";

pub fn folder() -> PathBuf {
    repository().join("docs/guide")
}

/// A fenced block.
pub struct Fence<'a> {
    pub language: &'a str,
    pub text: String,
}

pub fn fences(page: &str) -> Vec<Fence<'_>> {
    let (mut found, mut open): (Vec<Fence<'_>>, Option<Fence<'_>>) = (Vec::new(), None);
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(language), None) => open = Some(Fence { language, text: String::new() }),
            (None, Some(fence)) => {
                fence.text.push_str(line);
                fence.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block has no end");
    found
}

/// The commands of a page, as one script.
pub fn commands(page: &str) -> String {
    let blocks = fences(page).into_iter().filter(|fence| fence.language == "bash");
    blocks.map(|fence| fence.text).collect()
}
