//! Who plays the pods on the simulated machines?
//!
//! kwok does, on every Node that carries [`POWERED_LABEL`]: pods run, terminate gracefully, and those
//! of Jobs complete. It leaves the Nodes and their Leases to the kubelets.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Context;
use kube::Client;

use crate::api_access::ApiAccess;
use crate::guard::Guard;
use crate::kubelet::POWERED_LABEL;
use crate::manifests::apply_yaml;
use crate::process::{Launch, Process};
use crate::programs::Programs;

const STAGES: &str = include_str!("../assets/kwok-stages.yaml");
const PERMISSIONS: &str = include_str!("../assets/kwok-permissions.yaml");
const USER: &str = "machinist-testbed-kwok";

/// Addresses of pods. kwok takes one for each pod and stops when it has no more.
const POD_NETWORK: &str = "10.128.0.0/14";

pub async fn start(
    programs: &Programs,
    guard: &Guard,
    access: &ApiAccess,
    admin: &Client,
    folder: &Path,
    log_folder: &Path,
) -> anyhow::Result<Process> {
    apply_yaml(admin, PERMISSIONS).await?;
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let stages = folder.join("stages.yaml");
    std::fs::write(&stages, STAGES)
        .with_context(|| format!("cannot write {}", stages.display()))?;
    let kubeconfig = access.write_kubeconfig(&folder.join("kubeconfig"), USER, None)?;

    let mut arguments: Vec<OsString> = vec!["--config".into(), stages.into()];
    arguments.extend(["--kubeconfig".into(), kubeconfig.into()]);
    arguments.extend([
        format!("--manage-nodes-with-label-selector={POWERED_LABEL}=on").into(),
        // The kubelets renew their own.
        "--node-lease-duration-seconds=0".into(),
        format!("--cidr={POD_NETWORK}").into(),
    ]);
    let launch = Launch {
        name: "kwok".to_owned(),
        program: programs.kwok.clone(),
        arguments,
        environment: Vec::new(),
        home: folder.to_owned(),
        log_folder: log_folder.to_owned(),
    };
    Ok(Process::start(guard, launch).await?)
}
