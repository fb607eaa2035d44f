//! What makes a program take itself for a Pod? The name of its host, and a file that the kubelet mounts.
//!
//! Cluster API's managers hold their lease in the namespace that this file names, and no flag says another.

use std::ffi::OsString;

use crate::operator_process::OperatorConfig;

/// The Pod that a program takes itself for.
#[derive(Clone, Copy, Debug)]
pub struct Pod<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
}

/// Run with the name of the Pod, its namespace, the program and its arguments.
const BECOME: &str = r#"set -e
echo "$1" > /proc/sys/kernel/hostname
mount -t tmpfs tmpfs /var/run
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount
printf %s "$2" > /var/run/secrets/kubernetes.io/serviceaccount/namespace
shift 2
exec "$@""#;

impl Pod<'_> {
    /// Only this process sees them, by namespaces of the kernel. Whoever is not root needs a kernel that lets users make such.
    pub(super) fn around(&self, config: OperatorConfig) -> OperatorConfig {
        let unshared = ["--map-root-user", "--mount", "--uts", "sh", "-c", BECOME, "sh"];
        let mut arguments: Vec<OsString> = unshared.map(Into::into).to_vec();
        arguments.extend([self.name.into(), self.namespace.into(), config.program.into()]);
        arguments.extend(config.arguments);
        OperatorConfig { program: "unshare".into(), arguments, ..config }
    }
}
