//! With which flags does each program of the control plane run?

use std::ffi::OsString;
use std::path::Path;

use super::NodeMonitor;
use super::credentials::Credentials;

/// The network of services, as OpenShift has it.
const SERVICE_NETWORK: &str = "172.30.0.0/16";

pub fn etcd(credentials: &Credentials, data: &Path, port: u16) -> Vec<OsString> {
    let url = format!("https://127.0.0.1:{port}");
    let mut flags = Flags::default();
    flags
        .path("data-dir", data)
        .text("listen-client-urls", &url)
        .text("advertise-client-urls", &url)
        // There are no peers; the port that the kernel picks is used by nobody.
        .text("listen-peer-urls", "https://127.0.0.1:0")
        .text("log-level", "warn")
        // The data does not outlive the process.
        .text("unsafe-no-fsync", "true")
        .text("client-cert-auth", "true")
        .path("trusted-ca-file", &credentials.etcd_authority.certificate)
        .path("cert-file", &credentials.etcd_server.certificate)
        .path("key-file", &credentials.etcd_server.key)
        .text("peer-client-cert-auth", "true")
        .path("peer-trusted-ca-file", &credentials.etcd_authority.certificate)
        .path("peer-cert-file", &credentials.etcd_server.certificate)
        .path("peer-key-file", &credentials.etcd_server.key);
    flags.0
}

pub fn api_server(
    credentials: &Credentials,
    etcd_port: u16,
    port: u16,
    audit_log: Option<&Path>,
) -> Vec<OsString> {
    let mut flags = Flags::default();
    flags
        .text("bind-address", "127.0.0.1")
        // Found by the default route otherwise, and a laptop offline has none.
        .text("advertise-address", "127.0.0.1")
        // The loopback address is refused in an Endpoints object.
        .text("endpoint-reconciler-type", "none")
        .text("secure-port", &port.to_string())
        .path("tls-cert-file", &credentials.api_server.certificate)
        .path("tls-private-key-file", &credentials.api_server.key)
        .text("etcd-servers", &format!("https://127.0.0.1:{etcd_port}"))
        .path("etcd-cafile", &credentials.etcd_authority.certificate)
        .path("etcd-certfile", &credentials.etcd_client.certificate)
        .path("etcd-keyfile", &credentials.etcd_client.key)
        .path("client-ca-file", &credentials.authority.certificate)
        .text("authorization-mode", "Node,RBAC")
        .text("enable-admission-plugins", "NodeRestriction")
        .text("enable-bootstrap-token-auth", "true")
        .text("allow-privileged", "true")
        .text("service-cluster-ip-range", SERVICE_NETWORK)
        .text("service-account-issuer", "https://kubernetes.default.svc")
        .path("service-account-key-file", &credentials.service_account_public_key)
        .path("service-account-signing-key-file", &credentials.service_account_key)
        .path("requestheader-client-ca-file", &credentials.front_proxy_authority.certificate)
        .text("requestheader-allowed-names", "front-proxy-client")
        .text("requestheader-username-headers", "X-Remote-User")
        .text("requestheader-group-headers", "X-Remote-Group")
        .text("requestheader-extra-headers-prefix", "X-Remote-Extra-")
        .path("proxy-client-cert-file", &credentials.front_proxy_client.certificate)
        .path("proxy-client-key-file", &credentials.front_proxy_client.key);
    if let Some(log) = audit_log {
        flags
            .path("audit-log-path", log)
            .path("audit-policy-file", &credentials.audit_policy)
            // One file, whole: by default the log moves on to another after 100 MB, and who reads
            // it afterwards misses what was written first.
            .text("audit-log-maxsize", "100000");
    }
    flags.0
}

pub fn controller_manager(credentials: &Credentials, monitor: NodeMonitor) -> Vec<OsString> {
    let mut flags = component(&credentials.controller_manager_kubeconfig);
    flags
        // All that run by default but the one that approves kubelets: that is Machinist's work.
        .text("controllers", "*,-certificatesigningrequest-approving-controller")
        .text("use-service-account-credentials", "true")
        .path("service-account-private-key-file", &credentials.service_account_key)
        .path("root-ca-file", &credentials.authority.certificate)
        .path("cluster-signing-cert-file", &credentials.authority.certificate)
        .path("cluster-signing-key-file", &credentials.authority.key)
        .text("service-cluster-ip-range", SERVICE_NETWORK)
        .text("node-monitor-period", &format!("{}ms", monitor.period.as_millis()))
        .text("node-monitor-grace-period", &format!("{}ms", monitor.grace_period.as_millis()))
        // The default of 20 requests a second makes hundreds of nodes wait for their taints.
        .text("kube-api-qps", "200")
        .text("kube-api-burst", "400");
    flags.0
}

pub fn scheduler(credentials: &Credentials) -> Vec<OsString> {
    let mut flags = component(&credentials.scheduler_kubeconfig);
    flags.text("kube-api-qps", "200").text("kube-api-burst", "400");
    flags.0
}

/// What the controller-manager and the scheduler have in common.
fn component(kubeconfig: &Path) -> Flags {
    let mut flags = Flags::default();
    flags
        .path("kubeconfig", kubeconfig)
        .path("authentication-kubeconfig", kubeconfig)
        .path("authorization-kubeconfig", kubeconfig)
        // They serve nothing that the testbed reads, and a port less cannot be taken.
        .text("secure-port", "0")
        // There is one of each; an election would only delay the start.
        .text("leader-elect", "false");
    flags
}

#[derive(Default)]
struct Flags(Vec<OsString>);

impl Flags {
    fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.0.push(format!("--{name}={value}").into());
        self
    }

    fn path(&mut self, name: &str, value: &Path) -> &mut Self {
        let mut flag = OsString::from(format!("--{name}="));
        flag.push(value);
        self.0.push(flag);
        self
    }
}
