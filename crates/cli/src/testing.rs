//! What do tests of several commands share? The fleets of `testdata`, and texts that are held by files
//! beside them.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::{
    args::{ClusterArgs, FleetArgs},
    snapshot::{self, Extent, Snapshot},
    zone::Zone,
};

pub fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/maintenance").join(name)
}

/// The Monday morning on which the fleet is looked at.
pub fn now() -> Timestamp {
    at("2026-11-02T10:00:00Z")
}

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub fn berlin() -> Zone {
    Zone::named("Europe/Berlin").unwrap()
}

pub async fn fleet() -> Snapshot {
    from_files(&[testdata("fleet.yaml")]).await.unwrap()
}

/// The fleet of `testdata/seeing`, to which a lot happened.
pub async fn happened() -> Snapshot {
    from_files(&[testdata("../seeing/happened.yaml")]).await.unwrap()
}

pub async fn from_files(paths: &[PathBuf]) -> anyhow::Result<Snapshot> {
    let args = FleetArgs {
        cluster: ClusterArgs { kubeconfig: None, context: None },
        namespace: "openshift-machine-api".to_owned(),
        filename: paths.to_vec(),
    };
    snapshot::read(&args, Extent::Whole).await
}

/// Compares with a file; `UPDATE=1` rewrites it, and the difference is to be read.
pub fn golden(name: &str, text: &str) {
    let path = testdata(name);
    let text = anstream::adapter::strip_str(text).to_string();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, text, "{name} is another text; UPDATE=1 rewrites it");
}

/// The longest line, without its colours.
pub fn longest_line(text: &str) -> (usize, String) {
    let text = anstream::adapter::strip_str(text).to_string();
    let lines = text.lines().map(|line| (line.chars().count(), line.to_owned()));
    lines.max_by_key(|(length, _)| *length).unwrap_or_default()
}
