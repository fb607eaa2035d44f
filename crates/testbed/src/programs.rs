//! Where do the Kubernetes programs, kwok and Cluster API's programs come from?
//!
//! From `KUBEBUILDER_ASSETS`, else from the user's cache folder, else from a Go build. All of that
//! is decided by `tools/build.sh`, which the Makefile runs as well, before any Rust program exists.
//! The script and the `go.mod` files that pin every version travel inside this crate, so that an
//! installed `machinist` needs no checkout.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

const BUILD_SCRIPT: &str = include_str!("../../../tools/build.sh");

/// One Go module of `tools/`.
struct Module {
    name: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
}

const KUBE: Module = Module {
    name: "kube",
    go_mod: include_str!("../../../tools/kube/go.mod"),
    go_sum: include_str!("../../../tools/kube/go.sum"),
};

const KWOK: Module = Module {
    name: "kwok",
    go_mod: include_str!("../../../tools/kwok/go.mod"),
    go_sum: include_str!("../../../tools/kwok/go.sum"),
};

const CAPI: Module = Module {
    name: "capi",
    go_mod: include_str!("../../../tools/capi/go.mod"),
    go_sum: include_str!("../../../tools/capi/go.sum"),
};

/// Cluster API's own, for those who play with it.
#[derive(Clone, Debug)]
pub struct ClusterApiPrograms {
    /// The manager whose place Machinist takes.
    pub core: PathBuf,
    /// The infrastructure provider with the in-memory machines.
    pub provider: PathBuf,
    /// The folder of the CustomResourceDefinitions that both need.
    pub crds: PathBuf,
}

/// The files to run.
#[derive(Clone, Debug)]
pub struct Programs {
    pub etcd: PathBuf,
    pub kube_apiserver: PathBuf,
    pub kube_controller_manager: PathBuf,
    pub kube_scheduler: PathBuf,
    pub kubectl: PathBuf,
    pub kwok: PathBuf,
}

/// How a build that takes minutes shows that it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A bar on standard error.
    Bar,
    /// A line on standard error for each step and every 30 seconds.
    Lines,
    /// Nothing. The script's lines appear in the error if the build fails.
    Silent,
}

impl Progress {
    /// A bar where a person watches, lines where a log does.
    #[must_use]
    pub fn detect() -> Self {
        if io::stderr().is_terminal() { Self::Bar } else { Self::Lines }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
    #[error("cannot prepare the build of {module}")]
    Prepare { module: &'static str, source: io::Error },
    #[error("cannot run bash, which tools/build.sh needs")]
    Bash(#[source] io::Error),
    #[error("{last_lines}")]
    Build { last_lines: String },
    #[error("tools/build.sh {module} named no file for {program}")]
    Missing { module: &'static str, program: &'static str },
}

/// Finds every program, building what is missing. Safe to call from several processes at once: one
/// builds, the others wait for it.
pub async fn ensure(progress: Progress) -> Result<Programs, ProgramsError> {
    let mut kube = ensure_module(&KUBE, progress).await?;
    let mut kwok = ensure_module(&KWOK, progress).await?;
    let mut take = |module: &'static str, program: &'static str| {
        let files = if module == KUBE.name { &mut kube } else { &mut kwok };
        files.remove(program).ok_or(ProgramsError::Missing { module, program })
    };
    Ok(Programs {
        etcd: take(KUBE.name, "etcd")?,
        kube_apiserver: take(KUBE.name, "kube-apiserver")?,
        kube_controller_manager: take(KUBE.name, "kube-controller-manager")?,
        kube_scheduler: take(KUBE.name, "kube-scheduler")?,
        kubectl: take(KUBE.name, "kubectl")?,
        kwok: take(KWOK.name, "kwok")?,
    })
}

/// Finds Cluster API's programs, building them where they are missing. Only what plays with Cluster API
/// needs them, so nobody else waits for their build.
pub async fn ensure_cluster_api(progress: Progress) -> Result<ClusterApiPrograms, ProgramsError> {
    let mut files = ensure_module(&CAPI, progress).await?;
    let mut take = |program: &'static str| {
        files.remove(program).ok_or(ProgramsError::Missing { module: CAPI.name, program })
    };
    Ok(ClusterApiPrograms {
        core: take("cluster-api-core")?,
        provider: take("cluster-api-provider")?,
        crds: take("cluster-api-crds")?,
    })
}

/// The version of Kubernetes that `tools/kube/go.mod` pins, with its leading `v`.
#[must_use]
pub fn kubernetes_version() -> &'static str {
    pinned_version(KUBE.go_mod, "k8s.io/kubernetes").unwrap_or("v0.0.0")
}

fn pinned_version(go_mod: &'static str, module: &str) -> Option<&'static str> {
    go_mod.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        let name = if first == "require" { words.next()? } else { first };
        let version = words.next()?;
        (name == module && version.starts_with('v')).then_some(version)
    })
}

async fn ensure_module(
    module: &Module,
    progress: Progress,
) -> Result<BTreeMap<String, PathBuf>, ProgramsError> {
    let prepare_error = |source| ProgramsError::Prepare { module: module.name, source };
    let folder =
        tempfile::Builder::new().prefix("machinist-tools-").tempdir().map_err(prepare_error)?;
    let write = |path: PathBuf, text: &str| std::fs::write(path, text).map_err(prepare_error);
    let script = folder.path().join("build.sh");
    let module_folder = folder.path().join(module.name);
    std::fs::create_dir(&module_folder).map_err(prepare_error)?;
    write(script.clone(), BUILD_SCRIPT)?;
    write(module_folder.join("go.mod"), module.go_mod)?;
    write(module_folder.join("go.sum"), module.go_sum)?;

    let report_every_seconds = if progress == Progress::Bar { "1" } else { "30" };
    let mut child = Command::new("bash")
        .arg(&script)
        .arg(module.name)
        .env("MACHINIST_PROGRESS_SECONDS", report_every_seconds)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(ProgramsError::Bash)?;

    let mut display = Display::new(progress);
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            display.show(line);
        }
    }
    let mut output = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut output).await.map_err(ProgramsError::Bash)?;
    }
    let status = child.wait().await.map_err(ProgramsError::Bash)?;
    let last_lines = display.finish();
    if !status.success() {
        return Err(ProgramsError::Build { last_lines });
    }
    Ok(output
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(program, path)| (program.to_owned(), PathBuf::from(path)))
        .collect())
}

/// Shows the script's lines and keeps the last of them for the error.
struct Display {
    progress: Progress,
    bar: Option<ProgressBar>,
    last_lines: Vec<String>,
}

impl Display {
    const KEPT_LINES: usize = 45;

    const fn new(progress: Progress) -> Self {
        Self { progress, bar: None, last_lines: Vec::new() }
    }

    fn show(&mut self, line: String) {
        match self.progress {
            Progress::Bar => self.show_on_bar(&line),
            Progress::Lines => eprintln!("{line}"),
            Progress::Silent => {}
        }
        self.last_lines.push(line);
        if self.last_lines.len() > Self::KEPT_LINES {
            self.last_lines.remove(0);
        }
    }

    fn show_on_bar(&mut self, line: &str) {
        let text = line.trim_start_matches("tools/build.sh: ");
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::no_length();
            if let Ok(style) =
                ProgressStyle::with_template("{spinner} {msg} {wide_bar} {pos}/{len} {elapsed}")
            {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        if let Some((compiled, total)) = compiled_packages(text) {
            bar.set_length(total);
            bar.set_position(compiled);
        } else {
            bar.set_message(text.to_owned());
        }
    }

    fn finish(self) -> String {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        self.last_lines.join("\n")
    }
}

/// Reads "kube v1.36.3: compiled 12 of 2500 packages, 4 s".
fn compiled_packages(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.split_once(": compiled ")?;
    let (compiled, rest) = counts.split_once(" of ")?;
    let (total, _) = rest.split_once(' ')?;
    Some((compiled.parse().ok()?, total.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_go_mod() {
        assert_eq!(kubernetes_version(), "v1.36.3");
        assert_eq!(pinned_version(KWOK.go_mod, "sigs.k8s.io/kwok"), Some("v0.8.0"));
        assert_eq!(pinned_version(KUBE.go_mod, "go.etcd.io/etcd/server/v3"), Some("v3.6.8"));
        assert_eq!(pinned_version(CAPI.go_mod, "sigs.k8s.io/cluster-api"), Some("v1.14.0"));
        assert_eq!(pinned_version(KUBE.go_mod, "example.com/absent"), None);
    }

    #[test]
    fn progress_lines_of_the_script_move_the_bar() {
        assert_eq!(
            compiled_packages("kube v1.36.3: compiled 12 of 2500 packages, 4 s"),
            Some((12, 2500))
        );
        assert_eq!(compiled_packages("kube v1.36.3: fetching sources"), None);
    }
}
