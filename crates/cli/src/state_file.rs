//! Where is everything that `machinist up` started? `.machinist/up.json` says it, to people, scripts
//! and the other subcommands.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// In the folder where `machinist up` was called.
pub const FOLDER: &str = ".machinist";
pub const FILE: &str = "up.json";

/// As whom the cluster of `machinist up` and its audit log know the operator.
pub const OPERATOR_USER: &str = "machinist-operator";

/// The contents. Scripts read it: names are never changed, only added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpState {
    /// For a person, who may do everything.
    pub kubeconfig: PathBuf,
    pub ec2_endpoint: String,
    pub ec2_endpoint_tls: String,
    /// Vouches for `ec2EndpointTls`.
    pub ec2_ca_file: PathBuf,
    /// Plays the cloud's console and its provider.
    pub cloud_admin: String,
    /// None without the operator.
    pub operator_metrics: Option<String>,
    /// For an operator, who may do what Machinist's needs and no more.
    pub operator_kubeconfig: PathBuf,
    /// The operator's process id.
    pub operator_process: Option<u32>,
    /// Where a browser finds the page; none without the operator.
    pub page: Option<String>,
    /// Shows the page to whoever has it, who may also approve.
    pub page_token: Option<String>,
    pub kubectl: PathBuf,
    pub logs: PathBuf,
    pub audit_log: Option<PathBuf>,
    /// The process that holds the cluster; `machinist down` ends it.
    pub process: u32,
    /// Whether the machines run; without an operator, whether there is something to run on.
    pub ready: bool,
}

impl UpState {
    /// Reads the file of `folder`; none where there is no such file.
    pub fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let state = serde_json::from_str(&text)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Some(state))
    }

    /// Replaces the file whole: a reader sees the old or the new one, never half of it.
    #[cfg(feature = "up")]
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(FILE);
        let new = folder.join(format!("{FILE}.new"));
        let text = serde_json::to_string_pretty(self).context("cannot write the state")?;
        // It holds the page's token.
        machinist_testbed::api_access::write_private(&new, &(text + "\n"))?;
        std::fs::rename(&new, &path).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(all(test, feature = "up"))]
impl UpState {
    /// One for tests.
    pub fn sample() -> Self {
        Self {
            kubeconfig: "/k".into(),
            ec2_endpoint: "http://127.0.0.1:1".into(),
            ec2_endpoint_tls: "https://127.0.0.1:2".into(),
            ec2_ca_file: "/ca".into(),
            cloud_admin: "http://127.0.0.1:3".into(),
            operator_metrics: None,
            operator_kubeconfig: "/o".into(),
            operator_process: None,
            page: None,
            page_token: None,
            kubectl: "/kubectl".into(),
            logs: "/logs".into(),
            audit_log: None,
            process: 7,
            ready: false,
        }
    }
}

#[cfg(all(test, feature = "up"))]
mod tests {
    use super::*;

    #[test]
    fn scripts_find_the_promised_names() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(UpState::read(folder.path()).unwrap(), None);
        let state = UpState::sample();
        state.write(folder.path()).unwrap();
        assert_eq!(UpState::read(folder.path()).unwrap(), Some(state));
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        let written: serde_json::Value = serde_json::from_str(&text).unwrap();
        for name in [
            "kubeconfig",
            "ec2Endpoint",
            "ec2EndpointTls",
            "ec2CaFile",
            "cloudAdmin",
            "operatorMetrics",
            "page",
            "pageToken",
        ] {
            assert!(written.get(name).is_some(), "{name}: {text}");
        }
    }
}
