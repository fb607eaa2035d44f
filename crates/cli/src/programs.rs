//! Are the Kubernetes programs there? Builds them if not, and says where they are.

use machinist_testbed::programs::{Progress, ensure};

pub async fn run() -> anyhow::Result<()> {
    let programs = ensure(Progress::detect()).await?;
    for (name, path) in [
        ("etcd", &programs.etcd),
        ("kube-apiserver", &programs.kube_apiserver),
        ("kube-controller-manager", &programs.kube_controller_manager),
        ("kube-scheduler", &programs.kube_scheduler),
        ("kubectl", &programs.kubectl),
        ("kwok", &programs.kwok),
    ] {
        println!("{name} {}", path.display());
    }
    Ok(())
}
